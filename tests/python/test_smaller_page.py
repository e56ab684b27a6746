# SPDX-License-Identifier: Apache-2.0
"""docs/smaller.md: its commands and its Python code run, one after the other, in one folder."""

import os
import pathlib
import re
import subprocess

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/smaller.md"
PROGRAM = os.environ.get("SONDE_PROGRAM")


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
def test_the_commands_and_the_code_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{pathlib.Path(PROGRAM).resolve().parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text, namespace = PAGE.read_text(), {}
    blocks = list(re.finditer(r"^```(sh|python)\n(.*?)^```$", text, re.S | re.M))
    assert len(blocks) >= 3
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        if block[1] == "python":
            exec(compile("\n" * line + block[2], str(PAGE), "exec"), namespace)
        else:
            done = subprocess.run(["bash", "-e", "-c", block[2]], capture_output=True, text=True)
            assert done.returncode == 0, f"the block at line {line}:\n{done.stderr}"
