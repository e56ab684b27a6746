# SPDX-License-Identifier: Apache-2.0
"""Live bytes stand as a counter in every trace: what the plans of all runs under way hold, known from the steps' own
times and nothing else."""

import json
import os
import pathlib
import subprocess
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

import small_models

sonde = pytest.importorskip("sonde")

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
LIVE = "live bytes"


def trace_of(profiler, path):
    profiler.export_chrome_trace(str(path))
    return json.loads(pathlib.Path(path).read_text())


def as_json(path, tmp_path, *more):
    out = tmp_path / "again.json"
    subprocess.run([PROGRAM, "report", str(path), "-q", "-o", str(out), *more], check=True)
    return json.loads(out.read_text())


def counter(trace, name=LIVE):
    return [(e["ts"], e["args"]["value"]) for e in trace["traceEvents"] if e["ph"] == "C" and e["name"] == name]


def spans(trace, category):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == category]


def ns(us):
    return round(us * 1000)


def live_by_step(lives, table):
    """Bytes while each step of a table runs."""
    """Without what bodies need: their steps come by themselves."""
    own = [l for l in lives if l["table"] == table and l["name"] != "[values of its body]"]
    last = max(l["last"] for l in own)
    return [sum(l["bytes"] for l in own if l["first"] <= step <= l["last"]) for step in range(last + 1)]


def recomputed(trace):
    """The counter again, from the spans and the lives: every step from its start, every run until its end."""
    lives = trace["otherData"]["lives"]
    tables = {table: live_by_step(lives, table) for table in {l["table"] for l in lives}}
    names = ("op", "post_op", "input_tensor_name", "input_shape", "output_tensor_name", "kernel")
    first_spans = {span: (table, index) for table, index, span in trace["otherData"]["steps"]}
    steps, changes, now = {}, {}, {}
    for event in spans(trace, "operator"):
        key = tuple(event["args"][name] for name in names)
        table, index = steps.setdefault(key, first_spans.get(event["args"]["span_id"]))
        run = event["args"]["parent_span_id"]
        value = tables.get(table, {})[index] if index < len(tables.get(table, ())) else 0
        at = ns(event["ts"])
        changes[at] = changes.get(at, 0) + value - now.get(run, 0)
        now[run] = value
    for event in spans(trace, "iteration") + [e for e in spans(trace, "executor") if e["name"] == "body"]:
        end = ns(event["ts"]) + ns(event["dur"])
        changes[end] = changes.get(end, 0) - now.get(event["args"]["span_id"], 0)
    total, made = 0, []
    for at in sorted(changes):
        total += changes[at]
        if changes[at]:
            made.append((at, total))
    return made


def check(trace, runs=None):
    """What holds of every trace; returns the counter."""
    points = counter(trace)
    times = [t for t, _ in points]
    assert points and times == sorted(times)
    assert all(v >= 0 for _, v in points) and points[-1][1] == 0
    assert all(a != b for (_, a), (_, b) in zip(points, points[1:])), "only changes are told"
    assert len(points) <= len(spans(trace, "operator")) + len(spans(trace, "iteration")) * 2
    assert [(ns(t), v) for t, v in points] == recomputed(trace)
    if runs is not None:
        assert sum(v == 0 for _, v in points) == runs, "0 after every run"
    return points


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("model", ["tiny_cnn", "tiny_bert", "tiny_mobilenet", "regnet_x_400mf"])
def test_the_largest_value_is_the_plans_peak_and_every_run_ends_with_nothing(model, threads, tmp_path):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = threads
    session = sonde.InferenceSession(f"zoo:{model}", options)
    feed = session.random_inputs(seed=1)
    with sonde.profile() as profiler:
        for _ in range(4):
            session.run(None, feed)
    trace = trace_of(profiler, tmp_path / "trace.json")
    points = check(trace, runs=4)
    lives = trace["otherData"]["lives"]
    assert max(v for _, v in points) == max(live_by_step(lives, lives[0]["table"]))
    assert f"with {bytes_text(max(v for _, v in points))};" in profiler.report("memory")


def bytes_text(n):
    units = ["B", "KiB", "MiB", "GiB"]
    unit = 0
    while n >= 1024:
        n, unit = n / 1024, unit + 1
    return f"{n:.2f} {units[unit]}" if unit else f"{n} B"


def test_formats_agree_and_files_keep_it(tmp_path):
    session = sonde.InferenceSession("zoo:tiny_cnn")
    feed = session.random_inputs(seed=1)
    with sonde.profile(level=3) as profiler:
        for _ in range(3):
            session.run(None, feed)
    trace = trace_of(profiler, tmp_path / "a.json")
    points = check(trace, runs=3)
    profiler.export(str(tmp_path / "a.pftrace"))
    for file in ("a.json", "a.pftrace"):
        again = as_json(tmp_path / file, tmp_path)
        assert counter(again) == points and again["otherData"]["lives"] == trace["otherData"]["lives"]
        shown = subprocess.run([PROGRAM, "report", str(tmp_path / file), "-q", "--report", "memory"], check=True,
                               capture_output=True, text=True).stdout
        assert shown.strip() == profiler.report("memory").strip()
    assert counter(as_json(tmp_path / "a.json", tmp_path, "--categories", "memory")) == points
    assert not counter(as_json(tmp_path / "a.json", tmp_path, "--categories", "operator"))


def test_the_map_in_the_guide_is_what_the_program_prints():
    guide = pathlib.Path(__file__).parents[2] / "docs" / "profiling.md"
    shown = subprocess.run([PROGRAM, "profile", "zoo:tiny_mlp", "-n", "1", "-q", "--report", "memory"], check=True,
                           capture_output=True, text=True).stdout
    example = shown[shown.index("activations peak"):]
    assert "".join(f"    {line}\n" if line else "\n" for line in example.splitlines()) in guide.read_text()


def test_the_map_is_as_wide_as_asked():
    session = sonde.InferenceSession("zoo:tiny_resnet")
    with sonde.profile() as profiler:
        session.run(None, session.random_inputs(seed=1))
    for width in (40, 0, 132):
        rows = [line for line in profiler.report("memory", width=width).splitlines() if line.endswith("|")]
        assert rows and max(map(len, rows)) <= (width or 80)


def test_the_memory_profilers_counters_have_other_names(tmp_path):
    out = tmp_path / "m.json"
    subprocess.run([PROGRAM, "profile", "zoo:tiny_cnn", "-n", "3", "-w", "0", "-q", "--memory", "-o", str(out)], check=True)
    trace = json.loads(out.read_text())
    check(trace, runs=3)
    steps = len(spans(trace, "operator"))
    assert len(counter(trace, "used bytes")) == len(counter(trace, "allocated bytes")) == steps
    session = sonde.InferenceSession("zoo:tiny_cnn")
    sonde.memory_profiler.reset()
    sonde.memory_profiler.start()
    session.run(None, session.random_inputs(seed=1))
    sonde.memory_profiler.stop()
    assert len(sonde.memory_profiler.get_memory_trace()) == steps // 3
    sonde.memory_profiler.reset()


def test_runs_at_once_add_up_while_they_are_streamed(tmp_path):
    """Batches are written by the ends of runs, the counter in the order of time all the same."""
    path = tmp_path / "s.pftrace"
    sessions = [sonde.InferenceSession(f"zoo:{m}") for m in ("tiny_cnn", "tiny_bert", "regnet_x_400mf")]
    with sonde.profile(file=str(path)):
        def work(session, runs):
            feed = session.random_inputs(seed=1)
            for _ in range(runs):
                session.run(None, feed)
        threads = [threading.Thread(target=work, args=(s, n)) for s, n in
                   zip(sessions + sessions[:1], (300, 200, 20, 300))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    trace = as_json(path, tmp_path)
    assert len(spans(trace, "iteration")) == 820
    check(trace)


def test_the_environments_trace_has_it_too(tmp_path):
    for name in ("e.pftrace", "e.json"):
        subprocess.run([PROGRAM, "run", "zoo:tiny_cnn", "-n", "5", "-w", "1"], check=True, capture_output=True,
                       env={**os.environ, "SONDE_TRACE": str(tmp_path / name)})
        check(as_json(tmp_path / name, tmp_path), runs=6)


def loop_model():
    """y = x * 2^n in a Loop, with a body of two operators."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["v", "v"], ["sum"]),
         helper.make_node("Relu", ["sum"], ["v_out"])], "body",
        [small_models.value("i", TensorProto.INT64, []), small_models.value("go", TensorProto.BOOL, []),
         small_models.value("v", shape=[64])],
        [small_models.value("go_on", TensorProto.BOOL, []), small_models.value("v_out", shape=[64])])
    return small_models.model(
        [("Sqrt", ["x"], ["root"]), ("Loop", ["n", "", "root"], ["many"], {"body": body}), ("Neg", ["many"], ["y"])],
        [small_models.value("x", shape=[64]), small_models.value("n", TensorProto.INT64, [])],
        [small_models.value("y", shape=[64])])


def test_bodies_of_control_flow_count_while_they_run(tmp_path):
    session = sonde.InferenceSession(loop_model().SerializeToString())
    with sonde.profile(level=2) as profiler:
        for _ in range(2):
            session.run(None, {"x": np.ones(64, np.float32), "n": np.array(3)})
    points = check(trace_of(profiler, tmp_path / "loop.json"))
    assert points


def test_a_run_that_fails_leaves_nothing_behind(tmp_path):
    """Sizes that depend on data are not planned; the failing step ends what is."""
    made = small_models.model(
        [("Relu", ["x"], ["a"]), ("Reshape", ["a", "shape"], ["y"])],
        [small_models.value("x", shape=[6]), small_models.value("shape", TensorProto.INT64, ["r"])],
        [small_models.value("y")])
    session = sonde.InferenceSession(made.SerializeToString())
    x = np.ones(6, np.float32)
    with sonde.profile() as profiler:
        with pytest.raises(sonde.Error):
            session.run(None, {"x": x, "shape": np.array([4, 4])})
        session.run(None, {"x": x, "shape": np.array([2, 3])})
    points = counter(trace_of(profiler, tmp_path / "bad.json"))
    assert all(v >= 0 for _, v in points) and (not points or points[-1][1] == 0)
