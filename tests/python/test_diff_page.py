# SPDX-License-Identifier: Apache-2.0
"""The report page of 'sonde diff -o': both profiles and the comparison, as the other outputs give them."""

import base64
import gzip
import html
import json
import os
import re
import subprocess

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
NEW = 'new & "newer" <b>.pftrace'  # names are text, whatever they hold
BLOCK = re.compile(r'<script type="application/x-sonde-(profile|comparison)" title="([^"]*)">([^<]*)</script>')


def sonde(folder, *arguments):
    return subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    for name, threads in (("old.pftrace", "1"), (NEW, "2")):
        done = sonde(folder, "profile", "zoo:tiny_cnn", "-q", "-n", "20", "-t", threads, "-o", name)
        assert done.returncode == 0, done.stderr
    done = sonde(folder, "report", "old.pftrace", "-q", "-o", "page.html")
    if "no report page" in done.stderr:
        pytest.skip("this build has no report page")
    return folder


def test_the_page_has_both_profiles_and_the_comparison_of_the_json(folder):
    done = sonde(folder, "diff", "old.pftrace", NEW, "-q", "-o", "x.html", "-o", "y.HTML", "--json", "d.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    page = (folder / "x.html").read_text()
    assert page == (folder / "y.HTML").read_text()
    blocks = [(kind, html.unescape(title), gzip.decompress(base64.b64decode(data))) for kind, title, data in BLOCK.findall(page)]
    assert [(kind, title) for kind, title, _ in blocks] == [
        ("profile", "old.pftrace"), ("comparison", ""), ("profile", NEW)]
    compared, told = json.loads(blocks[1][2]), json.loads((folder / "d.json").read_text())
    assert (compared["old"], compared["new"]) == ("old.pftrace", NEW)
    assert set(compared["rows"]) == {"op", "node", "shape"}
    assert compared["total"]["verdict"] == told["total"]["verdict"]
    assert compared["total"]["ratio"] == pytest.approx(told["total"]["ratio"])
    assert {row["name"] for row in compared["rows"]["op"]} == {row["name"] for row in told["rows"]}
    for _, _, data in blocks[::2]:
        assert json.loads(data[:data.index(b"\n")])["summary"]["iterations"] == 20


def test_other_suffixes_are_refused_before_anything_is_read(folder):
    done = sonde(folder, "diff", "old.pftrace", "missing.pftrace", "-o", "x.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("sonde: unknown format of 'x.csv'; diff saves a report page, whose suffix is .html; --json saves "
                           "the figures\n")


def test_the_table_stays_as_it_is(folder):
    plain = sonde(folder, "diff", "old.pftrace", NEW)
    paged = sonde(folder, "diff", "old.pftrace", NEW, "-o", "z.html")
    assert paged.stdout == plain.stdout and (folder / "z.html").exists()


def test_names_do_no_harm_to_the_terminal(folder):
    """Paths, models and operators: no control characters, nothing that turns the direction of what follows."""
    evil = "\x1b[31m \u202e \u2028 \u2066 é"
    (folder / f"{evil}.json").write_text(onnxruntime_profile(4000).replace("Conv", json.dumps(evil)[1:-1]))
    done = sonde(folder, "profile", "zoo:tiny_mlp", "-q", "-n", "10", "-o", "named.json")
    assert done.returncode == 0, done.stderr
    named = (folder / "named.json").read_text()
    assert '"tiny_mlp"' in named
    (folder / "named.json").write_text(named.replace('"tiny_mlp"', json.dumps(evil)))
    done = sonde(folder, "diff", f"{evil}.json", "named.json")
    assert (done.returncode, done.stderr) == (0, "")
    harmless = "?[31m ? ? ? é"
    old, new, *table = done.stdout.splitlines()
    assert old.startswith(f"old: {harmless}.json, ") and new.endswith(f", {harmless}")
    assert any(line.startswith(harmless) for line in table)
    assert not set(done.stdout) & set("\x1b\u202e\u2028\u2066")


def onnxruntime_profile(conv_us):
    """A profile of ONNX Runtime's form with known times."""
    event = {"pid": 7, "tid": 9, "ph": "X"}
    events = []
    for i in range(40):
        took = conv_us + i * 7 % 5
        events.append({**event, "cat": "Node", "ts": 100000 * i + 10, "dur": took, "name": "conv1_kernel_time",
                       "args": {"op_name": "Conv"}})
        events.append({**event, "cat": "Session", "ts": 100000 * i, "dur": took + 100, "name": "model_run", "args": {}})
    return json.dumps(events)


def test_a_page_is_written_also_when_a_limit_is_exceeded(folder):
    (folder / "old.json").write_text(onnxruntime_profile(4000))
    (folder / "new.json").write_text(onnxruntime_profile(5000))
    done = sonde(folder, "diff", "old.json", "new.json", "-q", "--fail-above", "10", "-o", "slower.html")
    assert done.returncode == 3 and "is slower by" in done.stderr
    compared = [data for kind, _, data in BLOCK.findall((folder / "slower.html").read_text()) if kind == "comparison"]
    assert json.loads(gzip.decompress(base64.b64decode(compared[0])))["total"]["verdict"] == "slower"
