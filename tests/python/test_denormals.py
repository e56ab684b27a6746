# SPDX-License-Identifier: Apache-2.0
"""Denormal numbers: kept by default, 0 on request, and never somebody else's affair."""

import os
import subprocess

import numpy as np
import onnx
import pytest

import small_models

sonde = pytest.importorskip("sonde")

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
SMALL = np.float32(1e-20)


def product(size):
    """y = x * x, which is denormal for x = 1e-20."""
    return small_models.model([("Mul", ["x", "x"], ["y"])], [small_models.value("x", shape=[size])],
                              [small_models.value("y", shape=[size])])


def open_session(made, flush, threads):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = threads
    if flush:
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return sonde.InferenceSession(made.SerializeToString(), options)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [5, 1 << 20])
def test_results_are_kept_or_0_on_every_thread_of_a_run(size, threads):
    sessions = {flush: open_session(product(size), flush, threads) for flush in (False, True)}
    x = {"x": np.full(size, SMALL)}
    exact = SMALL.astype(np.float64) ** 2
    for flush in (False, True, False, True, True, False):
        y = sessions[flush].run(None, x)[0]
        if flush:
            assert not y.any()
        else:
            np.testing.assert_allclose(y.astype(np.float64), exact, rtol=1e-4)


def test_inputs_that_are_denormal_count_as_0():
    made = small_models.model([("Mul", ["x", "big"], ["y"])], [small_models.value("x", shape=[64])],
                              [small_models.value("y", shape=[64])],
                              [onnx.numpy_helper.from_array(np.full(64, 1e30, np.float32), "big")])
    x = {"x": np.full(64, 1e-40, np.float32)}
    assert open_session(made, False, 1).run(None, x)[0].all()
    assert not open_session(made, True, 1).run(None, x)[0].any()


def test_the_callers_own_arithmetic_is_left_alone():
    session = open_session(product(1 << 16), True, 2)
    session.run(None, {"x": np.full(1 << 16, SMALL)})
    assert np.full(4, SMALL).prod(initial=np.float32(1)) == 0 and (np.full(4, SMALL) * SMALL).all()
    with pytest.raises(sonde.Error):
        session.run(None, {"x": np.full(3, SMALL)})
    assert (np.full(4, SMALL) * SMALL).all()


def test_the_program_has_it_as_an_option(tmp_path):
    onnx.save(product(64), tmp_path / "p.onnx")
    np.save(tmp_path / "x.npy", np.full(64, SMALL))
    shown = [subprocess.run([PROGRAM, "run", str(tmp_path / "p.onnx"), "-i", f"x={tmp_path / 'x.npy'}", *more],
                            check=True, capture_output=True, text=True).stdout for more in ([], ["--flush-denormals"])]
    assert "max 9.99" in shown[0] and "max 0 " in shown[1]
