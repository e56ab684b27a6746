# SPDX-License-Identifier: Apache-2.0
"""Windows of pools that reach beyond their input, and such that have nothing of it in them: what ONNX Runtime gives."""

import os
import subprocess

import numpy as np
import onnxruntime
import pytest
from onnx import helper as h

import every_way
import libsonde
from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
POOLS = {"MaxPool": 17, "AveragePool": 19, "LpPool": 18}


def theirs_of(model, feeds):
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


def pool(op, x, opset=None, **attributes):
    node = h.make_node(op, ["x"], ["y"], kernel_shape=attributes.pop("kernel"), **attributes)
    return every_way.model([node], {"x": x}, {"y": x.dtype}, opset=opset or POOLS[op])


def image(shape, dtype):
    """Numbers below 0 where there are such: 0 would be larger than all of them."""
    rng = np.random.default_rng(7)
    if dtype in (np.int8, np.uint8):
        return rng.integers(-100 if dtype == np.int8 else 1, 100, shape).astype(dtype)
    return (-1 - rng.random(shape)).astype(dtype)


def lowest(dtype):
    """16 bits are computed in f32, whose lowest number is -∞ there."""
    return np.iinfo(dtype).min if np.dtype(dtype).kind in "iu" else -np.inf if dtype == np.float16 else np.finfo(dtype).min


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_maxima_of_nothing_are_the_lowest_number(dtype, spatial, ceil_mode):
    """Two taps, so far from each other that some windows have one on either side of the image."""
    x = image([2, 5, *[4] * spatial], dtype)
    model = pool("MaxPool", x, kernel=[2] * spatial, pads=[1] * 2 * spatial, dilations=[5] * spatial, ceil_mode=ceil_mode)
    ours, = every_way.run(model, {"x": x})
    theirs, = theirs_of(model, {"x": x})
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ours, lowest(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_windows_in_wide_padding(dtype, spatial):
    """Beside windows that have something in them; ONNX Runtime refuses padding that is no narrower than a window."""
    x = image([2, 5, *[3] * spatial], dtype)
    ours, = every_way.run(pool("MaxPool", x, kernel=[1] * spatial, pads=[2] * spatial + [1] * spatial), {"x": x})
    np.testing.assert_array_equal(ours, np.pad(x, [(0, 0)] * 2 + [(2, 1)] * spatial, constant_values=lowest(dtype)))


@pytest.mark.parametrize("spatial", [2, 3])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_images_in_blocks_of_channels(op, spatial):
    """Between convolutions; 21 channels leave lanes that belong to none."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal([1, 4, *[5] * spatial]).astype(np.float32)
    constants = {"v": rng.standard_normal([21, 4, *[3] * spatial]).astype(np.float32),
                 "w": rng.standard_normal([6, 21, *[1] * spatial]).astype(np.float32), "low": np.float32(-1), "high": np.float32(1)}
    nodes = [h.make_node("Conv", ["x", "v"], ["a"], pads=[1] * 2 * spatial),
             h.make_node(op, ["a"], ["p"], kernel_shape=[2] * spatial, pads=[1] * 2 * spatial, dilations=[6] * spatial),
             h.make_node("Clip", ["p", "low", "high"], ["c"]), h.make_node("Conv", ["c", "w"], ["y"])]
    model = every_way.model(nodes, {"x": x}, {"p": np.float32, "y": np.float32}, constants, opset=19)
    wanted = theirs_of(model, {"x": x})
    only_y = every_way.model(nodes, {"x": x}, {"y": np.float32}, constants, opset=19)
    for ours in every_way.each(model, {"x": x}):
        for a, b in zip(ours, wanted):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    for ours, in every_way.each(only_y, {"x": x}):
        np.testing.assert_allclose(ours, wanted[1], rtol=1e-4, atol=1e-4)


def test_bytes_between_convolutions():
    """Channels last."""
    rng, s = np.random.default_rng(9), np.float32
    x = rng.integers(-128, 128, [1, 3, 6, 5]).astype(np.int8)
    constants = {"s": s(0.05), "z": np.int8(5), "v": rng.integers(-9, 9, (10, 3, 1, 1)).astype(np.int8), "o": np.int8(0),
                 "w": rng.integers(-9, 9, (4, 10, 1, 1)).astype(np.int8)}
    nodes = [h.make_node("QLinearConv", ["x", "s", "z", "v", "s", "o", "s", "z"], ["a"]),
             h.make_node("MaxPool", ["a"], ["p"], kernel_shape=[2, 2], pads=[1] * 4, dilations=[5, 6]),
             h.make_node("QLinearConv", ["p", "s", "z", "w", "s", "o", "s", "z"], ["y"])]
    model = every_way.model(nodes, {"x": x}, {"p": np.int8, "y": np.int8}, constants)
    p, y = every_way.run(model, {"x": x})
    assert (p == -128).any()
    without = every_way.model(nodes, {"x": x}, {"y": np.int8}, constants)
    np.testing.assert_array_equal(every_way.run(without, {"x": x})[0], y)
    np.testing.assert_array_equal(p, theirs_of(model, {"x": x})[0])


@pytest.mark.parametrize("op", POOLS)
def test_averages_of_nothing_are_0(op):
    x = image([1, 3, 4, 4], np.float32)
    if op == "MaxPool":
        x = -x
    for more in ({}, {"count_include_pad": 1}) if op == "AveragePool" else ({},):
        model = pool(op, x, kernel=[2, 2], pads=[1] * 4, dilations=[5, 5], **more)
        theirs, = theirs_of(model, {"x": x})
        for ours, in every_way.each(model, {"x": x}):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("opset", [10, 11, 18, 19, 22])
@pytest.mark.parametrize("kernel,strides,shape,pads", [
    ([1, 2], [3, 2], [6, 7, 5, 1], [0] * 4), ([2, 2], [2, 2], [1, 3, 1, 5], [0] * 4), ([4], [3], [1, 2, 1], [0, 1]),
    ([4], [3], [1, 2, 2], [1, 0]), ([2, 3, 3], [3, 1, 2], [3, 4, 1, 4, 5], [0] * 6)])
def test_averages_count_the_padding_of_a_window_larger_than_the_image(opset, kernel, strides, shape, pads, ceil_mode):
    """Until opset 18 all of the window counts where sizes are not rounded up, else what lies within the padding, as in
    ONNX Runtime."""
    x = image(shape, np.float32)
    model = pool("AveragePool", x, opset, kernel=kernel, strides=strides, pads=pads, count_include_pad=1, ceil_mode=ceil_mode)
    theirs, = theirs_of(model, {"x": x})
    for ours, in every_way.each(model, {"x": x}):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("op,dtype", [*((op, np.float32) for op in POOLS),
                                      *(("MaxPool", t) for t in (np.float64, np.float16, np.uint8))])
@pytest.mark.parametrize("height,kernel,stride", [(1, 2, 2), (1, 3, 4), (2, 5, 4), (1, 2, 1), (1, 3, 2), (2, 4, 2)])
@pytest.mark.parametrize("more", [{}, {"ceil_mode": 1}, {"auto_pad": "VALID"}, {"pads": [0, 0, 0, 1]}, {"pads": [0, 1, 0, 0]}])
def test_windows_larger_than_the_image(op, dtype, height, kernel, stride, more):
    """By less than a stride they are cut to it, by a stride there is no result: as ONNX Runtime has it."""
    x = image([1, 3, height, 6], dtype)
    model = pool(op, x, kernel=[kernel, 2], strides=[stride, 1], **more)
    theirs, = theirs_of(model, {"x": x})
    for ours, in every_way.each(model, {"x": x}):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_bytes_in_qdq_notation_and_their_own_average():
    s = np.float32
    x = np.arange(8).reshape(1, 1, 1, 8).astype(np.uint8)
    constants = {"s": s(1), "z": np.uint8(0)}
    nodes = [h.make_node("QLinearAveragePool", ["x", "s", "z", "s", "z"], ["y"], domain="com.microsoft", kernel_shape=[2, 2],
                         strides=[2, 1])]
    model = every_way.model(nodes, {"x": x}, {"y": np.uint8}, constants)
    np.testing.assert_array_equal(every_way.run(model, {"x": x})[0], theirs_of(model, {"x": x})[0])
    nodes = [h.make_node("DequantizeLinear", ["x", "s", "z"], ["f"]),
             h.make_node("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2]),
             h.make_node("QuantizeLinear", ["g", "s", "z"], ["y"])]
    model = every_way.model(nodes, {"x": x}, {"y": np.uint8}, constants)
    np.testing.assert_array_equal(every_way.run(model, {"x": x})[0], [[[[1, 3, 5, 7]]]])


@pytest.mark.parametrize("op", POOLS)
def test_a_window_that_is_much_larger_does_not_fit(op):
    x = image([1, 1, 1, 4], np.float32)
    model = pool(op, x, kernel=[4, 2], strides=[1, 1])
    with pytest.raises(Exception, match="negative"):
        theirs_of(model, {"x": x})
    with pytest.raises(libsonde.Failure, match="a window of 4 does not fit 1 elements of spatial dim 0"):
        every_way.run(model, {"x": x})


@pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
@pytest.mark.parametrize("op", ["MaxPool", "Resize", "QLinearAveragePool"])
def test_an_empty_result_is_told_once(tmp_path, op):
    """Of shapes that are known, and of such that are found while the model runs."""
    for known in (True, False):
        first = h.make_node("Identity" if known else "NonZero", ["x"], ["n"])
        nodes, dtype = [first], np.int64
        constants = {"shape": np.array([1, 1, 1, -1])}
        nodes.append(h.make_node("Reshape", ["n", "shape"], ["r"]))
        if op == "Resize":
            nodes.append(h.make_node("Cast", ["r"], ["f"], to=1))
            nodes.append(h.make_node("Resize", ["f", "", "scales"], ["small"], "shrinks"))
            constants["scales"] = np.array([1, 1, 0.5, 1], np.float32)
        elif op == "MaxPool":
            nodes.append(h.make_node("Cast", ["r"], ["f"], to=1))
            nodes.append(h.make_node("MaxPool", ["f"], ["small"], "shrinks", kernel_shape=[2, 2]))
        else:
            nodes.append(h.make_node("Cast", ["r"], ["f"], to=2))
            constants |= {"s": np.float32(1), "z": np.uint8(0)}
            nodes.append(h.make_node("QLinearAveragePool", ["f", "s", "z", "s", "z"], ["small"], "shrinks",
                                     domain="com.microsoft", kernel_shape=[2, 2]))
        nodes.append(h.make_node("Shape", ["small"], ["y"]))
        x = np.arange(1, 9, dtype=np.int64)
        (tmp_path / "m.onnx").write_bytes(every_way.model(nodes, {"x": x}, {"small": np.uint8 if op.startswith("Q") else np.float32,
                                                                             "y": np.int64}, constants))
        np.savez(tmp_path / "in.npz", x=x)
        done = subprocess.run([PROGRAM, "run", tmp_path / "m.onnx", "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz"],
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        told = [line for line in done.stderr.splitlines() if "empty" in line]
        assert len(told) == 1 and "'shrinks'" in told[0] and f"({op})" in told[0], done.stderr
        assert "dim 2 of the input, which is 1, is too small" in told[0]
        with np.load(tmp_path / "out.npz") as f:
            assert f["small"].shape[2] == 0


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel,dilation,pads", [(2, 2, (1, 1)), (3, 2, (1, 0)), (3, 2, (2, 2)), (3, 3, (1, 2)), (2, 4, (1, 0)),
                                                  (2, 1, (1, 1)), (1, 1, (0, 0))])
def test_volumes_in_blocks_with_windows_that_begin_in_the_padding_of_their_depth(op, stride, kernel, dilation, pads):
    """The second window may begin before the first tap of the one that begins in the padding."""
    x = np.random.default_rng(1).standard_normal((1, 8, 9, 4, 4)).astype(np.float32)
    nodes = [h.make_node("Conv", ["x", "w"], ["c"]),
             h.make_node(op, ["c"], ["y"], kernel_shape=[kernel, 1, 2], dilations=[dilation, 1, 1], strides=[stride, 1, 1],
                         pads=[pads[0], 0, 0, pads[1], 0, 0])]
    model = every_way.model(nodes, {"x": x}, {"y": np.float32}, {"w": np.eye(8, dtype=np.float32).reshape(8, 8, 1, 1, 1)}, opset=19)
    theirs, = theirs_of(model, {"x": x})
    for ours, in every_way.each(model, {"x": x}):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
