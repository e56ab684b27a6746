# SPDX-License-Identifier: Apache-2.0
"""Chains of nodes as exporters write them, which the passes rewrite: what is fused must still compute the
same, and what looks alike but is not must be left alone."""

import numpy as np

from .builder import F16, F32, F64, I32, I64, NoFit, row
from .layers import batch_norm_node, conv_node, gemm_node, image, matmul_node


def activation(b, x):
    """One of the activations that are fused, or one that is not."""
    kind = b.choice(("Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Silu", "Tanh", "Elu"))
    if kind == "Clip":
        low, high = b.choice(((0, 6), (-1, 1), (0, None), (None, 2)))
        if b.opset < 11:
            return b.emit("Clip", [x], attributes={"min": None if low is None else float(low),
                                                    "max": None if high is None else float(high)})
        return b.emit("Clip", [x, None if low is None else b.scalar(low, x.dtype),
                               None if high is None else b.scalar(high, x.dtype)], sources=[x])
    if kind == "Silu":
        gate = b.emit("Sigmoid", [x], mag=1)
        return b.emit("Mul", [x, gate] if b.chance(0.5) else [gate, x], mag=x.mag)
    if kind == "HardSwish":
        if b.opset >= 14 and x.dtype != F64 and b.chance(0.5):
            return b.emit("HardSwish", [x])
        gate = b.emit("HardSigmoid", [x], attributes={"alpha": 1 / 6, "beta": 0.5}, mag=1)
        return b.emit("Mul", [x, gate], mag=x.mag)
    attributes = {"LeakyRelu": {"alpha": b.choice((None, 0.1))},
                  "HardSigmoid": {"alpha": b.choice((None, 1 / 6)), "beta": b.choice((None, 0.5))}}.get(kind, {})
    return b.emit(kind, [x], attributes=attributes, mag=x.mag if kind in ("Relu", "LeakyRelu", "Elu") else 1)


def per_channel(b, y, op):
    """y op a constant that is one number per channel, or nearly looks like it."""
    c = y.shape[1]
    ones = [1] * (y.rank - 2)
    nearly = (*[1] * (y.rank - 1), y.shape[-1])
    shape = b.choice(((c, *ones), (1, c, *ones), (1, c, *ones), (), (1,), (1, 1, *ones), nearly))
    k = b.param(b.random(y.dtype, shape, 0.5, 1.5))
    pair = [y, k] if b.chance(0.7) or op in ("Sub", "Div") else [k, y]
    return b.emit(op, pair, y.dtype, y.shape, [y], mag=2 * y.mag + 2)


@row(6)
def conv_block(b):
    """Conv, then some of: scale, shift, normalisation, a residual, an activation."""
    x = image(b, dtypes=(F32, F32, F32, F64) if b.chance(0.1) else (F32,), mag=15)
    y = conv_node(b, x)
    for _ in range(b.int(0, 3)):
        if b.chance(0.5):
            y = batch_norm_node(b, y)
        else:
            y = per_channel(b, y, b.choice(("Mul", "Add", "Add", "Sub", "Div")))
        if b.chance(0.1):
            y = b.emit("Identity", [y])
    if b.chance(0.35):
        y = residual(b, y)
    if b.chance(0.7):
        y = activation(b, y)
        if b.chance(0.15):
            activation(b, y)


def residual(b, y):
    """y plus something of its shape, or of a shape that broadcasts."""
    near = [v for v in b.values if not v.sequence and v.dtype == y.dtype and v.shape == y.shape and v.mag <= 60 and
            not v.tol]
    if near and b.chance(0.7):
        z = b.choice(near)
    elif b.chance(0.7):
        z = b.input(y.dtype, y.shape)
    else:
        z = b.partner(y, both_ways=False)
        if np.broadcast_shapes(z.shape, y.shape) != y.shape:
            raise NoFit
    return b.emit("Add", [y, z] if b.chance(0.6) else [z, y], y.dtype, y.shape, [y, z], mag=y.mag + z.mag)


@row(2.5)
def two_branches(b):
    """A block with a shortcut, as in residual networks: convolutions meet in an Add or a Concat."""
    x = image(b, 2, mag=15, least=3)
    c = x.shape[1]
    m = b.choice((c, 8, 16, 5, 24))
    left = activation(b, same_size_conv(b, x, m))
    right = x if m == c and b.chance(0.4) else same_size_conv(b, x, m)
    if b.chance(0.7):
        y = b.emit("Add", [left, right], x.dtype, left.shape, [left, right], mag=left.mag + right.mag)
    else:
        shape = list(left.shape)
        shape[1] *= 2
        y = b.emit("Concat", [left, right], shape=shape, attributes={"axis": 1})
    if b.chance(0.6):
        y = activation(b, y)
    if b.chance(0.4):
        gate = b.emit("GlobalAveragePool", [y], shape=(*y.shape[:2], 1, 1))
        gate = b.emit("Sigmoid", [same_size_conv(b, gate, y.shape[1])], mag=1)
        y = b.emit("Mul", [y, gate] if b.chance(0.6) else [gate, y], y.dtype, y.shape, [y])
    if b.chance(0.5):
        same_size_conv(b, y, b.choice((1, 3, 8, 16)))


def same_size_conv(b, x, m):
    c = x.shape[1]
    k = b.choice((1, 3)) if min(x.shape[2:]) > 1 else 1
    group = c if c == m and c > 1 and b.chance(0.4) else 1
    w = b.param((b.random(x.dtype, (m, c // group, k, k)) / np.sqrt(c // group * k * k)).astype(x.dtype))
    bias = b.param(b.random(x.dtype, (m,))) if b.chance(0.5) else None
    return b.emit("Conv", [x, w, bias], shape=(x.shape[0], m, *x.shape[2:]), sources=[x], mag=x.mag + 3,
                  attributes={"pads": [k // 2] * 4 if k > 1 else None, "group": group if group > 1 else None})


@row(2)
def conv_tail(b):
    """Convolution, pooling, flattening, dense layer: where blocked layouts end."""
    y = conv_node(b, image(b, 2, mag=15))
    if b.chance(0.5):
        y = activation(b, y)
    kind = b.int(0, 4)
    if kind == 0:
        y = b.emit("GlobalAveragePool", [y], shape=(*y.shape[:2], 1, 1))
    elif kind == 1 and min(y.shape[2:]) > 1:
        h, w = y.shape[2:]
        y = b.emit(b.choice(("MaxPool", "AveragePool")), [y], shape=(*y.shape[:2], h // 2, w // 2),
                   attributes={"kernel_shape": [2, 2], "strides": [2, 2]})
    elif kind == 2:
        y = b.emit("Transpose", [y], shape=[y.shape[p] for p in (0, 2, 3, 1)], attributes={"perm": [0, 2, 3, 1]})
    elif kind == 3:
        axes = [2, 3]
        if b.opset < 18:
            y = b.emit("ReduceMean", [y], shape=(*y.shape[:2], 1, 1), attributes={"axes": axes, "keepdims": 1})
        else:
            y = b.emit("ReduceMean", [y, b.ints(axes)], shape=(*y.shape[:2], 1, 1), sources=[y],
                       attributes={"keepdims": 1})
    y = b.emit("Flatten", [y], shape=(y.shape[0], y.size // y.shape[0]))
    if y.shape[1] < 600:
        y = gemm_node(b, y)
        if b.chance(0.5):
            activation(b, y)


@row(4)
def dense_block(b):
    """MatMul or Gemm, a bias, a residual, an activation."""
    dtypes = (F32, F32, F32, F64, F16)
    if b.chance(0.5):
        y = matmul_node(b, b.pick(dtypes, rank=(2, 4), mag=15))
        if y.rank:
            shape = b.choice(((y.shape[-1],), (1, y.shape[-1]), (), y.shape, (*y.shape[:-1], 1)))
            k = b.param(b.random(y.dtype, shape))
            y = b.emit("Add", [y, k] if b.chance(0.6) else [k, y], y.dtype, np.broadcast_shapes(shape, y.shape), [y],
                       mag=y.mag + 3)
    else:
        y = gemm_node(b, b.pick(dtypes, rank=2, mag=15))
    if b.chance(0.3) and y.rank:
        y = residual(b, y)
    if y.dtype != F16 or b.opset >= 14:
        activation(b, y) if b.chance(0.8) else gelu_parts(b, y)


def gelu_parts(b, x):
    """GELU as exporters spell it: with erf or tanh, halved first or last."""
    t = x.dtype
    if b.opset >= 9 and t != F64 and b.chance(0.6):
        root = b.scalar(np.sqrt(2.0) if b.chance(0.9) else 1.3, t)
        inner = b.emit("Div", [x, root], sources=[x]) if b.chance(0.6) else \
            b.emit("Mul", [x, b.scalar(np.sqrt(0.5), t)], sources=[x])
        inner = b.emit("Erf", [inner], mag=1)
    else:
        three = b.scalar(3.0, t)
        cube = b.emit("Pow", [x, three], sources=[x], mag=x.mag ** 3) if b.chance(0.6) else \
            b.emit("Mul", [b.emit("Mul", [x, x], mag=x.mag ** 2), x], mag=x.mag ** 3)
        part = b.emit("Mul", [cube, b.scalar(0.044715, t)], sources=[cube], mag=x.mag ** 3)
        total = b.emit("Add", [x, part], mag=x.mag ** 3)
        inner = b.emit("Tanh", [b.emit("Mul", [total, b.scalar(np.sqrt(2 / np.pi), t)], sources=[total])], mag=1)
    one, half = b.scalar(1.0, t), b.scalar(0.5, t)
    plus = b.emit("Add", [inner, one] if b.chance(0.6) else [one, inner], t, x.shape, [inner], mag=2)
    way = b.int(0, 2)
    if way == 0:
        y = b.emit("Mul", [b.emit("Mul", [x, plus], mag=2 * x.mag), half], sources=[x])
    elif way == 1:
        y = b.emit("Mul", [x, b.emit("Mul", [plus, half], sources=[plus], mag=1)])
    else:
        y = b.emit("Mul", [b.emit("Mul", [x, half], sources=[x]), plus], mag=x.mag)
    y.mag = x.mag
    return y


@row(1.5)
def gelu_chain(b):
    gelu_parts(b, b.pick((F32, F32, F64), rank=(0, 4), mag=6))


@row(1.5)
def layer_norm_chain(b):
    """Layer normalisation from its parts, over the last axis (or, sometimes, another)."""
    x = b.pick((F32, F32, F64), rank=(1, 4), mag=8, where=lambda v: v.shape[-1] > 1)
    axes = [-1] if b.opset >= 11 and b.chance(0.7) else [x.rank - 1] if b.chance(0.8) else [0]
    shape = list(x.shape)
    shape[axes[0]] = 1

    def mean(v):
        if b.opset >= 18:
            return b.emit("ReduceMean", [v, b.ints(axes)], shape=shape, sources=[v], attributes={"keepdims": 1})
        return b.emit("ReduceMean", [v], shape=shape, attributes={"axes": axes, "keepdims": 1})

    centred = b.emit("Sub", [x, mean(x)], x.dtype, x.shape, [x], mag=2 * x.mag)
    square = b.emit("Pow", [centred, b.scalar(2, x.dtype)], sources=[x], mag=x.mag ** 2) if b.chance(0.6) else \
        b.emit("Mul", [centred, centred], mag=x.mag ** 2)
    variance = b.emit("Add", [mean(square), b.scalar(1e-2, x.dtype)], sources=[square])
    deviation = b.emit("Sqrt", [variance])
    if b.chance(0.7):
        y = b.emit("Div", [centred, deviation], x.dtype, x.shape, [x], mag=10)
    else:
        y = b.emit("Mul", [centred, b.emit("Reciprocal", [deviation], mag=10)], x.dtype, x.shape, [x], mag=10)
    for op in ("Mul", "Add")[:b.int(0, 2)]:
        k = b.param(b.random(x.dtype, (x.shape[-1],)))
        y = b.emit(op, [y, k] if b.chance(0.7) else [k, y], x.dtype, x.shape, [y], mag=12)


@row(1.5)
def transpose_pair(b):
    """Two transposes in a row, perhaps with something elementwise between them."""
    x = b.pick((F32, F64, I64), rank=(2, 5), mag=30)
    perm = b.rng.sample(range(x.rank), x.rank)
    y = b.emit("Transpose", [x], shape=[x.shape[p] for p in perm], attributes={"perm": perm}, exact=x.exact)
    if b.chance(0.4):
        y = b.emit("Neg", [y], exact=y.exact)
    back = [perm.index(i) for i in range(x.rank)] if b.chance(0.6) else b.rng.sample(range(x.rank), x.rank)
    b.emit("Transpose", [y], shape=[y.shape[p] for p in back], attributes={"perm": back}, exact=x.exact)


@row(2)
def shape_arithmetic(b):
    """Reshape to a shape computed from Shape: Gather, Unsqueeze, Mul, Concat, as exporters write it."""
    x = b.pick((F32, F64, I64, I64), rank=(2, 4))
    s = b.emit("Shape", [x], I64, (x.rank,), exact=True, mag=8)
    i = b.int(0, x.rank - 1)
    single = b.chance(0.5)
    first = b.emit("Gather", [s, b.scalar(i, I64) if single else b.ints([i])], I64, () if single else (1,), [s],
                   exact=True, attributes={"axis": 0})
    if single and b.opset >= 13:
        first = b.emit("Unsqueeze", [first, b.ints([0])], I64, (1,), [s], exact=True)
    elif single:
        first = b.emit("Unsqueeze", [first], I64, (1,), [s], exact=True, attributes={"axes": [0]})
    if b.chance(0.3):
        first = b.emit("Mul", [first, b.ints([1])], I64, (1,), [s], exact=True)
    last = b.chance(0.4)
    tail = b.ints([-1])
    target = b.emit("Concat", [tail, first] if last else [first, tail], I64, (2,), [s], exact=True,
                    attributes={"axis": 0})
    if b.chance(0.2):
        small = b.emit("Cast", [target], I32, exact=True, attributes={"to": 6})
        target = b.emit("Cast", [small], I64, exact=True, attributes={"to": 7})
    n, rest = x.shape[i], x.size // x.shape[i]
    b.emit("Reshape", [x, target], shape=(rest, n) if last else (n, rest), sources=[x], exact=x.exact)


@row(1)
def constant_chain(b):
    """Nodes on constants only: folded at load, so the folded value must be what a run would give."""
    x = b.param(b.random(b.choice((F32, F64, I64)), b.dims(b.int(1, 3)) if not b.zero else (2, 3)))
    y = b.emit("Transpose", [x], shape=x.shape[::-1], exact=True)
    if x.dtype.kind == "f":
        y = b.emit(b.choice(("Sigmoid", "Neg", "Tanh", "Abs")), [y], mag=3)
    y = b.emit("Mul", [y, b.scalar(2, x.dtype)], sources=[y], mag=6)
    live = b.pick((x.dtype,), shape=y.shape, mag=30)
    b.emit("Add", [live, y], mag=live.mag + 6)


@row(1.2)
def attention_chain(b):
    """softmax(q kT / sqrt(d) + mask) v from MatMul, Transpose and Softmax."""
    n, h, s, d = b.int(1, 2), b.int(1, 3), b.int(1, 6), b.choice((2, 4, 8))
    q, k, v = (b.pick((F32,), shape=(n, h, s, d), mag=6) for _ in range(3))
    kt = b.emit("Transpose", [k], shape=(n, h, d, s), attributes={"perm": [0, 1, 3, 2]})
    scores = b.emit("MatMul", [q, kt], shape=(n, h, s, s), mag=20)
    scale = b.scalar(np.sqrt(d), F32)
    scores = b.emit("Div", [scores, scale], sources=[scores], mag=20) if b.chance(0.5) else \
        b.emit("Mul", [scores, b.scalar(1 / np.sqrt(d), F32)], sources=[scores], mag=20)
    if b.chance(0.5):
        scores = b.emit("Add", [scores, b.param(b.random(F32, b.choice(((s, s), (n, 1, 1, s), (1, 1, s, s)))))],
                        sources=[scores], mag=23)
    p = b.emit("Softmax", [scores], attributes={"axis": 3}, mag=1)
    y = b.emit("MatMul", [p, v], shape=(n, h, s, d), mag=v.mag)
    if b.chance(0.6):
        t = b.emit("Transpose", [y], shape=(n, s, h, d), attributes={"perm": [0, 2, 1, 3]})
        b.emit("Reshape", [t, b.ints([0, 0, -1])], shape=(n, s, h * d), sources=[t])
