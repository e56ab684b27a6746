# SPDX-License-Identifier: Apache-2.0
"""Forms of models that sonde.quantize takes: bodies of control flow, weights that nodes share, Gemms that scale and
transpose, f16, and convolutions of any rank. ONNX Runtime runs what is written, with the same results."""

import os

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import sonde
from exact_onnxruntime import CLOSE
from quantize_models import Net, run, sqnr

KINDS = [{"dynamic": True}, {"weights_only": 4}, {"weights_only": 8}]


def floats(*shape, scale=1.0, rng=np.random.RandomState(5)):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


@pytest.fixture(autouse=True)
def same_numbers():
    """Each test has the same ones, whichever ran before."""
    floats.__kwdefaults__["rng"].seed(5)


def info(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, constants=(), opset=17):
    graph = h.make_graph(nodes, "net", inputs, outputs, [nh.from_array(a, name) for name, a in constants])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)


def initializers(graph):
    """All of them, those of bodies included."""
    found = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += initializers(attribute.g)
    return found


def check(path, feeds, reference, least, close=35):
    """Both runtimes load the file and agree to `close` dB; it is close to the float model."""
    onnx.checker.check_model(os.fspath(path))
    ours, theirs = run(sonde, path, feeds)[0], run(onnxruntime, path, feeds)[0]
    assert sqnr(theirs, ours) > close
    assert sqnr(reference, ours) > least


# ---------------------------------------------------------------- bodies
def branches():
    """An If whose branches share one weight with each other, and have one of their own."""
    shared, own = floats(64, 64, scale=0.1), floats(64, 64, scale=0.1)
    then = h.make_graph([h.make_node("MatMul", ["x", "shared"], ["t"], name="in_then")], "then", [], [info("t", None)])
    other = h.make_graph([h.make_node("MatMul", ["x", "shared"], ["u"], name="in_else"),
                          h.make_node("MatMul", ["u", "own"], ["v"], name="own_of_else")], "else", [], [info("v", None)],
                         [nh.from_array(own, "own")])
    nodes = [h.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), h.make_node("Greater", ["sum", "zero"], ["positive"]),
             h.make_node("If", ["positive"], ["y"], name="if", then_branch=then, else_branch=other)]
    return model(nodes, [info("x", [3, 64])], [info("y", [3, 64])],
                 [("shared", shared), ("zero", np.zeros((), np.float32))])


def loop():
    """x = x · w + x, three times; w is a constant of the main graph."""
    nodes = [h.make_node("MatMul", ["state", "w"], ["p"], name="in_loop"), h.make_node("Add", ["p", "state"], ["next"]),
             h.make_node("Identity", ["go"], ["go_on"])]
    body = h.make_graph(nodes, "body", [info("i", [], T.INT64), info("go", [], T.BOOL), info("state", [3, 64])],
                        [info("go_on", [], T.BOOL), info("next", [3, 64])])
    return model([h.make_node("Loop", ["times", "", "x"], ["y"], name="loop", body=body)], [info("x", [3, 64])],
                 [info("y", [3, 64])], [("w", floats(64, 64, scale=0.05)), ("times", np.array(3, np.int64))])


def nested():
    """A branch inside a Loop reads the same weight as the Loop and the main graph do."""
    then = h.make_graph([h.make_node("MatMul", ["state", "w"], ["t"], name="deep")], "then", [], [info("t", [3, 64])])
    other = h.make_graph([h.make_node("Identity", ["state"], ["u"])], "else", [], [info("u", [3, 64])])
    nodes = [h.make_node("MatMul", ["state", "w"], ["p"], name="in_loop"),
             h.make_node("If", ["positive"], ["q"], then_branch=then, else_branch=other),
             h.make_node("Add", ["p", "q"], ["next"]), h.make_node("Identity", ["go"], ["go_on"])]
    body = h.make_graph(nodes, "body", [info("i", [], T.INT64), info("go", [], T.BOOL), info("state", [3, 64])],
                        [info("go_on", [], T.BOOL), info("next", [3, 64])])
    nodes = [h.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), h.make_node("Greater", ["sum", "zero"], ["positive"]),
             h.make_node("Loop", ["times", "", "x"], ["l"], name="loop", body=body),
             h.make_node("MatMul", ["l", "w"], ["y"], name="after")]
    return model(nodes, [info("x", [3, 64])], [info("y", [3, 64])],
                 [("w", floats(64, 64, scale=0.1)), ("times", np.array(2, np.int64)), ("zero", np.zeros((), np.float32))])


def scan():
    """Rows of x times a weight of the body."""
    nodes = [h.make_node("MatMul", ["row", "w"], ["r"], name="in_scan"), h.make_node("Add", ["sum", "r"], ["more"]),
             h.make_node("Identity", ["r"], ["out"])]
    body = h.make_graph(nodes, "body", [info("sum", [64]), info("row", [64])], [info("more", [64]), info("out", [64])],
                        [nh.from_array(floats(64, 64, scale=0.1), "w")])
    return model([h.make_node("Scan", ["zeros", "x"], ["last", "y"], name="scan", body=body, num_scan_inputs=1)],
                 [info("x", [3, 64])], [info("y", [3, 64])], [("zeros", np.zeros(64, np.float32))])


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("build", [branches, loop, nested, scan])
def test_weights_in_bodies_are_quantised(tmp_path, build, options):
    proto, path, x = build(), tmp_path / "q.onnx", floats(3, 64)
    table = sonde.quantize(proto, path, {"x": x}, **options)
    assert set(table[table.op_type == "MatMul"].made) == {"int4" if options.get("weights_only") == 4 else "int8"}
    assert table.attrs["products"] == table.attrs["products_quantized"] > 0
    assert table.attrs["body_products"] == table.attrs["body_products_quantized"] > 0
    close = 35 if options.get("weights_only") else CLOSE
    for sign in (1, -1):
        feeds = {"x": sign * np.abs(x)}
        check(path, feeds, run(sonde, proto.SerializeToString(), feeds)[0], 12, close)
    assert all(i.data_type != T.FLOAT or np.prod(i.dims) < 64 * 64 for i in initializers(onnx.load(path).graph))
    assert os.path.getsize(path) < len(proto.SerializeToString()) * 0.6


@pytest.mark.parametrize("options", KINDS)
def test_a_weight_that_bodies_share_is_written_once(tmp_path, options):
    sonde.quantize(branches(), tmp_path / "q.onnx", **options)
    weights = [i for i in initializers(onnx.load(tmp_path / "q.onnx").graph) if np.prod(i.dims) >= 64 * 32]
    assert len(weights) == 2


def test_static_quantisation_says_what_it_leaves_in_bodies(tmp_path):
    proto = loop()
    first = h.make_node("MatMul", ["x0", "w"], ["x"], name="before")
    proto.graph.node.insert(0, first)
    proto.graph.input[0].name = "x0"
    table = sonde.quantize(proto, tmp_path / "q.onnx", {"x0": floats(6, 64).reshape(2, 3, 64)})
    rows = table.set_index("node")
    assert rows.made["before"] == "int8" and rows.made["in_loop"] == "float"
    assert "body of control flow" in rows.why["in_loop"]
    assert (table.attrs["body_products"], table.attrs["body_products_quantized"]) == (1, 0)
    with pytest.raises(sonde.Error, match="nothing to quantise.*'in_loop'.*body of control flow"):
        sonde.quantize(loop(), tmp_path / "r.onnx", {"x": floats(3, 64)})
    assert not (tmp_path / "r.onnx").exists()


def test_weights_in_bodies_are_pruned_and_selected(tmp_path):
    table = sonde.sparsify(branches(), tmp_path / "s.onnx", 0.5, "1x1", only="own_of_else")
    assert list(table[table.skipped == ""].node) == ["own_of_else"]
    table = sonde.quantize(branches(), tmp_path / "q.onnx", dynamic=True, except_nodes="own*").set_index("node")
    assert table.made["own_of_else"] == "float" and table.made["in_else"] == "int8"


# ---------------------------------------------------------------- shared weights
@pytest.mark.parametrize("options", [{}, {"per_channel": False}, *KINDS])
def test_a_weight_that_nodes_share_is_written_once(tmp_path, options):
    n = Net()
    w, x = n.weight(64, 64, spread=0), "x"
    for _ in range(3):
        x = n.node("Tanh", n.node("MatMul", x, w))
    n.node("Identity", x, outputs=["y"])
    data, path, feeds = n.model([5, 64], "y"), tmp_path / "q.onnx", {"x": floats(5, 64)}
    table = sonde.quantize(data, path, {"x": feeds["x"]}, **options)
    weights = [i for i in onnx.load(path).graph.initializer if np.prod(i.dims) >= 64 * 32]
    assert len(weights) == 1 and os.path.getsize(path) < len(data) / 2
    assert table.attrs["weight_bytes_before"] == 64 * 64 * 4 and table.bytes_before.sum() == 64 * 64 * 4
    assert table.attrs["weight_bytes_after"] < 64 * 64 * 2
    check(path, feeds, run(onnxruntime, data, feeds)[0], 12, 35 if options.get("weights_only") else CLOSE)


# ---------------------------------------------------------------- Gemm
@pytest.mark.parametrize("options", [{}, *KINDS])
@pytest.mark.parametrize("attributes, bias", [({"alpha": 0.5}, (24,)), ({"alpha": -2.0, "beta": 3.0}, (24,)),
                                              ({"transA": 1, "transB": 1}, (1, 24)), ({"beta": 0.25}, ()), ({}, (1,))])
def test_a_gemm_that_scales_or_transposes_is_quantised(tmp_path, attributes, bias, options):
    shape = (24, 32) if attributes.get("transB") else (32, 24)
    size = [32, 7] if attributes.get("transA") else [7, 32]
    constants = [("w", floats(*shape)), ("b", floats(*bias))]
    proto = model([h.make_node("Gemm", ["x", "w", "b"], ["y"], name="gemm", **attributes)], [info("x", size)],
                  [info("y", [7, 24])], constants)
    feeds = {"x": floats(*size)}
    table = sonde.quantize(proto, tmp_path / "q.onnx", {"x": feeds["x"][None]}, **options)
    assert table.set_index("node").made["gemm"] != "float", table
    check(tmp_path / "q.onnx", feeds, run(onnxruntime, proto.SerializeToString(), feeds)[0], 15)


def test_every_product_that_stays_in_float_has_a_reason(tmp_path):
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], name="done"),
             h.make_node("Gemm", ["x", "w", "a"], ["b"], name="moving_bias"),
             h.make_node("MatMul", ["w", "b2"], ["c"], name="constant_left"),
             h.make_node("Transpose", ["x"], ["xt"]), h.make_node("MatMul", ["a", "xt"], ["d"], name="two_activations"),
             h.make_node("MatMul", ["x", "vector"], ["e"], name="with_vector"),
             h.make_node("Transpose", ["b"], ["b2"])]
    proto = model([*nodes[:2], nodes[6], *nodes[2:6]], [info("x", [8, 8])], [info(n, None) for n in "abcde"],
                  [("w", floats(8, 8)), ("vector", floats(8))])
    table = sonde.quantize(proto, tmp_path / "q.onnx", {"x": floats(8, 8)[None]})
    left = table[(table.made == "float") & table.op_type.isin(["MatMul", "Gemm"])].set_index("node").why
    assert dict(left) == {"moving_bias": "its bias is not constant", "constant_left": "its left side is constant",
                          "two_activations": "a product of two activations", "with_vector": "its weights are a vector"}


# ---------------------------------------------------------------- f16
def half_model():
    nodes = [h.make_node("Gemm", ["x", "w", "b"], ["g"], name="gemm"), h.make_node("Relu", ["g"], ["r"]),
             h.make_node("MatMul", ["r", "v"], ["y"], name="matmul")]
    constants = [("w", floats(32, 64)), ("b", floats(64)), ("v", floats(64, 16))]
    return model(nodes, [info("x", [5, 32], T.FLOAT16)], [info("y", [5, 16], T.FLOAT16)],
                 [(name, a.astype(np.float16)) for name, a in constants])


@pytest.mark.parametrize("options", KINDS)
def test_products_of_f16_are_quantised_without_samples(tmp_path, options):
    proto, feeds = half_model(), {"x": floats(5, 32).astype(np.float16)}
    table = sonde.quantize(proto, tmp_path / "q.onnx", feeds, **options)
    assert "float" not in set(table.set_index("node").made[["gemm", "matmul"]])
    check(tmp_path / "q.onnx", feeds, run(sonde, proto.SerializeToString(), feeds)[0], 15)


def test_a_model_of_f16_becomes_one_of_integers_with_the_same_ports(tmp_path):
    proto, feeds, path = half_model(), {"x": floats(5, 32).astype(np.float16)}, tmp_path / "q.onnx"
    table = sonde.quantize(proto, path, {"x": feeds["x"][None]})
    made = table.set_index("node").made
    halves = (32 * 64 + 64 + 64 * 16) * 2
    assert table.attrs["weight_bytes_before"] == table.bytes_before.sum() == halves > table.attrs["weight_bytes_after"]
    assert table.attrs["widened"] and (made["gemm"], made["matmul"]) == ("int8", "int8")
    ports = sonde.InferenceSession(path)
    assert [(a.name, a.type) for a in (*ports.get_inputs(), *ports.get_outputs())] == [
        ("x", "tensor(float16)"), ("y", "tensor(float16)")]
    check(path, feeds, run(sonde, proto.SerializeToString(), feeds)[0], 25)


def test_casts_and_constants_of_f16_in_nodes_become_f32(tmp_path):
    two = nh.from_array(np.array([2], np.float16))
    nodes = [h.make_node("Cast", ["x"], ["c"], to=T.FLOAT16), h.make_node("MatMul", ["c", "w"], ["p"], name="matmul"),
             h.make_node("Shape", ["p"], ["shape"]), h.make_node("ConstantOfShape", ["shape"], ["twos"], value=two),
             h.make_node("Mul", ["p", "twos"], ["m"]), h.make_node("Cast", ["m"], ["y"], to=T.FLOAT)]
    proto = model(nodes, [info("x", ["batch", 32])], [info("y", ["batch", 8]), info("m", ["batch", 8], T.FLOAT16)],
                  [("w", floats(32, 8).astype(np.float16))])
    feeds = {"x": floats(6, 32)}
    table = sonde.quantize(proto, tmp_path / "q.onnx", feeds)
    assert table.set_index("node").made["matmul"] == "int8"
    reference = run(sonde, proto.SerializeToString(), feeds)
    check(tmp_path / "q.onnx", feeds, reference[0], 25)
    second = run(onnxruntime, tmp_path / "q.onnx", feeds)[1]
    assert second.dtype == np.float16 and sqnr(reference[1], second) > 25


# ---------------------------------------------------------------- ranks and groups
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("op, rank, groups", [(op, rank, groups) for op in ("Conv", "ConvTranspose")
                                              for rank in (1, 2, 3) for groups in (1, 2, 8)])
def test_convolutions_load_and_agree_in_both_runtimes(tmp_path, op, rank, groups, per_channel):
    n = Net()
    kernel = [3] * rank
    shape = (8, 16 // groups, *kernel) if op == "ConvTranspose" else (16, 8 // groups, *kernel)
    x = n.node(op, "x", n.constant(floats(*shape)), n.vector(16), group=groups, strides=[2] * rank)
    n.node("Conv", n.node("Relu", x), n.constant(floats(4, 16, *[1] * rank)), outputs=["y"])
    data, feeds = n.model([1, 8, *[9] * rank], "y"), {"x": floats(1, 8, *[9] * rank)}
    table = sonde.quantize(data, tmp_path / "q.onnx", {"x": feeds["x"]}, per_channel=per_channel)
    assert set(table[table.op_type == op].made) == {"int8"}
    check(tmp_path / "q.onnx", feeds, run(onnxruntime, data, feeds)[0], 20)


@pytest.mark.parametrize("options", [{}, {"dynamic": True}])
def test_weights_of_three_dimensions_load_and_agree_in_both_runtimes(tmp_path, options):
    n = Net()
    n.node("MatMul", "x", n.constant(floats(3, 32, 16)), outputs=["y"])
    data, feeds = n.model([3, 5, 32], "y"), {"x": floats(3, 5, 32)}
    table = sonde.quantize(data, tmp_path / "q.onnx", {"x": feeds["x"][None]}, **options)
    assert list(table.made) == ["int8"]
    check(tmp_path / "q.onnx", feeds, run(onnxruntime, data, feeds)[0], 20)


# ---------------------------------------------------------------- sizes
@pytest.mark.parametrize("options", [{}, *KINDS])
def test_the_size_before_is_that_of_the_model_given(tmp_path, options):
    """Normalisations that go into their convolutions count, and so do weights of Constant nodes."""
    constants = [("w", floats(8, 3, 3, 3)), *((name, floats(8)) for name in ("scale", "shift", "mean")),
                 ("variance", np.ones(8, np.float32)), ("axes", np.array([2, 3], np.int64))]
    v = floats(8, 32)
    nodes = [h.make_node("Conv", ["x", "w"], ["c"]),
             h.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
             h.make_node("ReduceSum", ["n", "axes"], ["s"], keepdims=0),
             h.make_node("Constant", [], ["v"], value=nh.from_array(v)), h.make_node("MatMul", ["s", "v"], ["y"])]
    proto = model(nodes, [info("x", [1, 3, 8, 8])], [info("y", [1, 32])], constants)
    table = sonde.quantize(proto, tmp_path / "q.onnx", {"x": floats(2, 3, 8, 8)}, **options)
    assert table.attrs["weight_bytes_before"] == v.nbytes + sum(a.nbytes for _, a in constants)
    made = onnx.load(tmp_path / "q.onnx").graph
    assert not any(n.op_type in ("Constant", "BatchNormalization") for n in made.node)
    assert table.attrs["weight_bytes_after"] == sum(nh.to_array(i).nbytes for i in made.initializer)


# ---------------------------------------------------------------- speed
@pytest.mark.parametrize("options", [{}, *KINDS])
def test_both_models_are_measured_on_the_first_sample_if_asked(tmp_path, options):
    proto = model([h.make_node("MatMul", ["x", "w"], ["y"])], [info("x", [1, 64])], [info("y", [1, 32])],
                  [("w", floats(64, 32))])

    def times(samples, measure):
        attrs = sonde.quantize(proto, tmp_path / "q.onnx", samples, measure=measure, **options).attrs
        return attrs["before_ms"], attrs["after_ms"]

    samples = {"x": floats(3, 64)}
    assert min(times(samples, True)) > 0
    assert np.isnan(times(samples, False)).all()
    if options:
        assert np.isnan(times(None, True)).all()
