# SPDX-License-Identifier: Apache-2.0
"""Models saved with external data: where weights lie, that other programs find them, that both files appear together, and
that no other model loses its weights. The limit of 2 GiB is lowered, so that the files are small."""

import os
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

import sonde
import sonde.zoo

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def save(*arguments):
    assert run(*arguments) == (0, "")


def outside(path):
    """Of tensors in external data: name, location, offset and length."""
    model = onnx.load(path, load_external_data=False)
    found = []
    for t in model.graph.initializer:
        if t.data_location == onnx.TensorProto.EXTERNAL:
            entries = {e.key: e.value for e in t.external_data}
            found.append((t.name, entries["location"], int(entries["offset"]), int(entries["length"])))
    return found


def same_results(path, name):
    onnx.checker.check_model(str(path), full_check=True)
    plain = sonde.InferenceSession(f"zoo:{name}")
    feeds = plain.random_inputs(seed=1)
    ours = sonde.InferenceSession(str(path)).run(None, feeds)
    theirs = onnxruntime.InferenceSession(str(path)).run(None, feeds)
    for a, b, c in zip(plain.run(None, feeds), ours, theirs, strict=True):
        assert np.array_equal(a, b)
        assert np.abs(a - c).max() <= 1e-5 * np.abs(c).max()  # sums of f32 in another order


def test_large_weights_lie_in_a_second_file_at_whole_pages(tmp_path):
    path = tmp_path / "m.onnx"
    save("zoo", "save", "tiny_resnet", path, "--external-data")
    rows = outside(path)
    size = (tmp_path / "m.onnx.data").stat().st_size
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"] and len(rows) > 3
    end = 0
    for _, location, offset, length in rows:
        assert location == "m.onnx.data" and offset % 4096 == 0 and offset >= end and length >= 1024
        end = offset + length
    assert end == size
    same_results(path, "tiny_resnet")


def test_a_model_above_the_limit_gets_a_second_file_and_one_below_it_does_not(tmp_path):
    save("zoo", "save", "tiny_resnet", tmp_path / "large.onnx", "--inline-limit", "10K")
    save("zoo", "save", "tiny_resnet", tmp_path / "small.onnx", "--inline-limit", "10M")
    assert sorted(os.listdir(tmp_path)) == ["large.onnx", "large.onnx.data", "small.onnx"]
    same_results(tmp_path / "large.onnx", "tiny_resnet")


@pytest.mark.parametrize("verb", [["zoo", "save", "tiny_bert", "OUT"], ["sparsify", "zoo:tiny_bert", "--ratio", "0", "-q", "-o", "OUT"],
                                  ["inspect", "zoo:tiny_bert", "--no-optimize", "-q", "-o", "OUT"]])
def test_every_verb_that_saves_takes_the_options(tmp_path, verb):
    arguments = [str(tmp_path / "m.onnx") if a == "OUT" else a for a in verb]
    save(*arguments, "--external-data=weights.bin")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "weights.bin"]
    assert {row[1] for row in outside(tmp_path / "m.onnx")} == {"weights.bin"}
    same_results(tmp_path / "m.onnx", "tiny_bert")


def test_the_graph_after_the_passes_can_be_saved_so(tmp_path):
    save("inspect", "zoo:tiny_resnet", "--optimized", "-q", "-o", tmp_path / "m.onnx", "--inline-limit", "1K")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    assert run("run", tmp_path / "m.onnx", "-q")[0] == 0


def test_weights_of_bodies_and_of_less_than_a_byte_are_found_again(tmp_path):
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    w = rng.standard_normal((32, 32)).astype(np.float32)
    nibbles = helper.make_tensor("q", TensorProto.INT4, [64, 64], rng.integers(-8, 8, 4096))
    body = [helper.make_graph([helper.make_node("MatMul", ["x", "w"], [f"o{k}"])], f"b{k}", [],
                              [helper.make_tensor_value_info(f"o{k}", TensorProto.FLOAT, [32, 32])],
                              [numpy_helper.from_array(w + k, "w")]) for k in range(2)]
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=body[0], else_branch=body[1]),
         helper.make_node("DequantizeLinear", ["q", "s"], ["z"])], "g",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 32]), helper.make_tensor_value_info("z", TensorProto.FLOAT, [64, 64])],
        [nibbles, numpy_helper.from_array(np.float32(0.5), "s")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "a.onnx")
    session = sonde.InferenceSession(str(tmp_path / "a.onnx"))
    save("sparsify", tmp_path / "a.onnx", "--ratio", "0", "-q", "-o", tmp_path / "b.onnx", "--external-data")
    assert (tmp_path / "b.onnx.data").stat().st_size == 2 * 4096 + 2048  # the bodies', and 4096 nibbles
    onnx.checker.check_model(str(tmp_path / "b.onnx"))
    x = rng.standard_normal((32, 32)).astype(np.float32)
    for c in (True, False):
        feeds = {"c": np.array(c), "x": x}
        for runtime in (sonde, onnxruntime):
            for a, b in zip(session.run(None, feeds), runtime.InferenceSession(str(tmp_path / "b.onnx")).run(None, feeds), strict=True):
                assert np.allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_model_with_external_data_replaces_itself(tmp_path):
    path = tmp_path / "m.onnx"
    save("zoo", "save", "tiny_resnet", path, "--external-data")
    save("sparsify", path, "-q", "-o", path, "--external-data")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    sonde.sparsify("zoo:tiny_resnet", tmp_path / "plain.onnx")
    feeds = sonde.InferenceSession(str(path)).random_inputs(seed=1)
    results = [sonde.InferenceSession(str(p)).run(None, feeds)[0] for p in (path, tmp_path / "plain.onnx")]
    assert np.array_equal(*results)
    save("sparsify", path, "-q", "-o", path)  # now without
    assert not outside(path)


def test_weights_of_another_model_are_not_replaced(tmp_path):
    save("zoo", "save", "tiny_resnet", tmp_path / "m.onnx", "--external-data=w.bin")
    before = (tmp_path / "w.bin").read_bytes()
    code, text = run("sparsify", tmp_path / "m.onnx", "-q", "-o", tmp_path / "n.onnx", "--external-data=w.bin")
    assert code == 1 and "was read from it" in text
    code, text = run("sparsify", tmp_path / "m.onnx", "-q", "-o", tmp_path / "n.onnx", "--external-data=m.onnx")
    assert code == 1 and "was read from it" in text
    os.rename(tmp_path / "w.bin", tmp_path / "w.onnx")
    data = (tmp_path / "m.onnx").read_bytes().replace(b"w.bin", b"w.xyz")
    (tmp_path / "m.onnx").write_bytes(data)
    os.rename(tmp_path / "w.onnx", tmp_path / "w.xyz")
    os.symlink("w.xyz", tmp_path / "link.onnx")
    code, text = run("sparsify", tmp_path / "m.onnx", "-q", "-o", tmp_path / "link.onnx")
    assert code == 1 and "contains weights of the model" in text
    assert (tmp_path / "w.xyz").read_bytes() == before and sorted(os.listdir(tmp_path)) == ["link.onnx", "m.onnx", "w.xyz"]


def test_a_second_file_that_cannot_be_written_leaves_no_model(tmp_path):
    os.mkdir(tmp_path / "m.onnx.data")
    code, text = run("zoo", "save", "tiny_resnet", tmp_path / "m.onnx", "--external-data")
    assert code == 1 and "m.onnx.data" in text and os.listdir(tmp_path) == ["m.onnx.data"]


def test_the_package_takes_the_option(tmp_path):
    sonde.zoo.save("tiny_cnn", tmp_path / "m.onnx", external_data="d.bin")
    sonde.sparsify("zoo:tiny_cnn", tmp_path / "n.onnx", external_data=True)
    sonde.sparsify("zoo:tiny_cnn", tmp_path / "l.onnx", inline_limit=3000)
    assert sorted(os.listdir(tmp_path)) == ["d.bin", "l.onnx", "l.onnx.data", "m.onnx", "n.onnx", "n.onnx.data"]
    same_results(tmp_path / "m.onnx", "tiny_cnn")
