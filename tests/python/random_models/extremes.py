# SPDX-License-Identifier: Apache-2.0
"""Elements at the edge: NaN, infinities and both zeros, integers that wrap around, long rows. Results stay
outputs: nothing else is made of them."""

import numpy as np

from .builder import BOOL, F16, F32, F64, I8, I32, I64, U8, NoFit, broadcast, onnx_type, row

UNARY = ("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Log", "Reciprocal", "Floor", "Ceil", "Erf",
         "Softplus", "Softsign", "Elu", "LeakyRelu", "Sign", "Round", "IsNaN", "IsInf", "HardSigmoid", "Identity",
         "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Selu", "Celu",
         "ThresholdedRelu", "HardSwish", "Mish", "Swish", "Gelu", "Shrink", "Clip", "PRelu")
BOTH = {"Abs", "Neg", "Relu", "Floor", "Ceil", "Identity", "IsNaN", "Sqrt", "Exp", "Tanh"}
SINCE = {"Erf": 9, "Sign": 9, "Round": 11, "IsNaN": 9, "IsInf": 10, "Sinh": 9, "Cosh": 9, "Asinh": 9, "Acosh": 9,
         "Atanh": 9, "Celu": 12, "ThresholdedRelu": 10, "HardSwish": 14, "Mish": 18, "Swish": 24, "Gelu": 20,
         "Shrink": 9, "Clip": 11}


def odd(b, shape, dtype=F32):
    """Ordinary numbers with the odd ones among them."""
    x = b.random(dtype, shape)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40 if dtype != F16 else 1e-7,
                        np.finfo(dtype).max, -np.finfo(dtype).max], dtype)
    return np.where(b.data_rng.random(shape) < 0.3, special[b.data_rng.integers(0, special.size, shape)], x)


def hide(b, first):
    """Values made since `first` are not picked up by others: they still become outputs."""
    for v in b.values[first:]:
        v.mag = float("inf")
        v.exact = False


@row(1)
def odd_unary(b):
    op = b.choice([o for o in UNARY if SINCE.get(o, 7) <= b.opset])
    first = len(b.values)
    data = odd(b, b.dims(b.int(1, 3)) if not b.zero else (5,), b.choice((F32, F64)) if op in BOTH else F32)
    x = b.input(data.dtype, data.shape, data=data)
    inputs = [b.emit("Add", [x, b.scalar(0, x.dtype)], sources=[x]) if b.chance(0.3) else x]  # as part of a chain
    if op == "Clip":
        inputs += [b.scalar(-0.5, x.dtype), b.scalar(1.5, x.dtype)]
    elif op == "PRelu":
        inputs.append(b.param(np.array([0.25], x.dtype)))
    y = b.emit(op, inputs, BOOL if op.startswith("Is") else x.dtype, x.shape, [x],
               attributes={"lambd": 0.5, "bias": 0.25} if op == "Shrink" else {})
    if not op.startswith("Is") and b.chance(0.3):
        b.emit("Mul", [y, b.scalar(2, x.dtype)], sources=[y])
    hide(b, first)


@row(1)
def odd_binary(b):
    op = b.choice(["Add", "Sub", "Mul", "Div"] + (["Max", "Min", "Less", "Greater"] if b.opset >= 9 else []) +
                  (["Equal"] if b.opset >= 11 else []) + (["LessOrEqual"] if b.opset >= 12 else []))
    first = len(b.values)
    data = odd(b, (b.int(1, 4), b.int(1, 20)))
    x = b.input(F32, data.shape, data=data)
    other = odd(b, data.shape[b.int(0, 2):] if b.chance(0.5) else data.shape)
    y = b.param(other)
    logical = op in ("Less", "Greater", "Equal", "LessOrEqual")
    b.emit(op, [x, y], BOOL if logical else F32, broadcast(x.shape, y.shape), [x])
    hide(b, first)


@row(0.7)
def odd_rows(b):
    """Reductions and softmax over rows with an infinity or a NaN in some."""
    op = b.choice(("ReduceSum", "ReduceMean", "Softmax", "LogSoftmax", "ReduceL1", "ReduceMax", "ReduceMin"))
    first = len(b.values)
    data = b.random(F32, (b.int(1, 5), b.choice((1, 3, 16, 33))))
    data[b.data_rng.random(data.shape) < 0.1] = b.choice((np.nan, np.inf, -np.inf))
    if op in ("ReduceMax", "ReduceMin"):
        data[np.isnan(data)] = np.inf  # ONNX Runtime passes over NaN there
    if op in ("Softmax", "LogSoftmax"):
        data[:, 0] = 0.5  # a row of nothing but -inf is nobody's promise
        data[data == np.inf] = 1
    x = b.input(F32, data.shape, data=data)
    if op.endswith("oftmax"):
        b.emit(op, [x], attributes={"axis": 1})
    elif b.opset >= 18 or b.opset >= 13 and op == "ReduceSum":
        b.emit(op, [x, b.ints([1])], shape=(data.shape[0], 1), sources=[x])
    else:
        b.emit(op, [x], shape=(data.shape[0], 1), attributes={"axes": [1]})
    hide(b, first)


@row(1, since=14)
def wrapping(b):
    """Integers over their whole range."""
    dtype = b.choice((I8, U8, I32, I64))
    first = len(b.values)
    info = np.iinfo(dtype)
    shape = (b.int(1, 3), b.choice((1, 7, 40)))
    x = b.input(dtype, shape, data=b.data_rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    op = b.choice(("Add", "Sub", "Mul", "Max", "Min", "Cast", "ReduceMax", "ReduceMin", "Equal", "Less"))
    if op == "Cast":
        to = b.choice((I8, U8, I32, I64, F32, F64, BOOL))
        b.emit(op, [x], to, attributes={"to": int(onnx_type(to))})
    elif op.startswith("Reduce"):
        inputs = [x, b.ints([1])] if b.opset >= 18 else [x]
        b.emit(op, inputs, shape=(shape[0], 1), sources=[x], attributes={} if b.opset >= 18 else {"axes": [1]})
    else:
        y = b.param(b.data_rng.integers(info.min, info.max, shape, dtype, endpoint=True))
        b.emit(op, [x, y], BOOL if op in ("Equal", "Less") else dtype, sources=[x])
    hide(b, first)


@row(0.7)
def truncating(b):
    """Integer division and remainders of both signs."""
    dtype = b.choice((I32, I64))
    first = len(b.values)
    x = b.input(dtype, (4, 9), data=b.random(dtype, (4, 9), -100, 100))
    y = b.param(b.random(dtype, (9,), 1, 9) * np.where(b.random(BOOL, (9,)), 1, -1).astype(dtype))
    if b.opset >= 10 and b.chance(0.5):
        b.emit("Mod", [x, y], sources=[x], attributes={"fmod": b.choice((None, 0, 1))})
    else:
        b.emit("Div", [x, y], sources=[x])
    hide(b, first)


@row(0.4)
def long_rows(b):
    """More elements than a vector, a tile or a thread's share."""
    n = b.choice((255, 1000, 4097, 20000))
    first = len(b.values)
    x = b.input(F32, (b.int(1, 3), n))
    kind = b.int(0, 4)
    if kind == 0:
        b.emit("Softmax", [x], attributes={"axis": 1}, mag=1)
    elif kind == 1:
        b.emit("GlobalAveragePool", [b.emit("Reshape", [x, b.ints([0, 1, -1])], shape=(x.shape[0], 1, n), sources=[x])],
               shape=(x.shape[0], 1, 1))
    elif kind == 2:
        b.emit("MatMul", [x, b.param(b.random(F32, (n, 3)) / np.float32(np.sqrt(n)))], shape=(x.shape[0], 3))
    elif kind == 3 and b.opset >= 11:
        b.emit("CumSum", [x, b.scalar(1, I64)], sources=[x], mag=300)
    elif kind == 4:
        b.emit("ArgMax", [x], I64, (x.shape[0], 1), attributes={"axis": 1})
    else:
        raise NoFit
    hide(b, first)


@row(0.7)
def missing_window(b):
    """Pools whose window is larger than the padded input along some axis."""
    op = b.choice(("MaxPool", "AveragePool", "LpPool"))
    first = len(b.values)
    rank = b.int(1, 3)
    spatial = [b.int(1, 4) for _ in range(rank)]
    shape = (b.int(1, 2), b.choice((1, 3, 16, 17)), *spatial)
    x = b.input(F32, shape, data=b.random(F32, shape))  # of this size in every run: see below
    # A product keeps images blocked on both sides.
    image = b.emit("Conv", [x, b.param(b.random(F32, (16, x.shape[1], *[1] * rank)))],
                   shape=(x.shape[0], 16, *spatial), sources=[x]) if b.chance(0.4) else x
    ceil = b.opset >= 10 and op != "LpPool" and b.chance(0.4)
    strides = [b.int(1, 3) for _ in spatial]
    pads = [b.int(0, 1) for _ in range(2 * rank)]
    kernel, out = [], []
    for i, d in enumerate(spatial):
        # ONNX Runtime rounds a missing part of a stride towards zero: a whole one is missing, or rounding is asked for.
        missing = b.int(1 if ceil else strides[i], 2 * strides[i] - 1) if i == 0 or b.chance(0.5) else 0
        size = d + pads[i] + pads[i + rank]
        kernel.append(size + missing)
        out.append(int(missing < strides[i]))
    b.emit(op, [image], shape=(*image.shape[:2], *out), sources=[image], mag=9 * image.mag,
           attributes={"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": 1 if ceil else None})
    hide(b, first)
