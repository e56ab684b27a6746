# SPDX-License-Identifier: Apache-2.0
"""Files that list spans have a limit: some runs have spans, the figures are those of all runs, also when they are read
again. And what a profile says of the memory of bodies."""

import gzip
import json
import os
import re
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from patience import PATIENCE
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
RUNS, LIMIT = 1200, 600_000


def sonde(*arguments, code=0, **environment):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                          env=dict(os.environ, **environment))
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """A folder with one profile as every kind of file, and what was said."""
    folder = tmp_path_factory.mktemp("limited")
    files = [word for name in ("t.json", "t.pftrace", "t.otlp.json", "t.page.gz") for word in ("-o", folder / name)]
    done = sonde("profile", "zoo:tiny_cnn", "-n", RUNS, "--trace-limit", f"{LIMIT}", "--json", folder / "all.json", *files,
                 "-o", folder / "all.md", "-o", folder / "t.html")
    return folder, done


def figures(path):
    out = sonde("report", path, "--json", "-")
    return json.loads(out.stdout), out.stderr


def close(a, b, path=""):
    """The same but for the last digits that a sum in another order has, and for percentiles of calls."""
    assert type(a) is type(b), path
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            if key not in ("note", "spans", "dropped") and not re.search(r"(^|_)p(50|90|95|97|99|999)(_|$)", key):
                close(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            close(x, y, f"{path}[{i}]")
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-6), path
    else:
        assert a == b, path


@pytest.mark.parametrize("name", ["t.json", "t.pftrace", "t.otlp.json"])
def test_a_file_has_as_many_runs_as_fit(profiled, name):
    folder, done = profiled
    size = (folder / name).stat().st_size
    assert 0.7 * LIMIT < size <= LIMIT
    kind = name[1:]
    kept, of = re.search(rf"the {re.escape(kind)} file has the spans of (\d+) of (\d+) runs", done.stderr).groups()
    assert 0 < int(kept) < int(of) == RUNS


@pytest.mark.parametrize("name", ["t.json", "t.pftrace"])
def test_figures_of_a_limited_file_are_those_of_all_runs(profiled, name):
    folder, _ = profiled
    whole = json.loads((folder / "all.json").read_text())
    again, said = figures(folder / name)
    assert f"of {RUNS} runs" in said
    close(again, whole)


@pytest.mark.parametrize("name", ["t.json", "t.pftrace"])
def test_a_limited_file_may_be_limited_again(profiled, name, tmp_path):
    folder, _ = profiled
    for i, suffix in enumerate(("json", "pftrace", "json")):
        done = sonde("report", folder / name if not i else tmp_path / f"{i - 1}.{last}", "-o", tmp_path / f"{i}.{suffix}",
                     "--trace-limit", LIMIT // (i + 2))
        last = suffix
        assert f"of {RUNS} runs" in done.stderr
        again, _ = figures(tmp_path / f"{i}.{suffix}")
        close(again, json.loads((folder / "all.json").read_text()))


def test_the_first_and_the_slowest_run_have_spans(profiled):
    folder, _ = profiled
    trace = json.loads((folder / "t.json").read_text())
    runs = [e for e in trace["traceEvents"] if e.get("cat") == "iteration" and not e["name"].startswith("Warmup")]
    assert "Iteration0" in {e["name"] for e in runs} or "Iteration1" in {e["name"] for e in runs}
    left = trace["otherData"]["left_out"]
    assert len(runs) + left["runs"] == RUNS == trace["otherData"]["iterations"] and len(left["wall_ns"]) == left["runs"]
    assert max(e["dur"] for e in runs) * 1e3 >= max(left["wall_ns"])
    assert "figures are those of all runs" in left["note"]
    numbers = sorted(int(re.sub(r"\D", "", e["name"])) for e in runs)
    thirds = [sum(1 for n in numbers if RUNS * k // 3 <= n < RUNS * (k + 1) // 3) for k in range(3)]
    assert min(thirds) > len(numbers) // 6  # spread over the whole time


def test_no_span_has_lost_its_parent(profiled):
    folder, _ = profiled
    out = sonde("report", folder / "t.pftrace", "--report", "external")
    assert out.stdout.count("\n") > 100


def test_a_page_that_fits_has_all_runs(profiled):
    folder, done = profiled
    assert ".html" not in done.stderr or (folder / "t.html").stat().st_size <= LIMIT
    head = gzip.decompress((folder / "t.page.gz").read_bytes()).split(b"\n", 1)[0]
    assert json.loads(head[head.index(b"{"):])["summary"]["iterations"] == RUNS


def test_what_fits_is_whole(tmp_path):
    done = sonde("profile", "zoo:tiny_mlp", "-n", "20", "-o", tmp_path / "t.json")
    assert "runs" not in done.stderr
    assert "left_out" not in json.loads((tmp_path / "t.json").read_text())["otherData"]


@pytest.mark.parametrize("none", ["none", "0"])
def test_there_may_be_no_limit(tmp_path, none):
    sonde("profile", "zoo:tiny_mlp", "-n", 50, "--trace-limit", none, "-o", tmp_path / "t.json")
    assert "left_out" not in json.loads((tmp_path / "t.json").read_text())["otherData"]


def test_workers_and_joined_traces_count_runs_without_spans(tmp_path):
    (tmp_path / "all").mkdir()
    for i, limit in enumerate(("none", "60K", "none")):
        sonde("profile", "zoo:tiny_cnn", "-n", 900, "-q", "--trace-limit", limit, "--label", f"worker=w{i}", "-o",
              tmp_path / f"all/w{i}.pftrace")
    for merged in ("m.pftrace", "m.json"):
        sonde("merge", tmp_path / "all", "-o", tmp_path / merged)
        told, warned = figures(tmp_path / merged)
        assert told["iterations"] == 2700 and "size is limited" in warned
    for path in (tmp_path / "all", tmp_path / "m.pftrace"):
        rows = re.findall(r"/ (w\d) +1 +(\d+) ", sonde("report", "--by", "worker", path).stdout)
        assert rows == [("w0", "900"), ("w1", "900"), ("w2", "900")]


@pytest.mark.parametrize("wrong", ["x", "-1", "5Q"])
def test_a_limit_is_bytes(wrong):
    assert "--trace-limit takes a number of bytes" in sonde("profile", "zoo:tiny_mlp", "--trace-limit", wrong, code=2).stderr


def test_the_package_takes_a_limit(tmp_path):
    package = pytest.importorskip("sonde")
    session = package.InferenceSession("zoo:tiny_mlp")
    feeds = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], np.float32) for i in session.get_inputs()}
    with package.profile() as profile:
        for _ in range(600):
            session.run(None, feeds)
    profile.export(tmp_path / "small.json", trace_limit=100_000)
    profile.export(tmp_path / "whole.json", trace_limit=-1)
    assert (tmp_path / "small.json").stat().st_size <= 100_000 < (tmp_path / "whole.json").stat().st_size
    assert len(profile.to_bytes(".pftrace", trace_limit=100_000)) <= 100_000


# ---------------------------------------------------------------- memory of bodies
MIB = 1 << 20


def looped(path, nested=False):
    """x of 1 MiB; a Loop whose body takes three times as much at once; `nested`: in an If."""
    def body(name):
        nodes = [helper.make_node("Add", ["v", "v"], [f"{name}a"]), helper.make_node("Mul", [f"{name}a", "v"], [f"{name}b"]),
                 helper.make_node("Sub", [f"{name}b", f"{name}a"], [f"{name}c"]), helper.make_node("Div", [f"{name}c", f"{name}b"], [f"{name}d"]),
                 helper.make_node("Add", [f"{name}d", f"{name}a"], [f"{name}out"]), helper.make_node("Identity", ["go"], [f"{name}go"])]
        return helper.make_graph(nodes, name, [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
                                               value("v", shape=[MIB // 4])],
                                 [value(f"{name}go", TensorProto.BOOL, []), value(f"{name}out", shape=[MIB // 4])])
    loop = helper.make_node("Loop", ["n", ""], ["r"], body=body("L"))
    loop.input[1] = ""
    loop.input.append("x2")
    nodes = [helper.make_node("Neg", ["x"], ["x2"])]
    if nested:
        branch = helper.make_graph([loop], "then", [], [value("r", shape=[MIB // 4])])
        other = helper.make_graph([helper.make_node("Identity", ["x2"], ["e"])], "else", [], [value("e", shape=[MIB // 4])])
        nodes += [helper.make_node("ReduceMax", ["x2"], ["m"], keepdims=0), helper.make_node("Greater", ["m", "limit"], ["yes"]),
                  helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=other)]
    else:
        nodes += [loop, helper.make_node("Neg", ["r"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", shape=[MIB // 4])], [value("y", shape=[MIB // 4])],
                              [numpy_helper.from_array(np.array(3, np.int64), "n"), numpy_helper.from_array(np.float32(-1e9), "limit")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("suffix", [None, "json", "pftrace"])
def test_the_peak_of_memory_contains_what_bodies_hold(tmp_path, nested, suffix):
    model = looped(tmp_path / "m.onnx", nested)
    words = ["profile", model, "-n", "2", "--report", "memory", "--no-optimize"]
    out = sonde(*words, *(["-o", tmp_path / f"t.{suffix}"] if suffix else [])).stdout
    if suffix:
        out = sonde("report", tmp_path / f"t.{suffix}", "--report", "memory").stdout
    step, peak = re.search(r"activations peak at step \d+, (\w+).*, with ([\d.]+) MiB", out).groups()
    assert step == ("If" if nested else "Loop") and float(peak) >= 4
    assert "[values of its body]" in out


def test_the_memory_profiler_counts_the_steps_around_a_body(tmp_path):
    package = pytest.importorskip("sonde")
    from sonde import memory_profiler

    session = package.InferenceSession(str(looped(tmp_path / "m.onnx")))
    x = np.ones(MIB // 4, np.float32)
    session.run(None, {"x": x})
    memory_profiler.start()
    session.run(None, {"x": x})
    memory_profiler.stop()
    info = memory_profiler.get_max_memory_info("cpu")
    assert info["max_used"] >= 3.9  # MB: x2 outside, and two to three values inside
    assert info["max_used"] <= info["max_allocated"] + 0.1
