# SPDX-License-Identifier: Apache-2.0
"""The list of rules, and those for operators that only move elements or that never round: the onnx reference
evaluates these, once for each bound."""

import functools

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from .spans import FLOATS, Span, Unknown, anything, exact, limits, numbers, wild

RULES = {}


def rule(*names, domain=""):
    """Registers a function of a Call for these operators."""

    def register(function):
        for name in names:
            RULES[domain, name] = function
        return function

    return register


class Call:
    """One node with the spans that it reads (None: absent) and the opset of its domain."""

    def __init__(self, node, spans, opset):
        self.node, self.spans, self.opset = node, spans, opset
        self.given = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def attribute(self, name, default=None):
        found = self.given.get(name, default)
        return found.decode() if isinstance(found, bytes) else found

    def __getitem__(self, i):
        return self.spans[i] if i < len(self.spans) else None

    def known(self, i, default=None):
        """Elements of an input that has to be exact, as index or scale."""
        span = self[i]
        if span is None:
            return default
        if not span.exact:
            raise Unknown(f"input {i} is not known exactly")
        return span.lo


def sliced(call, arrays):
    """The standard keeps a start of steps backwards within 0 … size - 1; the reference's numpy lets it be before 0."""
    x, starts, steps = arrays[0], arrays[1].copy(), arrays[4] if len(arrays) > 4 else None
    if steps is None:
        return arrays
    axes = arrays[3] if arrays[3] is not None else np.arange(starts.size)
    for i, (axis, step) in enumerate(zip(axes, steps)):
        if step < 0 and x.shape[axis] and starts[i] < -x.shape[axis]:
            starts[i] = 0
    return [x, starts, *arrays[2:]]


def by_reference(call, arrays):
    if call.node.op_type == "Slice" and len(arrays) > 1:
        arrays = sliced(call, arrays)
    names = list(call.node.input)
    seen = dict(zip(names, arrays))
    infos = [helper.make_empty_tensor_value_info(n) for n in seen if n]
    outs = [helper.make_empty_tensor_value_info(o) for o in call.node.output if o]
    graph = helper.make_graph([call.node], "node", infos, outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", call.opset)])
    with np.errstate(all="ignore"):
        made = ReferenceEvaluator(model).run(None, {n: a for n, a in seen.items() if n})
    return [np.asarray(m) for m in made]


# ---- elements move


@rule("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Concat", "Split", "GatherElements", "GatherND",
      "Expand", "Tile", "Pad", "Identity", "DepthToSpace", "SpaceToDepth", "Where", "ScatterElements",
      "ScatterND", "Compress", "ReverseSequence", "Trilu")
def move(call):
    if call.attribute("reduction", "none") != "none":
        return integers_only(call)
    variable = {"Concat": range(len(call.spans)), "Where": (1, 2), "ScatterElements": (0, 2), "ScatterND": (0, 2),
                "Pad": (0, 2)}.get(call.node.op_type, (0,))
    dtype = next(call[i].dtype for i in variable if call[i] is not None)
    if all(s is None or s.exact for s in call.spans):
        return [exact(a.astype(dtype, copy=False)) for a in by_reference(call, [s and s.lo for s in call.spans])]
    wide = np.float64 if dtype in FLOATS else dtype
    sides = [by_reference(call, [None if s is None else np.asarray(getattr(s, side)).astype(wide) if i in variable
                                 else call.known(i) for i, s in enumerate(call.spans)]) for side in ("lo", "hi")]
    return [Span(dtype, lo, hi) for lo, hi in zip(*sides)]


@rule("Gather")
def gather(call):
    x, index, axis = call[0], call.known(1), call.attribute("axis", 0)
    index = np.where(index < 0, index + x.shape[axis], index)
    sides = [np.take(side, index, axis) for side in ((x.lo,) if x.exact else (x.lo, x.hi))]
    return [Span(x.dtype, sides[0], sides[-1])]


# ---- the larger the input, the larger the output


@rule("Relu", "Max", "Min", "Clip", "ReduceMax", "ReduceMin")
def grow(call):
    dtype = call[0].dtype
    variable = range(1) if call.node.op_type in ("ReduceMax", "ReduceMin") else range(len(call.spans))
    sides = []
    for side in ("lo", "hi"):
        arrays = [None if s is None else getattr(s, side) if i in variable else call.known(i)
                  for i, s in enumerate(call.spans)]
        if dtype in FLOATS and not all(s is None or s.exact for s in call.spans):
            arrays = [None if a is None else a.astype(np.float64) if i in variable else a for i, a in enumerate(arrays)]
        sides.append(by_reference(call, arrays)[0])
        if all(s is None or s.exact for s in call.spans):
            return [exact(sides[0].astype(dtype, copy=False))]
    if dtype not in FLOATS:
        return [Span(dtype, *(s.astype(dtype) for s in sides))]
    vague = [wild(*numbers(s)) for s in call.spans if s is not None and s.dtype == dtype]
    if not any(v.any() for v in vague):
        return [Span(dtype, *(s.astype(np.float64) for s in sides))]
    if call.node.op_type.startswith("Reduce"):
        raise Unknown("an element may be NaN")
    vague = functools.reduce(np.logical_or, vague)
    return [Span(dtype, np.where(vague, -np.inf, sides[0]), np.where(vague, np.inf, sides[1]))]


# ---- integers only: exact, or nothing is said


@rule("Abs", "Neg", "Sign", "Not", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
      "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "ArgMax", "ArgMin", "TopK", "CumSum", "OneHot",
      "NonZero", "Shape", "Size", "Range", "ConstantOfShape", "EyeLike")
def integers_only(call):
    for s in call.spans:
        if s is not None and not s.exact:
            raise Unknown("inexact")
    made = by_reference(call, [None if s is None else s.lo for s in call.spans])
    first = call[0].dtype
    if call.node.op_type in ("Abs", "Neg", "Sign", "CumSum", "BitwiseNot", "TopK") or call.node.op_type.startswith("Scatter"):
        made[0] = made[0].astype(first)
    return [exact(a) for a in made]


@rule("Div", "Mod")
def divide(call):
    if call[0].dtype in FLOATS:
        raise Unknown("floats")
    a, b = call.known(0), call.known(1)
    if (b == 0).any():
        raise Unknown("by zero")
    wide = np.uint64 if call[0].dtype.kind == "u" else np.int64
    x, y = a.astype(wide), b.astype(wide)
    if call.node.op_type == "Mod":
        made = np.fmod(x, y) if call.attribute("fmod", 0) else np.mod(x, y)
    else:  # towards zero
        made = x // y
        if wide is np.int64:
            made = made + ((x % y != 0) & ((x < 0) != (y < 0)))
    return [exact(made.astype(call[0].dtype))]


@rule("BitShift")
def shift(call):
    a, b = call.known(0), call.known(1)
    if (b >= 8 * a.dtype.itemsize).any():
        raise Unknown("by more than there are bits")
    a, b = np.broadcast_arrays(a, b)
    return [exact(a << b if call.attribute("direction") == "LEFT" else a >> b)]


@rule("Cast")
def cast(call):
    to = helper.tensor_dtype_to_np_dtype(call.attribute("to"))
    span = call[0]
    if to in FLOATS and not span.exact:
        lo, hi = (np.asarray(s).astype(np.float64) for s in (span.lo, span.hi))
        return [Span(to, np.asarray(lo).astype(to).astype(np.float64), np.asarray(hi).astype(to).astype(np.float64))]
    a = call.known(0)
    if span.dtype in FLOATS and to not in FLOATS and to.kind != "b":
        low, high = limits(to)
        if not np.isfinite(a).all() or (np.trunc(a.astype(np.float64)) < low).any() or \
                (np.trunc(a.astype(np.float64)) > high).any():
            raise Unknown("out of range")
    with np.errstate(all="ignore"):
        return [exact(a.astype(to))]


@rule("ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1")
def reduce(call):
    if call[0].dtype in FLOATS:
        raise Unknown("floats")
    a, axes = call.known(0), call.attribute("axes")
    given = call.known(1)
    axes = axes if given is None else given.tolist()
    if not axes:
        if call.attribute("noop_with_empty_axes", 0):
            raise Unknown("nothing is reduced")
        axes = range(a.ndim)
    wide = a.astype(np.uint64 if a.dtype.kind == "u" else np.int64)  # wraps around as the type itself does
    if call.node.op_type == "ReduceSumSquare":
        wide = wide * wide
    elif call.node.op_type == "ReduceL1":
        wide = np.abs(wide)
    fold = np.prod if call.node.op_type == "ReduceProd" else np.sum
    made = fold(wide, axis=tuple(axes), keepdims=bool(call.attribute("keepdims", 1)), dtype=wide.dtype)
    return [exact(np.asarray(made).astype(a.dtype))]


# ---- a graph


def evaluate(node, spans, opsets):
    """The spans of a node's outputs. Where an input is known too badly, everything is possible for the outputs of
    that shape: evaluated with the lower bounds, which are elements as good as any."""
    call = Call(node, spans, opsets.get(node.domain, 1))
    try:
        function = RULES[node.domain, node.op_type]
    except KeyError:
        raise Unknown(f"no rule for {node.op_type}") from None
    try:
        return function(call)
    except Unknown:
        if not any(s is not None and not s.exact for s in spans):
            raise
        lowest = [s if s is None or s.exact else exact(np.asarray(s.lo).astype(s.dtype)) for s in spans]
        return [anything(s.dtype, s.shape) for s in function(Call(node, lowest, call.opset))]


def run(proto: onnx.ModelProto, feeds):
    """{name: span} of everything in the main graph."""
    opsets = {o.domain: o.version for o in proto.opset_import}
    known = {t.name: exact(onnx.numpy_helper.to_array(t)) for t in proto.graph.initializer}
    known |= {name: exact(data) for name, data in feeds.items()}
    for node in proto.graph.node:
        if node.op_type == "Constant":
            known[node.output[0]] = exact(onnx.numpy_helper.to_array(node.attribute[0].t))
            continue
        spans = [known[n] if n else None for n in node.input]
        for name, span in zip(node.output, evaluate(node, spans, opsets), strict=False):
            known[name] = span
    return known
