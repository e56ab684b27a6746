# SPDX-License-Identifier: Apache-2.0
"""Dimensions of one name that have different sizes, which exporters write and ONNX Runtime takes."""

import os
import subprocess

import numpy as np
import pytest

import small_models
import sonde
from patience import PATIENCE
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM")
needs_program = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


def apart():
    """Two ways that do not meet, each through an input of [N, 4]."""
    return small_models.model([("Relu", ["x"], ["r"]), ("Neg", ["r"], ["a"]), ("Sqrt", ["y"], ["b"])],
                              [value("x", shape=["N", 4]), value("y", shape=["N", 4])],
                              [value("a", shape=["N", 4]), value("b", shape=["N", 4])])


def joined():
    return small_models.model([("Add", ["x", "y"], ["z"], {"name": "sum of both"})],
                              [value("x", shape=["N", 4]), value("y", shape=["N", 4])], [value("z", shape=["N", 4])])


def feeds(n, m):
    return {"x": np.arange(4 * n, dtype=np.float32).reshape(n, 4), "y": np.arange(4 * m, dtype=np.float32).reshape(m, 4)}


def check(session, n, m):
    given = feeds(n, m)
    a, b = session.run(["a", "b"], given)
    np.testing.assert_array_equal(a, -given["x"])
    np.testing.assert_allclose(b, np.sqrt(given["y"]), rtol=1e-6)


def test_runs_of_any_sizes():
    session = sonde.InferenceSession(apart().SerializeToString())
    for n, m in ((2, 2), (2, 3), (1, 5), (4, 4)):
        check(session, n, m)
    (b,) = session.run(["b"], feeds(7, 2))
    assert b.shape == (2, 4)
    assert session.get_inputs()[1].shape == ["N", 4]


def test_the_first_run_may_be_the_one():
    check(sonde.InferenceSession(apart().SerializeToString()), 3, 1)


def test_partial_runs():
    session = sonde.InferenceSession(apart().SerializeToString())
    given = feeds(2, 3)
    rest = session.partial_run(given)
    a, b = session.run(["a", "b"], rest)
    assert a.shape == (2, 4) and b.shape == (3, 4)


def test_a_node_that_needs_one_size_is_named():
    session = sonde.InferenceSession(joined().SerializeToString())
    for _ in range(2):
        with pytest.raises(sonde.Error, match="sum of both"):
            session.run(None, feeds(2, 3))
    (z,) = session.run(None, feeds(3, 3))
    np.testing.assert_array_equal(z, 2 * feeds(3, 3)["x"])


@needs_program
@pytest.mark.parametrize("how, verb", [("sizes", ["run"]), ("file", ["run"]), ("sizes", ["profile"]),
                                       ("file", ["profile"]), ("sizes", ["bench"]), ("file", ["bench"]),
                                       ("sizes", ["inspect", "--optimized"])])
def test_every_verb_takes_them(tmp_path, how, verb):
    model = tmp_path / "m.onnx"
    model.write_bytes(apart().SerializeToString())
    np.savez(tmp_path / "in.npz", **feeds(2, 3))
    given = ["-s", "x.N=2", "-s", "y.N=3"] if how == "sizes" else ["-i", tmp_path / "in.npz"]
    more = [] if verb[0] == "inspect" else ["-n", "2"]
    done = subprocess.run([PROGRAM, *verb, model, *given, *more], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert verb == ["bench"] or "dimension 'N' = 3" in done.stderr  # bench measures in processes of its own


@needs_program
def test_the_warning_is_given_once(tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(apart().SerializeToString())
    done = subprocess.run([PROGRAM, "run", model, "-s", "x.N=2", "-s", "y.N=3", "-n", "5", "-o", tmp_path / "o.npz"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stderr.count("dimension 'N'") == 1, done.stderr
    with np.load(tmp_path / "o.npz") as out:
        assert out["a"].shape == (2, 4) and out["b"].shape == (3, 4)
