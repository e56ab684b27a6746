# SPDX-License-Identifier: Apache-2.0
"""Steps as they are printed and saved, against the file the model came from: every node and every tensor they name is
in it, and every node that a step stands for is named.

SONDE_PROGRAM names the program; without it everything here is skipped.
"""

import csv
import json
import os
import re
import subprocess

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
onnx = pytest.importorskip("onnx")

# What passes recognise in several nodes goes by its name; "…" ends a long list.
RECOGNISED = {"Gelu", "Swish", "Silu", "HardSwish", "HardSigmoid", "Mish", "…"}
MODELS = ["tiny_cnn", "tiny_resnet", "tiny_efficientnet", "tiny_mobilenet_int8", "tiny_bert", "tiny_gpt2", "tiny_vit",
          "tiny_chain", "tiny_vad", "mobilenet_v2"]


def sonde(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done


class File:
    def __init__(self, path):
        graph = onnx.load(path).graph
        self.nodes = {n.name: n.op_type for n in graph.node}
        self.tensors = {i.name for i in graph.input} | {i.name for i in graph.initializer}
        self.tensors |= {o for n in graph.node for o in n.output}

    def check_type(self, text):
        """"Conv+BatchNormalization+Relu" """
        assert text == "[Reorder]" or set(text.split("+")) <= set(self.nodes.values()) | RECOGNISED, text

    def check_tensor(self, text):
        assert set(text.split("+")) - {""} <= self.tensors, text

    def check_nodes(self, names):
        assert names and set(names) <= set(self.nodes), names


@pytest.fixture(scope="module", params=MODELS)
def case(request, tmp_path_factory):
    """The model as a file, what running it printed with -v, and its profile in some formats."""
    folder = tmp_path_factory.mktemp(request.param)
    sonde("zoo", "save", request.param, folder / "model.onnx")
    outputs = [x for f in ("csv", "json", "pftrace", "summary.json") for x in ("-o", folder / f"a.{f}")]
    printed = sonde("profile", f"zoo:{request.param}", "-n", 2, "-w", 0, "-v", *outputs).stderr
    return File(folder / "model.onnx"), printed, folder


def operators(path):
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f, strict=True))
    first = next(i for i, row in enumerate(rows) if row[0] == "operator type")
    return [dict(zip(rows[first], row)) for row in rows[first + 1:-4] if row[0] not in ("[Mem alloc/free]", "[Other]")]


def test_verbose_prints_the_nodes_and_tensors_of_the_file(case):
    file, printed, folder = case
    steps = re.findall(r"^#(\d+) (\S+) \((.*)\)$", printed, re.M)
    assert [int(k) for k, _, _ in steps] == list(range(len(steps))) and steps
    for _, kind, nodes in steps:
        file.check_type(kind)
        file.check_nodes(nodes.split(", "))
    ports = re.findall(r"^  (?:input|output) \d+: (.*) \((?:\w+\[.*\]|.*)\)$", printed, re.M)
    assert len(ports) >= len(steps)
    for name in ports:
        file.check_tensor(name)


def test_the_sheet_names_all_nodes_of_a_step(case):
    file, printed, folder = case
    rows = operators(folder / "a.csv")
    summary = json.loads((folder / "a.summary.json").read_text())
    for row in rows:
        file.check_type("+".join(filter(None, [row["operator type"], row["post op"]])))
        file.check_nodes(row["operator name"].split(";"))
        for title in ("input tensor name", "output tensor name"):
            for name in row[title].split(";"):
                file.check_tensor(name)
    assert len(rows) == summary["ops"]
    verbose = [nodes.split(", ") for nodes in re.findall(r"^#\d+ \S+ \((.*)\)$", printed, re.M)]
    assert sorted(row["operator name"].split(";") for row in rows) == sorted(verbose)


def test_saved_profiles_make_the_same_sheet(case, tmp_path):
    file, printed, folder = case
    sonde("report", folder / "a.pftrace", "-q", "-o", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (folder / "a.csv").read_bytes()
    sonde("report", folder / "a.json", "-q", "-o", tmp_path / "trace.csv")
    for ours, theirs in zip(operators(folder / "a.csv"), operators(tmp_path / "trace.csv"), strict=True):
        # A trace does not say which inputs are weights.
        for title in ("operator type", "post op", "operator name", "input tensor name", "output tensor name"):
            assert ours[title] == theirs[title]


def test_a_joined_product_has_names_weights_and_zeros(tmp_path):
    """Queries, keys and values of one layer are one step."""
    sonde("profile", "zoo:bert_mini", "-n", 1, "-q", "-o", tmp_path / "a.csv")
    joined = [r for r in operators(tmp_path / "a.csv") if "+" in r["input tensor name"]]
    assert len(joined) == 4  # layers
    for row in joined:
        parts = [f"/self/{part}/{op}" for part in ("query", "key", "value") for op in ("MatMul", "Add")]
        assert [re.search(r"/self/.*", n)[0] for n in row["operator name"].split(";")] == parts
        assert row["post op"] == "Add+MatMul+Add+MatMul+Add"
        _, weight, bias = row["input tensor name"].split(";")
        assert [n.split(".")[-2:] for n in weight.split("+")] == [[p, "weight"] for p in ("query", "key", "value")]
        assert [n.split(".")[-2:] for n in bias.split("+")] == [[p, "bias"] for p in ("query", "key", "value")]
        assert (row["weight shape"], row["weight sparse ratio"], row["sparse support"]) == ("256x768", "0.00%", "TRUE")
        assert row["aim to weight sparse ratio"] == "0.9"


def test_a_graph_as_it_is_compares_with_the_optimised_one_node_by_node(tmp_path):
    for name, options in {"plain": ["--no-optimize"], "fused": []}.items():
        sonde("profile", "zoo:tiny_cnn", "-n", 10, "-q", *options, "-o", tmp_path / f"{name}.pftrace")
    sonde("diff", tmp_path / "plain.pftrace", tmp_path / "fused.pftrace", "--by", "node", "--json",
          tmp_path / "diff.json")
    rows = {r["node"]: r for r in json.loads((tmp_path / "diff.json").read_text())["rows"]}
    block = rows["/stem/conv/Conv, /stem/bn/BatchNormalization, /stem/act/Relu"]
    assert (block["name"], block["old_calls"], block["new_calls"]) == ("Conv+BatchNormalization+Relu", 3, 1)
    names = [n for node in rows if node for n in node.split(", ")]
    assert len(names) == len(set(names))
    assert [r["node"] for r in rows.values() if r["verdict"] == "gone"] == ["/Flatten"]
    assert not [r for r in rows.values() if r["verdict"] == "new"]
