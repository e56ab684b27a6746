# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, bits, shifts, comparisons and reductions of integers of every type, which wrap around."""

import numpy as np
from onnx import helper

from .grower import BOOL, F32, I8, I32, I64, U8, U32, U64, WHOLE, NoFit, elements, limits, row

UNSIGNED = tuple(t for t in WHOLE if t.kind == "u")
SIGNED = tuple(t for t in WHOLE if t.kind == "i")


def partner(b, v, make=None):
    """A value or parameter of the same type that broadcasts with v."""
    make = make or (lambda rng, s: elements(rng, v.dtype, s))
    if b.chance(0.3):
        near = [w for w in b.values if w.dtype == v.dtype and b.spans[w.name].exact and fits(v.shape, w.shape)]
        if near:
            return b.choice(near)
    shape = [1 if b.chance(0.25) else d for d in v.shape]
    shape = shape[b.int(0, len(shape)):] if b.chance(0.3) else shape
    return b.param(make(b.data_rng, tuple(shape))) if b.chance(0.5) else b.input(v.dtype, shape, make)


def fits(*shapes):
    try:
        np.broadcast_shapes(*shapes)
        return True
    except ValueError:
        return False


@row(3)
def arithmetic(b):
    v = b.take(WHOLE if b.opset >= 14 else (I32, I64, U32, U64), exact=True)
    pair = [v, partner(b, v)]
    b.rng.shuffle(pair)
    b.add(b.choice(("Add", "Sub", "Mul")), pair)


@row(2)
def division(b):
    v = b.take(WHOLE if b.opset >= 14 else (I32, I64, U32, U64), exact=True)
    low, high = limits(v.dtype)

    def divisors(rng, shape):
        d = rng.integers(max(low, -9), 10, shape)
        d = np.where(rng.random(shape) < 0.2, rng.integers(max(low, -100), min(high, 10**6), shape), d)
        return np.where((d == 0) | (d == -1), 3, d).astype(v.dtype)  # the lowest number by -1 is no integer

    if b.chance(0.5):
        b.add("Div", [v, b.param(divisors(b.data_rng, v.shape[b.int(0, v.rank):]))])
    else:
        b.add("Mod", [v, b.param(divisors(b.data_rng, v.shape[b.int(0, v.rank):]))],
              fmod=b.choice((None, 0, 1)))


@row(1.5, since=18)
def bits(b):
    v = b.take(WHOLE, exact=True)
    op = b.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"))
    b.add(op, [v] if op == "BitwiseNot" else [v, partner(b, v)])


@row(1.5)
def shift(b):
    v = b.take(UNSIGNED, exact=True)
    by = b.data_rng.integers(0, 8 * v.dtype.itemsize, v.shape[b.int(0, v.rank):]).astype(v.dtype)
    b.add("BitShift", [v, b.param(by)], direction=b.choice(("LEFT", "RIGHT")))


@row(2)
def compare(b):
    v = b.take(WHOLE, exact=True)
    op = b.choice(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"))
    if op.endswith("Equal") and op != "Equal" and b.opset < 16 and v.dtype not in (I32, I64):
        raise NoFit
    b.add(op, [v, partner(b, v)])


@row(1)
def logic(b):
    v = b.take((BOOL,), exact=True)
    op = b.choice(("And", "Or", "Xor", "Not"))
    b.add(op, [v] if op == "Not" else [v, partner(b, v)])


@row(1.5)
def one(b):
    op = b.choice(("Abs", "Neg", "Sign"))
    b.add(op, [b.take(SIGNED if op == "Neg" else WHOLE, exact=True)])


@row(1.5)
def extremes(b):
    v = b.take(WHOLE)
    op = b.choice(("Max", "Min", "Clip"))
    if op == "Clip":
        low, high = sorted(elements(b.data_rng, v.dtype, (2,)).tolist())
        b.add(op, [v, b.scalar(low, v.dtype) if b.chance(0.8) else None,
                   b.scalar(high, v.dtype) if b.chance(0.8) else None])
    else:
        b.add(op, [v, partner(b, v)])


@row(2)
def cast(b):
    v = b.take((*WHOLE, BOOL), exact=True)
    to = b.choice((*WHOLE, BOOL, F32))
    b.add("Cast", [v], to=int(helper.np_dtype_to_tensor_dtype(to)))


@row(1)
def select(b):
    v = b.take(WHOLE, exact=True)
    mask = b.param(elements(b.data_rng, BOOL, v.shape[b.int(0, v.rank):]))
    b.add("Where", [mask, v, partner(b, v)])


@row(2.5)
def reduction(b):
    op = b.choice(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1"))
    types = (I32, I64, I8, U8) if op in ("ReduceMax", "ReduceMin") else (I32, I64, U32, U64)
    v = b.take(types, exact=op not in ("ReduceMax", "ReduceMin"))
    axes = sorted(b.rng.sample(range(v.rank), b.int(1, v.rank)))
    axes = [a - v.rank if b.chance(0.3) else a for a in axes]
    keep = b.choice((None, 0, 1))
    if b.opset >= 18 or op == "ReduceSum":
        b.add(op, [v, b.ints(axes)], keepdims=keep)
    else:
        b.add(op, [v], axes=axes, keepdims=keep)


@row(1)
def position(b):
    v = b.take((I32, I64, U8, I8) if b.opset >= 13 else (I32,), exact=True)
    b.add(b.choice(("ArgMax", "ArgMin")), [v], axis=b.axis(v.rank), keepdims=b.choice((None, 0, 1)),
          select_last_index=b.choice((None, 0, 1)))


@row(0.7)
def running_sum(b):
    v = b.take((I32, I64), exact=True)
    b.add("CumSum", [v, b.scalar(b.axis(v.rank), I64)], exclusive=b.choice((None, 1)), reverse=b.choice((None, 1)))


@row(0.7)
def top(b):
    v = b.take((I32, I64), exact=True, where=lambda v: np.unique(b.spans[v.name].lo).size == v.size > 0)
    axis = b.axis(v.rank)
    b.add("TopK", [v, b.ints([b.int(1, v.shape[axis])])], outputs=2, axis=axis, largest=b.choice((None, 0, 1)))


@row(0.7)
def product(b):
    """MatMul of integers wraps around, too."""
    v = b.take((I32, I64, U32, U64), rank=(2, 3), exact=True)
    w = b.param(elements(b.data_rng, v.dtype, (v.shape[-1], b.size())))
    b.add("MatMul", [v, w])
