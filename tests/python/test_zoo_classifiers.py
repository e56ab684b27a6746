# SPDX-License-Identifier: Apache-2.0
"""The built-in image classifiers and their int8 variants: logits of sensible size that depend on the image and agree
with ONNX Runtime's, in batches too; integers that stay close to the floats they stand for. SONDE_FULL=1 adds the
large ones."""

import os
import re
from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest

from test_against_onnxruntime import PROGRAM, run_both, saved, sonde  # noqa: F401 (saved is a fixture)

pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

FULL = os.environ.get("SONDE_FULL") == "1"
TINY = ["tiny_resnet", "tiny_regnet_y", "tiny_mobilenet", "tiny_efficientnet"]
FLOAT = TINY + ["regnet_x_400mf", "mobilenet_v2", "efficientnet_b0"]
INT8 = ["tiny_cnn", *TINY, "regnet_x_400mf", "mobilenet_v2", "efficientnet_b0"]
if FULL:
    FLOAT += ["regnet_x_3_2gf", "regnet_y_400mf", "regnet_y_16gf", "resnet18", "resnet34", "resnet50", "resnet152"]
    INT8 += ["regnet_y_400mf", "resnet18", "resnet50"]


@pytest.mark.parametrize("name", FLOAT)
def test_logits_are_right_sensible_and_depend_on_the_image(saved, tmp_path, name):  # noqa: F811
    logits = []
    for seed in (1, 2):
        ours, theirs = run_both(saved(name), tmp_path, seed=seed)
        a, b = ours["output"], theirs["output"]
        assert float(np.abs(a - b).max()) <= 1e-4 * max(1.0, float(np.abs(b).max()))
        assert 0.05 < a.std() < 50
        logits.append(a)
    assert np.abs(logits[0] - logits[1]).max() > 0.005 * logits[0].std()


def images(path, batch):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.random.default_rng(3).standard_normal([batch, *session.get_inputs()[0].shape[1:]]).astype(np.float32)


def run(path, folder, x, *args):
    np.savez(folder / "in.npz", input=x)
    done = sonde("run", path, "-i", folder / "in.npz", "-o", folder / "out.npz", *args)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "out.npz")["output"]


@pytest.mark.parametrize("name", TINY + [f"{name}_int8" for name in TINY])
def test_a_batch_is_its_images_one_by_one(saved, tmp_path, name):  # noqa: F811
    x = images(saved(name), 3)
    together = run(saved(name), tmp_path, x)
    for k in range(3):
        alone = run(saved(name), tmp_path, x[k:k + 1])
        assert np.abs(together[k] - alone[0]).max() <= 1e-5 * max(1.0, np.abs(alone).max())


@pytest.mark.parametrize("name", INT8)
def test_int8_variants_stay_close_to_the_floats_and_to_onnxruntime(saved, tmp_path, name):  # noqa: F811
    ours, theirs = run_both(saved(f"{name}_int8"), tmp_path, seed=4)
    # Operators on bytes round where ONNX Runtime's do; one step in an early layer would make this 30 to 38 dB.
    signal, noise = [(v.astype(np.float64) ** 2).sum() for v in (theirs["output"], ours["output"] - theirs["output"])]
    assert signal >= 1e4 * noise, 10 * np.log10(signal / noise)

    floats, _ = run_both(saved(name), tmp_path, seed=4)
    a, b = floats["output"].ravel(), ours["output"].ravel()
    assert np.corrcoef(a, b)[0, 1] > 0.98
    assert np.abs(a - b).mean() < 0.15 * a.std()


@pytest.mark.parametrize("name", INT8)
def test_int8_variants_run_in_integers(name):
    """Only the image and the logits are floats: everything between is fused into integer operators."""
    done = sonde("inspect", f"zoo:{name}_int8", "--optimized")
    assert done.returncode == 0, done.stderr
    count = dict(re.findall(r"^  (\w+) +(\d+)$", done.stdout, re.M))
    assert count["QuantizeLinear"] == count["DequantizeLinear"] == "1"
    assert int(count["Conv"]) > 3


class Images:
    """What ONNX Runtime's quantiser asks for images."""

    def __init__(self, path):
        self.left = [{"input": images(path, 1)}]

    def get_next(self):
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("name", TINY)
def test_int8_variants_have_the_nodes_that_onnxruntimes_quantiser_writes(saved, tmp_path, name):  # noqa: F811
    quantization = pytest.importorskip("onnxruntime.quantization")
    folded, quantized = tmp_path / "folded.onnx", tmp_path / "quantized.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folded)
    onnxruntime.InferenceSession(str(saved(name)), options, providers=["CPUExecutionProvider"])
    quantization.quantize_static(str(folded), str(quantized), Images(folded), per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8)
    theirs, ours = onnx.load(quantized).graph, onnx.load(saved(f"{name}_int8")).graph
    assert Counter(n.op_type for n in ours.node) == Counter(n.op_type for n in theirs.node)
    activations = [{n.name for n in g.node if n.op_type == "QuantizeLinear"} for g in (ours, theirs)]
    assert activations[0] == activations[1]
