# SPDX-License-Identifier: Apache-2.0
"""Findings in the data of the report page, and what `sonde profile` adds to them: the machine, and measured scenarios."""

import gzip
import json
import os
import subprocess

import onnx
import pytest
from onnx import TensorProto, helper

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
KEYS = {"severity", "topic", "finding", "evidence", "remedy"}


@pytest.fixture
def sonde(tmp_path):
    """Runs the program in a folder and with caches of its own."""
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True, env=env,
                              cwd=tmp_path).stdout

    return run


def page_data(path):
    """The line of JSON that begins what the page reads."""
    return json.loads(gzip.decompress(path.read_bytes()).split(b"\n", 1)[0])


def profile(sonde, tmp_path, model, *more):
    sonde("profile", model, "-n", 5, "-q", "-t", 1, "-o", "x.page.gz", *more)
    return page_data(tmp_path / "x.page.gz")


def test_the_page_has_the_findings_of_the_profile_and_of_the_machine(sonde, tmp_path):
    found = profile(sonde, tmp_path, "zoo:tiny_cnn")["findings"]
    topics = [f["topic"] for f in found]
    assert topics[0] == "operators" and {"cores", "instructions", "peaks"} <= set(topics)
    assert "noise" not in topics  # takes longer than a look may
    for f in found:
        assert f.keys() - {"gain"} == KEYS and 0 < f.get("gain", 0.5) <= 1 and f["severity"] in ("good", "note", "slow") and f["finding"]


def test_a_saved_profile_has_its_own_findings_without_those_of_a_machine(sonde, tmp_path):
    sonde("profile", "zoo:tiny_cnn", "-n", 5, "-q", "-o", "x.pftrace")
    sonde("report", "x.pftrace", "-q", "-o", "x.page.gz")
    topics = {f["topic"] for f in page_data(tmp_path / "x.page.gz")["findings"]}
    assert "operators" in topics and not topics & {"cores", "clock", "counters"}


def test_scenarios_are_those_that_were_measured(sonde, tmp_path):
    assert profile(sonde, tmp_path, "zoo:tiny_mlp")["what_if"] == []
    measured = profile(sonde, tmp_path, "zoo:tiny_mlp", "--what-if")["what_if"]
    assert [s["name"] for s in measured] == ["sparse90", "int8", "sparse90+int8", "bf16"]
    for s in measured:
        assert (s["ns"] > 0 and s["speedup"] > 0 and s["note"].startswith("measured")) or (s["ns"] == 0 and s["note"])
    assert any(s["note"] == "measured" for s in measured)
    # Without the option the page has what is kept.
    kept = profile(sonde, tmp_path, "zoo:tiny_mlp")["what_if"]
    assert [s["name"] for s in kept] == [s["name"] for s in measured if s["ns"] > 0]
    assert all(s["note"] == "measured earlier" and s["ns"] > 0 for s in kept)


def test_the_page_and_a_spreadsheet_share_what_is_measured(sonde, tmp_path):
    names = [s["name"] for s in profile(sonde, tmp_path, "zoo:tiny_mlp", "--what-if", "-o", "x.csv")["what_if"]]
    assert names == ["sparse90", "sparse80", "sparse70", "int8", "sparse90+int8", "bf16"]


def test_names_are_raw_in_files_and_harmless_on_the_terminal(sonde, tmp_path):
    """Shapes from data are named by node: this one would clear the screen."""
    name = "clear\x1b[2J<b>"
    value = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("x", TensorProto.FLOAT, [64]),
                                                                    ("y", TensorProto.INT64, [1, None]))]
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"], name=name)], "net", value[:1], value[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    shown = sonde("doctor", "m.onnx", "-t", 1, "--json", "doctor.json")
    assert "clear?[2J<b>" in shown and "\x1b" not in shown
    for found in (json.loads((tmp_path / "doctor.json").read_text())["findings"],
                  profile(sonde, tmp_path, "m.onnx")["findings"]):
        shapes = next(f for f in found if f["topic"] == "shapes")
        assert name in shapes["evidence"]
