# SPDX-License-Identifier: Apache-2.0
"""docs/operators.md is what script/operators writes."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = os.environ.get("SONDE_PROGRAM")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script" / "operators"


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
def test_the_page_of_operators_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
