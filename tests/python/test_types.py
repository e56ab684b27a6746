# SPDX-License-Identifier: Apache-2.0
"""The types that the package sonde shows are right: mypy is content with all of it, at its strictest."""

import pathlib
import subprocess
import sys

import sonde
from sonde import _sonde


def test_the_package_is_typed(tmp_path):
    root = pathlib.Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_extension():
    stub = (pathlib.Path(sonde.__file__).parent / "_sonde.pyi").read_text()
    for name in dir(_sonde):
        thing = getattr(_sonde, name)
        if name.startswith("_"):
            continue
        assert f"def {name}(" in stub or f"class {name}:" in stub or f"{name}: " in stub, name
        if isinstance(thing, type):
            for member in vars(thing):
                assert member in ("__doc__", "__module__", "__new__", "__repr__", "__init__") or member in stub, member
