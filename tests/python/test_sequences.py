# SPDX-License-Identifier: Apache-2.0
"""Sequences that grow and shrink in loops: memory is taken in proportion to the elements, not to their square. Bytes are
counted, not time."""

import ctypes

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import libsonde

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
LIBC = ctypes.CDLL(None)
LIBC.aligned_alloc.restype, LIBC.aligned_alloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]


class CountingContext(libsonde.Context):
    """A context that counts the bytes it is asked for."""

    def __init__(self):
        self.bytes = 0

        def take(_, size):
            self.bytes += size
            return LIBC.aligned_alloc(64, (size + 63) // 64 * 64)

        self.take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(take)
        self.give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
            lambda _, pointer, size: LIBC.free(pointer))
        options = libsonde._ContextOptions(
            struct_size=ctypes.sizeof(libsonde._ContextOptions), threads=1,
            alloc=ctypes.cast(self.take, ctypes.c_void_p), free=ctypes.cast(self.give, ctypes.c_void_p))
        self.ptr = libsonde.P()
        libsonde._call("sonde_context_create", ctypes.byref(options), ctypes.byref(self.ptr))


def sequence(name):
    return helper.make_tensor_sequence_value_info(name, FLOAT, None)


def value(name, kind=FLOAT, shape=()):
    return helper.make_tensor_value_info(name, kind, shape)


def loop(nodes, before=(), after=()):
    """`nodes` make the sequence `next` of `now` and the number `i`, `n` times; then its length is taken."""
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), *nodes], "body",
                             [value("i", INT64), value("go", BOOL), sequence("now")], [value("on", BOOL), sequence("next")])
    return helper.make_model(helper.make_graph(
        [*before, helper.make_node("Loop", ["n", "", "start"], ["end"], body=body), *after,
         helper.make_node("SequenceLength", ["end"], ["length"])], "g", [value("n", INT64)], [value("length", INT64)],
        [numpy_helper.from_array(np.float32([1, 2, 3]), "x"), numpy_helper.from_array(np.int64(0), "zero")]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


EMPTY = [helper.make_node("SequenceEmpty", [], ["start"])]
FULL = [helper.make_node("Expand", ["zero", "n1"], ["many"]), helper.make_node("SplitToSequence", ["many"], ["start"])]
GROWING = {
    "SequenceInsert": [helper.make_node("SequenceInsert", ["now", "x"], ["next"])],
    "SequenceInsert of what the body makes": [helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
                                              helper.make_node("SequenceInsert", ["now", "f"], ["next"])],
    "two of them": [helper.make_node("SequenceInsert", ["now", "x"], ["mid"]),
                    helper.make_node("SequenceInsert", ["mid", "x"], ["next"])],
    "a queue": [helper.make_node("SequenceInsert", ["now", "x"], ["a"]),
                helper.make_node("SequenceInsert", ["a", "x"], ["b"]),
                helper.make_node("SequenceErase", ["b", "zero"], ["next"])],
}


@pytest.mark.parametrize("name", GROWING)
def test_a_sequence_that_grows_in_a_loop_takes_memory_in_proportion(name):
    context = CountingContext()
    session = libsonde.Session(context, loop(GROWING[name], EMPTY))
    session.run({"n": np.int64(10)})
    took = []
    for n in (500, 1000, 2000):
        before = context.bytes
        (length,) = session.run({"n": np.int64(n)})
        took.append(context.bytes - before)
        assert length == n * (2 if name.startswith("two") else 1)
    assert took[1] < 2.6 * took[0] and took[2] < 2.6 * took[1], took


def test_what_was_before_stays_as_it_was():
    """Two branches of one sequence, and the sequence itself, at the same time."""
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["s"]), helper.make_node("SequenceInsert", ["s", "y"], ["a"]),
             helper.make_node("SequenceInsert", ["s", "z"], ["b"]), helper.make_node("SequenceInsert", ["a", "x"], ["c"]),
             helper.make_node("SequenceErase", ["c"], ["d"]), helper.make_node("SequenceErase", ["c", "zero"], ["e"]),
             *(helper.make_node("ConcatFromSequence", [s], [s + "_"], axis=0) for s in "sabcde")]
    model = helper.make_model(helper.make_graph(
        nodes, "g", [value(k, shape=[1]) for k in "xyz"], [value(s + "_", shape=None) for s in "sabcde"],
        [numpy_helper.from_array(np.int64(0), "zero")]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = libsonde.Session(libsonde.Context(), model.SerializeToString())
    for _ in range(2):
        got = session.run({k: np.float32([i]) for i, k in enumerate("xyz")})
        assert [r.tolist() for r in got] == [[0], [0, 1], [0, 2], [0, 1, 0], [0, 1], [1, 0]]
