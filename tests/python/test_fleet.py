# SPDX-License-Identifier: Apache-2.0
"""Traces of several processes, some of which are killed: joined without loss, shown by worker, read again."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from otlp_receiver import attributes_of, entries_of

import sonde

PROGRAM = os.environ.get("SONDE_PROGRAM")

# Writes to a pipe when it has run often enough, and goes on until it is told to end.
WORKER = textwrap.dedent("""
    import sys, numpy as np, sonde
    path, name, runs, wait = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    with sonde.profiler.stream(path, labels={"worker": name, "host": "box-" + name[0], "version": 3}):
        session = sonde.InferenceSession("zoo:tiny_mlp")
        feed = {i.name: np.zeros([1 if isinstance(d, str) else d for d in i.shape], np.float32)
                for i in session.get_inputs()}
        for _ in range(runs):
            session.run(None, feed)
        if wait == "wait":
            print("ready", flush=True)
            while True:
                session.run(None, feed)
""")


def start(folder, name, runs, wait="no"):
    return subprocess.Popen([sys.executable, "-c", WORKER, folder / f"{name}.pftrace", name, str(runs), wait],
                            stdout=subprocess.PIPE, env={**os.environ, "SONDE_THREADS": "1"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three workers that end, one that is killed."""
    folder = tmp_path_factory.mktemp("fleet")
    workers = [start(folder, name, runs) for name, runs in (("a1", 30), ("a2", 20), ("b1", 25))]
    killed = start(folder, "b2", 10, "wait")
    try:
        assert killed.stdout.readline() == b"ready\n"
        size = (folder / "b2.pftrace").stat().st_size
        while (folder / "b2.pftrace").stat().st_size < size + 10000:
            pass
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        killed.stdout.close()
    for worker in workers:
        assert worker.wait() == 0
        worker.stdout.close()
    return folder


@pytest.fixture(scope="module")
def fleet(folder):
    return sonde.merge(folder, folder / "fleet.pftrace")


def spans(profile):
    """Of measured runs: how many, the operators and their time, the dropped records."""
    c = profile.columns()
    measured = ~c["warm_up"]
    operators = measured & (np.array(c["cat"]) == "operator")
    runs = measured & (np.array(c["cat"]) == "iteration")
    return int(runs.sum()), int(operators.sum()), int(c["dur"][operators].sum()), profile.summary()["dropped"]


def test_every_worker_is_there_by_its_labels(fleet, folder):
    assert [(t["host"], t["worker"], t["version"], t["model"]) for t in fleet.traces] == [
        ("box-a", "a1", "3", "tiny_mlp"), ("box-a", "a2", "3", "tiny_mlp"),
        ("box-b", "b1", "3", "tiny_mlp"), ("box-b", "b2", "3", "tiny_mlp")]
    assert not fleet.skipped
    assert [bool(t["note"]) for t in fleet.traces] == [False, False, False, True]  # the killed one
    assert len({t["pid"] for t in fleet.traces}) == 4


def test_totals_are_the_sums_of_the_workers(fleet, folder):
    alone = [sonde.load_profile(folder / f"{name}.pftrace") for name in ("a1", "a2", "b1", "b2")]
    sums = np.sum([spans(p) for p in alone], axis=0).tolist()
    assert sums[0] >= 30 + 20 + 25 + 10
    whole = sonde.load_profile(folder / "fleet.pftrace")
    assert list(spans(whole)) == sums
    for by in ("host", "worker", "version"):
        for rows in (fleet.by(by), whole.by(by)):
            assert [sum(row[key] for row in rows) for key in ("runs", "operators", "operator_ns", "dropped")] == sums
            assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert fleet.by("worker") == whole.by("worker")
    assert [row["runs"] for row in fleet.by("worker")][:3] == [30, 20, 25]
    assert [row["incomplete"] for row in fleet.by("worker")] == [0, 0, 0, 1]


def test_latencies_are_those_of_the_workers(fleet, folder):
    for row in fleet.by("worker"):
        alone = sonde.load_profile(folder / f"{row['worker']}.pftrace").summary()
        assert row["p50_ns"] == pytest.approx(alone["p50_ns"])
        assert row["p99_ns"] == pytest.approx(alone["p99_ns"])


def test_workers_of_one_machine_lie_exactly(fleet, folder):
    """Each span begins when it did, to the nanosecond but for what the one line of time moved all of a trace."""
    if fleet.clocks["loose"]:
        pytest.skip("the system does not say which boot this is")
    assert fleet.clocks["boots"] == 1
    whole = sonde.load_profile(folder / "fleet.pftrace").columns()
    for trace in fleet.traces:
        alone = sonde.load_profile(trace["path"]).columns()
        own = {(name, start + trace["moved_ns"], dur)
               for name, start, dur in zip(alone["name"], alone["start"].tolist(), alone["dur"].tolist())}
        assert own <= set(zip(whole["name"], whole["start"].tolist(), whole["dur"].tolist()))
        assert abs(trace["moved_ns"]) < 10**9


def test_what_is_merged_twice_is_counted_once(folder, tmp_path):
    (tmp_path / "link.pftrace").symlink_to(folder / "a1.pftrace")
    twice = sonde.merge([folder, tmp_path, folder / "a2.pftrace", folder / "fleet.pftrace"])
    assert len(twice) == 4
    assert twice.skipped and all(s["duplicate"] for s in twice.skipped)


def test_files_that_are_no_traces(folder, tmp_path):
    odd = tmp_path / os.fsdecode(b"odd \"name\"\n\xff.pftrace")
    odd.write_bytes(b"nothing")
    fleet = sonde.merge([folder, tmp_path])
    assert [s["path"] for s in fleet.skipped if not s["duplicate"]] == [os.fspath(odd)]
    with pytest.raises(sonde.InvalidArgument, match="no trace to merge"):
        sonde.merge(tmp_path)
    with pytest.raises(sonde.InvalidArgument, match="cannot group"):
        fleet.by("rack")
    (tmp_path / "empty").mkdir()
    with pytest.raises(sonde.NoSuchFile, match="no trace to merge"):
        sonde.merge(tmp_path / "empty")
    with pytest.raises(sonde.Error, match="no_such_folder"):
        fleet.save(tmp_path / "no_such_folder" / "x.pftrace")


def test_other_formats_of_a_fleet(fleet, folder, tmp_path):
    runs = sum(row["runs"] for row in fleet.by("host"))
    fleet.save(tmp_path / "fleet.json")
    trace = json.loads((tmp_path / "fleet.json").read_text())
    processes = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert processes == {"box-a / a1", "box-a / a2", "box-b / b1", "box-b / b2", "all workers"}
    assert len({e["pid"] for e in trace["traceEvents"]}) == 5  # what counters add up is beside the workers
    assert spans(sonde.load_profile(tmp_path / "fleet.json"))[:3] == spans(fleet.profile())[:3]
    fleet.save(tmp_path / "fleet.summary.json")
    assert json.loads((tmp_path / "fleet.summary.json").read_text())["iterations"] == runs
    for suffix in (".html", ".csv", ".md", ".xlsx", ".folded", ".pb.gz", ".page.gz"):
        fleet.save(tmp_path / f"fleet{suffix}")
        assert (tmp_path / f"fleet{suffix}").stat().st_size > 100


def test_spans_for_a_collector_lie_beside_their_worker(fleet, folder, tmp_path):
    own, again = tmp_path / "own.otlp.json", tmp_path / "again.otlp.json"
    fleet.save(own)
    fleet.save(tmp_path / "fleet.pftrace")
    sonde.load_profile(tmp_path / "fleet.pftrace").export(again)
    assert again.read_bytes() == own.read_bytes()
    entries = entries_of(own.read_bytes())
    names = [resource["sonde.label.worker"] for resource, _ in entries]
    assert names == ["a1", "a2", "b1", "b2"]
    for name, (resource, spans) in zip(names, entries, strict=True):
        assert resource["host.name"] == f"box-{name[0]}" and resource["sonde.label.version"] == "3"
        alone = sonde.load_profile(folder / f"{name}.pftrace")
        ((single, expected),) = entries_of(alone.to_bytes(".otlp.json"))
        assert single == resource
        assert [(span["name"], attributes_of(span)) for span in spans] == [
            (span["name"], attributes_of(span)) for span in expected]
    assert len({span["spanId"] for _, spans in entries for span in spans}) == sum(len(spans) for _, spans in entries)


def test_a_straggler_is_named_by_its_runs(tmp_path):
    """Seven traces of one set of runs; in one of them the operators are stretched by hand."""
    with sonde.profile(level=1) as profiler:
        session = sonde.InferenceSession("zoo:tiny_mlp")
        feed = {i.name: np.zeros([1 if isinstance(d, str) else d for d in i.shape], np.float32)
                for i in session.get_inputs()}
        for _ in range(20):
            session.run(None, feed)
    trace = profiler.get()
    for k in range(7):
        own = json.loads(json.dumps(trace))
        own["otherData"]["labels"] = {"host": "box", "worker": str(k)}
        own["otherData"]["start_mono_ns"] = str(10**9 + k)
        for e in own["traceEvents"]:
            if e["ph"] == "X" and e["cat"] in ("iteration", "operator"):
                e["ts"] = e["ts"] * 3
                e["dur"] = e["dur"] * (2 if k == 5 else 1)
        (tmp_path / f"{k}.json").write_text(json.dumps(own))
    fleet = sonde.merge(sorted(tmp_path.glob("*.json")))
    [straggler] = fleet.stragglers
    assert (straggler["host"], straggler["worker"], straggler["peers"]) == ("box", "5", 7)
    assert straggler["p50_ns"] > 1.5 * straggler["usual_ns"]
    assert straggler["op"] and straggler["op_ns"] > straggler["op_usual_ns"]


# ---------------------------------------------------------------- labels
def test_labels_come_from_the_environment_and_the_profiler(tmp_path):
    code = textwrap.dedent("""
        import json, os, sonde
        with sonde.profile(labels={"worker": "w \\udcff", "version": 4, "site": None}) as profiler:
            sonde.InferenceSession("zoo:tiny_mlp")
        print(json.dumps([profiler.labels, os.getpid()]))
    """)
    env = {**os.environ, "SONDE_LABELS": r"host=a\,b,site=x,worker=none,=bad"}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    labels, pid = json.loads(run.stdout)
    assert labels == {"host": "a,b", "worker": "w �", "version": "4"}
    assert run.stderr.startswith("sonde: SONDE_LABELS: a label has no key")
    env["SONDE_LABELS"] = "host="
    run = subprocess.run([sys.executable, "-c", code.replace('"worker": "w \\udcff", ', "")], env=env,
                         capture_output=True, text=True, check=True)
    labels, pid = json.loads(run.stdout)
    assert labels == {"worker": str(pid), "version": "4"} and not run.stderr


def test_labels_that_are_none(tmp_path):
    for bad in ({"": "x"}, {"k" * 256: "x"}, {"k": "v" * 4097}, {"a\0b": "x"}, {f"k{i}": "v" for i in range(70)}):
        with pytest.raises(sonde.Error), sonde.profile(labels=bad):
            pass
    with pytest.raises(TypeError), sonde.profile(labels="host=a"):
        pass
    with sonde.profile(labels={"key \n\"": "=,\\"}) as profiler:
        pass
    assert profiler.labels["key \n\""] == "=,\\"


def test_a_merge_does_not_replace_what_nothing_else_has(tmp_path):
    """Not even where the result is a file of the folder: only an earlier result may go."""
    session = sonde.InferenceSession("zoo:tiny_mlp")
    for name in "abc":
        with sonde.profiler.stream(tmp_path / f"{name}.pftrace", labels={"worker": name}):
            session.run(None, session.random_inputs())
    traces = {path: path.read_bytes() for path in tmp_path.iterdir()}
    first = tmp_path / "a.pftrace"
    with pytest.raises(sonde.InvalidArgument, match="that no other file has"):
        sonde.merge(tmp_path, first)
    with pytest.raises(sonde.InvalidArgument, match="is read and cannot take the result"):
        sonde.merge([first, tmp_path / "b.pftrace"], first)
    if PROGRAM:
        for output in ([first], [tmp_path / "x.json", "-o", first]):
            done = subprocess.run([PROGRAM, "merge", tmp_path, "-o", *output], capture_output=True, text=True)
            assert done.returncode != 0 and "that no other file has" in done.stderr
    assert {path: path.read_bytes() for path in traces} == traces
    for _ in range(2):  # the second time it is there
        assert len(sonde.merge(tmp_path, tmp_path / "fleet.pftrace")) == 3


def test_the_first_trace_of_a_process_knows_the_cost_of_records(tmp_path):
    path = tmp_path / "first.pftrace"
    code = f"""
import sonde
with sonde.profiler.stream({str(path)!r}):
    session = sonde.InferenceSession("zoo:tiny_mlp")
    for _ in range(200):
        session.run(None, session.random_inputs())
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert sonde.load_profile(path).summary()["cost_ns"] > 0


def test_a_stream_is_one_at_a_time_and_ends_once(tmp_path):
    path = tmp_path / "x.pftrace"
    with sonde.profiler.stream(path, labels={"worker": "1"}) as stream:
        with pytest.raises(sonde.InvalidArgument, match="already running"):
            sonde.profiler.stream(tmp_path / "y.pftrace")
        pid = os.fork()
        if pid == 0:
            stream.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        sonde.InferenceSession("zoo:tiny_mlp")
    stream.close()
    assert "closed" in repr(stream)
    profile = sonde.load_profile(path)
    assert profile.labels["worker"] == "1" and not profile.summary()["note"]
    with pytest.raises(sonde.Error, match="only .pftrace"):
        sonde.profiler.stream(tmp_path / "x.json")


# ---------------------------------------------------------------- the program
@pytest.mark.skipif(not PROGRAM, reason="no SONDE_PROGRAM")
def test_the_program_says_the_same(fleet, folder, tmp_path):
    run = subprocess.run([PROGRAM, "merge", folder, "-o", tmp_path / "fleet.pftrace", "--json", tmp_path / "fleet.json"],
                         capture_output=True, text=True, check=True)
    assert "4 traces of 4 workers on 2 hosts" in run.stdout
    assert "truncated" in run.stderr  # the killed worker
    told = json.loads((tmp_path / "fleet.json").read_text())
    assert told["schema"] == "sonde.fleet/1" and len(told["files"]) == 4
    for by in ("host", "worker", "version"):
        for own, theirs in zip(fleet.by(by), told[f"{by}s"], strict=True):
            assert {k: pytest.approx(v) if isinstance(v, float) else v for k, v in own.items()} == theirs
