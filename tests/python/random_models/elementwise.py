# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators, casts, reductions, softmax."""

import math

import numpy as np

from .builder import (ANY, BOOL, F16, F32, F64, FLOATS, I8, I16, I32, I64, NUMBERS, SIGNED, U8, U16, U32, U64, NoFit,
                      broadcast, onnx_type, row)

# name: (opset, largest |x| it is given, its result's magnitude from x's, attributes it may have)
SMOOTH = {
    "Relu": (7, 60, lambda m: m, {}),
    "LeakyRelu": (7, 60, lambda m: m, {"alpha": (0.01, 0.3)}),
    "Elu": (7, 60, lambda m: m, {"alpha": (0.5, 2.0)}),
    "Selu": (7, 60, lambda m: 1.1 * m + 2, {"alpha": (1.0, 1.7), "gamma": (0.9, 1.1)}),
    "Celu": (12, 60, lambda m: m + 1, {"alpha": (0.5, 2.0)}),
    "Sigmoid": (7, 60, lambda m: 1, {}),
    "Tanh": (7, 60, lambda m: 1, {}),
    "Softplus": (7, 60, lambda m: m + 1, {}),
    "Softsign": (7, 60, lambda m: 1, {}),
    "HardSigmoid": (7, 60, lambda m: 1, {"alpha": (0.1, 0.4), "beta": (0.3, 0.6)}),
    "HardSwish": (14, 30, lambda m: m, {}),
    "Mish": (18, 60, lambda m: m, {}),
    "Swish": (24, 60, lambda m: m, {"alpha": (0.5, 2.0)}),
    "Erf": (9, 60, lambda m: 1, {}),
    "Exp": (7, 3, math.exp, {}),
    "Abs": (7, 60, lambda m: m, {}),
    "Neg": (7, 60, lambda m: m, {}),
    "Sin": (7, 20, lambda m: 1, {}),
    "Cos": (7, 20, lambda m: 1, {}),
    "Atan": (7, 60, lambda m: 2, {}),
    "Sinh": (9, 3, math.exp, {}),
    "Cosh": (9, 3, math.exp, {}),
    "Asinh": (9, 60, lambda m: 5, {}),
}
EXACT_UNARY = {"Relu", "Abs", "Neg"}


@row(6)
def smooth_unary(b):
    op = b.choice([o for o, r in SMOOTH.items() if r[0] <= b.opset])
    _, limit, grow, attributes = SMOOTH[op]
    # Erf and HardSwish in double: nobody but the reference, and it computes them in single precision.
    dtypes = {"Celu": (F32,), "Erf": (F32, F16), "HardSwish": (F32, F16)}.get(op, FLOATS)
    x = b.pick(dtypes, mag=limit, zero=True)
    chosen = {k: b.rng.uniform(*r) for k, r in attributes.items() if b.chance(0.6)}
    b.emit(op, [x], attributes=chosen, mag=grow(x.mag), exact=x.exact and op in EXACT_UNARY,
           distinct=x.distinct and op == "Neg")


@row(1, since=20)
def gelu(b):
    x = b.pick((F32, F16), zero=True)  # in double the constants of the others have single precision
    b.emit("Gelu", [x], attributes={"approximate": b.choice((None, "none", "tanh"))})


@row(0.6)
def positive_unary(b):
    """Roots and logarithms of what is known to be positive."""
    x = b.pick(FLOATS, low=0.3)
    op = b.choice(("Sqrt", "Log", "Reciprocal"))
    b.emit(op, [x], mag=4)


@row(0.6)
def bounded_unary(b):
    x = b.emit("Tanh", [b.pick(FLOATS)], mag=1)
    half = b.emit("Mul", [x, b.scalar(0.9, x.dtype)], mag=0.9)
    ops = ["Asin", "Acos", "Tan"] + (["Atanh"] if b.opset >= 9 else [])
    b.emit(b.choice(ops), [half], mag=2)


@row(1)
def stepwise_unary(b):
    """What jumps somewhere takes only values every engine has the same bits of."""
    ops = ["Floor", "Ceil"]
    ops += ["Sign", "Shrink"] if b.opset >= 9 else []
    ops += ["ThresholdedRelu"] if b.opset >= 10 else []
    ops += ["Round"] if b.opset >= 11 else []
    op = b.choice(ops)
    # Shrink in double: ONNX Runtime goes through single precision.
    x = b.pick(FLOATS if op != "Shrink" else (F32, F16), exact=True, zero=True)
    attributes = {"Shrink": {"bias": b.choice((0.0, 0.25)), "lambd": 0.5},
                  "ThresholdedRelu": {"alpha": b.choice((None, 0.5))}}.get(op, {})
    b.emit(op, [x], attributes=attributes, exact=op not in ("Shrink",))


@row(0.5)
def integer_unary(b):
    op = b.choice(["Abs", "Neg"] + (["Sign"] if b.opset >= 9 else []) + (["Relu"] if b.opset >= 14 else []))
    x = b.pick((I64, I32, I8) if op != "Relu" else (I32, I8), exact=True, zero=True)
    b.emit(op, [x], exact=True)


@row(0.5)
def logic(b):
    x = b.pick((BOOL,), zero=True)
    if b.chance(0.3):
        b.emit("Not", [x], exact=True)
        return
    y = b.partner(x)
    b.emit(b.choice(("And", "Or", "Xor")), [x, y], shape=broadcast(x.shape, y.shape), exact=True)


@row(0.4, since=18)
def bitwise(b):
    x = b.pick((I64, I32, I8, U8), exact=True, zero=True)
    if b.chance(0.3):
        b.emit("BitwiseNot", [x], exact=True)
        return
    y = b.partner(x)
    b.emit("Bitwise" + b.choice(("And", "Or", "Xor")), [x, y], shape=broadcast(x.shape, y.shape), exact=True)


@row(0.3, since=11)
def bit_shift(b):
    x = b.pick((U8, U32, U64), exact=True)
    y = b.const(b.random(x.dtype, x.shape[b.int(0, x.rank):], 0, 7))
    b.emit("BitShift", [x, y], attributes={"direction": b.choice(("LEFT", "RIGHT"))}, exact=True)


@row(0.5, since=9)
def classify_float(b):
    x = b.pick((F32, F64), exact=True, zero=True)
    if b.opset >= 10 and b.chance(0.5):
        attributes = {"detect_positive": b.choice((None, 0, 1)), "detect_negative": b.choice((None, 0, 1))}
        odd = b.const(np.where(b.random(BOOL, x.shape), b.choice((np.inf, -np.inf, np.nan)), 1).astype(x.dtype),
                      keep=False)
        b.emit("IsInf", [odd if b.chance(0.7) else x], BOOL, x.shape, attributes=attributes, exact=True)
    else:
        b.emit("IsNaN", [x], BOOL, exact=True)


@row(5)
def arithmetic(b):
    op = b.choice(("Add", "Add", "Sub", "Mul", "Div"))
    dtypes = NUMBERS if b.opset >= 14 else SIGNED[:5]
    x = b.pick(dtypes, zero=True)
    if op == "Div":
        shape = x.shape[b.int(0, x.rank):] if b.chance(0.5) else x.shape
        if x.dtype.kind == "f":
            y = b.const(b.away_from_zero(x.dtype, shape))
        else:
            y = b.const(b.random(x.dtype, shape, 1, 5))
        mag = 2 * x.mag
    else:
        y = b.partner(x)
        mag = x.mag * y.mag if op == "Mul" else x.mag + y.mag
    pair = [x, y] if op == "Div" or b.chance(0.7) else [y, x]
    # Bits agree only for integers: a Mul before an Add may have been fused.
    b.emit(op, pair, shape=broadcast(x.shape, y.shape), mag=min(mag, 1e6) if x.dtype.kind != "f" else mag,
           exact=x.dtype.kind != "f" and x.exact and y.exact)


@row(0.6)
def power(b):
    x = b.pick((F32, F64), mag=6)
    kind = b.int(0, 2)
    if kind == 0:
        y = b.scalar(b.choice((2.0, 3.0, 1.0, 0.0)), x.dtype)
        b.emit("Pow", [x, y], mag=x.mag ** 3 + 1)
    elif kind == 1:
        x = b.pick((F32, F64), mag=6, low=0.3)
        shape = x.shape[b.int(0, x.rank):]
        b.emit("Pow", [x, b.param(b.random(x.dtype, shape))], mag=30)
    elif b.opset >= 12:
        y = b.scalar(b.choice((2, 3)), b.choice((I64, I32, F32)))
        b.emit("Pow", [x, y], mag=x.mag ** 3 + 1)
    else:
        raise NoFit


@row(1)
def extremes(b):
    op = b.choice(("Max", "Min", "Sum", "Mean"))
    dtypes = (F32, F64) if op in ("Sum", "Mean") or b.opset < 12 else (F32, F64, F16, I64, I32)
    x = b.pick(dtypes)
    items = [x]
    for _ in range(b.int(0, 2) if b.opset >= 8 else 0):
        y = b.partner(x)
        if broadcast(*[i.shape for i in items], y.shape) is not None:
            items.append(y)
    b.emit(op, items, shape=broadcast(*[i.shape for i in items]), mag=sum(i.mag for i in items),
           exact=all(i.exact for i in items) and op in ("Max", "Min"))


@row(0.7, since=10)
def modulo(b):
    fmod = b.chance(0.5)
    x = b.pick((F32, F64, I64, I32, I8, U8) if fmod else (I64, I32, I8, U8), exact=True)
    shape = x.shape[b.int(0, x.rank):]
    y = b.away_from_zero(x.dtype, shape) if x.dtype.kind == "f" else \
        b.random(x.dtype, shape, 1, 5) * (1 if x.dtype.kind == "u" else b.choice((1, -1)))
    b.emit("Mod", [x, b.param(np.asarray(y, x.dtype))], attributes={"fmod": int(fmod) if fmod else None}, exact=True)


@row(1)
def comparison(b):
    ops = ["Equal", "Less", "Greater"] + (["LessOrEqual", "GreaterOrEqual"] if b.opset >= 12 else [])
    op = b.choice(ops)
    if op == "Equal":
        dtypes = (I64, I32) if b.opset < 11 else (F32, F64, I64, I32) if b.opset < 13 else ANY
    else:
        dtypes = (F32, F64) if b.opset < 9 else (F32, F64, I64, I32) if b.opset < 13 else NUMBERS
    x = b.pick(dtypes, exact=True, zero=True)
    y = b.partner(x, exact=True)
    b.emit(op, [x, y], BOOL, broadcast(x.shape, y.shape), exact=True)


@row(1, since=9)
def where(b):
    x = b.pick((F32, F64, I64, I32, U8) if b.opset < 16 else NUMBERS, zero=True)
    y = b.partner(x)
    shape = broadcast(x.shape, y.shape)
    at = b.int(0, len(shape))
    condition = b.pick((BOOL,), where=lambda v: broadcast(v.shape, shape) == shape) if b.chance(0.3) else \
        b.input(BOOL, [d if b.chance(0.7) else 1 for d in shape[at:]])
    b.emit("Where", [condition, x, y], x.dtype, broadcast(shape, condition.shape), [x, y],
           exact=x.exact and y.exact)


@row(1.2)
def clip(b):
    integer = b.opset >= 12 and b.chance(0.25)
    x = b.pick((I64, I32, I8, U8) if integer else (F32, F64, F16) if b.opset >= 11 else (F32,), zero=True)
    low, high = (1, 5) if integer else (-1.0, 1.5)
    low, high = b.choice(((low, high), (None, high), (low, None), (None, None)))
    exact = x.exact
    if b.opset < 11:
        b.emit("Clip", [x], attributes={"min": low, "max": high}, exact=exact)
        return
    b.emit("Clip", [x, None if low is None else b.scalar(low, x.dtype), None if high is None else
                    b.scalar(high, x.dtype)], exact=exact, sources=[x])


@row(0.7)
def prelu(b):
    x = b.pick(FLOATS, rank=(1, 4))
    slope = list(x.shape[b.int(0, x.rank - 1):])
    slope = [d if b.chance(0.7) else 1 for d in slope]
    b.emit("PRelu", [x, b.weight_or_input(b.random(x.dtype, slope, 0.05, 0.5) if b.chance(0.8) else
                                          b.random(x.dtype, slope))], mag=3 * x.mag)


CASTS = (F32, F32, F64, I64, I32, U8, I8, BOOL, F16)


@row(1.5)
def cast(b):
    to = b.choice(CASTS)
    smooth = to.kind == "f"
    x = b.pick(ANY, exact=not smooth, mag=7 if not smooth else 60, zero=True)
    if to == U8 and x.dtype.kind != "u":
        x = b.emit("Abs", [x], exact=True) if x.dtype in (F32, F64, I64, I32) else x
        if x.dtype == I8:
            raise NoFit
    if to == F16 and x.mag > 8:
        raise NoFit
    if b.opset >= 15 and b.chance(0.2):
        b.emit("CastLike", [x, b.const(b.random(to, (1,)))], to, sources=[x], exact=x.exact and
               (x.dtype != F64 or not smooth))
    else:
        (name,) = b.node("Cast", [x], to=int(onnx_type(to)))
        b.result(name, to, x.shape, [x], exact=x.exact)


# ---- reductions

REDUCTIONS = {
    "ReduceSum": (F32, F64, I32, I64), "ReduceMean": (F32, F64), "ReduceMax": (F32, F64, I32, I64),
    "ReduceMin": (F32, I32, I64), "ReduceProd": (F32, I32, I64), "ReduceL1": (F32, I32), "ReduceL2": (F32,),
    "ReduceSumSquare": (F32, F64, I32), "ReduceLogSum": (F32,), "ReduceLogSumExp": (F32, F64),
}


@row(4)
def reduce(b):
    op = b.choice(list(REDUCTIONS))
    dtypes = REDUCTIONS[op]
    if op in ("ReduceMax", "ReduceMin") and b.opset >= 12:
        dtypes = (*dtypes, U8, I8)
    if op in ("ReduceMax", "ReduceMin") and b.opset >= 20:
        dtypes = (*dtypes, BOOL)
    if op in ("ReduceSum", "ReduceMean", "ReduceMax") and b.chance(0.1):
        dtypes = (F16,)
    x = b.pick(dtypes, mag={"ReduceProd": 4, "ReduceLogSumExp": 20}.get(op, 60), zero=op == "ReduceSum",
               low=0.3 if op == "ReduceLogSum" else None,
               where=(lambda v: v.size <= (64 if v.dtype.kind == "f" else 8)) if op == "ReduceProd" else None)
    rank = x.rank
    axes = sorted(b.rng.sample(range(rank), b.int(1, rank))) if rank else []
    if b.opset >= 11 and b.chance(0.4):
        axes = [a - rank if b.chance(0.6) else a for a in axes]
    keep = b.choice((0, 1, None))
    empty = not axes or b.chance(0.1)
    attributes, inputs = {"keepdims": keep}, [x]
    if b.opset >= (13 if op == "ReduceSum" else 18):
        if empty:
            noop = b.choice((None, 0, 1))
            attributes["noop_with_empty_axes"] = noop
            if b.chance(0.5):
                inputs.append(b.ints([]))
            axes = [] if noop else list(range(rank))
        else:
            inputs.append(b.ints(axes) if b.chance(0.8) else b.input(I64, (len(axes),), data=np.array(axes)))
    elif empty:
        axes = list(range(rank))
    else:
        attributes["axes"] = axes
    gone = {a % rank for a in axes} if rank else set()
    shape = [1 if i in gone else d for i, d in enumerate(x.shape) if keep != 0 or i not in gone]
    count = int(np.prod([x.shape[a] for a in gone], dtype=np.int64))
    mag = {"ReduceMax": x.mag, "ReduceMin": x.mag, "ReduceMean": x.mag, "ReduceProd": 1e3,
           "ReduceSumSquare": x.mag ** 2 * count, "ReduceLogSum": 5,
           "ReduceLogSumExp": x.mag + 5}.get(op, x.mag * count)
    b.emit(op, inputs, x.dtype, shape, [x], attributes=attributes, mag=mag,
           exact=x.exact and (x.dtype.kind != "f" or op in ("ReduceMax", "ReduceMin")))


@row(0.6, since=18)
def reduce_over_nothing(b):
    """No axes and noop_with_empty_axes: what a reduction does to each element is still done."""
    op = b.choice(("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceSum",
                   "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"))
    whole = op in ("ReduceL1", "ReduceSumSquare", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
    x = b.pick((F32, F64, I32, I64) if whole else (F32, F64), mag=20, low=0.3 if op == "ReduceLogSum" else None)
    b.emit(op, [x, b.ints([])] if b.chance(0.5) else [x], sources=[x],
           mag=x.mag ** 2 if op == "ReduceSumSquare" else x.mag,
           attributes={"keepdims": b.choice((0, 1, None)), "noop_with_empty_axes": 1})


@row(1.5)
def arg_extreme(b):
    x = b.pick((F32, I32) if b.opset < 13 else (F32, F64, I32, U8, I8), rank=(1, 5), exact=True)
    axis = b.axis(x.rank, 11)
    keep = b.choice((None, 0, 1))
    last = b.choice((None, 0, 1)) if b.opset >= 12 else None
    shape = list(x.shape)
    shape[axis] = 1
    if keep == 0:
        del shape[axis if axis >= 0 else axis + x.rank]
    b.emit(b.choice(("ArgMax", "ArgMin")), [x], I64, shape, exact=True, mag=float(max(x.shape)),
           attributes={"axis": axis if axis or b.chance(0.7) else None, "keepdims": keep, "select_last_index": last})


@row(1, since=11)
def cumulative(b):
    op = "CumProd" if b.opset >= 26 and b.chance(0.4) else "CumSum"
    x = b.pick((F32, F64, I32, I64), rank=(1, 4), zero=True, mag=2 if op == "CumProd" else 60,
               where=(lambda v: max(v.shape, default=0) < 8) if op == "CumProd" else None)
    axis = b.axis(x.rank)
    value = np.array(axis if b.chance(0.7) or op == "CumProd" else [axis], b.choice((I64, I32)))
    b.emit(op, [x, b.param(value)], sources=[x], mag=x.mag * max(x.shape, default=1) if op == "CumSum" else 2.0 ** 8,
           attributes={"exclusive": b.choice((None, 0, 1)), "reverse": b.choice((None, 0, 1))},
           exact=x.exact and x.dtype.kind != "f")


@row(2)
def softmax(b):
    op = b.choice(("Softmax", "Softmax", "LogSoftmax", "Hardmax"))
    x = b.pick((F32, F64) if op != "Softmax" else FLOATS, rank=(1 if b.opset >= 13 else 2, 5), exact=op == "Hardmax",
               mag=30)
    if op == "Hardmax" and x.dtype != F32:
        raise NoFit
    axis = b.axis(x.rank, 11) if b.chance(0.8) else None
    b.emit(op, [x], attributes={"axis": axis}, mag=1 if op != "LogSoftmax" else 2 * x.mag + 5,
           exact=op == "Hardmax")


@row(0.2)
def narrow_types(b):
    """16- and unsigned 32/64-bit integers: moved, added and cast."""
    dtype = b.choice((U16, I16, U32, U64))
    x = b.input(dtype, b.dims(b.int(1, 3)))
    y = b.emit("Transpose", [x], shape=x.shape[::-1], exact=True)
    if b.opset >= 14 and dtype in (U32, U64):
        y = b.emit("Add", [y, b.param(b.random(dtype, (1,)))], sources=[x], exact=True, mag=30)
    (name,) = b.node("Cast", [y], to=int(onnx_type(b.choice((F32, F32)))))
    b.result(name, F32, y.shape, [y], exact=True)
