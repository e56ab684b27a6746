# SPDX-License-Identifier: Apache-2.0
"""Models that ONNX Runtime's quantize_dynamic makes: bytes whose scale is found in each run. Products and convolutions
of integers with what scales them are one step each, with the bits of the nodes of the file at every CPU level, and
agree with ONNX Runtime."""

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
from onnxruntime.quantization import QuantType, quantize_dynamic

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

LEVELS = ("baseline", "avx2", "avxvnni", "avx512", "vbmi", "vnni", "amx", "neon", "dotprod", "i8mm")
PASS = "fuse-integer-products"


class Net:
    """A graph of f32 over an input x; methods append and return value names."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, array):
        self.count += 1
        self.constants.append(nh.from_array(np.asarray(array), f"c{self.count}"))
        return f"c{self.count}"

    def random(self, *shape, scale=1.0):
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        self.count += 1
        self.nodes.append(h.make_node(op, inputs, [f"v{self.count}"], f"{op}_{self.count}", **attributes))
        return f"v{self.count}"

    def dense(self, x, n_in, n_out):
        product = self.node("MatMul", x, self.random(n_in, n_out, scale=n_in**-0.5))
        return self.node("Add", self.random(n_out), product)

    def save(self, path, y, shape):
        graph = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, shape)],
                             [h.make_tensor_value_info(y, T.FLOAT, None)], self.constants)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def transformer(path):
    net, width, heads = Net(1), 48, 4

    def split(x, order):
        shaped = net.node("Reshape", x, net.constant(np.array([0, 0, heads, width // heads])))
        return net.node("Transpose", shaped, perm=order)

    q, k, v = (net.dense("x", width, width) for _ in range(3))
    scores = net.node("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
    scores = net.node("Div", scores, net.constant(np.float32((width // heads) ** 0.5)))
    mixed = net.node("MatMul", net.node("Softmax", scores, axis=-1), split(v, [0, 2, 1, 3]))
    mixed = net.node("Reshape", net.node("Transpose", mixed, perm=[0, 2, 1, 3]), net.constant(np.array([0, 0, width])))
    x = net.node("Add", net.dense(mixed, width, width), "x")
    x = net.node("LayerNormalization", x, net.random(width), net.random(width))
    wide = net.dense(x, width, 4 * width)
    erf = net.node("Erf", net.node("Div", wide, net.constant(np.float32(2**0.5))))
    gelu = net.node("Mul", wide, net.node("Add", erf, net.constant(np.float32(1))))
    gelu = net.node("Mul", gelu, net.constant(np.float32(0.5)))
    net.save(path, net.node("Add", net.dense(gelu, 4 * width, width), x), [2, 19, width])
    return [2, 19, width], "MatMulInteger", 6


def convolutions(path):
    net = Net(2)
    x = net.node("Conv", "x", net.random(20, 3, 3, 3, scale=0.2), net.random(20), pads=[1, 1, 1, 1], strides=[2, 2])
    x = net.node("Conv", net.node("Relu", x), net.random(20, 1, 3, 3, scale=0.3), group=20, pads=[1, 1, 1, 1])
    x = net.node("Conv", net.node("Relu", x), net.random(33, 20, 1, 1, scale=0.2), net.random(33))
    x = net.node("Flatten", net.node("GlobalAveragePool", net.node("Relu", x)))
    x = net.node("Gemm", x, net.random(10, 33, scale=0.2), net.random(10), transB=1)
    net.save(path, x, [2, 3, 23, 20])
    return [2, 3, 23, 20], "ConvInteger", 3


def run(folder, args, level=None):
    env = {**os.environ, "SONDE_CPU": level} if level else None
    done = subprocess.run([PROGRAM, "run", folder / "m.onnx", "-i", folder / "in.npz", "-o", folder / "out.npz", *args],
                          capture_output=True, text=True, timeout=PATIENCE, env=env)
    if done.returncode == 1 and level not in (None, "baseline") and "instruction set" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz") as f:
        return f[f.files[0]]


def steps(folder, *args):
    """The types of the steps that are left."""
    done = subprocess.run([PROGRAM, "inspect", folder / "m.onnx", "--forms", *args], capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    return done.stdout


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("build", [transformer, convolutions])
def test_what_onnxruntime_quantises(tmp_path, build, weights, per_channel):
    shape, op, products = build(tmp_path / "f32.onnx")
    quantize_dynamic(tmp_path / "f32.onnx", tmp_path / "m.onnx", weight_type=weights, per_channel=per_channel,
                     op_types_to_quantize=["MatMul", "Gemm", "Conv"])
    model = onnx.load(tmp_path / "m.onnx")
    assert [n.op_type for n in model.graph.node].count(op) >= products
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    ours = run(tmp_path, [])
    for level in (None, *LEVELS):
        with_pass = run(tmp_path, [], level)
        if with_pass is None:  # not a level of this machine; "baseline" always is
            continue
        for args in (["--disable-pass", PASS], ["--no-prepack"], ["-t", "3"]):
            assert np.array_equal(with_pass, run(tmp_path, args, level)), (level, args)
    assert len(re.findall(rf"{op}\+Cast\+Mul", steps(tmp_path))) >= products
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"x": x})[0]
    # One step of a quantised number, which rounding in f32 decides, changes results by a few thousandths.
    assert np.abs(ours - theirs).max() < 0.02 * np.abs(theirs).max()
