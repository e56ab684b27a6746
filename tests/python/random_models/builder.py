# SPDX-License-Identifier: Apache-2.0
"""The half-built model that generators append nodes to.

A generator is a function of one Builder, registered with @row. It picks values that exist (or gets
new graph inputs and constants), appends nodes with valid attributes for the builder's opset and says
the type and shape of what comes out. Shapes are concrete: symbolic dims are put over them at the end.
Where nothing fits it raises NoFit and another generator has its turn.

Four properties of a value keep comparisons sharp:
  exact  every engine has the same bits, so comparing, rounding, sorting or casting it to an integer
         cannot flip on a rounding difference; such operators take nothing else
  mag    how large its elements may become, roughly; generators ask for a limit, so that chains neither
         overflow nor cancel
  coarse the precision of the coarsest type on its way here
  tol    how far two right answers may lie apart (a step after quantising an inexact value); only
         movement and dequantising go on from there
"""

import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F64, F16 = np.dtype("f4"), np.dtype("f8"), np.dtype("f2")
I64, I32, I16, I8 = np.dtype("i8"), np.dtype("i4"), np.dtype("i2"), np.dtype("i1")
U64, U32, U16, U8 = np.dtype("u8"), np.dtype("u4"), np.dtype("u2"), np.dtype("u1")
BOOL, STRING = np.dtype("?"), np.dtype("O")
FLOATS = (F32, F64, F16)
SIGNED = (*FLOATS, I64, I32, I8)
NUMBERS = (*SIGNED, U8)
ANY = (*NUMBERS, BOOL)

# How far two engines may lie apart, relative to the largest element.
PRECISION = {F32: 1e-4, F64: 1e-9, F16: 1e-2}

LARGEST = 200_000  # elements of a value

ROWS = []


class NoFit(Exception):
    """Nothing at hand suits this generator."""


def row(weight=1.0, since=7, until=99, nested=True):
    """Registers a generator for opsets since..until; `nested` ones may stand in bodies and functions."""

    def register(function):
        ROWS.append((function, weight, since, until, nested))
        return function

    return register


def onnx_type(dtype):
    return TensorProto.STRING if dtype == STRING else helper.np_dtype_to_tensor_dtype(dtype)


class Value:
    """A tensor of the model. A shape of None: nothing is known; data: its elements, where the model's
    author would know them."""

    __slots__ = ("name", "dtype", "shape", "exact", "mag", "tol", "data", "distinct", "positive", "sequence", "depth",
                 "coarse")

    def __init__(self, name, dtype, shape, exact=False, mag=3.0, tol=0.0, data=None, distinct=False, positive=False,
                 sequence=False, depth=0, coarse=0.0):
        self.name, self.dtype, self.exact, self.mag, self.tol = name, np.dtype(dtype), exact, mag, tol
        self.shape = None if shape is None else tuple(int(d) for d in shape)
        self.data, self.distinct, self.positive, self.sequence, self.depth = data, distinct, positive, sequence, depth
        self.coarse = max(coarse, PRECISION.get(self.dtype, 0.0))

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))


class Builder:
    def __init__(self, seed, opset, parent=None):
        self.parent = parent
        self.rng = random.Random(seed) if parent is None else parent.rng
        self.data_rng = np.random.default_rng(seed) if parent is None else parent.data_rng
        self.opset = opset
        self.opsets = {"": opset} if parent is None else parent.opsets
        self.nodes, self.inputs, self.initializers, self.values = [], [], [], []
        self.functions = [] if parent is None else parent.functions
        self.counter = [0] if parent is None else parent.counter
        self.makers = {}  # input name -> how to make its data again for another shape, or None
        self.used = set()
        self.main = F32
        self.zero = False  # may new values have no elements?
        self.large = False  # are there tensors large enough to be split between threads?
        self.symbolic = False  # will some dims of the inputs get names?
        self.constants_only = False  # in functions: no initializers
        self.level = 0 if parent is None else parent.level + 1  # how deep in bodies and functions

    # ---- names, numbers

    def name(self, prefix="v"):
        self.counter[0] += 1
        return f"{prefix}{self.counter[0]}"

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, items):
        return self.rng.choice(items)

    def int(self, low, high):
        """low..high, both included."""
        return self.rng.randint(low, high)

    def axis(self, rank, since=7):
        """An axis of that rank, negative now and then where the operator has known that since `since`."""
        if rank == 0:
            raise NoFit
        a = self.rng.randrange(rank)
        return a - rank if self.opset >= since and self.chance(0.4) else a

    def dims(self, rank, top=7):
        d = [self.choice((1, 2, 3, 3, 4, 5, top)) for _ in range(rank)]
        if self.large and rank:
            for _ in range(min(rank, 2)):
                d[self.rng.randrange(rank)] = self.choice((31, 64, 65, 130))
        if self.zero and rank and self.chance(0.3):
            d[self.rng.randrange(rank)] = 0
        return tuple(d)

    # ---- data

    def random(self, dtype, shape, low=None, high=None):
        """Elements of a type: small and distinct for floats, small integers, any bit, short words."""
        return random_array(self.data_rng, dtype, shape, low, high)

    def away_from_zero(self, dtype, shape, low=0.5, high=2.0):
        x = self.data_rng.uniform(low, high, shape) * self.data_rng.choice((-1, 1), shape)
        return np.asarray(x).astype(dtype)

    # ---- leaves

    def input(self, dtype, shape, low=None, high=None, data=None):
        """A new graph input (inside a body or function: a constant). With `data` its shape and elements
        stay as they are in every run."""
        fixed = data is not None
        if data is None:
            data = self.random(dtype, shape, low, high)
        if self.parent is not None or len(self.inputs) >= 6:
            return self.const(data)
        name = self.name("x")
        self.inputs.append((name, data))
        self.makers[name] = None if fixed else lambda rng, s: random_array(rng, dtype, s, low, high)
        return self._leaf(name, data, low)

    def _leaf(self, name, data, low=None):
        floating = data.dtype.kind == "f"
        mag = float(np.abs(data.astype(np.float64)).max()) if data.size and data.dtype.kind in "fiu" else 3.0
        value = Value(name, data.dtype, data.shape, exact=True, mag=max(mag, 1e-3), data=data,
                      distinct=floating and data.dtype != F16 and np.unique(data).size == data.size,
                      positive=low is not None and low > 0)
        self.values.append(value)
        return value

    def const(self, array, name=None, keep=True):
        """An initializer or a Constant node. keep False: no later generator picks it up by chance."""
        array = np.asarray(array)
        name = name or self.name("c")
        if array.dtype == STRING:
            tensor = helper.make_tensor(name, TensorProto.STRING, array.shape, [s.encode() for s in array.ravel()])
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        if self.constants_only or self.chance(0.2):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(tensor)
        value = self._leaf(name, array)
        if not keep:
            self.values.pop()
        return value

    def param(self, array):
        """A constant nobody else uses."""
        return self.const(array, keep=False)

    def ints(self, items):
        return self.param(np.array(items, np.int64))

    def scalar(self, item, dtype):
        return self.param(np.array(item, dtype))

    def weight_or_input(self, array):
        """A parameter that is mostly a constant, now and then a graph input."""
        if self.parent is None and self.chance(0.12):
            return self.input(array.dtype, array.shape, data=array)
        return self.param(array)

    # ---- picking

    def pick(self, dtypes=FLOATS, rank=None, exact=None, mag=60.0, where=None, zero=False, tol=False, fresh=True,
             shape=None, distinct=False, unknown=False, low=None):
        """A value that fits, or a new input of that kind. rank: a number or a (low, high) pair."""
        low_rank, high_rank = (0, 6) if rank is None else (rank, rank) if isinstance(rank, int) else rank
        found = []
        if not fresh or self.chance(0.85):
            for v in self.values:
                if v.sequence or v.dtype not in dtypes or (v.tol and not tol) or (exact and not v.exact):
                    continue
                if v.shape is None:
                    if not unknown:
                        continue
                elif not low_rank <= v.rank <= high_rank or (not zero and v.size == 0) or v.size > 100000:
                    continue
                if v.mag > (min(mag, 8.0) if v.dtype == F16 else mag):
                    continue
                # Rounding to 11 bits adds up: half precision chains stay short.
                if v.dtype == F16 and v.depth > 2:
                    continue
                if shape is not None and v.shape != tuple(shape) or distinct and not v.distinct:
                    continue
                if low is not None and not v.positive:
                    continue
                if where is not None and not where(v):
                    continue
                found.append(v)
        if found:
            # Recent values first: chains rather than stars.
            return found[-1] if self.chance(0.5) else self.choice(found)
        if not fresh:
            raise NoFit
        dtype = self.main if self.main in dtypes else self.choice([d for d in dtypes])
        for _ in range(8):
            r = self.int(max(low_rank, 0 if self.chance(0.1) else 1), min(high_rank, 4)) if low_rank < high_rank \
                else low_rank
            s = self.dims(r) if shape is None else shape
            if not zero and 0 in s:
                s = tuple(max(1, d) for d in s)
            v = self.input(dtype, s, low=low, high=None if low is None else low + 3)
            if (where is None or where(v)) and (not distinct or v.distinct):
                return v
        raise NoFit

    def partner(self, v, dtypes=None, exact=False, mag=60.0, both_ways=True):
        """A value of the same type that broadcasts with v."""
        if self.chance(0.35):
            near = [w for w in self.values
                    if not w.sequence and w.dtype == v.dtype and w.shape is not None and not w.tol and
                    w.mag <= (8.0 if w.dtype == F16 else mag) and (w.exact or not exact) and
                    (w.dtype != F16 or w.depth <= 2) and broadcast(v.shape, w.shape) is not None]
            if near:
                return self.choice(near)
        shape = list(v.shape)
        for i in range(len(shape)):
            if self.chance(0.3):
                shape[i] = 1
        if self.chance(0.4):
            shape = shape[self.int(0, len(shape)):]
        elif both_ways and len(shape) < 4 and self.chance(0.15):
            shape = [self.int(1, 3), *shape]
        data = self.random(v.dtype, shape)
        if self.chance(0.5):
            return self.const(data)
        return self.input(v.dtype, shape)

    # ---- nodes

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        """Appends a node; returns its outputs' names. Inputs: values, names or None."""
        names = [i if isinstance(i, str) else "" if i is None else i.name for i in inputs]
        while names and names[-1] == "":
            names.pop()
        self.used.update(names)
        outer = self.parent
        while outer is not None:  # what a body reads is used outside it
            outer.used.update(names)
            outer = outer.parent
        out = [self.name() for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = helper.make_node(op, names, out, domain=domain, **attributes)
        if self.chance(0.7):
            node.name = self.name("node")
        self.nodes.append(node)
        if domain and domain not in self.opsets:
            self.opsets[domain] = 1
        return out

    def result(self, name, dtype, shape, sources=(), **known):
        """Registers an output of the last node."""
        known.setdefault("mag", max([s.mag for s in sources], default=3.0))
        known.setdefault("depth", max([s.depth for s in sources], default=0) + (0 if known.get("exact") else 1))
        known.setdefault("tol", max([s.tol for s in sources], default=0.0))
        known.setdefault("coarse", max([s.coarse for s in sources if not s.exact], default=0.0))
        value = Value(name, dtype, shape, **known)
        if value.shape is not None and value.size > LARGEST:
            raise NoFit
        self.values.append(value)
        return value

    def emit(self, op, inputs, dtype=None, shape="same", sources=None, domain="", attributes=None, **known):
        """A node with one output, of the first input's type and shape unless said otherwise; a shape of None is
        unknown."""
        sources = [i for i in inputs if isinstance(i, Value)] if sources is None else sources
        (name,) = self.node(op, inputs, domain=domain, **(attributes or {}))
        first = inputs[0]
        return self.result(name, first.dtype if dtype is None else dtype, first.shape if shape == "same" else shape,
                           sources, **known)

    def grow(self, rows, count):
        """Appends until `count` generators have had their turn."""
        weights = [r[1] for r in rows]
        done = attempts = 0
        while done < count and attempts < 12 * count:
            attempts += 1
            (function, *_rest) = self.rng.choices(rows, weights)[0]
            mark = self.mark()
            try:
                function(self)
                done += 1
            except NoFit:
                self.back_to(mark)

    def mark(self):
        return (len(self.nodes), len(self.inputs), len(self.initializers), len(self.values))

    def back_to(self, mark):
        """Forgets what a generator that gave up has left behind."""
        nodes, inputs, initializers, values = mark
        for name, _ in self.inputs[inputs:]:
            del self.makers[name]
        del self.nodes[nodes:], self.inputs[inputs:], self.initializers[initializers:], self.values[values:]


def random_array(rng, dtype, shape, low=None, high=None):
    dtype = np.dtype(dtype)
    if dtype == STRING:
        words = np.array(["", "a", "b", "ab", "Aa", "x y", "zz top", "äö"], object)
        return words[rng.integers(0, len(words), shape)] if shape else np.array(words[rng.integers(0, 8)], object)
    if dtype == BOOL:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind == "f":
        if low is None:
            return np.asarray(np.clip(rng.standard_normal(shape), -3, 3)).astype(dtype)
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    if low is None:
        low, high = (0, 15) if dtype.kind == "u" else (-8, 8)
    return np.asarray(rng.integers(low, high + 1, shape)).astype(dtype)


def broadcast(*shapes):
    """The shape several broadcast to, or None."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None
