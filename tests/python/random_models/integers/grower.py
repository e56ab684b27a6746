# SPDX-License-Identifier: Apache-2.0
"""A builder that knows the bounds of every value (tests/python/bounds): shapes follow from the operators, scales
suit what they quantise, and nothing is made of a value of which little is known.

A generator takes values and adds nodes; where a node does not fit, evaluating it fails, and another generator has its
turn."""

import os

import numpy as np
from onnx import numpy_helper

import bounds
from bounds.spans import BOOL, F16, F32, FLOATS, I4, I8, I16, I32, I64, U4, U8, U16, U32, U64, limits, numbers

from ..builder import Builder, NoFit, Value

BYTES = (U8, I8)
LEVELS = (U8, I8, U16, I16, U4, I4)  # what QuantizeLinear writes
WHOLE = (I8, I16, I32, I64, U8, U16, U32, U64)
LARGEST = 60_000  # elements of a value
MS = "com.microsoft"

ROWS = []


def row(weight=1.0, since=13, until=99):
    def register(function):
        ROWS.append((function, weight, since, until, True))
        return function

    return register


class Grower(Builder):
    def __init__(self, seed, opset):
        super().__init__(seed, opset)
        self.spans = {}
        self.quantised_with = {}  # name of a quantised value -> scale, zero point, attributes
        self.odd = False  # are there NaN and infinities?
        self.generators = set()  # names of those that gave nodes

    # ---- leaves

    def _leaf(self, name, data, low=None):
        self.spans[name] = bounds.exact(data)
        value = Value(name, data.dtype, data.shape)
        self.values.append(value)
        return value

    def const(self, array, name=None, keep=True):
        array = np.asarray(array)
        if array.dtype not in (U4, I4):
            return super().const(array, name, keep)
        name = name or self.name("c")
        self.initializers.append(numpy_helper.from_array(array, name))
        value = self._leaf(name, array)
        if not keep:
            self.values.pop()
        return value

    def input(self, dtype, shape, make=None):
        """A graph input; make(rng, shape) gives elements, of every run."""
        make = make or (lambda rng, s: elements(rng, dtype, s))
        data = np.asarray(make(self.data_rng, tuple(shape))).astype(dtype, copy=False)
        if len(self.inputs) >= 6:
            return self.const(data)
        name = self.name("x")
        self.inputs.append((name, data))
        self.makers[name] = make
        return self._leaf(name, data)

    def fixed_input(self, array):
        """A graph input that is the same in every run."""
        array = np.asarray(array)
        name = self.name("x")
        self.inputs.append((name, array))
        self.makers[name] = None
        return self._leaf(name, array)

    def size(self, *more):
        return self.choice((1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, *more))

    def shape(self, rank):
        d = [self.choice((1, 2, 3, 4, 5, 7, 8)) for _ in range(rank)]
        if rank and self.chance(0.6):
            d[-1] = self.size()
        if self.large and rank:
            d[self.rng.randrange(rank)] = self.choice((64, 65, 130, 257))
        if self.zero and rank and self.chance(0.3):
            d[self.rng.randrange(rank)] = 0
        return tuple(d)

    # ---- picking

    def take(self, dtypes, rank=(1, 4), exact=False, where=None, make=None, fresh=0.15):
        """A value that fits, or a new input."""
        low, high = (rank, rank) if isinstance(rank, int) else rank
        found = []
        if not self.chance(fresh):
            for v in self.values:
                span = self.spans[v.name]
                if v.dtype in dtypes and low <= v.rank <= high and v.size <= LARGEST // 4 and \
                        (span.exact or not exact) and span.certain > 0.7 and (where is None or where(v)):
                    found.append(v)
        if found:
            # Recent values for chains, any for several readers of one.
            return found[-1] if self.chance(0.4) else self.choice(found)
        for _ in range(6):
            v = self.input(self.choice(list(dtypes)), self.shape(self.int(low, high)), make)
            if where is None or where(v):
                return v
        raise NoFit

    # ---- nodes

    def add(self, op, inputs, outputs=1, domain="", **attributes):
        """A node; its outputs' types, shapes and bounds are computed."""
        names = self.node(op, inputs, outputs, domain, **attributes)
        node = self.nodes[-1]
        try:
            made = bounds.evaluate(node, [self.spans[n] if n else None for n in node.input], self.opsets)
        except Exception as e:  # noqa: BLE001  (the reference raises whatever it likes)
            if os.environ.get("SHOW_NOFIT"):
                print(f"{op}: {type(e).__name__}: {e}".splitlines()[0])
            raise NoFit from e
        values = []
        for name, span in zip(names, made, strict=False):
            self.spans[name] = span
            value = Value(name, span.dtype, span.shape)
            if value.size > LARGEST:
                raise NoFit
            self.values.append(value)
            values.append(value)
        return values[0] if outputs == 1 else values

    def grow(self, rows, count):
        traced = [(self.counted(r[0]), *r[1:]) for r in rows]
        super().grow(traced, count)

    def counted(self, function):
        def turn(b):
            function(b)
            b.generators.add(function.__name__)

        return turn

    def extent(self, value):
        """The largest finite size of an element, at least a little."""
        lo, hi = numbers(self.spans[value.name])
        sizes = np.concatenate([np.abs(lo).ravel(), np.abs(hi).ravel()])
        sizes = sizes[np.isfinite(sizes)]
        return min(max(float(sizes.max(initial=0)), 1e-30), 1e30)

    # ---- scales and zero points

    def scale_number(self, about):
        """A scale near `about`, now and then anywhere. Powers of two make ties."""
        if self.chance(0.06):
            return self.choice((1e-30, 1e30, 1e-40, 1.2e-38, 1.0, 0.5, 1e-8, 1e36))
        if self.chance(0.2):
            return float(2.0 ** np.floor(np.log2(about)))
        return about * self.rng.uniform(0.5, 1.5)

    def scale(self, about, shape=(), dtype=F32):
        top = float(np.finfo(dtype).max) / 4 if dtype == F16 else 1e36
        items = [self.scale_number(about) for _ in range(int(np.prod(shape, dtype=int)))] if self.chance(0.15) else \
            np.full(int(np.prod(shape, dtype=int)), self.scale_number(about)) * self.data_rng.uniform(
                0.5 if shape else 1, 1.5 if shape else 1, int(np.prod(shape, dtype=int)))
        floor = 6e-8 if dtype == F16 else 1e-44
        made = np.clip(np.asarray(items, np.float64), floor, top).astype(dtype).reshape(shape)
        return self.weight(made)

    def zero_point(self, dtype, shape=()):
        low, high = limits(dtype)
        middle = (low + high + 1) // 2
        kind = self.int(0, 9)
        if kind < 3:
            data = np.full(shape, middle)
        elif kind == 3:
            data = np.full(shape, low)
        elif kind == 4:
            data = np.full(shape, high)
        elif kind == 5:
            data = np.full(shape, middle - 1)
        else:
            data = self.data_rng.integers(low, high + 1, shape)
        return self.weight(np.asarray(data).astype(dtype))

    def weight(self, array):
        """A parameter: mostly a constant, now and then a graph input."""
        array = np.asarray(array)
        return self.fixed_input(array) if self.chance(0.04) and len(self.inputs) < 8 else self.param(array)

    def weights(self, dtype, shape, out_axis):
        """Quantised weights: any, small ones, mostly zeros, zeros in blocks of four outputs, nothing but zeros."""
        data = elements(self.data_rng, dtype, shape)
        kind = self.int(0, 9)
        if kind < 3:
            keep = self.data_rng.random(shape) < self.choice((0.05, 0.1, 0.3))
            data = np.where(keep, data, np.zeros_like(data))
        elif kind < 6 and shape[out_axis] % 4 == 0:
            blocks = list(shape)
            blocks[out_axis] //= 4
            keep = np.repeat(self.data_rng.random(blocks) < self.choice((0.05, 0.1, 0.25)), 4, out_axis)
            data = np.where(keep, data, np.zeros_like(data))
        elif kind == 6 and self.chance(0.3):
            data = np.zeros_like(data)
        return data.astype(dtype)


def elements(rng, dtype, shape):
    """Integers over their whole range, small ones, or limits; floats about 1, some with ties, some far apart."""
    dtype = np.dtype(dtype)
    kind = rng.integers(0, 8)
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype in FLOATS:
        x = np.clip(rng.standard_normal(shape), -4, 4)
        if kind == 0:
            x = np.rint(x * 8) / 4
        elif kind == 1 and dtype != F16:
            x = x * 10.0 ** rng.uniform(-5, 5, shape)
        elif kind == 2:
            x = np.abs(x)
        return np.asarray(x).astype(dtype)
    low, high = limits(dtype)
    if kind < 2:
        low, high = max(low, -4), min(high, 9)
    if dtype in (U4, I4):
        return rng.integers(low, high + 1, shape).astype(np.int8).astype(dtype)
    data = np.asarray(rng.integers(low, high, shape, np.int64 if dtype != U64 else np.uint64, endpoint=True))
    if kind == 2:
        edge = np.array([low, high, 0, 1], data.dtype)
        data = edge[rng.integers(0, 4, shape)]
    return np.asarray(data).astype(dtype)


def odd_floats(rng, shape):
    """f32 with infinities and NaN among them."""
    x = elements(rng, F32, shape)
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-40, 3e38], F32)
    return np.where(rng.random(shape) < 0.1, special[rng.integers(0, special.size, shape)], x)
