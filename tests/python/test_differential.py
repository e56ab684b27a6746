# SPDX-License-Identifier: Apache-2.0
"""Random models against ONNX Runtime and the onnx reference; script/test --full runs many more.

SONDE_LIBRARY names the library; without it everything here is skipped."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not os.environ.get("SONDE_LIBRARY"), reason="SONDE_LIBRARY is not set")

PROGRAM = pathlib.Path(__file__).with_name("differential.py")


def test_random_models_give_the_same_answer_everywhere():
    done = subprocess.run([sys.executable, PROGRAM, "--seed", "1", "--count", "300"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    models, skipped, _agree, _differ, failed = map(int, re.findall(r"\d+", last))
    assert models == 300 and failed == 0
    assert skipped < 30, last  # a generator that makes nothing valid would test nothing
