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
BLOCK = re.compile(r'<script type="application/x-sonde-(profile|comparison)" title="([^"]*)">([^<]*)</script>')


def sonde(folder, *arguments):
    return subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    for name, threads in (("old.pftrace", "1"), ("new & \"newer\" <b>.pftrace", "2")):
        done = sonde(folder, "profile", "zoo:tiny_cnn", "-q", "-n", "20", "-t", threads, "-o", name)
        assert done.returncode == 0, done.stderr
    done = sonde(folder, "report", "old.pftrace", "-q", "-o", "page.html")
    if "no report page" in done.stderr:
        pytest.skip("this build has no report page")
    return folder


NEW = "new & \"newer\" <b>.pftrace"


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
    for (_, _, data), threads in zip(blocks[::2], (1, 2)):
        head = json.loads(data[:data.index(b"\n")])
        assert head["summary"]["iterations"] == 20


def test_other_suffixes_are_refused_before_anything_is_read(folder):
    done = sonde(folder, "diff", "old.pftrace", "missing.pftrace", "-o", "x.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("sonde: unknown format of 'x.csv'; diff saves a report page, whose suffix is .html; --json saves "
                           "the figures\n")


def test_the_table_stays_as_it_is(folder):
    plain = sonde(folder, "diff", "old.pftrace", NEW)
    paged = sonde(folder, "diff", "old.pftrace", NEW, "-o", "z.html")
    assert paged.stdout == plain.stdout and (folder / "z.html").exists()


def test_a_page_is_written_also_where_a_limit_fails(folder):
    done = sonde(folder, "diff", "old.pftrace", "old.pftrace", "-q", "--fail-above", "0", "-o", "same.html")
    assert done.returncode == 0 and (folder / "same.html").exists()
