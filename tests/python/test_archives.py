# SPDX-License-Identifier: Apache-2.0
"""Archives that unpack to far more than the model takes: refused by what they claim, before they cost memory."""

import os
import subprocess
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy
from onnx import numpy_helper

import small_models
from patience import PATIENCE
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

ROWS = 1 << 25  # of four floats: 512 MiB
LIMIT = 384 << 20


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.onnx"
    made = small_models.model([("MatMul", ["x", "w"], ["y"])], [value("x", shape=["N", 4])],
                              [value("y", shape=["N", 4])], [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
    path.write_bytes(made.SerializeToString())
    return path


def archive(path, **arrays):
    """Arrays, or shapes of zeros, which take a thousandth of their size."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        for name, a in arrays.items():
            with z.open(name + ".npy", "w") as f:
                if isinstance(a, np.ndarray):
                    npy.write_array(f, a)
                    continue
                npy.write_array_header_1_0(f, {"descr": "<f4", "fortran_order": False, "shape": a})
                left = 4 * int(np.prod(a))
                block = bytes(1 << 24)
                while left:
                    left -= f.write(block[:min(left, len(block))])
    return path


def run(*command):
    """Within a limit that no such array fits in."""
    def limited():
        import resource
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))

    return subprocess.run([PROGRAM, *map(str, command), "-t", "1"], capture_output=True, text=True, timeout=PATIENCE,
                          preexec_fn=limited)


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    few = np.ones((8, 4), np.float32)
    return {
        "name": archive(folder / "name.npz", x=few, junk=(ROWS, 4)),
        "shape": archive(folder / "shape.npz", x=(4, ROWS)),
        "first": archive(folder / "first.npz", junk=(ROWS, 4), x=few),
    }


@pytest.mark.parametrize("kind, says", [("name", "junk"), ("first", "junk"), ("shape", "f32[N, 4]")])
def test_samples_are_looked_at_before_they_are_unpacked(model, bombs, tmp_path, kind, says):
    done = run("quantize", model, "--calibrate", bombs[kind], "-o", tmp_path / "q.onnx", "-q")
    assert done.returncode == 1 and says in done.stderr, done.stderr
    assert "memory" not in done.stderr


@pytest.mark.parametrize("kind, says, code", [("name", "junk", 2), ("first", "junk", 2), ("shape", "f32[N, 4]", 1)])
def test_inputs_are_looked_at_before_they_are_unpacked(model, bombs, kind, says, code):
    for archive_of in (["-i", bombs[kind]], ["-i", f"x={bombs[kind]}"]):
        done = run("run", model, *archive_of, "-n", "1")
        assert done.returncode in (1, code), done.stderr
        assert says in done.stderr or "contains 2 values" in done.stderr, done.stderr
        assert "memory" not in done.stderr


def test_expected_outputs_are_looked_at_before_they_are_unpacked(model, tmp_path):
    few = np.ones((8, 4), np.float32)
    inputs = archive(tmp_path / "x.npz", x=few)
    assert run("run", model, "-i", inputs, "-n", "1", "--check", archive(tmp_path / "y.npz", y=few)).returncode == 0
    done = run("run", model, "-i", inputs, "-n", "1", "--check", archive(tmp_path / "b.npz", y=(ROWS, 4)))
    assert done.returncode == 3 and "[8, 4]" in done.stderr and "memory" not in done.stderr
    done = run("run", model, "-i", inputs, "-n", "1", "--check", archive(tmp_path / "c.npz", y=few, junk=(ROWS, 4)))
    assert done.returncode == 1 and "junk" in done.stderr and "memory" not in done.stderr


def test_samples_that_do_not_belong_together_are_found_first(model, tmp_path):
    two = tmp_path / "two.onnx"
    made = small_models.model([("MatMul", ["x", "w"], ["a"]), ("Add", ["a", "z"], ["y"])],
                              [value("x", shape=["N", 4]), value("z", shape=["N", 4])], [value("y", shape=["N", 4])],
                              [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
    two.write_bytes(made.SerializeToString())
    done = run("quantize", two, "--calibrate", archive(tmp_path / "s.npz", x=np.ones((8, 4), np.float32), z=(ROWS, 4)),
               "-o", tmp_path / "q.onnx", "-q")
    assert done.returncode == 1 and "8 samples" in done.stderr and "memory" not in done.stderr


def test_data_sets_are_looked_at_before_they_are_unpacked(model, tmp_path):
    few, data = np.ones((8, 4), np.float32), tmp_path / "data"
    data.mkdir()
    good = {"x": few, "label": np.zeros(8, np.int64)}
    archive(data / "a.npz", **good)
    archive(data / "b.npz", **good, junk=(ROWS, 4))
    archive(data / "c.npz", x=(4, ROWS), label=np.zeros(8, np.int64))
    archive(data / "d.npz", x=few, label=(ROWS, 4))
    done = run("bench", model, "--mode", "accuracy", "--dataset", data, "--no-program")
    assert done.returncode == 0 and "f32[N, 4]" in done.stderr and "memory" not in done.stderr, done.stdout + done.stderr


def test_a_bench_that_fails_quietly_says_why(tmp_path):
    path, data = tmp_path / "m.onnx", tmp_path / "data"
    made = small_models.model([("Relu", ["x"], ["y"])], [value("x", shape=["N", 2, 3, 3])], [value("y", shape=["N", 2, 3, 3])], [])
    path.write_bytes(made.SerializeToString())
    data.mkdir()
    archive(data / "a.npz", x=np.ones((1, 2, 3, 3), np.float32), label=np.zeros(1, np.int64))
    done = run("bench", path, "--mode", "accuracy", "--dataset", data, "-q")
    assert done.returncode == 1 and "not a classifier" in done.stderr, done.stderr
