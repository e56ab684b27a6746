# SPDX-License-Identifier: Apache-2.0
"""sonde.history: what is added is found again, with its figures; filters, references, comparisons and trends."""

import datetime
import gzip
import json
import multiprocessing
import os
import subprocess
import threading

import numpy as np
import pytest

import sonde
from sonde import history, zoo

PROGRAM = os.environ.get("SONDE_PROGRAM")


def available(folder):
    try:
        history.open(folder / "probe.db").close()
    except sonde.NotImplemented:
        return False
    return True


@pytest.fixture
def db(tmp_path, monkeypatch):
    if not available(tmp_path):
        pytest.skip("this build has no SQLite")
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "SONDE_HISTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SONDE_MACHINE", "box")
    monkeypatch.chdir(tmp_path)
    with history.open(tmp_path / "h.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def session():
    return sonde.InferenceSession("zoo:tiny_cnn")


@pytest.fixture(scope="module")
def profile(session):
    feed = session.random_inputs(seed=1)
    with sonde.profile() as profiler:
        for _ in range(30):
            session.run(None, feed)
    return profiler


def samples(ns, n=20):
    return [ns * (1 + (i % 5 - 2) / 1000) for i in range(n)]


def test_a_profile_reads_back_as_it_was(db, session, profile):
    id = db.add(profile, session=session, commit="abc1234", note="first ✓", options={"batch": 1})
    entry = db.get()
    assert (entry.id, entry.kind, entry.runtime, entry.version) == (id, "profile", "sonde", sonde.__version__)
    assert (entry.commit, entry.note, entry.host) == ("abc1234", "first ✓", "box")
    inputs = "input f32[1, 3, 32, 32]"
    assert entry.options == {"batch": 1, "inputs": inputs, "precision": "file", "threads": profile.summary()["threads"]}
    assert len(entry.model_hash) == len(entry.model_form) == 32
    summary = profile.summary()
    assert entry.runs == summary["iterations"] == len(entry.samples_ns()) == 30
    assert entry.median_ns == pytest.approx(np.median(entry.samples_ns()), abs=1)
    assert entry.low_ns <= entry.median_ns <= entry.high_ns
    assert entry.profile().summary()["iterations"] == 30
    assert {r["name"] for r in entry.operators()} == {r["name"] for r in profile.rows()}
    assert sum(r["mean_ns"] for r in entry.operators()) == pytest.approx(entry.mean_ns, rel=1e-3)
    now = datetime.datetime.now().astimezone()
    assert abs(now - entry.time) < datetime.timedelta(days=1) and entry.time.tzinfo
    assert json.loads(json.dumps(entry.to_dict()))["id"] == id
    assert "id=1" in repr(entry)


def test_profiles_save_themselves(tmp_path, db, profile, monkeypatch):
    other = tmp_path / "other's #1?.db"
    assert profile.save_history(other, note="x") == 1
    monkeypatch.setenv("SONDE_HISTORY", str(tmp_path / "usual.db"))
    assert profile.save_history() == 1
    with history.open() as usual:
        assert usual.path == str(tmp_path / "usual.db") and [e.kind for e in usual] == ["profile"]


def test_benchmarks_and_latencies_are_entries_too(db, session):
    result = sonde.bench(session, iterations=10, warmup=1)
    db.add(result, options={"batch": 1})
    db.add(np.array(samples(5e5)), model="mine", runtime="other", version="7", kind="own", peak_bytes=1000)
    own, bench = db.entries()
    assert bench.kind == "bench" and bench.runs == 10 and bench.options["batch"] == 1 and "threads" in bench.options
    assert bench.median_ns == pytest.approx(np.median(result.samples_ms) * 1e6, abs=1)
    assert (own.model, own.runtime, own.version, own.kind) == ("mine", "other", "7", "own")
    assert own.peak_bytes == 1000 and own.profile_bytes == 0
    with pytest.raises(sonde.InvalidArgument, match="no profile"):
        own.profile()


def test_filters_and_references(db):
    for i in range(12):
        db.add(samples(1000 + i), model="a" if i % 2 else "b", commit=f"{i:06x}f" if i != 11 else "", time=1e9 + i,
               options={"threads": i % 3})
    assert len(list(db)) == 12 and len(db.records("a")) == 6
    assert [e.id for e in db.entries("b", limit=2)] == [11, 9]
    assert [e.id for e in db.entries(options={"threads": 2}, model="a")] == [12, 6]
    assert [e.id for e in db.entries(options="threads=0")] == [10, 7, 4, 1]
    when = datetime.datetime.fromtimestamp(1e9 + 6)
    for since in (1e9 + 6, when, when.astimezone(datetime.timezone.utc), when.isoformat()):
        assert [e.id for e in db.entries(since=since)] == [12, 11, 10, 9, 8, 7]
    assert [e.id for e in db.entries(until=1e9 + 2)] == [2, 1]
    assert [e.id for e in db.entries(commit="00000a")] == [11]
    assert list(db.entries(since=datetime.date(2100, 1, 1))) == []
    assert db.find("@0") == 12 and db.find("@-1") == 6 and db.find("@0", "b") == 11
    assert db.find(3) == db.find("#3") == db.find("000002f") == 3
    series = db.get(12).series
    assert [e.id for e in db.entries(series=series)] == [12, 6]
    for wrong in ("@-9", "@1", "", "99", "none", "ffff", "x\x00y"):
        with pytest.raises((sonde.InvalidArgument, ValueError)):
            db.find(wrong)
    for wrong in ({"since": "soon"}, {"limit": -1}, {"series": -1}):
        with pytest.raises(sonde.InvalidArgument):
            list(db.entries(**wrong))
    with pytest.raises(TypeError):
        db.entries(colour="red")


def test_a_frame_has_a_row_for_each_entry(db):
    pandas = pytest.importorskip("pandas")
    assert len(db.dataframe()) == 0 and "median_ns" in db.dataframe()
    db.add(samples(1000), time=1e9)
    frame = db.dataframe()
    assert list(frame.id) == [1] and frame.time[0] == pandas.Timestamp(1e9, unit="s", tz="UTC")


def test_entries_are_compared(db, profile):
    db.add(profile)
    db.add(profile)
    change = db.diff()
    assert change.total["verdict"] in ("same", "unclear") and change.total["ratio"] == 1 and len(change.rows) > 2
    assert {r["verdict"] for r in db.diff(1, 2, by="node").rows} <= {"same", "unclear"}
    db.add(samples(1e6), model="m", options={"threads": 1})
    db.add(samples(1.3e6), model="m", options={"threads": 1})
    slower = db.diff()
    assert slower.total["verdict"] == "slower" and slower.rows == []
    assert slower.total["ratio"] == pytest.approx(1.3)
    assert db.unlike("@-1", "@0") == "" and "kind" in db.unlike(1, 3)
    with pytest.raises(sonde.InvalidArgument, match="colour"):
        db.diff(by="colour")
    with pytest.raises(sonde.InvalidArgument, match="there is no @-5"):
        db.diff("@-5")


def test_trends_find_the_step_that_was_put_in(db, tmp_path):
    noise = np.random.default_rng(7)
    for i in range(40):
        level = 1e6 * (1.1 if i >= 25 else 1)
        db.add(samples(level * noise.normal(1, 0.005)), model="m", commit=f"{i:07d}", time=1e9 + i)
        db.add(samples(2e6 * noise.normal(1, 0.005)), model="n", time=1e9 + i)
    flat, stepped = sorted(db.trends(), key=lambda t: len(t.changes))
    assert flat.changes == [] and flat.regression is None and len(flat.points) == 40
    (step,) = stepped.changes
    assert step.start == 25 and step.stop == 40 and step.low < step.ratio < step.high
    assert step.ratio == pytest.approx(1.1, rel=0.01) and stepped.regression == step
    assert stepped.points[25]["commit"] == "0000025" and stepped.title.startswith("m")
    assert len(db.trends(across="models")) == 1 and len(db.trends("n")) == 1
    found = history.changes([p["ns"] for p in stepped.points])
    assert [(c.at, c.ratio) for c in found] == [(25, pytest.approx(step.ratio))]
    db.trends("m", file=[tmp_path / "t.svg", str(tmp_path / "u.svg")])
    assert (tmp_path / "t.svg").read_bytes() == (tmp_path / "u.svg").read_bytes()
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    for wrong in ({"across": "colours"}, {"file": "t.png"}, {"shortest": 1}):
        with pytest.raises(sonde.InvalidArgument):
            db.trends(**wrong)


def test_points_of_joined_series_say_which_one_they_are(db):
    for i in range(12):
        db.add([1e6, 1e6], model=f"net-v{1 + i // 6}", time=1e9 + i, options={"threads": 1})
    (joined,) = db.trends("net*", across="models")
    assert joined.across == "model" and joined.title == "net*, 1 thread, bench"
    assert [p["which"] for p in joined.points] == ["net-v1"] * 6 + ["net-v2"] * 6
    assert [p["model"] for p in joined.points] == [p["which"] for p in joined.points]
    for trend in db.trends():
        assert trend.across == "" and {p["which"] for p in trend.points} == {""}


def test_pages_of_trends_name_the_database_that_was_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SONDE_HISTORY", str(tmp_path / "usual.db"))

    def named(path):
        with history.open(path) as db:
            db.add([1e6, 1e6], model="m")
            db.trends(file="t.page.gz")
        header, _, _ = gzip.decompress((tmp_path / "t.page.gz").read_bytes()).partition(b"\n")
        return json.loads(header)["trends"][0].get("db")

    assert [named(path) for path in ("a b.db", "./c.db", tmp_path / "d.db", None)] == ["a b.db", "./c.db", str(tmp_path / "d.db"), None]


def test_sessions_say_what_was_measured(tmp_path):
    """Entries of a session have its inputs, options and name, so that unlike ones are never one series."""
    model = tmp_path / "a model.onnx"
    zoo.save("tiny_cnn", model)
    plain = sonde.SessionOptions()
    plain.intra_op_num_threads = 1
    bare = sonde.SessionOptions()
    bare.intra_op_num_threads = 1
    bare.graph_optimization_level = sonde.GraphOptimizationLevel.ORT_DISABLE_ALL
    with history.open(tmp_path / "h.db") as db:
        for source, options, batch in ((model, plain, 1), (model, plain, 8), (model, bare, 1), ("zoo:tiny_cnn", plain, 1)):
            session = sonde.InferenceSession(source, options)
            feeds = session.random_inputs(sizes={"batch": batch})
            with sonde.profile() as profiler:
                session.run(None, feeds)
            db.add(profiler, session=session)
            db.add(sonde.bench(session, feeds, iterations=10), session=session)
        entries = list(db)[::-1]
    assert len({entry.series for entry in entries}) == len(entries)
    assert [entry.model for entry in entries[::2]] == ["a model.onnx"] * 3 + ["zoo:tiny_cnn"]
    first, second, third = (entry.options for entry in entries[0:6:2])
    assert first == {"threads": 1, "precision": "file", "inputs": "input f32[1, 3, 32, 32]"}
    assert second["inputs"] == "input f32[8, 3, 32, 32]"
    assert third == {**first, "optimize": False}
    assert entries[1].options == first and all(entry.model_hash for entry in entries)


def test_a_session_that_did_not_run_has_no_inputs(tmp_path):
    session = sonde.InferenceSession("zoo:tiny_mlp")
    with history.open(tmp_path / "h.db") as db:
        db.add([1.0] * 5, session=session)
        db.add(sonde.bench("zoo:tiny_mlp", iterations=10))
        bench, bare = db
    assert "inputs" not in bare.options and bare.options["threads"] == bench.options["threads"] > 0
    assert bench.options["inputs"].startswith("input f32[")


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM names no program")
def test_the_command_line_and_the_package_say_the_same(db, tmp_path):
    path = tmp_path / "two.db"
    subprocess.run([PROGRAM, "profile", "zoo:tiny_cnn", "-n", "5", "-t", "1", "-q", f"--save={path}"], check=True)
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    session = sonde.InferenceSession("zoo:tiny_cnn", options)
    with sonde.profile() as profiler:
        session.run(None, session.random_inputs())
    with history.open(path) as db:
        db.add(profiler, session=session)
        package, program = db
    assert package.options == program.options and package.series == program.series


@pytest.mark.parametrize("wrong", [-1, 2**63, 2**64, 2**64 + 1, 2**70, 1.5, "1"])
def test_numbers_that_are_none_are_refused(db, wrong):
    db.add([1.0])
    for ask in (lambda: db.prune(wrong), lambda: list(db.entries(limit=wrong)), lambda: list(db.entries(series=wrong)),
                lambda: history.changes([1.0] * 20, shortest=wrong), lambda: db.trends(shortest=wrong),
                lambda: db.add([1.0], peak_bytes=wrong)):
        with pytest.raises(sonde.InvalidArgument):
            ask()
    assert len(list(db)) == 1


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e300, "2026-02-30", "soon", datetime.date.min])
def test_times_that_are_none_are_refused(db, wrong):
    for ask in (lambda: list(db.entries(since=wrong)), lambda: db.add([1.0], time=wrong)):
        with pytest.raises(sonde.InvalidArgument):
            ask()


def test_a_number_of_thousands_of_digits_is_refused(db):
    with pytest.raises(sonde.InvalidArgument, match="digits"):
        db.add([1.0], options='{"a":1' + "0" * 5000 + "}")
    assert list(db) == []


def test_changes_of_plain_numbers():
    assert history.changes([]) == [] and history.changes([1.0] * 50) == []
    (change,) = history.changes([10.0, 10.1] * 10 + [12.0, 12.1] * 10)
    assert change.at == 20 and change.before < 10.1 < 12 <= change.after and change.p < 0.01
    assert history.changes(float(i % 2) for i in range(100)) == []
    with pytest.raises(sonde.InvalidArgument):
        history.changes([1.0, 2.0], false_alarms=2)


def test_entries_and_profiles_are_removed(db, profile):
    for _ in range(4):
        db.add(profile)
    assert db.prune(1, only_profiles=True) == 3
    assert [bool(e.profile_bytes) for e in db] == [True, False, False, False]
    db.remove("@0", 1)
    assert [e.id for e in db] == [3, 2]
    assert db.prune(1) == 1 and db.prune(0, model="nothing") == 0
    with pytest.raises(sonde.InvalidArgument):
        db.prune(-1)
    with pytest.raises(sonde.InvalidArgument, match="no entry"):
        db.remove(99)


def test_what_is_wrong_is_said(db, tmp_path):
    for bad in ([], [1.0, float("nan")], [-1.0]):
        with pytest.raises(sonde.InvalidArgument):
            db.add(bad)
    with pytest.raises(sonde.InvalidArgument, match="JSON object"):
        db.add(samples(1), options="[1]")
    with pytest.raises(sonde.InvalidArgument, match="InferenceSession"):
        db.add(samples(1), session="zoo:tiny_cnn")
    with pytest.raises(sonde.NoSuchFile):
        history.open(tmp_path / "none.db", read_only=True)
    (tmp_path / "text.db").write_text("text")
    with pytest.raises(sonde.InvalidProtobuf, match="not a history"):
        history.open(tmp_path / "text.db")
    assert (tmp_path / "text.db").read_text() == "text"
    with history.open(db.path, read_only=True) as reader:
        assert list(reader) == []
        with pytest.raises(sonde.InvalidArgument, match="read only"):
            reader.add(samples(1))
    db.close()
    db.close()
    assert repr(db) == "<sonde history, closed>"
    with pytest.raises(sonde.InvalidArgument, match="closed"):
        db.add(samples(1))


def test_a_list_outlives_close_and_names_may_be_anything(db):
    odd = ["", "\n\x01", "é✓", "\udcff\udcfe", "'; DROP TABLE entry; --", "%s*?[", "x" * 5000]
    for name in odd:
        db.add(samples(1), model=name, note=name, commit=name)
    entries = db.entries()
    first = next(entries)
    db.close()
    rest = [first, *entries]
    assert [e.model for e in reversed(rest)] == [n.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for n in odd]


def add_many(path, writer, n):
    with history.open(path) as own:
        for i in range(n):
            own.add(samples(1000 + i), model=f"writer {writer}", commit="")


def test_processes_that_write_at_once_lose_nothing(db):
    each = 1000 if os.environ.get("SONDE_FULL") == "1" else 10
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=add_many, args=(db.path, i, each)) for i in range(8 if each > 10 else 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [w.exitcode for w in writers] == [0] * len(writers)
    for i in range(len(writers)):
        assert len(db.records(f"writer {i}")) == each


def test_threads_share_a_history_and_close_waits_for_them(db):
    errors = []

    def work():
        try:
            for _ in range(10):
                db.add(samples(1), commit="")
                list(db.entries(limit=5))
        except sonde.Error as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(list(db)) == 40


def test_the_commit_is_what_git_has_checked_out(tmp_path, monkeypatch):
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        monkeypatch.delenv(name, raising=False)
    git = tmp_path / "r" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("0123456789" * 4 + "\n")
    assert history.find_commit(tmp_path / "r") == "0123456789" * 4
    assert history.find_commit(str(tmp_path / "none")) == ""
