# SPDX-License-Identifier: Apache-2.0
"""Models in f16 and bf16, made of models in f32: the same graph with every f32 tensor in the smaller type; and back."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

KINDS = {"f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}


def _change(model, old, new, convert):
    def tensor(t):
        if t.data_type == old:
            t.CopyFrom(numpy_helper.from_array(convert(numpy_helper.to_array(t)), t.name))

    def graph(g):
        for t in g.initializer:
            tensor(t)
        for v in [*g.input, *g.output, *g.value_info]:
            if v.type.tensor_type.elem_type == old:
                v.type.tensor_type.elem_type = new
        for node in g.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.TENSOR:
                    tensor(a.t)
                elif a.type == onnx.AttributeProto.GRAPH:
                    graph(a.g)
                elif node.op_type == "Cast" and a.name == "to" and a.i == old:
                    a.i = new

    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph(model.graph)
    return model


def narrowed(model, kind):
    """The model with f32 replaced by `kind`."""
    number, dtype = KINDS[kind]
    limit = 65504.0 if kind == "f16" else 3.3e38  # masks are as low as the type allows
    return _change(model, TensorProto.FLOAT, number, lambda x: np.clip(x, -limit, limit).astype(dtype))


def widened(model, kind):
    """The model with `kind` replaced by f32: the numbers stay the same."""
    return _change(model, KINDS[kind][0], TensorProto.FLOAT, lambda x: x.astype(np.float32))


def tiles_bytes(shape):
    """What weights of a product or a convolution take at most in tiles of 16 bits: columns, or output channels, are
    filled up to blocks of 16, rows, or input channels, to steps of 32; of fewer than 16 channels, the pixels of a
    kernel's row to steps. Volumes have rows of all that a channel reads, a step longer, and 16 more of them."""
    if len(shape) == 2:
        return max(-(-n // 16) * 16 * -(-k // 32) * 32 * 2 for n, k in (shape, shape[::-1]))
    if len(shape) == 3 and shape[2] < 10:  # a line; else matrices
        shape = (*shape[:2], 1, shape[2])
    if len(shape) == 5:
        taps = shape[2] * shape[3] * shape[4]
        return (shape[0] + 16) * (-(-taps * -(-shape[1] // 2) // 16) + 1) * 64
    if len(shape) != 4:
        return 0
    out, channels, high, wide = shape
    steps = -(-channels // 32) * high * wide
    if channels < 16:
        pixel = 1 << (channels - 1).bit_length()
        steps = max(high * -(-wide * pixel // 32), high * wide)
    return -(-out // 16) * 16 * steps * 32 * 2
