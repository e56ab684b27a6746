# SPDX-License-Identifier: Apache-2.0
"""Small models run in every way there is in one process: at every CPU level, on one thread and two, with and without
passes. Their results must be the same bits."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import libsonde

LEVELS = (None, "baseline", "avx2", "avxvnni", "avx512", "vbmi", "vnni", "amx", "neon", "dotprod", "i8mm")
TYPES = {np.dtype(k): v for k, v in ((np.uint8, T.UINT8), (np.int8, T.INT8), (np.int32, T.INT32), (np.float32, T.FLOAT),
                                     (np.float64, T.DOUBLE), (np.float16, T.FLOAT16), (np.int64, T.INT64))}


def contexts():
    """All that this machine has: [(name, context)]."""
    made = []
    for level in LEVELS:
        for threads in (1, 2):
            try:
                made.append((f"{level} × {threads}", libsonde.Context(threads, level)))
            except libsonde.Failure as e:
                assert level not in (None, "baseline") and "instruction set" in str(e), e
    return made


def model(nodes, feeds, outputs, constants=(), opset=17, shapes=None):
    """`constants`: {name: array}. `outputs`: {name: numpy type}. `shapes`: of inputs, where not those of the feeds."""
    graph = h.make_graph(nodes, "g",
                         [h.make_tensor_value_info(k, TYPES[v.dtype], (shapes or {}).get(k, v.shape))
                          for k, v in feeds.items()],
                         [h.make_tensor_value_info(k, TYPES[np.dtype(t)], None) for k, t in outputs.items()],
                         [nh.from_array(np.asarray(v), k) for k, v in dict(constants).items()])
    opsets = [h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def each(model_bytes, feeds, **options):
    """The outputs, in every way."""
    for _, context in contexts():
        for no_optimize in (0, 1):
            session = libsonde.Session(context, model_bytes, no_optimize=no_optimize, **options)
            try:
                yield session.run(feeds)
            finally:
                session.close()


def run(model_bytes, feeds, **options):
    """The outputs, which are the same bits in every way."""
    first = None
    for got in each(model_bytes, feeds, **options):
        first = first or got
        for a, b in zip(first, got):
            assert a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return first
