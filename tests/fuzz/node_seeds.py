# SPDX-License-Identifier: Apache-2.0
"""Models of one operator from the cases of the onnx package: every operator, and every version it had.

The cases cover the newest version of an operator. Older ones are made of them: inputs that were attributes
then become attributes again, attributes the old version lacks go. Small inputs of numbers that steer an
operator (axes, shapes, indices, counts) are constants here, so that a fuzzer can change them.
"""

import collections
import contextlib
import io
import warnings

import numpy as np
import onnx
from onnx import defs
from onnx import helper as h
from onnx import numpy_helper as nh

MAX_BYTES = 20000
LIKE_CASES = 3  # of one operator with the same attributes and types


def collect():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return collect_testcases(None)


def schemas():
    history = collections.defaultdict(list)
    for s in defs.get_all_schemas_with_history():
        history[s.domain, s.name].append(s)
    for versions in history.values():
        versions.sort(key=lambda s: s.since_version)
    return history


def arrays(case):
    """Values of the inputs that are plain arrays, by name."""
    if not case.data_sets:
        return {}
    return {i.name: v for i, v in zip(case.model.graph.input, case.data_sets[0][0])
            if isinstance(v, (np.ndarray, np.generic))}


def steers(position, array):
    """Whether an input is rather part of the model than data."""
    if array.dtype.kind in "OSU":
        return True
    return array.size <= (64 if array.dtype.kind in "iub" else 8) and position > 0


def as_constants(model, values):
    graph = model.graph
    for position, info in reversed(list(enumerate(graph.input))):
        array = values.get(info.name)
        if array is None or not steers(position, np.asarray(array)):
            continue
        array = np.asarray(array)
        if array.dtype == object:
            constant = h.make_tensor(info.name, onnx.TensorProto.STRING, array.shape,
                                     [str(s).encode() for s in array.reshape(-1)])
        else:
            try:
                constant = nh.from_array(array, info.name)
            except (TypeError, ValueError, KeyError):
                continue
            if constant.data_type != info.type.tensor_type.elem_type:
                continue
        graph.initializer.append(constant)
        del graph.input[position]


def without_output_types(model):
    for info in model.graph.output:
        info.ClearField("type")
    del model.graph.value_info[:]
    return model


def older(case, schema, newest):
    """The case's model for an older version of its operator, or None."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[0]
    values = arrays(case)
    old_inputs = [i.name for i in schema.inputs]
    last = schema.inputs[-1] if schema.inputs else None
    variadic = last is not None and last.option == defs.OpSchema.FormalParameterOption.Variadic
    moved = []
    for k, name in enumerate(list(node.input)):
        formal = newest.inputs[min(k, len(newest.inputs) - 1)].name
        attribute = {"K": "k", "constant_value": "value"}.get(formal, formal)
        if formal in old_inputs or variadic or (k < len(old_inputs) and attribute not in schema.attributes):
            continue
        moved.append(k)
        if name and attribute in schema.attributes and name in values:
            value = np.asarray(values[name]).tolist()
            kind = schema.attributes[attribute].type
            if kind in (defs.OpSchema.AttrType.INTS, defs.OpSchema.AttrType.FLOATS):
                value = value if isinstance(value, list) else [value]
            elif isinstance(value, list):
                value = value[0] if value else 0
            with contextlib.suppress(TypeError, ValueError):
                node.attribute.append(h.make_attribute(attribute, value))
    gone = [node.input[k] for k in moved]
    for k in reversed(moved):
        del node.input[k]
    kept = [a for a in node.attribute if a.name in schema.attributes]
    del node.attribute[:]
    node.attribute.extend(kept)
    for position, info in reversed(list(enumerate(model.graph.input))):
        if info.name in gone and info.name not in node.input:
            del model.graph.input[position]
    del model.opset_import[:]
    model.opset_import.append(h.make_opsetid(schema.domain, schema.since_version))
    return model


def small(model):
    return model.ByteSize() < MAX_BYTES


def node_seeds():
    """Yields (name, model)."""
    history = schemas()
    seen = collections.Counter()
    by_op = collections.defaultdict(list)
    for case in collect():
        model, nodes = case.model, case.model.graph.node
        if not small(model):
            continue
        key = (tuple(sorted({(n.domain, n.op_type) for n in nodes})) if len(nodes) > 1 else nodes[0].op_type,
               tuple(sorted(a.name for n in nodes for a in n.attribute)) if len(nodes) == 1 else (),
               tuple(i.type.tensor_type.elem_type for i in model.graph.input) if len(nodes) == 1 else ())
        seen[key] += 1
        if seen[key] > (LIKE_CASES if len(nodes) == 1 else 1):
            continue
        if len(nodes) == 1:
            by_op[nodes[0].domain, nodes[0].op_type].append(case)
        made = onnx.ModelProto()
        made.CopyFrom(model)
        as_constants(made, arrays(case))
        yield case.name.removeprefix("test_"), without_output_types(made)
    for (domain, op), cases in sorted(by_op.items()):
        versions = history.get((domain, op), [])
        for schema in versions[:-1]:
            for case in cases[:2]:
                made = older(case, schema, versions[-1])
                values = arrays(case)
                as_constants(made, values)
                yield f"{op}_{schema.since_version}_{case.name.removeprefix('test_')}", without_output_types(made)
