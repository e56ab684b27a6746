# SPDX-License-Identifier: Apache-2.0
"""A model that fails is made as small as it still fails."""

import numpy as np
import onnx
from onnx import helper

import bounds
from random_models import Model
from random_models.builder import Value

from .engines import answer, reads


def values_of(model):
    """Every tensor of the main graph, by name."""
    if model.bounded:
        spans = bounds.run(model.proto, model.feeds)
        return {name: np.asarray(span.lo).astype(span.dtype) for name, span in spans.items()}
    wide = onnx.ModelProto()
    wide.CopyFrom(model.proto)
    del wide.graph.output[:]
    names = [o for n in model.proto.graph.node for o in n.output if o]
    wide.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names)
    _, found = answer(wide, model.feeds)
    return dict(zip(names, found))


def submodel(model, nodes, known, outputs):
    """The model with these nodes only: what they read and nobody makes becomes an input."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    g = proto.graph
    made = {o for n in nodes for o in n.output}
    read = reads(nodes)
    del g.node[:], g.output[:], g.input[:]
    g.node.extend(nodes)
    constants = {t.name for t in g.initializer}
    initializers = [t for t in g.initializer if t.name in read]
    del g.initializer[:]
    g.initializer.extend(initializers)
    feeds = {}
    for name in sorted(read - made - constants):
        if name not in known:
            continue
        data = np.asarray(known[name])
        g.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape))
        feeds[name] = data
    kept = [v for v in outputs if v.name in made and isinstance(known.get(v.name), np.ndarray)]
    for v in kept:
        data = np.asarray(known[v.name])
        g.output.append(helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(data.dtype), None))
    return Model(model.seed, proto, feeds, None, kept, model.bounded)


def minimize(model, fails):
    """Takes away node after node while the model still fails: while fails(model)."""
    known = {**model.feeds, **values_of(model)}
    nodes = list(model.proto.graph.node)
    outputs = list(model.outputs)
    names = {v.name for v in outputs}
    # Inner values become outputs only once everything behind them is gone.
    extra = [Value(o, np.asarray(known[o]).dtype, None, coarse=1e-4) for n in nodes for o in n.output
             if o in known and o not in names and isinstance(known[o], np.ndarray)]
    best = model
    again = True
    while again:
        again = False
        for i in range(len(nodes) - 1, -1, -1):
            less = nodes[:i] + nodes[i + 1:]
            read = {x for n in less for x in n.input}
            ends = [v for v in outputs + extra if v.name in {o for n in less for o in n.output} and
                    (v in outputs or v.name not in read)]
            try:
                tried = submodel(model, less, known, ends)
                if tried.outputs and fails(tried):
                    nodes, best, again = less, tried, True
                    break
            except Exception:  # noqa: BLE001  (a cut that makes no model)
                continue
    return best
