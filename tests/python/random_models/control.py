# SPDX-License-Identifier: Apache-2.0
"""Bodies (If, Loop, Scan), model-local functions, sequences, optionals and strings."""

import numpy as np
from onnx import helper

from .builder import BOOL, F32, F64, I32, I64, ROWS, STRING, Builder, NoFit, Value, onnx_type, row


def nested(b, values=(), capture=True):
    """A builder for a body that may read some of the outer values."""
    inner = Builder(None, b.opset, parent=b)
    inner.main, inner.symbolic = b.main, b.symbolic
    inner.constants_only = b.opset < 9  # old IR versions want initializers among the inputs
    if capture:
        outer = [v for v in b.values if not v.sequence and v.shape is not None and not v.tol]
        inner.values = b.rng.sample(outer, min(len(outer), 3))
    inner.values += list(values)
    return inner


def fill(inner, count):
    """Random nodes; bodies in bodies too, two deep."""
    deep = inner.level < 2 and not inner.constants_only
    rows = [r for r in ROWS if (r[4] or deep and r[0] in (if_node, loop, scan)) and r[2] <= inner.opset <= r[3]]
    inner.grow(rows, count)


def body_info(b, value):
    """An input or output of a body: with its shape only where no second run changes it."""
    shape = None if b.symbolic and value.shape or b.chance(0.25) else value.shape
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), shape)


def made_inside(inner):
    """Values its own nodes produce, not those of a constant, of a type every engine returns."""
    made = {o for n in inner.nodes for o in n.output if n.op_type != "Constant"}
    return [v for v in inner.values if v.name in made and v.shape is not None and not v.sequence]


def graph(inner, inputs, outputs):
    return helper.make_graph(inner.nodes, "body", inputs, outputs, inner.initializers)


def coarsest(*values):
    """The precision of the coarsest type on the way to any of these: it goes into bodies and comes out of them."""
    return max([v.coarse for v in values if not v.exact], default=0.0)


@row(1.5, nested=False)
def if_node(b):
    """Two branches: the first has random nodes, the second gives values of the same types and shapes."""
    then = nested(b)
    fill(then, b.int(1, 4))
    results = made_inside(then)
    if not results:
        raise NoFit
    results = b.rng.sample(results, min(len(results), b.int(1, 2)))
    other = nested(b)
    twins = []
    for v in results:
        same = [w for w in b.values if not w.sequence and w.dtype == v.dtype and w.shape == v.shape and not w.tol]
        if same and b.chance(0.6):
            twins.append(other.emit("Identity", [b.choice(same)], exact=True))
        else:
            c = other.param(b.random(v.dtype, v.shape))
            twins.append(other.emit("Identity", [c], exact=True))
    flag = np.array(b.chance(0.5)) if b.chance(0.7) else np.array([b.chance(0.5)])
    condition = b.input(BOOL, flag.shape, data=flag) if b.chance(0.7) else b.param(flag)
    branches = [graph(then, [], [body_info(b, v) for v in results]),
                graph(other, [], [body_info(b, v) for v in twins])]
    swap = b.chance(0.5)
    names = b.node("If", [condition], len(results), then_branch=branches[swap], else_branch=branches[1 - swap])
    for name, v, w in zip(names, results, twins):
        b.result(name, v.dtype, v.shape, [v], exact=v.exact and w.exact, mag=max(v.mag, w.mag), tol=v.tol,
                 depth=v.depth, coarse=coarsest(v, w))


def step(inner, state):
    """state' = tanh-bounded function of state and whatever else the body has: chains stay small."""
    kind = inner.int(0, 2)
    if kind == 0:
        other = inner.partner(state, both_ways=False)
        if np.broadcast_shapes(other.shape, state.shape) != state.shape:
            raise NoFit
        y = inner.emit("Add", [state, other], mag=state.mag + other.mag)
        return inner.emit("Tanh", [y], mag=1) if state.dtype.kind == "f" else y
    if kind == 1 and state.dtype == F32 and state.rank >= 2 and state.size:
        k = state.shape[-1]
        y = inner.emit("MatMul", [state, inner.param(inner.random(F32, (k, k)))], mag=state.mag * k)
        return inner.emit("Sigmoid", [y], mag=1)
    return inner.emit("Mul", [state, inner.scalar(1 if state.dtype.kind != "f" else 0.5, state.dtype)],
                      sources=[state])


def scan_output(inner, state):
    return inner.emit("Neg", [state], exact=False)


@row(1.2, nested=False)
def loop(b):
    state = b.pick((F32, F64, I64, I32), rank=(0, 3), mag=10)
    trips = b.int(0, 4)
    iteration, go_on = b.name("i"), b.name("go")
    inner_state = Value(b.name("s"), state.dtype, state.shape, mag=max(state.mag, 10), coarse=coarsest(state))
    inner = nested(b, [inner_state])
    i = Value(iteration, I64, (), exact=True, mag=5)
    if b.chance(0.4):
        fill(inner, b.int(1, 2))
    after = step(inner, inner_state)
    out = scan_output(inner, after)
    if b.chance(0.5):
        (limit_name,) = inner.node("Less", [i, inner.scalar(b.int(0, 5), I64)]) if b.opset >= 9 else \
            inner.node("Identity", [go_on])
    else:
        (limit_name,) = inner.node("Identity", [go_on])
    counts = inner.emit("Cast", [i], F32, (), attributes={"to": 1}, exact=True)
    body = graph(inner, [helper.make_tensor_value_info(iteration, 7, []), helper.make_tensor_value_info(go_on, 9, []),
                         body_info(b, inner_state)],
                 [helper.make_tensor_value_info(limit_name, 9, []), body_info(b, after), body_info(b, out),
                  body_info(b, counts)])
    count = np.array(trips, np.int64)
    trip = b.input(I64, (), data=count) if b.chance(0.6) else b.param(count)
    start = b.chance(0.9)
    condition = b.param(np.array(start)) if not start or b.chance(0.7) else None
    names = b.node("Loop", [trip, condition, state], 3, body=body)
    b.result(names[0], state.dtype, state.shape, [state], mag=after.mag + state.mag + 30, coarse=coarsest(state, after))
    if trips and start:  # what nothing stacks up to has no shape anybody agrees on
        b.result(names[1], state.dtype, None, [state], mag=after.mag + 30, coarse=coarsest(state, after))
        b.result(names[2], F32, None, exact=True)


@row(1.2, since=9, nested=False)
def scan(b):
    length = b.int(1, 4)
    x = b.pick((F32, F64), rank=(1, 3), mag=10)
    axis = b.axis(x.rank, 11)
    length = x.shape[axis]
    element = [d for i, d in enumerate(x.shape) if i != axis % x.rank]
    state = b.pick((x.dtype,), shape=element, mag=10)
    inner_state = Value(b.name("s"), x.dtype, element, mag=10, coarse=coarsest(state))
    inner_x = Value(b.name("e"), x.dtype, element, mag=10, coarse=coarsest(x))
    inner = nested(b, [inner_state, inner_x])
    total = inner.emit("Add", [inner_state, inner_x], mag=20)
    after = inner.emit("Tanh", [total], mag=1)
    if b.chance(0.3):
        fill(inner, 1)
    if b.chance(0.5):
        after = step(inner, after)
    out = inner.emit("Mul", [after, inner_x], mag=10)
    body = graph(inner, [body_info(b, inner_state), body_info(b, inner_x)], [body_info(b, after), body_info(b, out)])
    out_axis = b.int(0, len(element)) if b.chance(0.5) else 0
    attributes = {"num_scan_inputs": 1, "body": body, "scan_input_axes": [axis] if axis or b.chance(0.3) else None,
                  "scan_input_directions": [1] if b.chance(0.3) else None,
                  "scan_output_directions": [1] if b.chance(0.3) else None,
                  "scan_output_axes": [out_axis] if out_axis else None}
    names = b.node("Scan", [state, x], 2, **attributes)
    shape = list(element)
    shape.insert(out_axis, length)
    b.result(names[0], x.dtype, element, [state], mag=10, coarse=coarsest(state, x, after))
    b.result(names[1], x.dtype, shape, [x], mag=10, coarse=coarsest(state, x, out))


@row(1.2, since=10, nested=False)
def local_function(b):
    """A function of the model with a body of random nodes, called once or twice."""
    x = b.pick((F32, F64, I64), rank=(1, 4), mag=20)
    formal = Value(b.name("f"), x.dtype, x.shape, mag=x.mag, coarse=coarsest(x))
    inner = nested(b, [formal], capture=False)
    inner.constants_only = True
    inner.emit("Neg", [formal])
    fill(inner, b.int(1, 3))
    y = b.choice(made_inside(inner))
    name = b.name("Function")
    slope = b.chance(0.3) and y.dtype == F32
    if slope:
        node = helper.make_node("LeakyRelu", [y.name], [inner.name()])
        attribute = node.attribute.add()
        attribute.name, attribute.ref_attr_name, attribute.type = "alpha", "slope", 1
        inner.nodes.append(node)
        last = node.output[0]
    else:
        last = y.name
    opsets = [helper.make_opsetid(d, v) for d, v in b.opsets.items()]
    b.functions.append(helper.make_function("local", name, [formal.name], [last], inner.nodes, opsets,
                                            ["slope"] if slope else []))
    for _ in range(b.int(1, 2)):
        (out,) = b.node(name, [x], domain="local", **({"slope": 0.2} if slope else {}))
        b.result(out, y.dtype, y.shape, [y], exact=False, mag=y.mag, tol=y.tol, depth=y.depth)


@row(1.2, since=11)
def sequences(b):
    x = b.pick((F32, I64), rank=(1, 3))
    same = [v for v in b.values if not v.sequence and v.dtype == x.dtype and v.shape == x.shape and not v.tol]
    items = [x, *(b.choice(same) for _ in range(b.int(0, 2)))]
    (name,) = b.node("SequenceConstruct", items)
    count = len(items)
    if b.chance(0.4):
        at = b.int(-count, count)
        (name,) = b.node("SequenceInsert", [name, x] + ([b.scalar(at, I64)] if b.chance(0.6) else []))
        count += 1
    if b.chance(0.3) and count > 1:
        (name,) = b.node("SequenceErase", [name] + ([b.scalar(b.int(-count, count - 1), I64)] if b.chance(0.5) else []))
        count -= 1
    kind = b.int(0, 3)
    known = {"exact": False, "mag": max(i.mag for i in items), "depth": max(i.depth for i in items)}
    if kind == 0:
        (out,) = b.node("SequenceAt", [name, b.scalar(b.int(-count, count - 1), I64)])
        b.result(out, x.dtype, x.shape, [x], **known)
    elif kind == 1:
        (out,) = b.node("SequenceLength", [name])
        b.result(out, I64, (), exact=True, mag=5)
    elif kind == 2:
        new = b.chance(0.5)
        axis = b.axis(x.rank + new)
        shape = list(x.shape)
        if new:
            shape.insert(axis % (x.rank + 1), count)
        else:
            shape[axis] *= count
        (out,) = b.node("ConcatFromSequence", [name], axis=axis, new_axis=int(new) if new else None)
        b.result(out, x.dtype, shape, [x], **known)
    else:
        b.result(name, x.dtype, None, [x], sequence=True, **known)


@row(0.6, since=11)
def split_to_sequence(b):
    x = b.pick((F32, I64), rank=(1, 3))
    axis = b.axis(x.rank)
    size = x.shape[axis]
    keep = None
    split = None
    if b.chance(0.6):
        part = b.int(1, size)
        split = b.scalar(part, I64) if b.chance(0.5) else b.ints([part] * (size // part) + ([size % part] if
                                                                                         size % part else []))
    else:
        keep = b.choice((None, 0, 1))
    (name,) = b.node("SplitToSequence", [x, split], axis=axis, keepdims=keep)
    if b.chance(0.5):
        (name,) = b.node("SequenceAt", [name, b.scalar(0, I64)])
        b.result(name, x.dtype, None, [x], exact=x.exact)
    else:
        b.result(name, x.dtype, None, [x], sequence=True, exact=x.exact)


@row(0.4, since=16, nested=False)
def optionals(b):
    x = b.pick((F32, I64), rank=(0, 3))
    (name,) = b.node("Optional", [x])
    if b.chance(0.5):
        (out,) = b.node("OptionalGetElement", [name])
        b.result(out, x.dtype, x.shape, [x], exact=x.exact)
    else:
        (out,) = b.node("OptionalHasElement", [name])
        b.result(out, BOOL, (), exact=True)


@row(0.6, since=9)
def strings(b):
    x = b.pick((STRING,), rank=(1, 3), mag=1e9)
    kind = b.int(0, 4)
    if kind == 4 and b.opset >= 20:
        # Without "": engines differ in how many pieces nothing has.
        words = np.array([b.choice(("a", "ab", "x y", "zz top", "b a b")) for _ in range(4)], object).reshape(2, 2)
        x = b.input(STRING, words.shape, data=words)
        names = b.node("StringSplit", [x], 2, delimiter=b.choice((None, " ", "a")), maxsplit=b.choice((1, 2)))
        b.result(names[0], STRING, None, exact=True)
        b.result(names[1], I64, x.shape, exact=True)
    elif kind == 0 and b.opset >= 20:
        y = b.const(b.random(STRING, x.shape[b.int(0, x.rank):]))
        b.emit("StringConcat", [x, y], shape=x.shape, exact=True)
    elif kind == 1 and b.opset >= 20:
        pattern = b.choice(("a.*", "[a-z]+", "", "(ab|b)?"))
        b.emit("RegexFullMatch", [x], BOOL, attributes={"pattern": pattern}, exact=True)
    elif kind == 2 and b.opset >= 10:
        y = b.input(STRING, (2,), data=np.array([b.choice(("a", "ab", "Aa", "x y")) for _ in range(2)], object))
        b.emit("StringNormalizer", [y], STRING, None, exact=True,
               attributes={"case_change_action": b.choice(("UPPER", "LOWER", "NONE")),
                           "stopwords": ["ab", "a"] if b.chance(0.5) else None,
                           "is_case_sensitive": 1})
    else:
        b.emit("Identity", [x], exact=True) if b.opset >= 13 else _equal(b, x)


def _equal(b, x):
    b.emit("Reshape", [x, b.ints([-1])], shape=(x.size,), sources=[x], exact=True)


