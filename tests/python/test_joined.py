# SPDX-License-Identifier: Apache-2.0
"""Values that a Concat puts one behind the other are made in its result: nothing is copied, and results stay the same."""

import numpy as np
import onnx
import onnx.reference
import pytest
import sonde
from half_models import narrowed
from onnx import TensorProto, helper

rng = np.random.default_rng(7)


def weight(name, *dims):
    data = rng.standard_normal(dims).astype(np.float32) / np.sqrt(np.prod(dims[1:]))
    return onnx.numpy_helper.from_array(data.astype(np.float32), name)


def conv(x, y, cin, cout, kernel, made):
    made.append(weight(f"w_{y}", cout, cin, kernel, kernel))
    return helper.make_node("Conv", [x, f"w_{y}"], [y], pads=[kernel // 2] * 4)


def model(nodes, made, outputs, batch=1, channels=16, side=8):
    shape = [batch, channels, side, side]
    graph = helper.make_graph(
        nodes, "joined", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], made)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return m.SerializeToString(), rng.standard_normal(shape).astype(np.float32)


def concat(y, *x, axis=1):
    return helper.make_node("Concat", list(x), [y], axis=axis)


def fire(made):
    return [conv("x", "a", 16, 32, 1, made), conv("x", "b", 16, 32, 3, made), concat("c", "a", "b"),
            conv("c", "y", 64, 16, 1, made)], ["y"]


def dense(made):  # what is joined is joined again; a value is part of two results
    return [conv("x", "a", 16, 16, 3, made), conv("a", "b", 16, 16, 3, made), concat("c", "a", "b"),
            conv("c", "d", 32, 16, 1, made), concat("e", "c", "d"), conv("e", "f", 48, 16, 3, made),
            concat("g", "e", "f", "a"), conv("g", "y", 80, 16, 1, made)], ["y"]


def twice(made):
    return [conv("x", "a", 16, 16, 1, made), concat("c", "a", "a"), conv("c", "y", 32, 16, 1, made)], ["y"]


def read_later(made):  # a part is read after it was joined, and overwritten by nobody
    return [conv("x", "a", 16, 16, 1, made), conv("x", "b", 16, 16, 3, made), concat("c", "a", "b"),
            conv("c", "d", 32, 16, 3, made), helper.make_node("Add", ["d", "a"], ["e"]),
            helper.make_node("Relu", ["b"], ["f"]), helper.make_node("Mul", ["e", "f"], ["g"]),
            conv("g", "y", 16, 16, 1, made)], ["y"]


def with_outputs(made):
    return [conv("x", "a", 16, 16, 1, made), conv("x", "b", 16, 16, 3, made), concat("c", "a", "b"),
            conv("c", "y", 32, 16, 1, made)], ["y", "a", "c"]


def with_input_and_constant(made):
    made.append(weight("k", 1, 16, 8, 8))
    return [conv("x", "a", 16, 16, 1, made), concat("c", "x", "a", "k"), conv("c", "y", 48, 16, 1, made)], ["y"]


def odd(made):  # parts that do not begin where values do
    return [conv("x", "a", 16, 5, 1, made), conv("x", "b", 16, 3, 1, made), concat("c", "a", "b"),
            conv("c", "y", 8, 16, 1, made)], ["y"]


def views(made):
    made.append(onnx.numpy_helper.from_array(np.array([1, 1024], np.int64), "shape"))
    return [conv("x", "a", 16, 16, 1, made), conv("x", "b", 16, 16, 3, made),
            helper.make_node("Reshape", ["a", "shape"], ["r"]), helper.make_node("Reshape", ["b", "shape"], ["s"]),
            helper.make_node("Tanh", ["r"], ["t"]), concat("y", "t", "s", "r")], ["y"]


NETS = [fire, dense, twice, read_later, with_outputs, with_input_and_constant, odd, views]


def run(data, x, **config):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = config.pop("threads", 1)
    for key, value in config.items():
        options.add_session_config_entry(f"sonde.{key}", value)
    session = sonde.InferenceSession(data, options)
    session.run(None, {"x": x})
    return session, session.run(None, {"x": x})


@pytest.mark.parametrize("net", NETS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_the_reference(net, threads):
    made = []
    nodes, outputs = net(made)
    data, x = model(nodes, made, outputs)
    want = onnx.reference.ReferenceEvaluator(onnx.load_from_string(data)).run(None, {"x": x})
    _, got = run(data, x, threads=threads)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


# Of the largest number. A value is rounded by 2^-9 of itself in bf16, 2^-12 in f16; sums of rounded numbers, through up
# to five convolutions, were off by four times that at most. A part in the wrong place is off by the whole.
@pytest.mark.parametrize("net", NETS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("kind", "error"), [("bf16", 2**-6), ("f16", 2**-9)])
def test_images_of_16_bits_are_joined_too(net, kind, error):
    made = []
    nodes, outputs = net(made)
    data, x = model(nodes, made, outputs)
    _, want = run(data, x)
    if kind == "f16":  # images lie in memory as f16 where the file has them so
        file = narrowed(onnx.load_from_string(data), kind)
        _, got = run(file.SerializeToString(), x.astype(np.float16))
    else:
        _, got = run(data, x, precision=kind)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=error * np.abs(b).max())


def kernels(data, x):
    session, _ = run(data, x)
    with sonde.profiler.profile() as p:
        session.run(None, {"x": x})
    rows = p.get_pandas_dataframe()
    rows = rows[(rows.cat == "operator") & (rows.name == "Concat")]
    return list(rows.kernel)


def test_nothing_is_copied_where_parts_lie_one_behind_the_other():
    made = []
    nodes, outputs = fire(made)
    data, x = model(nodes, made, outputs)
    assert kernels(data, x) == ["joined"]


def test_parts_of_several_images_are_copied():
    made = []
    nodes, outputs = fire(made)
    data, x = model(nodes, made, outputs, batch=2)
    assert kernels(data, x) == ["copy_concat"]
    want = onnx.reference.ReferenceEvaluator(onnx.load_from_string(data)).run(None, {"x": x})
    np.testing.assert_allclose(run(data, x)[1][0], want[0], rtol=1e-4, atol=1e-4)
