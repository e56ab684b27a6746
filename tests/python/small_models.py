# SPDX-License-Identifier: Apache-2.0
"""Models of a node or two, as bytes, for tests of the package sonde."""

from onnx import TensorProto, helper

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def value(name, onnx_type=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, onnx_type, shape)


def model(nodes, inputs, outputs, initializers=(), opset=19, ml=None, **about):
    """`nodes`: helper.make_node's arguments, as tuples with an optional dict of attributes at the end."""
    made = [helper.make_node(*n[:-1], **n[-1]) if isinstance(n[-1], dict) else helper.make_node(*n) for n in nodes]
    graph = helper.make_graph(made, "small", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("ai.onnx.ml", ml)] if ml else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=11 if opset > 20 else 9, **about)


def add(**about):
    """z = x + y for x of [N, 4], y of [4]."""
    return model([("Add", ["x", "y"], ["z"])], [value("x", shape=["N", 4]), value("y", shape=[4])],
                 [value("z", shape=["N", 4])], **about)


def identity(onnx_type, shape=(None,), opset=23):
    return model([("Identity", ["x"], ["y"])], [value("x", onnx_type, shape)], [value("y", onnx_type, shape)],
                 opset=opset)
