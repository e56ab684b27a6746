# SPDX-License-Identifier: Apache-2.0
"""Tests of the package sonde need it built (PYTHONPATH=BUILD/python). Where script/test runs them it must be there;
somebody who runs pytest by hand may be without."""

import importlib
import importlib.util
import os
import signal
import subprocess

import onnx
import pytest

if importlib.util.find_spec("sonde") is None and "SONDE_PROGRAM" not in os.environ:
    collect_ignore_glob = ["test_package_*.py", "test_compare.py", "test_learned_models.py", "test_programs.py", "test_python_pages.py", "test_types.py"]


if importlib.util.find_spec("onnxruntime"):
    importlib.import_module("exact_onnxruntime")

# Shells start background jobs with signals ignored, and that is inherited: a test of Ctrl-C would wait for ever. What
# has a handler here is back at its default in every program that tests start.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, lambda *_: None),
                        (signal.SIGHUP, lambda *_: None)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory):
    """A function that gives a built-in model by name, as an onnx.ModelProto of the caller's own."""
    folder = tmp_path_factory.mktemp("zoo")

    def load(name):
        path = folder / f"{name}.onnx"
        if not path.exists():
            subprocess.run([os.environ["SONDE_PROGRAM"], "zoo", "save", name, path], check=True, capture_output=True)
        return onnx.load(path)

    return load
