# SPDX-License-Identifier: Apache-2.0
"""Quantising and arithmetic on quantised numbers element by element."""

import numpy as np
from onnx import helper

from .rules import rule
from .spans import (F32, FLOATS, I32, LARGEST, SMALLEST, U8, UNIT, Unknown, anything, exact, integers,
                    limits, numbers, rounded)

MS = "com.microsoft"
U = UNIT[F32]


def along(param, shape, axis, block=0):
    """A scale or zero point with an element for each of a tensor of that shape, as far as it broadcasts."""
    param = np.asarray(param)
    if param.ndim == 0 or param.size == 1 and param.ndim == 1 and not block:
        return param.reshape(())
    axis %= len(shape)
    if block:
        return np.repeat(param, block, axis)[tuple(slice(0, d) for d in shape)]
    if param.shape != (shape[axis],):
        raise ValueError("scales do not fit")
    return param.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def round_to(dtype, lo, hi, zero):
    """Bounds in steps, rounded (half to even) and moved by the zero point. NaN becomes any integer."""
    low, high = limits(dtype)
    with np.errstate(all="ignore"):
        lo = np.where(np.isnan(lo) | np.isnan(hi), -np.inf, lo)
        hi = np.where(np.isnan(hi) | np.isinf(lo) & (lo < 0) & np.isnan(hi), np.inf, hi)
        return integers(dtype, np.clip(np.rint(lo) + zero, low, high), np.clip(np.rint(hi) + zero, low, high))


def quotient(x, scale):
    """x in steps of the scale. An exact f32 by an exact f32 is one division, which IEEE defines; what has been
    computed before may have been multiplied by anything that is this quotient in real numbers."""
    if x.exact and scale.exact and x.dtype == F32 and scale.dtype == F32:
        with np.errstate(all="ignore"):
            v = np.asarray(x.lo / scale.lo, np.float64)
        return v, v
    (lo, hi), (least, most) = numbers(x), numbers(scale)
    with np.errstate(all="ignore"):
        lo = np.where(lo < 0, lo / least, lo / most)
        hi = np.where(hi < 0, hi / most, hi / least)
        error = 4 * UNIT[F32 if scale.dtype == F32 else scale.dtype] * np.maximum(np.abs(lo), np.abs(hi))
        error = np.where(np.isfinite(error), error, 0.0)
        return lo - error, hi + error


@rule("QuantizeLinear")
@rule("QuantizeLinear", domain=MS)
def quantize(call):
    x, scale, zero = call[0], call.known(1), call.known(2)
    given = call.attribute("output_dtype", 0)
    dtype = zero.dtype if zero is not None else helper.tensor_dtype_to_np_dtype(given) if given else U8
    if dtype in FLOATS or dtype.kind == "V" and "float" in str(dtype):
        raise Unknown("floats of 8 bits")
    axis, block = call.attribute("axis", 1), call.attribute("block_size", 0)
    scale = exact(along(scale, x.shape, axis, block))
    zero = 0.0 if zero is None else along(zero, x.shape, axis, block).astype(np.float64)
    lo, hi = quotient(x, scale)
    return [round_to(dtype, *(np.broadcast_to(v, x.shape) for v in (lo, hi)), zero)]


@rule("DequantizeLinear")
@rule("DequantizeLinear", domain=MS)
def dequantize(call):
    x, scale, zero = call[0], call.known(1), call.known(2)
    axis, block = call.attribute("axis", 1), call.attribute("block_size", 0)
    given = call.attribute("output_dtype", 0)
    dtype = helper.tensor_dtype_to_np_dtype(given) if given else scale.dtype
    if dtype not in FLOATS:
        raise Unknown("a scale of another type")
    s = along(scale, x.shape, axis, block).astype(np.float64)
    z = 0.0 if zero is None else along(zero, x.shape, axis, block).astype(np.float64)
    lo, hi = numbers(x)
    made = rounded(dtype, (lo - z) * s, (hi - z) * s, 3 if x.dtype == I32 else 1)
    made.step = s
    return [made]


@rule("DynamicQuantizeLinear")
def dynamic(call):
    q, scale, zero = dynamically(call[0])
    return [q, scale, zero]


def dynamically(x):
    """Bytes, scale and zero point. Exact numbers give exact ones: each operation is one of f32."""
    if x.dtype != F32:
        raise Unknown("not f32")
    if not x.lo.size:
        raise Unknown("no elements have no range")
    f = np.float32
    if x.exact:
        if not np.isfinite(x.lo).all():
            return anything(U8, x.shape), anything(F32, ()), anything(U8, ())
        with np.errstate(all="ignore"):
            least, most = min(f(0), x.lo.min()), max(f(0), x.lo.max())
            scale = f(f(most - least) / f(255))
            if not 0 < scale < np.inf:
                return anything(U8, x.shape), anything(F32, ()), anything(U8, ())
            zero = np.rint(np.clip(f(0 - least) / scale, f(0), f(255)))
        scale, zero = exact(np.asarray(scale, F32)), exact(np.asarray(zero).astype(U8))
    else:
        lo, hi = numbers(x)
        if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
            return anything(U8, x.shape), anything(F32, ()), anything(U8, ())
        least, most = (min(0.0, lo.min()), min(0.0, hi.min())), (max(0.0, lo.max()), max(0.0, hi.max()))
        scale = rounded(F32, np.asarray((most[0] - least[1]) / 255), np.asarray((most[1] - least[0]) / 255), 2)
        if not (scale.lo > 0 and np.isfinite(scale.hi)):
            return anything(U8, x.shape), anything(F32, ()), anything(U8, ())
        zero = round_to(U8, -least[1] / scale.hi * (1 - 2 * U), -least[0] / scale.lo * (1 + 2 * U), 0.0)
    lo, hi = quotient(x, scale)
    zlo, zhi = numbers(zero)
    low, high = limits(U8)
    return integers(U8, np.clip(np.rint(lo) + zlo, low, high), np.clip(np.rint(hi) + zhi, low, high)), scale, zero


# ---- 8-bit arithmetic


def scalar(call, i):
    """(scale, zero point) of inputs i and i + 1."""
    scale, zero = call.known(i), call.known(i + 1)
    return float(np.asarray(scale).reshape(())) if np.asarray(scale).size == 1 else np.asarray(scale, np.float64), \
        0.0 if zero is None else np.asarray(zero).astype(np.float64).reshape(() if np.size(zero) == 1 else -1)


def stepwise(dtype, lo, hi, error, zero):
    """Bounds in steps and an error of either."""
    with np.errstate(all="ignore"):
        error = np.where(np.isnan(error), np.inf, error)
        return round_to(dtype, np.where(np.isinf(error), -np.inf, lo - error),
                        np.where(np.isinf(error), np.inf, hi + error), zero)


@rule("QLinearAdd", domain=MS)
def add(call):
    (s, z), (t, w), (y, v) = scalar(call, 1), scalar(call, 4), scalar(call, 6)
    (alo, ahi), (blo, bhi) = numbers(call[0]), numbers(call[3])
    p, q = s / y, t / y
    lo, hi = (alo - z) * p + (blo - w) * q, (ahi - z) * p + (bhi - w) * q
    # Zero points may be added up beforehand: their sizes count, though they leave again.
    size = (np.abs(ahi) + np.abs(alo) + np.abs(z)) * p + (np.abs(bhi) + np.abs(blo) + np.abs(w)) * q + np.abs(v)
    return [stepwise(call[0].dtype, lo, hi, np.where(p + q > LARGEST[F32] / 1e3, np.inf, 6 * U * size), v)]


@rule("QLinearMul", domain=MS)
def mul(call):
    (s, z), (t, w), (y, v) = scalar(call, 1), scalar(call, 4), scalar(call, 6)
    (alo, ahi), (blo, bhi) = numbers(call[0]), numbers(call[3])
    ends = [(a - z) * (b - w) for a in (alo, ahi) for b in (blo, bhi)]
    lo, hi = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return [requantised(call[0].dtype, lo, hi, s, t, y, v, also=np.abs(v) * U)]


def requantised(dtype, lo, hi, s, t, y, zero, also=0.0):
    """Integers times s · t / y, each operation in f32 and in any order."""
    with np.errstate(all="ignore"):
        m = s * t / y
        size = np.maximum(np.abs(lo), np.abs(hi))
        # A product or a quotient of scales that leaves the range of f32 on the way may lose everything.
        lost = SMALLEST[F32] * (1 / np.asarray(y) + 1) + np.zeros_like(m)
        lost = np.where((s * t < 2.0**-126) | (m < 2.0**-126), lost, 0.0)
        lost = np.where((np.asarray(s * t) > LARGEST[F32]) | (np.asarray(m) > LARGEST[F32]), np.inf, lost)
        error = np.where(size > 0, 6 * U * size * m + size * lost, 0.0) + also
        lo, hi = np.where(lo == 0, 0.0, lo * m), np.where(hi == 0, 0.0, hi * m)
        return stepwise(dtype, lo, hi, error, zero)


@rule("QLinearSigmoid", "QLinearLeakyRelu", domain=MS)
def one(call):
    (s, z), (y, v) = scalar(call, 1), scalar(call, 3)
    lo, hi = ((a - z) * s for a in numbers(call[0]))
    with np.errstate(all="ignore"):
        if call.node.op_type == "QLinearSigmoid":
            lo, hi = (1 / (1 + np.exp(-a)) for a in (lo, hi))
            error = 8 * U * (np.abs(hi) * (1 + np.abs(np.log(np.maximum(lo, 1e-300)))))
        else:
            alpha = float(np.float32(call.attribute("alpha", 0.01)))
            lo, hi = (np.where(a < 0, a * alpha, a) for a in (lo, hi))
            error = 4 * U * np.maximum(np.abs(lo), np.abs(hi))
        return [stepwise(call[0].dtype, lo / y, hi / y, error / y + 2 * U * np.abs(hi / y), v)]


@rule("QLinearConcat", domain=MS)
def concat(call):
    y, v = scalar(call, 0)
    dtype, parts = call[2].dtype, []
    for i in range(2, len(call.spans), 3):
        s, z = scalar(call, i + 1)
        lo, hi = ((a - z) * s / y for a in numbers(call[i]))
        if s == y and z == v:
            parts.append(call[i])
            continue
        parts.append(stepwise(dtype, lo, hi, 4 * U * np.maximum(np.abs(lo), np.abs(hi)), v))
    axis = call.attribute("axis", 0)
    lo, hi = (np.concatenate([np.asarray(getattr(p, side)) for p in parts], axis) for side in ("lo", "hi"))
    return [integers(dtype, lo.astype(np.float64), hi.astype(np.float64))]


@rule("QLinearSoftmax", domain=MS)
def softmax(call):
    """As ONNX Runtime, which defines it: exponentials in whole parts of 2^23 or less, sums and quotients in integers
    (src/compute/softmax_bytes.h). An exponential may be a part or two off."""
    (s, _), (y, v) = scalar(call, 1), scalar(call, 3)
    x, axis = call[0], call.attribute("axis", -1)
    if not x.exact or not x.lo.size:
        raise Unknown("inexact")
    a = np.moveaxis(x.lo.astype(np.float64), axis, -1) if call.attribute("opset", 0) >= 13 else \
        x.lo.astype(np.float64).reshape(int(np.prod(x.shape[:axis % len(x.shape)])), -1)
    parts = min(float(0x7FFFFF), (2.0**32 - 1) / a.shape[-1])
    e = parts * np.exp((a - a.max(-1, keepdims=True)) * s)
    slack = 4 * U * e + 0.001
    lo, hi = np.rint(e - slack), np.rint(e + slack)
    m = np.floor(np.float32(1) / np.float32(y))
    sum_lo, sum_hi = lo.sum(-1, keepdims=True), hi.sum(-1, keepdims=True)
    with np.errstate(all="ignore"):
        out = [np.floor((p * m + np.floor(q / 2)) / q) for p, q in ((lo, sum_hi), (hi, sum_lo))]
    low, high = limits(x.dtype)
    out = [np.clip(o + v, low, high) for o in out]
    back = (lambda o: np.moveaxis(o, -1, axis)) if call.attribute("opset", 0) >= 13 else (lambda o: o.reshape(x.shape))
    return [integers(x.dtype, back(out[0]), back(out[1]))]
