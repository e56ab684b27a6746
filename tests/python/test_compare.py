# SPDX-License-Identifier: Apache-2.0
"""sonde compare and sonde.compare: damage is found where it was done, tensors of quantised models are found behind their
quantisers, another runtime is one side, and odd numbers, shapes and names are reported as what they are."""

import csv
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import small_models
import sonde

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
FLOAT = TensorProto.FLOAT


def compare(*words, status=0, **env):
    """The JSON of `sonde compare`."""
    command = [PROGRAM, "compare", *map(str, words), "-t", "1", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, "SONDE_BENCH_PYTHON": sys.executable, **env})
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def saved(model, path):
    onnx.save(model, path)
    return path


def constants(graph):
    """Every float tensor of a graph and its bodies, by name."""
    found = {t.name: t for t in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found |= constants(attribute.g)
    return found


def damage(tensor):
    data = numpy_helper.to_array(tensor).copy()
    data.reshape(-1)[::2] *= 1.5
    tensor.CopyFrom(numpy_helper.from_array(data, tensor.name))


def node_named(model, name):
    return next(node for node in model.graph.node if node.name == name)


# ---------------------------------------------------------------- damage
@pytest.mark.parametrize(("name", "layer"), [
    ("tiny_resnet", "/layer2/layer2.0/conv2/Conv"),
    ("tiny_mobilenet", "/features/features.3/conv/conv.0/conv.0.0/Conv"),
    ("tiny_bert", "/encoder/layer.1/intermediate/dense/MatMul"),
    ("tiny_gpt2", None),
])
def test_a_damaged_layer_is_found(zoo, tmp_path, name, layer):
    model = zoo(name)
    weights = constants(model.graph)
    products = [n for n in model.graph.node if n.op_type in ("Conv", "MatMul", "Gemm") and n.input[1] in weights]
    found = [n for n in products if n.name == layer]
    node = found[0] if found else products[len(products) // 2]
    good = saved(model, tmp_path / "good.onnx")
    damage(weights[node.input[1]])
    result = compare(good, saved(model, tmp_path / "bad.onnx"), "--samples", 2)
    assert result["first_over"]["node"] == node.name
    assert result["worst"][0] == node.name
    local = {t["node"]: t["local"]["sqnr_db"] for t in result["tensors"] if t["local"]}
    assert local.pop(node.name) < 30
    assert all(db is None or db > 90 for db in local.values())


@pytest.mark.parametrize(("name", "operator", "inside"), [("tiny_loop", "Loop", "/body/Mul"), ("tiny_if", "If", "/then/Mul")])
def test_damage_inside_a_body_is_located_at_its_control_flow_node(zoo, tmp_path, name, operator, inside):
    model = zoo(name)
    good = saved(model, tmp_path / "good.onnx")
    damage(constants(model.graph)["scale"])
    result = compare(good, saved(model, tmp_path / "bad.onnx"))
    assert result["first_over"]["op"] == operator
    assert "not compared" in result["note"]
    row = next(t for t in result["tensors"] if t["name"] == result["first_over"]["tensor"])
    assert row["control_flow"]
    assert row["inside"] == f"node '{inside}' (Mul) has other constants"


@pytest.mark.parametrize(("name", "constant"), [("tiny_if", "shift"), ("tiny_if", "scale")])
def test_a_damaged_weight_is_named_also_where_no_input_reaches_it(zoo, tmp_path, name, constant):
    """One of both branches of an If does not run."""
    model = zoo(name)
    good = saved(model, tmp_path / "good.onnx")
    weights = constants(model.graph)
    damage(weights[constant])
    bad = saved(model, tmp_path / "bad.onnx")
    result = compare(good, bad, "--csv", tmp_path / "c.csv")
    assert [w["name"] for w in result["weights"]] == [constant] and not result["agree"]
    assert result["weights"][0]["node"].startswith(("/then/", "/else/"))
    with open(tmp_path / "c.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["tensor"] for row in rows if row["kind"] == "weight"] == [constant]
    said = subprocess.run([PROGRAM, "compare", good, bad], capture_output=True, text=True, check=True).stdout
    assert f"1 weight differs:\n  {constant}  f32" in said
    found = sonde.compare(str(good), str(bad))
    assert [w["name"] for w in found.weights] == [constant] and found.weights[0]["max_abs"] > 0


def test_weights_inside_bodies_are_told_apart_by_where_they_are(tmp_path):
    """Both branches call their weight alike; one is an initializer, the other a Constant."""
    def build(kept, other):
        tensors = [numpy_helper.from_array(np.full(3, v, np.float32), "w") for v in (kept, other)]
        output = [helper.make_tensor_value_info("t", FLOAT, [3])]
        add = helper.make_node("Add", ["x", "w"], ["t"], "inner")
        then = helper.make_graph([add], "then", [], output, [tensors[0]])
        otherwise = helper.make_graph([helper.make_node("Constant", [], ["w"], value=tensors[1]), add], "else", [], output)
        return small_models.model(
            [("If", ["c"], ["y"], {"name": "if", "then_branch": then, "else_branch": otherwise})],
            [small_models.value("x", shape=[3])], [small_models.value("y", shape=[3])],
            [numpy_helper.from_array(np.array(True), "c")])

    good = saved(build(1, 1), tmp_path / "good.onnx")
    for kept, other in ((1, 2), (2, 1), (2, 2)):
        result = compare(good, saved(build(kept, other), tmp_path / "bad.onnx"))
        assert [w["name"] for w in result["weights"]] == ["w"] * ((kept != 1) + (other != 1))
        assert result["worst"] == ([] if kept == 1 else ["if"])


def test_a_masked_weight_that_differs_is_named_with_its_figures(tmp_path):
    def build(weight):
        return small_models.model(
            [("MatMul", ["x", "w"], ["y"], {"name": "product"}), ("Mul", ["y", "zero"], ["z"], {"name": "mask"})],
            [small_models.value("x", shape=[2, 3])], [small_models.value("z", shape=[2, 3])],
            [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.zeros(3, np.float32), "zero")])

    weight = np.arange(9, dtype=np.float32).reshape(3, 3)
    good, bad = saved(build(weight), tmp_path / "a.onnx"), saved(build(weight + np.eye(3, dtype=np.float32)), tmp_path / "b.onnx")
    (found,) = compare(good, bad)["weights"]
    assert (found["name"], found["node"], found["op"], found["type"]) == ("w", "product", "MatMul", "f32[3, 3]")
    assert found["mismatches"] == 3 and found["max_abs"] == 1
    assert found["relative"] == pytest.approx(np.sqrt(3 / (weight**2).sum()))


def test_weights_of_other_types_and_shapes_are_no_pairs(zoo, tmp_path):
    good, int8 = (saved(zoo(name), tmp_path / f"{name}.onnx") for name in ("tiny_resnet", "tiny_resnet_int8"))
    for weight in compare(good, int8)["weights"]:
        assert weight["type"].startswith("f32")


def test_damage_behind_control_flow_is_not_blamed_on_it(tmp_path):
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_out"]), helper.make_node("Add", ["x", "one"], ["x_out"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("x", FLOAT, [4])],
        [helper.make_tensor_value_info("go_out", TensorProto.BOOL, []), helper.make_tensor_value_info("x_out", FLOAT, [4])],
        [numpy_helper.from_array(np.ones(4, np.float32), "one")])

    def build(scale):
        return small_models.model(
            [("Loop", ["count", "yes", "input"], ["looped"], {"name": "loop", "body": body}),
             ("Mul", ["looped", "scale"], ["output"], {"name": "mul"})],
            [small_models.value("input", shape=[4])], [small_models.value("output", shape=[4])],
            [numpy_helper.from_array(np.array(3), "count"), numpy_helper.from_array(np.array(True), "yes"),
             numpy_helper.from_array(np.full(4, scale, np.float32), "scale")])

    result = compare(saved(build(2), tmp_path / "a.onnx"), saved(build(3), tmp_path / "b.onnx"))
    assert result["first_over"]["node"] == "mul"
    assert result["worst"] == ["mul"]


# ---------------------------------------------------------------- quantised models
class Reader:
    def __init__(self, name, shape, count=4):
        self.samples = iter([{name: np.random.default_rng(i).random(shape, np.float32)} for i in range(count)])

    def get_next(self):
        return next(self.samples, None)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_models_that_onnxruntime_quantised_are_compared_behind_their_quantisers(zoo, tmp_path, form):
    quantization = pytest.importorskip("onnxruntime.quantization")
    good = saved(zoo("tiny_resnet"), tmp_path / "good.onnx")
    quantization.quantize_static(good, tmp_path / "int8.onnx", Reader("input", (1, 3, 32, 32)),
                                 quant_format=quantization.QuantFormat[form], per_channel=True)
    result = compare(good, tmp_path / "int8.onnx", "--samples", 2)
    assert result["quantized"]
    assert result["shared"] >= 45
    rows = {t["name"]: t for t in result["tensors"]}
    assert rows["output"]["sqnr_db"] > 8
    for row in rows.values():
        assert row["local"]["sqnr_db"] is None or row["local"]["sqnr_db"] > 8, row["name"]
    renamed = {row["name_b"].removeprefix(row["name"]) for row in rows.values()}
    assert "_DequantizeLinear_Output" in renamed or form == "QOperator"
    assert all(row["type_a"] == row["type_b"] for row in rows.values())
    assert any(row["at_outputs"] is not None for row in rows.values())


def test_dynamically_quantised_models_keep_their_names(zoo, tmp_path):
    quantization = pytest.importorskip("onnxruntime.quantization")
    good = saved(zoo("tiny_bert"), tmp_path / "good.onnx")
    quantization.quantize_dynamic(good, tmp_path / "int8.onnx")
    result = compare(good, tmp_path / "int8.onnx")
    assert result["quantized"] and result["only_a"] == 0
    assert any(t["quantized"] and t["op"] == "MatMul" for t in result["tensors"])


def test_the_layer_that_a_quantiser_spoilt_is_to_be_left_in_float(zoo, tmp_path):
    good = saved(zoo("tiny_resnet"), tmp_path / "good.onnx")
    model = zoo("tiny_resnet_int8")
    layers = [n for n in model.graph.node if n.op_type == "Conv"]
    victim = layers[len(layers) // 2]
    weights = constants(model.graph)
    scale = next(n for n in model.graph.node if n.output[0] == victim.input[1]).input[1]  # of its weights
    damage(weights[scale])
    result = compare(good, saved(model, tmp_path / "bad.onnx"), "--samples", 2)
    assert result["leave_in_float"][0] == victim.name
    assert victim.name in {n.name for n in onnx.load(good).graph.node}


def test_a_goal_in_decibels_asks_for_more_layers_than_a_lower_one(zoo, tmp_path):
    good, int8 = (saved(zoo(name), tmp_path / f"{name}.onnx") for name in ("tiny_resnet", "tiny_resnet_int8"))
    few, many = (compare(good, int8, "--bound", f"{db}dB")["leave_in_float"] for db in (25, 40))
    assert 0 < len(few) < len(many)
    assert many[: len(few)] == few


# ---------------------------------------------------------------- another runtime
@pytest.mark.parametrize("name", ["tiny_resnet", "tiny_bert", "tiny_loop", "tiny_text"])
def test_onnxruntime_is_one_side(zoo, tmp_path, name):
    pytest.importorskip("onnxruntime")
    path = saved(zoo(name), tmp_path / "model.onnx")
    result = compare(path, "--against", "onnxruntime:opt=off", "--fail-above", "90dB")
    assert result["only_a"] == 0
    assert all(not t["different"] and not t["missing"] for t in result["tensors"])
    assert result["first_over"] is None
    assert all(t["local"] is not None for t in result["tensors"])


def test_a_runtime_that_is_not_installed_is_named_with_the_command_that_installs_it(zoo, tmp_path):
    path = saved(zoo("tiny_mlp"), tmp_path / "model.onnx")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S \"$@\"\n")
    python.chmod(0o755)
    done = subprocess.run([PROGRAM, "compare", path, "--against", "onnxruntime", "--python", python],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert "onnxruntime" in done.stderr and done.stderr.count("\n") == 1


def test_values_that_another_runtime_does_not_return_are_not_compared(zoo, tmp_path):
    pytest.importorskip("onnxruntime")
    rows = {t["name"]: t for t in compare(saved(zoo("tiny_sequence"), tmp_path / "m.onnx"), "--against",
                                          "onnxruntime")["tensors"]}
    assert rows["parts"]["missing"] and not rows["parts"]["over"] and rows["parts"]["samples"] == 0
    assert rows["joined"]["samples"] == 1


# ---------------------------------------------------------------- numbers, shapes, names
def two_nodes(bias, shape=(2, 3), names=("x", "y", "z"), op="Add"):
    x, y, z = names
    return small_models.model([(op, [x, "bias"], [y], {"name": "first"}), ("Neg", [y], [z], {"name": "second"})],
                              [small_models.value(x, shape=list(shape))], [small_models.value(z)],
                              [numpy_helper.from_array(np.asarray(bias), "bias")])


def test_nan_and_infinities_are_counted_and_left_out_of_the_figures(tmp_path):
    good = np.zeros((2, 3), np.float32)
    bad = np.array([[np.nan, np.inf, 0], [0, 0.5, 0]], np.float32)
    result = compare(saved(two_nodes(good), tmp_path / "a.onnx"), saved(two_nodes(bad), tmp_path / "b.onnx"))
    row = result["tensors"][0]
    assert (row["nan_a"], row["nan_b"], row["inf_a"], row["inf_b"], row["not_finite"]) == (0, 1, 0, 1, 2)
    assert row["max_abs"] == pytest.approx(0.5) and row["mean_abs"] == pytest.approx(0.125)
    assert row["over"] and result["first_over"]["node"] == "first"
    same = compare(tmp_path / "b.onnx", tmp_path / "b.onnx")["tensors"][0]
    assert same["nan_a"] == 1 and same["not_finite"] == 0 and not same["over"] and same["sqnr_db"] is None


def test_figures_are_those_of_their_formulas(tmp_path):
    rng = np.random.default_rng(3)
    x, noise = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal((2, 3)).astype(np.float32) / 100
    a, b = x.astype(np.float64), (x + noise).astype(np.float64)
    np.savez(tmp_path / "x.npz", x=x)
    row = compare(saved(two_nodes(np.zeros((2, 3), np.float32)), tmp_path / "a.onnx"),
                  saved(two_nodes(noise), tmp_path / "b.onnx"), "-i", tmp_path / "x.npz")["tensors"][0]
    d = a - b
    assert row["max_abs"] == pytest.approx(np.abs(d).max(), rel=1e-6)
    assert row["mean_abs"] == pytest.approx(np.abs(d).mean(), rel=1e-6)
    assert row["rms"] == pytest.approx(np.sqrt((d * d).mean()), rel=1e-6)
    assert row["relative"] == pytest.approx(np.sqrt((d * d).sum() / (a * a).sum()), rel=1e-6)
    assert row["sqnr_db"] == pytest.approx(10 * np.log10((a * a).sum() / (d * d).sum()), rel=1e-6)
    assert row["cosine"] == pytest.approx((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()), rel=1e-6)


def test_other_shapes_are_reported_as_such(tmp_path):
    result = compare(saved(two_nodes(np.zeros((2, 3), np.float32)), tmp_path / "a.onnx"),
                     saved(two_nodes(np.zeros((4, 2, 3), np.float32)), tmp_path / "b.onnx"), "--fail-above", "1dB",
                     status=3)
    row = result["tensors"][0]
    assert row["different"] and row["over"]
    assert (row["type_a"], row["type_b"]) == ("f32[2, 3]", "f32[4, 2, 3]")


def test_layers_of_another_width_have_no_error_of_their_own_and_the_others_have(tmp_path):
    def build(width, scale):
        rng = np.random.default_rng(0)
        first, second = rng.standard_normal((8, 16)).astype(np.float32), rng.standard_normal((16, 4)).astype(np.float32)
        return small_models.model(
            [("MatMul", ["x", "w1"], ["narrow"], {"name": "first"}), ("Relu", ["narrow"], ["relu"], {"name": "relu"}),
             ("MatMul", ["relu", "w2"], ["joined"], {"name": "second"}), ("Mul", ["joined", "scale"], ["z"], {"name": "mul"}),
             ("Neg", ["z"], ["out"], {"name": "neg"})],
            [small_models.value("x", shape=[2, 8])], [small_models.value("out")],
            [numpy_helper.from_array(first[:, :width], "w1"), numpy_helper.from_array(second[:width], "w2"),
             numpy_helper.from_array(np.float32(scale), "scale")])

    rows = {t["node"]: t for t in compare(saved(build(16, 1), tmp_path / "a.onnx"), saved(build(12, 1.01), tmp_path / "b.onnx"),
                                          "--samples", 2)["tensors"]}
    assert rows["first"]["different"] and rows["relu"]["different"]
    assert rows["second"]["local"] is None and not rows["second"]["different"]
    assert rows["mul"]["local"]["sqnr_db"] == pytest.approx(40, abs=0.1)
    assert rows["neg"]["local"]["sqnr_db"] is None and rows["neg"]["local"]["mismatches"] == 0


def test_elements_of_integers_are_equal_or_not(tmp_path):
    def build(bias):
        return small_models.model([("Add", ["x", "bias"], ["y"])], [small_models.value("x", small_models.INT64, [3])],
                                  [small_models.value("y", small_models.INT64, [3])],
                                  [numpy_helper.from_array(np.array(bias, np.int64), "bias")])

    large = 2**60  # too large for a double to tell it from its neighbour
    row = compare(saved(build([0, large, 5]), tmp_path / "a.onnx"),
                  saved(build([0, large + 1, 5]), tmp_path / "b.onnx"))["tensors"][0]
    assert row["exact"] and row["over"]
    assert (row["mismatches"], row["elements"]) == (1, 3)


@pytest.mark.parametrize(("kind", "measured"), [(np.uint8, True), (np.int8, True), (np.int32, False)])
def test_bytes_are_measured_and_other_integers_are_equal_or_not(tmp_path, kind, measured):
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))

    def build(step):
        bias = np.zeros(1000, kind)
        bias[7] = step
        return small_models.model([("Add", ["x", "bias"], ["y"])], [small_models.value("x", code, [1000])],
                                  [small_models.value("y", code, [1000])], [numpy_helper.from_array(bias, "bias")])

    np.savez(tmp_path / "x.npz", x=np.full(1000, 40, kind))
    a, b = saved(build(0), tmp_path / "a.onnx"), saved(build(1), tmp_path / "b.onnx")
    words = a, b, "-i", tmp_path / "x.npz"
    result = compare(*words, "--fail-above", "20dB", status=0 if measured else 3)
    row = result["tensors"][0]
    assert row["exact"] != measured and row["over"] != measured and row["mismatches"] == 1
    assert row["sqnr_db"] == pytest.approx(20 * np.log10(40) + 30)
    assert (result["first_over"] is None) == measured and not result["agree"]
    for limit in ("70dB", "0.5", "0.01%"):
        compare(*words, "--fail-above", limit, status=3)
    compare(*words, "--fail-above", "1", status=0 if measured else 3)
    compare(a, a, "-i", tmp_path / "x.npz", "--fail-above", "200dB")


@pytest.mark.parametrize("names", [("x", "file", "a b"), ("in/put", "a,\"b", "=1+2"), ("x", "y\u00e9\n", "z\t")])
def test_odd_names_survive(tmp_path, names):
    good, bad = (saved(two_nodes(np.full((2, 3), v, np.float32), names=names), tmp_path / f"{v}.onnx") for v in (0, 1))
    result = compare(good, bad)
    assert [t["name"] for t in result["tensors"]] == list(names[1:])
    compare(good, bad, "--csv", tmp_path / "c.csv")
    rows = list(csv.reader((tmp_path / "c.csv").open(newline="", encoding="utf-8")))
    assert [row[1].removeprefix("'") for row in rows[1:] if row[0] == "tensor"] == list(names[1:])
    if importable("onnxruntime"):
        assert compare(good, "--against", "onnxruntime")["first_over"] is None


def importable(name):
    import importlib.util
    return importlib.util.find_spec(name) is not None


def test_inputs_and_outputs_may_have_other_names_in_the_second_model(tmp_path):
    first = saved(two_nodes(np.zeros((2, 3), np.float32)), tmp_path / "a.onnx")
    second = saved(two_nodes(np.zeros((2, 3), np.float32), names=("renamed", "y", "result")), tmp_path / "b.onnx")
    result = compare(first, second, "--fail-above", "100dB")
    assert result["first_over"] is None
    assert [(t["name"], t["name_b"]) for t in result["tensors"]] == [("y", "y"), ("z", "result")]


def test_an_output_that_the_second_model_lacks_is_a_failure(tmp_path):
    first, second = two_nodes(np.zeros((2, 3), np.float32)), two_nodes(np.zeros((2, 3), np.float32))
    first.graph.output.append(small_models.value("y"))
    del second.graph.node[1], second.graph.output[0]
    second.graph.output.append(small_models.value("y"))
    result = compare(saved(first, tmp_path / "a.onnx"), saved(second, tmp_path / "b.onnx"), "--fail-above", "1dB", status=3)
    assert result["note"] == "output 'z' is not in the other model"


def test_nodes_without_a_name_are_called_by_what_they_produce(tmp_path):
    model = two_nodes(np.zeros((2, 3), np.float32))
    for node in model.graph.node:
        node.name = ""
    good = saved(model, tmp_path / "a.onnx")
    damaged = two_nodes(np.ones((2, 3), np.float32))
    for node in damaged.graph.node:
        node.name = ""
    assert compare(good, saved(damaged, tmp_path / "b.onnx"))["worst"] == ["y"]


def test_half_precision_models_are_compared_with_their_floats(tmp_path):
    half = two_nodes(np.zeros((2, 3), np.float16), op="Add")
    half.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    half.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    # A model of f16 takes inputs of f16: the one of f32 casts them.
    wide = small_models.model([("Cast", ["x"], ["wide"], {"to": FLOAT}), ("Add", ["wide", "bias"], ["y"]), ("Neg", ["y"], ["z"])],
                              [small_models.value("x", TensorProto.FLOAT16, [2, 3])], [small_models.value("z")],
                              [numpy_helper.from_array(np.zeros((2, 3), np.float32), "bias")])
    result = compare(saved(wide, tmp_path / "a.onnx"), saved(half, tmp_path / "b.onnx"))
    assert [(t["type_a"], t["type_b"]) for t in result["tensors"]] == [("f32[2, 3]", "f16[2, 3]")] * 2
    assert all(t["local"] is not None for t in result["tensors"])
    assert result["first_over"] is None


# ---------------------------------------------------------------- samples
def test_every_kind_of_samples_gives_the_same_sums(tmp_path):
    good, bad = (saved(two_nodes(np.full((2, 3), v, np.float32)), tmp_path / f"{v}.onnx") for v in (0, 1))
    data = np.random.default_rng(1).random((5, 2, 3), np.float32)
    np.savez(tmp_path / "deep.npz", x=data)
    np.savez(tmp_path / "long.npz", x=data.reshape(10, 3))
    (tmp_path / "files").mkdir()
    (tmp_path / "sets").mkdir()
    for i, sample in enumerate(data):
        np.savez(tmp_path / "files" / f"{i}.npz", x=sample)
        folder = tmp_path / "sets" / f"test_data_set_{i}"
        folder.mkdir()
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(sample, "x").SerializeToString())
    found = [compare(good, bad, "-i", tmp_path / name) for name in ("deep.npz", "long.npz", "files", "sets")]
    found += [compare(good, bad, "-i", f"x={tmp_path / name}") for name in ("deep.npz", "long.npz")]
    found.append(json.loads(sonde.compare(str(good), str(bad), {"x": data})._accuracy.write(".json")))
    assert [f["samples"] for f in found] == [5] * 7
    for f in found[1:]:
        assert [t["relative"] for t in f["tensors"]] == [t["relative"] for t in found[0]["tensors"]]
    assert compare(good, bad, "-i", tmp_path / "files", "--samples", 2)["samples"] == 2


def test_memory_for_tensors_is_bounded_and_changes_no_figure(zoo, tmp_path):
    good, int8 = (saved(zoo(name), tmp_path / f"{name}.onnx") for name in ("tiny_cnn", "tiny_cnn_int8"))
    one, many = (compare(good, int8, "--group-bytes", size, "--samples", 2) for size in ("100M", "1"))
    for a, b in zip(one["tensors"], many["tensors"], strict=True):
        assert a["sqnr_db"] == pytest.approx(b["sqnr_db"], abs=1)
        assert a["samples"] == b["samples"] == 2


def test_a_symbolic_batch_is_cut_into_samples_as_for_calibration(tmp_path):
    def build(scale):
        return small_models.model(
            [("Mul", ["x", "scale"], ["y"], {"name": "mul"})],
            [small_models.value("x", shape=["N", 3])], [small_models.value("y", shape=["N", 3])],
            [numpy_helper.from_array(np.full(3, scale, np.float32), "scale")])

    good, bad = saved(build(1), tmp_path / "a.onnx"), saved(build(2), tmp_path / "b.onnx")
    data = np.random.default_rng(1).random((5, 3), np.float32)
    np.savez(tmp_path / "all.npz", x=data)
    np.savez(tmp_path / "whole.npz", x=data[None])
    (tmp_path / "files").mkdir()
    np.savez(tmp_path / "files" / "0.npz", x=data[:2])
    np.savez(tmp_path / "files" / "1.npz", x=data[2:])
    path = tmp_path / "all.npz"
    for most in (2, 5, 9):
        first = np.abs(data[:most]).max()
        results = [compare(good, bad, "-i", path, "--samples", most),
                   compare(good, bad, "-i", tmp_path / "files", "--samples", most)]
        results.append(sonde.compare(str(good), str(bad), str(path), samples=most).summary)
        results.append(sonde.compare(str(good), str(bad), lambda: ({"x": row[None]} for row in data), samples=most).summary)
        assert [r["samples"] for r in results] == [min(most, 5)] * 4
        assert all(r["tensors"][0]["max_abs"] == pytest.approx(first) for r in results[:2])
        assert results[0]["tensors"][0]["type_a"] == "f32[1, 3]"
    whole = compare(good, bad, "-i", tmp_path / "whole.npz")
    assert whole["samples"] == 1 and whole["tensors"][0]["type_a"] == "f32[5, 3]"


# ---------------------------------------------------------------- nothing, rounding
def test_nothing_compared_is_an_error(tmp_path):
    def build(scale):
        return small_models.model(
            [("Mul", ["x", "scale"], ["y"], {"name": "mul"})],
            [small_models.value("x", shape=["N", "M"])], [small_models.value("y", shape=["N", "M"])],
            [numpy_helper.from_array(np.full(1, scale, np.float32), "scale")])

    good, bad = saved(build(1), tmp_path / "a.onnx"), saved(build(2), tmp_path / "b.onnx")
    np.savez(tmp_path / "none.npz")
    np.savez(tmp_path / "no_samples.npz", x=np.zeros((0, 3), np.float32))
    np.savez(tmp_path / "no_elements.npz", x=np.zeros((2, 0), np.float32))
    for words, status, said in [
        (["-i", tmp_path / "none.npz"], 1, "contains no arrays"),
        (["-i", tmp_path / "no_samples.npz"], 1, "0 samples"),
        (["-i", tmp_path / "no_elements.npz"], 1, "nothing was compared"),
        (["--samples", "0"], 2, "nothing would be compared"),
    ]:
        done = subprocess.run([PROGRAM, "compare", good, bad, *words, "--fail-above", "1%", "--json", tmp_path / "c.json"],
                              capture_output=True, text=True)
        assert done.returncode == status and said in done.stderr, (words, done)
        assert not (tmp_path / "c.json").exists()
    for arguments in ({"inputs": str(tmp_path / "none.npz")}, {"inputs": {"x": np.zeros((0, 3), np.float32)}},
                      {"inputs": {"x": np.zeros((2, 0), np.float32)}}, {"samples": 0}, {"inputs": []}):
        with pytest.raises(sonde.InvalidArgument, match="nothing w|0 samples|no samples"):
            sonde.compare(str(good), str(bad), **arguments)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_outputs_without_a_number_in_both_models_are_an_error(tmp_path, odd):
    paths = {}
    for name, bias in [("all", [odd] * 6), ("other", [odd] * 6), ("some", [odd] * 5 + [1]), ("none", [0] * 6)]:
        paths[name] = saved(two_nodes(np.array(bias, np.float32).reshape(2, 3)), tmp_path / f"{name}.onnx")
    words = [PROGRAM, "compare", paths["all"], paths["other"], "--json", tmp_path / "c.json"]
    for more in ([], ["--fail-above", "1%"]):
        done = subprocess.run([*words, *more], capture_output=True, text=True)
        assert done.returncode == 1 and "agree" not in done.stdout and not (tmp_path / "c.json").exists()
        assert "nothing was compared: every element of the outputs is NaN or infinite in A and in B" in done.stderr
    with pytest.raises(sonde.InvalidArgument, match="nothing was compared: every element .* NaN or infinite"):
        sonde.compare(str(paths["all"]), str(paths["other"]))
    assert compare(paths["some"], paths["some"], "--fail-above", "1%")["compared"] == 6
    for pair in (("all", "none"), ("none", "all")):  # a difference, which is found where it is
        result = compare(*map(paths.get, pair), "--fail-above", "1%", status=3)
        assert result["first_over"]["node"] == "first" and result["compared"] == 6


@pytest.mark.parametrize("name", ["tiny_resnet", "tiny_bert", "tiny_cnn"])
def test_rounding_is_no_error_of_an_operator(zoo, tmp_path, name):
    path = saved(zoo(name), tmp_path / "m.onnx")
    result = compare(path, "--against", "sonde:no-optimize")
    assert result["worst"] == [] and result["agree"] and result["complete"]
    assert any(t["mismatches"] for t in result["tensors"])
    said = subprocess.run([PROGRAM, "compare", path, "--against", "sonde:no-optimize"], capture_output=True, text=True,
                          check=True).stdout
    assert said.endswith("A and B agree: they differ by rounding alone\n") and "add most" not in said
    found = sonde.compare(str(path), str(path))
    assert found.summary["agree"] and found.worst == [] and not found.weights
    assert not sonde.compare(str(path), precision="f32,bf16").summary["agree"]


@pytest.mark.parametrize("limit", ["1dB", "1e30", "99%"])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_an_output_that_is_not_finite_fails_every_limit(tmp_path, limit, odd):
    weight = np.zeros((2, 3), np.float32)
    good = saved(two_nodes(weight), tmp_path / "a.onnx")
    weight[0, 0] = odd
    bad = saved(two_nodes(weight), tmp_path / "b.onnx")
    for pair in ((good, bad), (bad, good)):
        done = subprocess.run([PROGRAM, "compare", *pair, "-q", "--fail-above", limit], capture_output=True, text=True)
        assert done.returncode == 3 and "NaN or infinite" in done.stderr


def test_numbers_whose_squares_overflow_fail_every_limit(tmp_path):
    def build(scale):
        return small_models.model(
            [("Mul", ["x", "scale"], ["y"], {"name": "mul"})],
            [small_models.value("x", TensorProto.DOUBLE, [3])], [small_models.value("y", TensorProto.DOUBLE, [3])],
            [numpy_helper.from_array(np.full(3, scale, np.float64), "scale")])

    good, bad = saved(build(1e200), tmp_path / "a.onnx"), saved(build(-1e200), tmp_path / "b.onnx")
    done = subprocess.run([PROGRAM, "compare", good, bad, "-q", "--fail-above", "1dB"], capture_output=True, text=True)
    assert done.returncode == 3


# ---------------------------------------------------------------- the page
def test_the_commands_of_the_page_run(tmp_path):
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "compare.md").read_text()
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", page, re.S | re.M) for line in block.splitlines()]
    assert len(lines) >= 5
    env = {**os.environ, "SONDE_BENCH_PYTHON": sys.executable}
    for line in lines:
        if "onnxruntime" in line and not importable("onnxruntime"):
            continue
        command = [PROGRAM, *shlex.split(line, comments=True)[1:]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
        assert done.returncode == 0, f"{line}: {done.stderr}"


# ---------------------------------------------------------------- Python
def test_python_gives_rows_a_dataframe_and_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    result = sonde.compare("zoo:tiny_cnn", precision="f32,bf16", samples=2,
                           output=[tmp_path / "c.json", tmp_path / "c.csv"])
    frame = result.dataframe()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == len(result.rows) == result.summary["shared"]
    assert frame["sqnr_db"].between(20, 90).all()
    assert result.outputs[0]["name"] == "output"
    assert result.leave_in_float == []
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "sonde.compare/1"
    assert len((tmp_path / "c.csv").read_text().splitlines()) == 1 + len(frame)


def test_python_compares_with_onnxruntime():
    pytest.importorskip("onnxruntime")
    result = sonde.compare("zoo:tiny_bert", against="onnxruntime:opt=off")
    assert all(row["sqnr_db"] > 90 and not row["different"] for row in result.rows)
    with pytest.raises(sonde.InvalidArgument, match="opt=off"):
        sonde.compare("zoo:tiny_bert", against="onnxruntime:fast")


def test_an_exception_of_the_other_runtime_comes_through(monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime")

    def broken(*_, **__):
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(onnxruntime, "InferenceSession", broken)
    with pytest.raises(ZeroDivisionError, match="broken"):
        sonde.compare("zoo:tiny_mlp", against="onnxruntime")


def test_python_takes_samples_from_a_function():
    calls = []

    def samples():
        calls.append(1)
        return ({"input": np.random.default_rng(i).random((1, 16), np.float32)} for i in range(3))

    result = sonde.compare("zoo:tiny_mlp", inputs=samples, precision="f32,bf16")
    assert result.summary["samples"] == 3 and len(calls) >= 2


@pytest.mark.parametrize(("arguments", "words"), [
    ({}, "second model"),
    ({"precision": "f32,f8"}, "expected one or two of"),
    ({"precision": "f32,bf16", "bound": "loud"}, "30dB"),
    ({"against": "torch"}, "only with onnxruntime"),
    ({"precision": "f32,bf16", "inputs": {"nothing": np.zeros(3)}}, "no input 'nothing'"),
    ({"precision": "f32,bf16", "inputs": []}, "no samples"),
    ({"precision": "f32,bf16", "inputs": 3}, "expected a dict"),
    ({"precision": "f32,bf16", "output": "x.txt"}, r"\.json or \.csv"),
])
def test_mistakes_are_said(arguments, words):
    with pytest.raises(sonde.Error, match=words):
        sonde.compare("zoo:tiny_mlp", **arguments)


def test_a_half_written_file_is_never_left(tmp_path):
    target = tmp_path / "c.json"
    target.write_text("old")
    done = subprocess.run(["bash", "-c", f"ulimit -f 1; exec {PROGRAM} compare zoo:tiny_resnet zoo:tiny_resnet_int8 -q "
                           f"--json {target}"], capture_output=True, text=True)
    assert done.returncode == 1 and "cannot write" in done.stderr
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["c.json"]
