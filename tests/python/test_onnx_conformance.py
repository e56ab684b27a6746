# SPDX-License-Identifier: Apache-2.0
"""The ONNX project's own cases, from the installed onnx package: with passes, without, and on the instructions
every machine has. None fails; what is not supported says so."""

import os
import pathlib
import re
import subprocess

import onnx
import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
UNSUPPORTED = re.compile(r"ImageDecoder|Gradient")
AT_LEAST = 1903  # of 1,914 in onnx 1.22.0


@pytest.mark.parametrize("args", [[], ["--no-optimize"], ["--cpu", "baseline"], ["-t", "2"]], ids=" ".join)
def test_the_official_cases_pass(args):
    folders = [DATA / name for name in ("node", "simple", "pytorch-converted", "pytorch-operator", "light")]
    done = subprocess.run([PROGRAM, "check", *args, *folders], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (0, 3), done.stderr
    lines = done.stdout.splitlines()
    failed = {line.split()[1].rstrip(":") for line in lines if line.startswith("FAILED")}
    assert not failed, [line for line in lines if line.startswith("FAILED")]
    for line in lines:
        if line.startswith("skipped"):
            assert UNSUPPORTED.search(line), line
    passed = int(re.match(r"(\d+) passed", lines[-1]).group(1))
    assert passed >= AT_LEAST or onnx.__version__ != "1.22.0"
