# SPDX-License-Identifier: Apache-2.0
"""What lies between quantised layers: sums, products and functions of floats, and the same of integers, which wrap
around."""

import numpy as np

from .rules import rule
from .spans import FLOATS, UNIT, Span, Unknown, exact, numbers, of_sum, rounded, wild, within


@rule("Add", "Sub", "Mul")
def arithmetic(call):
    a, b = call[0], call[1]
    op = call.node.op_type
    if a.dtype not in FLOATS:
        function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
        with np.errstate(all="ignore"):
            return [exact(function(call.known(0), call.known(1)))]
    (alo, ahi), (blo, bhi) = numbers(a), numbers(b)
    with np.errstate(all="ignore"):
        if op == "Mul":
            ends = [p * q for p in (alo, ahi) for q in (blo, bhi)]
            known = a.exact and b.exact
            lo, hi = ends[0], ends[0]
            for e in ends[1:] if not known else ():
                lo, hi = np.minimum(lo, e), np.maximum(hi, e)  # NaN stays
            if not known:  # 0 · inf of two bounds is no promise of NaN
                sure = np.isnan(alo) & np.isnan(ahi) | np.isnan(blo) & np.isnan(bhi)
                vague = np.isnan(lo) & ~sure
                lo, hi = np.where(vague, -np.inf, lo), np.where(vague, np.inf, hi)
            return [rounded(a.dtype, lo, hi)]
        if op == "Sub":
            blo, bhi = -bhi, -blo
        lo, hi = alo + blo, ahi + bhi
        # Quantised sums are made of numbers that are multiplied apart; see QLinearAdd.
        size = np.maximum(np.abs(alo), np.abs(ahi)) + np.maximum(np.abs(blo), np.abs(bhi))
        roundings = max(2, of_sum(max(a.terms, b.terms)) if a.terms or b.terms else 0)
        error = np.where(np.isfinite(size), roundings * UNIT[a.dtype] * size, 0.0)
        sure = np.isnan(alo) & np.isnan(ahi) | np.isnan(blo) & np.isnan(bhi) | (alo == ahi) & (blo == bhi)
        vague = (np.isnan(lo) | np.isnan(hi)) & ~sure
        lo, hi = np.where(vague, -np.inf, lo - error), np.where(vague, np.inf, hi + error)
        return [within(a.dtype, lo, hi)]


# name: (function of f64, roundings of its result that computing it is worth)
SMOOTH = {"Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 16), "Tanh": (np.tanh, 16)}


@rule("Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid")
def function(call):
    x = call[0]
    if x.dtype not in FLOATS:
        raise Unknown("integers")
    lo, hi = numbers(x)
    made, vague = shaped(call, x, lo, hi), wild(lo, hi)
    return [Span(x.dtype, np.where(vague, -np.inf, made.lo), np.where(vague, np.inf, made.hi))]


def shaped(call, x, lo, hi):
    op = call.node.op_type
    with np.errstate(all="ignore"):
        if op in SMOOTH:
            f, steps = SMOOTH[op]
            lo, hi = f(lo), f(hi)
            if op == "Tanh":
                return rounded(x.dtype, lo, hi, steps)
            # Far below zero the error of an exponential grows with its argument.
            return rounded(x.dtype, lo, hi, steps * (1 + np.log1p(np.abs(np.minimum(np.log(lo + 1e-300), 0)))))
        if op == "LeakyRelu":
            alpha = float(np.float32(call.attribute("alpha", 0.01)))
            if alpha < 0:
                raise Unknown("falls")
            return rounded(x.dtype, np.where(lo < 0, lo * alpha, lo), np.where(hi < 0, hi * alpha, hi))
        alpha, beta = (float(np.float32(call.attribute(k, d))) for k, d in (("alpha", 0.2), ("beta", 0.5)))
        lo, hi = (np.clip(alpha * e + beta, 0, 1) for e in (lo, hi))
        size = np.maximum(np.abs(alpha * numbers(x)[0]), abs(beta))
        error = np.where(np.isfinite(size), 3 * UNIT[x.dtype] * size, 0)
        return within(x.dtype, np.maximum(lo - error, 0), np.minimum(hi + error, 1))


@rule("Softmax")
def softmax(call):
    x = call[0]
    axis = call.attribute("axis", -1)
    if call.opset < 13 or not x.lo.size:
        raise Unknown("rows")
    lo, hi = numbers(x)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise Unknown("infinities")
    top = hi.max(axis, keepdims=True)
    small, large = np.exp(lo - top), np.exp(hi - top)
    others_large = large.sum(axis, keepdims=True) - large
    others_small = small.sum(axis, keepdims=True) - small
    low, high = small / (small + others_large), large / (large + others_small)
    spread = (np.abs(hi - top) + np.abs(top)).max(initial=0)  # the error of a difference, which the exponential keeps
    steps = 16 + 2 * min(spread, 200) + x.shape[axis]
    return [rounded(x.dtype, low, np.minimum(high, 1), steps)]
