# SPDX-License-Identifier: Apache-2.0
"""Models larger than one expects: 2 GB of external weights (a sparse file), shapes of ten thousand dims, a memory
limit, graphs whose cost must grow with their size and no faster."""

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


def sonde(*args):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE)


def save(path, nodes, inputs, outputs, initializers=()):
    graph = h.make_graph(nodes, "large", inputs, outputs, list(initializers))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def value(name, dtype=T.FLOAT, shape=None):
    return h.make_tensor_value_info(name, dtype, shape)


@pytest.fixture
def two_gigabytes(tmp_path):
    """Gather of the last row of weights in a file beside the model."""
    rows, columns = 2300, 262144
    weights = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[rows, columns], data_location=T.EXTERNAL)
    for key, text in (("location", "w.bin"), ("length", str(rows * columns * 4))):
        weights.external_data.add(key=key, value=text)
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(rows * columns * 4)
        file.seek((rows - 1) * columns * 4)
        file.write(np.arange(columns, dtype=np.float32).tobytes())
    np.savez(tmp_path / "in.npz", i=np.array([rows - 1]))
    return save(tmp_path / "m.onnx", [h.make_node("Gather", ["w", "i"], ["y"])], [value("i", T.INT64, [1])],
                [value("y")], [weights])


def test_external_weights_of_two_gigabytes_are_mapped(two_gigabytes, tmp_path):
    done = sonde("run", two_gigabytes, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--max-memory", "100M")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npz")["y"][0, -1] == 262143


def test_reading_instead_of_mapping_meets_the_limit(two_gigabytes, tmp_path):
    done = sonde("run", two_gigabytes, "-i", tmp_path / "in.npz", "--no-mmap", "--max-memory", "100M")
    assert done.returncode == 1 and "cannot allocate" in done.stderr


@pytest.mark.parametrize("where", ["input", "initializer", "Reshape"])
def test_ten_thousand_dims_are_refused(tmp_path, where):
    dims, constants, inputs = [1] * 10000, [], [value("x", T.FLOAT, [1])]
    node = h.make_node("Relu", ["x"], ["y"])
    if where == "input":
        inputs = [value("x", T.FLOAT, dims)]
    elif where == "initializer":
        inputs, constants = [], [onnx.TensorProto(name="x", data_type=T.FLOAT, dims=dims, raw_data=b"\0\0\0\0")]
    else:
        node, constants = h.make_node("Reshape", ["x", "s"], ["y"]), [h.make_tensor("s", T.INT64, [10000], dims)]
    done = sonde("run", save(tmp_path / "m.onnx", [node], inputs, [value("y")], constants))
    assert done.returncode == 1 and "dim" in done.stderr and len(done.stderr) < 300


def test_zero_size_tensors_go_through(tmp_path):
    nodes = [h.make_node("Conv", ["x", "w"], ["a"]), h.make_node("Relu", ["a"], ["b"]),
             h.make_node("GlobalAveragePool", ["b"], ["c"]), h.make_node("Flatten", ["c"], ["y"])]
    weights = h.make_tensor("w", T.FLOAT, [4, 3, 1, 1], np.ones(12, np.float32))
    path = save(tmp_path / "m.onnx", nodes, [value("x", T.FLOAT, ["N", 3, 5, 5])], [value("y")], [weights])
    np.savez(tmp_path / "in.npz", x=np.zeros((0, 3, 5, 5), np.float32))
    done = sonde("run", path, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npz")["y"].shape == (0, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="counts instructions with valgrind")
def test_ten_times_the_nodes_cost_ten_times_as_much(tmp_path):
    """Instructions of load, bind and run, which unlike time do not depend on the machine."""

    def cost(n):
        nodes = [h.make_node(("Add", "Relu", "MatMul")[k % 3], [f"v{k}"] + [["x"], [], ["w"]][k % 3], [f"v{k + 1}"])
                 for k in range(n)]
        nodes.insert(0, h.make_node("Identity", ["x"], ["v0"]))
        weights = h.make_tensor("w", T.FLOAT, [4, 4], np.ones(16, np.float32))
        path = save(tmp_path / f"{n}.onnx", nodes, [value("x", T.FLOAT, [1, 4])], [value(f"v{n}")], [weights])
        try:
            done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp_path}/out", PROGRAM,
                                   "run", path, "-t", "1", "--cpu", "avx2"],
                                  capture_output=True, text=True, timeout=PATIENCE)
        except FileNotFoundError:
            pytest.skip("valgrind is not installed")
        if "Collected" not in done.stderr:
            pytest.skip("valgrind cannot run here: " + done.stderr[-200:])
        return int(done.stderr.split("Collected :")[1].split()[0])

    small, middle, large = cost(300), cost(3000), cost(30000)
    assert (large - small) / (middle - small) < 1.3 * (30000 - 300) / (3000 - 300)
