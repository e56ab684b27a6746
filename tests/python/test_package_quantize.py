# SPDX-License-Identifier: Apache-2.0
"""sonde.quantize: the files are standard ONNX that ONNX Runtime runs with the same results, they agree with the float
model at least as well as those of onnxruntime's own quantiser, and bad input leaves no file behind."""

import json
import os
import subprocess
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import sonde
from patience import PATIENCE
from quantize_models import Net, images, run, sqnr

warnings.filterwarnings("ignore", category=DeprecationWarning)


def cnn(opset=17):
    """Everything that stays bytes between two convolutions."""
    n = Net()
    x = n.node("Relu", n.node("Conv", "x", n.weight(16, 3, 3, 3), n.vector(16), pads=[1] * 4))
    x = n.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = n.node("Conv", x, n.weight(16, 1, 3, 3), group=16, pads=[1] * 4)
    x = n.node("Relu", n.node("Add", x, y))
    y = n.node("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    x = n.node("Concat", x, y, axis=1)
    x = n.node("Conv", x, n.weight(16, 32, 1, 1), n.vector(16))
    x = n.node("Mul", x, n.node("Sigmoid", x))
    gate = n.node("Sigmoid", n.node("Conv", n.node("GlobalAveragePool", x), n.weight(16, 16, 1, 1)))
    x = n.node("Conv", n.node("Mul", x, gate), n.weight(8, 16, 3, 3), n.vector(8))
    x = n.node("Flatten", n.node("GlobalAveragePool", n.node("Relu", x)))
    n.node("Gemm", x, n.weight(10, 8), n.vector(10), outputs=["y"], transB=1)
    return n.model(["batch", 3, 16, 16], "y", opset=opset)


# ---------------------------------------------------------------- static
def test_a_cnn_runs_in_onnxruntime_with_the_same_bits(tmp_path):
    path, x = tmp_path / "q.onnx", images(8, 16)
    table = sonde.quantize(cnn(), path, {"x": x})
    onnx.checker.check_model(os.fspath(path))
    assert set(table.made) == {"int8"}, table[table.made == "float"]
    ours, theirs, float_ = (run(r, m, {"x": x})[0] for r, m in ((sonde, path), (onnxruntime, path), (onnxruntime, cnn())))
    assert sqnr(ours, theirs) > 40
    assert sqnr(float_, ours) > 20
    assert abs(sqnr(float_, ours) - table.attrs["sqnr_db"]) < 1.5


def steps(path):
    """How often each operator is left after the passes."""
    ran = subprocess.run([os.environ["SONDE_PROGRAM"], "inspect", path, "--optimized", "--json", "-"], check=True,
                         capture_output=True, text=True)
    return {row["op"]: row["count"] for row in json.loads(ran.stdout)["operators"]}


def test_everything_between_the_input_and_the_output_is_integers(tmp_path):
    """One QuantizeLinear at the input, and no DequantizeLinear: the last product makes floats itself."""
    sonde.quantize(cnn(), tmp_path / "q.onnx", {"x": images(4, 16)})
    found = steps(tmp_path / "q.onnx")
    assert found["QuantizeLinear"] == 1 and "DequantizeLinear" not in found and "Relu" not in found


def test_products_of_a_transformer_take_their_biases(tmp_path):
    x = np.random.default_rng(0).standard_normal((2, 7, 32)).astype(np.float32)
    sonde.quantize(transformer(), tmp_path / "q.onnx", {"x": x})
    found = steps(tmp_path / "q.onnx")
    assert "DequantizeLinear" not in found and found["Add"] <= 2


@pytest.mark.parametrize("name", ["mobilenet_v2", "regnet_x_400mf"])
def test_zoo_models_are_closer_to_float_than_those_of_onnxruntimes_quantiser(tmp_path, zoo, name):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model, x, tested = zoo(name), images(32, 224, 1), images(8, 224, 2)
    onnx.save(model, tmp_path / "float.onnx")

    class Samples(CalibrationDataReader):
        rest = list(x)

        def get_next(self):
            return {"input": self.rest.pop()[None]} if self.rest else None

    quant_pre_process(tmp_path / "float.onnx", tmp_path / "pre.onnx", skip_symbolic_shape=True)
    quantize_static(tmp_path / "pre.onnx", tmp_path / "theirs.onnx", Samples(), quant_format=QuantFormat.QDQ,
                    per_channel=True)
    sonde.quantize(tmp_path / "float.onnx", tmp_path / "ours.onnx", {"input": x})
    float_, theirs, ours = (run(onnxruntime, tmp_path / f"{kind}.onnx", {"input": tested})[0]
                            for kind in ("float", "theirs", "ours"))
    assert sqnr(float_, ours) >= sqnr(float_, theirs)
    agree = (float_.argmax(1) == ours.argmax(1)).mean()
    # Weights are random, so the two largest scores may differ by less than a rounding on another CPU: one image of play.
    assert agree >= (float_.argmax(1) == theirs.argmax(1)).mean() - 1 / len(tested)
    assert sqnr(ours, run(sonde, tmp_path / "ours.onnx", {"input": tested})[0]) > 40


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy", "mse"])
@pytest.mark.parametrize("options", [{}, {"per_channel": False}, {"activation_type": "s8"},
                                     {"equalize": True}, {"bias_correction": False}], ids=str)
def test_every_method_and_option_gives_a_model_that_works(tmp_path, method, options):
    path, x = tmp_path / "q.onnx", images(8, 16)
    sonde.quantize(cnn(), path, {"x": x}, method=method, **options)
    float_ = run(onnxruntime, cnn(), {"x": x})[0]
    ours, theirs = run(sonde, path, {"x": x})[0], run(onnxruntime, path, {"x": x})[0]
    assert sqnr(float_, ours) > 12
    assert sqnr(ours, theirs) > 40


def test_one_model_gives_one_file_with_any_number_of_threads(tmp_path):
    program, x = os.environ["SONDE_PROGRAM"], images(6, 224)
    np.savez(tmp_path / "x.npz", input=x)
    made = []
    for threads in (1, 2, 4):
        path = tmp_path / f"{threads}.onnx"
        subprocess.run([program, "quantize", "zoo:mobilenet_v2", "--calibrate", tmp_path / "x.npz", "-q", "-t", str(threads),
                        "--no-measure", "-o", path], check=True)
        made.append(path.read_bytes())
    assert made[0] == made[1] == made[2]


def test_arrays_and_single_samples_give_the_same_file(tmp_path):
    x = images(4, 16)
    sonde.quantize(cnn(), tmp_path / "a.onnx", {"x": x})
    sonde.quantize(cnn(), tmp_path / "b.onnx", [{"x": one[None]} for one in x])
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_scales_of_a_transposed_convolution_belong_to_its_output_channels(tmp_path):
    n = Net()
    x = n.node("Relu", n.node("Conv", "x", n.weight(6, 3, 3, 3), pads=[1] * 4))
    w = np.random.default_rng(3).standard_normal((6, 4, 2, 2)).astype(np.float32) * np.array([1, 30, 0.1, 5], np.float32)[:, None, None]
    x = n.node("ConvTranspose", x, n.constant(w, "w"), n.vector(4), strides=[2, 2])
    n.node("Conv", n.node("Relu", x), n.weight(5, 4, 1, 1), outputs=["y"])
    model, path, x = n.model([1, 3, 8, 8], "y"), tmp_path / "q.onnx", images(4, 8 * 2)[:, :, :8, :8]
    table = sonde.quantize(model, path, {"x": x})
    made = onnx.load(path)
    dequantize = next(node for node in made.graph.node if node.op_type == "DequantizeLinear" and node.input[0] == "w_quantized")
    assert [a.i for a in dequantize.attribute] == [1]
    scale = next(nh.to_array(t) for t in made.graph.initializer if t.name == dequantize.input[1])
    np.testing.assert_allclose(scale, np.abs(w).max(axis=(0, 2, 3)) / 127, rtol=1e-6)
    assert table[table.op_type == "ConvTranspose"].weight_sqnr_db.item() > 38
    feeds = {"x": x[:1]}
    assert sqnr(run(sonde, path, feeds)[0], run(onnxruntime, path, feeds)[0]) > 40


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_any_rank_and_groups(tmp_path, rank, groups):
    n = Net()
    size = [1, 4] + [9] * rank
    x = n.node("Conv", "x", n.weight(8, 4 // groups, *[3] * rank), n.vector(8), group=groups)
    n.node("Conv", n.node("Relu", x), n.weight(4, 8 // groups, *[1] * rank), group=groups, outputs=["y"])
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    model, path = n.model(size, "y"), tmp_path / "q.onnx"
    table = sonde.quantize(model, path, {"x": x})
    assert list(table.made) == ["int8"] * 3
    feeds = {"x": x}
    assert sqnr(run(onnxruntime, model, feeds)[0], run(sonde, path, feeds)[0]) > 30
    assert sqnr(run(sonde, path, feeds)[0], run(onnxruntime, path, feeds)[0]) > 40


def transformer(rank=2):
    """Attention and a feed-forward part; weights of rank 3 are stacked matrices."""
    n = Net(5)
    stack = (1,) if rank == 3 else ()
    norm = n.node("LayerNormalization", "x", n.constant(np.ones(32, np.float32)), n.vector(32))
    q, k, v = (n.node("Add", n.node("MatMul", norm, n.weight(*stack, 32, 32, spread=0.2)), n.vector(32)) for _ in range(3))
    scores = n.node("Softmax", n.node("MatMul", q, n.node("Transpose", k, perm=[0, 2, 1])), axis=-1)
    x = n.node("Add", "x", n.node("MatMul", n.node("MatMul", scores, v), n.weight(*stack, 32, 32, spread=0.2)))
    up = n.node("Add", n.node("MatMul", x, n.weight(*stack, 32, 64, spread=0.2)), n.vector(64))
    down = n.node("MatMul", n.node("Relu", up), n.weight(*stack, 64, 32, spread=0.2))
    n.node("Add", x, down, outputs=["y"])
    return n.model(["batch", "length", 32], "y")


@pytest.mark.parametrize("kind", [{}, {"dynamic": True}, {"weights_only": 4}, {"weights_only": 8},
                                  {"weights_only": 4, "block_size": 16}], ids=str)
@pytest.mark.parametrize("rank", [2, 3])
def test_transformers_work_in_every_kind(tmp_path, kind, rank):
    model, path = transformer(rank), tmp_path / "q.onnx"
    x = np.random.default_rng(0).standard_normal((6, 7, 32)).astype(np.float32)
    if rank == 3 and "weights_only" in kind:
        with pytest.raises(sonde.Error, match="nothing to quantise.*no matrix"):
            sonde.quantize(model, path, {"x": x}, **kind)
        return
    table = sonde.quantize(model, path, {"x": x}, **kind)
    assert (table[table.op_type == "MatMul"].made != "float").sum() == 6
    assert set(table[table.why == "a product of two activations"].op_type) == {"MatMul"}
    feeds = {"x": x}
    float_, ours, theirs = run(onnxruntime, model, feeds)[0], run(sonde, path, feeds)[0], run(onnxruntime, path, feeds)[0]
    assert sqnr(float_, ours) > (10 if kind.get("weights_only") == 4 else 25)
    assert sqnr(ours, theirs) > 40


def test_openvino_runs_the_files_too(tmp_path):
    """Where OpenVINO is installed: it is no requirement of the tests, so most runs skip this."""
    openvino = pytest.importorskip("openvino")
    core, x = openvino.Core(), images(4, 16)
    tokens = np.random.default_rng(0).standard_normal((3, 7, 32)).astype(np.float32)
    for model, x_, kind, least in ((cnn(), x, {}, 40), (cnn(), x, {"per_channel": False}, 40),
                                   (transformer(), tokens, {"dynamic": True}, 40),
                                   (transformer(), tokens, {"weights_only": 4}, 25)):
        path = tmp_path / "q.onnx"
        sonde.quantize(model, path, {"x": x_}, **kind)
        compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        assert sqnr(run(sonde, path, {"x": x_})[0], compiled({"x": x_})[0]) > least


def test_gemm_becomes_dynamic_and_blocks_whichever_way_its_weights_lie(tmp_path):
    x = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
    for turned in (0, 1):
        n = Net()
        w = n.weight(*((24, 40) if turned else (40, 24)), spread=0)
        n.node("Gemm", n.node("Relu", "x"), w, n.vector(24), outputs=["y"], transB=turned)
        model = n.model([5, 40], "y")
        for kind, least in (({"dynamic": True}, 30), ({"weights_only": 4}, 15), ({"weights_only": 8}, 35)):
            path = tmp_path / "q.onnx"
            sonde.quantize(model, path, **kind)
            float_, ours, theirs = (run(r, m, {"x": x})[0] for r, m in
                                    ((onnxruntime, model), (sonde, path), (onnxruntime, path)))
            assert sqnr(float_, ours) > least
            assert sqnr(ours, theirs) > 60


# ---------------------------------------------------------------- older models
def old_model(opset):
    n = Net()
    x = n.node("Conv", "x", n.weight(8, 3, 3, 3), n.vector(8), pads=[1] * 4)
    if opset < 11:
        x = n.node("Clip", x, min=0.0, max=2.0)
        x = n.node("Pad", x, pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.5)
    else:
        x = n.node("Clip", x, n.constant(np.float32(0)), n.constant(np.float32(2)))
        x = n.node("Pad", x, n.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1])), n.constant(np.float32(0.5)))
    if opset < 9:
        x = n.node("Upsample", x, scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    elif opset < 10:
        x = n.node("Upsample", x, n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
    elif opset < 11:
        x = n.node("Resize", x, n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
    if opset < 10:
        x = n.node("Slice", x, starts=[1, 1], ends=[9, 9], axes=[2, 3])
    if opset < 13:
        x = n.node("Unsqueeze", n.node("Squeeze", n.node("Conv", x, n.weight(8, 8, 3, 3)), axes=[0]), axes=[0])
        x = n.node("Dropout", x, **({"ratio": 0.5} if opset < 12 else {}))
        n.node("Split", x, outputs=["left", "right"], axis=1, split=[3, 5])
        x = n.node("Concat", "right", "left", axis=1)
        x = n.node("ReduceSum", n.node("Conv", x, n.weight(6, 8, 1, 1)), axes=[2, 3], keepdims=0)
        n.node("Softmax", x, outputs=["y"])
    return n.model([1, 3, 12, 12], "y", opset=opset)


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12])
def test_older_models_are_raised_to_the_opset_of_scales_per_channel(tmp_path, opset):
    model, path, x = old_model(opset), tmp_path / "q.onnx", images(4, 16)[:, :, :12, :12]
    table = sonde.quantize(model, path, {"x": x})
    assert (table.attrs["opset_before"], table.attrs["opset_after"]) == (opset, 13)
    assert set(table[table.op_type == "Conv"].why) == {"per channel"}
    onnx.checker.check_model(os.fspath(path), full_check=True)
    feeds = {"x": x[:1]}
    float_, ours, theirs = (run(r, m, feeds)[0] for r, m in ((onnxruntime, model), (sonde, path), (onnxruntime, path)))
    assert sqnr(float_, ours) > 20
    assert sqnr(ours, theirs) > 40


def test_a_softmax_that_changed_its_meaning_is_refused_by_name(tmp_path):
    n = Net()
    n.node("Softmax", n.node("Conv", "x", n.weight(8, 3, 3, 3)), outputs=["y"], axis=1)
    with pytest.raises(sonde.Error, match="Softmax_y.*several dimensions.*opset 13"):
        sonde.quantize(n.model([1, 3, 8, 8], "y", opset=11), tmp_path / "q.onnx", {"x": images(2, 16)[:, :, :8, :8]})
    assert not (tmp_path / "q.onnx").exists()


# ---------------------------------------------------------------- what stays in float
def test_excepted_nodes_stay_in_float(tmp_path):
    x = images(4, 16)
    names = [node.name for node in onnx.load_from_string(cnn()).graph.node if node.op_type == "Conv"]
    (tmp_path / "compare.json").write_text(json.dumps({"schema": "sonde.compare/1", "leave_in_float": names[1:2]}))
    table = sonde.quantize(cnn(), tmp_path / "q.onnx", {"x": x}, except_nodes=[names[0], f"@{tmp_path}/compare.json"])
    assert set(table[(table.made == "float") & (table.op_type == "Conv")].node) == set(names[:2])
    feeds = {"x": x}
    assert sqnr(run(sonde, tmp_path / "q.onnx", feeds)[0], run(onnxruntime, tmp_path / "q.onnx", feeds)[0]) > 40


def test_an_unknown_node_is_answered_with_names_that_are_near(tmp_path):
    with pytest.raises(sonde.Error, match=r"no node and no weight 'Conv_v99'; similar names: 'Conv_v"):
        sonde.quantize(cnn(), tmp_path / "q.onnx", {"x": images(2, 16)}, except_nodes="Conv_v99")


def test_files_that_are_no_comparison_are_refused(tmp_path):
    for text in ("{}", "[", '{"schema":"other","leave_in_float":[]}', '{"schema":"sonde.compare/1"}'):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(sonde.Error, match="c.json"):
            sonde.quantize(cnn(), tmp_path / "q.onnx", {"x": images(2, 16)}, except_nodes=f"@{tmp_path}/c.json")
    assert not (tmp_path / "q.onnx").exists()


def test_a_goal_leaves_the_worst_layers_in_float(tmp_path):
    x = images(6, 16)
    all_ = sonde.quantize(cnn(), tmp_path / "a.onnx", {"x": x})
    goal = all_.attrs["sqnr_db"] + 1.5
    some = sonde.quantize(cnn(), tmp_path / "b.onnx", {"x": x}, goal=goal)
    assert some.attrs["sqnr_db"] >= goal and some.attrs["left_for_goal"] > 0
    assert "left in float for the goal" in set(some.why)
    float_ = run(onnxruntime, cnn(), {"x": x})[0]
    assert abs(sqnr(float_, run(sonde, tmp_path / "b.onnx", {"x": x})[0]) - some.attrs["sqnr_db"]) < 1.5


def test_the_best_model_is_written_where_a_goal_is_missed(tmp_path):
    with pytest.warns(RuntimeWarning, match="goal of 150 dB"):
        table = sonde.quantize(cnn(), tmp_path / "q.onnx", {"x": images(4, 16)}, goal=150)
    assert table.attrs["goal_missed"] and (tmp_path / "q.onnx").exists()


# ---------------------------------------------------------------- bad input
def test_bad_input_gives_an_error_and_no_file(tmp_path):
    path, x = tmp_path / "q.onnx", images(2, 16)
    nan, huge = x.copy(), x.copy()
    nan[1, 0, 0, 0] = np.nan
    huge[0] = 3e38
    n = Net()
    n.node("Relu", "x", outputs=["y"])
    cases = [(cnn(), None, {}, "needs samples"),
             (cnn(), {"x": nan}, {}, "sample 1: tensor 'x' has NaN"),
             (cnn(), {"x": huge}, {}, "tensor 'v[0-9]+' has"),
             (cnn(), {"z": x}, {}, "no input of the model; its inputs are: x"),
             (cnn(), {"x": x[:, :, 0]}, {}, None),
             (cnn(), {"x": x.astype(np.float64)}, {}, "are f64, but the model takes"),
             (cnn(), tmp_path / "nowhere", {}, "nowhere' does not exist"),
             (cnn(), tmp_path, {}, "has no samples"),
             (cnn(), {"x": x}, {"method": "magic"}, "method is 'magic'"),
             (cnn(), {"x": x}, {"weights_only": 3}, "4 or 8"),
             (cnn(), {"x": x}, {"weights_only": 4, "block_size": 20}, "power of two"),
             (n.model([1, 3, 16, 16], "y"), {"x": x[:1]}, {}, "nothing to quantise")]
    for model, samples, options, message in cases:
        with pytest.raises(sonde.Error, match=message):
            sonde.quantize(model, path, samples, **options)
        assert not path.exists(), message


def test_a_model_that_is_quantised_already_is_refused_unless_forced(tmp_path):
    x = images(2, 16)
    sonde.quantize(cnn(), tmp_path / "q.onnx", {"x": x}, except_nodes=["Gemm_y"])
    with pytest.raises(sonde.Error, match="quantised already.*--force"):
        sonde.quantize(tmp_path / "q.onnx", tmp_path / "r.onnx", {"x": x})
    table = sonde.quantize(tmp_path / "q.onnx", tmp_path / "r.onnx", {"x": x}, force=True)
    assert table[table.node == "Gemm_y"].made.item() == "int8"
    feeds = {"x": x}
    assert sqnr(run(sonde, tmp_path / "q.onnx", feeds)[0], run(sonde, tmp_path / "r.onnx", feeds)[0]) > 25


def test_a_full_disk_is_said(tmp_path):
    with pytest.raises(sonde.Error, match="/dev/full"):
        sonde.quantize(cnn(), "/dev/full", {"x": images(2, 16)})


def test_weights_that_are_not_finite_are_named(tmp_path):
    n = Net()
    n.node("Conv", "x", n.constant(np.full((4, 3, 1, 1), np.inf, np.float32), "broken"), outputs=["y"])
    for kind in ({},):
        with pytest.raises(sonde.Error, match="broken|tensor"):
            sonde.quantize(n.model([2, 3, 16, 16], "y"), tmp_path / "q.onnx", {"x": images(2, 16)}, **kind)
    assert not (tmp_path / "q.onnx").exists()


# ---------------------------------------------------------------- samples
def test_samples_come_from_arrays_folders_and_test_data_alike(tmp_path):
    x = images(4, 16)
    sonde.quantize(cnn(), tmp_path / "a.onnx", {"x": x})
    np.savez(tmp_path / "x.npz", x=x)
    (tmp_path / "files").mkdir()
    for i, one in enumerate(x):
        np.savez(tmp_path / "files" / f"{i}.npz", x=one[None])
        folder = tmp_path / "data" / f"test_data_set_{i}"
        folder.mkdir(parents=True)
        (folder / "input_0.pb").write_bytes(nh.from_array(one[None], "x").SerializeToString())
    for source in ("x.npz", "files", "data"):
        sonde.quantize(cnn(), tmp_path / "b.onnx", tmp_path / source)
        assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes(), source
    table = sonde.quantize(cnn(), tmp_path / "b.onnx", tmp_path / "files", max_samples=3)
    assert table.attrs["samples"] == 3


def test_images_become_batches_where_the_model_has_a_fixed_one(tmp_path):
    n = Net()
    n.node("Conv", n.node("Relu", n.node("Conv", "x", n.weight(4, 3, 3, 3))), n.weight(2, 4, 1, 1), outputs=["y"])
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for i in range(5):
        pixels = rng.integers(0, 256, (40, 50, 3), np.uint8)
        (tmp_path / "images" / f"{i}.ppm").write_bytes(b"P6 50 40 255\n" + pixels.tobytes())
    with pytest.warns(RuntimeWarning, match="the last 1 rows are not used"):
        table = sonde.quantize(n.model([2, 3, 32, 32], "y"), tmp_path / "q.onnx", tmp_path / "images")
    assert table.attrs["samples"] == 2


def test_an_array_with_one_sample_belongs_to_all(tmp_path):
    n = Net()
    n.node("MatMul", n.node("Mul", "x", "s"), n.weight(8, 4), outputs=["y"])
    model = n.model(["batch", 8], "y", extra_inputs=[h.make_tensor_value_info("s", T.FLOAT, [])])
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    table = sonde.quantize(model, tmp_path / "q.onnx", {"x": x, "s": np.float32(2)})
    assert table.attrs["samples"] == 5
    with pytest.raises(sonde.Error, match="no value for the input 's'"):
        sonde.quantize(model, tmp_path / "r.onnx", {"x": x})


def test_files_that_are_read_are_not_overwritten(tmp_path):
    """The samples, the model, and weights beside it; two results need two files."""
    program, model, data = os.environ["SONDE_PROGRAM"], tmp_path / "m.onnx", tmp_path / "m.onnx.data"
    def run(*args):
        return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE)
    assert run("zoo", "save", "tiny_bert", model, "--external-data").returncode == 0
    samples = tmp_path / "s.onnx"
    samples.write_bytes(b"samples")
    before = {path: path.read_bytes() for path in (model, data, samples)}
    out = tmp_path / "q.onnx"
    dynamic = ("quantize", model, "--dynamic", "--no-measure", "-q")
    for args in ([*dynamic, "--external-data=m.onnx.data", "-o", out], [*dynamic, "-o", data],
                 ["quantize", model, "--calibrate", samples, "-o", samples], [*dynamic, "--json", model, "-o", out],
                 [*dynamic, "--json", out, "-o", out], ["sparsify", model, "--json", model],
                 ["compare", model, model, "--precision", "f32,bf16", "--csv", model],
                 ["compare", model, "--precision", "f32,bf16", "--csv", out, "--json", out]):
        done = run(*args)
        assert done.returncode in (1, 2) and done.stderr.startswith("sonde: "), args
        assert not out.exists(), args
    assert before == {path: path.read_bytes() for path in before}


def test_activations_that_are_always_zero_keep_fine_biases(tmp_path):
    """A Relu that calibration never saw open, in front of a convolution with a bias."""
    w = np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1)
    small = np.linspace(-0.03, 0.03, 4, dtype=np.float32)
    nodes = [h.make_node("Conv", ["x", "w", "low"], ["a"], "c0"), h.make_node("Relu", ["a"], ["b"], "r0"),
             h.make_node("Conv", ["b", "w", "small"], ["y"], "c1")]
    constants = [nh.from_array(w, "w"), nh.from_array(np.full(4, -100, np.float32), "low"), nh.from_array(small, "small")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 4, 5, 5])],
                         [h.make_tensor_value_info("y", T.FLOAT, None)], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    x = np.random.default_rng(0).standard_normal((4, 4, 5, 5), np.float32)
    sonde.quantize(tmp_path / "m.onnx", tmp_path / "q.onnx", {"x": x})
    got = sonde.InferenceSession(str(tmp_path / "q.onnx")).run(None, {"x": x[:1]})[0]
    assert np.abs(got - small.reshape(1, 4, 1, 1)).max() < 1e-3
