# SPDX-License-Identifier: Apache-2.0
"""Elements of any type are moved, gathered, scattered and repeated."""

import numpy as np

from .grower import BOOL, F32, I8, I32, I64, LEVELS, U8, WHOLE, NoFit, elements, row

ANY = (*WHOLE, F32, BOOL)
# Engines differ in which movements they know of 4 bits.
SOME = (*WHOLE, F32, U8, U8, I8, I8)


@row(2)
def reshape(b):
    v = b.take(SOME, where=lambda v: v.size)
    d = list(v.shape)
    kind = b.int(0, 3)
    if kind == 0:
        target = [-1]
    elif kind == 1:
        i = b.int(0, len(d) - 1)
        target = [*d[:i], -1, *d[i + 1:]]
    elif kind == 2 and len(d) > 1:
        target = [0, -1]
    else:
        factors = [f for f in (2, 3, 4, 5, 7, 8) if v.size % f == 0]
        if not factors:
            raise NoFit
        f = b.choice(factors)
        target = [v.size // f, f]
    b.add("Reshape", [v, b.ints(target)])


@row(2)
def transpose(b):
    v = b.take(SOME, rank=(2, 5))
    perm = list(range(v.rank))
    b.rng.shuffle(perm)
    b.add("Transpose", [v], perm=perm)


@row(1)
def unsqueeze(b):
    v = b.take(SOME, rank=(0, 3))
    b.add("Unsqueeze", [v, b.ints([b.int(0, v.rank)])])


@row(1)
def squeeze(b):
    v = b.take(SOME, where=lambda v: 1 in v.shape)
    b.add("Squeeze", [v, b.ints([v.shape.index(1)])])


@row(1)
def flatten(b):
    v = b.take(SOME)
    b.add("Flatten", [v], axis=b.int(0, v.rank))


@row(2)
def slice_(b):
    v = b.take(SOME)
    axis = b.axis(v.rank)
    step = b.choice((1, 1, 2, 3, -1, -2))
    d = v.shape[axis]
    start, end = sorted((b.int(-d, d), b.int(-d, d)))
    if step < 0:
        start, end = end, b.choice((start, -1000))
    b.add("Slice", [v, b.ints([start]), b.ints([end]), b.ints([axis]), b.ints([step])])


@row(2)
def concat(b):
    v = b.take(SOME)
    axis = b.axis(v.rank)
    others = [w for w in b.values if w.dtype == v.dtype and w.rank == v.rank and
              all(p == q for i, (p, q) in enumerate(zip(v.shape, w.shape)) if i != axis % v.rank)]
    parts = [v, *(b.choice(others) for _ in range(b.int(1, 3)))]
    b.add("Concat", parts, axis=axis)


@row(1)
def split(b):
    v = b.take(SOME, where=lambda v: v.shape[0] > 1)
    first = b.int(0 if b.zero else 1, v.shape[0] - 1)
    b.add("Split", [v, b.ints([first, v.shape[0] - first])], outputs=2, axis=0)


@row(1.5)
def gather(b):
    v = b.take(SOME, where=lambda v: v.size)
    axis = b.axis(v.rank)
    d = v.shape[axis]
    index = b.data_rng.integers(-d, d, b.shape(b.int(0, 2))).astype(b.choice((np.int32, np.int64)))
    b.add("Gather", [v, b.weight(index)], axis=axis)


@row(1)
def gather_elements(b):
    v = b.take(SOME, where=lambda v: v.size)
    axis = b.axis(v.rank)
    shape = [d if i != axis % v.rank else b.int(1, 5) for i, d in enumerate(v.shape)]
    d = v.shape[axis]
    b.add("GatherElements", [v, b.weight(b.data_rng.integers(-d, d, shape))], axis=axis)


@row(1)
def gather_nd(b):
    v = b.take(SOME, where=lambda v: v.size)
    n = b.int(1, v.rank)
    index = np.stack([b.data_rng.integers(-d, d, (3,)) for d in v.shape[:n]], -1)
    b.add("GatherND", [v, b.weight(index)])


@row(1.2)
def scatter_elements(b):
    v = b.take(SOME, where=lambda v: v.size)
    axis = b.axis(v.rank)
    d = v.shape[axis]
    n = b.int(1, d)
    shape = [n if i == axis % v.rank else b.int(1, s) for i, s in enumerate(v.shape)]
    rows = [b.data_rng.permutation(d)[:n] for _ in range(int(np.prod(shape, dtype=int)) // n)]
    others = [s for i, s in enumerate(shape) if i != axis % v.rank]
    index = np.moveaxis(np.array(rows).reshape([*others, n]), -1, axis)
    reduction = b.choice((None, None, "add", "mul", *(("max", "min") if b.opset >= 18 else ()))) \
        if b.opset >= 16 and v.dtype in (I32, I64) and b.spans[v.name].exact else None
    updates = b.param(elements(b.data_rng, v.dtype, shape))
    b.add("ScatterElements", [v, b.weight(index), updates], axis=axis, reduction=reduction)


@row(1)
def scatter_nd(b):
    v = b.take(SOME, where=lambda v: v.size)
    n = b.int(1, v.rank)
    places = np.array(list(np.ndindex(*v.shape[:n])))
    index = b.data_rng.permutation(places)[:b.int(1, len(places))]
    updates = b.param(elements(b.data_rng, v.dtype, (len(index), *v.shape[n:])))
    b.add("ScatterND", [v, b.weight(index), updates])


@row(1)
def expand(b):
    v = b.take(SOME, rank=(0, 3))
    shape = [b.int(1, 3) if d == 1 else d for d in v.shape]
    b.add("Expand", [v, b.ints([b.int(1, 3), *shape] if b.chance(0.5) else shape)])


@row(0.7)
def tile(b):
    v = b.take(SOME, rank=(1, 3))
    b.add("Tile", [v, b.ints([b.int(1, 3) for _ in v.shape])])


@row(1)
def pad(b):
    v = b.take(SOME, where=lambda v: v.dtype != BOOL and 0 not in v.shape)
    mode = b.choice(("constant", "constant", "reflect", "edge"))
    top = [2 if mode != "reflect" else min(2, d - 1) for d in v.shape]
    pads = [b.int(0, t) for t in top] + [b.int(0, t) for t in top]
    fill = b.param(elements(b.data_rng, v.dtype, ())) if mode == "constant" and b.chance(0.6) else None
    b.add("Pad", [v, b.ints(pads), fill], mode=mode)


@row(0.7)
def depth_space(b):
    kind = b.choice((F32, U8, I8))
    n, c, h, w = b.int(1, 2), b.int(1, 3), b.int(1, 3), b.int(1, 4)
    if b.chance(0.5):
        b.add("SpaceToDepth", [b.input(kind, (n, c, 2 * h, 2 * w))], blocksize=2)
    else:
        b.add("DepthToSpace", [b.input(kind, (n, 4 * c, h, w))], blocksize=2, mode=b.choice((None, "DCR", "CRD")))


@row(0.5, since=21)
def narrow(b):
    """4 bits on their way from one node to the next."""
    v = b.take(LEVELS[4:])
    shape = list(v.shape)
    b.rng.shuffle(shape)
    b.add("Reshape", [v, b.ints(shape)])
