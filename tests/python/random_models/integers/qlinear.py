# SPDX-License-Identifier: Apache-2.0
"""Operators that take quantised numbers and give quantised numbers."""

import numpy as np

from .arithmetic import fits
from .grower import BYTES, F32, I8, MS, U8, limits, row
from .products import kind_of_weights, window


def pair(b, dtype, about=0.03):
    return [b.scale(about), b.zero_point(dtype)]


@row(3)
def qlinear_matmul(b):
    x = b.take(BYTES, rank=(2, 4))
    k, n = x.shape[-1], b.size(32, 64)
    t = kind_of_weights(b, x.dtype)
    w = b.weight(b.weights(t, (k, n), 1))
    per = b.chance(0.3)
    about = 0.03 * 0.03 * np.sqrt(max(k, 1))
    w_zero = b.zero_point(t, (n,) if per else ()) if b.chance(0.5) else b.param(np.zeros((n,) if per else (), t))
    y = x.dtype
    b.add("QLinearMatMul", [x, *pair(b, x.dtype), w, b.scale(0.03, (n,) if per else ()), w_zero, *pair(b, y, about)])


@row(4)
def qlinear_conv(b):
    x = b.take((U8, U8, I8), rank=(3, 5) if b.chance(0.2) else 4, where=lambda v: v.shape[1] > 0)
    c = x.shape[1]
    group = b.choice((1, 1, c))
    m = group * b.choice((1, 2)) if group > 1 else b.size()
    kernel, attributes = window(b, x.shape[2:])
    t = kind_of_weights(b, x.dtype)
    w = b.weight(b.weights(t, (m, c // group, *kernel), 0))
    per = b.chance(0.4)
    w_zero = b.param(np.zeros((m,) if per else (), t)) if per or b.chance(0.5) else b.zero_point(t)
    bias = b.param(b.data_rng.integers(-20000, 20000, (m,)).astype(np.int32)) if b.chance(0.6) else None
    about = 0.03 * 0.03 * np.sqrt(c // group * np.prod(kernel))
    b.add("QLinearConv", [x, *pair(b, x.dtype), w, b.scale(0.03, (m,) if per else ()), w_zero,
                          *pair(b, x.dtype, about), bias], group=group if group > 1 else None, **attributes)


@row(3)
def qlinear_binary(b):
    x = b.take(BYTES)
    near = [v for v in b.values if v.dtype == x.dtype and fits(v.shape, x.shape)]
    other = b.choice(near) if b.chance(0.6) else b.input(x.dtype, [1 if b.chance(0.3) else d for d in x.shape])
    both = [[x, *pair(b, x.dtype)], [other, *pair(b, x.dtype)]]
    b.rng.shuffle(both)
    op = b.choice(("QLinearAdd", "QLinearMul"))
    b.add(op, [*both[0], *both[1], *pair(b, x.dtype, 0.05)], domain=MS)


@row(2)
def qlinear_function(b):
    x = b.take(BYTES)
    if b.chance(0.5):
        b.add("QLinearSigmoid", [x, *pair(b, x.dtype), *pair(b, x.dtype, 1 / 256)], domain=MS)
    else:
        b.add("QLinearLeakyRelu", [x, *pair(b, x.dtype), *pair(b, x.dtype)], domain=MS,
              alpha=b.choice((0.1, 0.01, 0.3)))


@row(1.5)
def qlinear_pool(b):
    x = b.take(BYTES, rank=4, where=lambda v: v.size)
    if b.chance(0.5):
        b.add("QLinearGlobalAveragePool", [x, *pair(b, x.dtype), *pair(b, x.dtype)], domain=MS,
              channels_last=b.choice((0, 0, 1)))
        return
    kernel, attributes = window(b, x.shape[2:], pool=True)
    b.add("QLinearAveragePool", [x, *pair(b, x.dtype), *pair(b, x.dtype)], domain=MS, kernel_shape=kernel,
          count_include_pad=b.choice((None, 0, 1)), **{k: v for k, v in attributes.items() if k != "dilations"})


@row(1.5)
def qlinear_concat(b):
    x = b.take(BYTES)
    axis = b.axis(x.rank)
    others = [v for v in b.values if v.dtype == x.dtype and v.rank == x.rank and
              all(p == q for i, (p, q) in enumerate(zip(v.shape, x.shape)) if i != axis % x.rank)]
    parts = [x, *(b.choice(others) for _ in range(b.int(1, 3)))]
    out = pair(b, x.dtype)
    inputs = [*out]
    for p in parts:
        inputs += [p, *(out if b.chance(0.3) else pair(b, x.dtype))]
    b.add("QLinearConcat", inputs, domain=MS, axis=axis)


@row(1)
def qlinear_softmax(b):
    x = b.take(BYTES, exact=True, where=lambda v: v.size)
    low, _ = limits(x.dtype)
    b.add("QLinearSoftmax", [x, *pair(b, x.dtype, 0.05), b.param(np.array(1 / 256, F32)), b.param(np.array(
        low, x.dtype))], domain=MS, axis=b.axis(x.rank), opset=b.choice((12, 13)))


@row(2)
def qgemm(b):
    x = b.take(BYTES, rank=2)
    turn_a, turn_b = b.chance(0.2), b.chance(0.4)
    m, k = (x.shape[1], x.shape[0]) if turn_a else x.shape
    n = b.size(32)
    t = kind_of_weights(b, x.dtype)
    w = b.weight(b.weights(t, (n, k) if turn_b else (k, n), 0 if turn_b else 1))
    per = b.chance(0.3)
    w_zero = b.param(np.zeros((n,) if per else (), t)) if b.chance(0.5) else b.zero_point(t, (n,) if per else ())
    bias = b.param(b.data_rng.integers(-20000, 20000, b.choice(((n,), (1, n), (m, n)))).astype(np.int32)) \
        if b.chance(0.5) else None
    out = pair(b, x.dtype, 0.03 * 0.03 * np.sqrt(max(k, 1))) if b.chance(0.8) else []
    b.add("QGemm", [x, *pair(b, x.dtype), w, b.scale(0.03, (n,) if per else ()), w_zero, bias, *out], domain=MS,
          transA=int(turn_a), transB=int(turn_b), alpha=b.choice((None, None, 0.5)))


@row(1)
def ms_levels(b):
    """QuantizeLinear and DequantizeLinear of com.microsoft."""
    if b.chance(0.5):
        x = b.take((F32,))
        t = b.choice(BYTES)
        axis = b.int(0, x.rank - 1)
        shape = (x.shape[axis],) if b.chance(0.4) else ()
        b.add("QuantizeLinear", [x, b.scale(b.extent(x) / 127, shape), b.zero_point(t, shape)], domain=MS,
              axis=axis if shape else None)
    else:
        x = b.take(BYTES)
        b.add("DequantizeLinear", [x, *pair(b, x.dtype)], domain=MS)

