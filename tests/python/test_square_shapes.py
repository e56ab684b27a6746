# SPDX-License-Identifier: Apache-2.0
"""Parameters that are as long as another axis: where there are as many rows as columns, their shape says which they
belong to, and not how many they are."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper as h

import every_way
import libsonde

N = 6
RNG = np.random.default_rng(5)
X = RNG.integers(0, 256, (N, N)).astype(np.uint8)
W = RNG.integers(-128, 128, (N, N)).astype(np.int8)
SCALES = RNG.uniform(0.005, 0.02, N).astype(np.float32)
LONG = (RNG.integers(-60, 60, N) * np.float32(0.25)).astype(np.float32)


def onnxruntime_of(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def dequantize(name, scale, zero=None, **attributes):
    return h.make_node("DequantizeLinear", [name, scale, *([zero] if zero else [])], [name + "_f"], **attributes)


def steps_between(a, b):
    return int(np.abs(a.astype(int) - b.astype(int)).max())


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("quantised", [True, False])
@pytest.mark.parametrize("bias", ["column", "row", "row of two dims", "matrix", "integers in a column", "integers in a row"])
def test_the_bias_of_a_gemm(bias, quantised, turned):
    feeds = {"x": X}
    c = {"column": LONG[:, None], "row": LONG, "row of two dims": LONG[None], "matrix": LONG[:, None] - LONG}.get(bias)
    nodes = [dequantize("x", "sx", "zx"), dequantize("w", "sw")]
    constants = {"sx": np.float32(0.03125), "zx": np.uint8(120), "w": W, "sw": np.float32(0.015625),
                 "sy": np.float32(0.25), "zy": np.uint8(128)}
    if c is None:
        shape = (N, 1) if "column" in bias else (1, N)
        constants |= {"c": (LONG / np.float32(0.03125 * 0.015625)).astype(np.int32).reshape(shape),
                      "sc": np.float32(0.03125 * 0.015625)}
        nodes.append(dequantize("c", "sc"))
    else:
        constants["c_f"] = c
    nodes.append(h.make_node("Gemm", ["x_f", "w_f", "c_f"], ["y"], transB=turned))
    if quantised:
        nodes.append(h.make_node("QuantizeLinear", ["y", "sy", "zy"], ["q"]))
    model = every_way.model(nodes, feeds, {"q": np.uint8} if quantised else {"y": np.float32}, constants)
    theirs, = onnxruntime_of(model, feeds)
    for ours, in every_way.each(model, feeds):
        if quantised:
            assert steps_between(ours, theirs) <= 1 and len(np.unique(ours)) > 9
        else:
            np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_scales_of_rows_in_blocks_are_none_of_columns(op):
    """A scale of two dims: each row of the weights has its own, which no product of integers can take off."""
    feeds = {"x": X}
    nodes = [dequantize("x", "sx", "zx"), dequantize("w", "sw", axis=1), h.make_node(op, ["x_f", "w_f"], ["y"])]
    constants = {"sx": np.float32(0.03125), "zx": np.uint8(120), "w": W, "sw": SCALES[:, None]}
    model = every_way.model(nodes, feeds, {"y": np.float32}, constants, opset=21)
    want = ((X.astype(np.float64) - 120) * 0.03125) @ (W * SCALES[:, None].astype(np.float64))
    for ours, in every_way.each(model, feeds):
        np.testing.assert_allclose(ours, want, atol=1e-4)


def product(op, shapes):
    """A product of bytes with scales and zero points of these shapes; {} where they are one number."""
    def one(k, value):
        return np.full(shapes.get(k, ()), value)
    if op == "QLinearMatMul":
        inputs = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
        domain, y = "", np.uint8
    elif op == "MatMulInteger":
        inputs, domain, y = ["x", "w", "zx", "zw"], "", np.int32
    elif op == "QGemm":
        inputs = ["x", "sx", "zx", "w", "sw", "zw", "", "sy", "zy"]
        domain, y = "com.microsoft", np.uint8
    elif op == "DynamicQuantizeMatMul":
        inputs, domain, y = ["x", "w", "sw", "zw"], "com.microsoft", np.float32
    else:
        inputs, domain, y = ["x", "w", "sx", "sw", "zx", "zw"], "com.microsoft", np.float32
    constants = {"w": W, "sx": one("sx", 0.03).astype(np.float32), "zx": one("zx", 120).astype(np.uint8),
                 "sw": one("sw", 0.02).astype(np.float32), "zw": one("zw", 0).astype(np.int8),
                 "sy": np.float32(0.4), "zy": np.uint8(128)}
    constants["sw"] = constants["sw"] * np.arange(1, 1 + constants["sw"].size, dtype=np.float32).reshape(constants["sw"].shape)
    feeds = {"x": X.astype(np.float32) if op == "DynamicQuantizeMatMul" else X}
    node = h.make_node(op, inputs, ["y"], domain=domain)
    used = {k: v for k, v in constants.items() if k in inputs}
    return every_way.model([node], feeds, {"y": y}, used), feeds


@pytest.mark.parametrize("op", ["QLinearMatMul", "QGemm", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
def test_scales_of_columns_lie_in_the_last_dim(op):
    row, feeds = product(op, {"sw": (N,)})
    flat, = every_way.run(row, feeds)
    lying, feeds = product(op, {"sw": (1, N)})
    np.testing.assert_array_equal(every_way.run(lying, feeds)[0], flat)
    standing, feeds = product(op, {"sw": (N, 1)})
    with pytest.raises(libsonde.Failure, match="column"):
        every_way.run(standing, feeds)


@pytest.mark.parametrize("op,which", [("QLinearMatMul", "sx"), ("QLinearMatMul", "zx"), ("MatMulInteger", "zx")])
def test_parameters_of_rows_lie_in_the_last_but_one(op, which):
    flat, = every_way.run(*product(op, {which: (N,)}))
    np.testing.assert_array_equal(every_way.run(*product(op, {which: (N, 1)}))[0], flat)
    with pytest.raises(libsonde.Failure, match="row"):
        every_way.run(*product(op, {which: (1, N)}))


def test_one_scale_for_each_matrix_is_none_for_each_column():
    shape = (N, N, N)
    w = np.broadcast_to(W, shape).copy()
    constants = {"sx": np.float32(0.03), "zx": np.uint8(120), "w": w, "sw": SCALES.reshape(N, 1, 1), "zw": np.int8(0),
                 "sy": np.float32(0.4), "zy": np.uint8(128)}
    feeds = {"x": np.broadcast_to(X, shape).copy()}
    node = h.make_node("QLinearMatMul", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"], ["y"])
    with pytest.raises(libsonde.Failure, match="column"):
        every_way.run(every_way.model([node], feeds, {"y": np.uint8}, constants), feeds)
    constants["sw"] = np.broadcast_to(SCALES, (N, 1, N)).copy()
    ours, = every_way.run(every_way.model([node], feeds, {"y": np.uint8}, constants), feeds)
    real = (X.astype(np.float64) - 120) @ W * SCALES * 0.03 / 0.4
    want = np.clip(np.rint(real) + 128, 0, 255)
    assert np.abs(ours - want).max() <= 1 and len(np.unique(ours)) > 9


@pytest.mark.parametrize("op,opset", [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_scales_of_a_normalisation(op, opset):
    """One number per row is no scale of what a row holds."""
    feeds = {"x": RNG.standard_normal((N, N)).astype(np.float32)}
    for shape, fits in (((N,), True), ((1, N), True), ((N, 1), False)):
        node = h.make_node(op, ["x", "s"], ["y"])
        model = every_way.model([node], feeds, {"y": np.float32}, {"s": SCALES.reshape(shape)}, opset=opset)
        if not fits:
            with pytest.raises(libsonde.Failure, match="do not fit"):
                every_way.run(model, feeds)
            continue
        x = feeds["x"].astype(np.float64)
        x = x - x.mean(-1, keepdims=True) if op == "LayerNormalization" else x
        want = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * SCALES
        for ours, in every_way.each(model, feeds):
            np.testing.assert_allclose(ours, want, atol=1e-5)


def test_what_a_normalisation_skips():
    x = RNG.standard_normal((N, N, N)).astype(np.float32)
    for shape, fits in (((N, N, N), True), ((1, N, N), True), ((N, N), True), ((N, 1, N), False)):
        feeds = {"x": x, "skip": RNG.standard_normal(shape).astype(np.float32)}
        node = h.make_node("SkipLayerNormalization", ["x", "skip", "gamma"], ["y"], domain="com.microsoft", epsilon=1e-5)
        model = every_way.model([node], feeds, {"y": np.float32}, {"gamma": SCALES})
        if not fits:
            with pytest.raises(libsonde.Failure, match="skip does not fit"):
                every_way.run(model, feeds)
            continue
        theirs, = onnxruntime_of(model, feeds)
        for ours, in every_way.each(model, feeds):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("inner,shape,fits", [(1, (N, 1, 1, N), True), (1, (1, N, 1, N), False), (0, (1, 1, N, N), True),
                                              (0, (1, N, 1, N), False), (1, (N, 1, N, N), False)])
def test_what_is_added_before_a_softmax(inner, shape, fits):
    feeds = {"x": RNG.standard_normal((N, N, N, N)).astype(np.float32), "b": RNG.standard_normal(shape).astype(np.float32)}
    node = h.make_node("BiasSoftmax", ["x", "b"], ["y"], domain="com.microsoft", axis=3, is_inner_broadcast=inner)
    model = every_way.model([node], feeds, {"y": np.float32})
    if not fits:
        with pytest.raises(libsonde.Failure, match="broadcast"):
            every_way.run(model, feeds)
        return
    e = np.exp(feeds["x"].astype(np.float64) + feeds["b"])
    for ours, in every_way.each(model, feeds):
        np.testing.assert_allclose(ours, e / e.sum(-1, keepdims=True), atol=1e-6)
