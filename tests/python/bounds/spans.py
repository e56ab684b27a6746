# SPDX-License-Identifier: Apache-2.0
"""A value of which each element is known between two bounds.

Integers are mostly known exactly; then `lo` is `hi`, and an engine has to give these bits. Bounds lie apart where
arithmetic on floats has been rounded: each rounding moves them by what the type allows, never by more. Where such a
number is rounded to an integer, both bounds are rounded, so that an integer has two possible values only where the
exact number lies within the rounding errors of a tie.

Elements of floats: the bounds are f64. Both NaN: an engine has to answer NaN. -inf … +inf: nothing is promised, which
is so behind a sum or a product that leaves the range of its type."""

import ml_dtypes
import numpy as np

F32, F64, F16 = np.dtype("f4"), np.dtype("f8"), np.dtype("f2")
I64, I32, I16, I8 = np.dtype("i8"), np.dtype("i4"), np.dtype("i2"), np.dtype("i1")
U64, U32, U16, U8 = np.dtype("u8"), np.dtype("u4"), np.dtype("u2"), np.dtype("u1")
BOOL = np.dtype("?")
U4, I4 = np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.int4)
FLOATS = (F32, F64, F16)

UNIT = {F32: 2.0**-24, F64: 2.0**-53, F16: 2.0**-11}  # what one rounding moves a number, of its size
SMALLEST = {F32: 2.0**-149, F64: 0.0, F16: 2.0**-24}  # … and where numbers become denormal
LARGEST = {t: float(np.finfo(t).max) for t in FLOATS}


class Unknown(Exception):
    """There is no rule for these inputs."""


class Span:
    """step: of what a DequantizeLinear gave, its scale. terms: of a sum of products, how many there are: an engine may
    begin with what is added to the sum, and then every one of them rounds by the size of that."""

    __slots__ = ("dtype", "lo", "hi", "step", "terms")

    def __init__(self, dtype, lo, hi):
        self.dtype, self.lo, self.hi, self.step, self.terms = np.dtype(dtype), lo, hi, None, 0

    @property
    def exact(self):
        return self.lo is self.hi

    @property
    def shape(self):
        return self.lo.shape

    @property
    def certain(self):
        """The share of elements about which something is said."""
        if self.exact or not self.lo.size:
            return 1.0
        if self.dtype in FLOATS:
            return float(np.mean(~wild(self.lo, self.hi)))
        return float(np.mean(np.asarray(self.hi).astype(np.float64) - np.asarray(self.lo).astype(np.float64) < 4))


def exact(array):
    array = np.asarray(array)
    return Span(array.dtype, array, array)


def anything(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype in FLOATS:
        return Span(dtype, np.full(shape, -np.inf), np.full(shape, np.inf))
    low, high = limits(dtype)
    return Span(dtype, np.full(shape, low, dtype), np.full(shape, high, dtype))


def limits(dtype):
    if np.dtype(dtype) == BOOL:
        return 0, 1
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def wild(lo, hi):
    return (lo == -np.inf) & (hi == np.inf)


def integers(dtype, lo, hi):
    """A span of integers, exact where all bounds meet; lo and hi are f64 and lie within the type."""
    lo, hi = np.asarray(lo), np.asarray(hi)
    low = lo.astype(dtype)
    if np.array_equal(lo, hi):
        return Span(dtype, low, low)
    return Span(dtype, low, hi.astype(dtype))


def numbers(span):
    """The bounds in f64. Integers of more than 53 bits are no part of quantised arithmetic."""
    if span.exact:
        a = np.asarray(span.lo).astype(np.float64)
        return a, a
    return np.asarray(span.lo).astype(np.float64), np.asarray(span.hi).astype(np.float64)


def middle(span):
    """(centre, half width); wild elements are 0 and inf."""
    lo, hi = numbers(span)
    if lo is hi:
        return lo, np.zeros_like(lo)
    with np.errstate(all="ignore"):
        same = lo == hi
        centre = np.where(same, lo, lo + (hi - lo) / 2)
        half = np.where(same, 0.0, (hi - lo) / 2)
    open_end = ~same & ~np.isnan(lo) & (np.isinf(lo) | np.isinf(hi))
    centre, half = np.where(open_end, 0.0, centre), np.where(open_end, np.inf, half)
    return centre, np.where(np.isnan(lo) & np.isnan(hi), 0.0, half)


def rounded(dtype, lo, hi, steps=1.0):
    """A span of floats whose bounds are f64, after `steps` roundings to dtype."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(lo), np.abs(hi))
        error = np.where(np.isfinite(size) & (size > 0), steps * (UNIT[dtype] * size + SMALLEST[dtype]), 0.0)
        return within(dtype, lo - error, hi + error)


def within(dtype, lo, hi):
    """Bounds that leave the type: an infinity is possible there, and what is not one bound is none."""
    top = LARGEST[np.dtype(dtype)]
    lo, hi = np.asarray(lo, np.float64), np.asarray(hi, np.float64)
    with np.errstate(all="ignore"):
        low = np.where(np.isinf(lo), lo, np.where(lo > top, top, np.where(lo < -top, -np.inf, lo)))
        high = np.where(np.isinf(hi), hi, np.where(hi < -top, -top, np.where(hi > top, np.inf, hi)))
    half_nan = np.isnan(low) ^ np.isnan(high)
    return Span(dtype, np.where(half_nan, -np.inf, low), np.where(half_nan, np.inf, high))


def of_sum(terms):
    """How many roundings, each of the size of all terms together, the error of a sum is worth. In any order it could
    be as many as there are terms; errors that go either way add up to the root of that, and those that go one way,
    as where all terms are equal, meet sums in many lanes and blocks."""
    return min(terms + 2, 8 + 2 * np.sqrt(terms) + terms / 64)


def linear(dtype, x, w, product, terms, spread=None):
    """A sum of `terms` products of x and w, in any order and with products rounded or not: product(a, b) sums in
    f64. `spread`: where errors of one sum reach others, gives the size of all of them."""
    xc, xr = middle(x)
    wc, wr = middle(w)
    with np.errstate(all="ignore"):
        centre = product(xc, wc)
        # Whatever is infinite has no error, and where nothing is known everything is an error.
        size_x, size_w = np.where(np.isfinite(xc), np.abs(xc), 0.0), np.where(np.isfinite(wc), np.abs(wc), 0.0)
        half = product(size_x, wr) if wr.any() else 0.0
        half = half + (product(xr, size_w + wr) if xr.any() else 0.0)
        half = np.where(np.isnan(half), np.inf, half)
        size = product(size_x, size_w) + half
        size = np.where(np.isnan(size), np.inf, size)
        if spread is not None:
            half = half + spread(size) * UNIT[np.dtype(dtype)]
        if x.step is not None and w.step is not None:
            # Sums of integers are multiplied by the product of both scales, which may be denormal.
            unit = float(np.min(x.step) * np.min(w.step))
            if 0 < unit < 2.0**-126:
                half = half + size / unit * 2 * SMALLEST[np.dtype(dtype)]
        if w.step is not None and np.shape(w.step) == w.shape and w.lo.size > 1:
            # Weights in blocks stay bytes, perhaps with an offset that is taken off the sum of a block.
            half = half + 4 * UNIT[np.dtype(dtype)] * product(size_x, 128.0 * w.step)
        error = of_sum(terms) * UNIT[np.dtype(dtype)] * size + terms * SMALLEST[np.dtype(dtype)]
        half = half + np.where(size > 0, error, 0)
        # A sum on the way may overflow.
        half = np.where(size > LARGEST[np.dtype(dtype)] / 2, np.inf, half)
        centre = np.where(np.isfinite(half) | np.isnan(centre), centre, 0.0)
        settled = ~np.isfinite(centre)  # exactly infinite, or NaN
        half = np.where(settled, 0.0, half)
        made = within(dtype, centre - half, centre + half)
        made.terms = terms
        return made


def outside(span, ours):
    """What is wrong with an engine's answer, or None."""
    if not isinstance(ours, np.ndarray):
        return f"no tensor: {type(ours).__name__}"
    if ours.shape != tuple(span.shape):
        return f"shape {ours.shape}, expected {tuple(span.shape)}"
    if ours.dtype != span.dtype:
        return f"type {ours.dtype}, expected {span.dtype}"
    if not ours.size:
        return None
    if span.dtype in FLOATS:
        low, high = numbers(span)
        got = ours.astype(np.float64)
        with np.errstate(all="ignore"):
            good = (low <= got) & (got <= high) | wild(low, high) | np.isnan(low) & np.isnan(high) & np.isnan(got)
    else:
        low, high, got = np.asarray(span.lo), np.asarray(span.hi), ours
        good = got == low if span.exact else (low <= got) & (got <= high)
    if good.all():
        return None
    bad = np.flatnonzero(~good.ravel())
    i = int(bad[0])
    least, most = low.ravel()[i], high.ravel()[i]
    expected = f"{least}" if span.exact or least == most else f"{least} … {most}"
    return f"element {i} of {ours.size} is {ours.ravel()[i]}, expected {expected} ({bad.size} differ)"
