# SPDX-License-Identifier: Apache-2.0
"""Records and what runs inside them form one tree, whichever way a profile is looked at: columns, data frames, Arrow,
files that were read again, and a trace that was written while the program ran."""

import os
import re
import subprocess
import sys
import threading

import pytest

sonde = pytest.importorskip("sonde")

PROGRAM = """
import sys, threading, sonde
session = sonde.InferenceSession("zoo:tiny_loop")
feed = session.random_inputs(seed=1)
def work():
    session.run(None, feed)
    with sonde.record("a"):
        session.run(None, feed)
        with sonde.record("b"):
            with sonde.record("c"):
                session.run(None, feed)
                session.run(None, feed)
            session.run(None, feed)
    with sonde.record("warm", warm_up=True):
        with sonde.record("in warm"):
            session.run(None, feed)
    with sonde.record("elsewhere"):
        thread = threading.Thread(target=lambda: session.run(None, feed))
        thread.start()
        thread.join()
    with sonde.record("setup"), sonde.InferenceSession("zoo:tiny_mlp"):
        pass
    session.run(None, feed)
"""
# Records around each inference, outermost first, in the order they began.
AROUND = [(), ("a",), ("a", "b", "c"), ("a", "b", "c"), ("a", "b"), ("warm", "in warm"), (), ()]


@pytest.fixture(scope="module")
def profiler():
    made = {}
    exec(PROGRAM, made)
    with sonde.profile(level=3) as profiler:
        made["work"]()
    return profiler


def lines(columns):
    """Columns as one dict a span, by id."""
    names = ("span_id", "parent_span_id", "name", "cat", "thread.id", "start", "end", "warm_up", "trace_id")
    return {line[0]: dict(zip(names, line)) for line in zip(*(list(columns[name]) for name in names))}


def parents(tree, span):
    """The spans around one, innermost first."""
    found = []
    while span["parent_span_id"]:
        span = tree[span["parent_span_id"]]
        found.append(span)
    return found


def check_tree(columns):
    tree = lines(columns)
    assert len(tree) == len(columns["name"])
    for span in tree.values():
        if not span["parent_span_id"]:
            continue
        up = tree[span["parent_span_id"]]
        assert up["start"] <= span["start"] <= span["end"] <= up["end"], (span, up)
        if up["cat"] in ("user", "iteration") or span["cat"] == "user":
            assert up["thread.id"] == span["thread.id"], (span, up)
        if span["cat"] == "operator":
            assert up["cat"] == "iteration" or up["name"] == "body", (span, up)
            assert up["trace_id"] == span["trace_id"]
        if span["cat"] == "user":
            assert up["cat"] == "user"
    inferences = sorted((s for s in tree.values() if s["cat"] == "iteration"), key=lambda s: s["start"])
    around = [tuple(up["name"] for up in reversed(parents(tree, s)) if up["cat"] == "user") for s in inferences]
    assert around == AROUND
    assert [s["name"] for s in inferences if s["warm_up"]] == ["Warmup0"]
    records = sorted((s for s in tree.values() if s["cat"] == "user"), key=lambda s: s["start"])
    assert [(s["name"], len(parents(tree, s)), bool(s["warm_up"])) for s in records] == [
        ("a", 0, False), ("b", 1, False), ("c", 2, False), ("warm", 0, True), ("in warm", 1, False),
        ("elsewhere", 0, False), ("setup", 0, False)]
    return tree


def test_records_and_inferences_are_a_tree(profiler):
    tree = check_tree(profiler.columns())
    # The executor's work for a session that was made in a record belongs to that.
    work = [s for s in tree.values() if s["cat"] == "executor" and s["name"].startswith("pass")]
    assert work and all("setup" in [up["name"] for up in parents(tree, s)] for s in work)


def test_data_frames_hold_the_same_tree(profiler):
    pytest.importorskip("pandas")
    frame = profiler.get_pandas_dataframe()
    check_tree({name: frame[name].tolist() for name in frame})
    record = frame[frame["name"] == "c"].iloc[0]
    inside = frame[frame["parent_span_id"] == record["span_id"]]
    assert inside["cat"].tolist() == ["iteration", "iteration"]
    assert (inside["dur"] <= record["dur"]).all()


def test_arrow_holds_the_same_tree(profiler):
    pyarrow = pytest.importorskip("pyarrow")
    check_tree(pyarrow.table(profiler).to_pydict())


@pytest.mark.parametrize("suffix", (".pftrace", ".json"))
def test_files_hold_the_same_tree(profiler, tmp_path, suffix):
    profiler.export(tmp_path / f"tree{suffix}")
    again = sonde.load_profile(tmp_path / f"tree{suffix}")
    tree, known = check_tree(again.columns()), lines(profiler.columns())
    for column in ("parent_span_id", "name", "cat"):
        assert {k: v[column] for k, v in tree.items()} == {k: v[column] for k, v in known.items()}
    assert again.report("records") == profiler.report("records")
    assert again.report("inferences") == profiler.report("inferences")


def test_a_streamed_trace_holds_the_same_tree(tmp_path):
    """Records end after what is in them was written."""
    path = tmp_path / "tree.pftrace"
    subprocess.run([sys.executable, "-c", PROGRAM + "work()"], check=True, env={**os.environ, "SONDE_TRACE": str(path)})
    check_tree(sonde.load_profile(path).columns())


def test_reports_agree_with_the_tree(profiler):
    tree = lines(profiler.columns())
    inside = {}
    for span in tree.values():
        if span["cat"] == "iteration" and not span["warm_up"]:
            for up in parents(tree, span):
                if up["cat"] == "user":
                    inside[up["name"]] = inside.get(up["name"], 0) + 1
    blocks = re.findall(r"Summary: (.*)\n=+\nInference counts +: (\d+)", profiler.report("records"))
    assert {name: int(n) for name, n in blocks} == inside == {"a": 4, "b": 3, "c": 2}
    shown = [line.split()[2] for line in profiler.report("inferences").splitlines()[1:]]
    measured = [s["span_id"] for s in tree.values() if s["cat"] == "iteration" and not s["warm_up"]]
    assert shown == measured


def test_a_record_that_is_open_is_nobodys_parent_yet():
    session = sonde.InferenceSession("zoo:tiny_mlp")
    with sonde.profile() as profiler, sonde.record("open"):
        session.run(None, session.random_inputs(seed=1))
        before = lines(profiler.columns())
    after = lines(profiler.columns())
    for tree in (before, after):
        assert all(s["parent_span_id"] in tree for s in tree.values() if s["parent_span_id"])
    assert [s["cat"] for s in after.values() if any(up["name"] == "open" for up in parents(after, s))].count(
        "iteration") == 1


def test_records_that_overlap_are_not_inside_each_other():
    first, second = sonde.record("first"), sonde.record("second")
    with sonde.profile() as profiler:
        first.__enter__()
        second.__enter__()
        first.__exit__()
        second.__exit__()
    assert profiler.columns()["parent_span_id"] == ["", ""]


def test_threads_nest_records_of_their_own():
    session = sonde.InferenceSession("zoo:tiny_mlp")
    feed = session.random_inputs(seed=1)
    ready = threading.Barrier(3)

    def work(label):
        with sonde.record(label):
            ready.wait()
            session.run(None, feed)
            ready.wait()

    with sonde.profile() as profiler:
        threads = [threading.Thread(target=work, args=(f"thread {i}",)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tree = lines(profiler.columns())
    runs = [s for s in tree.values() if s["cat"] == "iteration"]
    assert {tree[s["parent_span_id"]]["thread.id"] for s in runs} == {s["thread.id"] for s in runs}
    assert {tree[s["parent_span_id"]]["name"] for s in runs} == {"thread 0", "thread 1", "thread 2"}


def test_inferences_of_run_async_belong_to_the_record_around_the_call():
    session = sonde.InferenceSession("zoo:tiny_mlp")
    feed = session.random_inputs(seed=1)

    def run():
        done = threading.Event()
        session.run_async(None, feed, lambda *_: done.set(), None)
        done.wait()

    with sonde.profile(level=1) as profiler:
        with sonde.record("outer"), profiler.record("inner"):
            run()
        with profiler.record("warm", warm_up=True):
            run()
        run()
    tree = profiler.columns()
    name_of = dict(zip(tree["span_id"], tree["name"]))
    inferences = [k for k, cat in enumerate(tree["cat"]) if cat == "iteration"]
    owners = [name_of.get(tree["parent_span_id"][k]) for k in inferences]
    assert owners[:2] == ["inner", "warm"] and owners[2] not in ("outer", "inner", "warm")
    assert [bool(tree["warm_up"][k]) for k in inferences] == [False, True, False]
