# SPDX-License-Identifier: Apache-2.0
"""Weights of 8-bit floats and 4-bit integers, dequantised or cast in front of a product: right, and computed once when
the model is loaded, not in every run."""

import os
import subprocess

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

TYPES = {"e4m3fn": (T.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn), "e4m3fnuz": (T.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
         "e5m2": (T.FLOAT8E5M2, ml_dtypes.float8_e5m2), "e5m2fnuz": (T.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
         "int4": (T.INT4, ml_dtypes.int4), "uint4": (T.UINT4, ml_dtypes.uint4)}
SCALES = {"one scale": (None, 0), "a scale per row": (0, 0), "a scale per column": (1, 0), "blocks": (0, 8)}


def stored(name, kind, values):
    """Two 4-bit integers lie in a byte, the first one in the low bits."""
    t = onnx.TensorProto(name=name, data_type=TYPES[kind][0], dims=values.shape)
    if "int4" in kind:
        nibbles = np.resize(values.astype(np.int8).ravel() & 15, (values.size + 1) // 2 * 2)
        t.raw_data = (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()
    else:
        t.raw_data = values.tobytes()
    return t


def random_values(rng, kind, shape):
    low, high = {"int4": (-8, 8), "uint4": (0, 16)}.get(kind, (-240, 241))
    return (rng.integers(low, high, shape) / (1 if "int4" in kind else 64)).astype(np.float32).astype(TYPES[kind][1])


def spread(scale, axis, block, w):
    if axis is None:
        return scale
    if block:
        return np.repeat(scale, block, axis)
    return scale.reshape([-1 if i == axis else 1 for i in range(w.ndim)])


def model_of(op, kind, how, dtype):
    """The model, the shape of its input, and what it computes."""
    rng = np.random.default_rng(3)
    shape, x_shape = ([12, 8, 3, 3], [2, 8, 7, 6]) if op == "Conv" else ([32, 24], [5, 24 if op == "Gemm" else 32])
    w = random_values(rng, kind, shape)
    real = w.astype(np.float32)
    constants, nodes = [stored("w", kind, w)], []
    if how == "Cast":
        nodes.append(h.make_node("Cast", ["w"], ["real"], to=dtype))
    else:
        axis, block = SCALES[how]
        count = () if axis is None else (shape[axis],) if not block else (shape[0] // block, *shape[1:])
        scale = rng.uniform(0.01, 0.1, count).astype(np.float16).astype(np.float32)
        inputs = ["w", "scale"]
        if "int4" in kind:
            zero = random_values(rng, kind, count)
            constants.append(stored("zero", kind, np.asarray(zero)))
            inputs.append("zero")
            real = real - spread(np.asarray(zero).astype(np.float32), axis, block, w)
        real = real * spread(scale, axis, block, w)
        constants.append(nh.from_array(np.asarray(scale, np.float16 if dtype == T.FLOAT16 else np.float32), "scale"))
        attributes = {} if axis is None else {"axis": axis}
        nodes.append(h.make_node("DequantizeLinear", inputs, ["real"], **attributes,
                                 **({"block_size": block} if block else {})))
    nodes.append(h.make_node(op, ["x", "real"], ["y"], **({"transB": 1} if op == "Gemm" else {})))
    graph = h.make_graph(nodes, "narrow", [h.make_tensor_value_info("x", dtype, x_shape)],
                         [h.make_tensor_value_info("y", dtype, None)], constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
    x = rng.normal(size=x_shape).astype(np.float16)
    f = x.astype(np.float64)
    if op == "Conv":
        windows = np.lib.stride_tricks.sliding_window_view(f, (3, 3), (2, 3))
        want = np.einsum("nchwij,ocij->nohw", windows, real.astype(np.float64))
    else:
        want = f @ (real.T if op == "Gemm" else real).astype(np.float64)
    return model, x.astype(np.float16 if dtype == T.FLOAT16 else np.float32), want


@pytest.mark.parametrize("dtype", [T.FLOAT, T.FLOAT16], ids=["f32", "f16"])
@pytest.mark.parametrize("how", [*SCALES, "Cast"])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Conv"])
@pytest.mark.parametrize("kind", TYPES)
def test_products(tmp_path, kind, op, how, dtype):
    if op == "Conv" and how == "blocks":
        how = "a scale per row"  # twelve output channels are no whole blocks
    model, x, want = model_of(op, kind, how, dtype)
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=x)
    bound = 2e-6 if dtype == T.FLOAT else 3e-3  # f16 rounds weights and results to 11 bits
    for args in ([], ["--no-optimize"]):
        done = subprocess.run([PROGRAM, "run", tmp_path / "m.onnx", "-i", tmp_path / "in.npz", "-o",
                               tmp_path / "out.npz", *args], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "out.npz") as f:
            assert np.abs(f["y"] - want).max() <= bound * np.abs(want).max(), args
    done = subprocess.run([PROGRAM, "inspect", "--forms", tmp_path / "m.onnx"], capture_output=True, text=True,
                          timeout=PATIENCE)
    steps = done.stdout[done.stdout.index("\nforms\n"):]
    assert "DequantizeLinear" not in steps and "Cast" not in steps, steps
