# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions of integers and of floats."""

import functools
import itertools

import numpy as np

from .quantising import MS, U, dynamically, requantised, scalar
from .rules import rule
from .spans import (F32, FLOATS, I32, LARGEST, UNIT, Span, Unknown, exact, integers, limits, linear, middle,
                    numbers, of_sum, rounded, wild, within)


def matmul(a, b):
    return np.matmul(a, b)


class Window:
    """Attributes of a convolution or pool for an image of that shape."""

    def __init__(self, call, shape, kernel):
        n = len(shape) - 2
        self.kernel = kernel
        self.strides = call.attribute("strides") or [1] * n
        self.dilations = call.attribute("dilations") or [1] * n
        self.pads = list(call.attribute("pads") or [0] * 2 * n)
        auto = call.attribute("auto_pad", "NOTSET")
        self.reach = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations)]
        if auto.startswith("SAME"):
            for i, size in enumerate(shape[2:]):
                out = -(-size // self.strides[i])
                total = max(0, (out - 1) * self.strides[i] + self.reach[i] - size)
                small, large = total // 2, total - total // 2
                self.pads[i], self.pads[i + n] = (small, large) if auto == "SAME_UPPER" else (large, small)
        self.out = [(d + self.pads[i] + self.pads[i + n] - self.reach[i]) // self.strides[i] + 1
                    for i, d in enumerate(shape[2:])]
        if min(self.out, default=1) < 0 or any(d + self.pads[i] + self.pads[i + n] < self.reach[i]
                                               for i, d in enumerate(shape[2:])):
            raise ValueError("the window is larger than the image")

    def views(self, x, fill=0):
        """(place in the kernel, the elements that meet it) of a padded image."""
        n = len(self.kernel)
        padded = np.pad(x, [(0, 0), (0, 0), *((self.pads[i], self.pads[i + n]) for i in range(n))],
                        constant_values=fill)
        for place in itertools.product(*(range(k) for k in self.kernel)):
            start = [p * d for p, d in zip(place, self.dilations)]
            yield place, padded[(slice(None), slice(None), *(
                slice(b, b + (o - 1) * s + 1 if o else b, s) for b, o, s in zip(start, self.out, self.strides)))]


def convolution(call, shape, w_shape):
    """(a function that convolves two f64 arrays, products in a sum)"""
    group = call.attribute("group", 1)
    if shape[1] != w_shape[1] * group or w_shape[0] % group or len(shape) != len(w_shape) or len(shape) < 3:
        raise ValueError("shapes do not fit")
    window = Window(call, shape, w_shape[2:])

    def product(x, w):
        per = w_shape[0] // group
        made = np.zeros((shape[0], group, per, *window.out))
        split = w.reshape(group, per, *w_shape[1:])
        for place, view in window.views(x):
            part = view.reshape(shape[0], group, w_shape[1], *window.out)
            made += np.einsum("ngc...,gmc->ngm...", part, split[(..., *place)])
        return made.reshape(shape[0], w_shape[0], *window.out)

    return product, int(np.prod(w_shape[1:]))


def whole(dtype_x, x, x_zero, w, w_zero, product):
    """Sums of products of integers less their zero points: (lo, hi) in f64, exact."""
    (xc, xr), (wc, wr) = middle(x), middle(w)
    if not (np.isfinite(xr).all() and np.isfinite(wr).all()):
        raise Unknown("inexact")
    xc, wc = xc - x_zero, wc - w_zero
    centre = product(xc, wc)
    half = 0.0
    if xr.any() or wr.any():
        half = product(np.abs(xc) + xr, np.abs(wc) + wr) - product(np.abs(xc), np.abs(wc))
    return centre - half, centre + half


def wrapped(lo, hi):
    """Sums as int32, which wraps around."""
    if np.array_equal(lo, hi):
        return exact(lo.astype(np.int64).astype(np.int32))
    low, high = limits(I32)
    out = (lo < low) | (hi > high)
    return integers(I32, np.where(out, low, np.ceil(lo)), np.where(out, high, np.floor(hi)))


def columns(zero, ndim):
    """A zero point of the right matrix: one, or one for each column."""
    return zero if np.ndim(zero) == 0 else zero.reshape([1] * (ndim - 1) + [-1])


def point(call, i, shape=None):
    """A zero point in f64."""
    zero = call.known(i)
    return np.asarray(0.0) if zero is None else \
        zero.astype(np.float64).reshape(() if zero.size == 1 else shape or zero.shape)


# ---- integers


@rule("MatMulInteger")
def matmul_integer(call):
    a, b = call[0], call[1]
    return [wrapped(*whole(a.dtype, a, point(call, 2, (-1, 1)), b, columns(point(call, 3), len(b.shape)), matmul))]


@rule("ConvInteger")
def conv_integer(call):
    x, w = call[0], call[1]
    product, _ = convolution(call, x.shape, w.shape)
    per = (-1, *[1] * (len(w.shape) - 1))
    return [wrapped(*whole(x.dtype, x, point(call, 2), w, point(call, 3, per), product))]


@rule("QLinearMatMul")
def qlinear_matmul(call):
    (s, z), (t, w), (y, v) = scalar(call, 1), scalar(call, 4), scalar(call, 6)
    a, b = call[0], call[3]
    lo, hi = whole(a.dtype, a, z, b, columns(w, len(b.shape)), matmul)
    return [requantised(call.known(7).dtype, lo, hi, s, t, y, v)]


@rule("QLinearConv")
def qlinear_conv(call):
    (s, z), (t, w), (y, v) = scalar(call, 1), scalar(call, 4), scalar(call, 6)
    x, weights = call[0], call[3]
    product, _ = convolution(call, x.shape, weights.shape)
    per = (-1, *[1] * (len(weights.shape) - 1))
    lo, hi = whole(x.dtype, x, z, weights, np.reshape(w, per) if np.ndim(w) else w, product)
    channel = (1, -1, *[1] * (len(x.shape) - 2))
    if call[8] is not None:
        bias = call.known(8).astype(np.float64).reshape(channel)
        lo, hi = lo + bias, hi + bias
    return [requantised(call.known(7).dtype, lo, hi, s, np.reshape(t, channel) if np.ndim(t) else t, y, v)]


@rule("QGemm", domain=MS)
def qgemm(call):
    (s, z), (t, w) = scalar(call, 1), scalar(call, 4)
    a, b = call[0], call[3]

    def product(p, q):
        return matmul(p.T if call.attribute("transA", 0) else p, q)

    turned = Span(b.dtype, b.lo.T, b.hi.T) if call.attribute("transB", 0) else b
    turned = exact(turned.lo) if b.exact else turned
    lo, hi = whole(a.dtype, a, z, turned, columns(w, 2), product)
    if call[6] is not None:
        c = call.known(6).astype(np.float64)
        lo, hi = lo + c, hi + c
    alpha = float(np.float32(call.attribute("alpha", 1.0)))
    if call[7] is not None:
        y, v = scalar(call, 7)
        return [requantised(a.dtype, lo, hi, s * alpha, t, y, v)]
    return [scaled(lo, hi, s * alpha, t)]


def scaled(lo, hi, s, t, bias=None):
    """Sums times s · t and a bias, in f32."""
    m = np.asarray(s * t)
    size = np.maximum(np.abs(lo), np.abs(hi)) * m
    low, high = (np.where(a == 0, 0.0, a * m) for a in (lo, hi))
    error = np.where(size > 0, 5 * U * size + np.maximum(np.abs(lo), np.abs(hi)) * np.where(m < 2.0**-126, 2.0**-149, 0)
                     + 2.0**-149, 0.0)
    error = np.where((m > LARGEST[F32]) & (size > 0), np.inf, error)
    if bias is not None:
        error = error + 2 * U * (size + np.abs(bias))
        low, high = low + bias, high + bias
    with np.errstate(all="ignore"):
        return within(F32, low - error, high + error)


@rule("MatMulIntegerToFloat", domain=MS)
def integer_to_float(call):
    a, b = call[0], call[1]
    lo, hi = whole(a.dtype, a, point(call, 4), b, columns(point(call, 5), len(b.shape)), matmul)
    s, t = (call.known(i).astype(np.float64).reshape(() if call.known(i).size == 1 else -1) for i in (2, 3))
    bias = call.known(6)
    return [scaled(lo, hi, s, t, None if bias is None else bias.astype(np.float64))]


@rule("DynamicQuantizeMatMul", domain=MS)
def dynamic_matmul(call):
    q, scale, zero = dynamically(call[0])
    if not (q.exact and scale.exact and zero.exact):
        raise Unknown("inexact")
    b = call[1]
    lo, hi = whole(q.dtype, q, float(zero.lo), b, columns(point(call, 3), len(b.shape)), matmul)
    t, bias = call.known(2).astype(np.float64), call.known(4)
    return [scaled(lo, hi, float(scale.lo), t.reshape(() if t.size == 1 else -1),
                   None if bias is None else bias.astype(np.float64))]


@rule("MatMulNBits", domain=MS)
def matmul_nbits(call):
    """Weights of `bits` bits in blocks along k, the lowest bits first; a zero point of half the range unless given."""
    n, k, bits, block = (call.attribute(a) for a in ("N", "K", "bits", "block_size"))
    blocks = -(-k // block)
    packed, scales = call.known(1).reshape(n, -1), call.known(2).astype(np.float64).reshape(n, blocks)

    def unpack(rows):
        if bits == 8:
            return rows.astype(np.float64)
        return np.stack([(rows >> (bits * i)) & (2**bits - 1) for i in range(8 // bits)], -1).reshape(
            rows.shape[0], -1).astype(np.float64)

    levels = unpack(packed)[:, :blocks * block]
    zeros = call.known(3)
    if zeros is None:
        zeros = np.full((n, blocks), 2.0**(bits - 1))
    elif zeros.dtype in FLOATS:
        zeros = zeros.astype(np.float64).reshape(n, blocks)
    else:
        zeros = unpack(zeros.reshape(n, -1))[:, :blocks]
    w = ((levels.reshape(n, blocks, block) - zeros[..., None]) * scales[..., None]).reshape(n, -1)[:, :k]
    size = (levels.reshape(n, blocks, block) + np.abs(zeros[..., None])) * np.abs(scales[..., None])
    size = size.reshape(n, -1)[:, :k]
    # The zero point may be taken off the sum instead of off each level.
    weights = Span(F32, (w - 4 * U * size).T, (w + 4 * U * size).T)
    made = linear(F32, call[0], weights, matmul, k)
    if call[5] is not None:
        lo, hi = numbers(made)
        bias = call.known(5).astype(np.float64)
        made = rounded(F32, lo + bias, hi + bias, of_sum(k))
    return [made]


# ---- floats


@rule("MatMul")
def matmul_float(call):
    a, b = call[0], call[1]
    if a.dtype not in FLOATS:
        x, y = call.known(0), call.known(1)
        wide = np.uint64 if a.dtype.kind == "u" else np.int64
        return [exact(np.matmul(x.astype(wide), y.astype(wide)).astype(a.dtype))]
    return [linear(a.dtype, a, b, matmul, a.shape[-1])]


@rule("Gemm")
def gemm(call):
    a, b, c = call[0], call[1], call[2]
    if a.dtype not in FLOATS:
        raise Unknown("integers")

    def product(p, q):
        return matmul(p.T if call.attribute("transA", 0) else p, q.T if call.attribute("transB", 0) else q)

    alpha, beta = (float(np.float32(call.attribute(k, 1.0))) for k in ("alpha", "beta"))
    made = linear(a.dtype, a, b, lambda p, q: product(p, q) * abs(alpha), max(a.shape))
    lo, hi = numbers(made)
    if alpha < 0:
        lo, hi = -hi, -lo
    if c is None:
        return [made if alpha == 1 else rounded(a.dtype, lo, hi, 2)]
    ends = sorted_ends(*(e * beta for e in numbers(c)))
    size = np.maximum(np.abs(lo), np.abs(hi)) + np.maximum(*(np.abs(e) for e in ends))
    units = bias_units(a, b, c, (1, -1))
    return [summed(a.dtype, lo + ends[0], hi + ends[1], of_sum(max(a.shape)) * UNIT[a.dtype] * size + units)]


def bias_units(x, w, bias, shape):
    """What a bias of floats may be off by: engines that sum products of integers hold it as an integer, too, in units
    of the product of both scales (ONNX Runtime, fuse_qdq.c). Quantisers write biases that are such integers."""
    if x.step is None or w.step is None or bias.step is not None or not bias.exact:
        return 0.0
    return 0.5 * np.max(x.step) * (np.reshape(w.step, shape) if np.ndim(w.step) and w.step.size == bias.lo.size
                                   else np.max(w.step))


def sorted_ends(a, b):
    return np.minimum(a, b), np.maximum(a, b)


def summed(dtype, lo, hi, error):
    error = np.where(np.isfinite(error), error, 0.0)
    return within(dtype, lo - error, hi + error)


@rule("Conv")
def conv(call):
    x, w, bias = call[0], call[1], call[2]
    product, terms = convolution(call, x.shape, w.shape)
    # Winograd's transforms mix the elements of a tile, and the channels' sums with them: an error of a few hundred
    # units of the largest sum nearby, where the kernel is 3 x 3 and moves by one.
    spread = None
    if tuple(w.shape[2:]) == (3, 3) and set(call.attribute("strides") or [1]) == {1}:
        def spread(size):
            return 300 * size.max(axis=tuple(range(2, size.ndim)), keepdims=True) if size.size else size
    made = linear(x.dtype, x, w, product, terms, spread)
    if bias is None:
        return [made]
    (lo, hi), ends = numbers(made), [e.reshape(1, -1, *[1] * (len(x.shape) - 2)) for e in numbers(bias)]
    size = np.maximum(np.abs(lo), np.abs(hi)) + np.maximum(*(np.abs(e) for e in ends))
    units = bias_units(x, w, bias, (1, -1, *[1] * (len(x.shape) - 2)))
    return [summed(x.dtype, lo + ends[0], hi + ends[1], of_sum(terms) * UNIT[x.dtype] * size + units)]


@rule("MaxPool")
def largest(call):
    x = call[0]
    if call.attribute("ceil_mode", 0) or len(call.node.output) > 1 or 0 in x.shape:
        raise Unknown("a last window that is not full, or indices")
    window = Window(call, x.shape, list(call.attribute("kernel_shape")))
    fill = -np.inf if x.dtype in FLOATS else limits(x.dtype)[0]
    sides = []
    for e in (x.lo,) if x.exact else (x.lo, x.hi):
        if np.isnan(e).any() or x.dtype in FLOATS and not x.exact and wild(x.lo, x.hi).any():
            raise Unknown("engines differ in whether NaN is large")
        sides.append(functools.reduce(np.maximum, (view for _, view in window.views(e, fill))))
        if not np.isfinite(sides[-1]).all() and np.isfinite(e).all():
            raise Unknown("a window of padding")
    return [exact(sides[0]) if x.exact else Span(x.dtype, *sides)]


@rule("AveragePool", "GlobalAveragePool")
def average(call):
    x = call[0]
    lo, hi = numbers(x)
    sums, count = pooled(call, lo, hi, call.node.op_type.startswith("Global"))
    terms = int(np.max(count, initial=1))
    error = (of_sum(terms) + 1) * UNIT[x.dtype] * sums[2] / count
    if (sums[2] > LARGEST[x.dtype] / 2).any():
        raise Unknown("a sum on the way may overflow")
    return [summed(x.dtype, sums[0] / count, sums[1] / count, error)]


@rule("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MS)
def average_bytes(call):
    (s, z), (y, v) = scalar(call, 1), scalar(call, 3)
    x = call[0]
    last = call.attribute("channels_last", 0)
    lo, hi = (np.moveaxis(e - z, -1, 1) if last else e - z for e in numbers(x))
    sums, count = pooled(call, lo, hi, call.node.op_type.startswith("QLinearGlobal"))
    m = s / y / count
    made = requantised(x.dtype, sums[0], sums[1], m, 1.0, 1.0, v, also=np.abs(v) * U + 4 * U * sums[2] * m)
    if last:
        made = Span(made.dtype, np.moveaxis(made.lo, 1, -1), np.moveaxis(made.hi, 1, -1))
        made = exact(made.lo) if np.array_equal(made.lo, made.hi) else made
    return [made]


def pooled(call, lo, hi, everything):
    """((least sum, largest sum, sum of sizes) of each window, elements it counts)"""
    kernel = lo.shape[2:] if everything else call.attribute("kernel_shape")
    if not everything and call.attribute("ceil_mode", 0):
        raise Unknown("a last window that is not full")
    if 0 in lo.shape[2:]:
        raise Unknown("nothing to average")
    window = Window(call, lo.shape, list(kernel))
    with np.errstate(all="ignore"):
        sums = [sum(view for _, view in window.views(e)) for e in (lo, hi, np.maximum(np.abs(lo), np.abs(hi)))]
    ones = sum(view for _, view in window.views(np.ones((1, 1, *lo.shape[2:]))))
    if call.attribute("count_include_pad", 0):
        ones = np.full_like(ones, np.prod(kernel))
    if not ones.all():
        raise Unknown("a window of padding")
    return sums, ones
