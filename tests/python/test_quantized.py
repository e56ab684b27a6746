# SPDX-License-Identifier: Apache-2.0
"""Models quantised as DequantizeLinear ► operator ► QuantizeLinear: the pass that turns them into integer
arithmetic finds what it should, leaves the rest alone, and agrees with ONNX Runtime to one step."""

import os
import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import every_way
from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


class Builder:
    """A graph of one f32 input, quantised at once; methods append and return value names."""

    def __init__(self, seed, dtype=np.uint8):
        self.rng = np.random.default_rng(seed)
        self.dtype, self.nodes, self.constants, self.count = dtype, [], [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, array):
        name = self.name()
        self.constants.append(nh.from_array(np.asarray(array), name))
        return name

    def node(self, op, *inputs, **attributes):
        out = self.name()
        self.nodes.append(h.make_node(op, inputs, [out], name=f"{op}_{out}", **attributes))
        return out

    def q(self, x, scale, zero, dtype=None):
        return self.node("QuantizeLinear", x, self.constant(np.float32(scale)),
                         self.constant(np.asarray(zero, dtype or self.dtype)))

    def dq(self, x, scale, zero, dtype=None, **attributes):
        return self.node("DequantizeLinear", x, self.constant(np.asarray(scale, np.float32)),
                         self.constant(np.asarray(zero, dtype or self.dtype)), **attributes)

    def qdq(self, x, scale, zero):
        return self.dq(self.q(x, scale, zero), scale, zero)

    def weights(self, shape, scale, axis=None):
        w = self.rng.integers(-127, 128, shape).astype(np.int8)
        if axis is None:
            return self.dq(self.constant(w), scale, 0, np.int8)
        return self.dq(self.constant(w), scale, np.zeros(shape[axis], np.int8), np.int8, axis=axis)

    def bias(self, n, scale):
        b = self.rng.integers(-5000, 5000, n).astype(np.int32)
        if np.ndim(scale):
            return self.dq(self.constant(b), scale, np.zeros(n, np.int32), np.int32, axis=0)
        return self.dq(self.constant(b), scale, 0, np.int32)

    def model(self, shape, output, output_type=T.FLOAT):
        x, y = h.make_tensor_value_info("x", T.FLOAT, shape), h.make_tensor_value_info(output, output_type, None)
        graph = h.make_graph(self.nodes, "quantised", [x], [y], self.constants)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def run_both(model, folder, shape, args=()):
    path = folder / "m.onnx"
    onnx.save(model, path)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"x": x})[0]
    np.savez(folder / "in.npz", x=x)
    done = subprocess.run([PROGRAM, "run", path, "-i", folder / "in.npz", "-o", folder / "out.npz", *args],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return next(iter(np.load(folder / "out.npz").values())), theirs


def kernels(folder):
    done = subprocess.run([PROGRAM, "profile", folder / "m.onnx", "-n", "1", "--json", "-"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def steps_of(folder, op):
    """How many steps of that operator are left."""
    done = subprocess.run([PROGRAM, "inspect", "--forms", folder / "m.onnx"], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return len(re.findall(rf"^ +{op} \(", done.stdout, re.MULTILINE))


def check(model, folder, shape, step):
    ours, theirs = run_both(model, folder, shape)
    steps = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) / step
    assert steps.max() <= 1.001, steps.max()
    assert (steps > 0.001).mean() <= 0.01
    for args in (["--no-optimize"], ["--no-prepack"], ["-t", "2"], ["--cpu", "baseline"]):
        assert np.array_equal(ours, run_both(model, folder, shape, args)[0]), args


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", ["plain", "1x1", "depthwise", "grouped", "strided", "wide"])
def test_convolutions(tmp_path, dtype, per_channel, kind):
    b = Builder(7, dtype)
    c, oc, group, k, kw = {"plain": (5, 7, 1, 3, {}), "1x1": (16, 24, 1, 1, {}), "depthwise": (8, 8, 8, 3, {}),
                           "grouped": (8, 12, 4, 3, {}), "strided": (4, 6, 1, 3, {"strides": [2, 2]}),
                           "wide": (40, 16, 1, 3, {})}[kind]
    zero = 117 if dtype == np.uint8 else -9
    low = 0 if dtype == np.uint8 else -128
    w_scale = b.rng.uniform(0.01, 0.03, oc).astype(np.float32) if per_channel else np.float32(0.02)
    x = b.qdq("x", 0.03, zero)
    y = b.node("Conv", x, b.weights((oc, c // group, k, k), w_scale, 0 if per_channel else None),
               b.bias(oc, np.float32(0.03) * w_scale), group=group, pads=[k // 2] * 4, **kw)
    y = b.qdq(b.node("Relu", y), 0.11, low)
    shape = [2, c, 13, 11]
    check(b.model(shape, y), tmp_path, shape, 0.11)
    text = kernels(tmp_path)
    assert re.search(r"\b[ui]8_", text) and "Relu+QuantizeLinear" in text


@pytest.mark.parametrize("turned", [0, 1])
def test_a_classifier_head(tmp_path, turned):
    b = Builder(3)
    x = b.qdq("x", 0.03, 117)
    y = b.qdq(b.node("GlobalAveragePool", x), 0.01, 128)
    y = b.qdq(b.node("Flatten", y), 0.01, 128)
    y = b.node("Gemm", y, b.weights((10, 6) if turned else (6, 10), 0.02), b.bias(10, np.float32(0.01 * 0.02)),
               transB=turned)
    y = b.qdq(y, 0.02, 100)
    check(b.model([3, 6, 5, 5], y), tmp_path, [3, 6, 5, 5], 0.02)


@pytest.mark.parametrize("bias", ["none", "integers", "floats"])
@pytest.mark.parametrize("alpha", [0.5, -2.0])
def test_a_factor_of_a_product(tmp_path, alpha, bias):
    """The bias is not multiplied by it."""
    b = Builder(17)
    inputs = [b.qdq("x", 0.03, 117), b.weights((12, 8), 0.02)]
    if bias == "integers":
        inputs.append(b.bias(12, np.float32(0.03 * 0.02)))
    elif bias == "floats":
        inputs.append(b.constant(b.rng.normal(0, 3, 12).astype(np.float32)))
    y = b.qdq(b.node("Gemm", *inputs, alpha=alpha, transB=1), 0.2, 120)
    model = b.model([7, 8], y)
    ours, theirs = run_both(model, tmp_path, [7, 8], ["--disable-pass", "fuse-qdq"])
    assert np.abs(run_both(model, tmp_path, [7, 8])[0] - ours).max() <= 0.2001
    assert np.array_equal(run_both(model, tmp_path, [7, 8])[0], run_both(model, tmp_path, [7, 8], ["--no-optimize"])[0])
    assert steps_of(tmp_path, "DequantizeLinear") == (2 if bias == "integers" else 1), "its unit is not that of sums"


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "Add", "Mul", "Transpose", "Sigmoid", "LeakyRelu", "Resize"])
def test_operators_without_weights(tmp_path, op):
    b = Builder(4)
    x = b.qdq("x", 0.03, 117)
    attributes = {"Transpose": {"perm": [0, 2, 3, 1]}, "LeakyRelu": {"alpha": 0.3}}.get(op, {})
    if "Pool" in op:
        attributes = {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}
    inputs = [x, b.qdq("x", 0.02, 120)] if op in ("Add", "Mul") else [x]
    if op == "Resize":
        inputs += ["", b.constant(np.array([1, 1, 2, 3], np.float32))]
        attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    fused = {"MaxPool", "Transpose", "Resize"}
    scale, zero = (0.03, 117) if op in fused else (0.07, 90)
    y = b.qdq(b.node(op, *inputs, **attributes), scale, zero)
    check(b.model([1, 4, 9, 8], y), tmp_path, [1, 4, 9, 8], scale)
    assert op in fused or "q8_" in kernels(tmp_path)
    assert steps_of(tmp_path, "DequantizeLinear") == 1, "bytes become numbers at the end only"


@pytest.mark.parametrize("scales", [(0.03, 0.03, 0.03), (0.03, 0.02, 0.07)])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("axis", [1, -2])
def test_bytes_are_joined(tmp_path, scales, twice, axis):
    """Of one scale, or of several; one part may stand there twice."""
    b = Builder(8)
    first, second, joined = scales
    x = b.qdq("x", 0.03, 117)
    parts = [b.qdq(b.node("Conv", x, b.weights((4, 4, 1, 1), 0.02)), scale, 117) for scale in (first, second)]
    y = b.qdq(b.node("Concat", parts[0], parts[1], parts[0] if twice else x, axis=axis), joined, 117)
    y = b.qdq(b.node("MaxPool", y, kernel_shape=[2, 2]), joined, 117)
    check(b.model([2, 4, 9, 8], y), tmp_path, [2, 4, 9, 8], joined)
    assert steps_of(tmp_path, "DequantizeLinear") == 1
    ours = run_both(b.model([2, 4, 9, 8], y), tmp_path, [2, 4, 9, 8])[0]
    level = [run_both(b.model([2, 4, 9, 8], y), tmp_path, [2, 4, 9, 8], args)[0]
             for args in (["--cpu", "baseline"], ["-t", "3"], ["--disable-pass", "blocked-layout"])]
    assert all(np.array_equal(ours, other) for other in level)


@pytest.mark.parametrize("scale", [0.01, 3e-6, 6e-33])
def test_a_sum_of_zeros_is_zero_however_fine_its_result(tmp_path, scale):
    """Zero points that are added up beforehand leave rounding errors, which must not become steps."""
    b = Builder(6)
    x = b.qdq("x", 0.5, 117)
    model = b.model([64], b.q(b.node("Add", x, x), scale, 128), T.UINT8)
    for args in ([], ["--no-optimize"], ["--cpu", "baseline"]):
        ours, _ = run_both(model, tmp_path, [64], args)
        steps = np.rint(np.random.default_rng(1).standard_normal(64).astype(np.float32) / np.float32(0.5))
        assert (steps == 0).sum() > 9
        assert np.array_equal(ours, np.clip(np.rint(steps / np.float64(np.float32(scale))) + 128, 0, 255)), args


@pytest.mark.parametrize("op,attributes", [("GlobalAveragePool", {}), ("AveragePool", {"kernel_shape": [2, 2]}),
                                           ("AveragePool", {"kernel_shape": [1, 1]})])
@pytest.mark.parametrize("scales", [(1e36, 8e-33), (73.7, 1.2e-38), (1e30, 6e-33)])
def test_an_average_of_zeros_is_zero_where_the_quotient_of_scales_leaves_f32(op, attributes, scales):
    s = np.float32
    x = np.full((5, 3, 2, 2), 42, np.uint8)
    x[1:3] = 43
    nodes = [h.make_node("DequantizeLinear", ["x", "sx", "zx"], ["f"]), h.make_node(op, ["f"], ["g"], **attributes),
             h.make_node("QuantizeLinear", ["g", "sy", "zy"], ["y"])]
    constants = {"sx": s(scales[0]), "zx": np.uint8(42), "sy": s(scales[1]), "zy": np.uint8(96)}
    model = every_way.model(nodes, {"x": x}, {"y": np.uint8}, constants)
    ours, = every_way.run(model, {"x": x})
    assert (ours[[0, 3, 4]] == 96).all() and (ours[1:3] == 255).all()


@pytest.mark.parametrize("bias", ["int32", "float"])
@pytest.mark.parametrize("op", ["Gemm", "Conv"])
def test_a_bias_is_not_lost_where_the_product_of_scales_leaves_f32(op, bias):
    """Sums of zero leave the bias; others are infinite, as in floats."""
    rng, s = np.random.default_rng(2), np.float32
    x = np.full((5, 9), 7, np.uint8)
    x[3, 2] = 9
    w = rng.integers(0, 255, (16, 9)).astype(np.uint8)
    if op == "Conv":
        x, w = x.reshape(5, 9, 1), w.reshape(16, 9, 1)
    steps = rng.integers(-900, 900, 16).astype(np.int32)
    nodes = [h.make_node("DequantizeLinear", ["x", "sx", "zx"], ["f"]), h.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"]),
             h.make_node("DequantizeLinear", ["b", "sb"], ["c"]),
             h.make_node(op, ["f", "v", "c"], ["y"], **({"transB": 1} if op == "Gemm" else {}))]
    constants = {"sx": s(406), "zx": np.uint8(7), "sw": s(1e36), "zw": np.uint8(100), "w": w, "sb": s(0.00126), "b": steps}
    if bias == "float":
        nodes.pop(2)
        constants["c"] = (steps * constants.pop("sb")).astype(np.float32)
        constants.pop("b")
    model = every_way.model(nodes, {"x": x}, {"y": np.float32}, constants)
    ours, = every_way.run(model, {"x": x})
    ours = ours.reshape(5, 16)
    np.testing.assert_allclose(ours[[0, 1, 2, 4]], np.tile(steps * s(0.00126), (4, 1)), rtol=1e-6)
    assert np.isinf(ours[3]).sum() > 8


def test_only_nearest_moves_bytes(tmp_path):
    b = Builder(4)
    y = b.node("Resize", b.qdq("x", 0.03, 117), "", b.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    y = b.qdq(y, 0.03, 117)
    ours, theirs = run_both(b.model([1, 4, 5, 6], y), tmp_path, [1, 4, 5, 6], ["--disable-pass", "fuse-qdq"])
    assert np.abs(ours - theirs).max() <= 0.0301
    assert np.array_equal(ours, run_both(b.model([1, 4, 5, 6], y), tmp_path, [1, 4, 5, 6])[0])
    assert steps_of(tmp_path, "DequantizeLinear") == 2


def test_what_is_read_as_floats_stays_floats(tmp_path):
    """An activation the range does not do, and a sum that is read twice, are not fused over."""
    b = Builder(5)
    x = b.qdq("x", 0.03, 117)
    relu = b.qdq(b.node("Relu", b.node("Conv", x, b.weights((4, 4, 1, 1), 0.02))), 0.11, 40)
    floats = b.node("Conv", relu, b.weights((4, 4, 1, 1), 0.02), b.constant(np.ones(4, np.float32)))
    y = b.node("Add", b.qdq(floats, 0.11, 90), floats)
    model = b.model([1, 4, 6, 6], y)
    ours, theirs = run_both(model, tmp_path, [1, 4, 6, 6])
    assert np.abs(ours - theirs).max() <= 0.111
    assert "Relu+QuantizeLinear" not in kernels(tmp_path)
    assert steps_of(tmp_path, "QuantizeLinear") == 3
    assert np.array_equal(ours, run_both(model, tmp_path, [1, 4, 6, 6], ["--no-optimize"])[0])


@pytest.mark.parametrize("bias", ["none", "integers", "floats"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("op", ["Conv", "depthwise", "MatMul"])
def test_products_whose_results_are_not_quantised(tmp_path, op, per_channel, bias):
    """Their sums are integers, too, scaled to floats."""
    if op == "MatMul" and bias != "none":
        pytest.skip("MatMul has no bias")
    b = Builder(9)
    x = b.qdq("x", 0.03, 117)
    shape = [2, 5, 16] if op == "MatMul" else [2, 16, 9, 8]
    weights = {"Conv": (12, 16, 3, 3), "depthwise": (16, 1, 3, 3), "MatMul": (16, 12)}[op]
    axis = 1 if op == "MatMul" else 0
    scale = b.rng.uniform(0.01, 0.03, weights[axis]).astype(np.float32) if per_channel else np.float32(0.02)
    inputs = [x, b.weights(weights, scale, axis if per_channel else None)]
    if bias == "integers":
        inputs.append(b.bias(weights[0], np.float32(0.03) * scale))
    elif bias == "floats":
        inputs.append(b.constant(b.rng.normal(0, 1, weights[0]).astype(np.float32)))
    attributes = {} if op == "MatMul" else {"pads": [1] * 4, "group": 16 if op == "depthwise" else 1}
    y = b.node("MatMul" if op == "MatMul" else "Conv", *inputs, **attributes)
    model = b.model(shape, y)
    ours, theirs = run_both(model, tmp_path, shape)
    assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()
    assert steps_of(tmp_path, "DequantizeLinear") == 0
    for args in (["--no-optimize"], ["--cpu", "baseline"], ["-t", "2"], ["--no-prepack"]):
        assert np.array_equal(ours, run_both(model, tmp_path, shape, args)[0]), args


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("op", ["Conv", "Gemm"])
def test_a_bias_of_floats_becomes_integers(tmp_path, op, per_channel):
    b = Builder(11)
    x = b.qdq("x", 0.03, 117)
    shape, weights = ([2, 8, 9, 8], (12, 8, 3, 3)) if op == "Conv" else ([7, 8], (12, 8))
    scale = b.rng.uniform(0.01, 0.03, 12).astype(np.float32) if per_channel else np.float32(0.02)
    attributes = {"pads": [1] * 4} if op == "Conv" else {"transB": 1}
    y = b.node(op, x, b.weights(weights, scale, 0 if per_channel else None),
               b.constant(b.rng.normal(0, 3, 12).astype(np.float32)), **attributes)
    y = b.qdq(y, 0.2, 120)
    check(b.model(shape, y), tmp_path, shape, 0.2)
    assert steps_of(tmp_path, "DequantizeLinear") == 1


def test_a_bias_of_floats_that_is_too_large_for_integers_stays(tmp_path):
    b = Builder(12)
    x = b.qdq("x", 1e-6, 117)
    y = b.node("Conv", x, b.weights((4, 4, 1, 1), 1e-6), b.constant(np.array([1, -2, 0.5, 3], np.float32)))
    model = b.model([1, 4, 6, 6], b.qdq(y, 0.05, 120))
    ours, _ = run_both(model, tmp_path, [1, 4, 6, 6])  # ONNX Runtime cuts the bias to 32 bits here
    assert np.allclose(ours, np.array([1, -2, 0.5, 3]).reshape(1, 4, 1, 1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("shape", [[7, 16], [2, 3, 7, 16]])
def test_matrix_products_with_a_scale_per_column(tmp_path, shape, axis):
    b = Builder(13)
    x = b.qdq("x", 0.03, 117)
    w = b.constant(b.rng.integers(-127, 128, (16, 12)).astype(np.int8))
    scale = b.rng.uniform(0.01, 0.03, 12).astype(np.float32)
    y = b.qdq(b.node("MatMul", x, b.dq(w, scale, np.zeros(12, np.int8), np.int8, axis=axis)), 0.11, 120)
    check(b.model(shape, y), tmp_path, shape, 0.11)
    assert steps_of(tmp_path, "DequantizeLinear") == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("scale", [1 / 256, 1 / 255, 0.0043, 0.5])
@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(tmp_path, axis, scale, dtype):
    """Of bytes it is ONNX Runtime's integer softmax, to the last bit, where a one has a whole number of steps. ONNX Runtime
    cuts off what is left of a step elsewhere; here the nodes' own rule holds."""
    b = Builder(14, dtype)
    low = 0 if dtype == np.uint8 else -128
    y = b.qdq(b.node("Softmax", b.qdq("x", 0.03, low + 117), axis=axis), scale, low)
    model = b.model([3, 37, 11], y)
    ours, theirs = run_both(model, tmp_path, [3, 37, 11])
    whole = scale not in (1 / 255, 0.0043)  # 1 / 255 is a little less than 255 steps in f32
    if not whole:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        with np.load(tmp_path / "in.npz") as f:
            theirs, = session.run(None, {"x": f["x"]})
    assert np.array_equal(ours, theirs)
    assert steps_of(tmp_path, "DequantizeLinear") == 1
    if whole:
        check(model, tmp_path, [3, 37, 11], scale)


@pytest.mark.parametrize("scale", [1 / 256, 1 / 255, 1 / 3, 0.0043, 0.01])
@pytest.mark.parametrize("n", [11, 700, 9000])
def test_softmax_is_what_its_nodes_give(n, scale):
    """Of rows that are long, too: of many numbers that are small the sum is not lost."""
    rng, s = np.random.default_rng(5), np.float32
    x = rng.integers(0, 256 if n < 100 else 40, (9, n)).astype(np.uint8)
    x[0] = 3  # all the same
    x[:3, 4] = 255
    nodes = [h.make_node("DequantizeLinear", ["x", "sx", "zx"], ["f"]), h.make_node("Softmax", ["f"], ["g"], axis=-1),
             h.make_node("QuantizeLinear", ["g", "sy", "zy"], ["y"])]
    constants = {"sx": s(0.06), "zx": np.uint8(117), "sy": s(scale), "zy": np.uint8(0)}
    model = every_way.model(nodes, {"x": x}, {"y": np.uint8}, constants)
    ours, = every_way.run(model, {"x": x})
    real = (x.astype(np.float64) - 117) * float(s(0.06))
    e = np.exp(real - real.max(-1, keepdims=True))
    want = np.clip(np.rint((e / e.sum(-1, keepdims=True)).astype(s) / s(scale)), 0, 255)
    np.testing.assert_array_equal(ours, want)
    assert ours.max() > 0


@pytest.mark.parametrize("number", [None, 0.0, 0.5, -1e9])
@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_bytes_are_padded(tmp_path, mode, number):
    b = Builder(15)
    more = [] if number is None else [b.constant(np.float32(number))]
    y = b.node("Pad", b.qdq("x", 0.03, 117), b.constant(np.array([0, 0, 1, 2, 0, 0, 2, 1])), *more, mode=mode)
    check(b.model([1, 4, 5, 6], b.qdq(y, 0.03, 117)), tmp_path, [1, 4, 5, 6], 0.03)
    assert steps_of(tmp_path, "DequantizeLinear") == 1


@pytest.mark.parametrize("scales", [(0.03, 0.03), (0.03, 0.02)])
def test_bytes_are_split(tmp_path, scales):
    """As bytes if all parts keep the scale."""
    b = Builder(16)
    b.nodes.append(h.make_node("Split", [b.qdq("x", 0.03, 117)], ["left", "right"], "split", axis=1))
    y = b.node("Add", *(b.qdq(v, scale, 117) for v, scale in zip(("left", "right"), scales)))
    check(b.model([2, 6, 5, 4], b.qdq(y, 0.05, 110)), tmp_path, [2, 6, 5, 4], 0.05)
    assert steps_of(tmp_path, "DequantizeLinear") == (1 if scales[0] == scales[1] else 2)


@pytest.mark.parametrize("between", ["Identity", "a scale that is computed", "a second reader that is the same"])
def test_what_is_an_integer_does_not_depend_on_other_passes(tmp_path, between):
    """The pass that finds integers runs without optimisation, too, and finds the same."""
    b = Builder(6)
    x = b.qdq("x", 0.03, 117)
    y = b.node("Conv", x, b.weights((4, 4, 3, 3), 0.02))
    if between == "Identity":
        y = b.qdq(b.node("Identity", y), 0.11, 40)
    elif between == "a scale that is computed":
        scale = b.node("Mul", b.constant(np.float32(0.055)), b.constant(np.float32(2)))
        zero = b.constant(np.uint8(40))
        y = b.node("DequantizeLinear", b.node("QuantizeLinear", y, scale, zero), scale, zero)
    else:
        y = b.node("Add", b.qdq(y, 0.11, 40), b.node("Relu", b.qdq(y, 0.11, 40)))
    model = b.model([1, 4, 60, 60], y)
    ours, theirs = run_both(model, tmp_path, [1, 4, 60, 60])
    assert np.abs(ours - theirs).max() <= 0.221
    assert re.search(r"\b[ui]8_", kernels(tmp_path))
    assert np.array_equal(ours, run_both(model, tmp_path, [1, 4, 60, 60], ["--no-optimize"])[0])


def test_the_pass_can_be_left_out(tmp_path):
    b = Builder(6)
    x = b.qdq("x", 0.03, 117)
    y = b.qdq(b.node("Conv", x, b.weights((4, 4, 1, 1), 0.02)), 0.11, 40)
    model = b.model([1, 4, 6, 6], y)
    ours, theirs = run_both(model, tmp_path, [1, 4, 6, 6], ["--disable-pass", "fuse-qdq"])
    assert np.abs(ours - theirs).max() <= 0.111
