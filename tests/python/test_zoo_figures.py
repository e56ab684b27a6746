# SPDX-License-Identifier: Apache-2.0
"""What the figures of a profile promise, held against the small built-in models and a RegNet: rows add up to the
first line, [Other] stays small, and threads never work longer than there was time."""

import json
import os
import re
import subprocess
from collections import defaultdict

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

LARGE = "regnet_x_400mf"
BRACKETS = ("[Other]", "[Mem alloc/free]")  # time outside of any step


def models():
    if not PROGRAM:
        return []
    listed = subprocess.run([PROGRAM, "zoo"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^(tiny_\w+)", listed, re.M) + [LARGE]


MODELS = models()


def profile(model, folder, *options, runs=20):
    files = {f: folder / f"{model}.{f}" for f in ("summary.json", "json")}
    done = subprocess.run([PROGRAM, "profile", f"zoo:{model}", "-n", str(runs), *options,
                           *(x for path in files.values() for x in ("-o", path))],
                          capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "COLUMNS": "0"})
    assert done.returncode == 0, done.stderr
    return done.stdout, *(json.loads(path.read_text()) for path in files.values())


@pytest.mark.parametrize("model", MODELS)
def test_rows_add_up_to_the_first_line(model, tmp_path):
    text, summary, _ = profile(model, tmp_path, runs=5)
    mean = summary["latency_ms"]["mean"]
    brackets = [r for r in summary["operators"] if r["name"] in BRACKETS]
    for view in ("operators", "shapes", "nodes", "kernels"):  # written in whole nanoseconds
        rows = summary[view] if view == "operators" else summary[view] + brackets
        assert sum(r["mean_ms"] for r in rows) == pytest.approx(mean, abs=0.51e-6 * (len(rows) + 1)), view
        assert sum(r["share"] for r in rows) == pytest.approx(1, abs=0.51e-6 * (len(rows) + 1)), view
    assert sum(r["calls"] for r in summary["operators"] if r["name"] not in BRACKETS) == pytest.approx(summary["ops"])
    lines = text.split("\n")
    ops, wall, unit = re.fullmatch(r"Graph run of (\d+) ops finished in ([\d.]+)([mµn]?s)", lines[0]).groups()
    shown = [re.fullmatch(rf"\S.*? +([\d.]+){unit} +\(([\d.]+)%\)", line).groups() for line in lines[2:-2]]
    assert int(ops) == round(summary["ops"])
    assert len(shown) == len(summary["operators"])
    assert sum(float(ms) for ms, _ in shown) == pytest.approx(float(wall), abs=(0.051 if unit == "ns" else 0.0051) * (len(shown) + 1))
    assert sum(float(share) for _, share in shown) == pytest.approx(100, abs=0.0051 * len(shown))


@pytest.mark.parametrize("model", MODELS)
def test_other_is_small_and_never_negative(model, tmp_path):
    """At most 1 % of the run and twice what recording a step takes on this machine (about 40 ns each). Another
    program's turn on the processor may land there in any run, so the run counts that has the least of it."""
    _, summary, trace = profile(model, tmp_path, "-q", "-t", "1", "--level", "1", runs=20 if model == LARGE else 400)
    rows = {r["name"]: r["mean_ms"] for r in summary["operators"]}
    assert "[Other]" in rows and all(ms >= 0 for ms in rows.values()), rows
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and "span_id" in e["args"]]
    runs = {e["args"]["span_id"]: e["dur"] for e in spans if e["cat"] == "iteration"}
    other = dict(runs)
    for e in spans:
        if e["args"].get("parent_span_id") in runs:
            other[e["args"]["parent_span_id"]] -= e["dur"]
    cost = 1000 * summary["profiler_cost_ms"]  # recording lies between the steps too, and no row shows it
    over = {run: other[run] - cost - (0.01 * runs[run] + 2 * cost) for run in runs}
    assert len(runs) >= summary["iterations"] and min(over.values()) <= 0, f"µs above the bound, each run: {over}"


@pytest.mark.parametrize("model", MODELS)
def test_threads_do_not_work_longer_than_there_was_time(model, tmp_path):
    _, summary, trace = profile(model, tmp_path, "-q", "-t", "2", "--level", "3", runs=5)
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    by_id = {e["args"]["span_id"]: e for e in spans if "span_id" in e["args"]}
    wall = {e["args"]["run"]: e["dur"] for e in spans if e["cat"] == "iteration"}
    busy, lanes = defaultdict(float), defaultdict(list)
    for e in spans:
        if e["cat"] != "thread" or not e["args"].get("run"):
            continue
        busy[e["args"]["run"]] += e["dur"]
        lanes[e["tid"]].append(e)
        step = by_id[e["args"]["parent_span_id"]]
        assert step["cat"] == "operator" and e["args"]["op"] == step["args"]["op"]
        assert step["ts"] <= e["ts"] and e["ts"] + e["dur"] <= step["ts"] + step["dur"] + 0.001
    assert trace["otherData"]["threads"] == 2
    assert len(lanes) <= 2
    for run, total in busy.items():
        assert total <= 2 * wall[run] + 0.001
    for slices in lanes.values():  # a thread does one thing at a time
        slices.sort(key=lambda e: e["ts"])
        for a, b in zip(slices, slices[1:]):
            assert a["ts"] + a["dur"] <= b["ts"] + 0.001
    if model == LARGE:  # the thread that calls has its share of every run, whatever the other one does
        assert lanes and len(busy) == summary["iterations"] + summary["warmups"]
