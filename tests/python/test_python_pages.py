# SPDX-License-Identifier: Apache-2.0
"""The code in README.md, docs/python*.md, docs/history.md and docs/fleets.md runs: the blocks of a page one after the
other, in one namespace. Of fleets.md only what is installed (script/setup full)."""

import importlib.util
import os
import pathlib
import re
import shutil
import sys
import tempfile

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


ENGINES = {"Ray": "ray.serve", "Dask": "dask.dataframe", "Spark": "pyspark"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_code_for_the_engine_runs(engine, tmp_path, monkeypatch):
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as short:  # sockets lie in it
        monkeypatch.setenv("RAY_TMPDIR", short)
        run_engine(engine, tmp_path, monkeypatch)


def run_engine(engine, tmp_path, monkeypatch):
    if importlib.util.find_spec(ENGINES[engine].split(".")[0]) is None:
        pytest.skip(f"{engine} is not installed (script/setup full)")
    if engine == "Spark" and not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("there is no Java runtime (script/setup full)")
    import local_ray  # noqa: F401

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    page = ROOT / "docs" / "fleets.md"
    text, namespace = page.read_text(), {"__name__": "__main__"}
    sections = re.split(r"^(?=## )", text, flags=re.M)
    blocks = [block for section in sections if section.startswith(f"## {engine}")
              for block in re.findall(r"^```python\n(.*?)^```$", section, re.S | re.M)]
    assert blocks
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(page), "exec"), namespace)
