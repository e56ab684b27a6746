# SPDX-License-Identifier: Apache-2.0
"""Files made by the onnx package are read by the program, and files it writes satisfy onnx.checker.

SONDE_PROGRAM names the program; without it everything here is skipped.
"""

import os
import pathlib
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")

from onnx import TensorProto as T  # noqa: E402
from onnx import external_data_helper  # noqa: E402
from onnx import helper as h  # noqa: E402
from onnx import numpy_helper as nh  # noqa: E402

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

OPSETS = [h.make_opsetid("", 21)]
TYPES = sorted(v for v in T.DataType.values() if v != T.UNDEFINED)


def sonde(*args):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE)


def inspect(path):
    done = sonde("inspect", path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refuse(path):
    """The program ends with 1 and one sentence, not with a signal."""
    done = sonde("inspect", path)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def value(name, dtype=T.FLOAT, shape=("N", 4)):
    return h.make_tensor_value_info(name, dtype, shape)


def make_model(nodes, inputs, outputs, initializers=(), functions=(), opsets=None, ir_version=10, **kw):
    graph = h.make_graph(nodes, "tests", inputs, outputs, list(initializers), **kw)
    return h.make_model(graph, opset_imports=opsets or OPSETS, functions=list(functions), ir_version=ir_version)


def relu(initializers=(), **kw):
    return make_model([h.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y")], initializers, **kw)


def save(model, folder, name="m.onnx", **kw):
    path = folder / name
    onnx.save(model, path, **kw)
    return path


# ---- what can be read ----


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
@pytest.mark.parametrize("dtype", TYPES, ids=[T.DataType.Name(t).lower() for t in TYPES])
def test_constants_of_every_type_are_read(tmp_path, dtype, raw):
    if dtype == T.STRING:
        if raw:
            pytest.skip("strings have no raw form")
        tensor = h.make_tensor("w", dtype, [3], [b"one", b"", b"three"])
    else:
        tensor = h.make_tensor("w", dtype, [3], np.array([0, 1, 1], np.float32))
        if raw:
            array = nh.to_array(tensor)
            tensor = nh.from_array(array, "w")
            tensor.data_type = dtype
    # An input of each type with a default: no operator has to understand it.
    model = make_model(
        [h.make_node("Relu", ["x"], ["y"])],
        [value("x"), value("w", dtype, [3])],
        [value("y")],
        [tensor],
        ir_version=13,
    )
    assert "Relu" in inspect(save(model, tmp_path))


@pytest.mark.parametrize("ir_version", range(3, 14))
def test_every_ir_version_is_read(tmp_path, ir_version):
    model = relu(ir_version=ir_version)
    assert f"{ir_version}" in inspect(save(model, tmp_path))


def test_external_data_is_read(tmp_path):
    w = nh.from_array(np.arange(4096, dtype=np.float32).reshape(4, 1024), "w")
    model = make_model([h.make_node("MatMul", ["x", "w"], ["y"])], [value("x")], [value("y", shape=("N", 1024))], [w])
    path = save(model, tmp_path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size >= 16384
    assert "MatMul" in inspect(path)


def test_sparse_weights_are_read(tmp_path):
    values = h.make_tensor("w", T.FLOAT, [2], [1.0, 2.0])
    for indices in (h.make_tensor("i", T.INT64, [2], [1, 6]), h.make_tensor("i", T.INT64, [2, 2], [0, 1, 3, 0])):
        model = make_model(
            [h.make_node("MatMul", ["x", "w"], ["y"])],
            [value("x")],
            [value("y", shape=("N", 2))],
            sparse_initializer=[h.make_sparse_tensor(values, indices, [4, 2])],
        )
        assert "MatMul" in inspect(save(model, tmp_path))


def test_functions_are_inlined(tmp_path):
    scaled = h.make_function(
        "tests",
        "Scaled",
        ["a"],
        ["b"],
        [
            h.make_node("LeakyRelu", ["a"], ["c"]),
            h.make_node("Add", ["c", "a"], ["b"]),
        ],
        OPSETS,
        attributes=["alpha"],
    )
    reference = scaled.node[0].attribute.add()
    reference.name = "alpha"
    reference.ref_attr_name = "alpha"
    reference.type = onnx.AttributeProto.FLOAT
    model = make_model(
        [h.make_node("Scaled", ["x"], ["y"], domain="tests", alpha=0.5)],
        [value("x")],
        [value("y")],
        functions=[scaled],
        opsets=OPSETS + [h.make_opsetid("tests", 1)],
    )
    text = inspect(save(model, tmp_path))
    assert "LeakyRelu" in text and "Add" in text


def test_bodies_and_their_captures_are_read(tmp_path):
    def body(op, name):
        return h.make_graph([h.make_node(op, ["x"], [name])], op, [], [value(name)])

    model = make_model(
        [h.make_node("If", ["c"], ["y"], then_branch=body("Neg", "t"), else_branch=body("Abs", "e"))],
        [value("x"), value("c", T.BOOL, [])],
        [value("y")],
    )
    assert "If" in inspect(save(model, tmp_path))


def test_sequences_and_optionals_are_read(tmp_path):
    tensor = h.make_tensor_type_proto(T.FLOAT, ["N", 4])
    model = make_model(
        [
            h.make_node("SequenceAt", ["s", "k"], ["a"]),
            h.make_node("OptionalGetElement", ["o"], ["b"]),
            h.make_node("Add", ["a", "b"], ["y"]),
        ],
        [
            h.make_value_info("s", h.make_sequence_type_proto(tensor)),
            h.make_value_info("o", h.make_optional_type_proto(tensor)),
            value("k", T.INT64, []),
        ],
        [value("y")],
    )
    text = inspect(save(model, tmp_path))
    assert "SequenceAt" in text and "OptionalGetElement" in text


def test_metadata_is_shown(tmp_path):
    model = relu()
    model.metadata_props.add(key="author", value="someone")
    text = inspect(save(model, tmp_path))
    assert "author" in text and "someone" in text


# ---- what must be refused ----


def test_files_that_are_no_models_are_refused(tmp_path):
    for name, data, part in [
        ("empty.onnx", b"", "is not an ONNX model"),
        ("text.onnx", b"just some text", "is not an ONNX model"),
        ("page.onnx", b"<!DOCTYPE html><html></html>", "is not an ONNX model"),
        ("lfs.onnx", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    ]:
        (tmp_path / name).write_bytes(data)
        assert part in refuse(tmp_path / name)


@pytest.mark.parametrize("ir_version", [1, 2, 1 << 40])
def test_other_ir_versions_are_refused(tmp_path, ir_version):
    model = relu()
    model.ir_version = ir_version
    assert f"IR version {ir_version}" in refuse(save(model, tmp_path))


@pytest.mark.parametrize("ir_version", [13, 14, 15, 1000])
def test_newer_ir_versions_are_read(tmp_path, ir_version):
    model = relu()
    model.ir_version = ir_version
    text = inspect(save(model, tmp_path))
    assert str(ir_version) in text


def test_element_types_of_newer_versions_are_named(tmp_path):
    model = relu()
    model.ir_version = 14
    model.graph.input[0].type.tensor_type.elem_type = 27
    assert "unknown dtype 27 (float6e2m3)" in refuse(save(model, tmp_path))


def with_attribute(tmp_path, opset):
    model = relu()
    model.opset_import[0].version = opset
    model.graph.node[0].attribute.append(h.make_attribute("leak", 0.5))
    return save(model, tmp_path)


def test_an_unknown_attribute_of_a_newer_opset_is_refused(tmp_path):
    path = with_attribute(tmp_path, 1000)
    done = sonde("run", path)
    assert done.returncode == 1 and "attribute 'leak' is unknown to this version" in done.stderr
    assert "attribute 'leak' is unknown to this version" in inspect(path)


def test_an_unknown_attribute_of_a_known_opset_is_logged(tmp_path):
    path = with_attribute(tmp_path, 21)
    done = subprocess.run(
        [PROGRAM, "run", path], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "SONDE_LOG": "warn"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("attribute 'leak' is unknown and is ignored") == 1


def test_tensors_with_too_little_data_are_refused_by_name(tmp_path):
    w = nh.from_array(np.zeros(4, np.float32), "short_one")
    w.raw_data = w.raw_data[:-4]
    assert "short_one" in refuse(save(relu([w]), tmp_path))


def test_two_producers_are_refused_by_name(tmp_path):
    model = relu()
    model.graph.node.append(h.make_node("Abs", ["x"], ["y"]))
    assert "'y'" in refuse(save(model, tmp_path))


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "missing.bin", "link.bin"])
def test_external_data_elsewhere_is_refused(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    (folder / "link.bin").symlink_to("../weights.bin")
    w = nh.from_array(np.zeros(4, np.float32), "w")
    external_data_helper.set_external_data(w, location, offset=0, length=16)
    w.ClearField("raw_data")
    path = folder / "m.onnx"
    path.write_bytes(relu([w]).SerializeToString())
    assert "w" in refuse(path)


def test_external_data_past_the_end_is_refused(tmp_path):
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    w = nh.from_array(np.zeros(4, np.float32), "w")
    external_data_helper.set_external_data(w, "weights.bin", offset=8, length=16)
    w.ClearField("raw_data")
    path = tmp_path / "m.onnx"
    path.write_bytes(relu([w]).SerializeToString())
    assert "16" in refuse(path)


def test_a_truncated_model_never_crashes(tmp_path):
    data = relu([nh.from_array(np.arange(6, dtype=np.float32), "w")]).SerializeToString()
    path = tmp_path / "m.onnx"
    for n in range(0, len(data), 7):
        path.write_bytes(data[:n])
        assert sonde("inspect", path).returncode in (0, 1)


# ---- what is written ----


def test_an_optimized_model_is_written_and_read_again(tmp_path):
    w = nh.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "w")
    model = make_model(
        [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Relu", ["a"], ["y"])],
        [value("x")],
        [value("y", shape=("N", 3))],
        [w],
    )
    path, out = save(model, tmp_path), tmp_path / "fast.onnx"
    done = sonde("inspect", path, "--optimized", "-o", out)
    assert done.returncode == 0, done.stderr
    again = onnx.load(out)
    assert [i.name for i in again.graph.input] == ["x"]
    assert [o.name for o in again.graph.output] == ["y"]
    inspect(out)


def test_every_model_of_the_onnx_package_loads():
    """Structure only: operators that are not there yet may be named, a broken file may not."""
    data = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "simple"
    models = sorted(data.glob("*/model.onnx"))
    if not models:
        pytest.skip("the onnx package has no test data")
    for path in models:
        done = sonde("inspect", path)
        assert done.returncode == 0 or "operator" in done.stderr, (path.parent.name, done.stderr)
