# SPDX-License-Identifier: Apache-2.0
"""What SONDE_TRACE, SONDE_PROFILE, SONDE_INSTANCES and SONDE_LEVEL do to any program that uses the library."""

import csv
import json
import os
import re
import shutil
import subprocess

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


def start(folder, model="zoo:tiny_cnn", **env):
    return subprocess.Popen([PROGRAM, "run", model, "-n", "20"], cwd=folder, env={**os.environ, **env},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out, err


def test_a_trace_is_written_while_the_program_runs(tmp_path):
    finish(start(tmp_path, SONDE_TRACE="t.pftrace"))
    done = subprocess.run([PROGRAM, "report", tmp_path / "t.pftrace"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "mean of 20 runs" in done.stdout, done.stderr


def test_a_trace_with_a_limit_says_how_many_runs_it_has(tmp_path):
    err = finish(start(tmp_path, SONDE_TRACE="t.json", SONDE_LEVEL="2", SONDE_TRACE_LIMIT="40K"))[1]
    said = re.fullmatch(r"sonde: warning: the \.json file has the spans of (\d+) of 20 runs, .* limited to 40\.00 KiB; .*\n", err)
    assert said and 1 <= int(said[1]) < 20, err
    whole = finish(start(tmp_path, SONDE_TRACE="all.json", SONDE_LEVEL="2"))[1]
    assert whole == "" and (tmp_path / "t.json").stat().st_size < (tmp_path / "all.json").stat().st_size
    left = json.loads((tmp_path / "t.json").read_text())["otherData"]["left_out"]
    assert left["runs"] == 20 - int(said[1])
    assert finish(start(tmp_path, SONDE_TRACE="none.json", SONDE_TRACE_LIMIT="none"))[1] == ""
    assert finish(start(tmp_path, SONDE_TRACE="0.json", SONDE_TRACE_LIMIT="0"))[1] == ""
    assert finish(start(tmp_path, SONDE_TRACE="quiet.json", SONDE_TRACE_LIMIT="40K", SONDE_LOG="error"))[1] == ""
    err = finish(start(tmp_path, SONDE_PROFILE="prof", SONDE_TRACE_LIMIT="40K"))[1]
    assert err.count("of 20 runs") == 1, err
    err = finish(start(tmp_path, SONDE_TRACE="bad.json", SONDE_TRACE_LIMIT="much"))[1]
    assert err.startswith("sonde: SONDE_TRACE_LIMIT is 'much', expected")


def test_a_streamed_trace_with_a_limit_ends_and_says_so(tmp_path):
    """There is no room at all, so that it does not matter when the file is written."""
    err = finish(start(tmp_path, SONDE_TRACE="t.pftrace", SONDE_TRACE_LIMIT="1"))[1]
    said = "it has the first 0 of 20 runs, as its size is limited to 1 B; figures are those of the runs in it"
    assert err == f"sonde: warning: t.pftrace: {said}\n"
    read = subprocess.run([PROGRAM, "report", tmp_path / "t.pftrace", "-o", tmp_path / "t.html"], capture_output=True, text=True, timeout=PATIENCE)
    assert said in read.stdout + read.stderr, read
    for limit in ("none", "0", "100M"):
        assert finish(start(tmp_path, SONDE_TRACE="all.pftrace", SONDE_TRACE_LIMIT=limit))[1] == ""


def test_names_of_traces_are_expanded(tmp_path):
    process = start(tmp_path, SONDE_TRACE="trace-%p.json", SONDE_LEVEL="1")
    finish(process)
    trace = json.loads((tmp_path / f"trace-{process.pid}.json").read_text())
    cats = {event.get("cat") for event in trace["traceEvents"]}
    assert "operator" in cats and "executor" not in cats


def written(folder):
    """The numbers of all profiles, each with what it holds checked."""
    traces = sorted((folder / "prof" / "profiling_trace").glob("*.json"))
    for path in traces:
        trace = json.loads(path.read_text())
        assert trace["traceEvents"]
        number = re.fullmatch(r"profiling_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_(\d+)(_\d+)?", path.stem)
        assert trace["otherData"]["instance"] == int(number[1])
        rows = list(csv.reader((folder / "prof" / "profiling_csv" / f"{path.stem}.csv").open(newline="")))
        assert any("operator type" in row for row in rows)
    assert len(list((folder / "prof" / "profiling_csv").glob("*.csv"))) == len(traces)
    return [int(path.stem.split("_")[3]) for path in traces]


def test_instances_side_by_side_are_numbered(tmp_path):
    """Whatever the seconds in which they end: two sets of four take 0 to 3 twice, and overwrite nothing."""
    for rounds in (1, 2):
        running = [start(tmp_path, SONDE_PROFILE="prof", SONDE_INSTANCES="4") for _ in range(4)]
        for process in running:
            finish(process)
        assert sorted(written(tmp_path)) == sorted([0, 1, 2, 3] * rounds)


def test_instances_one_after_the_other_are_numbered(tmp_path):
    for _ in range(5):
        finish(start(tmp_path, SONDE_PROFILE="prof", SONDE_INSTANCES="3"))
    assert sorted(written(tmp_path)) == [0, 0, 1, 1, 2]


def test_without_a_number_of_instances_nothing_is_overwritten(tmp_path):
    running = [start(tmp_path, SONDE_PROFILE="prof") for _ in range(3)]
    for process in running:
        finish(process)
    assert len(written(tmp_path)) == 3


def test_a_number_of_instances_that_is_none_is_said(tmp_path):
    for value in ("0", "-1", "many", "2x", "999999999999"):
        out, err = finish(start(tmp_path, SONDE_PROFILE="prof", SONDE_INSTANCES=value))
        assert f"SONDE_INSTANCES is '{value}'" in err and "20 runs" in out
    assert len(written(tmp_path)) == 5


@pytest.mark.parametrize("word", ["1", "true", "T", "yes", "Y"])
def test_profiles_that_are_switched_on_have_a_folder(tmp_path, word):
    finish(start(tmp_path, SONDE_PROFILE=word))
    assert os.listdir(tmp_path) == ["sonde_profiling"]


@pytest.mark.parametrize("word", ["", "0", "false", "F", "no", "N"])
def test_files_that_are_switched_off_are_not_written(tmp_path, word):
    _, err = finish(start(tmp_path, SONDE_PROFILE=word, SONDE_TRACE=word, SONDE_LOG=word))
    assert (os.listdir(tmp_path), err) == ([], "")


SLOW_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

int pthread_barrier_wait(pthread_barrier_t *b)
{
    int (*real)(pthread_barrier_t *) = dlsym(RTLD_NEXT, "pthread_barrier_wait");
    usleep(200000);
    return real(b);
}

int pthread_join(pthread_t t, void **result)
{
    int (*real)(pthread_t, void **) = dlsym(RTLD_NEXT, "pthread_join");
    usleep(200000);
    return real(t, result);
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_the_rate_of_instances_does_not_contain_the_start_and_the_end_of_threads(tmp_path):
    """On a busy machine both take longer than the runs of a small model; here they always do."""
    (tmp_path / "slow.c").write_text(SLOW_THREADS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"], cwd=tmp_path, check=True)
    env = {**os.environ, "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {tmp_path / 'slow.so'}".strip(),
           "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0".strip(":")}
    done = subprocess.run([PROGRAM, "profile", "zoo:tiny_mlp", "--instances", "2", "-t", "2", "-n", "50"],
                          cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    rate = re.search(r"2 instances of 1 thread each: ([\d.]+) samples per second", done.stdout)
    assert 100 / float(rate[1]) < 0.2, done.stdout


def test_several_sessions_in_one_process_are_told_apart(tmp_path):
    command = [PROGRAM, "profile", "zoo:tiny_cnn", "--instances", "2", "-t", "2", "-n", "15", "-w", "2",
               "-s", "batch=4", "-o", "t.json", "-o", "t.pftrace", "-o", "t.summary.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "mean of 30 runs in 2 instances" in done.stdout
    rate = re.search(r"2 instances of 1 thread each: ([\d.]+) samples per second", done.stdout)
    summary = json.loads((tmp_path / "t.summary.json").read_text())
    assert summary["instances"] == 2 and summary["iterations"] == 30 and summary["warmups"] == 4
    # Both count from the first measured run to the last; the program also what is around the runs.
    assert 0 < float(rate[1]) <= summary["runs_per_s"] * 4 * 1.01
    again = subprocess.run([PROGRAM, "report", "t.pftrace", "-o", "again.json"], cwd=tmp_path, capture_output=True,
                           text=True, timeout=PATIENCE)
    assert again.returncode == 0 and "mean of 30 runs in 2 instances" in again.stdout
    for name in ("t.json", "again.json"):
        events = json.loads((tmp_path / name).read_text())["traceEvents"]
        runs = [e for e in events if e.get("cat") == "iteration"]
        for instance in (0, 1):
            own = [e for e in runs if e["args"]["instance"] == instance]
            assert len(own) == 17 and len({e["tid"] for e in own}) == 1
            ops = [e for e in events if e.get("cat") == "operator" and e["args"]["instance"] == instance]
            assert len({e["tid"] for e in ops}) == 1
        assert len({e["tid"] for e in runs}) == 2
        lanes = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
        assert {"instance 0", "instance 1", "iteration of instance 0", "iteration of instance 1"} <= lanes


def test_run_checks_the_outputs_of_every_instance(tmp_path):
    def run(*options):
        return subprocess.run([PROGRAM, "run", "zoo:tiny_mlp", *options], cwd=tmp_path, capture_output=True, text=True,
                              timeout=PATIENCE)
    assert run("-o", "out.npz", "-q").returncode == 0
    done = run("--instances", "3", "--check", "out.npz", "--json", "r.json")
    assert done.returncode == 0 and "check: 1 output is as expected" in done.stdout, done.stderr
    figures = json.loads((tmp_path / "r.json").read_text())
    assert figures["instances"] == 3 and figures["iterations"] == 3 and figures["throughput_per_s"] > 0
    assert run("--instances", "3", "--check", "out.npz", "--seed", "5").returncode == 3


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
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=PATIENCE)
    subprocess.run([PROGRAM, "report", "t.pftrace", "-q", "-o", "t.json"], cwd=tmp_path, check=True, timeout=PATIENCE)
    spans = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    by_id = {e["args"]["span_id"]: e for e in spans if "span_id" in e["args"]}
    begin = min(e["ts"] for e in spans if e["cat"] == "iteration")
    shares = [e for e in spans if e["cat"] == "thread" and e["ts"] > begin]
    assert shares  # of the calling thread at least
    for share in shares:
        step = by_id[share["args"]["parent_span_id"]]
        assert step["cat"] == "operator" and step["name"] == share["args"]["node"]
        skew = 1  # microseconds: two cores, whose clocks are read one after the other
        assert step["ts"] <= share["ts"] + skew
        assert share["ts"] + share["dur"] <= step["ts"] + step["dur"] + skew
