# SPDX-License-Identifier: Apache-2.0
"""The other engines: ONNX Runtime, the onnx reference, and either with the other's help."""

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import exact_onnxruntime

onnxruntime.set_default_logger_severity(4)

OF_BYTES = {"MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "QGemm", "MatMulIntegerToFloat",
            "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QAttention"}


class OnnxRuntime:
    """Without its rewrites: what is compared is the operators' meaning."""

    def __init__(self, proto):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        make = onnxruntime.InferenceSession
        if any(node.op_type in OF_BYTES for node in proto.graph.node):
            make = exact_onnxruntime.plain_session
        self.session = make(proto.SerializeToString(), options)

    def run(self, feeds):
        return self.session.run(None, feeds)


class Reference:
    def __init__(self, proto):
        if goes_backward(proto.graph.node):
            raise NotImplementedError("the reference computes direction='reverse' as 'forward'")
        self.evaluator = ReferenceEvaluator(proto)

    def run(self, feeds):
        with np.errstate(all="ignore"):
            return self.evaluator.run(None, feeds)


class NodeByNode:
    """For models with a node that ONNX Runtime has no kernel for: that node alone by the reference."""

    engines = (OnnxRuntime, Reference)

    def __init__(self, proto):
        self.proto = onnx.inliner.inline_local_functions(proto) if proto.functions else proto

    def run(self, feeds):
        known = {t.name: numpy_helper.to_array(t) for t in self.proto.graph.initializer} | feeds
        for node in self.proto.graph.node:
            names = sorted({n for n in reads([node]) if n in known})
            g = helper.make_graph([node], "node", [info(n, known[n]) for n in names],
                                  [helper.make_empty_tensor_value_info(o) for o in node.output if o])
            one = onnx.ModelProto()
            one.CopyFrom(self.proto)
            one.graph.CopyFrom(g)
            given = {n: known[n] for n in names}
            first, second = self.engines
            try:
                results = first(one).run(given)
            except Exception:  # noqa: BLE001
                if node.op_type == "Loop" and second is Reference:
                    raise  # the reference joins what iterations give instead of stacking it
                results = second(one).run(given)
            known.update(zip([o for o in node.output if o], results))
        return [known[o.name] for o in self.proto.graph.output]


class Arbiter(NodeByNode):
    """The reference, and ONNX Runtime for nodes that it does not know."""

    engines = (Reference, OnnxRuntime)


def info(name, data):
    if isinstance(data, list):
        return helper.make_tensor_sequence_value_info(name, element_type(data[0]), None)
    return helper.make_tensor_value_info(name, element_type(data), np.shape(data))


def element_type(data):
    dtype = np.asarray(data).dtype
    return onnx.TensorProto.STRING if dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(dtype)


def goes_backward(nodes):
    """Is there a recurrent layer with another direction than forward among nodes and their bodies?"""
    return any(a.name == "direction" and a.s != b"forward" if n.op_type in ("RNN", "GRU", "LSTM")
               else a.HasField("g") and goes_backward(a.g.node) for n in nodes for a in n.attribute)


def reads(nodes):
    """Every name that nodes and their bodies read."""
    found = set()
    for n in nodes:
        found.update(i for i in n.input if i)
        for a in n.attribute:
            if a.HasField("g"):
                found |= reads(a.g.node)
    return found


def answer(proto, feeds):
    """(engine, its outputs): ONNX Runtime's, with the reference's help where it has no kernel; None where
    both refuse."""
    for engine in (OnnxRuntime, NodeByNode):
        try:
            made = engine(proto)
            return made, made.run(feeds)
        except Exception:  # noqa: BLE001  (engines raise whatever they like)
            continue
    return None
