# SPDX-License-Identifier: Apache-2.0
"""`sonde bench`: the protocol with drivers that behave and misbehave, the files it writes, what it leaves behind.

SONDE_PROGRAM names the program; without it everything here is skipped. No figure is judged: speed is not tested.
"""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from patience import PATIENCE

np = pytest.importorskip("numpy")
PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

# A driver that sleeps nowhere: it answers with made-up times. What it does wrong is its option.
FAKE = r'''
import os, shutil, sys, time
how, inputs, reference, later, seed = "", [], "", False, os.getpid()
for line in sys.stdin:
    word, _, value = line.rstrip("\n").partition(" ")
    reply = None
    if how.startswith("log") and word in ("load", "warmup", "run", "quit"):
        with open(os.environ["FAKE_PID"] + ".log", "a") as file: file.write(f"{how[3:]} {word}\n")
    if word == "option": how = value
    elif word == "inputs": inputs.append(value)
    elif word == "reference": reference = value
    elif word == "quit":
        if how == "wild": open(os.environ["FAKE_PID"] + "s", "w").close()
        break
    elif word == "load":
        if how == "crash": os.abort()
        if how == "exit": sys.exit("something is missing here")
        if how == "hang":
            with open(os.environ["FAKE_PID"], "w") as file: file.write(str(os.getpid()))
            time.sleep(86400)
        if how == "garbage": reply = "hello, I am not a driver"
        elif how == "missing": reply = "missing pip install fake"
        elif how == "unsupported": reply = "unsupported operator Frobnicate"
        else: reply = "loaded 1500000 7.8.9"
    elif word in ("warmup", "run", "full"):
        if how == "late" and word == "run": os.abort()
        if how == "nan": reply = "times 1 nan 3"
        elif how == "wild":  # a thousand times slower in every second process
            times = 1000000 * (1000 if os.path.exists(os.environ["FAKE_PID"] + "s") else 1)
            reply = "times " + " ".join([str(times)] * int(value))
        elif how == "none": reply = "times"
        elif how.startswith("drift"):  # slower with every eighth measured run of all that drift
            runs = os.environ["FAKE_PID"] + ".runs"
            before = int(open(runs).read()) if os.path.exists(runs) else 0
            if word == "run":
                with open(runs, "w") as file: file.write(str(before + int(value)))
            times = [1000000 * int(how[5:]) * (1 + (before + i) // 8) for i in range(int(value))]
            reply = "times " + " ".join(map(str, times))
        elif how.startswith("jitter"):
            seed = seed * 25214903917 + 11 & 0xFFFFFFFFFFFF
            times = [1000000 * int(how[6:]) + (seed >> 20) % 900000 + 1000 * i for i in range(int(value))]
            reply = "times " + " ".join(map(str, times))
        elif how == "once" and word == "run" and later: os.abort()
        elif how.startswith("spread"):
            n, k = int(value), int(how[6:])
            times = [1000000 * k + 13000 * ((i * 7 + len(inputs)) % 11) + os.getpid() % 97 * 1000 for i in range(n)]
            if n > 3: times[3] = 90000000
            reply = "times " + " ".join(map(str, times))
        else: reply = "times " + " ".join(["2000000"] * int(value)) + f" wall {2000000 * int(value)}"
    elif word == "memory" and how == "huge": reply = f"memory {1 << 60}"
    elif word == "memory": reply = "memory 1048576" if how != "plain" else "error what is that"
    elif word == "program":
        reply = "program " + ("false" if how == "bad-program" else "true") if how != "plain" else "unsupported none"
    elif word == "outputs":
        import numpy as np
        if how == "wrong":
            np.savez(value, output=np.full((1, 10), 123.0, np.float32))
            reply = "outputs saved"
        elif how == "other-name":
            np.savez(value, something=np.zeros(3, np.float32))
            reply = "outputs saved"
        elif how == "liar": reply = "outputs saved"
        elif how == "compares": reply = "outputs difference 1e-9"
        elif how == "far": reply = "outputs difference 5"
        else: reply = "outputs none: I keep them"
    if word == "run": later = True
    if word == "load" and how == "spins":
        import threading
        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
    if reply is not None: print(reply, flush=True)
'''


@pytest.fixture
def fake(tmp_path):
    path = tmp_path / "fake.py"
    path.write_text(FAKE)
    return path


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def bench(scratch, *arguments, model="zoo:tiny_cnn", python=sys.executable, code=0, **environment):
    """The results, after a run that left nothing behind."""
    env = dict(os.environ, TMPDIR=str(scratch), FAKE_PID=str(scratch.parent / "pid"), **environment)
    words = [PROGRAM, "bench", *([model] if model else []), "--json", "-", "--python", python, "-n", "4",
             "--rounds", "2", "--min-runs", "2", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    assert list(scratch.iterdir()) == []
    if not done.stdout:
        return done.stderr
    results = json.loads(done.stdout)
    return results["results"] if "results" in results else [results]


def by_name(results):
    return {r["runtime"]["name"]: r for r in results}


# ---------------------------------------------------------------- JSON
LATENCY = {"min", "mean", "p50", "p90", "p95", "p99", "p999", "max", "stddev"}
PROGRAM_KEYS = {"mean", "stddev", "min", "max", "user", "system", "runs"}


def test_one_runtime_is_one_object_of_the_schema(scratch):
    (r,) = bench(scratch)
    assert r["schema"] == "sonde.bench/1" and r["model"] == "zoo:tiny_cnn" and r["status"] == "ok"
    assert r["runtime"]["name"] == "sonde" and re.match(r"\d+\.\d+", r["runtime"]["version"])
    assert r["iterations"] == 4 and r["rounds"] == 2 and r["batch"] == 1
    assert set(r["latency_ms"]) == LATENCY and set(r["program_ms"]) == PROGRAM_KEYS
    assert r["program_ms"]["runs"] == 2 and r["peak_rss_bytes"] > 100000
    assert {"task-clock", "context-switches", "page-faults", "cycles"} <= set(r["counters"])
    assert r["machine"]["cpu"] and r["machine"]["cores"] >= 1
    values = r["samples"]["latency"]["values"]
    assert len(values) == 4 and r["samples"]["latency"]["rounds"] == [0, 0, 1, 1]
    assert r["latency_ms"]["min"] == pytest.approx(min(values), rel=1e-6)
    assert r["latency_ms"]["mean"] == pytest.approx(sum(values) / 4, rel=1e-6)
    assert len(r["samples"]["load"]["values"]) == 2


def test_several_are_a_list_in_the_order_of_tables(scratch, fake):
    results = bench(scratch, "zoo:tiny_mlp", "--peer", f"fake={fake}", "-t", "1,2", "--batch_size", "1,3", "--no-program")
    rows = [(r["model"], r["batch"], r["threads"], r["runtime"]["name"]) for r in results]
    assert rows == [(m, b, t, n) for m in ("zoo:tiny_cnn", "zoo:tiny_mlp") for b in (1, 3) for t in (1, 2)
                    for n in ("sonde", "fake")]
    assert all(r["program_ms"] is None and r["counters"] is None for r in results)


def test_iterations_and_rounds_add_up(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "-n", "7", "--rounds", "3", "--no-program"))
    assert results["fake"]["iterations"] == 7
    assert results["fake"]["samples"]["latency"]["rounds"] == [0, 0, 0, 1, 1, 2, 2]
    assert results["fake"]["latency_ms"]["p50"] == 2 and results["fake"]["load_ms"] == 1.5
    assert results["fake"]["throughput_per_s"] == pytest.approx(500)
    assert results["fake"]["runtime"]["version"] == "7.8.9" and results["fake"]["peak_rss_bytes"] == 1048576


def test_ratio_is_to_the_first_with_its_interval(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:a,sonde,fake:b"))
    assert list(results) == ["fake:a", "sonde", "fake:b"]
    same = results["fake:b"]["ratio"]
    assert same["value"] == same["low"] == same["high"] == 1
    ratio = results["sonde"]["ratio"]
    assert ratio["low"] <= ratio["value"] <= ratio["high"]


def test_statistics_follow_from_the_samples(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:spread2,fake:spread3,sonde",
                            "-n", "60", "--rounds", "3", "--turns", "1", "--no-program"))
    logs = []
    for name in ("fake:spread2", "fake:spread3"):
        r = results[name]
        x, rounds = np.array(r["samples"]["latency"]["values"]), np.array(r["samples"]["latency"]["rounds"])
        for key, q in [("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("p999", 99.9)]:
            assert r["latency_ms"][key] == pytest.approx(np.percentile(x, q), rel=1e-6)
        assert r["latency_ms"]["stddev"] == pytest.approx(x.std(ddof=1), rel=1e-6)
        away = np.abs(x - np.median(x))
        far = away > 5 * 1.4826 * np.median(away)
        assert far.sum() == r["outliers"] == 3
        assert r["mean_without_outliers_ms"] == pytest.approx(x[~far].mean(), rel=1e-6)
        assert r["throughput_per_s"] == pytest.approx(60 / (x.sum() / 1e3), rel=1e-6)
        logs.append(np.log([np.median(x[rounds == i]) for i in range(3)]))
    difference = logs[1] - logs[0]
    middle, half = difference.mean(), 4.303 * difference.std(ddof=1) / np.sqrt(3)
    ratio = results["fake:spread3"]["ratio"]
    assert ratio["value"] == pytest.approx(np.exp(middle), rel=1e-6)
    assert [ratio["low"], ratio["high"]] == pytest.approx([np.exp(middle - half), np.exp(middle + half)], rel=1e-6)


def test_one_round_has_no_interval(scratch, fake):
    ratio = by_name(bench(scratch, "--peer", f"fake={fake}", "--rounds", "1"))["fake"]["ratio"]
    assert ratio["value"] > 0 and ratio["low"] is None and ratio["high"] is None


# ---------------------------------------------------------------- turns
def test_what_drifts_together_gives_a_ratio_without_spread(scratch, fake, tmp_path):
    words = ["--peer", f"fake={fake}", "--against", "fake:drift2,fake:drift3,sonde", "-n", "40", "--rounds", "2",
             "--no-program"]
    drifting = by_name(bench(scratch, *words, "--turns", "5"))["fake:drift3"]
    assert drifting["turns"] == 5 and drifting["one_at_a_time"] is None
    assert max(drifting["samples"]["latency"]["values"]) == 10 * min(drifting["samples"]["latency"]["values"])
    assert list(drifting["ratio"].values()) == pytest.approx([1.5] * 3, rel=1e-9)
    (tmp_path / "pid.runs").unlink()
    alone = by_name(bench(scratch, *words, "--turns", "1"))["fake:drift3"]
    assert alone["turns"] == 1 and alone["ratio"]["value"] > 2 and alone["ratio"]["high"] > 3


def bench_models(monkeypatch):
    """bench/models.py, which other tests do not see."""
    monkeypatch.syspath_prepend(os.path.join(os.path.dirname(__file__), "..", "..", "bench"))
    monkeypatch.delitem(sys.modules, "models", raising=False)
    import models

    monkeypatch.delitem(sys.modules, "models")
    return models


def test_a_ratio_can_be_computed_from_rounds_and_turns(scratch, fake, monkeypatch):
    models = bench_models(monkeypatch)
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:jitter2,fake:jitter3,sonde", "-n", "60",
                            "--rounds", "3", "--turns", "4", "--no-program"))
    one, other = results["fake:jitter2"], results["fake:jitter3"]
    assert one["samples"]["latency"]["turns"] == [k for _ in range(3) for k in range(4) for _ in range(5)]
    assert one["samples"]["load"]["turns"] == [0, 0, 0]
    logs = np.log([np.reshape(r["samples"]["latency"]["values"], (3, 4, 5)) for r in (one, other)])
    rounds = np.median(np.median(logs[1], axis=2) - np.median(logs[0], axis=2), axis=1)
    assert other["ratio"]["value"] == pytest.approx(np.exp(rounds.mean()), rel=1e-6)
    assert [other["ratio"]["low"], other["ratio"]["high"]] == pytest.approx(
        np.exp(rounds.mean() + np.array([-1, 1]) * 4.303 * rounds.std(ddof=1) / np.sqrt(3)), rel=1e-6)
    same = models.ratio(other, one)
    assert [same[k] for k in ("value", "low", "high")] == pytest.approx(list(other["ratio"].values()), rel=1e-3)


def test_of_one_or_two_rounds_the_interval_is_over_the_turns(scratch, fake, monkeypatch):
    models = bench_models(monkeypatch)
    words = ["--peer", f"fake={fake}", "--against", "fake:jitter2,fake:jitter3,sonde", "-n", "12", "--turns", "6",
             "--no-program"]
    for rounds in (1, 2):
        results = by_name(bench(scratch, *words, "--rounds", rounds))
        one, other = results["fake:jitter2"], results["fake:jitter3"]
        logs = np.log([np.reshape(r["samples"]["latency"]["values"], (6 * rounds, -1)) for r in (one, other)])
        turns = np.median(logs[1], axis=1) - np.median(logs[0], axis=1)
        half = {1: 2.571, 2: 2.201}[rounds] * np.sqrt(np.pi / 2 / len(turns)) * 1.4826 * np.median(
            np.abs(turns - np.median(turns)))
        assert np.log(other["ratio"]["high"] / other["ratio"]["value"]) == pytest.approx(half, rel=1e-3)
        same = models.ratio(other, one)
        assert [same[k] for k in ("value", "low", "high")] == pytest.approx(list(other["ratio"].values()), rel=1e-3)


def log_of(tmp_path):
    return [tuple(line.split()) for line in (tmp_path / "pid.log").read_text().splitlines()]


def test_in_a_round_all_stay_alive_and_the_order_turns_around(scratch, fake, tmp_path):
    bench(scratch, "--peer", f"fake={fake}", "--against", "fake:logA,fake:logB,sonde", "-n", "4", "--rounds", "1", "--turns",
          "2", "--no-program")
    said = log_of(tmp_path)
    start = [(name, word) for name in "AB" for word in ("load", "warmup", "warmup", "warmup")]
    turns = [(name, word) for name in "ABBA" for word in ("warmup", "run")]
    assert said == start + turns + [("A", "quit"), ("B", "quit")]


def test_with_one_turn_each_is_alone(scratch, fake, tmp_path):
    results = bench(scratch, "--peer", f"fake={fake}", "--against", "fake:logA,fake:logB,sonde", "-n", "4", "--rounds", "1",
                    "--turns", "1", "-w", "1", "--no-program")
    assert log_of(tmp_path) == [(name, word) for name in "AB" for word in ("load", "warmup", "run", "quit")]
    assert [(r["turns"], r["one_at_a_time"]) for r in results] == [(1, None)] * 3


def test_there_are_no_more_turns_than_runs(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "-n", "5", "--rounds", "2", "--turns", "9", "--no-program"))
    assert results["fake"]["samples"]["latency"]["rounds"] == [0, 0, 0, 1, 1]
    assert results["fake"]["samples"]["latency"]["turns"] == [0, 1, 2, 0, 1]
    assert results["fake"]["turns"] == 3


def test_one_that_ends_between_turns_leaves_the_others_theirs(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:once,fake:good", "-n", "8", "--no-program"))
    assert results["fake:once"]["status"] == "crashed"
    for name in ("sonde", "fake:good"):
        assert results[name]["status"] == "ok" and results[name]["iterations"] == 8
        assert results[name]["samples"]["latency"]["turns"] == [0, 1, 2, 3] * 2


def test_where_memory_would_not_hold_all_they_are_measured_one_at_a_time(scratch, fake, tmp_path):
    page = tmp_path / "x.md"
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:huge", "-n", "8", "--no-program", "-o", page))
    for r in results.values():
        assert "all together need" in r["one_at_a_time"] and "of memory" in r["one_at_a_time"]
        assert r["samples"]["latency"]["rounds"] == [0] * 4 + [1] * 4
        assert r["samples"]["latency"]["turns"] == [0, 1, 2, 3, 0, 0, 0, 0]
        assert len(r["samples"]["load"]["values"]) == 2 and r["status"] == "ok"
    assert "\nOne runtime at a time in some rounds: all together need " in page.read_text()


def test_one_that_never_rests_is_measured_alone(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:spins,fake:good", "--no-program"))
    for r in results.values():
        assert r["one_at_a_time"] == "fake:spins uses the processor while it is idle"
        assert r["turns"] == 1 and r["iterations"] == 4 and r["status"] == "ok"


# ---------------------------------------------------------------- drivers that misbehave
@pytest.mark.parametrize("how, status, words", [
    ("crash", "crashed", "signal"),
    ("exit", "crashed", "something is missing here"),
    ("garbage", "crashed", "hello, I am not a driver"),
    ("nan", "crashed", "not a time"),
    ("none", "crashed", "without times"),
    ("late", "crashed", "signal"),
    ("missing", "missing", "pip install fake"),
    ("unsupported", "unsupported", "operator Frobnicate"),
])
def test_what_goes_wrong_is_named_and_the_rest_goes_on(scratch, fake, how, status, words):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", f"fake:{how},fake:good"))
    bad = results[f"fake:{how}"]
    assert bad["status"] == status and words in bad["message"]
    assert bad["latency_ms"] is None and bad["ratio"] is None
    assert results["fake:good"]["status"] == results["sonde"]["status"] == "ok"
    assert results["fake:good"]["iterations"] == 4 and results["fake:good"]["program_ms"]["runs"] == 2


def gone(pid):
    """Whether the process has ended; the one that collects it may be late."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def runs(pid, script):
    """Whether the process runs this script."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return str(script) in file.read().split("\0")
    except OSError:
        return False


def test_a_driver_that_hangs_is_ended(scratch, fake):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:hang", "--timeout", "5"))
    assert results["fake:hang"]["status"] == "hung" and "5 s" in results["fake:hang"]["message"]
    assert results["sonde"]["status"] == "ok"
    assert gone((scratch.parent / "pid").read_text())


def test_a_driver_that_cannot_be_executed_is_named(scratch, tmp_path):
    path = tmp_path / "broken"
    path.write_text("not a program")
    bad = by_name(bench(scratch, "--peer", f"broken={path}"))["broken"]
    assert bad["status"] == "failed" and "cannot run" in bad["message"]


def test_a_driver_may_leave_things_out(scratch, fake):
    plain = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:plain"))["fake:plain"]
    assert plain["status"] == "ok" and plain["program_ms"] is None and plain["peak_rss_bytes"] > 100000
    assert plain["outputs"] is None and "I keep them" in plain["remark"]


def test_a_program_that_fails_is_named(scratch, fake):
    bad = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:bad-program"))["fake:bad-program"]
    assert bad["status"] == "ok" and bad["program_ms"] is None and "status 1" in bad["program_message"]


@pytest.mark.parametrize("how, outputs", [("wrong", "differs"), ("other-name", "differs"), ("liar", None),
                                          ("compares", "agrees"), ("far", "differs")])
def test_outputs_are_compared(scratch, fake, how, outputs):
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", f"fake:{how}"))
    assert results["sonde"]["outputs"] == "reference"
    assert results[f"fake:{how}"]["outputs"] == outputs
    if how == "wrong":
        assert results["fake:wrong"]["max_difference"] > 100


def test_when_nothing_works_the_exit_status_says_so(scratch, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("raise SystemExit('no')")
    (r,) = bench(scratch, "--peer", f"sonde={bad}", "--against", "sonde", code=1)
    assert r["status"] == "crashed" and "no" in r["message"]


# ---------------------------------------------------------------- other runtimes
def test_a_missing_runtime_is_named_with_its_command(scratch, tmp_path):
    empty = tmp_path / "python"
    empty.write_text(f"#!/bin/sh\nexec {sys.executable} -S -E \"$@\"\n")
    empty.chmod(0o755)
    r = by_name(bench(scratch, "--against", "onnxruntime", python=str(empty), PYTHONPATH=""))["onnxruntime"]
    assert r["status"] == "missing" and r["message"] == "pip install onnxruntime"


def test_no_python_is_named(scratch):
    r = by_name(bench(scratch, "--against", "onnxruntime", python="/nonexistent/python"))["onnxruntime"]
    assert r["status"] == "failed" and "/nonexistent/python" in r["message"]


def test_onnxruntime_agrees(scratch):
    pytest.importorskip("onnxruntime")
    results = bench(scratch, "zoo:tiny_attention", "--against", "onnxruntime,onnxruntime:opt=off")
    assert [r["status"] for r in results] == ["ok"] * 6
    assert [r["outputs"] for r in results] == ["reference", "agrees", "agrees"] * 2
    assert all(r["program_ms"]["runs"] == 2 for r in results)


@pytest.mark.parametrize("name", ["openvino", "rten", "torch"])
def test_another_runtime_agrees_where_it_is_installed(scratch, name):
    r = by_name(bench(scratch, "--against", name))[name]
    without_reader = name == "torch" and r["status"] == "unsupported"  # it reads ONNX files through onnx2torch
    if r["status"] == "missing" or without_reader:
        pytest.skip(r["message"])
    assert r["status"] == "ok" and r["outputs"] == "agrees" and r["program_ms"]["runs"] == 2


def test_a_model_that_cannot_be_read_does_not_stop_the_others(scratch, tmp_path):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nonsense")
    (r,) = bench(scratch, bad, "--no-program", code=1)
    assert r["model"] == "zoo:tiny_cnn" and r["status"] == "ok"


def test_instances_run_at_once(scratch):
    pytest.importorskip("onnxruntime")
    results = bench(scratch, "--against", "onnxruntime", "--workers", "3", "--no-program")
    assert [(r["status"], r["instances"], r["iterations"]) for r in results] == [("ok", 3, 12)] * 2


def test_spellings_of_other_benches(scratch, fake):
    (r,) = bench(scratch, "--workload", "T", "-t", "2", "--w", "1", "--mode", "performance", "--no-program")
    assert r["instances"] == 2 and r["iterations"] == 8
    (r,) = bench(scratch, "--batch_size", "2", "--seq_len=5", "--iterations=3", "--no-program",
                 model="zoo:tiny_attention")
    assert r["batch"] == 2 and r["iterations"] == 3
    (r,) = bench(scratch, "--queries", "6", "--batch", "2", "--workload", "L", "--no-program")
    assert r["batch"] == 2 and r["iterations"] == 6 and r["instances"] == 1


def test_an_own_model_with_free_dims_and_two_inputs(scratch, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    h, T = onnx.helper, onnx.TensorProto
    inputs = [h.make_tensor_value_info(n, T.FLOAT, ["rows", "columns"]) for n in "ab"]
    out = h.make_tensor_value_info("sum", T.FLOAT, ["rows", "columns"])
    graph = h.make_graph([h.make_node("Add", ["a", "b"], ["sum"])], "g", inputs, [out])
    path = tmp_path / "own model.onnx"
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9), path)
    results = bench(scratch, "-s", "rows=3", "-s", "columns=5", "--against", "onnxruntime", model=str(path))
    assert [r["outputs"] for r in results] == ["reference", "agrees"]
    assert [r["batch"] for r in results] == [1, 1]


# ---------------------------------------------------------------- files
def test_csv_and_markdown_say_what_json_says(scratch, fake, tmp_path):
    files = {suffix: tmp_path / f"out.{suffix}" for suffix in ("csv", "md", "json")}
    results = bench(scratch, "--peer", f"fake={fake}", "--against", "fake:good,fake:crash",
                    *[x for path in files.values() for x in ("-o", path)])
    assert json.loads(files["json"].read_text())["results"] == results
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert [row["runtime"] for row in rows] == [r["runtime"]["name"] for r in results]
    for row, r in zip(rows, results):
        assert row["status"] == r["status"] and row["message"] == (r["message"] or "")
        if r["status"] == "ok":
            assert float(row["p50_ms"]) == pytest.approx(r["latency_ms"]["p50"], rel=1e-6)
            assert float(row["program_mean_ms"]) == pytest.approx(r["program_ms"]["mean"], rel=1e-6)
        else:
            assert row["p50_ms"] == row["program_mean_ms"] == ""
    lines = [line for line in files["md"].read_text().splitlines() if line.startswith("|")]
    widths = {}
    for line in lines:  # every row of a table has as many cells as its head
        cells = len(re.split(r"(?<!\\)\|", line)) - 2
        if re.match(r"\| (Inference|Whole program|Counters) \|", line):
            widths = cells
        assert cells == widths, line
    assert any("fake:crash" in line and "crashed" in line for line in lines)


def test_a_ratio_whose_interval_spans_everything_is_unclear_on_every_page(scratch, fake, tmp_path):
    page = tmp_path / "x.md"
    results = by_name(bench(scratch, "--peer", f"fake={fake}", "--against", "fake:a,fake:wild", "--no-program", "-o", page))
    ratio = results["fake:wild"]["ratio"]
    assert ratio["high"] is None or ratio["high"] > 10 * ratio["value"]
    row = next(line for line in page.read_text().splitlines() if line.startswith("| fake:wild"))
    assert "(unclear)" in row and "…" not in row
    assert "| 1.00 (1.00…1.00) |" in page.read_text()


def test_formulas_and_quotes_are_harmless_in_csv(scratch, tmp_path):
    path = tmp_path / '=a",b.py'
    path.write_text(FAKE)
    out = tmp_path / "out.csv"
    bench(scratch, "--peer", f'=x={path}', code=2)
    bench(scratch, "--peer", f'@"q={path}', "--no-program", "-o", out)
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert rows[1]["runtime"] == "'@\"q"


# ---------------------------------------------------------------- images and data sets
def write_ppm(path, shade):
    path.write_bytes(b"P6\n40 36\n255\n" + bytes((shade, 255 - shade, (7 * i) % 256)[k] for i in range(40 * 36)
                                                 for k in range(3)))


def test_a_folder_of_images_is_measured_with_and_without_decoding(scratch, tmp_path, fake):
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(3):
        write_ppm(folder / f"{i}.ppm", 80 * i)
    results = by_name(bench(scratch, "-i", folder, "--peer", f"fake={fake}", "--no-program"))
    assert set(results["sonde"]["latency_full_ms"]) == LATENCY
    assert results["fake"]["latency_full_ms"]["p50"] == 2
    assert len(results["sonde"]["samples"]["full"]["values"]) == 4


def test_decoded_alike(scratch, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("PIL")
    folder = tmp_path / "images"
    folder.mkdir()
    write_ppm(folder / "a.ppm", 30)
    results = bench(scratch, "-i", folder, "--against", "onnxruntime", "--no-program")
    assert [r["outputs"] for r in results] == ["reference", "agrees"]
    assert all(r["latency_full_ms"] for r in results)


def answer_of(array, tmp_path):
    """sonde's own best class."""
    np.save(tmp_path / "x.npy", array)
    subprocess.run([PROGRAM, "run", "zoo:tiny_cnn", "-q", "-i", f"input={tmp_path}/x.npy", "-o", f"{tmp_path}/o.npz"],
                   check=True, timeout=PATIENCE)
    return int(np.load(tmp_path / "o.npz")["output"].argmax())


def test_accuracy_of_a_labelled_data_set(scratch, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(5):  # right in four of five cases
        array = np.random.default_rng(i).random((1, 3, 32, 32), np.float32)
        label = (answer_of(array, tmp_path) + (i == 0)) % 10
        np.savez(folder / f"s{i}.npz", input=array, label=np.int64(label))
    (r,) = bench(scratch, "--mode", "accuracy", "--dataset", folder)
    assert r["accuracy"]["samples"] == 5 and r["accuracy"]["top1"] == pytest.approx(0.8)
    assert r["accuracy"]["top5"] >= 0.8 and r["latency_ms"] is None


def test_accuracy_takes_folders_as_classes(scratch, tmp_path):
    for name in ("3", "7"):
        (tmp_path / "data" / name).mkdir(parents=True)
        write_ppm(tmp_path / "data" / name / "a.ppm", 20 * int(name))
    (r,) = bench(scratch, "--mode", "accuracy", "--dataset", tmp_path / "data")
    assert r["accuracy"]["samples"] == 2


# ---------------------------------------------------------------- usage
@pytest.mark.parametrize("arguments, words", [
    (["--against", "onnxruntme"], "did you mean 'onnxruntime'"),
    (["--against", "onnxruntime:opt=fast"], "no variant 'opt=fast'"),
    (["--against", "torch:jit"], "its variants are compile"),
    (["--peer", "x"], "NAME=FILE"),
    (["--threads", "1,x"], "--threads"),
    (["--turns", "0"], "--turns 0 is out of range"),
    (["--batch-size", "0"], "--batch-size"),
    (["--workload", "X"], "L (latency) or T (throughput)"),
    (["--mode", "accuracy"], "--dataset"),
    (["-o", "x.txt"], ".json, .csv, .md, .svg and .png"),
    (["-s", "nothing=3"], "no dimension 'nothing'"),
])
def test_wrong_usage_is_said_before_anything_runs(scratch, arguments, words):
    assert words in bench(scratch, *arguments, code=2)


# ---------------------------------------------------------------- interruption
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(scratch, fake, tmp_path, number):
    pid_file = tmp_path / "pid"
    env = dict(os.environ, TMPDIR=str(scratch), FAKE_PID=str(pid_file))
    process = subprocess.Popen([PROGRAM, "bench", "zoo:tiny_mlp", "-n", "4", "--peer", f"fake={fake}", "--against",
                                "fake:good,fake:hang", "--python", sys.executable], env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        while not (pid_file.exists() and pid_file.read_text()):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 128 + number and "interrupted before the first table was complete" in said
    assert list(scratch.iterdir()) == []
    assert gone(pid_file.read_text())
    assert [pid for pid in filter(str.isdigit, os.listdir("/proc")) if runs(pid, fake) and not gone(pid)] == []
