# SPDX-License-Identifier: Apache-2.0
"""Profilers of the package sonde: blocks that nest, records, pauses, every view of what was recorded, files, and the
process-wide profilers."""

import asyncio
import csv
import gc
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

sonde = pytest.importorskip("sonde")

COLUMNS = ("trace_id span_id parent_span_id name cat thread.id start end dur node op_type iteration instance pe_index "
           "execution_index operator_index input_shapes").split()
SUMMARY = [r"={48}", r"  Inference Results Summary", r"={48}", r"Inference counts                : 4",
           *(rf"{name:<32}: \d+" for name in (
               "Min latency (ns)", "Max latency (ns)", "Mean latency (ns)", "Median latency (ns)",
               *(f"{p} percentile latency (ns)" for p in ("90.0", "95.0", "97.0", "99.0", "99.9"))))]


@pytest.fixture(scope="module")
def session():
    return sonde.InferenceSession("zoo:tiny_cnn")


@pytest.fixture(scope="module")
def feed(session):
    return session.random_inputs(seed=1)


@pytest.fixture(scope="module")
def profiler(session, feed):
    """Two warm-ups and four inferences, the last two in a record of their own."""
    with sonde.profile() as made:
        with made.record("warm up", warm_up=True):
            for _ in range(2):
                session.run(None, feed)
        with made.record("trace"):
            session.run(None, feed)
            session.run(None, feed)
            with sonde.record("inner"):
                session.run(None, feed)
                session.run(None, feed)
    return made


def count(profiler):
    return profiler.summary()["iterations"]


# ---------------------------------------------------------------- recording
def test_blocks_nest_and_overlap(session, feed):
    with sonde.profile() as outer:
        session.run(None, feed)
        with sonde.profile(level=3) as inner:
            session.run(None, feed)
            assert (count(outer), count(inner)) == (2, 1)  # while they run
        other = sonde.profile(level=1)
        other.__enter__()
        session.run(None, feed)
    session.run(None, feed)
    other.__exit__(None, None, None)
    assert (count(outer), count(inner), count(other)) == (3, 1, 2)
    assert "executor" not in other.columns()["cat"] and other.summary()["level"] == 1


def test_sessions_and_threads_are_covered_together(session, feed):
    with sonde.profile() as profiler:
        with sonde.InferenceSession("zoo:tiny_mlp") as second:
            small = second.random_inputs()
            threads = [threading.Thread(target=lambda: [session.run(None, feed) for _ in range(5)]) for _ in range(3)]
            for thread in threads:
                thread.start()
            second.run(None, small)
            for thread in threads:
                thread.join()
    assert count(profiler) == 16
    c = profiler.columns()
    assert len({t for t, cat in zip(c["thread.id"].tolist(), c["cat"]) if cat == "iteration"}) == 4
    assert any(name.startswith("pass") or "bind" in name for name, cat in zip(c["name"], c["cat"]) if cat == "executor")


def test_sessions_say_which_instance_they_are(feed):
    sessions = []
    for number in ("0", "7"):
        options = sonde.SessionOptions()
        options.add_session_config_entry("sonde.instance", number)
        sessions.append(sonde.InferenceSession("zoo:tiny_cnn", sess_options=options))
    with sonde.profile() as profiler:
        sessions[0].run(None, feed)
        sessions[1].run(None, feed)
        sessions[1].run(None, feed)
    c = profiler.columns()
    runs = [i for i, cat in zip(c["instance"].tolist(), c["cat"]) if cat == "iteration"]
    assert runs == [0, 7, 7]
    assert {i for i, cat in zip(c["instance"].tolist(), c["cat"]) if cat == "operator"} == {0, 7}
    options = sonde.SessionOptions()
    for bad in ("-1", "x", "1000000"):
        options.add_session_config_entry("sonde.instance", bad)
        with pytest.raises(sonde.InvalidArgument, match="instance is"):
            sonde.InferenceSession("zoo:tiny_cnn", sess_options=options)


def test_pause_resume_clear(session, feed):
    with sonde.profile() as profiler:
        session.run(None, feed)
        profiler.pause()
        assert profiler.paused and profiler.running
        with pytest.raises(sonde.InvalidArgument, match="already paused"):
            profiler.pause()
        session.run(None, feed)
        profiler.resume()
        with pytest.raises(sonde.InvalidArgument, match="not paused"):
            profiler.resume()
        session.run(None, feed)
        assert count(profiler) == 2
        profiler.clear()
        assert count(profiler) == 0
        session.run(None, feed)
    assert count(profiler) == 1 and not profiler.running
    with pytest.raises(sonde.InvalidArgument, match="not running"):
        profiler.pause()
    with profiler:  # once more
        pass
    assert count(profiler) == 0


def test_a_block_left_by_an_exception_is_a_profile_too(session, feed):
    with pytest.raises(ZeroDivisionError), sonde.profile() as profiler:
        session.run(None, feed)
        1 / 0
    assert count(profiler) == 1


def test_records_nest_label_and_decorate(session, feed, profiler):
    records = profiler.records
    assert [(r.label, r.warm_up) for r in records] == [("warm up", True), ("trace", False), ("inner", False)]
    trace, inner = records[1:]
    assert trace.start <= inner.start <= inner.end <= trace.end and trace.dur == trace.end - trace.start
    assert profiler.summary()["warmups"] == 2 and count(profiler) == 4

    @sonde.record("decode")
    def decode(n):
        """Doc."""
        return n if n == 0 else decode(n - 1)

    @sonde.record("wait")
    async def wait():
        await asyncio.sleep(0)
        return 3

    assert decode.__name__ == "decode" and decode.__doc__ == "Doc." and decode(3) == 0  # nothing records: no harm
    with sonde.profile() as p:
        assert decode(2) == 0 and asyncio.run(wait()) == 3
        again = sonde.record("again")
        with again, again:
            pass
        with pytest.raises(KeyError), sonde.record("broken"):
            raise KeyError
    assert [r.label for r in p.records] == ["decode"] * 3 + ["wait", "again", "again", "broken"]


def test_odd_labels(session, feed):
    label = "Ünï \u202e <b>&\n\"'" + "x" * 3000
    with sonde.profile() as p, sonde.record(label), sonde.record("\ud800"):
        session.run(None, feed)
    assert p.records[0].label == label and len(p.records) == 2
    assert p.get() and p._repr_html_()
    with pytest.raises(TypeError, match="str"):
        sonde.record(3)
    shared = sonde.record("shared")
    with sonde.profile() as p:
        shared.__enter__()
        elsewhere(shared.__enter__)
        shared.__exit__(None, None, None)
    assert len(p.records) == 1
    with pytest.raises(sonde.InvalidArgument, match="zero byte"):
        sonde.record("a\0b")


def test_what_cannot_be_is_refused(tmp_path):
    for bad in (0, 4, "2", True):
        with pytest.raises(sonde.InvalidArgument, match="level"):
            sonde.profile(level=bad)
    with pytest.raises(TypeError, match="path or a file"):
        sonde.profile(file=3)
    with pytest.raises(sonde.InvalidArgument, match="categor"), sonde.profile(categories="operators"):
        pass
    with pytest.raises(sonde.InvalidArgument, match="has not run"):
        sonde.profile().print_summary()
    with sonde.profile() as p:
        with pytest.raises(sonde.InvalidArgument, match="already running"):
            p.__enter__()
    for wrong in (lambda: p.report("nothing"), lambda: p.rows("colour"), lambda: p.table(sort="x"),
                  lambda: p.export(tmp_path / "x.nothing"), lambda: p.to_bytes("nothing")):
        with pytest.raises(sonde.InvalidArgument):
            wrong()
    with pytest.raises(sonde.Error, match="cannot write"):
        p.export(tmp_path / "no" / "x.json")


# ---------------------------------------------------------------- printing
def printed(capsys, method, *args, **kwargs):
    method(*args, **kwargs)
    return capsys.readouterr().out


def test_the_summary_has_the_known_layout(capsys, profiler):
    lines = printed(capsys, profiler.print_summary).splitlines()
    assert len(lines) == len(SUMMARY)
    assert all(re.fullmatch(pattern.replace("(ns)", r"\(ns\)"), line) for pattern, line in zip(SUMMARY, lines))
    c = profiler.columns()
    latencies = [c["dur"][i] for i, cat in enumerate(c["cat"]) if cat == "iteration" and not c["warm_up"][i]]
    # The numbers of the table: a run without what recording cost.
    figures, shown = profiler.summary(), [int(line.split()[-1]) for line in lines[3:]]
    assert shown[0] == len(latencies) and figures["cost_ns"] > 0
    assert abs(shown[3] - (np.mean(latencies) - figures["cost_ns"])) <= 1
    for value, name in zip(shown[1:7] + shown[8:9], ("min", "max", "mean", "p50", "p90", "p95", "p99")):
        assert abs(value - figures[f"{name}_ns"]) <= 1, name
    assert shown[8] <= shown[9] <= shown[2] < max(latencies)
    blocks = printed(capsys, profiler.print_summary, by_record=True)
    assert re.findall(r"Summary: (.*)\nx?", blocks) == ["trace", "inner"]
    assert re.findall(r"counts +: (\d+)", blocks) == ["4", "2"]


def test_lines_are_printed_as_data_frames_are(capsys, profiler):
    pandas = pytest.importorskip("pandas")
    df = profiler.get_pandas_dataframe()
    measured = df[~df["warm_up"]]
    assert "/stem/conv/Conv;/stem/bn/BatchNormalization;/stem/act/Relu" in set(measured["node"])
    assert "/stem/conv/Conv, /stem/bn/BatchNormalization, /stem/act/Relu" in {
        row["nodes"] for row in profiler.rows("node")}
    runs = measured[measured["cat"] == "iteration"][["trace_id", "span_id", "thread.id", "dur"]]
    assert printed(capsys, profiler.print_inferences) == runs.to_string() + "\n"
    wanted = ["trace_id", "span_id", "thread.id", "name", "operator_index", "dur"]
    steps = measured[measured["cat"] == "operator"][wanted]
    assert printed(capsys, profiler.print_external_operators) == steps.to_string() + "\n"
    lines = printed(capsys, profiler.print_operators).splitlines()
    frame = pandas.DataFrame({"average elapsed(ns)": [float(l.split()[1]) for l in lines[2:]],
                              "count": [int(l.split()[2]) for l in lines[2:]]},
                             index=pandas.Index([l.split()[0] for l in lines[2:]], name="name"))
    assert [l.rstrip() for l in frame.to_string(float_format="{:.6f}".format).splitlines()] == lines
    assert frame["count"].sum() == len(steps)
    average = steps.groupby("name")["dur"].mean()  # the report's is less by the recorder's cost
    cost = profiler.summary()["cost_ns"]  # of all steps of a run
    assert all(-1 <= average[n] - frame.loc[n, "average elapsed(ns)"] <= cost + 1 for n in frame.index)
    head = printed(capsys, profiler.print_executions)
    assert head.split() == ["trace_id", "span_id", "pe_index", "execution_index", "Total", "Run", "IoWait"]
    assert printed(capsys, profiler.print_npu_operators) == printed(capsys, profiler.print_operators)


def test_text_is_what_the_program_prints(capsys, profiler, tmp_path):
    path = tmp_path / "x.pftrace"
    profiler.export(path)
    for kind in ("summary", "records", "inferences", "executions", "operators", "external"):
        command = [os.environ["SONDE_PROGRAM"], "report", path, "-q", "--report", kind]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert shown.strip("\n") == profiler.report(kind).strip("\n")
    assert "activations" in printed(capsys, profiler.print_memory)
    out = io.StringIO()
    profiler.print_table(file=out, by_node=True)
    assert out.getvalue() == profiler.table(by_node=True) and "Graph run of" in out.getvalue()
    assert "\nConv " in profiler.table(filter_op="Conv") and "\nMaxPool " not in profiler.table(filter_op="Conv")


# ---------------------------------------------------------------- columns
def test_columns_fit_together(profiler):
    c = profiler.columns()
    assert list(c)[:len(COLUMNS)] == COLUMNS and len({len(column) for column in c.values()}) == 1
    assert all(isinstance(column, (list, np.ndarray)) for column in c.values())
    assert len(set(c["span_id"])) == len(c["span_id"])
    row = {span: i for i, span in enumerate(c["span_id"])}
    runs = [i for i, cat in enumerate(c["cat"]) if cat == "iteration"]
    assert len({c["trace_id"][i] for i in runs}) == len(runs) == 6
    for i, cat in enumerate(c["cat"]):
        assert c["end"][i] - c["start"][i] == c["dur"][i]
        if cat == "operator":
            run = row[c["parent_span_id"][i]]
            assert c["cat"][run] == "iteration" and c["trace_id"][run] == c["trace_id"][i]
            assert c["start"][run] <= c["start"][i] and c["end"][i] <= c["end"][run] + 1
            assert c["op_type"][i] and c["operator_index"][i] >= 0 and re.fullmatch(r"[\d*,]+", c["input_shapes"][i])
        else:
            assert c["operator_index"][i] == -1
    before = int(c["dur"][0])
    c["dur"][0] = before + 1  # the caller's own
    assert profiler.columns()["dur"][0] == before


def test_rows_and_summary_are_those_of_the_table(profiler):
    rows = profiler.rows()
    total = sum(row["mean_ns"] for row in rows)
    summary = profiler.summary()
    assert abs(total - summary["mean_ns"]) < 1e-6 * total + 1 and abs(sum(r["share"] for r in rows) - 1) < 1e-6
    assert {row["name"] for row in rows if not row["bracket"]} == {"Conv", "MaxPool", "Gemm", "GlobalAveragePool"}
    assert summary["model"] == "tiny_cnn" and summary["ops"] == 7 and summary["dropped"] == 0
    for by in ("node", "shape", "kernel"):
        assert abs(sum(row["mean_ns"] for row in profiler.rows(by)) - total) < 1e-6 * total + 1


def test_findings_say_what_the_figures_mean(profiler):
    found = profiler.findings()
    assert found[0]["topic"] == "operators" and found[0]["severity"] == "good"
    assert found[0]["finding"].startswith("a run of 7 steps takes ")
    for f in found:
        assert list(f) == ["severity", "topic", "finding", "evidence", "remedy"]
        assert f["severity"] in ("good", "note", "slow") and all(isinstance(text, str) for text in f.values())
    found[0]["topic"] = "mine"  # the caller's own
    assert profiler.findings()[0]["topic"] == "operators"


def test_data_frames(profiler):
    pytest.importorskip("pandas")
    df = profiler.dataframe()
    assert list(df.columns)[:len(COLUMNS)] == COLUMNS and df["operator_index"].isna().any()
    trace = profiler.get_pandas_dataframe_with_filter("name", "trace")
    assert len(trace) == 1 and trace.iloc[0]["cat"] == "user"
    with pytest.raises(sonde.InvalidArgument, match="unknown column 'colour'"):
        profiler.get_pandas_dataframe_with_filter("colour", 1)


def test_arrow(profiler):
    pyarrow = pytest.importorskip("pyarrow")
    c = profiler.columns()
    for table in (pyarrow.table(profiler), pyarrow.record_batch(profiler)):
        table.validate(full=True)
        assert table.column_names == list(c) and table.num_rows == len(c["name"])
        assert table.column("name").to_pylist() == c["name"]
        assert table.column("warm_up").to_pylist() == c["warm_up"].tolist()
        assert table.column("start").to_pylist() == c["start"].tolist()
        indices = [None if n == -1 else n for n in c["operator_index"].tolist()]
        assert table.column("operator_index").to_pylist() == indices
    assert pyarrow.schema(profiler) == pyarrow.table(profiler).schema
    empty = sonde.profile()
    with empty:
        pass
    assert pyarrow.table(empty).num_rows == len(empty.columns()["name"])


def test_polars(profiler):
    polars = pytest.importorskip("polars")
    c = profiler.columns()
    frame = polars.DataFrame(profiler)
    assert frame.columns == list(c) and frame.height == len(c["name"])
    assert frame["name"].to_list() == c["name"] and frame["start"].to_list() == c["start"].tolist()
    assert frame["operator_index"].to_list() == [None if n == -1 else n for n in c["operator_index"].tolist()]
    steps = frame.filter((polars.col("cat") == "operator") & ~polars.col("warm_up"))
    sums = dict(steps.group_by("op_type").agg(polars.col("dur").sum()).iter_rows())
    assert sums["Conv"] == sum(d for t, d, cat, w in zip(c["op_type"], c["dur"].tolist(), c["cat"], c["warm_up"])
                               if t == "Conv" and cat == "operator" and not w)
    with sonde.profile() as empty:
        pass
    assert polars.DataFrame(empty).columns == list(c)


def test_arrow_capsules_that_nobody_reads_are_freed(profiler):
    for _ in range(200):
        profiler.__arrow_c_stream__()
        schema, array = profiler.__arrow_c_array__()
        profiler.__arrow_c_schema__()
        assert "arrow_schema" in repr(schema) and "arrow_array" in repr(array)
    del schema, array
    gc.collect()
    for columns, length in (([("x", [1], None)], 1), ([("x", ["a"], None)], 2), ([("x", np.zeros(3), None)], 2),
                            ([("x", np.zeros(2, np.int8), None)], 2), ([("x", np.zeros(2, np.int64), "a")], 2)):
        with pytest.raises((TypeError, ValueError)):
            sonde._sonde.arrow_table(columns, length)
        with pytest.raises((TypeError, ValueError)):
            sonde._sonde.arrow_stream(columns, length)


def test_without_pandas_and_pyarrow():
    code = """
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None
import sonde
with sonde.InferenceSession("zoo:tiny_mlp") as s, sonde.profile() as p:
    s.run(None, s.random_inputs())
p.print_summary(); p.print_inferences(); p.print_operators(); p.print_external_operators()
assert len(p.columns()["name"]) and p.__arrow_c_array__() and p._repr_html_()
try:
    p.dataframe()
except ImportError as error:
    assert "pip install pandas" in str(error)
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


# ---------------------------------------------------------------- files
def test_files_by_suffix(tmp_path, profiler):
    starts = {".json": b'{"traceEvents"', ".pftrace": b"\n", ".xlsx": b"PK", ".csv": b"weight shape", ".md": b"#",
              ".txt": b"Graph run", ".summary.json": b"{", ".pb.gz": b"\x1f\x8b"}
    for suffix, start in starts.items():
        path = tmp_path / f"profile{suffix}"
        profiler.export(path)
        assert path.read_bytes().lstrip().startswith(start.lstrip()), suffix
        assert len(profiler.to_bytes(suffix)) == path.stat().st_size
    trace = json.loads((tmp_path / "profile.json").read_text())
    assert trace == profiler.get() and {e["cat"] for e in trace["traceEvents"] if "cat" in e} >= {"operator", "user"}
    profiler.export(tmp_path / "all.csv", folded_nodes=True)
    assert (tmp_path / "all.csv").read_bytes() == profiler.to_bytes(".csv", folded_nodes=True)
    assert b"\nFlatten," in profiler.to_bytes(".csv", folded_nodes=True)
    assert b"\nFlatten," not in profiler.to_bytes(".csv")
    profiler.export(tmp_path / "few.json", categories=["operator"])
    few = json.loads((tmp_path / "few.json").read_text())
    assert {e["cat"] for e in few["traceEvents"] if e["ph"] == "X"} == {"operator"}
    profiler.export_chrome_trace(tmp_path / "trace.txt")
    profiler.dump(str(tmp_path / "dump.json"))
    assert json.loads((tmp_path / "trace.txt").read_text()) == trace == json.loads((tmp_path / "dump.json").read_text())
    assert any("operator type" in row for row in csv.reader((tmp_path / "profile.csv").open()))
    loaded = sonde.load_profile(tmp_path / "profile.pftrace")
    assert loaded.report("summary") == profiler.report("summary") and count(loaded) == 4
    assert loaded.columns()["name"] == profiler.columns()["name"]
    with pytest.raises(sonde.Error):
        sonde.load_profile(tmp_path / "profile.csv")
    with pytest.raises(sonde.Error):
        sonde.load_profile(tmp_path / "nothing.json")


def test_the_cost_of_another_programs_profiler_is_none(tmp_path, session, feed):
    events = [{"cat": "Session", "tid": 9, "dur": 50, "ts": 5, "ph": "X", "name": "model_run", "args": {}},
              {"cat": "Node", "tid": 9, "dur": 30, "ts": 10, "ph": "X", "name": "a_kernel_time", "args": {"op_name": "Conv"}}]
    path = tmp_path / "other.json"
    path.write_text(json.dumps(events))
    for _ in range(2):
        other = sonde.load_profile(path)
        assert other.summary()["cost_ns"] is None and "profiler cost unknown" in other.table()
        path = tmp_path / "other.pftrace"  # and so it stays
        other.export(path)
    with sonde.profile() as own:
        session.run(None, feed)
    assert own.summary()["cost_ns"] >= 0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_ends_a_block_is_not_hidden_by_a_file_that_cannot_be_written(session, feed, tmp_path, error):
    with pytest.raises(error) as caught, sonde.profile(file=tmp_path / "missing" / "x.json") as profiler:
        session.run(None, feed)
        raise error("own")
    assert str(caught.value) == "own"
    assert [note.split(":")[0] for note in caught.value.__notes__] == ["the profile was not written"]
    assert "Graph run" in profiler.table()
    with pytest.raises(sonde.Fail, match="missing"), sonde.profile(file=tmp_path / "missing" / "x.json"):
        session.run(None, feed)


def test_a_block_writes_its_file(tmp_path, session, feed):
    with open(tmp_path / "open.json", "w") as output, sonde.profile(file=output):
        session.run(None, feed)
    assert json.loads((tmp_path / "open.json").read_text())["traceEvents"]
    binary = io.BytesIO()
    with sonde.profile(file=binary, format="pftrace"):
        session.run(None, feed)
    (tmp_path / "b.pftrace").write_bytes(binary.getvalue())
    assert count(sonde.load_profile(tmp_path / "b.pftrace")) == 1
    named, few = tmp_path / "named.trace", "operator,iteration"
    with sonde.profile(file=named, format=sonde.RecordFormat.ChromeTrace, categories=few):
        session.run(None, feed)
    events = json.loads(named.read_text())["traceEvents"]
    assert {e["cat"] for e in events if e["ph"] == "X"} == {"operator", "iteration"}
    with pytest.raises(sonde.InvalidArgument, match="'wb'"), sonde.profile(file=io.StringIO(), format="xlsx"):
        session.run(None, feed)
    with sonde.profile(format=sonde.RecordFormat.PandasDataFrame) as profiler:
        session.run(None, feed)
    assert count(profiler) == 1
    for format in (sonde.RecordFormat.PandasDataFrame, "dataframe"):
        with pytest.raises(sonde.InvalidArgument, match="get_pandas_dataframe"):
            sonde.profile(file=tmp_path / "frame", format=format)
    assert not (tmp_path / "frame").exists()


# ---------------------------------------------------------------- process-wide
def test_the_profiler_of_the_process(tmp_path, session, feed):
    profiler = sonde.profiler
    profiler.clear()
    profiler.stop()
    assert profiler.get()["traceEvents"] == []
    with pytest.raises(sonde.InvalidArgument, match="nothing was recorded"):
        profiler.dump(tmp_path / "x.json")
    profiler.start()
    profiler.start()  # runs already
    session.run(None, feed)
    profiler.stop()
    session.run(None, feed)

    def runs():
        return sum(e.get("cat") == "iteration" for e in profiler.get()["traceEvents"] if e["ph"] == "X")

    assert runs() == runs() == 1
    profiler.start(prof_level=2)
    session.run(None, feed)
    assert runs() == 2
    profiler.clear()
    session.run(None, feed)
    assert runs() == 1 and count(profiler.get_profile()) == 1
    profiler.stop()
    profiler.dump(tmp_path / "profile.json")
    trace = json.loads((tmp_path / "profile.json").read_text())
    operators = [e for e in trace["traceEvents"] if e.get("cat") == "operator"]
    assert len(operators) == 7 and all(re.match(r"T<[\dx]+xf32>,.*\|T<", e["args"]["args_string"]) for e in operators)
    profiler.clear()
    assert profiler.get()["traceEvents"] == []


def bound_iterations(trace):
    """Iterations in which an operator says that binding its shapes took time."""
    return {e["args"]["iteration"] for e in trace["traceEvents"]
            if e.get("cat") == "operator" and float(e["args"]["reshape_time"].removesuffix("ms")) > 0}


def test_binding_shows_only_in_iterations_that_bound(tmp_path):
    mlp = sonde.InferenceSession("zoo:tiny_mlp")
    name = mlp.get_inputs()[0].name
    one, two = (np.zeros((n, 16), np.float32) for n in (1, 2))
    mlp.run(None, {name: one})  # bound before anybody records
    with sonde.profile() as profiler:
        for feed in (one, two, one, two):
            mlp.run(None, {name: feed})
    assert bound_iterations(profiler.get()) == {1}
    for file in ("trace.json", "trace.pftrace"):  # and so it stays when a trace is read and written again
        profiler.export(tmp_path / file)
        sonde.load_profile(tmp_path / file).export(tmp_path / "again.json")
        assert bound_iterations(json.loads((tmp_path / "again.json").read_text())) == {1}


def test_the_memory_profiler_of_the_process(session, feed):
    memory = sonde.memory_profiler
    memory.reset()
    memory.start()
    memory.start()
    session.run(None, feed)
    memory.stop()
    session.run(None, feed)
    info = memory.get_max_memory_info("cpu")
    trace = memory.get_memory_trace("cpu:0")
    assert len(trace) == info["samples"] == 7 and trace[0].tag.startswith("Conv ")
    assert info["max_used"] == max(s.used for s in trace) > 0
    assert info["max_allocated"] == max(s.allocated for s in trace)
    assert info["max_used_bytes"] == info["max_used"] * 2**20
    peak = max(trace, key=lambda s: s.used)
    assert info["fragmentation"] == pytest.approx(1 - peak.used / peak.allocated)
    with pytest.raises(sonde.InvalidArgument, match="unknown device"):
        memory.get_max_memory_info("cuda")
    memory.reset()
    with pytest.raises(sonde.InvalidArgument, match="not started"):
        memory.get_max_memory_info()
    with sonde.profile(memory=True) as outer, sonde.profile(memory=True) as inner:
        session.run(None, feed)
    for profiler in (outer, inner):
        assert sum(e["ph"] == "C" for e in profiler.get()["traceEvents"]) > 0
    with pytest.raises(sonde.InvalidArgument, match="not started"):  # nobody asked for it to be kept
        memory.get_memory_trace()


def test_counters_warn_where_there_are_none(session, feed, recwarn):
    with sonde.profile(counters=True) as profiler:
        session.run(None, feed)
    refused = [w for w in recwarn if "no hardware counters" in str(w.message)]
    counted = any(row["instructions"] for row in profiler.rows())
    assert counted != bool(refused) and "task-clock" in profiler.table()


def test_one_operator_alone():
    sonde.op_profiler.reset_cache()
    question = ("Conv", [(1, 8, 16, 16), (8, 8, 3, 3), None], {"pads": [1, 1, 1, 1], "group": 1}, 1, 2, 3)
    result = sonde.profile_op(*question, constant=[1])
    assert len(result["latency"]) == 3 and len(result["samples"]) == 6 and result["workspace_size"] >= 0
    assert all(us > 0 for us in result["latency"]) and sonde.op_profiler.cache_size() == 1
    assert sonde.profile_op(*question, constant=[1])["samples"] == result["samples"]  # from the cache
    many = sonde.profile_op("MatMul", [(8, 8), (8, 8)], warmup=0, exec=1, variants=True, dtypes=[np.float32] * 2)
    assert many["variants"][0]["latency"] == many["latency"]
    for wrong in (lambda: sonde.profile_op("NoSuchOperator", [(1,)]),
                  lambda: sonde.profile_op("Add", [(1,), (1,)], exec=0),
                  lambda: sonde.profile_op("Add", [(2,), (3,)]),
                  lambda: sonde.profile_op("Add", [(1,), (1,)], dtypes=[np.int8])):
        with pytest.raises(sonde.Error):
            wrong()
    sonde.op_profiler.reset_cache()
    assert sonde.op_profiler.cache_size() == 0


# ---------------------------------------------------------------- sessions
def test_profiling_by_session_options(tmp_path, feed):
    options = sonde.SessionOptions()
    assert sonde.InferenceSession("zoo:tiny_cnn", options).end_profiling() == ""
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = sonde.InferenceSession("zoo:tiny_cnn", options)
    session.run(None, feed)
    path = session.end_profiling()
    assert re.fullmatch(r"profile_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?\.json", os.path.basename(path))
    assert count(sonde.load_profile(path)) == 1 and session.end_profiling() == ""
    assert session.get_profiling_start_time_ns() > 1_500_000_000 * 10**9
    session.run(None, feed)
    with sonde.InferenceSession("zoo:tiny_cnn", options) as second:
        second.run(None, feed)
    third = sonde.InferenceSession("zoo:tiny_cnn", options)
    third.run(None, feed)
    del third
    gc.collect()
    assert len(list(tmp_path.glob("profile_*.json"))) == 3
    with pytest.raises(sonde.NoSuchFile):
        sonde.InferenceSession(str(tmp_path / "no.onnx"), options)
    with pytest.raises(sonde.NoSuchFile, match="no.json"):
        sonde.load_profile(tmp_path / "no.json")
    assert len(list(tmp_path.glob("profile_*.json"))) == 3


# ---------------------------------------------------------------- notebooks
def well_formed(html):
    import xml.etree.ElementTree as ElementTree

    return ElementTree.fromstring(html.replace("&nbsp;", "\N{NO-BREAK SPACE}"))


def test_notebooks_show_profiles_and_sessions(session, profiler):
    tree = well_formed(profiler._repr_html_())
    text = "".join(tree.itertext())
    assert "4 inferences, 2 warm-ups" in text and "MaxPool" in text and "median" in text
    svg = next(e for e in tree.iter() if e.tag.endswith("svg"))
    widths = [float(e.get("width")) for e in svg.iter() if e.tag.endswith("rect")]
    assert widths == sorted(widths, reverse=True) and widths[0] > 0
    colours = {e.get("fill") for e in tree.iter() if e.get("fill")}
    assert colours == {"currentColor"}
    shown = "".join(well_formed(session._repr_html_()).itertext())
    assert all(port.name in shown for port in session.get_inputs() + session.get_outputs())
    assert "Conv" in shown and "parameters" in shown
    with sonde.profile() as empty:
        pass
    assert "0 inferences" in empty._repr_html_() and well_formed(empty._repr_html_()) is not None
    with sonde.InferenceSession("zoo:tiny_mlp") as closed:
        pass
    assert "closed" in closed._repr_html_()


def test_strange_names_are_harmless_in_notebooks():
    import small_models

    name = "</td><script>alert('&')</script>\"\x01"
    model = small_models.model([("Abs", [name], ["y"], {"name": name})], [small_models.value(name, shape=[name, 2])],
                               [small_models.value("y", shape=[name, 2])])
    model.graph.name = name
    strange = sonde.InferenceSession(model.SerializeToString())
    with sonde.profile() as profiler:
        strange.run(None, {name: np.zeros((1, 2), np.float32)})
    for html in (strange._repr_html_(), profiler._repr_html_()):
        assert "<script" not in html and "\x01" not in html and well_formed(html) is not None


# ---------------------------------------------------------------- two of them
def test_comparisons(profiler, session, feed):
    with sonde.profile() as other:
        for _ in range(4):
            session.run(None, feed)
    total, rows = profiler.compare(other)
    assert total["old_ns"] > 0 and total["low"] <= total["ratio"] <= total["high"] and total["verdict"] == "unclear"
    assert {row["name"] for row in rows} >= {"Conv", "MaxPool"} and profiler.compare(other, "node").rows
    with pytest.raises(sonde.InvalidArgument, match="only by"):
        profiler.compare(other, "kernel")
    with sonde.profile() as empty:
        pass
    with pytest.raises(sonde.Error):
        profiler.compare(empty)


# ---------------------------------------------------------------- hostile use
def test_profilers_used_from_many_threads_at_once(session, feed):
    stop = threading.Event()
    errors = []

    def run():
        while not stop.is_set():
            session.run(None, feed)

    def profile():
        try:
            for _ in range(20):
                with sonde.profile(level=3, memory=True) as profiler, sonde.record("x"):
                    profiler.pause()
                    profiler.resume()
                    profiler.summary()
                assert profiler.columns()
        except Exception as error:
            errors.append(error)

    runner = threading.Thread(target=run)
    threads = [threading.Thread(target=profile) for _ in range(3)]
    runner.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    runner.join()
    assert not errors


def elsewhere(function):
    """On another thread; what that raises is raised here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_a_recording_that_is_over(session, feed):
    recording = sonde._sonde.Recording(1)
    recording.close()
    recording.close()
    for method in (recording.pause, recording.resume, recording.clear, recording.get):
        with pytest.raises(sonde.InvalidArgument, match="has ended"):
            method()
    with pytest.raises(TypeError):
        sonde._sonde.Profile()
    record = sonde.record("x", warm_up=True)
    assert (record.label, record.warm_up) == ("x", True)
    with pytest.raises(sonde.InvalidArgument, match="not open"):
        record.__exit__()
    record.__enter__()
    with pytest.raises(sonde.InvalidArgument, match="not open on this thread"):
        elsewhere(record.__exit__)
    del record  # ends it: what follows is no warm-up
    with sonde.profile() as profiler:
        session.run(None, feed)
    assert count(profiler) == 1
    broken = sonde._sonde.Recording.__new__(sonde._sonde.Recording)
    with pytest.raises(sonde.InvalidArgument):
        broken.get()


def test_nothing_leaks(session, feed):
    def rss():
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1))

    def rounds(n):
        for _ in range(n):
            with sonde.profile() as profiler, sonde.record("x"):
                session.run(None, feed)
            profiler.columns(), profiler.rows(), profiler.report("summary"), profiler.__arrow_c_stream__()
            profiler.to_bytes(".json")

    rounds(100)
    before = rss()
    rounds(400)
    assert rss() - before < 4096  # KiB


def test_a_profile_of_several_models_names_each_of_them(session, feed):
    with sonde.InferenceSession("zoo:tiny_mlp") as other, sonde.InferenceSession("zoo:tiny_cnn") as twin:
        with sonde.profile() as profiler:
            session.run(None, feed)
            other.run(None, other.random_inputs(seed=1))
            twin.run(None, feed)
        columns = profiler.columns()
        names = [name for name, cat in zip(columns["name"], columns["cat"]) if cat == "model"]
    assert names == ["tiny_cnn, tiny_mlp"] and profiler.summary()["model"] == "tiny_cnn, tiny_mlp"


def control_model():
    """Two layers below an If, whose bodies are bound while it runs."""
    inside = [helper.make_graph([helper.make_node(op, ["x"], [f"{op}_out"])], op, [],
                                [helper.make_tensor_value_info(f"{op}_out", TensorProto.FLOAT, None)])
              for op in ("Relu", "Neg")]
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "zero"], ["c"]),
             helper.make_node("If", ["c"], ["h"], then_branch=inside[0], else_branch=inside[1]),
             helper.make_node("MatMul", ["h", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])],
                              [numpy_helper.from_array(np.ones((64, 64), np.float32), "w"),
                               numpy_helper.from_array(np.float32(0), "zero")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("source", ["file", "bytes"])
def test_what_prepares_a_model_lies_in_its_phase(tmp_path, source):
    """Reading and parsing are parts of a load, passes and packing of a compile, and a body is bound in its inference."""
    model = control_model().SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(model)
    parts = {"parse": "load", "finish": "load", "clone": "compile", "infer": "compile", "build steps": "compile",
             "pack weights": "compile", "pass": "compile"} | ({"read": "load"} if source == "file" else {})
    with sonde.profile() as profiler:
        with sonde.InferenceSession(str(path) if source == "file" else model) as made:
            made.run(None, {"x": np.ones((4, 64), np.float32)})
    c = profiler.columns()
    row = {span: i for i, span in enumerate(c["span_id"])}
    seen, bound_in = set(), []
    for i, (name, parent, cat) in enumerate(zip(c["name"], c["parent_span_id"], c["cat"])):
        word = name.split(":")[0]
        if cat == "executor" and word in parts:
            up = row[parent]
            assert c["name"][up] == parts[word], name
            assert c["start"][up] <= c["start"][i] and c["end"][i] <= c["end"][up] + 1
            seen.add(word)
        elif cat == "executor" and word == "bind":
            bound_in.append(c["cat"][row[parent]] if parent in row else "")
        elif word in ("load", "compile"):
            assert parent not in row
    assert seen == set(parts)
    assert bound_in == ["", "iteration"]
