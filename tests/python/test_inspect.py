# SPDX-License-Identifier: Apache-2.0
"""What `sonde inspect` says: figures that add up, JSON whatever the names are, columns that hold."""

import json
import os
import re
import subprocess
import unicodedata

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import small_models
from patience import PATIENCE
import sonde
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

HOSTILE = ['quo"te', "back\\slash", "tab\there", "esc\x1b[31m", "c1\u009b31m", "new\nline", "名前がとても長い入力",
           "e\u0301", "🙂 picture", "x" * 300]


def inspect(model, *options, columns=None):
    env = {key: text for key, text in os.environ.items() if key != "COLUMNS"}
    if columns:
        env["COLUMNS"] = str(columns)
    done = subprocess.run([PROGRAM, "inspect", str(model), *options], capture_output=True, text=True, timeout=PATIENCE,
                          env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def report(model, *options):
    return json.loads(inspect(model, "--json", "-", *options))


def save(path, model):
    path.write_bytes(model.SerializeToString())
    return path


def width(text):
    """Columns on a terminal, as another library counts them."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def named(path, names):
    """Every name is an input, an output, a node and metadata."""
    nodes = [("Relu", [n], [n + " out"], {"name": n}) for n in names]
    model = small_models.model(nodes, [value(n, shape=["N", 4]) for n in names],
                               [value(n + " out", shape=["N", 4]) for n in names])
    for n in names:
        model.metadata_props.add(key=n, value=n)
    return save(path, model)


def test_json_says_what_the_text_says(tmp_path):
    path = tmp_path / "model.onnx"
    subprocess.run([PROGRAM, "zoo", "save", "tiny_cnn", path], check=True, timeout=PATIENCE, capture_output=True)
    text = inspect(path)
    said = report(path, "--nodes")
    assert said["schema"] == "sonde.inspect/1" and said["optimized"] is True
    assert f"parameters  {said['parameters']:,}" in text and said["parameters"] == 1802
    assert said["file_bytes"] == path.stat().st_size
    for op in said["operators"]:
        assert re.search(rf"^  {op['op']} +{op['count']}$", text, re.M)
    assert sum(op["count"] for op in said["operators"]) == said["nodes"] == len(said["graph"])
    assert said["inputs"] == [{"name": "input", "type": "f32[batch, 3, 32, 32]", "dtype": "f32",
                               "shape": ["batch", 3, 32, 32], "optional": False}]
    assert said["outputs"][0]["shape"] == ["batch", 10]
    memory = said["run"]["memory"]
    parts = ["weights", "packed", "activations", "workspace", "inputs", "outputs"]
    assert memory["peak"] == sum(memory[part] for part in parts) > 0
    assert memory["inputs"] == 3 * 32 * 32 * 4 and memory["outputs"] == 10 * 4
    for part in parts + ["peak"]:
        assert (f"\n  {part} " in text) == (memory[part] > 0)
    assert text.count("peak") == 1
    file = tmp_path / "said.json"
    assert inspect(path, "--json", str(file), "--nodes").count("\nnodes\n") == 1
    assert json.loads(file.read_text()) == said


def test_memory_is_that_of_the_plan_a_run_uses():
    """A convolution, its normalisation and its activation are one step of a run."""
    optimised, plain = (report("zoo:tiny_resnet", *options) for options in ((), ("--no-optimize",)))
    again = report("zoo:tiny_resnet", "--optimized")
    assert optimised["run"] == again["run"] and again["nodes"] < optimised["nodes"] == plain["nodes"]
    assert plain["optimized"] is False
    working = [[r["run"]["memory"][kind] for kind in ("activations", "workspace")] for r in (plain, optimised)]
    assert working[0] != working[1]  # on some CPUs the activations alone are the same
    assert plain["run"]["flops"] > optimised["run"]["flops"]


def test_memory_is_what_a_run_asks_for(tmp_path):
    """A limit just below makes the run say what it wanted."""
    path = tmp_path / "model.onnx"
    x = np.zeros((256, 256), np.float32)
    chain = [("MatMul", ["x", "w"], ["a"]), ("Softmax", ["a"], ["b"]), ("MatMul", ["b", "w"], ["y"])]
    save(path, small_models.model(chain, [value("x", shape=[4096, 256])], [value("y", shape=[4096, 256])],
                                  [numpy_helper.from_array(x, "w")]))
    memory = report(path, "-t", "1")["run"]["memory"]
    done = subprocess.run([PROGRAM, "run", path, "-q", "-t", "1", "--max-memory", "6M"], capture_output=True, text=True,
                          timeout=PATIENCE)
    wanted = re.search(r"needs \d+ bytes \(activations (\d+), workspace (\d+), outputs (\d+)\)", done.stderr)
    assert wanted, done.stderr
    assert [int(n) for n in wanted.groups()] == [memory["activations"], memory["workspace"], memory["outputs"]]


@pytest.mark.parametrize(("onnx_type", "bits"), [(TensorProto.FLOAT, 32), (TensorProto.FLOAT16, 16),
                                                 (TensorProto.DOUBLE, 64), (TensorProto.BFLOAT16, 16),
                                                 (TensorProto.INT4, 4), (TensorProto.UINT8, 8)])
def test_bytes_of_parameters_follow_their_type(tmp_path, onnx_type, bits):
    raw = bytes((7 * 5 * bits + 7) // 8)
    w = helper.make_tensor("w", onnx_type, [7, 5], raw, raw=True)
    cast = ("DequantizeLinear", ["w", "s"], ["f"]) if bits < 16 else ("Cast", ["w"], ["f"], {"to": TensorProto.FLOAT})
    scale = [numpy_helper.from_array(np.float32(1), "s")] if bits < 16 else []
    model = small_models.model([cast, ("MatMul", ["x", "f"], ["y"])], [value("x", shape=[2, 7])],
                               [value("y", shape=[2, 5])], [w, *scale], opset=21)
    said = report(save(tmp_path / "model.onnx", model))
    assert (said["parameters"], said["parameter_bytes"]) == (35, len(raw))
    assert sonde.InferenceSession(tmp_path / "model.onnx")._inspect()["parameter_bytes"] == len(raw)


def test_weights_of_a_few_bits_in_bytes_are_counted_one_by_one(tmp_path):
    node = helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=64, N=6, bits=4,
                            block_size=32)
    graph = helper.make_graph([node], "g", [value("x", shape=[1, 64])], [value("y", shape=[1, 6])],
                              [numpy_helper.from_array(np.zeros((6, 2, 16), np.uint8), "b"),
                               numpy_helper.from_array(np.ones(12, np.float32), "s")])
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    said = report(save(tmp_path / "model.onnx", helper.make_model(graph, opset_imports=opsets, ir_version=9)))
    assert (said["parameters"], said["parameter_bytes"]) == (64 * 6, 64 * 6 // 2)


def test_shared_weights_count_once(tmp_path):
    w = numpy_helper.from_array(np.zeros((4, 4), np.float32), "w")
    twice = [("MatMul", ["x", "w"], ["a"]), ("MatMul", ["a", "w"], ["y"])]
    said = report(save(tmp_path / "model.onnx", small_models.model(
        twice, [value("x", shape=[2, 4])], [value("y", shape=[2, 4])], [w])))
    assert (said["parameters"], said["parameter_bytes"]) == (16, 64)


def test_any_names_give_json(tmp_path):
    said = report(named(tmp_path / "model.onnx", HOSTILE), "--nodes")
    assert [x["name"] for x in said["inputs"]] == HOSTILE
    assert [x["name"] for x in said["graph"]] == HOSTILE
    assert said["metadata"] == {name: name for name in HOSTILE}


def test_bytes_that_are_no_text_give_json(tmp_path):
    path = named(tmp_path / "model.onnx", ["abcd"])
    path.write_bytes(path.read_bytes().replace(b"abcd", b"a\xff\xc3d"))
    done = subprocess.run([PROGRAM, "inspect", path, "--json", "-", "--nodes"], capture_output=True, timeout=PATIENCE)
    if done.returncode == 0:
        json.loads(done.stdout.decode())  # strictly
    else:
        assert b"UTF-8" in done.stderr, done.stderr


def test_columns_hold_whatever_the_names_are(tmp_path):
    path = named(tmp_path / "model.onnx", HOSTILE)
    for columns in (None, 100, 60):
        lines = inspect(path, columns=columns).split("\n\n")
        ports = lines[1].splitlines()
        assert ports[0] == "inputs" and len(ports) == len(HOSTILE) + 1
        starts = {width(line[:line.index("f32[N, 4]")]) for line in ports[1:]}
        assert len(starts) == 1, ports
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for line in ports for c in line)
        if columns:
            assert all(width(line) <= columns for line in ports)
            assert re.fullmatch(r"  x+…x+  f32\[N, 4\]", ports[-1])
        else:
            assert "x" * 300 in ports[-1]


def test_columns_of_operators_hold(tmp_path):
    types = ["Relu", "O" * 80, "演算子"]
    nodes = [helper.make_node(t, ["x"], [f"y{i}"], name=f"n{i}", domain="" if t == "Relu" else "own")
             for i, t in enumerate(types)]
    graph = helper.make_graph(nodes, "g", [value("x", shape=[4])], [value(f"y{i}", shape=[4]) for i in range(3)])
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("own", 1)]
    path = save(tmp_path / "model.onnx", helper.make_model(graph, opset_imports=opsets, ir_version=9))
    for columns in (None, 40):
        rows = re.search(r"operators \(3 nodes\)\n((?:  .*\n)+)", inspect(path, columns=columns))[1].splitlines()
        assert len(rows) == 3 and len({width(row) for row in rows}) == 1
        assert columns is None or width(rows[0]) <= columns


@pytest.mark.parametrize("verb", [["run"], ["run", "-n", "0"], ["run", "-v"], ["run", "--top", "2", "--labels", "labels"],
                                  ["profile", "-n", "2", "--by-node", "--report", "memory"], ["inspect", "--nodes"],
                                  ["op", "--op-type", "Relu"], ["run", "-s", "no\x1bsuch=1"], ["run", "-i", "no\x1bsuch=x"]],
                         ids=" ".join)
def test_no_verb_sends_control_characters_of_names_to_the_terminal(verb, tmp_path):
    nasty = [name.replace("\n", "") + "\x1b]0;title\x07" for name in HOSTILE]
    path = named(tmp_path / "model.onnx", nasty)
    (tmp_path / "labels").write_text("\n".join(nasty))
    done = subprocess.run([PROGRAM, verb[0], path, *verb[1:]], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path)
    assert done.stdout + done.stderr
    assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr)


def test_a_fused_node_names_all_it_stands_for(tmp_path):
    names = [f"{op}_{i}_" + "x" * 400 for i, op in enumerate(["Relu", "Exp", "Neg", "Abs", "Sqrt", "Tanh"])]
    chain = [(n.split("_")[0], ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"], {"name": n}) for i, n in enumerate(names)]
    model = save(tmp_path / "chain.onnx", small_models.model(chain, [value("x", shape=[4])], [value("v6", shape=[4])]))
    (node,) = report(model, "--nodes", "--optimized")["graph"]
    assert node["nodes"] == ", ".join(names)
