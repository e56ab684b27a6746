# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on shapes as exporters leave it in models. Engines evaluate it while they load, in part,
with unknown sizes in it; here numpy follows along, so that the result can be used as a shape."""

import numpy as np

from .builder import ANY, BOOL, F32, F64, I32, I64, U8, NoFit, onnx_type, row


def follow(b, op, inputs, result, **attributes):
    """A node on integer tensors whose elements are known to be `result`."""
    result = np.asarray(result)
    value = b.emit(op, inputs, result.dtype, result.shape, exact=True, attributes=attributes,
                   mag=float(max(np.abs(result).max(initial=1), 1)) if result.dtype != BOOL else 1)
    value.data = result
    return value


def axes_in(b, op, x, axis, result):
    """Squeeze and Unsqueeze carry their axes in an attribute or an input."""
    if b.opset >= 13:
        return follow(b, op, [x, b.ints([axis])], result)
    return follow(b, op, [x], result, axes=[axis])


def step(b, v):
    """One more node on the vector v, which keeps at least one element."""
    d = v.data
    kind = b.int(0, 11)
    if kind == 0:
        i = b.int(-d.size, d.size - 1) if b.opset >= 11 else b.int(0, d.size - 1)
        single = follow(b, "Gather", [v, b.scalar(i, I64)], d[i], axis=0)
        return axes_in(b, "Unsqueeze", single, 0, single.data[None])
    if kind == 1:
        index = [b.int(0, d.size - 1) for _ in range(b.int(1, 3))]
        return follow(b, "Gather", [v, b.ints(index)], d[index], axis=0)
    if kind == 2:
        lo = b.int(0, d.size - 1)
        hi = b.int(lo + 1, d.size)
        if b.opset >= 10:
            return follow(b, "Slice", [v, b.ints([lo]), b.ints([hi]), b.ints([0])], d[lo:hi])
        return follow(b, "Slice", [v], d[lo:hi], starts=[lo], ends=[hi], axes=[0])
    if kind == 3:
        extra = b.ints([b.int(1, 3)])
        pair = [v, extra] if b.chance(0.5) else [extra, v]
        return follow(b, "Concat", pair, np.concatenate([p.data for p in pair]), axis=0)
    if kind == 4:
        return follow(b, "Concat", [v, v], np.concatenate([d, d]), axis=0)
    if kind in (5, 6):
        k = b.ints([b.int(1, 3)]) if b.chance(0.5) else b.scalar(b.int(1, 3), I64)
        op = b.choice(("Add", "Mul", "Sub", "Div"))
        r = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Div": np.floor_divide}[op](d, k.data)
        if r.min() < 0:  # ONNX rounds towards zero, numpy down
            raise NoFit
        return follow(b, op, [v, k], r)
    if kind == 7:
        if b.opset < 12:
            raise NoFit
        k = b.ints([b.int(1, 4)])
        op = b.choice(("Max", "Min"))
        return follow(b, op, [v, k], (np.maximum if op == "Max" else np.minimum)(d, k.data))
    if kind == 8:
        between = b.choice((I32, F32))
        other = follow(b, "Cast", [v], d.astype(between), to=int(onnx_type(between)))
        return follow(b, "Cast", [other], d, to=int(onnx_type(I64)))
    if kind == 9:
        axes = {"axes": [0]} if b.opset < 18 else {}
        inputs = [v] if b.opset < 18 else [v, b.ints([0])]
        return follow(b, "ReduceProd", inputs, d.prod(keepdims=True), keepdims=1, **axes)
    if kind == 10 and b.opset >= 9:
        fill = b.ints([b.int(1, 3)])
        wanted = b.ints([b.int(1, 4)])
        same = follow(b, "Equal", [v, wanted], d == wanted.data)
        return follow(b, "Where", [same, fill, v], np.where(same.data, fill.data, d))
    if kind == 11 and d.size == 1:
        single = axes_in(b, "Squeeze", v, 0, d[0])
        return axes_in(b, "Unsqueeze", single, 0, d)
    raise NoFit


@row(2)
def shape_program(b):
    """Shape, a few nodes on it, and a consumer of the numbers."""
    x = b.pick(ANY, rank=(1, 4))
    v = follow(b, "Shape", [x], np.array(x.shape, np.int64))
    for _ in range(b.int(1, 5)):
        v = step(b, v)
        if v.data.size > 6 or v.data.max() > 200:
            raise NoFit
    use(b, x, v)


def use(b, x, v):
    d = v.data
    dims, total = tuple(d.tolist()), int(d.prod())
    kind = b.int(0, 5)
    if not 0 < total <= 4000:
        return
    if kind == 0 and b.opset >= 9 and d.size <= 5:
        b.emit("ConstantOfShape", [v], F32, dims, [], exact=True, mag=1)
    elif kind == 1 and b.opset >= 8 and d.size <= 5:
        y = b.input(b.choice((F32, F64, I64, U8)), (1,))
        b.emit("Expand", [y, v], shape=dims, sources=[y], exact=True)
    elif kind == 2 and x.size % int(d[0]) == 0:
        first = step_first(b, v)
        target = follow(b, "Concat", [first, b.ints([-1])], np.array([d[0], -1]), axis=0)
        b.emit("Reshape", [x, target], shape=(int(d[0]), x.size // int(d[0])), sources=[x], exact=x.exact)
    elif kind == 3 and d.size <= 4 and total <= 300:
        y = b.pick((F32, I64), rank=d.size)
        if y.size * total > 20000:
            return
        b.emit("Tile", [y, v], shape=[p * q for p, q in zip(y.shape, d)], sources=[y], exact=y.exact)
    elif kind == 4 and b.opset >= 11:
        n = follow(b, "Gather", [v, b.scalar(0, I64)], d[0], axis=0)
        b.emit("Range", [b.scalar(0, I64), n, b.scalar(1, I64)], I64, (int(d[0]),), exact=True, mag=200)
    elif kind == 5 and b.opset >= 10:
        y = b.pick((F32, I64), rank=(1, 4))
        first = step_first(b, v)
        shape = (min(int(d[0]), y.shape[0]), *y.shape[1:])
        b.emit("Slice", [y, b.ints([0]), first, b.ints([0])], shape=shape, sources=[y], exact=y.exact)


def step_first(b, v):
    if b.opset >= 10:
        return follow(b, "Slice", [v, b.ints([0]), b.ints([1])], v.data[:1])
    return follow(b, "Gather", [v, b.ints([0])], v.data[:1], axis=0)
