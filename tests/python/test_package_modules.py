# SPDX-License-Identifier: Apache-2.0
"""Modules of the package are there after `import sonde`, and are imported when they are used."""

import pathlib
import subprocess
import sys

import pytest

import sonde

MODULES = sorted(path.stem for path in pathlib.Path(sonde.__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_there_after_importing_the_package(name):
    """One whose package is not installed says so."""
    python(f"""
import importlib, sonde
try:
    found = sonde.{name}
except ImportError as error:
    assert error.name != "sonde.{name}"
else:
    assert found is importlib.import_module("sonde.{name}")
""")


def test_importing_the_package_imports_nothing_that_is_optional():
    loaded = python("import sys, sonde; print(*sys.modules)").split()
    heavy = {"onnx", "onnxruntime", "torch", "pandas", "pyarrow", "polars", "dask", "ray", "pyspark", "opentelemetry", "sonde.zoo",
             "multiprocessing.util"}
    assert not heavy.intersection(loaded)


def test_what_there_is_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'sonde' has no attribute 'nothing'"):
        sonde.nothing


def test_the_filter_of_the_timing_table_takes_names_in_a_list():
    options = sonde.RunOptions()
    options.timing_filter = "Conv,MatMul"
    assert options.timing_filter == "Conv,MatMul"
    for names in (["Conv", "MatMul"], ("Conv", "MatMul"), (n for n in ("Conv", "MatMul"))):
        options.timing_filter = names
        assert options.timing_filter == "Conv,MatMul"
    options.timing_filter = []
    assert options.timing_filter == ""
    for wrong in (3, ["Conv", 3], None, [b"Conv"]):
        with pytest.raises(TypeError, match="expected a str or a list of str"):
            options.timing_filter = wrong
