#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small models and tensor files for the fuzzers to start from.

    python tests/fuzz/make_seeds.py FOLDER [PROGRAM]

makes FOLDER/model/*.onnx for fuzz_model, FOLDER/graph/*.onnx, which are these and one for each operator and
version, for fuzz_graph, those of them with weights in FOLDER/tools for fuzz_tools, and FOLDER/tensor/* for
fuzz_tensor (first byte: the reader). PROGRAM is sonde's: with it the small models of its zoo are there too, and
FOLDER/profile/* for fuzz_profile (first byte: the reader). Needs the onnx and numpy packages.
"""

import io
import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from node_seeds import MAX_BYTES, node_seeds
from operator_seeds import operator_seeds
from profile_seeds import profile_seeds

FOLDERS = ("model", "graph", "tools", "tensor", "profile")
OPSETS = [h.make_opsetid("", 18)]


def value(name, dtype=T.FLOAT, shape=("N", 4)):
    return h.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=(), functions=(), opsets=None, **kw):
    graph = h.make_graph(nodes, "seed", inputs, outputs, list(initializers), **kw)
    return h.make_model(graph, opset_imports=opsets or OPSETS, functions=list(functions), ir_version=10)


def weights(name, *shape, dtype=np.float32):
    count = int(np.prod(shape))
    return nh.from_array((np.arange(count) % 7 - 3).astype(dtype).reshape(shape), name)


def mlp():
    return model(
        [
            h.make_node("MatMul", ["x", "w"], ["a"]),
            h.make_node("Add", ["a", "b"], ["c"]),
            h.make_node("Relu", ["c"], ["d"]),
            h.make_node("Softmax", ["d"], ["y"], axis=-1),
        ],
        [value("x")],
        [value("y", shape=("N", 3))],
        [weights("w", 4, 3), weights("b", 3)],
    )


def conv():
    return model(
        [
            h.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
            h.make_node("BatchNormalization", ["a", "s", "b", "b", "s"], ["n"]),
            h.make_node("Relu", ["n"], ["r"]),
            h.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]),
            h.make_node("GlobalAveragePool", ["p"], ["g"]),
            h.make_node("Flatten", ["g"], ["y"]),
        ],
        [value("x", shape=("N", 3, 8, 8))],
        [value("y", shape=("N", 4))],
        [weights("w", 4, 3, 3, 3), weights("b", 4), nh.from_array(np.ones(4, np.float32), "s")],
    )


def shapes():
    return model(
        [
            h.make_node("Shape", ["x"], ["s"]),
            h.make_node("Gather", ["s", "zero"], ["n"], axis=0),
            h.make_node("Concat", ["n", "two"], ["t"], axis=0),
            h.make_node("Reshape", ["x", "t"], ["r"]),
            h.make_node("Transpose", ["r"], ["p"], perm=[1, 0, 2]),
            h.make_node("Slice", ["p", "zero", "one", "zero"], ["y"]),
        ],
        [value("x")],
        [value("y", shape=("a", "b", "c"))],
        [nh.from_array(np.array(v, np.int64), n) for n, v in [("zero", [0]), ("one", [1]), ("two", [2, 2])]],
    )


def branches():
    def body(op, name):
        return h.make_graph([h.make_node(op, ["x"], [name])], op, [], [value(name)])

    return model(
        [
            h.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
            h.make_node("Greater", ["total", "limit"], ["c"]),
            h.make_node("If", ["c"], ["y"], then_branch=body("Neg", "t"), else_branch=body("Abs", "e")),
        ],
        [value("x")],
        [value("y")],
        [nh.from_array(np.array(0, np.float32), "limit")],
    )


def loop():
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c2"]), h.make_node("Add", ["v", "x"], ["v2"])],
        "body",
        [value("i", T.INT64, []), value("c", T.BOOL, []), value("v")],
        [value("c2", T.BOOL, []), value("v2"), value("v2")],
    )
    body.output[2].name = "scan"
    body.node.append(h.make_node("Identity", ["v2"], ["scan"]))
    return model(
        [h.make_node("Loop", ["trips", "go", "x"], ["y", "all"], body=body)],
        [value("x")],
        [value("y"), value("all", shape=("t", "N", 4))],
        [nh.from_array(np.array(3, np.int64), "trips"), nh.from_array(np.array(True), "go")],
    )


def scan():
    body = h.make_graph(
        [h.make_node("Add", ["s", "e"], ["s2"]), h.make_node("Identity", ["s2"], ["o"])],
        "body",
        [value("s", shape=(4,)), value("e", shape=(4,))],
        [value("s2", shape=(4,)), value("o", shape=(4,))],
    )
    return model(
        [h.make_node("Scan", ["z", "x"], ["last", "y"], body=body, num_scan_inputs=1)],
        [value("x")],
        [value("last", shape=(4,)), value("y")],
        [nh.from_array(np.zeros(4, np.float32), "z")],
    )


def sequences():
    return model(
        [
            h.make_node("SequenceConstruct", ["x", "x"], ["s"]),
            h.make_node("SequenceInsert", ["s", "x"], ["t"]),
            h.make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
            h.make_node("SequenceLength", ["t"], ["n"]),
        ],
        [value("x")],
        [value("y", shape=("M", 4)), value("n", T.INT64, [])],
    )


def quantized():
    return model(
        [
            h.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
            h.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
            h.make_node("DequantizeLinear", ["w", "scale", "zero"], ["wd"]),
            h.make_node("MatMul", ["d", "wd"], ["y"]),
        ],
        [value("x")],
        [value("y")],
        [
            nh.from_array(np.array(0.5, np.float32), "scale"),
            nh.from_array(np.array(3, np.uint8), "zero"),
            weights("w", 4, 4, dtype=np.uint8),
        ],
    )


def functions():
    twice = h.make_function(
        "seed",
        "Twice",
        ["a"],
        ["b"],
        [h.make_node("Add", ["a", "a"], ["b"])],
        OPSETS,
    )
    return model(
        [h.make_node("Twice", ["x"], ["m"], domain="seed"), h.make_node("Twice", ["m"], ["y"], domain="seed")],
        [value("x")],
        [value("y")],
        functions=[twice],
        opsets=OPSETS + [h.make_opsetid("seed", 1)],
    )


def sparse_and_strings():
    values = h.make_tensor("w", T.FLOAT, [2], [1.0, 2.0])
    indices = h.make_tensor("wi", T.INT64, [2], [1, 6])
    sparse = h.make_sparse_tensor(values, indices, [4, 2])
    return model(
        [h.make_node("MatMul", ["x", "w"], ["y"]), h.make_node("Identity", ["names"], ["z"])],
        [value("x")],
        [value("y", shape=("N", 2)), value("z", T.STRING, [2])],
        [h.make_tensor("names", T.STRING, [2], [b"one", b"two"])],
        sparse_initializer=[sparse],
    )


def every_type():
    nodes, outputs, constants = [], [], []
    for dtype in range(1, 27):
        if dtype not in T.DataType.values() or dtype in (T.STRING, T.COMPLEX64, T.COMPLEX128):
            continue
        name = T.DataType.Name(dtype).lower()
        constants.append(h.make_tensor("c_" + name, dtype, [3], np.array([0, 1, 1], np.float32)))
        nodes.append(h.make_node("Identity", ["c_" + name], ["o_" + name]))
        outputs.append(value("o_" + name, dtype, [3]))
    return model(nodes, [], outputs, constants)


def transformer():
    return model(
        [
            h.make_node("LayerNormalization", ["x", "g", "b"], ["n"], axis=-1),
            h.make_node("Transpose", ["n"], ["k"], perm=[0, 2, 1]),
            h.make_node("MatMul", ["n", "k"], ["s"]),
            h.make_node("Softmax", ["s"], ["p"], axis=-1),
            h.make_node("MatMul", ["p", "n"], ["o"]),
            h.make_node("Erf", ["o"], ["e"]),
            h.make_node("Mul", ["o", "e"], ["m"]),
            h.make_node("Add", ["m", "x"], ["y"]),
        ],
        [value("x", shape=("N", "S", 4))],
        [value("y", shape=("N", "S", 4))],
        [nh.from_array(np.ones(4, np.float32), "g"), weights("b", 4)],
    )


def body(name, weights_read, dtype=T.FLOAT):
    """x through the matrices of that name, which are outside."""
    nodes, last = [], "h"
    for k, weight in enumerate(weights_read):
        nodes.append(h.make_node("MatMul", [last, weight], [f"{name}{k}"]))
        last = f"{name}{k}"
    return h.make_graph(nodes, name, [], [value(last, dtype, ("N", 32))])


def shared_weights():
    """Weights that both branches of an If read, and the main graph, too."""
    return model(
        [
            h.make_node("MatMul", ["x", "v"], ["h"]),
            h.make_node("If", ["c"], ["y"], then_branch=body("then", "uvw"), else_branch=body("else", "vw")),
        ],
        [value("x", shape=("N", 32)), value("c", T.BOOL, [])],
        [value("y", shape=("N", 32))],
        [weights(name, 32, 32) for name in "uvw"],
    )


def residual():
    """What is folded, widened and equalised: convolutions with normalisation, a sum, products of another rank."""
    ones, half = nh.from_array(np.ones(8, np.float32), "one"), nh.from_array(np.full(8, 0.5, np.float32), "half")
    return model(
        [
            h.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], name="first"),
            h.make_node("BatchNormalization", ["a", "one", "half", "half", "one"], ["b"], name="norm"),
            h.make_node("Relu", ["b"], ["c"]),
            h.make_node("Conv", ["c", "w2", "half"], ["d"], group=8, pads=[1, 1, 1, 1], name="depthwise"),
            h.make_node("Conv", ["d", "w3"], ["e"], name="second"),
            h.make_node("Add", ["e", "x"], ["f"]),
            h.make_node("GlobalAveragePool", ["f"], ["g"]),
            h.make_node("Flatten", ["g"], ["i"]),
            h.make_node("Gemm", ["i", "w4"], ["y"], transB=1, name="head"),
        ],
        [value("x", shape=("N", 8, 4, 4))],
        [value("y", shape=("N", 16))],
        [weights("w1", 8, 8, 3, 3), weights("w2", 8, 1, 3, 3), weights("w3", 8, 8, 1, 1), weights("w4", 16, 8), ones, half],
    )


MODELS = [shared_weights, residual, mlp, conv, shapes, branches, loop, scan, sequences, quantized, functions, sparse_and_strings,
          every_type, transformer]


def tensor_seeds():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for k, a in enumerate([array, np.asfortranarray(array), np.array(["a", "bc"]), np.array(True)]):
        buf = io.BytesIO()
        np.save(buf, a)
        yield f"{k}.npy", 0, buf.getvalue()
    for save in (np.savez, np.savez_compressed):
        buf = io.BytesIO()
        save(buf, a=array, b=array.astype(np.int64))
        yield f"{save.__name__}.npz", 1, buf.getvalue()
    header = json.dumps({"__metadata__": {"k": "v"},
                         "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    yield "a.safetensors", 2, struct.pack("<Q", len(header)) + header + array.tobytes()
    yield "a.ppm", 3, b"P6\n4 4\n255\n" + bytes(range(48))
    yield "tensor.pb", 4, nh.from_array(array, "t").SerializeToString()
    yield "sequence.pb", 5, nh.from_list([array, array], "s").SerializeToString()
    yield "optional.pb", 6, nh.from_optional(array, "o").SerializeToString()
    yield "map.pb", 7, nh.from_dict({1: array[0], 2: array[1]}, "m").SerializeToString()


def zoo_seeds(program, folder):
    for line in subprocess.run([program, "zoo"], check=True, capture_output=True, text=True).stdout.splitlines():
        name = line.split()[0]
        if name.startswith("tiny_"):
            path = folder / f"{name}.onnx"
            subprocess.run([program, "zoo", "save", name, path], check=True, capture_output=True)
            if path.stat().st_size > MAX_BYTES:
                path.unlink()


def has_weights(made):
    return any(len(t.dims) > 1 for t in made.graph.initializer)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for make in MODELS:
        made = make()
        onnx.checker.check_model(made)
        for folder in ("model", "graph", "tools"):
            (root / folder / f"{make.__name__}.onnx").write_bytes(made.SerializeToString())
    for source in (node_seeds, operator_seeds):
        for name, made in source():
            (root / "graph" / f"{name}.onnx").write_bytes(made.SerializeToString())
            if has_weights(made):
                (root / "tools" / f"{name}.onnx").write_bytes(made.SerializeToString())
    if len(sys.argv) == 3:
        zoo_seeds(sys.argv[2], root / "graph")
        zoo_seeds(sys.argv[2], root / "tools")
        profile_seeds(sys.argv[2], root / "profile")
    for name, reader, data in tensor_seeds():
        (root / "tensor" / name).write_bytes(bytes([reader]) + data)
    for folder in FOLDERS:
        print(f"{sum(1 for _ in (root / folder).iterdir())} in {root / folder}")


if __name__ == "__main__":
    main()
