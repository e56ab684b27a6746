# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear, and float layers between them, as quantisers write them."""

import numpy as np

from .grower import BYTES, F16, F32, I4, I8, I32, LEVELS, U4, U8, NoFit, limits, odd_floats, row
from .products import window


def block_attributes(b, shape):
    """(axis, block_size, shape of the scales): one for all, one for each of an axis, one for each block."""
    rank = len(shape)
    kind = b.int(0, 9)
    if kind < 3 and rank:
        axis = b.axis(rank)
        return {"axis": axis}, (shape[axis],)
    if kind < 5 and rank and b.opset >= 21 and 0 not in shape:
        axis = b.int(0, rank - 1)
        sizes = [n for n in (2, 3, 4, 8, 16, 32) if n <= shape[axis]]
        if sizes:
            block = b.choice(sizes)
            return {"axis": axis, "block_size": block}, tuple(
                -(-d // block) if i == axis else d for i, d in enumerate(shape))
    return {}, ()


def levels(b):
    return b.choice(LEVELS if b.opset >= 21 and b.chance(0.35) else BYTES)


def floats(b, rank=(1, 4), make=None):
    if b.odd and make is None and b.chance(0.4):
        return b.input(F32, b.shape(b.int(*rank)), lambda rng, s: odd_floats(rng, s))
    return b.take((F32,), rank, make=make)


def quantise(b, x, dtype=None):
    dtype = dtype or levels(b)
    low, high = limits(dtype)
    attributes, shape = block_attributes(b, x.shape)
    scale = b.scale(2 * b.extent(x) / (high - low), shape, x.dtype)
    zero = b.zero_point(dtype, shape)
    if dtype == U8 and b.chance(0.08):
        zero = None
    q = b.add("QuantizeLinear", [x, scale, zero], **attributes)
    b.quantised_with[q.name] = (scale, zero, attributes)
    return q


def dequantise(b, q):
    scale, zero, attributes = b.quantised_with[q.name]
    return b.add("DequantizeLinear", [q, scale, zero], **attributes)


@row(2)
def quantise_only(b):
    quantise(b, floats(b))


@row(0.5, since=19)
def quantise_halves(b):
    q = quantise(b, b.take((F16,)), b.choice(BYTES))
    dequantise(b, q)


@row(4)
def there_and_back(b):
    dequantise(b, quantise(b, floats(b)))


@row(1.5)
def back_again(b):
    """Another reader of a quantised value."""
    q = b.take(LEVELS, where=lambda v: v.name in b.quantised_with, fresh=0.0)
    dequantise(b, q)


@row(1.5)
def dequantise_any(b):
    x = b.take((*LEVELS, I32) if b.opset >= 21 else (*BYTES, I32))
    attributes, shape = block_attributes(b, x.shape)
    low, high = limits(x.dtype) if x.dtype != I32 else (-1000, 1000)
    zero = None if x.dtype == I32 or b.chance(0.1) else b.zero_point(x.dtype, shape)
    b.add("DequantizeLinear", [x, b.scale(4.0 / (high - low), shape), zero], **attributes)


@row(1)
def dynamic(b):
    x = floats(b)
    q, scale, zero = b.add("DynamicQuantizeLinear", [x], outputs=3)
    if b.spans[scale.name].exact and b.chance(0.6):
        b.add("DequantizeLinear", [q, scale, zero])


def weight_levels(b, shape, axis, dtype=None):
    """Constant weights through DequantizeLinear; `axis` counts the outputs."""
    dtype = dtype or b.choice((I8, I8, I8, U8, *((U4, I4) if b.opset >= 21 else ())))
    low, high = limits(dtype)
    data = b.weights(dtype, shape, axis)
    fan = max(1, int(np.prod(shape)) // max(1, shape[axis]))
    about = 4.0 / (high - low) / np.sqrt(fan)
    attributes, wide = {}, ()
    if b.chance(0.5):
        attributes, wide = {"axis": axis}, (shape[axis],)
        if b.opset >= 21 and len(shape) == 2 and b.chance(0.4):
            k = 1 - axis
            block = b.choice((4, 8, 16, 32))
            attributes = {"axis": k, "block_size": block}
            wide = tuple(-(-d // block) if i == k else d for i, d in enumerate(shape))
    scale = b.scale(about, wide)
    zero = None if b.chance(0.2) else b.zero_point(dtype, wide) if b.chance(0.3) else \
        b.param(np.zeros(wide, dtype if dtype not in (U4, I4) else np.int8).astype(dtype))
    w = b.param(data)
    return b.add("DequantizeLinear", [w, scale, zero], **attributes)


def bias_levels(b, m, x, shape):
    """A bias of floats, or of i32 in any small scale."""
    if b.chance(0.4):
        return b.param(b.data_rng.standard_normal(shape).astype(F32))
    data = b.data_rng.integers(-2000, 2000, shape).astype(np.int32)
    return b.add("DequantizeLinear", [b.param(data), b.scale(1e-3), None if b.chance(0.5) else b.scalar(0, I32)])


def dequantised(b, rank):
    """Floats that a DequantizeLinear gave, mostly."""
    x = floats(b, (rank, rank) if isinstance(rank, int) else rank)
    return x if b.chance(0.3) else dequantise(b, quantise(b, x, b.choice((U8, U8, I8))))


def finish_layer(b, y):
    if b.chance(0.35):
        act = b.choice(("Relu", "Relu", "Clip", "LeakyRelu", "Sigmoid"))
        inputs = [y, b.scalar(0.0, F32), b.scalar(6.0, F32)] if act == "Clip" else [y]
        y = b.add(act, inputs)
    if b.chance(0.85):
        q = quantise(b, y, b.choice((U8, U8, I8)))
        if b.chance(0.7):
            dequantise(b, q)


@row(4)
def dense_layer(b):
    x = dequantised(b, (2, 3))
    k = x.shape[-1]
    n = b.size(32, 64)
    y = b.add("MatMul", [x, weight_levels(b, (k, n), 1)])
    if b.chance(0.4):
        y = b.add("Add", [y, bias_levels(b, n, x, (n,))])
    finish_layer(b, y)


@row(2.5)
def gemm_layer(b):
    x = dequantised(b, 2)
    n, turned = b.size(32), b.chance(0.5)
    k = x.shape[1]
    w = weight_levels(b, (n, k) if turned else (k, n), 0 if turned else 1)
    shape = b.choice(((n,), (1, n), (n,), (1,), (x.shape[0], n)))
    bias = bias_levels(b, n, x, shape) if b.chance(0.6) else None
    finish_layer(b, b.add("Gemm", [x, w, bias], transB=1 if turned else None, alpha=b.choice((None, None, 0.5)),
                          beta=b.choice((None, None, 2.0))))


@row(4)
def conv_layer(b):
    x = dequantised(b, (3, 5) if b.chance(0.2) else 4)
    c = x.shape[1]
    group = b.choice((1, 1, 1, c))
    if not c:
        raise NoFit
    m = group * b.choice((1, 1, 2)) if group > 1 else b.size()
    kernel, attributes = window(b, x.shape[2:])
    w = weight_levels(b, (m, c // group, *kernel), 0)
    bias = bias_levels(b, m, x, (m,)) if b.chance(0.6) else None
    finish_layer(b, b.add("Conv", [x, w, bias], group=group if group > 1 else None, **attributes))


@row(2)
def sum_layer(b):
    x = dequantised(b, (1, 4))
    others = [v for v in b.values if v.dtype == F32 and v.shape == x.shape and b.spans[v.name].certain > 0.7]
    y = b.choice(others) if b.chance(0.7) else dequantise(b, quantise(b, b.input(
        F32, x.shape[b.int(0, x.rank - 1):] if b.chance(0.3) else x.shape), b.choice(BYTES)))
    finish_layer(b, b.add(b.choice(("Add", "Add", "Mul", "Sub")), [x, y]))


@row(2)
def function_layer(b):
    x = dequantised(b, (1, 4))
    op = b.choice(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Softmax"))
    attributes = {"axis": b.axis(x.rank)} if op == "Softmax" else {}
    finish_layer(b, b.add(op, [x], **attributes))


@row(2)
def pool_layer(b):
    x = dequantised(b, 4)
    op = b.choice(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if op.startswith("Global"):
        y = b.add(op, [x])
    else:
        kernel, attributes = window(b, x.shape[2:], pool=True)
        if op == "AveragePool":
            attributes["count_include_pad"] = b.choice((None, 1))
        y = b.add(op, [x], kernel_shape=kernel, **attributes)
    finish_layer(b, y)


@row(1)
def pool_bytes(b):
    """MaxPool of bytes as they are."""
    x = b.take(BYTES, rank=4)
    kernel, attributes = window(b, x.shape[2:], pool=True)
    b.add("MaxPool", [x], kernel_shape=kernel, **attributes)
