# SPDX-License-Identifier: Apache-2.0
"""Names and other texts of a model are any bytes: what is not UTF-8 is shown and can be asked for, in Python and in
every exported file. A zero byte would end a name in C and make two names one: such names are refused."""

import csv
import io
import json
import zipfile

import numpy as np
import pytest
from onnx import TensorProto, helper

import small_models
import sonde

X = np.arange(4, dtype=np.float32)


def odd(data):
    """Protobuf's own writer refuses bytes that are no text: these stand for them until it has written."""
    return data.SerializeToString().replace(b"QQ", b"\xff\xfe")


def odd_model(**about):
    inputs = [small_models.value("in_QQ", shape=["dim_QQ"])]
    model = small_models.model([("Neg", ["in_QQ"], ["inner_QQ"], "node_QQ"), ("Neg", ["inner_QQ"], ["out_QQ"])], inputs,
                               [small_models.value("out_QQ", shape=["dim_QQ"])], **about)
    model.graph.name = "graph_QQ"
    model.graph.doc_string = "graph doc QQ"
    return model


def test_texts_that_are_no_utf8_do_not_stop_a_model_from_loading():
    model = odd_model(producer_name="maker QQ", producer_version="1.QQ", domain="place.QQ", doc_string="doc QQ")
    model.metadata_props.add(key="key QQ", value="value QQ")
    model.metadata_props.add(key="plain", value="ü")
    meta = sonde.InferenceSession(odd(model)).get_modelmeta()
    assert meta.producer_name == r"maker \xff\xfe"
    assert meta.domain == r"place.\xff\xfe"
    assert meta.description == r"doc \xff\xfe"
    assert meta.graph_name == r"graph_\xff\xfe"
    assert meta.graph_description == r"graph doc \xff\xfe"
    assert meta.custom_metadata_map == {r"key \xff\xfe": r"value \xff\xfe", "plain": "ü"}
    json.dumps(meta.custom_metadata_map, ensure_ascii=False).encode("utf-8")  # may be written anywhere


def test_names_that_are_no_utf8_find_what_they_name():
    session = sonde.InferenceSession(odd(odd_model()))
    (ours,), (theirs,) = session.get_inputs(), session.get_outputs()
    assert ours.name == b"in_\xff\xfe".decode("utf-8", "surrogateescape")
    assert ours.shape == [b"dim_\xff\xfe".decode("utf-8", "surrogateescape")]
    repr(ours), repr(theirs), repr(session)
    inner = ours.name.replace("in_", "inner_")
    assert np.array_equal(session.run([theirs.name], {ours.name: X})[0], X)
    assert np.array_equal(session.run([inner], {ours.name: X})[0], -X)
    assert np.array_equal(session.run(None, {inner: X})[0], -X)
    binding = session.io_binding()
    binding.bind_cpu_input(ours.name, X)
    binding.bind_output(theirs.name)
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], X)


def test_a_dimension_whose_name_is_no_utf8_can_be_fixed():
    options = sonde.SessionOptions()
    options.add_free_dimension_override_by_name(b"dim_\xff\xfe".decode("utf-8", "surrogateescape"), 4)
    assert sonde.InferenceSession(odd(odd_model()), options).get_inputs()[0].shape == [4]


def test_a_missing_input_is_named_though_its_name_is_no_utf8():
    session = sonde.InferenceSession(odd(odd_model()))
    with pytest.raises(ValueError, match="in_"):
        session.run(None, {})
    with pytest.raises(sonde.Error, match="gone"):
        session.run(["gone_\udcff"], {session.get_inputs()[0].name: X})


def profile_of(session):
    with sonde.profiler.profile() as p:
        session.run(None, {session.get_inputs()[0].name: X})
    return p


FORMATS = ["out.json", "out.summary.json", "out.csv", "out.xlsx", "out.md", "out.txt", "out.folded", "out.pftrace",
           "out.pb.gz"]


@pytest.mark.parametrize("name", FORMATS)
def test_files_with_names_that_are_no_utf8_can_be_read(tmp_path, name):
    p = profile_of(sonde.InferenceSession(odd(odd_model())))
    path = tmp_path / name
    p.export(path)
    data = path.read_bytes()
    assert data
    if name.endswith(".json"):
        assert "node_" in json.dumps(json.loads(data.decode("utf-8")))
    elif name.endswith(".csv"):
        assert list(csv.reader(io.StringIO(data.decode("utf-8"))))
    elif name.endswith(".xlsx"):
        with zipfile.ZipFile(path) as z:
            for part in z.namelist():
                z.read(part).decode("utf-8")
    elif name.endswith((".md", ".txt", ".folded")):
        data.decode("utf-8")


def test_tables_of_a_profile_hold_text():
    p = profile_of(sonde.InferenceSession(odd(odd_model())))
    for column in p.columns().values():
        for text in column:
            if isinstance(text, str):
                text.encode("utf-8")
    pa = pytest.importorskip("pyarrow")
    pa.table(p).validate(full=True)


# ---------------------------------------------------------------- zero bytes
def test_asking_for_a_name_with_a_zero_byte_is_refused():
    session = sonde.InferenceSession(small_models.add())
    feeds = {"x": np.ones((2, 4), np.float32), "y": np.ones(4, np.float32)}
    with pytest.raises(sonde.InvalidArgument, match=r"'z\\x00' contains a zero byte"):
        session.run(["z\0"], feeds)
    with pytest.raises(sonde.InvalidArgument, match=r"'z\\x00more' contains a zero byte"):
        session.run(["z\0more"], feeds)
    with pytest.raises(sonde.InvalidArgument, match="contains a zero byte"):
        session.run(None, {**feeds, "x\0": feeds["x"]})
    with pytest.raises(sonde.InvalidArgument, match="contains a zero byte"):
        session.run(None, {"x\0": feeds["x"], "y": feeds["y"]})
    binding = session.io_binding()
    with pytest.raises(sonde.InvalidArgument, match="contains a zero byte"):
        binding.bind_cpu_input("x\0", feeds["x"])
        binding.bind_cpu_input("y", feeds["y"])
        binding.bind_output("z")
        session.run_with_iobinding(binding)
    binding = session.io_binding()
    with pytest.raises(sonde.InvalidArgument, match="contains a zero byte"):
        binding.bind_cpu_input("x", feeds["x"])
        binding.bind_cpu_input("y", feeds["y"])
        binding.bind_output("z\0")
        session.run_with_iobinding(binding)


def named(where):
    """A model with `QQ` in one place."""
    model = small_models.model([("Neg", ["x"], ["y"], "node")], [small_models.value("x", shape=["N"])],
                               [small_models.value("y", shape=["N"])])
    graph = model.graph
    if where == "input":
        graph.input[0].name = graph.node[0].input[0] = "xQQ"
    elif where == "output":
        graph.output[0].name = graph.node[0].output[0] = "yQQ"
    elif where == "node":
        graph.node[0].name = "QQ"
    elif where == "operator":
        graph.node[0].op_type = "NegQQ"
    elif where == "domain":
        graph.node[0].domain = "QQ"
    elif where == "dimension":
        graph.input[0].type.tensor_type.shape.dim[0].dim_param = "NQQ"
    elif where == "initializer":
        graph.initializer.append(helper.make_tensor("QQ", TensorProto.FLOAT, [1], [1]))
    elif where == "attribute":
        graph.node[0].attribute.append(helper.make_attribute("QQ", 1))
    elif where == "metadata key":
        model.metadata_props.add(key="QQ", value="")
    elif where == "operator set":
        model.opset_import.add(domain="QQ", version=1)
    elif where == "function":
        model.functions.append(helper.make_function("here", "fQQ", ["a"], ["b"],
                                                    [helper.make_node("Neg", ["a"], ["b"])], model.opset_import))
    elif where == "graph":
        graph.name = "QQ"
    return model.SerializeToString()


PLACES = ["input", "output", "node", "operator", "domain", "dimension", "initializer", "attribute", "metadata key",
          "operator set", "function", "graph"]


@pytest.mark.parametrize("where", PLACES)
def test_a_model_whose_names_hold_zero_bytes_is_refused(where):
    data = named(where)
    assert b"QQ" in data
    with pytest.raises(sonde.InvalidGraph, match="contains a zero byte"):
        sonde.InferenceSession(data.replace(b"QQ", b"\0\0"))


def test_a_text_attribute_with_a_zero_byte_is_refused():
    model = small_models.model([("Gelu", ["x"], ["y"], {"approximate": "tanhQQ"})],
                               [small_models.value("x", shape=["N"])], [small_models.value("y", shape=["N"])], opset=20)
    with pytest.raises(sonde.InvalidGraph, match="attribute 'approximate' contains a zero byte"):
        sonde.InferenceSession(model.SerializeToString().replace(b"QQ", b"\0\0"))


def test_what_is_not_known_of_a_model_is_a_warning_at_the_callers_line():
    model = small_models.model([("Relu", ["x"], ["y"], {"novelty": 1})], [small_models.value("x")], [small_models.value("y")])
    model.ir_version = 99
    with pytest.warns(RuntimeWarning) as told:
        sonde.InferenceSession(model.SerializeToString())
    assert [w.filename for w in told] == [__file__] * 2
    assert "IR version 99" in str(told[0].message) and "'novelty'" in str(told[1].message)
    with pytest.warns(RuntimeWarning), pytest.raises(sonde.Error):
        model.graph.node[0].op_type = "NoSuchOperator"
        sonde.InferenceSession(model.SerializeToString())
