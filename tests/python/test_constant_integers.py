# SPDX-License-Identifier: Apache-2.0
"""Integers that the model knows are computed while it is loaded, along with shapes. They give what a run gives, also at
the ends of i64 and u64, where numbers look like the symbols of shapes or need more than 63 bits.

SONDE_LIBRARY names the library; without it everything here is skipped."""

import os

import numpy as np
import pytest
from onnx import helper, numpy_helper

pytestmark = pytest.mark.skipif(not os.environ.get("SONDE_LIBRARY"), reason="SONDE_LIBRARY is not set")

LOW = np.iinfo(np.int64).min
SIGNED = (np.array([LOW, LOW + 5, LOW + 2**33 - 1, 7, LOW + 2**33], np.int64),
          np.array([3, -4, 5, LOW + 1, 9], np.int64))
UNSIGNED = (np.array([2**63 + 5, 7, 2**64 - 1, 2**63, 0], np.uint64),
            np.array([3, 2**63 + 9, 2**64 - 2, 1, 2**64 - 1], np.uint64))


def towards_zero(a, b):
    q = a // b
    return q + ((a % b != 0) & ((a < 0) != (b < 0)))


BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": towards_zero, "Mod": np.mod,
          "Max": np.maximum, "Min": np.minimum, "Less": np.less, "Greater": np.greater, "Equal": np.equal,
          "LessOrEqual": np.less_equal}
UNARY = {"Abs": np.abs, "Neg": np.negative, "Sign": np.sign, "Relu": lambda a: np.maximum(a, 0),
         "ReduceMax": lambda a: a.max(keepdims=True), "ReduceMin": lambda a: a.min(keepdims=True),
         "ReduceSum": lambda a: a.sum(keepdims=True), "ReduceProd": lambda a: a.prod(keepdims=True)}


def results(op, arrays, dtype):
    """The operator of constants and of inputs, optimised and not."""
    import libsonde

    names = [f"x{i}" for i in range(len(arrays))]
    out = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
    node = helper.make_node(op, names, ["y"])
    for constant in (True, False):
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for n, a in zip(names, arrays)]
        graph = helper.make_graph([node], "one", [] if constant else infos, [out],
                                  [numpy_helper.from_array(a, n) for n, a in zip(names, arrays)] if constant else [])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        for no_optimize in (0, 1):
            session = libsonde.Session(libsonde.Context(1), model.SerializeToString(), no_optimize=no_optimize)
            yield session.run({} if constant else dict(zip(names, arrays)))[0]
            session.close()


LOWEST = (np.array([LOW], np.int64), np.array([3192544739356744274], np.int64))
# ONNX has no Neg of unsigned integers.
CASES = [(op, kind) for kind in ("SIGNED", "UNSIGNED", "LOWEST") for op in (*BINARY, *UNARY)
         if (op, kind) != ("Neg", "UNSIGNED")]


@pytest.mark.parametrize("op, kind", CASES)
def test_constants_at_the_ends_of_their_type_give_what_a_run_gives(op, kind):
    pair = globals()[kind]
    arrays = list(pair) if op in BINARY else [pair[0]]
    with np.errstate(all="ignore"):
        expected = (BINARY.get(op) or UNARY[op])(*arrays)
    for got in results(op, arrays, expected.dtype):
        assert got.dtype == expected.dtype and np.array_equal(got, expected), (op, got, expected)


@pytest.mark.parametrize("start", [LOW, LOW + 5, 2**63 - 4, -2])
def test_a_range_may_begin_at_either_end(start):
    limits = [np.array(start), np.array(start + 3), np.array(1)]
    for got in results("Range", limits, np.int64):
        assert got.tolist() == [start, start + 1, start + 2]


def test_a_slice_to_the_lowest_number_reverses():
    import libsonde

    x = np.arange(6, dtype=np.float32)
    names = ["starts", "ends", "axes", "steps"]
    graph = helper.make_graph([helper.make_node("Slice", ["x", *names], ["y"])], "one",
                              [helper.make_tensor_value_info("x", 1, [6])],
                              [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.array([v]), n) for n, v in zip(names, (-1, LOW, 0, -1))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for no_optimize in (0, 1):
        session = libsonde.Session(libsonde.Context(1), model.SerializeToString(), no_optimize=no_optimize)
        assert session.run({"x": x})[0].tolist() == x[::-1].tolist()
        session.close()
