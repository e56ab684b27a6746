# SPDX-License-Identifier: Apache-2.0
"""Quantised operators. A value rounded from an inexact one may be a step off: its `tol` says how much."""

import math

import ml_dtypes
import numpy as np

from .builder import F32, I8, I16, I32, U8, U16, NoFit, row
from .layers import image, window

U4, I4 = np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.int4)
LEVELS = {U8: (0, 255), I8: (-128, 127)}


def scale_of(b, shape=()):
    return b.param(np.asarray(b.data_rng.uniform(0.02, 0.1, shape)).astype(F32))


def zero_of(b, dtype, shape=()):
    low, high = LEVELS[dtype]
    middle = (low + high + 1) // 2
    return b.param(b.random(dtype, shape, middle - 20, middle + 20))


def quantize_node(b, x, dtype=None):
    dtype = dtype or b.choice((U8, I8))
    axis = None
    shape = ()
    if b.opset >= 13 and x.rank and b.chance(0.3):
        axis = b.axis(x.rank)
        shape = (x.shape[axis],)
    if b.opset < 13 and dtype == I8 and b.opset < 10:
        raise NoFit
    scale, zero = scale_of(b, shape), zero_of(b, dtype, shape)
    if axis is None and dtype == U8 and b.chance(0.1):
        zero = None
    q = b.emit("QuantizeLinear", [x, scale, zero], dtype, x.shape, [x], attributes={"axis": axis}, exact=x.exact,
               tol=0.0 if x.exact else 1.0, mag=255)
    return q, scale, zero, axis


def dequantize_node(b, q, scale, zero, axis):
    step = float(scale.data.max())
    return b.emit("DequantizeLinear", [q, scale, zero], F32, q.shape, [q], attributes={"axis": axis},
                  exact=False, tol=q.tol * step * 1.01, mag=25)


@row(1.5, since=10)
def quantize(b):
    quantize_node(b, b.pick((F32,), zero=True))


@row(1.5, since=10)
def quantize_dequantize(b):
    dequantize_node(b, *quantize_node(b, b.pick((F32,), exact=True)))


@row(1, since=10)
def dequantize(b):
    x = b.pick((U8, I8, I32) if b.chance(0.3) else (U8, I8), exact=True, mag=1e9, tol=False)
    shape, axis = (), None
    if b.opset >= 13 and x.rank and b.chance(0.4):
        axis = b.axis(x.rank)
        shape = (x.shape[axis],)
    zero = None if x.dtype == I32 or b.chance(0.2) else zero_of(b, x.dtype, shape)
    b.emit("DequantizeLinear", [x, scale_of(b, shape), zero], F32, x.shape, [x], attributes={"axis": axis}, mag=25)


@row(0.6, since=21)
def quantize_blocks(b):
    block = b.int(2, 3)
    x = b.pick((F32,), shape=(b.int(1, 4), block * b.int(1, 3)), exact=True)
    shape = (x.shape[0], x.shape[1] // block)
    dtype = b.choice((U8, I8))
    scale, zero = scale_of(b, shape), zero_of(b, dtype, shape)
    q = b.emit("QuantizeLinear", [x, scale, zero], dtype, x.shape, [x], exact=True, mag=255,
               attributes={"axis": 1, "block_size": block})
    b.emit("DequantizeLinear", [q, scale, zero], F32, x.shape, [q], attributes={"axis": 1, "block_size": block}, mag=25)


@row(0.4, since=21)
def narrow_levels(b):
    """16 and 4 bits: rounded, and back."""
    x = b.pick((F32,), exact=True)
    dtype = b.choice((U16, I16, U4, I4))
    low, high = {U16: (0, 65535), I16: (-32768, 32767), U4: (0, 15), I4: (-8, 7)}[dtype]
    scale = b.param(np.array(b.rng.uniform(0.2, 0.5) if high < 16 else 0.001, F32))
    zero = b.param(np.array(b.int(low // 2, high // 2), dtype))
    q = b.emit("QuantizeLinear", [x, scale, zero], dtype, x.shape, [x], exact=True, mag=1e9)
    b.values.remove(q)
    b.emit("DequantizeLinear", [q, scale, zero], F32, x.shape, [x], mag=66)


@row(0.7, since=11)
def dynamic_quantize(b):
    x = b.pick((F32,), distinct=True, rank=(1, 4))  # nothing but zeros has no scale
    names = b.node("DynamicQuantizeLinear", [x], 3)
    # The zero point is a rounded quotient: a step is everybody's right.
    b.result(names[0], U8, x.shape, [x], tol=1.0, mag=255)
    b.result(names[1], F32, (), [x], mag=1)
    b.result(names[2], U8, (), [x], tol=1.0, mag=255)


@row(1, since=10)
def matmul_integer(b):
    x = b.pick((U8, I8), rank=(2, 4), exact=True, mag=1e9)
    k, n = x.shape[-1], b.choice((1, 3, 8, 17))
    w = b.param(b.random(b.choice((U8, I8)), (k, n), *((0, 255) if b.chance(0.5) else (0, 127))).astype(x.dtype)) \
        if b.chance(0.5) else b.param(b.random(I8, (k, n), -128, 127))
    zeros = [zero_of(b, x.dtype) if b.chance(0.6) else None, None]
    if b.chance(0.4):
        zeros[1] = zero_of(b, w.dtype, (n,) if b.chance(0.4) else ())
    b.emit("MatMulInteger", [x, w, *zeros], I32, (*x.shape[:-1], n), [x], exact=True, mag=1e6)


@row(0.7, since=10)
def conv_integer(b):
    x = image(b, 2, dtypes=(U8,), exact=True)
    if x.dtype != U8:
        raise NoFit
    kernel, attributes, out = window(b, x)
    m = b.int(1, 6)
    w = b.param(b.random(U8, (m, x.shape[1], *kernel), 0, 255))
    zeros = [zero_of(b, U8) if b.chance(0.6) else None, zero_of(b, U8) if b.chance(0.4) else None]
    b.emit("ConvInteger", [x, w, *zeros], I32, (x.shape[0], m, *out), [x], attributes=attributes, exact=True, mag=1e6)


@row(1, since=10)
def qlinear_matmul(b):
    x = b.pick((U8, I8), rank=(2, 3), exact=True, mag=1e9)
    k, n = x.shape[-1], b.choice((1, 3, 8, 17))
    t = x.dtype
    w = b.param(b.random(t, (k, n), *((0, 255) if t == U8 else (-128, 127))))
    b.emit("QLinearMatMul", [x, scale_of(b), zero_of(b, t), w, scale_of(b), zero_of(b, t), b.param(np.array(
        0.5, F32)), zero_of(b, t)], t, (*x.shape[:-1], n), [x], tol=1.0, mag=255)


@row(1.2, since=10)
def qlinear_conv(b):
    x = image(b, 2, dtypes=(U8,), exact=True)
    if x.dtype != U8:
        raise NoFit
    kernel, attributes, out = window(b, x)
    c = x.shape[1]
    group = b.choice((1, 1, c))
    m = group * b.int(1, 3)
    t = b.choice((U8, I8))
    per = b.chance(0.4)
    # Weights of both types: zero points per channel are zero, which is what every engine takes.
    w = b.param(b.random(t, (m, c // group, *kernel), *((0, 255) if t == U8 else (-128, 127))))
    w_scale = scale_of(b, (m,) if per else ())
    w_zero = b.param(np.zeros((m,) if per else (), t)) if per or b.chance(0.5) else zero_of(b, t)
    bias = b.param(b.random(I32, (m,), -1000, 1000)) if b.chance(0.5) else None
    if group > 1:
        attributes["group"] = group
    b.emit("QLinearConv", [x, scale_of(b), zero_of(b, U8), w, w_scale, w_zero, b.param(np.array(0.4, F32)),
                           zero_of(b, U8), bias], U8, (x.shape[0], m, *out), [x], attributes=attributes, tol=1.0,
           mag=255)


@row(2, since=13)
def quantized_layer(b):
    """A float layer between DequantizeLinear and QuantizeLinear, as quantisers write it."""
    conv = b.chance(0.6)
    x = image(b, 2, exact=True, mag=4) if conv else b.pick((F32,), rank=2, exact=True, mag=4)
    if x.dtype != F32:
        raise NoFit
    x = dequantize_node(b, *quantize_node(b, x, U8)) if b.chance(0.9) else x
    m = b.choice((1, 3, 8, 16))
    t = b.choice((I8, I8, U8))
    attributes = {}
    if conv:
        kernel, attributes, out = window(b, x)
        shape, axis = (m, x.shape[1], *kernel), 0
        out_shape = (x.shape[0], m, *out)
    else:
        shape, axis = (x.shape[1], m), 1
        out_shape = (x.shape[0], m)
    per = b.chance(0.5)
    w = b.param(b.random(t, shape, *LEVELS[t]))
    w_scale = b.param(np.asarray(b.data_rng.uniform(0.001, 0.01, (m,) if per else ())).astype(F32))
    w_zero = b.param(np.zeros((m,) if per else (), t)) if t == I8 else zero_of(b, t, (m,) if per else ())
    w = b.emit("DequantizeLinear", [w, w_scale, w_zero], F32, shape, [], mag=1,
               attributes={"axis": axis if per else None})
    inputs = [x, w]
    if b.chance(0.6) and conv:
        inputs.append(b.param(b.random(F32, (m,))))
    y = b.emit("Conv" if conv else "MatMul", inputs, F32, out_shape, [x], attributes=attributes,
               mag=x.mag * math.sqrt(math.prod(shape)))
    if b.chance(0.4):
        y = b.emit("Relu", [y])
    scale, zero = b.param(np.array(0.2, F32)), zero_of(b, U8)
    q = b.emit("QuantizeLinear", [y, scale, zero], U8, y.shape, [y], tol=1.0, mag=255)
    if b.chance(0.6):
        dequantize_node(b, q, scale, zero, None)
