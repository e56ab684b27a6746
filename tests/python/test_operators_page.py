# SPDX-License-Identifier: Apache-2.0
"""docs/operators.md is what script/operators writes, and the operators know all their attributes."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script" / "operators"


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
def test_the_page_of_operators_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check", PROGRAM], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
def test_every_attribute_of_every_listed_operator_is_known():
    defs = pytest.importorskip("onnx.defs")
    table = (SCRIPT.parents[1] / "src" / "ops" / "framework" / "attributes.inc").read_text()
    known = {(d, n): set(a.split()) for d, n, a in re.findall(r'\("([^"]*)", "([^"]*)", "([^"]*)"\)', table)}
    for source in (SCRIPT.parents[1] / "src" / "ops").rglob("*.c"):  # or the descriptor has them
        descriptor = r'\.name = "(\w+)",\s*\.domain = "([^"]*)",[^{}]*\.attributes = ((?:"[^"]*"\s*)+)'
        for n, d, a in re.findall(descriptor, source.read_text()):
            known.setdefault((d, n), set()).update(a.replace('"', "").split())
    text = subprocess.run([PROGRAM, "inspect", "--operators"], capture_output=True, text=True, check=True).stdout
    listed = {tuple(line.split("\t")[:2]) for line in text.splitlines()}
    for schema in defs.get_all_schemas_with_history():
        if (schema.domain or "ai.onnx", schema.name) in listed:
            missing = set(schema.attributes) - known.get((schema.domain, schema.name), set())
            assert not missing, f"{schema.domain} {schema.name} {schema.since_version}: {missing}"
