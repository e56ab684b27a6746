# SPDX-License-Identifier: Apache-2.0
"""Real models against ONNX Runtime: every file in the folder that SONDE_TEST_MODELS names (skipped when it is
not set: they are not part of the project), at several sizes of their free dimensions. Models that carry a
state from call to call are run over a few frames."""

import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
MODELS = sorted(pathlib.Path(os.environ.get("SONDE_TEST_MODELS", "/nonexistent")).glob("*.onnx"))
pytestmark = pytest.mark.skipif(not PROGRAM or not MODELS, reason="SONDE_PROGRAM or SONDE_TEST_MODELS is not set")

# By the beginning of the file's name: shapes of the inputs, several ways. Without a row free dims are 1.
SIZES = {
    "mobilenet": [{"image": (1, 3, 244, 244)}, {"image": (2, 3, 244, 244)}],
    "ppocr": [{"x": (1, 3, 64, 96)}, {"x": (1, 3, 160, 224)}, {"x": (2, 3, 96, 32)}],
    "silero": [{"input": (1, 512), "state": (2, 1, 128), "sr": 16000},
               {"input": (3, 256), "state": (2, 3, 128), "sr": 8000}],
}
DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
          "tensor(double)": np.float64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8}


def ways(path):
    return next((rows for name, rows in SIZES.items() if path.name.startswith(name)), [{}])


def feeds_for(session, sizes, rng):
    feeds = {}
    for i in session.get_inputs():
        dtype, size = DTYPES[i.type], sizes.get(i.name)
        if isinstance(size, int):
            feeds[i.name] = np.array(size, dtype)
            continue
        shape = size or [d if isinstance(d, int) else 1 for d in i.shape]
        if np.issubdtype(dtype, np.floating):
            feeds[i.name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[i.name] = rng.integers(0, 2, shape).astype(dtype)
    return feeds


def steps_of(path):
    """{output: size of a quantisation step} for outputs that DequantizeLinear makes."""
    graph = onnx.load(path).graph
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    producer = {o: n for n in graph.node for o in n.output}

    def value(name):
        while name not in constants and name in producer:
            node = producer[name]
            if node.op_type == "Constant":
                return onnx.numpy_helper.to_array(node.attribute[0].t)
            name = node.input[0]
        return constants[name]

    made = {o.name: producer.get(o.name) for o in graph.output}
    return {o: float(value(n.input[1]).max()) for o, n in made.items() if n and n.op_type == "DequantizeLinear"}


def check(ours, theirs, steps):
    assert ours.keys() == theirs.keys()
    for key, b in theirs.items():
        a = ours[key]
        assert a.shape == b.shape and a.dtype == b.dtype, key
        off = np.abs(a.astype(np.float64) - b.astype(np.float64))
        if key in steps:
            assert (off <= 1.001 * steps[key]).mean() >= 0.999, key
            continue
        bound = (1e-2 if b.dtype == np.float16 else 1e-4) * max(1.0, float(np.abs(b.astype(np.float64)).max()))
        assert off.max() <= bound, key


@pytest.mark.parametrize("args", [[], ["-t", "1"], ["--cpu", "baseline"], ["--no-optimize"]], ids=" ".join)
@pytest.mark.parametrize("path,way", [(p, k) for p in MODELS for k in range(len(ways(p)))],
                         ids=lambda v: v.name if isinstance(v, pathlib.Path) else str(v))
def test_real_models_agree_with_onnxruntime(path, way, args, tmp_path):
    steps = steps_of(path)
    if steps and "--no-optimize" in args:
        pytest.skip("as the file says it, in floats: rounding then differs from integer arithmetic")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = feeds_for(session, ways(path)[way], np.random.default_rng(way))
    names = [o.name for o in session.get_outputs()]
    for _frame in range(3 if "state" in feeds else 1):
        theirs = dict(zip(names, session.run(None, feeds)))
        np.savez(tmp_path / "in.npz", **feeds)
        done = subprocess.run([PROGRAM, "run", path, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz", *args],
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        ours = dict(np.load(tmp_path / "out.npz"))
        check(ours, theirs, steps)
        if "state" in feeds:
            feeds["state"] = theirs["stateN"]
