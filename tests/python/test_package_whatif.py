# SPDX-License-Identifier: Apache-2.0
"""sonde.whatif: figures as a DataFrame. No test depends on how fast anything is."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sonde

pandas = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sonde._sonde.whatif_cache_reset()


def test_columns_add_up_to_the_totals():
    frame = sonde.whatif("zoo:tiny_cnn", scenarios=["sparse90", "int8", "batch=2"], runs=2, warmup=0)
    scenarios = frame.attrs["scenarios"]
    assert [s["scenario"] for s in scenarios] == ["now", "sparse90", "int8", "batch=2", "best mix"]
    for scenario in scenarios:
        assert frame[scenario["scenario"]].sum() == pytest.approx(scenario["total_ms"])
        assert scenario["low"] <= scenario["high"] and scenario["weight_bytes"] > 0
    assert set(frame[~frame.bracket].fastest) <= {"now", "sparse90", "int8"}


def test_no_scenario_is_fastest_for_what_it_does_not_change():
    """However the times of two equal operators vary."""
    for _ in range(5):
        frame = sonde.whatif("zoo:tiny_mlp", scenarios="sparse90,int8,int4", runs=1, warmup=0, cache=False)
        softmax = frame[frame.op_type == "Softmax"]
        assert len(softmax) == 1 and list(softmax.fastest) == ["now"]


def test_results_say_when_and_where_they_were_measured():
    first, again = (sonde.whatif("zoo:tiny_mlp", scenarios="sparse90", runs=2).attrs["scenarios"] for _ in range(2))
    for scenario in first:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", scenario["measured"])
        assert scenario["machine"].startswith(socket.gethostname())
    assert again[1]["cached"]
    assert [(s["measured"], s["machine"]) for s in again] == [(s["measured"], s["machine"]) for s in first]


def test_every_way_of_rows_has_the_same_totals():
    frames = [sonde.whatif("zoo:tiny_mlp", scenarios="int8", runs=2, by=by) for by in ("op", "node", "shape")]
    assert len({len(frame) for frame in frames}) > 1
    for frame in frames:
        assert frame["int8"].sum() == pytest.approx(frames[0]["int8"].sum())
    totals = sonde.whatif("zoo:tiny_mlp", scenarios="int8", runs=2, by="scenario")
    assert list(totals.scenario) == ["now", "int8", "best mix"] and totals.cached.all()


def test_joined_forms_are_measured_only_if_each_is_that_of_a_weight():
    """Products of f64 are pruned, but have no form of 8 bits."""
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((64, 64)), "w")
    ends = [[helper.make_tensor_value_info(name, TensorProto.DOUBLE, [4, 64])] for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "net", *ends, [w])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    totals = sonde.whatif(proto, scenarios=["sparse90", "int8", "sparse90+int8"], runs=1, mix=False, by="scenario")
    reasons = dict(zip(totals.scenario, totals.reason, strict=True))
    assert reasons["int8"] == "no weight of the model can have this form"
    assert reasons["sparse90+int8"] == "no weight of the model can have one of these forms"
    assert reasons["sparse90"] == ""


def test_without_a_cache_everything_is_measured(tmp_path):
    for _ in range(2):
        frame = sonde.whatif("zoo:tiny_mlp", scenarios="int8", runs=1, cache=False, mix=False, by="scenario")
        assert not frame.cached.any()
    assert not (tmp_path / "cache").exists()
    sonde.whatif("zoo:tiny_mlp", scenarios="int8", runs=1, cache=tmp_path / "mine", mix=False)
    assert len(list((tmp_path / "mine").iterdir())) == 2


def test_files_have_what_the_frame_has(tmp_path):
    paths = [tmp_path / name for name in ("w.csv", "w.xlsx", "w.json")]
    frame = sonde.whatif("zoo:tiny_cnn_int8", scenarios="sparse90,int4", runs=2, by="node", file=paths)
    saved = json.loads(paths[2].read_text())
    assert saved["schema"] == "sonde.whatif/1" and len(saved["operators"]) == len(frame)
    assert saved["scenarios"][2]["reason"] and saved["scenarios"][2]["total_ms"] is None
    table = pandas.read_csv(paths[0])  # one table: every row has every column
    scenarios, operators = table[table.kind == "scenario"], table[table.kind == "operator"]
    assert list(scenarios.name) == ["now", "sparse90", "int4", "best mix"]
    assert list(operators.name) == list(frame.name)
    assert scenarios["total (ms)"][0] == pytest.approx(operators["now (ms)"].sum(), abs=1e-5)
    assert operators["total (ms)"].isna().all() and scenarios["now (ms)"].isna().all()
    assert "no weight" in scenarios.note[2]
    book = zipfile.ZipFile(paths[1])
    assert book.testzip() is None and "xl/worksheets/sheet2.xml" in book.namelist()
    sheet = book.read("xl/worksheets/sheet2.xml").decode()
    assert f"SUM(G2:G{len(frame) + 1})" in sheet
    with pytest.raises(sonde.InvalidArgument, match="xlsx"):
        sonde.whatif("zoo:tiny_mlp", scenarios="sparse90,int4", runs=2, file=tmp_path / "w.txt")


def test_nodes_are_chosen_as_in_quantize(tmp_path):
    (tmp_path / "names, of nodes.txt").write_text("/fc1/Gemm\n")
    file = f"@{tmp_path}/names, of nodes.txt"
    for only, changed in [("/fc*", 2), ("/fc2/Gemm", 1), (["/fc2/*", file], 2), (file, 1), ((), 2)]:
        frame = sonde.whatif("zoo:tiny_mlp", scenarios="int8", only=only, runs=1, by="scenario", mix=False)
        assert frame.changed[1] == changed
    with pytest.raises(sonde.InvalidArgument, match="/fc1/Gemm"):  # a name like it
        sonde.whatif("zoo:tiny_mlp", scenarios="int8", only=["/fc2/*", "/fc7/Gemm"])


def test_bad_arguments_are_refused():
    for arguments, words in [
        ({"scenarios": "int9"}, "int9"),
        ({"scenarios": ["int8", ""]}, "empty part"),
        ({"only": "/nobody"}, "/nobody"),
        ({"by": "kernel"}, "kernel"),
        ({"runs": 0}, "runs"),
        ({"precision": "int3"}, "int3"),
        ({"threads": -1}, "threads"),
        ({"feeds": {"nobody": np.zeros(3, np.float32)}}, "missing"),
    ]:
        with pytest.raises(sonde.Error, match=words):
            sonde.whatif("zoo:tiny_mlp", **{"scenarios": "int8", **arguments})
    with pytest.raises(TypeError):
        sonde.whatif(3)


def model(weight, batch="N", names=("a", "b")):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], names[0]),
        helper.make_node("Relu", ["y"], ["z"], names[1]),
    ]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, m]) for n, m in (("x", 64), ("z", 32))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_fixed_batch_is_a_reason():
    weight = np.ones((64, 32), np.float32)
    frame = sonde.whatif(model(weight, 1), scenarios="batch=4,int4", runs=1, by="scenario")
    assert "fixed" in frame.reason[1] and np.isnan(frame.total_ms[1]) and frame.reason[2] == ""


def test_other_weights_are_another_question():
    weight = np.ones((64, 32), np.float32)
    first = sonde.whatif(model(weight), scenarios="sparse90", runs=1, mix=False, by="scenario")
    weight[:60] = 0
    second = sonde.whatif(model(weight), scenarios="sparse90", runs=1, mix=False, by="scenario")
    assert not first.cached.any() and not second.cached.any()


def test_nodes_without_names_and_with_odd_names_have_rows(tmp_path):
    weight = np.ones((64, 32), np.float32)
    for names in (("", ""), ("=1+1", 'q"\n,'), ("12", "12"), ("\u00e4" * 300, "\t")):
        path = tmp_path / "odd.csv"
        frame = sonde.whatif(model(weight, names=names), scenarios="int8,sparse90", runs=1, by="node", file=path)
        row = frame[frame.op_type == "MatMul"]
        assert len(row) == 1 and row.node.iloc[0] == names[0]
        with open(path, newline="") as file:
            lines = [line for line in csv.reader(file) if line[2] == "MatMul"]
        assert lines[0][3] == ("'" if names[0].startswith("=") else "") + names[0]


def test_ctrl_c_ends_it_and_keeps_what_was_measured(tmp_path):
    code = "import sonde; print('ready', flush=True); sonde.whatif('zoo:tiny_cnn', scenarios='int8', runs=1000000)"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    run = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate()
    assert b"KeyboardInterrupt" in errors


def test_models_with_quantised_weights_and_bodies_are_measured():
    frame = sonde.whatif("zoo:tiny_cnn_int8", scenarios="sparse90,int8", runs=1, by="scenario")
    assert frame.changed[1] > 0 and "no weight" in frame.reason[2]
    weight = np.ones((64, 32), np.float32)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["t"], "inner")],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["s"], ["e"], "other")],
        "else",
        [],
        [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"], "outer"),
        helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=other),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(weight, "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = {"x": np.ones((2, 64), np.float32), "c": np.array(True)}
    frame = sonde.whatif(made, feeds, scenarios="sparse90,int8,int8-dynamic,int4", runs=1, by="scenario")
    # As with `sonde quantize`, int8 leaves bodies in float; the other forms are everywhere.
    assert (frame.reason == "").all() and list(frame.changed)[1:5] == [2, 1, 2, 2]


def test_weights_of_bodies_that_stay_are_not_counted():
    """zoo:tiny_loop has its products inside a Loop."""
    frame = sonde.whatif("zoo:tiny_loop", scenarios="int8,int4,int8-dynamic", runs=1, by="scenario")
    assert all("no weight" in reason for reason in frame.reason[1:4]) and (frame.changed == 0).all()


def test_the_cache_returns_exactly_what_was_measured():
    first, second = (sonde.whatif("zoo:tiny_cnn", scenarios="sparse90,int8", runs=3, by="node") for _ in range(2))
    pandas.testing.assert_frame_equal(first, second, check_exact=True)
    assert second.attrs["scenarios"][1]["cached"]


def test_every_operator_with_a_weight_says_its_shape():
    frame = sonde.whatif("zoo:tiny_cnn", scenarios="int8", runs=1, by="node", mix=False)
    products = frame[frame.op_type.isin(["Conv", "Gemm"])]
    assert len(products) == 5 and (products.weight != "").all()
    assert "16x1x3x3" in set(products.weight)  # of a depthwise convolution
