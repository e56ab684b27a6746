# SPDX-License-Identifier: Apache-2.0
"""sonde doctor on models made for one trouble each: what is counted must be right, what is measured must be there."""

import json
import os
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import small_models

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
TIME = r"[\d.]+ (?:ns|µs|ms|s)"
MEDIANS = r"medians of \d+ pairs"


def examine(model, tmp_path, *more):
    out = tmp_path / "doctor.json"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([PROGRAM, "doctor", str(model), "-q", "-t", "1", "--json", str(out), *more], check=True, env=env)
    return {f["topic"]: f for f in json.loads(out.read_text())["findings"]}


def kernels(model):
    return subprocess.run([PROGRAM, "inspect", str(model), "--optimized", "--nodes"], check=True, capture_output=True,
                          text=True).stdout


@pytest.fixture
def decaying(tmp_path):
    """A state that a recurrence divides by ten, forty times: the last steps are denormal, and the one before in part."""
    size = 8192
    nodes = [("Mul", [f"s{i}" if i else "x", "k"], [f"s{i + 1}"], {"name": f"decay{i + 1}"}) for i in range(40)]
    made = small_models.model(nodes, [small_models.value("x", shape=[size])], [small_models.value("s40", shape=[size])],
                              [numpy_helper.from_array(np.full(size, 0.1, np.float32), "k")])
    onnx.save(made, tmp_path / "decaying.onnx")
    return tmp_path / "decaying.onnx"


def test_values_that_become_denormal_are_found_with_their_share_and_cost(decaying, tmp_path):
    np.save(tmp_path / "x.npy", np.ones(8192, np.float32))
    found = examine(decaying, tmp_path, "-i", f"x={tmp_path / 'x.npy'}")["denormals"]
    # 0.1^38 = 1e-38 < 1.18e-38 is the first that is denormal; s38, s39 and s40 are.
    assert found["severity"] in ("note", "slow")
    assert found["evidence"].startswith("in 3 of 41 values and weights (")
    for node in ("decay38", "decay39", "decay40"):
        assert f"{node} (Mul) 100.0 %" in found["evidence"]
    assert "decay37" not in found["evidence"]
    assert re.search(rf"takes {TIME}, and {TIME} with denormals flushed to 0 \(one thread, " + MEDIANS,
                     found["evidence"])
    assert found["remedy"].startswith("--flush-denormals")
    if found["severity"] == "slow":
        assert re.fullmatch(rf"denormal numbers cost {TIME}, \d+\.\d % of a run", found["finding"])


def test_the_remedy_is_one(decaying, tmp_path):
    assert "denormals" not in examine(decaying, tmp_path, "--flush-denormals")


def test_weights_that_are_denormal_are_named(tmp_path):
    rng = np.random.default_rng(3)
    w = rng.standard_normal((64, 64)).astype(np.float32)
    w[:16] = np.float32(1e-40)
    made = small_models.model([("MatMul", ["x", "w"], ["y"], {"name": "product"})],
                              [small_models.value("x", shape=[8, 64])], [small_models.value("y", shape=[8, 64])],
                              [numpy_helper.from_array(w, "w")])
    onnx.save(made, tmp_path / "w.onnx")
    found = examine(tmp_path / "w.onnx", tmp_path)["denormals"]
    assert "in 1 of 2 values and weights (weight w 25.0 %)" in found["evidence"]
    assert "set weights below 1.2e-38 to 0 in the file" in found["remedy"]


@pytest.fixture
def alternating(tmp_path):
    """Convolutions of one pixel with a Reshape behind each: a view where tensors are plain, and no blocks survive it."""
    rng = np.random.default_rng(5)
    nodes, weights = [], [numpy_helper.from_array(np.array([1, 32, 32 - 16 * k, 32 + 32 * k]), f"shape{k}")
                          for k in (0, 1)]
    for i in range(6):
        weights.append(numpy_helper.from_array((rng.standard_normal((32, 32, 1, 1)) * 0.2).astype(np.float32), f"w{i}"))
        nodes += [("Conv", [f"v{i}" if i else "x", f"w{i}"], [f"c{i}"], {"name": f"conv{i}"}),
                  ("Reshape", [f"c{i}", f"shape{(i + 1) % 2}"], [f"v{i + 1}"], {"name": f"fold{i}"})]
    made = small_models.model(nodes, [small_models.value("x", shape=[1, 32, 32, 32])],
                              [small_models.value("v6", shape=[1, 32, 32, 32])], weights)
    onnx.save(made, tmp_path / "alternating.onnx")
    return tmp_path / "alternating.onnx"


def test_reorders_are_found_with_who_forces_them_and_a_measured_remedy(alternating, tmp_path):
    made = len(re.findall(r"f32_(?:un)?block_|f32_reorder", kernels(alternating)))
    if not made:
        pytest.skip("no blocked layout here")
    found = examine(alternating, tmp_path)["reorders"]
    assert found["severity"] == "slow"
    said = re.fullmatch(rf"(\d+) conversions between blocked and plain layout take {TIME} of the {TIME} of a run, (\d+\.\d) %",
                        found["finding"])
    assert said and int(said[1]) == made and 5 <= float(said[2]) <= 100
    assert re.search(r"fold\d \(Reshape\) \d+\.\d %", found["evidence"])
    assert re.search(r"with --disable-pass blocked-layout a run takes \d+\.\d % (less|more) "
                     r"\(in turns on one thread, " + MEDIANS, found["evidence"])
    assert found["remedy"].startswith(("use --disable-pass blocked-layout",
                                       "the blocked layout is still faster, but Reshape between convolutions"))


def test_without_the_layout_there_is_nothing_to_find(alternating, tmp_path):
    assert "reorders" not in examine(alternating, tmp_path, "--disable-pass", "blocked-layout")


@pytest.mark.parametrize("model", ["zoo:tiny_cnn", "zoo:tiny_bert", "zoo:tiny_loop", "zoo:tiny_dynamic", "zoo:tiny_text",
                                   "zoo:regnet_x_400mf"])
def test_healthy_models_have_neither(model, tmp_path):
    found = examine(model, tmp_path)
    assert "operators" in found
    assert not {"denormals", "reorders", "layout", "types"} & found.keys()
