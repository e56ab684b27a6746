# SPDX-License-Identifier: Apache-2.0
"""What SONDE_TRACE, SONDE_PROFILE, SONDE_INSTANCES and SONDE_LEVEL do to any program that uses the library."""

import csv
import json
import os
import subprocess

import pytest

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


def start(folder, model="zoo:tiny_cnn", **env):
    return subprocess.Popen([PROGRAM, "run", model, "-n", "20"], cwd=folder, env={**os.environ, **env},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def test_a_trace_is_written_while_the_program_runs(tmp_path):
    finish(start(tmp_path, SONDE_TRACE="t.pftrace"))
    done = subprocess.run([PROGRAM, "report", tmp_path / "t.pftrace"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "mean of 20 runs" in done.stdout, done.stderr


def test_names_of_traces_are_expanded(tmp_path):
    process = start(tmp_path, SONDE_TRACE="trace-%p.json", SONDE_LEVEL="1")
    finish(process)
    trace = json.loads((tmp_path / f"trace-{process.pid}.json").read_text())
    cats = {event.get("cat") for event in trace["traceEvents"]}
    assert "operator" in cats and "executor" not in cats


def test_instances_side_by_side_do_not_overwrite_one_another(tmp_path):
    running = [start(tmp_path, SONDE_PROFILE="prof", SONDE_INSTANCES="4") for _ in range(4)]
    for process in running:
        finish(process)
    sheets = sorted((tmp_path / "prof" / "profiling_csv").glob("*.csv"))
    traces = sorted((tmp_path / "prof" / "profiling_trace").glob("*.json"))
    assert len(sheets) == 4 and len(traces) == 4
    for path in traces:
        assert json.loads(path.read_text())["traceEvents"]
    for path in sheets:
        rows = list(csv.reader(path.open(newline="")))
        assert any("operator type" in row for row in rows)


def test_a_place_that_cannot_be_written_does_not_cost_the_result(tmp_path):
    (tmp_path / "full.pftrace").symlink_to("/dev/full")
    for variable, value in (("SONDE_TRACE", "/nonexistent/t.json"), ("SONDE_TRACE", "/nonexistent/t.pftrace"),
                            ("SONDE_TRACE", "t.unknown"), ("SONDE_PROFILE", "/nonexistent/dir"),
                            ("SONDE_TRACE", "full.pftrace")):
        out, err = finish(start(tmp_path, **{variable: value}))
        assert "20 runs" in out and variable in err, (variable, value, err)


def test_shares_of_threads_find_their_operator_in_a_streamed_trace(tmp_path):
    """Also those drained before the operator they belong to was written."""
    command = [PROGRAM, "run", "zoo:regnet_x_400mf", "-n", "40", "-t", "2", "-q"]
    env = {**os.environ, "SONDE_TRACE": "t.pftrace", "SONDE_LEVEL": "3"}
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=120)
    subprocess.run([PROGRAM, "report", "t.pftrace", "-q", "-o", "t.json"], cwd=tmp_path, check=True, timeout=60)
    spans = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    by_id = {e["args"]["span_id"]: e for e in spans if "span_id" in e["args"]}
    begin = min(e["ts"] for e in spans if e["cat"] == "iteration")
    shares = [e for e in spans if e["cat"] == "thread" and e["ts"] > begin]
    assert len(shares) > 1000
    for share in shares:
        step = by_id[share["args"]["parent_span_id"]]
        assert step["cat"] == "operator" and step["name"] == share["args"]["node"]
        assert step["ts"] <= share["ts"] and share["ts"] + share["dur"] <= step["ts"] + step["dur"] + 0.001
