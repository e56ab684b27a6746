# SPDX-License-Identifier: Apache-2.0
"""The code in README.md, docs/python*.md and docs/history.md runs: the blocks of a page one after the other, in one namespace."""

import pathlib
import re

import pytest

import sonde

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("python*.md")), ROOT / "docs/history.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "history.md":
        try:
            sonde.history.open("probe.db").close()
        except sonde.NotImplemented:
            pytest.skip("this build has no SQLite")
    text, namespace = page.read_text(), {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.S | re.M))
    assert blocks
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        code = "\n" * line + block[1]  # so that tracebacks name the page's lines
        exec(compile(code, str(page), "exec"), namespace)
