# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions and pools of one to three spatial dims, on blocks of channels, against ONNX Runtime."""
import random

import numpy as np
import onnx
import onnxruntime
import pytest
import sonde
from onnx import helper


def model_of(nodes, weights, x):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
                              [onnx.numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def check(nodes, weights, x, case):
    model = model_of(nodes, weights, x)
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    want = reference.run(None, {"x": x})[0]
    got = np.asarray(sonde.InferenceSession(model).run(None, {"x": x})[0])
    assert got.shape == want.shape, case
    assert np.abs(got - want).max() <= 1e-5 * max(1, np.abs(want).max()), case


def transposed(rng, numbers):
    rank, groups = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 1, 2])
    channels = rng.choice([16, 20, 33, 100]) if groups == 1 else 32 * rng.choice([1, 2])
    out = rng.choice([8, 12, 30, 64, 70]) if groups == 1 else 16 * rng.choice([1, 2])
    kernel = [rng.randint(1, 5 if rank > 1 else 16) for _ in range(rank)]
    strides = [rng.randint(1, 8 if rank == 1 else 3) for _ in range(rank)]
    dilations = [rng.randint(1, 3) if s == 1 else 1 for s in strides]
    pads = [rng.randint(0, (k - 1) * d) for _ in range(2) for k, d in zip(kernel, dilations)]
    image = [rng.randint(1, 9) for _ in range(rank)]
    extra = [rng.randint(0, s - 1) for s in strides]
    for i in range(rank):
        if strides[i] * (image[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] < pads[i] + pads[i + rank]:
            return None
    x = numbers.standard_normal([rng.choice([1, 2]), channels, *image], dtype=np.float32)
    weights = {"w": numbers.standard_normal([channels, out, *kernel], dtype=np.float32),
               "b": numbers.standard_normal([out * groups], dtype=np.float32)}
    attributes = dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, output_padding=extra,
                      group=groups)
    return attributes, weights, x


@pytest.mark.parametrize("seed", range(4))
def test_transposed_convolutions_of_random_windows_match(seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    for _ in range(15):
        case = transposed(rng, numbers)
        if case is None:
            continue
        attributes, weights, x = case
        nodes = [helper.make_node("ConvTranspose", ["x", "w", "b"], ["t"], **attributes),
                 helper.make_node(rng.choice(["Relu", "Sigmoid"]), ["t"], ["y"])]
        check(nodes, weights, x, (attributes, x.shape))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
def test_pools_between_convolutions_of_lines_and_volumes_match(op):
    rng, numbers = random.Random(op), np.random.default_rng(len(op))
    for i in range(20):
        rank = (1, 3)[i % 2]
        kernel = [rng.randint(1, 3) for _ in range(rank)]
        attributes = {} if op.startswith("Global") else dict(
            kernel_shape=kernel, strides=[rng.randint(1, 2) for _ in kernel],
            pads=[rng.randint(0, k // 2) for _ in range(2) for k in kernel])
        if op == "AveragePool":
            attributes["count_include_pad"] = rng.randint(0, 1)
        x = numbers.standard_normal([rng.choice([1, 2]), 20, *(rng.randint(3, 9) for _ in kernel)], dtype=np.float32)
        weights = {"w": numbers.standard_normal([33, 20, *[1] * rank], dtype=np.float32),
                   "v": numbers.standard_normal([16, 33, *[1] * rank], dtype=np.float32)}
        nodes = [helper.make_node("Conv", ["x", "w"], ["t"]), helper.make_node(op, ["t"], ["u"], **attributes),
                 helper.make_node("Conv", ["u", "v"], ["y"])]
        check(nodes, weights, x, (attributes, x.shape))
