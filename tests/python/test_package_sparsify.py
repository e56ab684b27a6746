# SPDX-License-Identifier: Apache-2.0
"""sonde.sparsify and `sonde sparsify`: which weights are made zero, that files stay ONNX that other runtimes run, and
what happens with input that makes no sense. The expected zeros are computed here once more, with numpy."""

import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import small_models
import sonde
import sonde.zoo
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
RANDOM = np.random.default_rng(1)


def weight(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def run_program(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


def initializers(path):
    """By name, sparse ones made dense; external data included."""
    graph = onnx.load(path).graph
    found = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    for sparse in graph.sparse_initializer:
        values = numpy_helper.to_array(sparse.values)
        dense = np.zeros(list(sparse.dims), values.dtype)
        dense.reshape(-1)[numpy_helper.to_array(sparse.indices)] = values
        found[sparse.values.name] = dense
    return found


def expected(matrices, ratio, outputs, ks):
    """Zeros in arrays of shape [matrices, outputs, k]: True where an element goes."""
    m, n_out, n_k = matrices.shape
    blocks = [
        (np.sqrt(np.mean(np.square(matrices[i, o : o + outputs, k : k + ks].astype(np.float64)))), (i, o, k))
        for i in range(m)
        for o in range(0, n_out, outputs)
        for k in range(0, n_k, ks)
    ]
    order = sorted(range(len(blocks)), key=lambda at: (blocks[at][0], at))
    gone = np.zeros(matrices.shape, bool)
    for at in order[: int(np.floor(ratio * len(blocks) + 0.5))]:
        i, o, k = blocks[at][1]
        gone[i, o : o + outputs, k : k + ks] = True
    return gone


def product(w, op="MatMul", **attributes):
    return small_models.model([(op, ["x", "w"], ["y"], "product", attributes)],
                              [value("x", helper.np_dtype_to_tensor_dtype(w.dtype), ["M", None])],
                              [value("y", helper.np_dtype_to_tensor_dtype(w.dtype), ["M", None])],
                              [numpy_helper.from_array(w, "w")])


def convolution(w, op="Conv", channels=None, **attributes):
    rank = w.ndim - 2
    return small_models.model([(op, ["x", "w"], ["y"], "conv", attributes)],
                              [value("x", shape=[1, channels or w.shape[1], *[9] * rank])],
                              [value("y", shape=[1, None, *[None] * rank])], [numpy_helper.from_array(w, "w")])


def pruned(model, path, *arguments, **options):
    frame = sonde.sparsify(model, path, *arguments, **options)
    # onnx infers no shapes of operators that read sparse initializers.
    onnx.checker.check_model(str(path), full_check=not options.get("sparse_initializers"))
    return frame


# ------------------------------------------------------------------ patterns
@pytest.mark.parametrize("pattern,outputs,ks", [("4x1", 4, 1), ("1x16", 1, 16), ("16x1", 16, 1), ("16x4", 16, 4),
                                                ("1x1", 1, 1), ("3x5", 3, 5)])
@pytest.mark.parametrize("kind", ["matmul", "left", "gemm", "gemm_b", "conv1d", "conv2d", "conv3d", "groups", "transpose"])
def test_the_smallest_blocks_go(tmp_path, kind, pattern, outputs, ks):
    back = None
    if kind in ("matmul", "gemm", "gemm_b"):
        w = weight(33, 50)  # neither size divides by most blocks
        transposed = kind == "gemm_b"
        model = product(w, "MatMul" if kind == "matmul" else "Gemm", **({"transB": 1} if transposed else {}))
        matrices = (w if transposed else w.T)[None]
    elif kind == "left":
        w = weight(2, 20, 18)
        model = small_models.model([("MatMul", ["w", "x"], ["y"])], [value("x", shape=[18, 3])],
                                   [value("y", shape=[2, 20, 3])], [numpy_helper.from_array(w, "w")])
        matrices = w
    elif kind == "groups":
        w = weight(24, 6, 3, 3)
        model = convolution(w, channels=12, group=2)
        matrices = w.reshape(2, 12, 6, 9).transpose(3, 0, 1, 2).reshape(18, 12, 6)
        back = "groups"
    elif kind == "transpose":
        w = weight(18, 10, 2, 2)  # [I, O, taps]
        model = convolution(w, "ConvTranspose", channels=18)
        matrices = w.transpose(2, 3, 1, 0).reshape(4, 10, 18)
    else:
        rank = int(kind[4])
        w = weight(20, 17, *[3] * rank)
        model = convolution(w)
        matrices = w.reshape(20, 17, -1).transpose(2, 0, 1)
    path = tmp_path / "out.onnx"
    frame = pruned(model, path, ratio=0.7, pattern=pattern)
    after = initializers(path)["w"]
    if kind in ("matmul", "gemm"):
        after_matrices = after.T[None]
    elif kind == "gemm_b":
        after_matrices = after[None]
    elif kind == "left":
        after_matrices = after
    elif back == "groups":
        after_matrices = after.reshape(2, 12, 6, 9).transpose(3, 0, 1, 2).reshape(18, 12, 6)
    elif kind == "transpose":
        after_matrices = after.transpose(2, 3, 1, 0).reshape(4, 10, 18)
    else:
        after_matrices = after.reshape(20, 17, -1).transpose(2, 0, 1)
    gone = expected(matrices, 0.7, outputs, ks)
    assert np.array_equal(after_matrices == 0, gone)
    assert np.array_equal(after_matrices[~gone], matrices[~gone])
    assert frame.zeros_after[0] == gone.sum() and frame.zeros_before[0] == 0
    assert frame.norm_kept[0] == pytest.approx(np.linalg.norm(after) / np.linalg.norm(w), rel=1e-6)
    assert frame.pattern[0] == pattern and frame["shape"][0] == "x".join(map(str, w.shape))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("inside", [0, 1])
def test_batches_inside_of_a_matrix_are_matrices_of_their_own(tmp_path, left, turned, inside):
    """FusedMatMul as ONNX Runtime's optimiser writes it: transBatch puts the batches between the two axes."""
    matrices = weight(3, 20, 18)  # of each batch: outputs, k
    lies = matrices if left != bool(turned) else matrices.swapaxes(1, 2)
    lies = np.ascontiguousarray(np.moveaxis(lies, 0, 1) if inside else lies)
    side = "A" if left else "B"
    x = [3, 18, 4] if left else [3, 4, 18]
    node = helper.make_node("FusedMatMul", ["w", "x"] if left else ["x", "w"], ["y"], "product", domain="com.microsoft",
                            **{"trans" + side: turned, "transBatch" + side: inside})
    graph = helper.make_graph([node], "g", [value("x", shape=x)], [value("y", shape=[3, None, None])],
                              [numpy_helper.from_array(lies, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=9)
    path = tmp_path / "out.onnx"
    sonde.sparsify(model, path, ratio=0.7, pattern="4x1")
    after = initializers(path)["w"]
    after = np.moveaxis(after, 1, 0) if inside else after
    after = after if left != bool(turned) else after.swapaxes(1, 2)
    assert np.array_equal(after == 0, expected(matrices, 0.7, 4, 1))
    feed = RANDOM.standard_normal(x).astype(np.float32)
    want = after @ feed if left else feed @ after.swapaxes(1, 2)
    np.testing.assert_allclose(sonde.InferenceSession(str(path)).run(None, {"x": feed})[0], want, atol=1e-4)


@pytest.mark.parametrize("k", [32, 33, 34, 35])
def test_two_of_four_neighbours_along_k_are_zero(tmp_path, k):
    w = weight(k, 12)
    pruned(product(w), tmp_path / "out.onnx", pattern="2:4")
    after = initializers(tmp_path / "out.onnx")["w"]
    for at in range(0, k, 4):
        four, left = w[at : at + 4], after[at : at + 4]
        zeros = len(four) // 2
        assert np.all((left == 0).sum(axis=0) == zeros)
        for column in range(w.shape[1]):
            kept = np.abs(four[left[:, column] != 0, column])
            assert not zeros or np.abs(four[left[:, column] == 0, column]).max() <= kept.min()


def test_two_of_four_of_a_convolution_are_input_channels_at_one_tap(tmp_path):
    w = weight(8, 16, 3, 3)
    pruned(convolution(w), tmp_path / "out.onnx", pattern="2:4")
    after = initializers(tmp_path / "out.onnx")["w"].reshape(8, 4, 4, 9)
    assert np.all((after == 0).sum(axis=2) == 2)


def test_equal_blocks_go_by_their_index(tmp_path):
    w = np.ones((8, 8), np.float32)
    pruned(product(w), tmp_path / "out.onnx", ratio=0.5, pattern="4x1")
    # Blocks are counted along k first, then along the outputs: 8 of 16 are those of the first 4 columns.
    assert np.array_equal(initializers(tmp_path / "out.onnx")["w"] == 0, np.arange(8)[None].repeat(8, 0) < 4)


def test_equal_input_gives_equal_files(tmp_path):
    for name in ("a", "b"):
        sonde.sparsify("zoo:tiny_resnet", tmp_path / f"{name}.onnx", pattern="16x4")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_global_takes_one_threshold_for_all(tmp_path):
    small, large = weight(16, 16) * 0.01, weight(16, 16)
    model = small_models.model([("MatMul", ["x", "a"], ["h"]), ("MatMul", ["h", "b"], ["y"])], [value("x", shape=[1, 16])],
                               [value("y", shape=[1, 16])],
                               [numpy_helper.from_array(small, "a"), numpy_helper.from_array(large, "b")])
    frame = pruned(model, tmp_path / "out.onnx", ratio=0.5, global_=True)
    assert list(frame.zeros_after) == [256, 0]
    frame = pruned(model, tmp_path / "out.onnx", ratio=0.5)
    assert list(frame.zeros_after) == [128, 128]


def test_the_ratio_counts_what_is_zero_already(tmp_path):
    first = pruned("zoo:tiny_mlp", tmp_path / "a.onnx", ratio=0.6)
    again = pruned(tmp_path / "a.onnx", tmp_path / "b.onnx", ratio=0.6)
    assert list(again.zeros_before) == list(first.zeros_after) == list(again.zeros_after)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert list(again.norm_kept) == [1.0] * len(again)


@pytest.mark.parametrize("ratio,share", [(0, 0), (1, 1)])
def test_none_and_all(tmp_path, ratio, share):
    frame = pruned("zoo:tiny_mlp", tmp_path / "a.onnx", ratio=ratio)
    assert list(frame.zeros_after) == list(frame.elements * share)


# ------------------------------------------------------------------ types
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_of_floats(tmp_path, dtype):
    w = weight(16, 12, dtype=dtype)
    pruned(product(w), tmp_path / "out.onnx", ratio=0.5)
    after = initializers(tmp_path / "out.onnx")["w"]
    assert after.dtype == dtype
    assert np.array_equal((after == 0).T[None], expected(w.T[None], 0.5, 4, 1))


def test_bf16(tmp_path):
    w = helper.make_tensor("w", TensorProto.BFLOAT16, [8, 8], weight(8, 8).ravel())
    model = small_models.model([("MatMul", ["x", "w"], ["y"])], [value("x", TensorProto.BFLOAT16, [1, 8])],
                               [value("y", TensorProto.BFLOAT16, [1, 8])], [w])
    frame = pruned(model, tmp_path / "out.onnx", ratio=0.5)
    assert frame.zeros_after[0] == 32 and frame.dtype[0] == "bf16"


def test_huge_and_odd_numbers_are_kept(tmp_path):
    w = np.full((4, 8), 1e-3, np.float32)
    w[0], w[1] = np.nan, np.inf
    frame = pruned(product(w), tmp_path / "out.onnx", ratio=0.5, pattern="1x1")
    after = initializers(tmp_path / "out.onnx")["w"]
    assert np.all(after[2:] == 0) and np.all(np.isnan(after[0])) and np.all(np.isinf(after[1]))
    assert np.isnan(frame.norm_kept[0])
    big = weight(4, 8, dtype=np.float64) * 1e200
    pruned(product(big), tmp_path / "out.onnx", ratio=0.5, pattern="1x1")
    assert np.array_equal((initializers(tmp_path / "out.onnx")["w"] == 0).T[None], expected(big.T[None] / 1e200, 0.5, 1, 1))


@pytest.mark.parametrize("channels", [False, True])
def test_zero_of_a_quantised_weight_is_its_zero_point(tmp_path, channels):
    w = RANDOM.integers(0, 256, (16, 12)).astype(np.uint8)
    n = 12 if channels else 1
    scale = RANDOM.uniform(0.1, 10, n).astype(np.float32)
    zero = RANDOM.integers(100, 150, n).astype(np.uint8)
    shape = [n] if channels else []
    model = small_models.model(
        [("DequantizeLinear", ["w", "s", "z"], ["f"], "dq", {"axis": 1}), ("MatMul", ["x", "f"], ["y"])],
        [value("x", shape=[2, 16])], [value("y", shape=[2, 12])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(scale.reshape(shape), "s"),
         numpy_helper.from_array(zero.reshape(shape), "z")])
    pruned(model, tmp_path / "out.onnx", ratio=0.5)
    after = initializers(tmp_path / "out.onnx")["w"]
    meaning = (w.astype(np.float64) - zero) * scale
    gone = expected(meaning.T[None], 0.5, 4, 1)[0].T
    assert np.array_equal(after, np.where(gone, zero, w))


def test_blocks_of_scales_are_followed(tmp_path):
    w = RANDOM.integers(-128, 128, (8, 12)).astype(np.int8)
    scale = RANDOM.uniform(0.1, 10, (2, 12)).astype(np.float32)
    zero = RANDOM.integers(-9, 9, (2, 12)).astype(np.int8)
    model = small_models.model(
        [("DequantizeLinear", ["w", "s", "z"], ["f"], "dq", {"axis": 0, "block_size": 4}), ("MatMul", ["x", "f"], ["y"])],
        [value("x", shape=[2, 8])], [value("y", shape=[2, 12])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero, "z")], opset=21)
    pruned(model, tmp_path / "out.onnx", ratio=0.5)
    meaning = (w.astype(np.float64) - zero.repeat(4, 0)) * scale.repeat(4, 0)
    gone = expected(meaning.T[None], 0.5, 4, 1)[0].T
    assert np.array_equal(initializers(tmp_path / "out.onnx")["w"], np.where(gone, zero.repeat(4, 0), w))


def test_qlinear_operators_have_weights(tmp_path):
    w = RANDOM.integers(-127, 128, (8, 4, 1, 1)).astype(np.int8)
    scale = RANDOM.uniform(0.1, 1, 8).astype(np.float32)
    one, nought = np.float32(0.1), np.uint8(3)
    names = ["xs", "xz", "w", "ws", "wz", "ys", "yz"]
    arrays = [one, nought, w, scale, np.zeros(8, np.int8), one, nought]
    model = small_models.model([("QLinearConv", ["x", *names], ["y"])], [value("x", TensorProto.UINT8, [1, 4, 5, 5])],
                               [value("y", TensorProto.UINT8, [1, 8, 5, 5])],
                               [numpy_helper.from_array(np.asarray(a), n) for a, n in zip(arrays, names, strict=True)])
    pruned(model, tmp_path / "out.onnx", ratio=0.5)
    meaning = w[:, :, 0, 0].astype(np.float64) * scale[:, None]
    gone = expected(meaning[None], 0.5, 4, 1)[0]
    assert np.array_equal(initializers(tmp_path / "out.onnx")["w"][:, :, 0, 0], np.where(gone, 0, w[:, :, 0, 0]))


def test_built_in_quantised_models_are_pruned(tmp_path):
    frame = pruned("zoo:tiny_resnet_int8", tmp_path / "out.onnx", ratio=0.8)
    assert set(frame.dtype) == {"i8"} and not any(frame.skipped)
    assert 0.78 < frame.zeros_after.sum() / frame.elements.sum() < 0.85


# ------------------------------------------------------------------ who reads a weight
def test_weights_behind_nodes_that_only_hand_them_on(tmp_path):
    w = weight(12, 16, dtype=np.float16)  # [N, K]: turned by the Transpose
    model = small_models.model(
        [("Identity", ["w"], ["i"]), ("Cast", ["i"], ["c"], "cast", {"to": TensorProto.FLOAT}),
         ("Transpose", ["c"], ["t"], "turn", {"perm": [1, 0]}), ("MatMul", ["x", "t"], ["y"], "product")],
        [value("x", shape=[2, 16])], [value("y", shape=[2, 12])], [numpy_helper.from_array(w, "w")])
    frame = pruned(model, tmp_path / "out.onnx", ratio=0.5)
    assert frame.node[0] == "product"
    assert np.array_equal((initializers(tmp_path / "out.onnx")["w"] == 0)[None], expected(w[None], 0.5, 4, 1))


def test_constant_nodes_are_weights(tmp_path):
    w = weight(16, 8)
    model = small_models.model([("Constant", [], ["w"], {"value": numpy_helper.from_array(w)}), ("MatMul", ["x", "w"], ["y"])],
                               [value("x", shape=[1, 16])], [value("y", shape=[1, 8])])
    pruned(model, tmp_path / "out.onnx", ratio=0.5)
    after = numpy_helper.to_array(onnx.load(tmp_path / "out.onnx").graph.node[0].attribute[0].t)
    assert np.array_equal((after == 0).T[None], expected(w.T[None], 0.5, 4, 1))


def bodies(weight_in_body):
    """An If whose two bodies multiply by `w`, which the model or each body has."""
    w = weight(8, 8)
    own = [numpy_helper.from_array(w, "w")] if weight_in_body else []
    branches = [helper.make_graph([helper.make_node("MatMul", ["x", "w"], [f"o{k}"], f"product{k}")], f"b{k}", [],
                                  [value(f"o{k}", shape=[1, 8])], own) for k in range(2)]
    return w, small_models.model([("If", ["c"], ["y"], "if", {"then_branch": branches[0], "else_branch": branches[1]})],
                                 [value("c", TensorProto.BOOL, []), value("x", shape=[1, 8])], [value("y", shape=[1, 8])],
                                 [] if weight_in_body else [numpy_helper.from_array(w, "w")])


@pytest.mark.parametrize("weight_in_body", [False, True])
def test_weights_in_bodies_of_control_flow(tmp_path, weight_in_body):
    w, model = bodies(weight_in_body)
    frame = pruned(model, tmp_path / "out.onnx", ratio=0.5)
    assert len(frame) == (2 if weight_in_body else 1)
    assert frame.zeros_after.sum() == 32 * len(frame)
    if not weight_in_body:
        assert sorted(frame.node[0].split(", ")) == ["product0", "product1"]
        assert np.array_equal((initializers(tmp_path / "out.onnx")["w"] == 0).T[None], expected(w.T[None], 0.5, 4, 1))
    x = weight(1, 8)
    sparse = np.where(expected(w.T[None], 0.5, 4, 1)[0].T, 0, w)
    for c in (True, False):
        for runtime in (sonde, onnxruntime):
            (y,) = runtime.InferenceSession(str(tmp_path / "out.onnx")).run(None, {"c": np.array(c), "x": x})
            assert np.allclose(y, x @ sparse, rtol=1e-5, atol=1e-6)


def skipped(nodes, w, inputs=(), outputs=(), initial=()):
    model = small_models.model([*nodes, ("MatMul", ["x", "other"], ["z"], "other")],
                               [value("x", shape=[8, 8]), *inputs], [value("z", shape=[8, 8]), *outputs],
                               [numpy_helper.from_array(w, "w"), numpy_helper.from_array(weight(8, 8), "other"), *initial])
    frame = sonde.sparsify(model, ratio=0.5)
    return frame.set_index("weight").loc["w"]


def test_weights_that_have_to_stay_say_why():
    w, y = weight(8, 8), value("y", shape=[8, 8])
    use = ("MatMul", ["x", "w"], ["y"], "product")
    assert "input of the model" in skipped([use], w, [value("w", shape=[8, 8])], [y]).skipped
    assert "'take' (Gather) reads it" in skipped(
        [use, ("Gather", ["w", "i"], ["g"], "take")], w, [], [y, value("g", shape=[1, 8])],
        [numpy_helper.from_array(np.array([0]), "i")]).skipped
    assert "output of the model" in skipped([use, ("Identity", ["w"], ["o"])], w, [], [y, value("o", shape=[8, 8])]).skipped
    assert "different orientations" in skipped(
        [use, ("Gemm", ["x", "w"], ["g"], "gemm", {"transB": 1})], w, [], [y, value("g", shape=[8, 8])]).skipped
    row = skipped([use, ("MatMul", ["x", "w"], ["g"], "twin")], w, [], [y, value("g", shape=[8, 8])])
    assert row.skipped == "" and row.node == "product, twin" and row.zeros_after == 32


def test_depthwise_convolutions_are_left_unless_they_are_named(tmp_path):
    w = weight(16, 1, 3, 3)
    with pytest.raises(sonde.Error, match="depthwise"):
        sonde.sparsify(convolution(w, channels=16, group=16), ratio=0.5)
    frame = pruned(convolution(w, channels=16, group=16), tmp_path / "out.onnx", ratio=0.5, only="conv")
    assert frame.zeros_after[0] == 72


# ------------------------------------------------------------------ selecting
def test_only_and_except_take_names_wildcards_and_weights():
    def changed(**options):
        frame = sonde.sparsify("zoo:tiny_cnn", **options)
        return {row.weight for row in frame.itertuples() if not row.skipped}

    everything = changed()
    assert changed(only="/fc/Gemm") == {"fc.weight"}
    assert changed(only=["/fc/Gemm", "/expand/Conv"]) == {"fc.weight", "expand.weight"}
    assert changed(only="/fc/Gemm,/expand/Conv") == {"fc.weight", "expand.weight"}
    assert changed(only="expand.weight") == {"expand.weight"}
    assert changed(except_="/fc/*") == everything - {"fc.weight"}
    assert changed(only="*conv*", except_="/stem/????/Conv") == {"pointwise.conv.weight", "depthwise.conv.weight"}


def test_names_with_commas_and_stars_are_names(tmp_path):
    w = weight(8, 8)
    model = small_models.model([("MatMul", ["x", "a"], ["h"], "one,two*"), ("MatMul", ["h", "b"], ["y"], "one")],
                               [value("x", shape=[1, 8])], [value("y", shape=[1, 8])],
                               [numpy_helper.from_array(w, "a"), numpy_helper.from_array(w + 1, "b")])
    assert list(sonde.sparsify(model, only="one,two*").skipped) == ["", "not selected"]


def test_a_node_without_a_name_is_called_as_its_output():
    model = small_models.model([("MatMul", ["x", "w"], ["y"])], [value("x", shape=[1, 8])], [value("y", shape=[1, 8])],
                               [numpy_helper.from_array(weight(8, 8), "w")])
    assert sonde.sparsify(model, only="y").node[0] == "y"


def test_a_shared_weight_is_pruned_only_if_all_its_nodes_are_selected():
    model = small_models.model([("MatMul", ["x", "w"], ["h"], "a"), ("MatMul", ["h", "w"], ["y"], "b")],
                               [value("x", shape=[1, 8])], [value("y", shape=[1, 8])],
                               [numpy_helper.from_array(weight(8, 8), "w")])
    with pytest.raises(sonde.Error, match="'b' reads it, too, and is not selected"):
        sonde.sparsify(model, only="a")
    assert sonde.sparsify(model, only=["a", "b"]).zeros_after[0] > 0


# ------------------------------------------------------------------ files
@pytest.mark.parametrize("name", ["tiny_cnn", "tiny_resnet", "tiny_bert", "tiny_gpt2", "tiny_resnet_int8"])
@pytest.mark.parametrize("sparse", [False, True])
def test_onnxruntime_computes_the_same(tmp_path, name, sparse):
    """Of the largest number: both round sums of f32 in another order (3e-7 was seen); in int8, where the results were
    equal, the last step of the output may fall to the other side, which is 1/127."""
    path = tmp_path / "out.onnx"
    pruned(f"zoo:{name}", path, sparse_initializers=sparse)
    session = sonde.InferenceSession(str(path))
    feeds = session.random_inputs(seed=1)
    theirs = onnxruntime.InferenceSession(str(path)).run(None, feeds)
    for a, b in zip(session.run(None, feeds), theirs, strict=True):
        assert np.abs(a - b).max() <= (0.01 if "int8" in name else 1e-5) * np.abs(b).max()


def test_sparse_initializers_hold_the_same_numbers_and_take_less_room(tmp_path):
    for sparse in (False, True):
        pruned("zoo:tiny_resnet", tmp_path / f"{sparse}.onnx", sparse_initializers=sparse)
    dense, sparse = initializers(tmp_path / "False.onnx"), initializers(tmp_path / "True.onnx")
    assert dense.keys() == sparse.keys()
    assert all(np.array_equal(dense[name], sparse[name]) for name in dense)
    assert len(onnx.load(tmp_path / "True.onnx").graph.sparse_initializer) > 3
    assert (tmp_path / "True.onnx").stat().st_size < 0.5 * (tmp_path / "False.onnx").stat().st_size
    feeds = sonde.InferenceSession(str(tmp_path / "True.onnx")).random_inputs(seed=1)
    results = [sonde.InferenceSession(str(tmp_path / f"{k}.onnx")).run(None, feeds)[0] for k in (False, True)]
    assert np.array_equal(*results)
    pruned("zoo:tiny_resnet", tmp_path / "half.onnx", ratio=0.5, sparse_initializers=True)  # would take more room
    assert not onnx.load(tmp_path / "half.onnx").graph.sparse_initializer


def test_a_model_replaces_itself(tmp_path):
    path = tmp_path / "model.onnx"
    sonde.zoo.save("tiny_resnet", path)
    sonde.sparsify(path, tmp_path / "expected.onnx")
    assert run_program("sparsify", path, "-o", path, "-q").returncode == 0
    assert path.read_bytes() == (tmp_path / "expected.onnx").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["expected.onnx", "model.onnx"]


def test_the_program_and_the_package_agree(tmp_path):
    done = run_program("sparsify", "zoo:tiny_resnet", "--ratio", "80%", "--pattern", "1x16", "-o", tmp_path / "a.onnx",
                       "--json", "-")
    report = json.loads(done.stdout)
    frame = sonde.sparsify("zoo:tiny_resnet", tmp_path / "b.onnx", ratio=0.8, pattern="1x16")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert report["schema"] == "sonde.sparsify/1" and len(report["weights"]) == len(frame)
    assert [row["zeros_after"] for row in report["weights"]] == list(frame.zeros_after)
    assert report["total"]["zeros_after"] == frame.attrs["total"]["zeros_after"] == frame.zeros_after.sum()


# ------------------------------------------------------------------ what makes no sense
@pytest.mark.parametrize("options,words", [
    ({"ratio": 1.5}, "0 to 1"), ({"ratio": -0.1}, "0 to 1"), ({"ratio": float("nan")}, "0 to 1"),
    ({"pattern": "4by1"}, "unknown pattern '4by1'"), ({"pattern": ""}, "unknown pattern"),
    ({"pattern": "0x4"}, "unknown pattern"), ({"pattern": "99999999999999999999x1"}, "unknown pattern"),
    ({"pattern": "1:4"}, "2:4"), ({"pattern": "2:4", "ratio": 0.9}, "0.5, not 0.9"),
    ({"only": "/fc/Gem"}, "similar names: '/fc/Gemm'"), ({"except_": ["nothing like it at all"]}, "no node and no weight"),
    ({"only": "/global_pool*"}, "none of the selected nodes|no node"), ({"only": ""}, "empty"),
    ({"external_data": "folder/data"}, "without '/'"), ({"external_data": ".."}, "without '/'"),
    ({"external_data": "out.onnx"}, "both"),
])
def test_options_that_make_no_sense_are_refused_and_leave_no_file(tmp_path, options, words):
    with pytest.raises(sonde.Error, match=words):
        sonde.sparsify("zoo:tiny_cnn", tmp_path / "out.onnx", **options)
    assert os.listdir(tmp_path) == []


def test_a_model_without_weights_is_refused(tmp_path):
    with pytest.raises(sonde.Error, match="no weights to prune"):
        sonde.sparsify(small_models.add(), tmp_path / "out.onnx")
    with pytest.raises(sonde.NoSuchFile):
        sonde.sparsify(tmp_path / "none.onnx", tmp_path / "out.onnx")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("perm", [[0, 0], [1, 1], [0, 2], [-1, 0], [0, 1, 2]])
def test_a_transpose_that_is_none_is_not_followed(tmp_path, perm):
    model = small_models.model([("Transpose", ["w"], ["t"], "turn", {"perm": perm}), ("MatMul", ["x", "t"], ["y"])],
                               [value("x", shape=[1, 8])], [value("y")], [numpy_helper.from_array(weight(8, 8), "w")])
    with pytest.raises(sonde.Error, match="no weights to prune"):
        sonde.sparsify(model, tmp_path / "out.onnx")


def test_a_full_disk_leaves_the_old_file(tmp_path):
    old = tmp_path / "old.onnx"
    old.write_bytes(b"old")
    limited = ["bash", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$@"', "-", PROGRAM, "sparsify", "zoo:tiny_resnet", "-o", old]
    for more in ([], ["--external-data"]):
        done = subprocess.run([*map(str, limited), *more], capture_output=True, text=True)
        assert done.returncode == 1 and "cannot write" in done.stderr and str(old) in done.stderr
        assert old.read_bytes() == b"old" and os.listdir(tmp_path) == ["old.onnx"]


def test_devices_take_models_but_no_external_data():
    full = pathlib.Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    with pytest.raises(sonde.Error, match="No space left"):
        sonde.sparsify("zoo:tiny_cnn", full)
    with pytest.raises(sonde.Error, match="no regular file"):
        sonde.sparsify("zoo:tiny_cnn", full, external_data=True)
