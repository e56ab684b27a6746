# SPDX-License-Identifier: Apache-2.0
"""Images of a batch are computed together where that is faster, and each has the result it has alone, to rounding."""

import json
import os
import subprocess

import numpy as np
import pytest
from onnx import numpy_helper

import sonde
from small_models import model, value

PROGRAM = os.environ.get("SONDE_PROGRAM")
# Shares of the largest result. Alone an image goes another way than in a batch: by vectors of f32, with others by tiles
# of f16 in halves. Both round sums of a few hundred products; 4.5e-7 is the largest difference seen.
ROUNDING = 1e-6
# A 3×3 convolution goes Winograd's way in a batch and not alone: its transforms add large numbers up to small ones.
WINOGRAD = 1e-5


def convolution(channels, out, size, kernel=1):
    """Two convolutions with a sum, so that the second one has images in blocks of channels. The size of images is
    known, the number of them is not: then weights are packed for one image."""
    rank = len(size)
    rng = np.random.default_rng(rank)

    def weight(name, *shape):
        numbers = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        return numpy_helper.from_array(numbers.astype(np.float32), name)

    pad = {"pads": [kernel // 2] * 2 * rank}
    return model(
        [("Conv", ["x", "w0"], ["a"]), ("Relu", ["a"], ["b"]), ("Conv", ["b", "w1", "bias"], ["c"], pad),
         ("Add", ["c", "b"], ["d"]), ("Relu", ["d"], ["y"])],
        [value("x", shape=["n", channels, *size])], [value("y", shape=["n", out, *size])],
        [weight("w0", out, channels, *[1] * rank), weight("w1", out, out, *[kernel] * rank),
         numpy_helper.from_array(rng.standard_normal(out).astype(np.float32) * 1e-9, "bias")])


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("size, channels, out, kernel", (
    ((7, 7), 176, 200, 1), ((5, 9), 160, 161, 1), ((7, 7), 160, 160, 3), ((50,), 192, 192, 1),
    ((2, 5, 5), 160, 176, 1)))
def test_images_of_all_sizes_have_the_result_they_have_alone(size, channels, out, kernel, threads):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((6, channels, *size)).astype(np.float32)
    x *= np.float32([1, 1e-9, 1e9, 1e-3, 0, 1e20]).reshape(-1, *[1] * (len(size) + 1))
    options = sonde.SessionOptions()
    options.intra_op_num_threads = threads
    session = sonde.InferenceSession(convolution(channels, out, size, kernel).SerializeToString(), options)
    together = session.run(None, {"x": x})[0]
    for i in range(len(x)):
        alone = session.run(None, {"x": x[i:i + 1]})[0][0]
        bound = WINOGRAD if kernel == 3 else ROUNDING
        assert np.abs(together[i] - alone).max() <= bound * np.abs(alone).max()


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
def test_small_images_go_together_where_the_processor_has_tiles_for_them(tmp_path):
    kernels = {}
    for images in (1, 6):
        summary = tmp_path / f"{images}.summary.json"
        path = tmp_path / "net.onnx"
        path.write_bytes(convolution(176, 200, (7, 7)).SerializeToString())
        subprocess.run([PROGRAM, "profile", path, "-s", f"n={images}", "-n", "1", "-t", "1", "-q", "-o", summary],
                       check=True)
        profile = json.loads(summary.read_text())
        kernels[images] = " ".join(k["kernel"] for k in profile["kernels"])
    assert ("images" in kernels[6]) == (profile["machine"]["cpu_level"] == "amxfp16")
    assert "images" not in kernels[1]


def test_what_is_not_finite_stays_in_its_image():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, 176, 7, 7)).astype(np.float32)
    x[1, 40, 3, 3] = np.inf
    x[3, 0, 0, 0] = np.nan
    session = sonde.InferenceSession(convolution(176, 176, (7, 7)).SerializeToString())
    together = session.run(None, {"x": x})[0]
    for i in (0, 2, 4):
        alone = session.run(None, {"x": x[i:i + 1]})[0][0]
        assert np.abs(together[i] - alone).max() <= ROUNDING * np.abs(alone).max()
    assert not np.isfinite(together[1, :, 3, 3]).all() and np.isfinite(together[1, :, 0, 0]).all()


@pytest.mark.parametrize("size", (1e-30, 1e30, 1e34, 1e36))
def test_numbers_near_the_largest_ones_stay_finite(size):
    rng = np.random.default_rng(5)
    w = (rng.standard_normal((512, 400)) / 25).astype(np.float32)
    x = (rng.standard_normal((100, 512)) * size).astype(np.float32)
    net = model([("MatMul", ["x", "w"], ["y"])], [value("x", shape=["n", 512])], [value("y", shape=["n", 400])],
                [numpy_helper.from_array(w, "w")])
    y = sonde.InferenceSession(net.SerializeToString()).run(None, {"x": x})[0]
    want = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(y - want).max() <= ROUNDING * np.abs(want).max()
