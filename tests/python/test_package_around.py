# SPDX-License-Identifier: Apache-2.0
"""What the package sonde has around sessions: built-in models, random inputs, onnx's backend, the stand-in for
onnxruntime, and the wheel that all of it comes in."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import helper

import small_models
import sonde
import sonde.backend
import sonde.zoo

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_zoo_lists_builds_and_saves(tmp_path):
    models = sonde.zoo.models()
    assert "regnet_x_400mf" in sonde.zoo.names() and len(models) == len(sonde.zoo.names())
    assert all(m.summary and m.parameters >= 0 for m in models)
    path = tmp_path / "tiny.onnx"
    sonde.zoo.save("tiny_cnn", path)
    feed = sonde.zoo.session("tiny_cnn").random_inputs(seed=3)
    assert np.array_equal(sonde.InferenceSession(path).run(None, feed)[0],
                          sonde.InferenceSession("zoo:tiny_cnn").run(None, feed)[0])
    sonde.zoo.save("tiny_cnn", path, seed=1)
    assert not np.array_equal(sonde.InferenceSession(path).run(None, feed)[0], sonde.zoo.session("tiny_cnn").run(None, feed)[0])
    with pytest.raises(sonde.InvalidArgument, match="unknown built-in model"):
        sonde.zoo.session("no_such_model")


def test_random_inputs_fit_the_model():
    with sonde.InferenceSession("zoo:tiny_cnn?batch=3") as session:
        desc = session.input(0)
        assert desc.shape[0] == "batch" and sonde.rand(desc).shape[0] == 3
        assert sonde.rand(desc, sizes={"batch": 5}).shape[0] == 5
        with pytest.raises(sonde.InvalidArgument, match="no dimension 'foo'; its symbolic dimensions are: batch"):
            sonde.rand(desc, sizes={"batch": 5, "foo": 2})
        with pytest.raises(sonde.InvalidArgument, match="no dimension 'foo'"):
            session.random_inputs(sizes={"foo": 2})
        assert np.array_equal(sonde.rand(desc, 7), sonde.rand(desc, 7))
        assert not np.array_equal(sonde.rand(desc, 7), sonde.rand(desc, 8))
        assert session.run(None, session.random_inputs())[0].shape == (3, 10)
        assert session.output(0).name == session.get_outputs()[0].name
    with pytest.raises(sonde.InvalidArgument, match="DIM=N"):
        sonde.InferenceSession("zoo:tiny_cnn?batch")
    with pytest.raises(sonde.InvalidArgument, match="its symbolic dimensions are: batch"):
        sonde.InferenceSession("zoo:tiny_cnn?foo=2")
    for number, name in enumerate(sonde._convert.ONNX_NAMES):
        if number:
            array = sonde.rand(sonde.NodeArg("x", f"tensor({name})", [2, None, "N"]), 1)
            assert array.shape == (2, 1, 1) and sonde._convert.number_of(array.dtype) == number
    assert sonde.rand(sonde.NodeArg("attention_mask", "tensor(int64)", [4])).tolist() == [1] * 4


def test_bench_measures_a_model():
    result = sonde.bench("zoo:tiny_mlp", iterations=20, warmup=1)
    assert result.model == "zoo:tiny_mlp" and result.iterations == len(result.samples_ms) == 20
    assert 0 < result.latency_ms["min"] <= result.latency_ms["p50"] <= result.latency_ms["p999"] <= result.latency_ms["max"]
    assert result.load_ms > 0 and result.first_ms > 0 and result.peak_rss_bytes > 1 << 20
    assert np.isclose(result.throughput_per_s * sum(result.samples_ms) / 1000, 20)
    assert "over 20 runs" in str(result)
    described = json.loads(json.dumps(result.to_dict()))
    assert described["schema"] == "sonde.bench/1" and set(described["latency_ms"]) == {
        "min", "mean", "p50", "p90", "p95", "p99", "p999", "max", "stddev"}
    with sonde.InferenceSession(small_models.add()) as session:
        feeds = {"x": np.ones((1, 4), np.float32), "y": np.ones(4, np.float32)}
        again = sonde.bench(session, feeds, duration=0)
        assert again.iterations == 10 and again.load_ms is None and again.model == "small"
    for wrong in ({"iterations": 0}, {"warmup": -1}, {"duration": -1}):
        with pytest.raises(sonde.InvalidArgument):
            sonde.bench("zoo:tiny_mlp", **wrong)


def test_modules_of_torch_become_sessions():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)).eval()
    x = torch.randn(2, 3, 8, 8)
    session = sonde.from_torch(module, x)
    (result,) = session.run(None, {session.input(0).name: x})
    assert np.allclose(result, module(x).detach().numpy(), atol=1e-5)


def test_without_torch_the_error_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(sonde.NotImplemented, match="pip install torch"):
        sonde.from_torch(None, ())


class Cases(onnx.backend.test.BackendTest):
    """onnx's own runner. Of random numbers it compares types and shapes only, as `sonde check` does, because those in
    the files are numpy's; and sequences item by item, which the original does not do for items without dimensions."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        assert len(outputs) == len(ref_outputs)
        for got, expected in zip(outputs, ref_outputs):
            if isinstance(expected, list):
                assert isinstance(got, list)
                cls.assert_similar_outputs(expected, got, rtol, atol, model_dir)
            elif "bernoulli" in str(model_dir):
                assert got.shape == expected.shape and got.dtype == expected.dtype
            else:
                super().assert_similar_outputs([expected], [got], rtol, atol, model_dir)


EXCLUDED = r"_cuda$"
PASSED = 1903  # of 1,914 in onnx 1.22.0: 11 use ImageDecoder or Gradient


def test_onnx_holds_the_backend_against_its_own_cases():
    runner = Cases(sonde.backend, __name__).exclude(EXCLUDED)
    with open(os.devnull, "w") as nowhere:
        result = unittest.TextTestRunner(stream=nowhere).run(runner.test_suite)
    assert not result.failures and not result.errors, (result.failures + result.errors)[0]
    passed = result.testsRun - len(result.skipped)
    assert passed == PASSED or onnx.__version__ != "1.22.0"
    if program := os.environ.get("SONDE_PROGRAM"):
        data = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
        folders = [data / name for name in ("node", "simple", "pytorch-converted", "pytorch-operator", "light")]
        done = subprocess.run([program, "check", *folders], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1].startswith(f"{passed} passed")


def test_the_backend_runs_models_and_nodes(tmp_path):
    x, y = np.ones((2, 4), np.float32), np.ones(4, np.float32)
    model = small_models.add()
    for inputs in ([x, y], (x, y), {"x": x, "y": y}):
        assert sonde.backend.run_model(model, inputs)[0].tolist() == [[2] * 4] * 2
    assert sonde.backend.prepare(model.SerializeToString()).run([x, y])[0].shape == (2, 4)
    with pytest.raises(ValueError, match="3 inputs"):
        sonde.backend.run_model(model, [x, y, y])
    (total,) = sonde.backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [x, y])
    assert total.tolist() == [[2] * 4] * 2
    assert sonde.backend.supports_device("CPU") and not sonde.backend.supports_device("CUDA")
    with pytest.raises(RuntimeError, match="CUDA"):
        sonde.backend.prepare(model, "CUDA")
    unknown = small_models.model([("NoSuchOperator", ["x"], ["y"])], [small_models.value("x")], [small_models.value("y")])
    assert sonde.backend.is_compatible(model) and not sonde.backend.is_compatible(unknown)


PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.capi import _pybind_state as state

options = SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
session = InferenceSession(sys.argv[1], sess_options=options, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
try:
    session.run(None, {name: np.ones(3, np.float32), "y": np.ones(4, np.float32)})
except InvalidArgument:
    result = session.run(None, {name: np.ones((1, 4), np.float32), "y": np.ones(4, np.float32)})[0]
print(result.tolist(), ort.__version__ >= "1.", type(session).__module__.split(".")[0])
"""


def test_programs_for_onnxruntime_run_unchanged(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    onnx.save(small_models.add(), tmp_path / "add.onnx")
    for command, who in (([], "onnxruntime"), (["-m", "sonde.onnxruntime"], "sonde")):
        done = subprocess.run([sys.executable, *command, "program.py", "add.onnx"], cwd=tmp_path, capture_output=True,
                              text=True)
        assert done.stdout.split() == f"[[2.0, 2.0, 2.0, 2.0]] True {who}".split(), done.stderr


@pytest.mark.skipif(os.environ.get("SONDE_FULL") != "1", reason="builds everything again")
def test_the_wheel_of_the_sdist_is_self_contained(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}

    def run(*command, **options):
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, **options).stdout

    run(sys.executable, "-c", "from scikit_build_core.build import build_sdist; build_sdist('" + str(tmp_path) + "')",
        cwd=ROOT)
    (sdist,) = tmp_path.glob("sonde-*.tar.gz")
    assert sdist.stat().st_size < 4 << 20
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-build-isolation", "--no-deps"]
    run(*pip, "-q", "-w", str(tmp_path), str(sdist))
    (wheel,) = tmp_path.glob("sonde-*.whl")
    assert "-cp311-abi3-" in wheel.name
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    # What the package needs is found where this test finds it, behind what is installed here.
    (own,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (own / "needs.pth").write_text(str(pathlib.Path(np.__file__).parents[1]) + "\n")
    python = str(tmp_path / "venv" / "bin" / "python")
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--no-index", str(wheel))
    code = ("import sonde; s = sonde.InferenceSession('zoo:tiny_cnn')\n"
            "print(s.run(None, s.random_inputs())[0].shape, sonde.__file__)")
    said = run(python, "-c", code, cwd=tmp_path)
    assert said.startswith("(1, 10)") and str(tmp_path) in said
    program = tmp_path / "venv" / "bin" / "sonde"
    assert "0." in run(str(program), "--version")
    assert run(python, "-m", "sonde", "--version", cwd=tmp_path) == run(str(program), "--version")
    if shutil.which("ldd"):
        extension = next((tmp_path / "venv").rglob("_sonde.abi3.so"))
        for binary in (extension, program):
            for line in run("ldd", str(binary)).splitlines():
                assert line.split()[0].startswith(("linux-vdso", "libm.", "libc.", "libpthread.", "/lib", "libgcc_s.")), line
