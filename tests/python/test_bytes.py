# SPDX-License-Identifier: Apache-2.0
"""Models whose operators compute with 8-bit integers themselves (QLinearConv and its kind): the same bits with and
without passes, packed weights and threads, at every CPU level; and what ONNX Runtime gives, to one step."""

import json
import os
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import exact_onnxruntime
from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

WAYS = (["--no-optimize"], ["--disable-pass", "blocked-layout"], ["--no-prepack"], ["-t", "3"])
LEVELS = ("baseline", "avx2", "avxvnni", "avx512", "vbmi", "vnni", "amx", "neon", "dotprod", "i8mm")


class Net:
    """A graph of quantised operators over one input of bytes; methods append and return value names."""

    def __init__(self, seed, shape, dtype):
        self.rng = np.random.default_rng(seed)
        self.shape, self.dtype, self.nodes, self.constants, self.count = shape, dtype, [], [], 0

    def constant(self, array):
        self.count += 1
        self.constants.append(nh.from_array(np.asarray(array), f"c{self.count}"))
        return f"c{self.count}"

    def params(self, scale, zero):
        return [self.constant(np.float32(scale)), self.constant(np.asarray(zero, self.dtype))]

    def node(self, op, inputs, domain="", **attributes):
        self.count += 1
        self.nodes.append(h.make_node(op, inputs, [f"v{self.count}"], f"{op}_{self.count}", domain=domain, **attributes))
        return f"v{self.count}"

    def zero(self):
        return int(self.rng.integers(100, 150)) - (128 if self.dtype == np.int8 else 0)

    def real(self, x, q):
        return self.node("DequantizeLinear", [x, *self.params(*q)])

    def bytes(self, x, q):
        return self.node("QuantizeLinear", [x, *self.params(*q)])

    def scalar(self, v):
        return self.constant(np.float32(v))

    def conv(self, x, q, c, oc, kernel, group=1, w_dtype=np.int8, w_zero=0, **attributes):
        """Scale and zero point of the result, and its name."""
        low, high = (0, 256) if w_dtype == np.uint8 else (-128, 128)
        w = self.rng.integers(low, high, (oc, c // group, *kernel)).astype(w_dtype)
        scales = self.rng.uniform(0.5, 1.5, oc).astype(np.float32) * 0.01
        terms = c // group * int(np.prod(kernel))
        result = (float(q[0]) * 0.01 * 74 * 74 * np.sqrt(terms) / 60, self.zero())
        inputs = [x, *self.params(*q), self.constant(w), self.constant(scales),
                  self.constant(np.full(oc, w_zero, w_dtype)), *self.params(*result),
                  self.constant(self.rng.integers(-4000, 4000, oc).astype(np.int32))]
        return result, self.node("QLinearConv", inputs, group=group, **attributes)

    def contrib(self, op, operands, **attributes):
        result = (0.04, self.zero())
        inputs = [i for name, q in operands for i in (name, *self.params(*q))] + self.params(*result)
        return result, self.node(op, inputs, "com.microsoft", **attributes)

    def model(self, outputs):
        t = T.UINT8 if self.dtype == np.uint8 else T.INT8
        graph = h.make_graph(self.nodes, "bytes", [h.make_tensor_value_info("x", t, self.shape)],
                             [h.make_tensor_value_info(o, t, None) for o in outputs], self.constants)
        opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
        return h.make_model(graph, opset_imports=opsets, ir_version=8)

    def input(self):
        info = np.iinfo(self.dtype)
        return self.rng.integers(info.min, info.max + 1, self.shape).astype(self.dtype)


def run(folder, args, level=None):
    env = {**os.environ, "SONDE_CPU": level} if level else None
    done = subprocess.run([PROGRAM, "run", folder / "m.onnx", "-i", folder / "in.npz", "-o", folder / "out.npz", *args],
                          capture_output=True, text=True, timeout=PATIENCE, env=env)
    if done.returncode == 1 and level not in (None, "baseline") and "instruction set" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz") as f:
        return [f[k] for k in f.files]


def save(net, outputs, folder):
    """The model, and the input that lies beside it."""
    model = net.model(outputs)
    onnx.save(model, folder / "m.onnx")
    x = net.input()
    np.savez(folder / "in.npz", x=x)
    return model, x


def check_against_onnxruntime(model, x, ours, outputs, steps):
    session = exact_onnxruntime.plain_session(model.SerializeToString())
    for a, b in zip(ours, session.run(outputs, {"x": x})):
        assert np.abs(a.astype(int) - b.astype(int)).max() <= steps
        assert len(np.unique(a)) > 4, "the case shows nothing"


def check(net, outputs, folder, steps=1):
    """`steps`: by how much ONNX Runtime may differ. Its own rule of rounding gives one step in an operator; those behind
    it see a step as an input. Between our own ways and CPUs nothing may differ."""
    model, x = save(net, outputs, folder)
    ours = run(folder, [])
    for args in WAYS:
        for a, b in zip(ours, run(folder, args)):
            assert np.array_equal(a, b), (args, np.argwhere(a != b)[:3])
    for level in LEVELS:
        theirs = run(folder, [], level)
        for a, b in zip(ours, theirs or []):  # none: not a level of this machine; "baseline" always is
            assert np.array_equal(a, b), (level, np.argwhere(a != b)[:3])
    check_against_onnxruntime(model, x, ours, outputs, steps)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("kind", ["1-D", "3-D", "grouped", "narrow groups", "depthwise", "multiplier", "odd", "strided"])
def test_convolutions(tmp_path, kind, dtype):
    shape, oc, kernel, group, more = {
        "1-D": ([2, 10, 23], 20, [3], 1, {"pads": [1, 1], "dilations": [2]}),
        "3-D": ([1, 6, 5, 6, 7], 9, [2, 3, 3], 1, {"pads": [1] * 6}),
        "grouped": ([1, 32, 9, 9], 48, [3, 3], 2, {"pads": [1] * 4}),
        "narrow groups": ([1, 24, 7, 7], 24, [3, 3], 8, {"pads": [1] * 4}),
        "depthwise": ([2, 70, 11, 9], 70, [3, 3], 70, {"pads": [1] * 4, "strides": [2, 2]}),
        "multiplier": ([1, 6, 9, 9], 18, [3, 3], 6, {"pads": [1] * 4}),
        "odd": ([1, 7, 8, 8], 5, [5, 2], 1, {"pads": [2, 0, 1, 1], "strides": [1, 3], "dilations": [1, 2]}),
        "strided": ([3, 64, 10, 10], 100, [1, 1], 1, {"strides": [2, 2]}),
    }[kind]
    net = Net(1, shape, dtype)
    _, y = net.conv("x", (0.02, net.zero()), shape[1], oc, kernel, group, **more)
    check(net, [y], tmp_path)


@pytest.mark.parametrize("w_dtype,w_zero", [(np.uint8, 128), (np.uint8, 117), (np.int8, 5)])
def test_zero_points_of_weights(tmp_path, w_dtype, w_zero):
    net = Net(2, [1, 12, 7, 7], np.uint8)
    q, y = net.conv("x", (0.02, 120), 12, 20, [3, 3], w_dtype=w_dtype, w_zero=w_zero, pads=[1] * 4)
    _, y = net.conv(y, q, 20, 20, [3, 3], group=20, w_dtype=w_dtype, w_zero=w_zero, pads=[1] * 4)
    check(net, [y], tmp_path, 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_network_keeps_its_channels_last(tmp_path, dtype):
    """Everything that has a layout between convolutions, with an output in the middle."""
    net = Net(3, [2, 3, 17, 15], dtype)
    q, a = net.conv("x", (0.02, net.zero()), 3, 18, [3, 3], pads=[1] * 4, strides=[2, 2])
    p = net.node("MaxPool", [a], kernel_shape=[3, 3], pads=[1, 0, 1, 2])
    qb, b = net.conv(p, q, 18, 18, [3, 3], group=18, pads=[1] * 4)
    qs, s = net.contrib("QLinearSigmoid", [(b, qb)])
    qm, m = net.contrib("QLinearMul", [(b, qb), (s, qs)])
    qp, pool = net.contrib("QLinearGlobalAveragePool", [(m, qm)], channels_last=0)
    qg, gate = net.conv(pool, qp, 18, 18, [1, 1])
    qx, gated = net.contrib("QLinearMul", [(m, qm), (gate, qg)])
    qr, r = net.contrib("QLinearAdd", [(gated, qx), (b, qb)])
    ql, low = net.contrib("QLinearLeakyRelu", [(r, qr)], alpha=0.2)
    c = net.node("Concat", [low, r], axis=1)
    qa, avg = net.contrib("QLinearAveragePool", [(c, ql)], kernel_shape=[2, 2])
    qz, z = net.conv(avg, qa, 36, 10, [1, 1])
    check(net, [r, z], tmp_path, 3)


def operators(folder, *args):
    """How many of each are left, after passes."""
    done = subprocess.run([PROGRAM, "inspect", folder / "m.onnx", "--optimized", "--json", "-", *args],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return {row["op"]: row["count"] for row in json.loads(done.stdout)["operators"]}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("kind", ["1-D", "2-D", "3-D", "wide", "depthwise", "one pixel", "large scales"])
@pytest.mark.parametrize("second", [False, True])
def test_residuals_are_added_where_results_are_made(tmp_path, kind, dtype, second):
    shape, group, kernel = {
        "1-D": ([2, 24, 19], 1, [3]),
        "2-D": ([1, 70, 7, 9], 1, [3, 3]),
        "3-D": ([1, 18, 3, 4, 5], 1, [1, 1, 3]),
        "wide": ([2, 200, 5, 5], 1, [1, 1]),
        "depthwise": ([1, 72, 9, 9], 72, [3, 3]),
        "one pixel": ([3, 40, 1, 1], 1, [1, 1]),
        "large scales": ([1, 20, 8, 8], 1, [1, 1]),
    }[kind]
    net, c = Net(6, shape, dtype), shape[1]
    pads = [k // 2 for k in kernel] * 2
    qx = (300.0 if kind == "large scales" else 0.02, net.zero())
    qz, z = net.conv("x", qx, c, c, kernel, group, pads=pads)
    p = net.node("MaxPool", [z], kernel_shape=kernel, pads=pads)
    qy, y = net.conv(p, qz, c, c, kernel, group, pads=pads)
    if kind == "large scales":  # those of the second convolution are above 1
        net.nodes[-1].input[6] = net.constant(np.float32(qy[0] / 300))
        qy = (qy[0] / 300, qy[1])
    parts = [(p, qz), (y, qy)] if second else [(y, qy), (p, qz)]
    qs, s = net.contrib("QLinearAdd", parts)
    net.nodes[-1].input[6] = net.constant(np.float32(2 * max(qz[0], qy[0])))
    check(net, [s], tmp_path, 3)
    assert "QLinearAdd" not in operators(tmp_path)
    assert operators(tmp_path, "--disable-pass", "fuse-byte-sums")["QLinearAdd"] == 1


def test_sums_that_are_no_residuals_stay(tmp_path):
    """Broadcast, read by others, an output, with a scale of its own, or twice the same."""
    net = Net(7, [1, 12, 6, 6], np.uint8)
    q = (0.02, 120)
    qa, a = net.conv("x", q, 12, 12, [3, 3], pads=[1] * 4)
    qb, b = net.conv(a, qa, 12, 12, [3, 3], pads=[1] * 4)
    made = [net.contrib("QLinearAdd", [(a, qa), (b, qb)])[1]]  # both have other readers
    qc, c = net.conv(a, qa, 12, 12, [1, 1])
    made.append(net.contrib("QLinearAdd", [(c, (qc[0] * 1.5, qc[1])), (a, qa)])[1])
    qd, d = net.conv(a, qa, 12, 12, [1, 1])
    made.append(net.contrib("QLinearAdd", [(d, qd), (net.constant(np.full((12, 1, 1), 7, np.uint8)), (0.1, 3))])[1])
    qe, e = net.conv(a, qa, 12, 12, [1, 1])
    made.append(net.contrib("QLinearAdd", [(e, qe), (e, qe)])[1])
    check(net, [*made, b], tmp_path, 3)
    assert operators(tmp_path)["QLinearAdd"] == 4


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("shape", [[2, 37, 9], [3, 130, 7, 7], [4, 3, 20, 30], [1, 24, 100, 61], [2, 70, 4, 5, 6]])
def test_averages_of_whole_images_are_of_exact_sums(tmp_path, shape, dtype):
    """Of a graph input, which is plain, and behind a convolution, where channels are last."""
    net = Net(4, shape, dtype)
    (x_scale, x_zero), (y_scale, y_zero) = (0.0173, net.zero()), (0.0041, net.zero())
    operands = [*net.params(x_scale, x_zero), *net.params(y_scale, y_zero)]
    y = net.node("QLinearGlobalAveragePool", ["x", *operands], "com.microsoft", channels_last=0)
    q, c = net.conv("x", (x_scale, x_zero), shape[1], shape[1], [1] * (len(shape) - 2))
    last = net.node("QLinearGlobalAveragePool", [c, *net.params(*q), *net.params(0.01, y_zero)], "com.microsoft",
                    channels_last=0)
    check(net, [y, c, last], tmp_path, 2)
    with np.load(tmp_path / "in.npz") as f:
        x = f["x"]
    got, conv, after = run(tmp_path, [])
    for image, made, (s, z), (t, u) in [(x, got, (x_scale, x_zero), (y_scale, y_zero)),
                                        (conv, after, q, (0.01, y_zero))]:
        axes = tuple(range(2, len(shape)))
        sums = (image.astype(np.int64) - z).sum(axes, keepdims=True)
        steps = sums.astype(np.float32) * (np.float32(s) / (np.float32(t) * np.float32(np.prod(shape[2:]))))
        info = np.iinfo(dtype)
        assert np.array_equal(made, np.clip(np.rint(steps) + u, info.min, info.max))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("shape", [[2, 37, 9], [1, 70, 9, 8], [8, 3, 12, 13], [2, 18, 5, 6, 7]])
def test_averages_of_windows_are_those_of_onnxruntime(tmp_path, shape, dtype):
    """Equal scales, so that many results lie half way between two steps. The last window is the whole image."""
    net, spatial = Net(5, shape, dtype), len(shape) - 2
    scales = [net.constant(np.float32(0.0173)), net.constant(np.asarray(net.zero(), dtype))]
    other = [net.constant(np.float32(0.0173)), net.constant(np.asarray(net.zero() | 1, dtype))]
    ways = [{"kernel_shape": [2] * spatial, "strides": [2] * spatial},
            {"kernel_shape": [3] * spatial, "pads": [1] * 2 * spatial},
            {"kernel_shape": [3] * spatial, "pads": [2] * spatial + [1] * spatial, "count_include_pad": 1,
             "strides": [2] * spatial},
            {"kernel_shape": shape[2:]}]
    made = [net.node("QLinearAveragePool", ["x", *scales, *result], "com.microsoft", **way)
            for way in ways[:3] for result in (scales, other)]
    fine = [net.constant(np.float32(0.0173 / 4)), other[1]]
    rows = net.node("Reshape", ["x", net.constant(np.array([-1, 1, *shape[2:]]))])
    made.append(net.node("QLinearAveragePool", [rows, *scales, *fine], "com.microsoft", **ways[3]))
    check(net, made, tmp_path, 0)


def fused(a, b, c):
    """a · b + c, rounded once."""
    return (np.longdouble(a) * np.longdouble(b) + np.longdouble(c)).astype(np.float32)


def rule_of_sums(a, qa, b, qb, qy):
    """ONNX Runtime's: scales in units of the result's, and zero points in one constant. b has fewer elements."""
    f32 = np.float32
    ra, rb = f32(qa[0]) / f32(qy[0]), f32(qb[0]) / f32(qy[0])
    offset = f32(qy[1]) - fused(ra, f32(qa[1]), rb * f32(qb[1]))
    return np.rint(fused(a.astype(f32), ra, fused(b.astype(f32), rb, offset)))


def rule_of_products(a, qa, b, qb, qy):
    f32 = np.float32
    both = (a.astype(f32) - f32(qa[1])) * (b.astype(f32) - f32(qb[1]))
    return np.rint(both * (f32(qa[0]) * f32(qb[0]) / f32(qy[0])) + f32(qy[1]))


SHAPES = {  # of an image, and of what is broadcast to it
    "1-D": ([2, 37, 9], [[2, 37, 1], [37, 1], [1, 1, 1], [9], [2, 1, 1], [1, 37, 9]]),
    "2-D": ([2, 70, 7, 9], [[2, 70, 1, 1], [1, 70, 1, 1], [1, 1, 1, 1], [2, 1, 7, 9], [70, 7, 1], [9]]),
    "narrow": ([2, 5, 41, 20], [[2, 5, 1, 1], [1, 1, 41, 20]]),
    "wide": ([1, 1100, 3, 5], [[1, 1100, 1, 1], [1, 1, 3, 5]]),
    "3-D": ([2, 18, 3, 4, 5], [[2, 18, 1, 1, 1], [2, 18, 3, 1, 5], [2, 1, 1, 4, 1]]),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("kind", SHAPES)
def test_broadcasts(tmp_path, kind, op, dtype):
    """Every way in which the second operand may repeat, plain and with channels last, on either side."""
    shape, others = SHAPES[kind]
    net, info = Net(8, shape, dtype), np.iinfo(dtype)
    q = (0.0173, net.zero())
    _, image = net.conv("x", q, shape[1], shape[1], [1] * (len(shape) - 2), group=shape[1])
    cases = []
    for i, other in enumerate(others):
        b = net.rng.integers(info.min, info.max + 1, other).astype(dtype)
        # A product that is not constant, so that it may lie as the image does.
        single = net.node("ReduceMax", ["x"], axes=list(range(len(shape))), keepdims=1)
        b_name = net.node("Min", [net.constant(b), net.node("Max", [net.constant(b), single])])
        qa, qb = [((0.037, 0.25, 0.01)[(i + k) % 3], net.zero()) for k in range(2)]
        qy = (0.75 * (qa[0] + qb[0]) if op == "QLinearAdd" else 64 * qa[0] * qb[0], net.zero())
        for name in ("x", image):
            for first, second in (((name, qa), (b_name, qb)), ((b_name, qb), (name, qa))):
                inputs = [v for n, p in (first, second) for v in (n, *net.params(*p))] + net.params(*qy)
                cases.append((name, b, qa, qb, qy, net.node(op, inputs, "com.microsoft")))
    check(net, [image, *(case[-1] for case in cases)], tmp_path)
    with np.load(tmp_path / "in.npz") as f:
        x = f["x"]
    results = run(tmp_path, [])
    for (name, b, qa, qb, qy, _), got in zip(cases, results[1:]):
        rule = rule_of_sums if op == "QLinearAdd" else rule_of_products
        v = rule(x if name == "x" else results[0], qa, b, qb, qy)
        assert np.array_equal(got, np.clip(v, info.min, info.max)), (name, b.shape)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("scales", [(0.037, 0.25, 0.11), (0.02, 0.01, 0.02), (0.25, 0.125, 0.5), (0.01, 0.03, 0.0005)])
def test_pairs_of_bytes_are_those_of_onnxruntime(tmp_path, scales, op, dtype):
    """All of them, also where the result lies half way between two steps or outside of the range."""
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    net = Net(10, [256, 256], dtype)
    other = net.node("Transpose", ["x"])
    (sa, sb, sy), zeros = scales, [int(v) for v in net.rng.integers(info.min, info.max + 1, 3)]
    y = net.node(op, ["x", *net.params(sa, zeros[0]), other, *net.params(sb, zeros[1]), *net.params(sy, zeros[2])],
                 "com.microsoft")
    net.input = lambda: np.repeat(every[:, None], 256, 1)
    check(net, [y], tmp_path, 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("shape", [[2, 3, 40, 37], [1, 4, 130, 129], [3, 1, 9, 9], [2, 70, 29], [1, 300, 7, 7],
                                   [1, 17, 3, 20, 21]])
def test_numbers_become_bytes_with_channels_last(tmp_path, shape, dtype):
    """QuantizeLinear in front of a convolution, and DequantizeLinear behind one, need no step that turns the image."""
    net, info = Net(9, shape, dtype), np.iinfo(dtype)
    q, c = (0.031, net.zero()), shape[1]
    x = net.rng.normal(0, 2, shape).astype(np.float32)
    x.flat[:6] = np.nan, np.inf, -np.inf, 1e30, -1e-40, 0.0155  # the last one lies half way between two steps
    bytes_in = net.node("QuantizeLinear", ["x", *net.params(*q)])
    qc, conv = net.conv(bytes_in, q, c, c, [1] * (len(shape) - 2))
    numbers = net.node("DequantizeLinear", [conv, *net.params(*qc)])
    graph = h.make_graph(net.nodes, "numbers", [h.make_tensor_value_info("x", T.FLOAT, shape)],
                         [h.make_tensor_value_info(o, T.FLOAT if o == numbers else T.UINT8 if dtype == np.uint8
                                                   else T.INT8, None) for o in (bytes_in, conv, numbers)], net.constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=x)
    ours = run(tmp_path, [])
    steps = np.rint(x / np.float32(q[0]))
    wanted = np.clip(np.where(np.isnan(steps), 0, steps) + q[1], info.min, info.max).astype(dtype)
    assert np.array_equal(ours[0], wanted)
    assert np.array_equal(ours[2], (ours[1].astype(np.float32) - np.float32(qc[1])) * np.float32(qc[0]))
    for args, level in [*((way, None) for way in WAYS), *(([], level) for level in LEVELS)]:
        for a, b in zip(ours, run(tmp_path, args, level) or []):
            assert np.array_equal(a, b), (args, level)
    forms = subprocess.run([PROGRAM, "inspect", "--forms", tmp_path / "m.onnx"], capture_output=True, text=True,
                           timeout=PATIENCE)
    assert forms.returncode == 0, forms.stderr
    # The graph's outputs of bytes are plain: one step each.
    assert forms.stdout.count("[Reorder]") == 2 and "channels last" in forms.stdout, forms.stdout


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("c", [3, 64, 70])
def test_resizing_to_the_nearest_keeps_channels_last(tmp_path, c, dtype):
    net = Net(10, [2, c, 9, 7], dtype)
    q, a = net.conv("x", (0.02, net.zero()), c, c, [1, 1])
    sizes, none = net.constant(np.array([2, c, 13, 20])), net.constant(np.array([], np.float32))
    twice = net.constant(np.array([1, 1, 2, 2], np.float32))
    r = net.node("Resize", [a, none, twice], mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
    s = net.node("Resize", [a, none, none, sizes], mode="nearest")
    outputs = [net.conv(v, q, c, 20, [1, 1])[1] for v in (r, s)]
    check(net, outputs, tmp_path, 2)
    forms = subprocess.run([PROGRAM, "inspect", "--forms", tmp_path / "m.onnx"], capture_output=True, text=True,
                           timeout=PATIENCE)
    assert forms.stdout.count("[Reorder]") == 3, forms.stdout  # of the graph's input and outputs


# ---- functions of one byte: from x with scale and zero point q to a result of the same kind


def silu(net, x, q):
    qs, s = net.contrib("QLinearSigmoid", [(x, q)])
    return net.contrib("QLinearMul", [(x, q), (s, qs)])


def silu_in_reals(net, x, q):
    qs, qy = (1 / 256, 0 if net.dtype == np.uint8 else -128), (0.01, net.zero())
    s = net.real(net.bytes(net.node("Sigmoid", [net.real(x, q)]), qs), qs)
    return qy, net.bytes(net.node("Mul", [net.real(x, q), s]), qy)


def leaky_chain(net, x, q):
    qa, a = net.contrib("QLinearLeakyRelu", [(x, q)], alpha=0.3)
    qy = (0.02, net.zero())
    return qy, net.bytes(net.node("LeakyRelu", [net.node("Neg", [net.real(a, qa)])], alpha=0.1), qy)


def hard_swish(net, x, q):
    qy = (0.02, net.zero())
    return qy, net.bytes(net.node("HardSwish", [net.real(x, q)]), qy)


def hard_swish_written_out(net, x, q):
    qy, d = (0.02, net.zero()), net.real(x, q)
    gate = net.node("Clip", [net.node("Add", [d, net.scalar(3)]), net.scalar(0), net.scalar(6)])
    return qy, net.bytes(net.node("Div", [net.node("Mul", [d, gate]), net.scalar(6)]), qy)


def gelu(net, x, q):
    qy, d = (0.02, net.zero()), net.real(x, q)
    e = net.node("Erf", [net.node("Div", [d, net.scalar(np.sqrt(2))])])
    both = net.node("Mul", [d, net.node("Add", [e, net.scalar(1)])])
    return qy, net.bytes(net.node("Mul", [both, net.scalar(0.5)]), qy)


def gelu_tanh(net, x, q):
    qy, d = (0.02, net.zero()), net.real(x, q)
    cube = net.node("Mul", [net.node("Pow", [d, net.scalar(3)]), net.scalar(0.044715)])
    t = net.node("Tanh", [net.node("Mul", [net.node("Add", [d, cube]), net.scalar(np.sqrt(2 / np.pi))])])
    half = net.node("Mul", [d, net.scalar(0.5)])
    return qy, net.bytes(net.node("Mul", [half, net.node("Add", [t, net.scalar(1)])]), qy)


FUNCTIONS = [silu, silu_in_reals, leaky_chain, hard_swish, hard_swish_written_out, gelu, gelu_tanh]
# fuse-activations writes some of these with one function of its own, which rounds in other places than the nodes do.
WITHOUT_TABLES = ["--disable-pass", "byte-tables", "--disable-pass", "fuse-activations"]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("place", ["plain", "in an image"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_one_byte_are_tables(tmp_path, function, place, dtype):
    """The same bits as the nodes have that the table stands for, at every CPU level."""
    net = Net(4, [7, 211] if place == "plain" else [2, 3, 17, 15], dtype)
    q, x = (0.03, net.zero()), "x"
    if place == "in an image":
        q, x = net.conv(x, q, 3, 18, [3, 3], pads=[1] * 4)
        q = (0.03, q[1])
    q, y = function(net, x, q)
    outputs = [y]
    if place == "in an image":
        outputs = [net.conv(y, q, 18, 10, [1, 1])[1]]
    model, data = save(net, outputs, tmp_path)
    for level in (None, *LEVELS):
        ours = run(tmp_path, [], level)
        if ours is None:  # not a level of this machine
            continue
        for args in (WITHOUT_TABLES, ["-t", "3"], ["--disable-pass", "blocked-layout"]):
            for a, b in zip(ours, run(tmp_path, args, level)):
                assert np.array_equal(a, b), (level, args, np.argwhere(a != b)[:3])
    check_against_onnxruntime(model, data, run(tmp_path, []), outputs, 1 if place == "plain" else 3)
    done = subprocess.run([PROGRAM, "inspect", tmp_path / "m.onnx", "--forms"], capture_output=True, text=True, timeout=PATIENCE)
    tables = [line for line in done.stdout.splitlines() if "8[256] ->" in line]
    assert len(tables) == 1, done.stdout
    assert tables[0].count("channels last") == (0 if place == "plain" else 2)
