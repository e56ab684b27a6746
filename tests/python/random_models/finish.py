# SPDX-License-Identifier: Apache-2.0
"""A builder's nodes become a model: which values are outputs, which dims of the inputs have names, and what is fed."""

from onnx import helper

from .builder import onnx_type

# What ONNX's release that brought an opset wrote, the lowest IR version that may carry it.
IR_OF = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10,
         22: 10, 23: 11, 24: 12, 25: 12, 26: 13}


class Model:
    """proto, feeds of the first run, feeds of a second run with other sizes of the symbolic dims (or None),
    and per output the Value it came from. bounded: all its operators have rules in tests/python/bounds."""

    def __init__(self, seed, proto, feeds, again, outputs, bounded=False):
        self.seed, self.proto, self.feeds, self.again, self.outputs = seed, proto, feeds, again, outputs
        self.bounded = bounded
        self.generators = set()  # names of those that gave it nodes, where that is known


def finish(b, seed):
    symbols, renamed = choose_symbols(b)
    outputs = choose_outputs(b)
    proto_outputs = [declare(b, v, bool(symbols)) for v in outputs]
    used = b.used | {v.name for v in outputs}
    inputs = [(n, d) for n, d in b.inputs if n in used]
    infos = [helper.make_tensor_value_info(n, onnx_type(d.dtype), renamed.get(n, d.shape)) for n, d in inputs]
    initializers = [t for t in b.initializers if t.name in used]
    if b.chance(0.08):  # inputs with a default, which nobody feeds
        infos += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in initializers[::2]]
    low = max(IR_OF[b.opset], 8 if b.functions else 3)
    ir = b.int(low, 12) if low < 12 else low
    if ir < 4:
        infos = infos[:len(inputs)]
        infos += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in initializers]
    graph = helper.make_graph(b.nodes, f"seed_{seed}", infos, proto_outputs, initializers)
    imports = [helper.make_opsetid(d, v) for d, v in b.opsets.items()]
    proto = helper.make_model(graph, opset_imports=imports, functions=b.functions, ir_version=ir)
    feeds = dict(inputs)
    return Model(seed, proto, feeds, feeds_again(b, inputs, renamed, symbols), outputs)


def choose_symbols(b):
    """Puts names over some dims of the inputs: ({name: size now}, {input: its shape with names})."""
    symbols, renamed = {}, {}
    if not b.symbolic:
        return symbols, renamed
    for name, data in b.inputs:
        if b.makers[name] is None:
            continue
        shape = list(data.shape)
        for axis, size in enumerate(shape):
            if b.chance(0.7 if axis == 0 else 0.25):
                shape[axis] = f"N{size}"
                symbols[shape[axis]] = size
        renamed[name] = shape
    return symbols, renamed


def feeds_again(b, inputs, renamed, symbols):
    """Other elements, and other sizes where dims have names: every engine may refuse those, together."""
    if not symbols:
        return None
    sizes = {s: b.choice((1, size, size + 1, 2 * size, 5)) for s, size in symbols.items()}
    feeds = {}
    for name, data in inputs:
        shape = [sizes[d] if isinstance(d, str) else d for d in renamed.get(name, data.shape)]
        feeds[name] = data if b.makers[name] is None else b.makers[name](b.data_rng, shape)
    return feeds


def choose_outputs(b):
    """What nobody reads, and now and then something that somebody does."""
    made = {o for n in b.nodes for o in n.output if n.op_type != "Constant"}
    values = [v for v in b.values if v.name in made]
    chosen = [v for v in values if v.name not in b.used or b.chance(0.08)]
    if not chosen:
        chosen = [v for v in b.values if v.name in made or v.name in {n for n, _ in b.inputs}][-1:]
    return chosen


def declare(b, v, symbolic):
    """The output's type, with its shape only where no second run changes it."""
    shape = v.shape
    if shape is not None:
        if symbolic:
            shape = [f"{v.name}_{i}" for i in range(len(shape))] if b.chance(0.3) else None
        elif b.chance(0.3):
            shape = None
    if v.sequence:
        return helper.make_tensor_sequence_value_info(v.name, onnx_type(v.dtype), None)
    return helper.make_tensor_value_info(v.name, onnx_type(v.dtype), shape)
