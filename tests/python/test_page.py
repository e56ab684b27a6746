# SPDX-License-Identifier: Apache-2.0
"""The data of the report page, read as docs/profile-format.md tells: they are complete, and they say what the other
formats say."""

import base64
import gzip
import json
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
FORMAT = (Path(__file__).resolve().parents[2] / "docs/profile-format.md").read_text()
SPAN_COLUMNS = "start duration category thread step run iteration instance flags name text label parent".split()


def sonde(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=PATIENCE)


def decode(data):
    """The JSON and the columns by name, by what the page says."""
    line = data.index(b"\n")
    head, at = json.loads(data[:line]), line + 1

    def numbers(count):
        nonlocal at
        column = []
        for _ in range(count):
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            column.append(value)
        return column

    def doubles(count):
        nonlocal at
        at += 8 * count
        return list(struct.unpack(f"<{count}d", data[at - 8 * count : at]))

    counts = head["counts"]
    spans = {name: numbers(counts["spans"]) for name in SPAN_COLUMNS}
    counters = {name: numbers(counts["counters"]) for name in ("at", "name", "step")}
    counters["value"] = doubles(counts["counters"])
    runs = {"span": numbers(counts["runs"]), "wall": doubles(counts["runs"])}
    assert at == len(data), "bytes are left over"
    for i in range(1, len(spans["start"])):
        spans["start"][i] += spans["start"][i - 1]
    return head, spans, counters, runs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    names = [folder / f"a.{suffix}" for suffix in ("page.gz", "summary.json", "json", "pftrace")]
    outputs = [word for name in names for word in ("-o", name)]
    sonde("profile", "zoo:tiny_cnn", "-n", 7, "-w", 2, "--memory", "-q", *outputs)
    return folder


def test_the_columns_of_the_page_are_those_that_are_documented():
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (spans|counters|runs) \|", FORMAT, re.M)
    assert [name for _, name, of in rows if of == "spans"] == SPAN_COLUMNS
    assert [int(k) for k, _, _ in rows] == list(range(1, 20))


def test_every_member_is_documented_and_there(made):
    head = decode(gzip.open(made / "a.page.gz").read())[0]
    table = FORMAT.split("## The JSON")[1].split("A row:")[0]
    members = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.M))
    optional = {name for name, text in members.items() if text.startswith("*optional*")}
    assert set(members) - optional <= set(head) <= set(members)
    row = re.search(r"A row: (.*?)(?:\n\n)", FORMAT, re.S).group(1)
    step = re.search(r"A step: (.*?)\. A tensor:", FORMAT, re.S).group(1)
    tensor = re.search(r"A tensor: (.*?)\n\n", FORMAT, re.S).group(1)
    for text, entries in (
        (row, [r for rows in head["rows"].values() for r in rows]),
        (step, head["steps"]),
        (tensor, [t for s in head["steps"] for t in s["inputs"] + s["outputs"]]),
    ):
        always, optional = (text.split("*optional*") + [""])[:2]
        known = set(re.findall(r"`(\w+)`", text))
        must = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", always)))
        assert entries
        for entry in entries:
            assert must <= set(entry), must - set(entry)
            assert set(entry) <= known, set(entry) - known
        assert not optional or "`" in optional


def test_figures_are_those_of_the_summary(made):
    head, spans, _, runs = decode(gzip.open(made / "a.page.gz").read())
    summary = json.loads((made / "a.summary.json").read_text())
    wall = head["summary"]["wall"]
    for key in ("min", "mean", "p50", "p90", "p99", "max"):
        assert wall[key] / 1e6 == pytest.approx(summary["latency_ms"][key], abs=1e-5)
    assert len(runs["wall"]) == head["summary"]["iterations"] == 7
    assert sum(runs["wall"]) / 7 == pytest.approx(wall["mean"])
    for name, ours, theirs in (("op", "op", "operators"), ("node", "node", "nodes")):
        rows = [r for r in head["rows"][ours] if name == "op" or not r.get("bracket")]
        assert [r["mean_ns"] / 1e6 for r in rows] == pytest.approx([r["mean_ms"] for r in summary[theirs]], abs=1e-5)
    for rows in head["rows"].values():
        assert sum(r["mean_ns"] for r in rows) == pytest.approx(wall["mean"], rel=1e-6)


def test_spans_are_those_of_the_trace(made):
    head, spans, _, _ = decode(gzip.open(made / "a.page.gz").read())
    trace = json.loads((made / "a.json").read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(spans["start"])
    shown = sorted((head["strings"][n], d) for n, d in zip(spans["name"], spans["duration"], strict=True))
    assert [d for _, d in shown] and sum(d for _, d in shown) == pytest.approx(sum(e["dur"] for e in events) * 1e3, rel=1e-6)
    for i, back in enumerate(spans["parent"]):
        if back:
            assert spans["start"][i - back] <= spans["start"][i]


def test_the_reader_of_the_documentation_reads_it(made):
    code = re.search(r"```python\n(.*?)```", FORMAT, re.S).group(1)
    names = {}
    here = Path.cwd()
    os.chdir(made)
    try:
        Path("profile.page.gz").write_bytes(Path("a.page.gz").read_bytes())
        exec(compile(code, "profile-format.md", "exec"), names)  # noqa: S102
    finally:
        os.chdir(here)
    head, spans, _, _ = decode(gzip.open(made / "a.page.gz").read())
    assert names["start"] == spans["start"] and names["duration"] == spans["duration"]


def test_a_page_holds_the_same_data(made):
    done = subprocess.run([PROGRAM, "report", made / "a.pftrace", "-q", "-o", made / "a.html"], capture_output=True,
                          text=True, timeout=PATIENCE)
    if done.returncode:
        assert "has no report page" in done.stderr
        pytest.skip("this build has no report page")
    text = (made / "a.html").read_text()
    block = re.search(r'<script type="application/x-sonde-profile"[^>]*>([^<]*)</script>', text).group(1)
    head, spans, _, _ = decode(gzip.decompress(base64.b64decode(block)))
    assert head["schema"] == "sonde.page/1" and head["summary"]["iterations"] == 7
    assert "Content-Security-Policy" in text and "unsafe" not in text.split("</head>")[0].split("<style>")[0]


def test_a_suffix_in_capitals_is_the_same_format(tmp_path):
    """With what the program adds to a page: what it sees of the machine."""
    topics = []
    for name in ("a.page.gz", "B.PAGE.GZ"):
        done = sonde("profile", "zoo:tiny_mlp", "-n", 6, "-q", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        topics.append({f["topic"] for f in decode(gzip.open(tmp_path / name).read())[0]["findings"]})
    assert "cores" in topics[0] and "cores" in topics[1]


def test_profiles_of_another_program_come_out_in_the_same_form(tmp_path):
    events = [{"cat": "Session", "pid": 1, "tid": 1, "dur": 900, "ts": 5, "ph": "X", "name": "model_run", "args": {}}]
    for k, op in enumerate(["Conv", "Relu"]):
        events.append({"cat": "Node", "pid": 1, "tid": 1, "dur": 400, "ts": 10 + 420 * k, "ph": "X",
                       "name": f"n{k}_kernel_time", "args": {"op_name": op, "provider": "CPUExecutionProvider",
                       "node_index": str(k), "input_type_shape": [{"float": [1, 3, 8, 8]}],
                       "output_type_shape": [{"float": [1, 3, 8, 8]}]}})
    (tmp_path / "ort.json").write_text(json.dumps(events))
    sonde("report", tmp_path / "ort.json", "-q", "-o", tmp_path / "ort.page.gz")
    head, spans, _, runs = decode(gzip.open(tmp_path / "ort.page.gz").read())
    assert {r["name"] for r in head["rows"]["op"]} >= {"Conv", "Relu"}
    assert len(runs["wall"]) == 1 and spans["start"]


def test_python_writes_the_page_and_shows_it_in_notebooks(tmp_path):
    sonde_package = pytest.importorskip("sonde")
    old, new = tmp_path / "old.pftrace", tmp_path / "new.pftrace"
    for path in (old, new):
        sonde("profile", "zoo:tiny_mlp", "-n", 6, "-q", "-o", path)
    first, second = sonde_package.load_profile(old), sonde_package.load_profile(new)
    try:
        second.export(tmp_path / "change.html", before=first)
    except sonde_package.Error as error:
        assert "has no report page" in str(error)
        pytest.skip("this build has no report page")
    text = (tmp_path / "change.html").read_text()
    assert text.count('type="application/x-sonde-profile"') == 2 and "x-sonde-comparison" in text
    shown = second._repr_html_()
    assert "<iframe" in shown and 'sandbox="allow-scripts allow-downloads"' in shown and "<script" not in shown
    assert "allow-same-origin" not in shown


def test_a_profile_that_is_too_large_for_a_notebook_is_shown_as_tables(tmp_path, monkeypatch):
    sonde_package = pytest.importorskip("sonde")
    from sonde import _html

    sonde("profile", "zoo:tiny_mlp", "-n", 6, "-q", "-o", tmp_path / "a.pftrace")
    profile = sonde_package.load_profile(tmp_path / "a.pftrace")
    for limit in ("_MOST_SPANS", "_LARGEST_PAGE"):
        with monkeypatch.context() as m:
            m.setattr(_html, limit, 10)
            assert "<iframe" not in profile._repr_html_() and "<table" in profile._repr_html_()


@pytest.mark.parametrize("other", [5, "old.pftrace", object(), []])
def test_what_is_no_profile_cannot_be_compared_with(tmp_path, other):
    sonde_package = pytest.importorskip("sonde")
    sonde("profile", "zoo:tiny_mlp", "-n", 6, "-q", "-o", tmp_path / "a.pftrace")
    profile = sonde_package.load_profile(tmp_path / "a.pftrace")
    for compare in (lambda: profile.export(tmp_path / "x.html", before=other), lambda: profile.compare(other)):
        with pytest.raises(sonde_package.InvalidArgument, match=f"not {type(other).__name__}"):
            compare()
    assert not (tmp_path / "x.html").exists()
