# SPDX-License-Identifier: Apache-2.0
"""The commands and the code in docs/smaller.md run, in the order of the page, in one folder."""

import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "smaller.md"


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sonde").symlink_to(os.environ["SONDE_PROGRAM"])
    path = f"{tmp_path}/bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    text, namespace = PAGE.read_text(), {}
    blocks = list(re.finditer(r"^```(sh|python)\n(.*?)^```$", text, re.S | re.M))
    assert blocks
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        if block[1] == "python":
            exec(compile("\n" * line + block[2], str(PAGE), "exec"), namespace)
            continue
        ran = subprocess.run(["bash", "-ec", block[2]], env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert ran.returncode == 0, f"line {line}: {ran.stderr}"
