# SPDX-License-Identifier: Apache-2.0
"""sonde.InferenceSession: what onnxruntime's does, it does; what is wrong is said clearly."""

import collections
import gc
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import types

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import small_models
import sonde

X = np.arange(8, dtype=np.float32).reshape(2, 4)
Y = np.array([10, 20, 30, 40], np.float32)


@pytest.fixture(scope="module")
def session():
    return sonde.InferenceSession(small_models.add().SerializeToString())


def both(model, **options):
    """The same model in onnxruntime and here."""
    data = model.SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]), sonde.InferenceSession(data)


# ---------------------------------------------------------------- opening
def test_models_come_from_paths_bytes_protos_and_the_zoo(tmp_path):
    model = small_models.add()
    path = tmp_path / "add.onnx"
    onnx.save(model, path)
    data = model.SerializeToString()
    for source in (str(path), path, data, bytearray(data), memoryview(data), model):
        assert np.array_equal(sonde.InferenceSession(source).run(None, {"x": X, "y": Y})[0], X + Y)
    with sonde.InferenceSession("zoo:tiny_cnn") as zoo:
        assert zoo.run(None, {"input": sonde.rand(zoo.input(0), seed=1)})[0].shape == (1, 10)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(sonde.NoSuchFile, match="no_such.onnx"):
        sonde.InferenceSession(tmp_path / "no_such.onnx")
    with pytest.raises(FileNotFoundError):
        sonde.InferenceSession("no_such.onnx")
    whole = small_models.add().SerializeToString()
    for data in (b"not a model", b"version https://git-lfs.github.com/spec/v1", whole[:-1]):
        (tmp_path / "bad.onnx").write_bytes(data)
        for source in (data, tmp_path / "bad.onnx"):
            with pytest.raises(sonde.InvalidProtobuf):
                sonde.InferenceSession(source)
    invalid = small_models.model([("Relu", ["missing"], ["y"])], [small_models.value("x")], [small_models.value("y")])
    with pytest.raises(sonde.InvalidGraph) as refused:  # protobuf, but no graph that holds together
        sonde.InferenceSession(invalid)
    assert not isinstance(refused.value, sonde.InvalidProtobuf)
    with pytest.raises(sonde.InvalidArgument):
        sonde.InferenceSession("zero\0byte")
    with pytest.raises(TypeError, match="Unable to load from type"):
        sonde.InferenceSession(3)
    with pytest.raises(TypeError, match="SessionOptions"):
        sonde.InferenceSession(small_models.add(), {"threads": 1})
    unknown = small_models.model([("NoSuchOperator", ["x"], ["y"])], [small_models.value("x")], [small_models.value("y")])
    with pytest.raises(sonde.NotImplemented, match="NoSuchOperator"):
        sonde.InferenceSession(unknown)


def test_inputs_and_outputs_are_told_as_onnxruntime_tells_them():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.INT64, None)
    models = [
        small_models.add(),
        small_models.identity(TensorProto.BFLOAT16, [3, None, "K"]),
        small_models.identity(TensorProto.STRING, []),
        small_models.model([("SequenceConstruct", ["a"], ["s"])], [small_models.value("a", small_models.INT64, [2])],
                           [sequence]),
        small_models.model([("ZipMap", ["x"], ["z"], {"domain": "ai.onnx.ml", "classlabels_int64s": [1, 2]})],
                           [small_models.value("x", shape=[None, 2])],
                           [helper.make_value_info("z", helper.make_sequence_type_proto(helper.make_map_type_proto(
                               TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))))],
                           opset=17, ml=3),
    ]
    for model in models:
        theirs, ours = both(model)
        for ask in ("get_inputs", "get_outputs", "get_overridable_initializers"):
            assert ([(a.name, a.type, a.shape) for a in getattr(ours, ask)()]
                    == [(a.name, a.type, a.shape) for a in getattr(theirs, ask)()])


def test_inputs_with_a_default_are_overridable_initializers():
    model = small_models.model([("Add", ["x", "w"], ["z"])], [small_models.value("x", shape=[2]),
                                                              small_models.value("w", shape=[2])],
                               [small_models.value("z", shape=[2])],
                               [numpy_helper.from_array(np.array([1, 2], np.float32), "w")])
    ours = sonde.InferenceSession(model)
    assert [a.name for a in ours.get_inputs()] == ["x"]
    assert [a.name for a in ours.get_overridable_initializers()] == ["w"]
    x = np.zeros(2, np.float32)
    assert ours.run(None, {"x": x})[0].tolist() == [1, 2]
    assert ours.run(None, {"x": x, "w": np.array([5, 6], np.float32)})[0].tolist() == [5, 6]
    assert ours.run(None, {"x": x})[0].tolist() == [1, 2]


def test_metadata_is_told_as_onnxruntime_tells_it():
    model = small_models.add(producer_name="tests", domain="ai.example", doc_string="about", model_version=7)
    model.graph.doc_string = "about the graph"
    helper.set_model_props(model, {"names": "{0: 'cat'}", "empty": ""})
    theirs, ours = (s.get_modelmeta() for s in both(model))
    for field in ("producer_name", "graph_name", "domain", "description", "graph_description", "version",
                  "custom_metadata_map"):
        assert getattr(ours, field) == getattr(theirs, field), field


# ---------------------------------------------------------------- feeding
def test_arguments_go_by_place_and_by_name(session):
    feed = {"x": X, "y": Y}
    for results in (session.run(None, feed), session.run(["z"], feed), session.run([], feed),
                    session.run(output_names=("z",), input_feed=feed), session.run(None, feed, None),
                    session.run(None, input_feed=feed, run_options=sonde.RunOptions())):
        assert len(results) == 1 and np.array_equal(results[0], X + Y)
    first, second = session.run(["z", "z"], feed)
    assert np.array_equal(first, second)
    with pytest.raises(TypeError):
        session.run(None)
    with pytest.raises(TypeError):
        session.run(None, feed, None, None)
    with pytest.raises(TypeError):
        session.run(None, feed, feed=feed)
    with pytest.raises(TypeError):
        session.run(None, feed, input_feed=feed)


FORMS = {
    "list": X.tolist(),
    "tuple": tuple(map(tuple, X.tolist())),
    "fortran order": np.asfortranarray(X),
    "every other column": np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": X[::-1, ::-1][::-1, ::-1],
    "big-endian": X.astype(">f4"),
    "misaligned": np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 4),
    "memoryview": memoryview(X),
    "broadcast view": np.broadcast_to(X, (1, 2, 4))[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_inputs_may_have_any_form(session, form):
    assert np.array_equal(session.run(None, {"x": FORMS[form], "y": Y})[0], X + Y)


def test_read_only_inputs_are_read(session):
    x = X.copy()
    x.flags.writeable = False
    assert np.array_equal(session.run(None, {"x": x, "y": Y})[0], X + Y)
    assert np.array_equal(session.run(None, {"x": np.frombuffer(X.tobytes(), np.float32).reshape(2, 4), "y": Y})[0],
                          X + Y)


def test_a_feed_may_be_any_mapping(session):
    for mapping in (types.MappingProxyType, collections.UserDict, collections.OrderedDict, collections.ChainMap):
        assert np.array_equal(session.run(None, mapping({"x": X, "y": Y}))[0], X + Y)


def test_ort_values_can_be_fed(session):
    value = sonde.OrtValue.ortvalue_from_numpy(X)
    assert np.array_equal(session.run(None, {"x": value, "y": Y})[0], X + Y)

    class Wrapped:  # as onnxruntime's own class holds one
        _ortvalue = value

    assert np.array_equal(session.run(None, {"x": Wrapped(), "y": Y})[0], X + Y)


TYPES = {"FLOAT": np.float32, "DOUBLE": np.float64, "FLOAT16": np.float16, "BFLOAT16": ml_dtypes.bfloat16,
         "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8,
         "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "BOOL": np.bool_,
         "COMPLEX64": np.complex64, "COMPLEX128": np.complex128, "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
         "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "FLOAT8E5M2": ml_dtypes.float8_e5m2,
         "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4,
         "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}


@pytest.mark.parametrize("name", TYPES)
def test_every_element_type_goes_in_and_out(name):
    dtype = np.dtype(TYPES[name])
    ours = sonde.InferenceSession(small_models.identity(getattr(TensorProto, name)))
    assert ours.input(0).dtype == dtype
    array = np.array([0, 1, 2, 3]).astype(dtype)
    (result,) = ours.run(None, {"x": array})
    assert result.dtype == dtype and result.tobytes() == array.tobytes()
    (result,) = ours.run(None, {"x": [0, 1, 1, 0]})
    assert result.dtype == dtype and result.astype(np.float64 if dtype.kind != "c" else dtype).tolist() == [0, 1, 1, 0]
    strided = np.array([0, 9, 1, 9]).astype(dtype)[::2]
    assert ours.run(None, {"x": strided})[0].tobytes() == strided.tobytes()
    value = sonde.OrtValue.ortvalue_from_numpy(array)
    assert value.element_type() == getattr(TensorProto, name)
    assert np.asarray(value).tobytes() == array.tobytes()


def test_strings_go_in_and_out():
    ours = sonde.InferenceSession(small_models.identity(TensorProto.STRING))
    for texts in (["a", "bé", ""], np.array(["x", "yy"]), np.array(["x", "yy"], object), np.array([b"x", b"yy"]), []):
        (result,) = ours.run(None, {"x": texts})
        assert result.dtype == object
        assert result.tolist() == [t.decode() if isinstance(t, bytes) else str(t) for t in texts]
    (result,) = ours.run(None, {"x": ["\udcff"]})  # bytes that are no UTF-8 come back as they went in
    assert result.tolist() == ["\udcff"]


def test_sequences_optionals_and_maps_go_in_and_out():
    value, sequence = small_models.value, helper.make_tensor_sequence_value_info
    at = sonde.InferenceSession(small_models.model([("SequenceAt", ["s", "i"], ["o"])],
                                                   [sequence("s", TensorProto.FLOAT, None), value("i", TensorProto.INT64, [])],
                                                   [value("o")]))
    assert at.run(None, {"s": [X, Y], "i": 1})[0].tolist() == Y.tolist()
    with pytest.raises(sonde.InvalidArgument, match="takes a list"):
        at.run(None, {"s": 3, "i": 1})
    twice = sonde.InferenceSession(small_models.model([("Neg", ["x"], ["n"]), ("SequenceConstruct", ["n", "n"], ["s"])],
                                                      [value("x", shape=[2])], [sequence("s", TensorProto.FLOAT, None)]))
    first, second = twice.run(None, {"x": [1, 2]})[0]
    first[:] = 9
    assert second.tolist() == [-1, -2]

    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    has = sonde.InferenceSession(small_models.model([("OptionalHasElement", ["o"], ["b"])],
                                                    [helper.make_value_info("o", optional)],
                                                    [value("b", TensorProto.BOOL, [])], opset=18))
    assert [has.run(None, {"o": o})[0].item() for o in (None, np.ones(2, np.float32), [1, 2])] == [False, True, True]

    mapping = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    zipped = sonde.InferenceSession(small_models.model(
        [("ZipMap", ["x"], ["z"], {"domain": "ai.onnx.ml", "classlabels_strings": ["a", "b"]})],
        [value("x", shape=[None, 2])], [helper.make_value_info("z", helper.make_sequence_type_proto(mapping))],
        opset=17, ml=3))
    assert zipped.run(None, {"x": [[0.5, 2]]})[0] == [{"a": 0.5, "b": 2.0}]
    vector = sonde.InferenceSession(small_models.model(
        [("DictVectorizer", ["d"], ["v"], {"domain": "ai.onnx.ml", "string_vocabulary": ["a", "b", "c"]})],
        [helper.make_value_info("d", mapping)], [value("v")], opset=17, ml=1))
    assert vector.run(None, {"d": {"c": 3.0, "a": 1.0}})[0].ravel().tolist() == [1, 0, 3]
    with pytest.raises(sonde.InvalidArgument, match="takes a dict"):
        vector.run(None, {"d": [1.0]})


# ---------------------------------------------------------------- bad feeds
def test_mistakes_are_named(session):
    cases = [
        ({"x": X}, r"Required inputs \(\['y'\]\) are missing from input feed \(\['x'\]\)"),
        ({}, "Required inputs"),
        ({"x": None, "y": Y}, "None"),
        ({"x": X, "y": Y, "q": Y}, "no value named 'q'"),
        ({"x": X.astype(np.float64), "y": Y}, r"input 'x' should be f32\[N, 4\] but is f64\[2, 4\]"),
        ({"x": X[0], "y": Y}, r"input 'x' should be f32\[N, 4\] but is f32\[4\]"),
        ({"x": X, "y": Y[:3]}, r"input 'y' should be f32\[4\] but is f32\[3\]"),
        ({"x": "text", "y": Y}, "input 'x' cannot be converted to an array"),
        ({"x": object(), "y": Y}, "input 'x' cannot be converted to an array"),
        ({"x": [[1], [1, 2]], "y": Y}, "input 'x' cannot be converted to an array"),
        ({"x": np.array(["a"]), "y": Y}, "input 'x' should be"),
        ({"x": np.array(["2020-01-01"], "datetime64[D]"), "y": Y}, "no corresponding ONNX dtype"),
        ({"x": np.zeros((1,) * 30 + (4,), np.float32), "y": Y}, "rank"),
    ]
    for feed, words in cases:
        with pytest.raises(sonde.InvalidArgument, match=words) as caught:
            session.run(None, feed)
        assert isinstance(caught.value, sonde.Error) and isinstance(caught.value, ValueError)
    with pytest.raises(sonde.InvalidArgument, match="no value named 'nothing'"):
        session.run(["nothing"], {"x": X, "y": Y})
    for wrong in ([X, Y], X, 3, None):
        with pytest.raises(TypeError, match="input_feed"):
            session.run(None, wrong)
    for names in ("z", 3, [3], [None]):
        with pytest.raises(TypeError, match="output_names"):
            session.run(names, {"x": X, "y": Y})
    with pytest.raises(TypeError, match="names in input_feed"):
        session.run(None, {1: X, "x": X, "y": Y})
    with pytest.raises(TypeError, match="RunOptions"):
        session.run(None, {"x": X, "y": Y}, 3)
    assert np.array_equal(session.run(None, {"x": X, "y": Y})[0], X + Y)


def test_an_error_of_an_object_that_is_fed_passes_through(session):
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        session.run(None, {"x": Broken(), "y": Y})


def test_a_feed_that_changes_the_dict_is_harmless(session):
    feed = {}

    class Changes:
        def __array__(self, dtype=None, copy=None):
            feed.clear()
            return X

    feed.update(x=Changes(), y=Y)
    with pytest.raises(sonde.InvalidArgument):
        session.run(None, feed)

    class Grows:
        def __array__(self, dtype=None, copy=None):
            feed.update((f"name {i}", X) for i in range(100))
            return X

    feed.update(x=Grows(), y=Y, inner=X)
    with pytest.raises(RuntimeError, match="changed while"):
        session.run(None, feed)


def test_operators_that_fail_raise():
    ours = sonde.InferenceSession(small_models.model(
        [("Gather", ["x", "i"], ["y"])], [small_models.value("x", shape=[4]),
                                         small_models.value("i", TensorProto.INT64, [None])], [small_models.value("y")]))
    with pytest.raises(sonde.RuntimeException, match="Gather"):
        ours.run(None, {"x": Y, "i": [7]})


# ---------------------------------------------------------------- outputs
def test_large_outputs_are_not_copied():
    ours = sonde.InferenceSession(small_models.model([("Neg", ["x"], ["y"])], [small_models.value("x", shape=["N"])],
                                                     [small_models.value("y", shape=["N"])]))
    (result,) = ours.run(None, {"x": np.ones(1 << 20, np.float32)})
    assert isinstance(result.base, sonde.OrtValue)
    assert result.__array_interface__["data"][0] == result.base.data_ptr()
    assert result.flags.writeable and result.flags.aligned and result.flags.c_contiguous


def test_outputs_outlive_the_session_and_are_nobody_elses():
    model = small_models.model(
        [("Identity", ["w"], ["o"]), ("Relu", ["x"], ["q"])], [small_models.value("x", shape=[4])],
        [small_models.value(n, shape=[4]) for n in ("o", "q", "w", "x")],
        [numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")])
    ours = sonde.InferenceSession(model)
    x = np.ones(4, np.float32)
    for _ in range(2):
        results = ours.run(None, {"x": x})
        assert [r.tolist() for r in results] == [[0, 1, 2, 3], [1] * 4, [0, 1, 2, 3], [1] * 4]
        for result in results:
            result[:] = 99
    assert x.tolist() == [1] * 4
    del ours
    gc.collect()
    assert results[0].tolist() == [99] * 4


def test_inner_values_can_be_fed_and_asked_for():
    ours = sonde.InferenceSession(small_models.model(
        [("Neg", ["x"], ["h"]), ("Add", ["h", "w"], ["y"]), ("Mul", ["w", "w"], ["v"])],
        [small_models.value("x", shape=[2]), small_models.value("w", shape=[2])],
        [small_models.value("y", shape=[2]), small_models.value("v", shape=[2])]))
    x, w = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    assert [r.tolist() for r in ours.run(["h", "y"], {"x": x, "w": w})] == [[-1, -2], [9, 18]]
    assert ours.run(["y"], {"h": x, "w": w})[0].tolist() == [11, 22]
    assert [r.tolist() for r in ours.run(["v", "y"], {"x": x, "w": w})] == [[100, 400], [9, 18]]
    options = sonde.RunOptions()
    options.only_execute_path_to_fetches = True
    assert ours.run(["v"], {"x": x, "w": w}, options)[0].tolist() == [100, 400]
    partial = ours.partial_run({"x": x})
    assert list(partial) == ["h"] and partial["h"].tolist() == [-1, -2]
    assert ours.run(None, {**partial, "w": w})[0].tolist() == [9, 18]


def squeezed(declared):
    graph = helper.make_graph(
        [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Abs", ["s"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        value_info=[helper.make_tensor_value_info("s", TensorProto.FLOAT, declared)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return sonde.InferenceSession(model.SerializeToString())


def test_an_inner_value_may_have_another_shape_than_the_file_declares():
    # Squeeze gives [4] for a batch of one, which is what the file says of it, and [n, 4] for others.
    x = np.arange(-10, 10, dtype=np.float32).reshape(5, 4, 1)
    for declared in (["m"], [4], [5, 3], ["n", "k"], None):
        here = squeezed(declared)
        np.testing.assert_array_equal(here.run(None, {"x": x})[0], abs(x.reshape(5, 4)))
        np.testing.assert_array_equal(here.run(None, {"s": x.reshape(5, 4)})[0], abs(x.reshape(5, 4)))


def test_an_inner_value_must_have_the_shape_that_its_node_makes():
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["h"]), helper.make_node("Concat", ["h", "x"], ["c"], axis=1),
         helper.make_node("Abs", ["c"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    here = sonde.InferenceSession(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())
    np.testing.assert_array_equal(here.run(None, {"c": -np.ones((3, 8), np.float32)})[0], np.ones((3, 8)))
    for shape in ((3, 7), (8,), (3, 8, 1)):
        with pytest.raises(Exception, match="'c' should be"):
            here.run(None, {"c": np.ones(shape, np.float32)})
    with pytest.raises(Exception, match="Concat"):  # both have n rows
        here.run(None, {"h": np.ones((3, 4), np.float32), "x": np.ones((2, 4), np.float32)})


def test_a_product_read_by_an_operator_without_its_first_output():
    weights = {name: np.random.default_rng(3).standard_normal(shape).astype(np.float32)
               for name, shape in (("w", (3, 5)), ("b", (5,)), ("lw", (1, 8, 5)), ("lr", (1, 8, 2)))}
    for product, inputs in (("MatMul", ["x", "w"]), ("Gemm", ["x", "w", "b"])):
        graph = helper.make_graph(
            [helper.make_node(product, inputs, ["p"]), helper.make_node("Unsqueeze", ["p", "axes"], ["u"]),
             helper.make_node("LSTM", ["u", "lw", "lr"], ["", "h"], hidden_size=2),
             helper.make_node("MatMul", ["z", "w"], ["q"]),
             helper.make_node("LSTM", ["q", "lw", "lr"], ["", "", "c"], hidden_size=2)], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3]),
             helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 4, 3])],
            [helper.make_tensor_value_info("h", TensorProto.FLOAT, None),
             helper.make_tensor_value_info("c", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in weights.items()]
            + [numpy_helper.from_array(np.array([0], np.int64), "axes")])
        there, here = both(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8))
        feeds = {"x": np.ones((4, 3), np.float32), "z": np.ones((2, 4, 3), np.float32)}
        for a, b in zip(there.run(None, feeds), here.run(None, feeds), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)  # states are below 2: sums of f32 in another order


@pytest.mark.parametrize("shape", [(3, 0), (0, 2), (0,)])
def test_sizes_without_elements_are_refused(shape):
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], axes=[2, 3], mode="nearest")], "g",
        [helper.make_tensor_value_info("x", TensorProto.INT32, []),
         helper.make_tensor_value_info("sizes", TensorProto.INT64, None)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    here = sonde.InferenceSession(model.SerializeToString())
    with pytest.raises(Exception, match="sizes"):
        here.run(None, {"x": np.array(5, np.int32), "sizes": np.zeros(shape, np.int64)})


def test_many_inputs_and_outputs():
    n = 40
    names = [f"x{i}" for i in range(n)]
    ours = sonde.InferenceSession(small_models.model(
        [("Neg", [name], [f"y{i}"]) for i, name in enumerate(names)],
        [small_models.value(name, shape=[1]) for name in names],
        [small_models.value(f"y{i}", shape=[1]) for i in range(n)]))
    feed = {name: np.full(1, i, np.float32) for i, name in enumerate(names)}
    assert [r.item() for r in ours.run(None, dict(reversed(feed.items())))] == [-i for i in range(n)]
    assert [r.item() for r in ours.run(["y30", "y3"], feed)] == [-30, -3]
    feed.popitem()
    with pytest.raises(sonde.InvalidArgument, match="x39"):
        ours.run(None, feed)


# ---------------------------------------------------------------- options
def test_session_options_take_effect(tmp_path):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = sonde.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(tmp_path / "plain.onnx")
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.known_to_onnxruntime", "1")
    with pytest.raises(sonde.InvalidArgument, match="unknown session configuration entry 'sonde.foo'.*sonde.tune"):
        options.add_session_config_entry("sonde.foo", "1")
    options.add_session_config_entry("sonde.weights_cache", str(tmp_path / "cache"))
    options.add_session_config_entry("sonde.tune", str(tmp_path / "tuned"))
    options.add_free_dimension_override_by_name("N", 2)
    ours = sonde.InferenceSession(small_models.add(), sess_options=options, providers=["CPUExecutionProvider"])
    assert ours.get_session_options() is options and ours.get_inputs()[0].shape == [2, 4]
    assert [node.op_type for node in onnx.load(tmp_path / "plain.onnx").graph.node] == ["Add"]
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    with pytest.raises(RuntimeError):
        options.get_session_config_entry("nothing")
    assert np.array_equal(ours.run(None, {"x": X, "y": Y})[0], X + Y)
    options.add_session_config_entry("sonde.disabled_passes", "no-such-pass")
    with pytest.raises(sonde.InvalidArgument, match="no-such-pass"):
        sonde.InferenceSession(small_models.add(), options)
    options = sonde.SessionOptions()
    options.intra_op_num_threads = -1
    with pytest.raises(sonde.InvalidArgument, match="intra_op_num_threads"):
        sonde.InferenceSession(small_models.add(), options)


def test_options_have_onnxruntimes_attributes():
    for ours, theirs in ((sonde.SessionOptions(), onnxruntime.SessionOptions()),
                         (sonde.RunOptions(), onnxruntime.RunOptions())):
        for name in dir(theirs):
            if name.startswith("_") or callable(getattr(theirs, name)) or name == "profile_file_prefix":
                continue
            mine = getattr(ours, name)
            assert (int(mine) if isinstance(mine, int) else mine) == (
                int(getattr(theirs, name)) if not isinstance(getattr(theirs, name), str) else getattr(theirs, name)), name
            setattr(ours, name, mine)


def test_providers_are_those_there_are():
    model = small_models.add()
    assert sonde.InferenceSession(model, providers=["CPUExecutionProvider"]).get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        ours = sonde.InferenceSession(model, providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"])
    assert ours.get_providers() == sonde.get_available_providers() == ["CPUExecutionProvider"]
    assert ours.get_provider_options() == {"CPUExecutionProvider": {}}
    for wrong in ("CPUExecutionProvider", [3], 3):
        with pytest.raises(ValueError, match="providers"):
            sonde.InferenceSession(model, providers=wrong)
    with pytest.raises(ValueError, match="same length"):
        sonde.InferenceSession(model, providers=["CPUExecutionProvider"], provider_options=[{}, {}])


def test_a_run_can_be_terminated(session):
    options = sonde.RunOptions()
    options.terminate = True
    with pytest.raises(sonde.Cancelled):
        session.run(None, {"x": X, "y": Y}, options)
    options.terminate = False
    session.run(None, {"x": X, "y": Y}, options)
    options.add_run_config_entry("key", "text")
    assert options.get_run_config_entry("key") == "text"
    with pytest.raises(RuntimeError):
        options.get_run_config_entry("nothing")
    with pytest.raises(TypeError):
        options.logid = 3


def test_terminating_stops_a_run_on_another_thread():
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("Add", ["v", "v"], ["v_out"])], "body",
        [small_models.value("i", TensorProto.INT64, []), small_models.value("c", TensorProto.BOOL, []),
         small_models.value("v", shape=[1])],
        [small_models.value("c_out", TensorProto.BOOL, []), small_models.value("v_out", shape=[1])])
    endless = sonde.InferenceSession(small_models.model(
        [("Loop", ["", "yes", "x"], ["y"], {"body": body})], [small_models.value("x", shape=[1])],
        [small_models.value("y", shape=[1])], [numpy_helper.from_array(np.array(True), "yes")]))
    options, caught, started = sonde.RunOptions(), [], threading.Event()

    def run():
        started.set()
        try:
            endless.run(None, {"x": [0]}, options)
        except sonde.Error as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    options.terminate = True  # this thread goes on while the other one runs
    thread.join()
    assert isinstance(caught[0], sonde.Cancelled)


def test_run_options_print_the_timing_table():
    code = ("import sonde; o = sonde.RunOptions(); o.timing = True; o.timing_sort = 'name'; o.timing_filter = 'Conv'\n"
            "s = sonde.InferenceSession('zoo:tiny_cnn'); s.run(None, {'input': sonde.rand(s.input(0))}, o)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Graph run of" in done.stderr and "Conv" in done.stderr


def test_run_options_refuse_an_order_and_tell_of_operators_that_there_are_not():
    options = sonde.RunOptions()
    for wrong in ("banana", "", "Name"):
        with pytest.raises(sonde.InvalidArgument, match=f"timing_sort is '{wrong}', expected 'time' or 'name'"):
            options.timing_sort = wrong
    assert options.timing_sort == "time"
    code = ("import sonde; o = sonde.RunOptions(); o.timing = True; o.timing_filter = 'Foo'\n"
            "s = sonde.InferenceSession('zoo:tiny_cnn'); s.run(None, {'input': sonde.rand(s.input(0))}, o)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search("no operator is called 'Foo'; there are .*Conv", done.stderr)


# ---------------------------------------------------------------- life
def test_a_closed_session_says_so():
    with sonde.InferenceSession(small_models.add()) as ours:
        assert not ours.closed
    assert ours.closed and "closed" in repr(ours)
    for use in (lambda: ours.run(None, {"x": X, "y": Y}), ours.get_modelmeta, lambda: ours.partial_run({"x": X}),
                lambda: ours.run_with_ort_values(None, {})):
        with pytest.raises(sonde.InvalidArgument, match="closed"):
            use()
    ours.close()
    never = sonde.InferenceSession.__new__(sonde.InferenceSession)
    with pytest.raises(sonde.InvalidArgument, match="never opened"):
        never.run(None, {})


def test_sessions_can_be_subclassed_referenced_and_pickled(tmp_path):
    import weakref

    class Mine(sonde.InferenceSession):
        def run(self, *args, **kwargs):
            return [2 * r for r in super().run(*args, **kwargs)]

    path = tmp_path / "add.onnx"
    onnx.save(small_models.add(), path)
    ours = Mine(path)
    ours.me = ours  # a cycle
    assert np.array_equal(ours.run(None, {"x": X, "y": Y})[0], 2 * (X + Y))
    there = weakref.ref(ours)
    del ours
    gc.collect()
    assert there() is None
    again = pickle.loads(pickle.dumps(sonde.InferenceSession(path)))
    assert np.array_equal(again.run(None, {"x": X, "y": Y})[0], X + Y)
    with pytest.raises(sonde.InvalidArgument, match="already open"):
        again.__init__(path)


def test_sessions_are_pickled_as_their_description(tmp_path, monkeypatch):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = sonde.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("sonde.precision", "f16")
    options.add_free_dimension_override_by_name("batch", 2)
    disabled = [sonde._sonde.pass_list()[0][0]]
    first = sonde.InferenceSession("zoo:tiny_cnn", options, disabled_optimizers=disabled)
    again = pickle.loads(pickle.dumps(first))
    assert vars(again.get_session_options()) == vars(options) and again._disabled == disabled
    feed = first.random_inputs(seed=1)
    assert feed["input"].shape[0] == 2
    assert np.array_equal(again.run(None, feed)[0], first.run(None, feed)[0])
    # the bytes of a model travel with it
    text = pickle.dumps(sonde.InferenceSession(small_models.add().SerializeToString()))
    assert np.array_equal(pickle.loads(text).run(None, {"x": X, "y": Y})[0], X + Y)
    # a relative path is that of the process that pickled
    onnx.save(small_models.add(), tmp_path / "add.onnx")
    monkeypatch.chdir(tmp_path)
    text = pickle.dumps(sonde.InferenceSession("add.onnx"))
    monkeypatch.chdir("/")
    assert np.array_equal(pickle.loads(text).run(None, {"x": X, "y": Y})[0], X + Y)
    (tmp_path / "add.onnx").unlink()
    with pytest.raises(sonde.NoSuchFile, match="add.onnx"):
        pickle.loads(text)
    # bytes of a session that is closed are gone
    closed = sonde.InferenceSession(small_models.add())
    closed.close()
    with pytest.raises(sonde.InvalidArgument, match="closed"):
        pickle.dumps(closed)


def test_threads_share_a_session(session):
    wrong = []

    def work(k):
        x = np.full((k + 1, 4), k, np.float32)
        for _ in range(200):
            if not np.array_equal(session.run(None, {"x": x, "y": Y})[0], x + Y):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_closing_while_others_run_is_harmless():
    for _ in range(20):
        ours = sonde.InferenceSession(small_models.add())
        seen = []

        def work():
            try:
                while True:
                    ours.run(None, {"x": X, "y": Y})
            except sonde.InvalidArgument as error:
                seen.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        ours.close()
        for thread in threads:
            thread.join()
        assert seen == ["the session is closed"] * 3


def resident_kib():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)


def least_growth_kib(work, rounds=4):
    """By how much the memory of the process grows at least when `work` is done again and again. What leaks grows in
    every round; pages that the system or another library takes once do not count."""
    growth = []
    for _ in range(rounds):
        before = resident_kib()
        work()
        gc.collect()
        growth.append(resident_kib() - before)
    return min(growth)


def test_runs_leak_nothing(session):
    runs = 1_000_000 if os.environ.get("SONDE_FULL") == "1" else 100_000
    feed, bad = {"x": X, "y": Y}, {"x": X, "y": Y[:3]}
    options = sonde.RunOptions()
    counted = (X, Y, feed, options, np.dtype(np.float32), session)

    def work(n):
        for _ in range(n):
            session.run(None, feed)
        for _ in range(n // 20):
            session.run(["z"], {"x": X[:, ::-1], "y": Y.tolist()}, options)
            with pytest.raises(sonde.InvalidArgument):
                session.run(None, bad)

    work(1000)
    gc.collect()
    references = [sys.getrefcount(c) for c in counted]
    leaked = least_growth_kib(lambda: work(runs // 4))
    grown = [sys.getrefcount(c) - r for c, r in zip(counted, references)]
    assert all(abs(g) < 10 for g in grown), grown
    assert leaked < runs // 4 * 4 / 1024, "a run leaks more than four bytes"


def test_sessions_leak_nothing():
    data = small_models.add().SerializeToString()

    def work(n):
        for _ in range(n):
            sonde.InferenceSession(data).run(None, {"x": X, "y": Y})
            with pytest.raises(sonde.InvalidProtobuf):
                sonde.InferenceSession(b"not a model")

    work(100)
    gc.collect()
    assert least_growth_kib(lambda: work(250)) < 250, "a session leaks more than a KiB"


def test_a_saved_graph_has_the_weights_that_passes_made(tmp_path):
    """They live on in packed form only in the session that runs. What is read again may sum in another order."""
    rng = np.random.default_rng(4)
    w, numbers = rng.normal(size=(64, 32, 3, 3)).astype(np.float32), rng.uniform(0.5, 2, (4, 64)).astype(np.float32)
    nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
             onnx.helper.make_node("BatchNormalization", ["c", *"sbmv"], ["y"])]
    constants = [onnx.numpy_helper.from_array(a, name) for name, a in zip("wsbmv", (w, *numbers))]
    infos = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [1, 32, 8, 8]), ("y", None))]
    graph = onnx.helper.make_graph(nodes, "g", infos[:1], infos[1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    options = sonde.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    options.add_session_config_entry("sonde.disabled_passes", "blocked-layout,winograd")
    session = sonde.InferenceSession(model.SerializeToString(), options)
    x = {"x": rng.normal(size=(1, 32, 8, 8)).astype(np.float32)}
    wanted, = session.run(None, x)
    again, = sonde.InferenceSession(tmp_path / "saved.onnx").run(None, x)
    np.testing.assert_allclose(again, wanted, rtol=1e-4, atol=1e-4)
