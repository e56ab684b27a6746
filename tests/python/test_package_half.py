# SPDX-License-Identifier: Apache-2.0
"""Models in f16 and bf16: computed in f32 between their ends, fused like models in f32, weights at two bytes each."""
import json
import math
import os
import subprocess

import numpy as np
import onnx
import onnx.reference
import pytest
import sonde
from half_models import KINDS, narrowed, tiles_bytes, widened

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

# Those with convolutions whose normalisation is folded into the weights keep these in f32.
FOLDED = ["tiny_cnn", "tiny_resnet", "tiny_regnet_y", "tiny_mobilenet", "tiny_efficientnet"]
MODELS = [*FOLDED, "tiny_mlp", "tiny_attention", "tiny_vit", "tiny_bert", "tiny_gpt2", "tiny_chain", "tiny_loop"]


def inspect(model, path, *args):
    onnx.save(model, path)
    done = subprocess.run([PROGRAM, "inspect", path, "--optimized", "--json", "-", "-q", *args], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def as_f32(x, kind):
    return x.astype(np.float32) if x.dtype == KINDS[kind][1] else x


def check(got, want, kind):
    # An output is rounded once, by half an eps; what feeds it may be a sum in another order, or in a loop a rounded one.
    eps = float(np.finfo(np.float16).eps) if kind == "f16" else 2.0 ** -7
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g, np.float64), np.asarray(w, np.float64)
        assert g.shape == w.shape and np.isfinite(w).all()
        assert np.abs(g - w).max() <= eps * max(1.0, np.abs(w).max())


def without_normalisation(model):
    """What an exporter writes that folds it: later passes then see convolutions only."""
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            node.op_type = "Identity"
            del node.input[1:]
            del node.attribute[:]
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", [*MODELS, *(f"folded {m}" for m in FOLDED)])
def test_a_narrow_model_computes_what_its_f32_twin_does(zoo, name, packed, kind):
    model = narrowed(without_normalisation(zoo(name[7:])) if name.startswith("folded") else zoo(name), kind)
    options = sonde.SessionOptions()
    options.add_session_config_entry("session.disable_prepacking", "0" if packed else "1")
    twin = sonde.InferenceSession(widened(model, kind).SerializeToString())
    ours = sonde.InferenceSession(model.SerializeToString(), options)
    x = ours.random_inputs(3)
    check(ours.run(None, x), twin.run(None, {k: as_f32(v, kind) for k, v in x.items()}), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*(m for m in MODELS if m != "tiny_gpt2"),  # whose cache is of the type of the file
                                  *(f"folded {m}" for m in FOLDED)])
def test_a_narrow_model_has_the_steps_of_its_f32_twin(zoo, tmp_path, name, kind):
    model = narrowed(without_normalisation(zoo(name[7:])) if name.startswith("folded") else zoo(name), kind)
    ours = inspect(model, tmp_path / "narrow.onnx")
    twin = inspect(widened(model, kind), tmp_path / "wide.onnx")
    count = {o["op"]: o["count"] for o in ours["operators"] if o["op"] != "[Convert]"}
    assert count == {o["op"]: o["count"] for o in twin["operators"]}
    packed, wide = (m["run"]["memory"]["packed"] for m in (ours, twin))
    # Each weight begins at a multiple of 64 bytes, and narrow convolutions may be filled up.
    filled = sum(max(0, tiles_bytes(i.dims) - 2 * math.prod(i.dims)) for i in model.graph.initializer)
    assert packed <= wide * (1 if name in FOLDED else 0.52) + filled


@pytest.mark.parametrize("name", ["tiny_mlp", "tiny_vit", "tiny_cnn"])
def test_an_f16_model_computes_what_the_reference_does(zoo, name):
    """The onnx package rounds every value to f16, so errors of 2^-11 add up over some ten layers. (ONNX Runtime, which
    would be the other judge, crashes while it loads tiny_vit in f16.)"""
    model = narrowed(zoo(name), "f16")
    ours = sonde.InferenceSession(model.SerializeToString())
    x = ours.random_inputs(4)
    got, want = ours.run(None, x), onnx.reference.ReferenceEvaluator(model).run(None, x)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype == np.float16
        assert np.abs(g.astype(np.float64) - w).max() <= 0.004 * max(1.0, np.abs(w).max())


def test_what_rounds_in_the_file_rounds_here():
    h, T = onnx.helper, onnx.TensorProto
    nodes = [h.make_node("Cast", ["x"], ["n"], to=T.FLOAT16), h.make_node("Add", ["n", "n"], ["s"]),
             h.make_node("Cast", ["s"], ["y"], to=T.FLOAT)]
    graph = h.make_graph(nodes, "rounds", [h.make_tensor_value_info("x", T.FLOAT, [3])],
                         [h.make_tensor_value_info("y", T.FLOAT, [3])])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    x = np.array([1 / 3, 1e-8, 3000.3], np.float32)
    y, = sonde.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert y.tolist() == (2 * x.astype(np.float16).astype(np.float32)).tolist()


def test_weights_of_another_type_are_refused_in_a_file():
    h, T = onnx.helper, onnx.TensorProto
    graph = h.make_graph([h.make_node("MatMul", ["x", "w"], ["y"])], "mixed",
                         [h.make_tensor_value_info("x", T.FLOAT, [2, 4])],
                         [h.make_tensor_value_info("y", T.FLOAT, [2, 3])],
                         [onnx.numpy_helper.from_array(np.ones((4, 3), np.float16), "w")])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(sonde.Error, match="f32 and f16"):
        sonde.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("kind", KINDS)
def test_one_table_for_tokens_and_for_logits(kind):
    """A tied table is read by Gather, which keeps its type, and by a product."""
    dtype = KINDS[kind][1]
    h, T = onnx.helper, onnx.TensorProto
    number = KINDS[kind][0]
    table = np.random.default_rng(5).standard_normal((50, 16)).astype(dtype)
    nodes = [h.make_node("Gather", ["t", "i"], ["e"]), h.make_node("Relu", ["e"], ["r"]),
             h.make_node("Transpose", ["t"], ["tt"], perm=[1, 0]), h.make_node("MatMul", ["r", "tt"], ["y"])]
    graph = h.make_graph(nodes, "tied", [h.make_tensor_value_info("i", T.INT64, [3])],
                         [h.make_tensor_value_info("y", number, [3, 50])], [onnx.numpy_helper.from_array(table, "t")])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    y, = sonde.InferenceSession(model.SerializeToString()).run(None, {"i": np.array([4, 0, 49])})
    rows = np.maximum(table.astype(np.float32)[[4, 0, 49]], 0)
    check([y], [rows @ table.astype(np.float32).T], kind)
