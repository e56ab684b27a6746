# SPDX-License-Identifier: Apache-2.0
"""Zoo models against ONNX Runtime: the saved files, with passes on and off, at every instruction set this
machine has, with one and two threads."""
import os
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

FLOAT_MODELS = ["regnet_x_400mf", "tiny_mlp", "tiny_cnn", "tiny_attention", "tiny_resnet", "tiny_regnet_y",
                "tiny_mobilenet", "tiny_efficientnet"]
WAYS = {
    "plain": ([], {}),
    "no passes": (["--no-optimize"], {}),
    "no prepacking": (["--no-prepack"], {}),
    "two threads": (["-t", "2"], {}),
    "baseline": ([], {"SONDE_CPU": "baseline"}),
    "avx2": ([], {"SONDE_CPU": "avx2"}),
    "avx512": ([], {"SONDE_CPU": "avx512"}),
    "neon": ([], {"SONDE_CPU": "neon"}),
}


def sonde(*args, env=None):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True,
                          env={**os.environ, **(env or {})}, timeout=PATIENCE)


def feeds_for(session, rng):
    feeds = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        if i.type == "tensor(float)":
            feeds[i.name] = rng.standard_normal(shape).astype(np.float32)
        elif i.type == "tensor(float16)":
            feeds[i.name] = rng.standard_normal(shape).astype(np.float16)
        elif i.type == "tensor(int64)":
            feeds[i.name] = rng.integers(0, 2, shape)
        else:
            pytest.skip(f"no inputs of type {i.type} are made here")
    return feeds


def run_both(model, tmp_path, args=(), env=None, seed=0):
    """(ours, theirs) by output name."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feeds = feeds_for(session, np.random.default_rng(seed))
    theirs = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    np.savez(tmp_path / "in.npz", **feeds)
    done = sonde("run", model, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz", *args, env=env)
    if done.returncode == 1 and "SONDE_CPU" in (env or {}) and "instruction set" in done.stderr:
        pytest.skip("this machine has no such instructions")
    assert done.returncode == 0, done.stderr
    return dict(np.load(tmp_path / "out.npz")), theirs


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")

    def save(name):
        path = folder / f"{name}.onnx"
        if not path.exists():
            done = sonde("zoo", "save", name, path)
            assert done.returncode == 0, done.stderr
        return path

    return save


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FLOAT_MODELS)
def test_zoo_models_give_the_same_answer_as_onnxruntime(saved, tmp_path, name, way):
    args, env = WAYS[way]
    ours, theirs = run_both(saved(name), tmp_path, args, env)
    assert ours.keys() == theirs.keys()
    for key, b in theirs.items():
        assert ours[key].shape == b.shape
        bound = 1e-4 * max(1.0, float(np.abs(b).max()))
        assert float(np.abs(ours[key] - b).max()) <= bound, key


def zoo_names():
    """Those below 30 million parameters; SONDE_FULL=1 asks for all."""
    most = np.inf if os.environ.get("SONDE_FULL") == "1" else 3e7
    rows = [line.split() for line in sonde("zoo").stdout.splitlines()[1:]] if PROGRAM else []
    return [row[0] for row in rows if int(row[1].replace(",", "")) < most]


@pytest.mark.parametrize("name", zoo_names())
def test_saved_zoo_models_satisfy_the_onnx_checker(saved, name):
    path = saved(name)
    onnx.checker.check_model(str(path), full_check=True)
    if path.stat().st_size > 1e8:
        path.unlink()


def test_regnet_has_the_published_number_of_parameters(saved):
    model = onnx.load(saved("regnet_x_400mf"))
    running = ("running_mean", "running_var")
    count = sum(int(np.prod(t.dims)) for t in model.graph.initializer if not t.name.endswith(running))
    assert count == 5_495_976
