# SPDX-License-Identifier: Apache-2.0
"""Shapes, views, movement, indexing: nothing is computed, so every bit survives."""

import math

import numpy as np
from onnx import numpy_helper

from .builder import ANY, BOOL, F32, F64, FLOATS, I8, I32, I64, STRING, U8, NoFit, onnx_type, row

MOVED = (*ANY, STRING)


def kept(x):
    """What movement keeps of a value."""
    return {"exact": x.exact, "distinct": x.distinct, "positive": x.positive}


def indices(b, array):
    """Indices mostly as a constant, else as a graph input with these very elements."""
    array = np.asarray(array)
    return b.param(array) if b.chance(0.6) else b.input(array.dtype, array.shape, data=array)


def factor(b, count, rank):
    """A shape of that rank with that many elements."""
    shape = []
    for _ in range(rank - 1):
        d = b.choice([i for i in range(1, count + 1) if count % i == 0][:8]) if count else b.int(1, 3)
        shape.append(d)
        count //= d
    return [*shape, count]


@row(2.5)
def reshape(b):
    x = b.pick(MOVED, zero=True, tol=True)
    if x.size == 0:
        if b.opset < 14:
            raise NoFit
        shape = list(b.rng.sample(x.shape, x.rank))
        b.emit("Reshape", [x, b.ints(shape)], shape=shape, sources=[x], attributes={"allowzero": 1}, **kept(x))
        return
    shape = factor(b, x.size, b.int(0 if x.size == 1 else 1, 5)) if x.size != 1 or b.chance(0.7) else []
    asked = list(shape)
    if asked and b.chance(0.5):
        asked[b.rng.randrange(len(asked))] = -1
    for i in range(min(len(asked), x.rank)):
        if asked[i] == x.shape[i] and b.chance(0.4):
            asked[i] = 0
    b.emit("Reshape", [x, indices(b, np.array(asked, np.int64))], shape=shape, sources=[x], **kept(x))


@row(1)
def flatten(b):
    x = b.pick((F32, F64, I32, I64, U8, BOOL) if b.opset >= 9 else (F32, F64), rank=(1, 5), zero=True)
    axis = b.int(0, x.rank) if b.opset < 11 or b.chance(0.6) else b.int(-x.rank, -1)
    at = axis % x.rank if axis < 0 else axis
    shape = (math.prod(x.shape[:at]), math.prod(x.shape[at:]))
    b.emit("Flatten", [x], shape=shape, attributes={"axis": axis}, **kept(x))


@row(1.2)
def squeeze(b):
    x = b.pick(MOVED, where=lambda v: 1 in v.shape, zero=True, tol=True)
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    if b.chance(0.2):
        b.emit("Squeeze", [x], shape=[d for d in x.shape if d != 1], **kept(x))
        return
    axes = b.rng.sample(ones, b.int(1, len(ones)))
    shape = [d for i, d in enumerate(x.shape) if i not in axes]
    asked = [a - x.rank if b.opset >= 11 and b.chance(0.4) else a for a in axes]
    if b.opset >= 13:
        b.emit("Squeeze", [x, b.ints(asked)], shape=shape, sources=[x], **kept(x))
    else:
        b.emit("Squeeze", [x], shape=shape, attributes={"axes": asked}, **kept(x))


@row(1.2)
def unsqueeze(b):
    x = b.pick(MOVED, rank=(0, 4), zero=True, tol=True)
    rank = x.rank + b.int(1, 2)
    axes = b.rng.sample(range(rank), rank - x.rank)
    rest = iter(x.shape)
    shape = [1 if i in axes else next(rest) for i in range(rank)]
    asked = [a - rank if b.opset >= 11 and b.chance(0.4) else a for a in axes]
    if b.opset >= 13:
        b.emit("Unsqueeze", [x, b.ints(asked)], shape=shape, sources=[x], **kept(x))
    else:
        b.emit("Unsqueeze", [x], shape=shape, attributes={"axes": asked}, **kept(x))


@row(2)
def transpose(b):
    x = b.pick(MOVED, rank=(1, 5), zero=True, tol=True)
    perm = b.rng.sample(range(x.rank), x.rank) if b.chance(0.85) else None
    shape = x.shape[::-1] if perm is None else [x.shape[p] for p in perm]
    b.emit("Transpose", [x], shape=shape, attributes={"perm": perm}, **kept(x))


@row(1.2)
def no_operation(b):
    """Identity, Dropout, and casts to the type it has: passes take them away."""
    x = b.pick(ANY, zero=True, tol=True)
    kind = b.int(0, 2)
    if kind == 0:
        b.emit("Identity", [x], **kept(x))
    elif kind == 1:
        b.emit("Cast", [x], attributes={"to": int(onnx_type(x.dtype))}, **kept(x))
    else:
        if x.dtype not in FLOATS or x.tol:
            raise NoFit
        mask = b.chance(0.3) and b.opset >= 12  # before, what it holds was not said
        inputs = [x]
        if b.opset >= 12 and b.chance(0.5):
            inputs.append(b.scalar(0.3, F32))
        names = b.node("Dropout", inputs, 2 if mask else 1, **({"ratio": 0.3} if b.opset < 12 else {}))
        b.result(names[0], x.dtype, x.shape, [x], **kept(x))
        if mask:
            b.result(names[1], BOOL, x.shape, exact=True)


@row(1.5)
def concat(b):
    x = b.pick(MOVED, rank=(1, 4), zero=True)
    axis = b.axis(x.rank, 11)
    at = axis % x.rank
    items = [x]
    for _ in range(b.int(0, 3)):
        near = [v for v in b.values if not v.sequence and v.dtype == x.dtype and v.shape is not None and not v.tol and
                v.rank == x.rank and all(v.shape[i] == x.shape[i] for i in range(x.rank) if i != at) and
                v.mag <= 60 and v.size < 10000]
        if near and b.chance(0.6):
            items.append(b.choice(near))
        else:
            shape = list(x.shape)
            shape[at] = b.int(1, 4)
            items.append(b.const(b.random(x.dtype, shape)))
    b.rng.shuffle(items)
    shape = list(x.shape)
    shape[at] = sum(i.shape[at] for i in items)
    b.emit("Concat", items, shape=shape, attributes={"axis": axis}, exact=all(i.exact for i in items))


@row(1.5)
def split(b):
    x = b.pick((F32, F64, I32, I64) if b.opset < 13 else (*ANY,), rank=(1, 5), zero=True)
    axis = b.axis(x.rank, 11)
    size = x.shape[axis]
    count = b.int(1, 3)
    cuts = sorted(b.int(0, size) for _ in range(count - 1))
    sizes = [hi - lo for lo, hi in zip([0, *cuts], [*cuts, size])]
    attributes, inputs = {"axis": axis if axis or b.chance(0.6) else None}, [x]
    if b.chance(0.3) and size and (size % count == 0 or b.opset >= 18):
        part = -(-size // count)
        sizes = [min(part, size - i * part) for i in range(count)]
        if min(sizes) <= 0:
            raise NoFit
        if b.opset >= 18:
            attributes["num_outputs"] = count
    elif b.opset >= 13:
        inputs.append(indices(b, np.array(sizes, np.int64)))
    else:
        attributes["split"] = sizes
    names = b.node("Split", inputs, count, **attributes)
    for name, part in zip(names, sizes):
        shape = list(x.shape)
        shape[axis] = part
        b.result(name, x.dtype, shape, [x], **kept(x))


@row(2.5)
def slice_(b):
    x = b.pick((F32, F64, I64, I32, U8, BOOL) if b.opset >= 10 else (F32, F64, I64, I32), rank=(1, 5), zero=True,
               tol=True)
    axes = b.rng.sample(range(x.rank), b.int(1, x.rank))
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for a in axes:
        d = x.shape[a]
        step = b.choice((1, 1, 2, 3, -1, -1, -2)) if b.opset >= 10 else 1
        start = b.choice((b.int(-d, d), 0, -1, d - 1, 2**31 - 1 if step < 0 else 0))
        end = b.choice((b.int(-d - 1, d + 1), 2**63 - 1, 2**31 - 1, d) if step > 0 else
                       (b.int(-d - 1, d), -(2**63), -d - 1, -(2**31)))
        starts.append(start)
        ends.append(end)
        steps.append(step)
        shape[a] = length(start, end, step, d)
    if 0 in shape and not b.zero and b.chance(0.9):
        raise NoFit
    asked = [a - x.rank if b.opset >= 10 and b.chance(0.3) else a for a in axes]
    default = axes == list(range(len(axes))) and b.chance(0.5)
    if b.opset >= 10:
        dtype = I64 if max(map(abs, starts + ends)) > 2**31 - 1 or b.chance(0.7) else I32
        unit = all(s == 1 for s in steps) and b.chance(0.5)
        inputs = [x, indices(b, np.array(starts, dtype)), indices(b, np.array(ends, dtype)),
                  None if default else b.param(np.array(asked, dtype)),
                  None if unit else b.param(np.array(steps, dtype))]
        b.emit("Slice", inputs, shape=shape, sources=[x], **kept(x))
    else:
        b.emit("Slice", [x], shape=shape, attributes={"starts": starts, "ends": ends,
                                                      "axes": None if default else asked}, **kept(x))


def length(start, end, step, d):
    """How many elements ONNX's Slice takes from an axis of d."""
    start = start + d if start < 0 else start
    end = end + d if end < 0 else end
    if step > 0:
        start, end = min(max(start, 0), d), min(max(end, 0), d)
    else:
        start, end = min(max(start, 0), d - 1), min(max(end, -1), d - 1)
    return max(0, -((start - end) // step)) if step > 0 else max(0, -(-(start - end) // -step))


@row(1.5)
def gather(b):
    x = b.pick(MOVED, rank=(1, 4))
    axis = b.axis(x.rank)
    d = x.shape[axis]
    low = -d if b.opset >= 11 else 0
    index = b.random(b.choice((I64, I32)), b.dims(b.int(0, 2), 4) if not b.zero else (b.int(1, 3),), low, d - 1)
    at = axis % x.rank
    b.emit("Gather", [x, indices(b, index)], shape=[*x.shape[:at], *index.shape, *x.shape[at + 1:]], sources=[x],
           attributes={"axis": axis if axis or b.chance(0.5) else None}, exact=x.exact)


@row(1, since=11)
def gather_elements(b):
    x = b.pick((F32, F64, I64, I32, U8, BOOL), rank=(1, 4))
    axis = b.axis(x.rank)
    shape = [b.int(1, d) for d in x.shape]
    shape[axis] = b.int(1, 5)
    index = b.random(b.choice((I64, I32)), shape, -x.shape[axis], x.shape[axis] - 1)
    b.emit("GatherElements", [x, indices(b, index)], shape=shape, sources=[x], attributes={"axis": axis},
           exact=x.exact)


@row(1, since=11)
def gather_nd(b):
    batch = b.int(0, 1) if b.opset >= 12 else 0
    x = b.pick((F32, F64, I64, I32, U8, BOOL), rank=(1 + batch, 4))
    last = b.int(1, x.rank - batch)
    outer = b.dims(b.int(0, 2), 4) if not b.zero else (2,)
    shape = [*x.shape[:batch], *outer, last]
    index = np.stack([b.random(I64, shape[:-1], -d, d - 1) for d in x.shape[batch:batch + last]], -1)
    b.emit("GatherND", [x, indices(b, index)], shape=[*shape[:-1], *x.shape[batch + last:]], sources=[x],
           attributes={"batch_dims": batch if batch else None}, exact=x.exact)


def reduction(b, x):
    """A reduction for scatters, and whether indices may repeat under it."""
    if b.opset < 16 or x.dtype not in (F32, F64, I64, I32) or b.chance(0.5):
        return None
    return b.choice(("add", "mul") if b.opset < 18 else ("add", "mul", "max", "min"))


@row(1, since=9)
def scatter_elements(b):
    x = b.pick((F32, F64, I64, I32, U8), rank=(1, 4))
    axis = b.axis(x.rank)
    shape = [b.int(1, d) for d in x.shape]
    how = reduction(b, x)
    d = x.shape[axis]
    if how is None:  # no index twice: their order is nobody's promise
        perms = np.argsort(b.data_rng.random([shape[i] if i != axis % x.rank else d for i in range(x.rank)]), axis)
        index = np.take(perms, range(shape[axis]), axis).astype(I64)
    else:
        shape[axis] = b.int(1, 4)
        index = b.random(I64, shape, -d if b.opset >= 11 else 0, d - 1)
    updates = b.const(b.random(x.dtype, shape))
    b.emit("ScatterElements" if b.opset >= 11 else "Scatter", [x, indices(b, index.astype(b.choice((I64, I32)))),
                                                                updates], sources=[x, updates],
           attributes={"axis": axis, "reduction": how}, exact=x.exact and (how is None or x.dtype.kind != "f"),
           mag=x.mag * 3 if how != "mul" else x.mag * 81)


@row(1, since=11)
def scatter_nd(b):
    x = b.pick((F32, F64, I64, I32, U8), rank=(1, 4))
    last = b.int(1, x.rank)
    how = reduction(b, x)
    space = math.prod(x.shape[:last])
    n = b.int(1, min(space, 6))
    flat = b.data_rng.permutation(space)[:n] if how is None else b.data_rng.integers(0, space, n)
    index = np.stack(np.unravel_index(flat, x.shape[:last]), -1).astype(I64)
    updates = b.const(b.random(x.dtype, [n, *x.shape[last:]]))
    b.emit("ScatterND", [x, indices(b, index), updates], sources=[x, updates], attributes={"reduction": how},
           exact=x.exact and (how is None or x.dtype.kind != "f"), mag=x.mag * 3 if how != "mul" else x.mag * 729)


@row(2)
def pad(b):
    x = b.pick((F32, F64) if b.opset < 13 else (F32, F64, I64, I32, U8), rank=(1, 4), tol=True)
    modes = ["constant", "reflect", "edge"] + (["wrap"] if b.opset >= 19 else [])
    mode = b.choice(modes)
    rank = x.rank
    axes = b.rng.sample(range(rank), b.int(1, rank)) if b.opset >= 18 and b.chance(0.4) else list(range(rank))
    # A crop before a reflection means different things to different engines.
    low = -1 if mode == "constant" and b.chance(0.3) else 0
    begin, end = [0] * rank, [0] * rank
    for a in axes:
        d = x.shape[a]
        top = {"constant": 3, "edge": 3, "reflect": min(3, d - 1), "wrap": min(3, d)}[mode]
        begin[a], end[a] = b.int(low, top), b.int(low, top)
        if d + begin[a] + end[a] < 1:
            begin[a] = end[a] = 0
    shape = [d + p + q for d, p, q in zip(x.shape, begin, end)]
    pads = [begin[a] for a in axes] + [end[a] for a in axes]
    if b.opset < 11:
        value = b.choice((None, 0.5)) if mode == "constant" else None
        b.emit("Pad", [x], shape=shape, attributes={"pads": pads, "mode": mode, "value": value}, exact=x.exact)
        return
    value = b.scalar(2, x.dtype) if mode == "constant" and b.chance(0.4) else None
    part = len(axes) != rank or axes != sorted(axes)
    asked = b.ints([a - rank if b.chance(0.3) else a for a in axes]) if part else None
    b.emit("Pad", [x, indices(b, np.array(pads, np.int64)), value, asked], shape=shape, sources=[x],
           attributes={"mode": mode if mode != "constant" or b.chance(0.5) else None}, exact=x.exact)


@row(1)
def tile(b):
    x = b.pick((F32, F64, I64, I32, U8, BOOL), rank=(1, 4), zero=True)
    repeats = [b.choice((1, 1, 2, 3)) for _ in x.shape]
    b.emit("Tile", [x, indices(b, np.array(repeats, np.int64))], shape=[d * r for d, r in zip(x.shape, repeats)],
           sources=[x], exact=x.exact)


@row(1.2, since=8)
def expand(b):
    x = b.pick((F32, F64, I64, I32, U8, BOOL), rank=(0, 4), zero=True)
    shape = [b.int(1, 4) if d == 1 else d for d in x.shape]
    asked = [1 if b.chance(0.2) and d != 0 else d for d in shape]
    shape = [max(d, a) if 0 not in (d, a) else 0 for d, a in zip(x.shape, asked)]
    if x.rank < 4 and b.chance(0.4):
        lead = b.int(1, 3)
        asked, shape = [lead, *asked], [lead, *shape]
    if asked and b.chance(0.2) and len(asked) == x.rank:
        asked, shape = asked[1:], [x.shape[0], *shape[1:]]
    b.emit("Expand", [x, indices(b, np.array(asked, np.int64))], shape=shape, sources=[x], exact=x.exact)


@row(0.8)
def depth_and_space(b):
    s = b.int(2, 3)
    if b.chance(0.5):
        c = b.int(1, 3) * s * s
        x = b.pick((F32, F64) if b.opset >= 13 else (F32,), shape=(b.int(1, 2), c, b.int(1, 4), b.int(1, 4)))
        n, c, h, w = x.shape
        mode = b.choice((None, "DCR", "CRD")) if b.opset >= 11 else None
        b.emit("DepthToSpace", [x], shape=(n, c // (s * s), h * s, w * s), attributes={"blocksize": s, "mode": mode},
               **kept(x))
    else:
        x = b.pick((F32,), shape=(b.int(1, 2), b.int(1, 5), b.int(1, 3) * s, b.int(1, 3) * s))
        n, c, h, w = x.shape
        b.emit("SpaceToDepth", [x], shape=(n, c * s * s, h // s, w // s), attributes={"blocksize": s}, **kept(x))


@row(0.6, since=9)
def one_hot(b):
    depth = b.int(1, 6)
    index = b.random(b.choice((I64, I32, F32)), b.dims(b.int(1, 3)) if not b.zero else (3,), -depth, depth - 1) \
        if b.opset >= 11 else b.random(I64, (3, 2), 0, depth - 1)
    if index.dtype == F32:
        index = np.trunc(index)
    dtype = b.choice((F32, I64, I32))
    rank = index.ndim + 1
    axis = b.axis(rank) if b.chance(0.7) else None
    shape = list(index.shape)
    shape.insert(-1 % rank if axis is None else axis % rank, depth)
    x = b.input(index.dtype, index.shape, data=index)
    # Engines take different type triples; these every one has.
    if dtype == I32 or x.dtype == I32:
        dtype = F32 if x.dtype == I32 else I64
    b.emit("OneHot", [x, b.scalar(depth, b.choice((I64,)) if x.dtype != F32 else b.choice((I64, F32))),
                      b.param(np.array([0, 3], dtype))], dtype, shape, exact=True, attributes={"axis": axis})


@row(0.8, since=9)
def compress(b):
    x = b.pick((F32, F64, I64, I32, BOOL), rank=(1, 4))
    axis = b.axis(x.rank, 11) if b.chance(0.8) else None
    size = x.size if axis is None else x.shape[axis]
    mask = b.random(BOOL, (b.int(1, size),))
    taken = int(mask.sum())
    if not taken and b.chance(0.9):
        raise NoFit
    shape = [taken] if axis is None else [taken if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    b.emit("Compress", [x, b.input(BOOL, mask.shape, data=mask)], shape=shape, sources=[x],
           attributes={"axis": axis}, exact=x.exact)


@row(0.8, since=9)
def non_zero(b):
    if b.chance(0.3):
        b.emit("NonZero", [b.pick((BOOL, I64, I32, F32), exact=True, rank=(1, 4))], I64, None, exact=True, mag=8)
        return
    data = b.random(b.choice((BOOL, I64, F32)), b.dims(b.int(1, 3)), *b.choice(((None, None), (0, 1))))
    count = int(np.count_nonzero(data))
    if not count and not b.zero:
        raise NoFit
    x = b.input(data.dtype, data.shape, data=data)
    b.emit("NonZero", [x], I64, (x.rank, count), exact=True, mag=8)


@row(0.7, since=11)
def unique(b):
    known = b.chance(0.6)
    data = b.random(b.choice((F32, I64, I8)), b.dims(b.int(1, 3)) if not b.zero else (3,), -2, 2)
    x = b.input(data.dtype, data.shape, data=data) if known else b.pick((F32, I64, I8), rank=(1, 3), exact=True)
    axis = b.axis(x.rank) if b.chance(0.5) else None
    names = b.node("Unique", [x], b.int(1, 4), axis=axis, sorted=b.choice((None, 1, 0)))
    parts = np.unique(data, True, True, True, axis=axis) if known else [None] * 4
    shapes = [None if p is None else p.shape if i == 0 else (p.size,) for i, p in enumerate(parts)]
    for name, dtype, shape in zip(names, (x.dtype, I64, I64, I64), shapes):
        b.result(name, dtype, shape, exact=True, mag=8)


@row(1.2)
def after_unknown(b):
    """Operators that do not mind not knowing a shape."""
    x = b.pick((F32, I64, BOOL), fresh=False, unknown=True, where=lambda v: v.shape is None)
    kind = b.int(0, 4)
    if kind == 0:
        b.emit("Shape", [x], I64, None, exact=True)
    elif kind == 1:
        b.emit("Size", [x], I64, (), exact=True, mag=100)
    elif kind == 2 and x.dtype != BOOL:
        b.emit("ReduceSum" if x.dtype == I64 else "ReduceMean", [x], shape=(), attributes={"keepdims": 0},
               exact=x.dtype == I64)
    elif kind == 3:
        (name,) = b.node("Cast", [x], to=1)
        b.result(name, F32, None, [x], exact=x.exact)
    else:
        b.emit("Identity", [x], exact=x.exact)


@row(1)
def top_k(b):
    x = b.pick((F32, F64) if b.opset >= 11 else (F32,), rank=(1, 4), distinct=True)
    axis = b.axis(x.rank, 11)
    k = b.int(1, x.shape[axis])
    attributes, inputs = {"axis": axis}, [x]
    if b.opset >= 10:
        inputs.append(indices(b, np.array([k], np.int64)))
    else:
        attributes["k"] = k
    if b.opset >= 11:
        attributes["largest"] = b.choice((None, 0, 1))
    names = b.node("TopK", inputs, 2, **attributes)
    shape = list(x.shape)
    shape[axis] = k
    b.result(names[0], x.dtype, shape, [x], exact=True, distinct=True)
    b.result(names[1], I64, shape, exact=True, mag=8)


@row(0.5, since=10)
def reverse_sequence(b):
    x = b.pick((F32, I64, I32, U8), rank=(2, 4))
    time, batch = b.choice(((0, 1), (1, 0)))
    lens = b.random(I64, (x.shape[batch],), 1, x.shape[time])
    b.emit("ReverseSequence", [x, indices(b, lens)], sources=[x], attributes={"time_axis": time, "batch_axis": batch},
           **kept(x))


@row(0.6, since=14)
def trilu(b):
    x = b.pick((F32, F64, I64, BOOL), rank=(2, 4), zero=True)
    k = indices(b, np.array(b.int(-3, 3), np.int64)) if b.chance(0.6) else None
    b.emit("Trilu", [x, k], sources=[x], attributes={"upper": b.choice((None, 0, 1))}, exact=x.exact)


@row(0.4, since=18)
def center_crop_pad(b):
    x = b.pick((F32, I64), rank=(1, 4))
    axes = b.rng.sample(range(x.rank), b.int(1, x.rank))
    full = len(axes) == x.rank and axes == sorted(axes)
    sizes = [b.int(1, 7) for _ in axes]
    shape = list(x.shape)
    for a, s in zip(axes, sizes):
        shape[a] = s
    b.emit("CenterCropPad", [x, b.ints(sizes)], shape=shape, sources=[x],
           attributes={"axes": None if full else axes}, exact=x.exact)


@row(0.7)
def made_from_shape(b):
    x = b.pick(ANY, rank=(1, 4), zero=True)
    kind = b.int(0, 3)
    if kind == 0 and b.opset >= 9:
        s = b.emit("Shape", [x], I64, (x.rank,), exact=True, mag=8)
        dtype = b.choice((F32, I64, I32, BOOL))
        fill = numpy_helper.from_array(np.array([1], dtype)) if b.chance(0.7) else None
        b.emit("ConstantOfShape", [s], F32 if fill is None else dtype, x.shape, attributes={"value": fill},
               exact=True, mag=1)
    elif kind == 1 and b.opset >= 9:
        y = b.pick((F32, I64, I32), rank=2)
        b.emit("EyeLike", [y], attributes={"k": b.choice((None, 1, -1))}, exact=True, mag=1)
    elif kind == 2 and b.opset >= 11:
        dtype = b.choice((I64, I32, F32, F64))
        start, step = b.int(-3, 3), b.choice((1, 2, -1, 3))
        count = b.int(1, 6)
        b.emit("Range", [b.scalar(start, dtype), b.scalar(start + step * count, dtype), b.scalar(step, dtype)], dtype,
               (count,), exact=True, mag=30)
    else:
        attributes, dims = {}, list(x.shape)
        if b.opset >= 15 and b.chance(0.5):
            start, end = b.int(-x.rank, x.rank), b.choice((None, b.int(-x.rank, x.rank)))
            attributes = {"start": start, "end": end}
            dims = dims[start:end]
        b.emit("Shape", [x], I64, (len(dims),), exact=True, mag=8, attributes=attributes)
        if b.chance(0.2):
            b.emit("Size", [x], I64, (), exact=True)


EQUATIONS = ("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "ij->", "ij,ij->", "i,j->ij", "ii->i", "bhqd,bhkd->bhqk",
             "ij,jk", "...ij,...jk->...ik", "bi,i->b", "ijk,ilm,njm,nlk,abc->", "aij,bjk->abik")


@row(1, since=12)
def einsum(b):
    equation = b.choice(EQUATIONS)
    sizes = {letter: b.int(1, 4) for letter in equation if letter.isalpha()}
    lead = b.dims(b.int(0, 2), 3) if "..." in equation and not b.zero else ()
    left, _, right = equation.partition("->")
    dtype = b.choice((F32, F32, F64)) if b.main not in (I64, I32) else b.main
    items = []
    for term in left.split(","):
        shape = [*lead] if "..." in term else []
        shape += [sizes[letter] for letter in term if letter.isalpha()]
        items.append(b.pick((dtype,), shape=shape, mag=5))
    if "->" not in equation:
        right = "ik"
    shape = [*(lead if "..." in right else ()), *(sizes[letter] for letter in right if letter.isalpha())]
    b.emit("Einsum", items, shape=shape, attributes={"equation": equation}, mag=500,
           exact=dtype.kind != "f" and all(i.exact for i in items))
