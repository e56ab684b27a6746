# SPDX-License-Identifier: Apache-2.0
"""Models that do not fit where sizes nobody gave are 1: `inspect` shows their inputs all the same, and every verb that
runs them says which sizes fit."""

import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import small_models
from patience import PATIENCE
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
RNG = np.random.default_rng(0)


def weights(name, *shape):
    return numpy_helper.from_array(RNG.random(shape, np.float32), name)


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def audio():
    """Windows over a signal, as of an encoder of speech."""
    nodes = [("Unsqueeze", ["signal", "one"], ["x"]), ("Conv", ["x", "w"], ["a"], {"strides": [64]}),
             ("Conv", ["a", "v"], ["y"], {"strides": [3]})]
    return nodes, [value("signal", shape=["batch", "samples"])], [weights("w", 4, 1, 127), weights("v", 4, 4, 7), ints("one", 1)]


def text_lines():
    """Strides of 2 over the height, which must end at 1, and none over the width: a recogniser of text."""
    nodes, constants, x, channels = [], [ints("two", 2)], "x", 3
    for i in range(4):
        constants.append(weights(f"w{i}", 4, channels, 3, 3))
        nodes.append(("Conv", [x, f"w{i}"], [f"c{i}"], {"strides": [2, 1], "pads": [1, 1, 1, 1]}))
        x, channels = f"c{i}", 4
    nodes += [("MaxPool", [x], ["p"], {"kernel_shape": [3, 4], "strides": [3, 1]}), ("Squeeze", ["p", "two"], ["s"]),
              ("Conv", ["s", "k"], ["y"])]
    return nodes, [value("x", shape=["N", 3, "height", "width"])], constants + [weights("k", 4, 4, 5)]


def heads():
    nodes = [("Reshape", ["x", "shape"], ["h"]), ("Conv", ["h", "w"], ["y"])]
    return nodes, [value("x", shape=["batch", "width of all heads"])], [ints("shape", -1, 4, 8), weights("w", 2, 4, 3)]


def chain():
    """Slices that need ten rows, put together again."""
    nodes = [("Split", ["x"], ["a", "b"], {"axis": 1, "num_outputs": 2}), ("Concat", ["a", "b", "b"], ["c"], {"axis": 1}),
             ("Slice", ["c", "start", "end", "one"], ["d"]), ("Reshape", ["d", "shape"], ["y"])]
    return nodes, [value("x", shape=[1, "rows"])], [ints("start", 5), ints("end", 15), ints("one", 1), ints("shape", 1, 10)]


def related():
    """One size is twice another, and both have a least."""
    nodes = [("Concat", ["x", "x"], ["xx"], {"axis": 1}), ("Reshape", ["p", "same"], ["q"]), ("Add", ["xx", "q"], ["z"]),
             ("Unsqueeze", ["z", "one"], ["u"]), ("Conv", ["u", "w"], ["y"])]
    return nodes, [value("x", shape=[1, "a"]), value("p", shape=["b"])], [ints("one", 1), ints("same", 1, -1), weights("w", 1, 1, 21)]


def image_and_mask():
    """An image whose sides divide by 32, and a number of boxes apart from them."""
    nodes = [("Reshape", ["x", "blocks"], ["r"]), ("Reshape", ["boxes", "fours"], ["f"]), ("ReduceMean", ["f"], ["m"], {"axes": [0]}),
             ("ReduceMean", ["r"], ["n"], {"keepdims": 0}), ("Add", ["m", "n"], ["y"])]
    return nodes, [value("x", shape=[1, 3, "h", "w"]), value("boxes", shape=["count"])], [ints("blocks", -1, 3072), ints("fours", -1, 4)]


def unnamed():
    return [("Conv", ["x", "w"], ["y"])], [value("x", shape=[1, 3, None, None])], [weights("w", 2, 3, 11, 40)]


def whole_batch():
    nodes = [("Reshape", ["x", "shape"], ["r"]), ("Conv", ["r", "w"], ["y"])]
    return nodes, [value("x", shape=["batch", 3])], [ints("shape", 1, 4, -1), weights("w", 1, 4, 6)]


MODELS = [audio, text_lines, heads, chain, related, image_and_mask, unnamed, whole_batch]


def saved(make, path):
    nodes, inputs, constants = make()
    save(small_models.model(nodes, inputs, [helper.make_empty_tensor_value_info("y")], constants, opset=18 if make is chain else 17), path)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def sonde(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("make", MODELS)
def test_inspect_shows_the_inputs_and_sizes_that_fit(make, path):
    saved(make, path)
    done = sonde("inspect", path)
    for one in make()[1]:
        assert f"  {one.name}  " in done.stdout
    assert "error" not in done.stderr
    lines = dict(line.strip().split("  ", 1) for line in done.stdout.splitlines() if line.startswith("  ") and "  " in line.strip())
    assert lines["FLOPs"].strip().startswith("not known: node ") and lines["memory"].strip() == "not known: the same"
    options = shlex.split(lines["sizes to try"])
    assert options
    known = sonde("inspect", path, *options).stdout  # they do fit
    assert "not known" not in known and "peak" in known
    sonde("run", path, "-q", *options)


@pytest.mark.parametrize("make", MODELS)
def test_inspect_json_says_the_same(make, path):
    saved(make, path)
    report = json.loads(sonde("inspect", path, "--json", "-").stdout)
    assert [one["name"] for one in report["inputs"]] == [one.name for one in make()[1]]
    assert report["run"] is None and report["run_error"].startswith("node ") and report["sizes_that_fit"]
    options = [word for name, size in report["sizes_that_fit"].items() for word in ("-s", f"{name}={size}")]
    report = json.loads(sonde("inspect", path, "--json", "-", *options).stdout)
    assert report["run"]["flops"] >= 0 and "run_error" not in report


@pytest.mark.parametrize("verb", [["run"], ["profile"], ["whatif", "-n", "1"], ["doctor"],
                                  ["compare", "--precision", "f32,bf16"],
                                  ["bench", "--python", sys.executable, "--rounds", "1", "-n", "1", "--no-program"]])
def test_every_verb_that_runs_says_which_sizes_fit(verb, path):
    saved(audio, path)
    said = sonde(verb[0], path, *verb[1:], code=1).stderr
    assert "a window of 127 does not fit 1" in said
    assert "dimensions that are not set are 1, but these sizes fit: -s samples=" in said


def test_only_sizes_that_nobody_gave_are_proposed(path):
    saved(text_lines, path)
    done = sonde("inspect", path, "-s", "height=48", code=1)  # an error, as something was asked for
    assert "-s width=" in done.stdout and "-s height" not in done.stdout
    assert "x  f32[N, 3, height, width]" in done.stdout
    said = sonde("run", path, "-s", "height=48", "-s", "width=2", code=1).stderr
    assert "sizes fit" not in said


def test_a_size_that_was_asked_for_and_does_not_fit_is_an_error(path):
    saved(audio, path)
    done = sonde("inspect", path, "-s", "samples=3", code=1)
    assert "signal  f32[batch, samples]" in done.stdout and "a window of 127 does not fit 3" in done.stderr


def test_sizes_that_fit_are_not_touched(path):
    save(small_models.add(), path)
    assert "sizes to try" not in sonde("inspect", path).stdout


def test_nothing_is_proposed_where_nothing_fits(path):
    """Rows of 7 of something that is always a multiple of 2, and not of 7 for any size that is tried."""
    nodes = [("Concat", ["x", "c"], ["xx"], {"axis": 0}), ("Conv", ["xx", "w"], ["y"])]
    model = small_models.model(nodes, [value("x", shape=["n", 3, 4])], [helper.make_empty_tensor_value_info("y")],
                               [weights("c", 1, 3, 4), weights("w", 1, 3, 5)], opset=17)
    save(model, path)
    done = sonde("inspect", path)
    assert "not known" in done.stdout and "sizes to try" not in done.stdout and "x  f32[n, 3, 4]" in done.stdout
    assert "sizes fit" not in sonde("run", path, code=1).stderr


def test_the_steps_are_shown_though_nothing_fits(path, tmp_path):
    saved(audio, path)
    done = sonde("inspect", path, "--optimized", "--nodes", "--graph", tmp_path / "g.dot")
    assert "Conv" in done.stdout and (tmp_path / "g.dot").read_text().startswith("digraph")


def test_a_model_that_cannot_run_has_inputs(path):
    nodes = [helper.make_node("Sparkle", ["x"], ["y"], domain="com.example")]
    graph = helper.make_graph(nodes, "g", [value("x", shape=["n", 3])], [value("y", shape=["n", 3])])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)],
                           ir_version=9), path)
    done = sonde("inspect", path)
    assert "x  f32[n, 3]" in done.stdout and "y  f32[n, 3]" in done.stdout
    report = json.loads(sonde("inspect", path, "--json", "-").stdout)
    assert report["inputs"][0]["shape"] == ["n", 3] and report["run"] is None


def test_an_input_without_a_shape_is_told(path):
    save(small_models.identity(TensorProto.FLOAT, None), path)
    done = sonde("inspect", path)
    assert "x  f32" in done.stdout and "give one with -i 'x=FILE'" in done.stdout
