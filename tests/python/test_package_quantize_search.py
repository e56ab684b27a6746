# SPDX-License-Identifier: Apache-2.0
"""What people ask of sonde.quantize and `sonde quantize`: a goal, a number of samples, nodes by name, numbers in range; and
what happens where samples or models are bad, or somebody interrupts."""

import itertools
import json
import os
import signal
import subprocess
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import sonde
from patience import PATIENCE
from quantize_models import Net, run, sqnr

PROGRAM = os.environ.get("SONDE_PROGRAM")
needs_program = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


def samples(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 16)).astype(np.float32)


def chain(layers=12, harm=(2, 5, 6, 9), batch="batch", seed=3):
    """Products one after the other; those of `harm` lose most, because one column is far larger than the others."""
    n, x = Net(seed), "x"
    for i in range(layers):
        w = n.rng.standard_normal((16, 16)).astype(np.float32) / 4
        if i in harm:
            w[:, i] *= 60
        x = n.node("Tanh", n.node("MatMul", x, n.constant(w)))
    n.node("Identity", x, outputs=["y"])
    return n.model([batch, 16], "y")


def program(*arguments, cwd):
    return subprocess.run([PROGRAM, *map(os.fspath, arguments)], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)


# ---------------------------------------------------------------- the goal
def left_for(goal, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a goal that is missed
        return sonde.quantize(chain(), path, {"x": samples(8)}, goal=goal, per_channel=False).attrs


def test_a_goal_leaves_as_few_layers_in_float_as_it_needs(tmp_path):
    """Every number of layers may be the answer, not powers of two alone, and more than half of them."""
    float_, x = run(sonde, chain(), {"x": samples(8)})[0], {"x": samples(8)}
    found, last = {}, 0
    start = sonde.quantize(chain(), tmp_path / "q.onnx", x, per_channel=False).attrs["sqnr_db"]
    for goal in np.arange(start + 0.5, start + 40, 1.5):
        attrs = left_for(float(goal), tmp_path / "q.onnx")
        if attrs["goal_missed"]:
            break
        assert attrs["sqnr_db"] >= goal and attrs["left_for_goal"] >= last
        assert abs(sqnr(float_, run(sonde, tmp_path / "q.onnx", x)[0]) - attrs["sqnr_db"]) < 0.5
        last = attrs["left_for_goal"]
        found[last] = goal
    assert set(found) - {1, 2, 4, 8}, found
    assert max(found) > 6, found


def test_a_goal_gives_the_same_file_each_time(tmp_path):
    start = sonde.quantize(chain(), tmp_path / "q.onnx", {"x": samples(8)}, per_channel=False).attrs["sqnr_db"]
    made = []
    for name in ("a.onnx", "b.onnx"):
        left_for(start + 8, tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


def test_a_goal_that_only_the_float_model_meets_is_missed_and_the_best_is_written(tmp_path):
    with pytest.warns(RuntimeWarning, match="the goal of 190 dB was not met"):
        table = sonde.quantize(chain(), tmp_path / "q.onnx", {"x": samples(8)}, goal=190)
    assert table.attrs["products_quantized"] >= 1
    plain = sonde.quantize(chain(), tmp_path / "p.onnx", {"x": samples(8)})
    assert table.attrs["sqnr_db"] > plain.attrs["sqnr_db"] and (tmp_path / "q.onnx").exists()


def test_a_goal_needs_outputs_of_floats(tmp_path):
    n = Net()
    n.node("ArgMax", n.node("MatMul", "x", n.weight(16, 16)), outputs=["y"])
    proto = onnx.load_from_string(n.model(["batch", 16], "y"))
    proto.graph.output[0].type.tensor_type.elem_type = T.INT64
    assert np.isnan(sonde.quantize(proto, tmp_path / "q.onnx", {"x": samples(4)}).attrs["sqnr_db"])
    with pytest.raises(sonde.Error, match="goal in dB cannot be measured"):
        sonde.quantize(proto, tmp_path / "r.onnx", {"x": samples(4)}, goal=20)
    assert not (tmp_path / "r.onnx").exists()


# ---------------------------------------------------------------- samples
def test_the_number_of_samples_holds_wherever_they_come_from(tmp_path):
    x = samples(9)
    np.savez(tmp_path / "x.npz", x=x)
    np.save(tmp_path / "x.npy", x)
    for folder, save in (("npz", lambda p, a: np.savez(p, x=a)), ("npy", np.save)):
        (tmp_path / folder).mkdir()
        for i in range(3):
            save(tmp_path / folder / f"{i}.{folder}", x[3 * i:3 * i + 3])
    sources = [{"x": x}, ({"x": row[None]} for row in itertools.cycle(x)), tmp_path / "x.npz", tmp_path / "x.npy",
               [tmp_path / "x.npz", tmp_path / "x.npy"], tmp_path / "npz", tmp_path / "npy"]
    made = []
    for source in sources:
        table = sonde.quantize(chain(3), tmp_path / "q.onnx", source, max_samples=4)
        assert table.attrs["samples"] == 4
        made.append((tmp_path / "q.onnx").read_bytes())
    assert made == made[:1] * len(made)
    assert sonde.quantize(chain(3), tmp_path / "q.onnx", tmp_path / "npz").attrs["samples"] == 9


@needs_program
def test_the_program_takes_the_first_samples_of_a_file(tmp_path):
    (tmp_path / "m.onnx").write_bytes(chain(3))
    np.savez(tmp_path / "x.npz", x=samples(9))
    np.save(tmp_path / "x.npy", samples(9))
    for name in ("x.npz", "x.npy"):
        done = program("quantize", "m.onnx", "--calibrate", name, "--samples", "4", "--no-measure", "-q", "--json", "-",
                       "-o", "q.onnx", cwd=tmp_path)
        assert (done.returncode, json.loads(done.stdout)["samples"]) == (0, 4)


def test_an_array_without_a_name_needs_a_model_of_one_input(tmp_path):
    n = Net()
    n.node("MatMul", n.node("Add", "x", "z"), n.weight(16, 16), outputs=["y"])
    data = n.model([1, 16], "y", extra_inputs=[h.make_tensor_value_info("z", T.FLOAT, [1, 16])])
    np.save(tmp_path / "x.npy", samples(2))
    with pytest.raises(sonde.Error, match="x.npy': an .npy file is the array of one input"):
        sonde.quantize(data, tmp_path / "q.onnx", tmp_path / "x.npy")


def test_rows_that_fill_no_batch_are_told(tmp_path):
    with pytest.warns(RuntimeWarning, match="fixed batch.* the last 1 rows are not used"):
        table = sonde.quantize(chain(3, batch=2), tmp_path / "q.onnx", {"x": samples(7)})
    assert (table.attrs["samples"], table.attrs["left_over"]) == (3, 1)
    assert sonde.quantize(chain(3, batch=2), tmp_path / "q.onnx", {"x": samples(7)}, max_samples=2).attrs["left_over"] == 0


@needs_program
def test_the_program_warns_of_rows_that_fill_no_batch(tmp_path):
    (tmp_path / "m.onnx").write_bytes(chain(3, batch=2))
    np.savez(tmp_path / "x.npz", x=samples(5))
    done = program("quantize", "m.onnx", "--calibrate", "x.npz", "--no-measure", "-q", "-o", "q.onnx", cwd=tmp_path)
    assert done.returncode == 0 and "fixed batch" in done.stderr and "the last 1 row is not used" in done.stderr


@needs_program
def test_the_program_warns_of_an_input_that_is_always_zero(tmp_path):
    (tmp_path / "m.onnx").write_bytes(chain(3))
    np.savez(tmp_path / "x.npz", x=np.zeros_like(samples(4)))
    done = program("quantize", "m.onnx", "--calibrate", "x.npz", "--no-measure", "-o", "q.onnx", cwd=tmp_path)
    assert done.returncode == 0 and "input 'x' is 0 on every sample" in done.stderr


# ---------------------------------------------------------------- numbers that are not finite
def bad_model(op):
    """The tensor that is not finite is an output, and no product reads it."""
    n = Net()
    n.node(op, n.node("MatMul", "x", n.weight(16, 16)), outputs=["y"])
    return n.model(["batch", 16], "y")


@pytest.mark.parametrize("options", [{}, {"dynamic": True}, {"weights_only": 8}, {"goal": 20}])
@pytest.mark.parametrize("op, what", [("Sqrt", "NaN"), ("Log", "NaN")])
def test_outputs_that_are_not_finite_are_an_error(tmp_path, op, what, options):
    with pytest.raises(sonde.Error, match=rf"sample 0: tensor 'y' has {what}; node '{op}_y' \({op}\) makes it"):
        sonde.quantize(bad_model(op), tmp_path / "q.onnx", {"x": samples(3)}, **options)
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("value, what", [(np.nan, "NaN"), (np.inf, "infinities")])
def test_samples_and_activations_that_are_not_finite_are_an_error(tmp_path, value, what):
    x = samples(4)
    x[2, 3] = value
    with pytest.raises(sonde.Error, match=f"sample 2: tensor 'x' has {what}; it is an input of the model"):
        sonde.quantize(chain(3), tmp_path / "q.onnx", {"x": x})
    n = Net()
    inner, signs = n.node("Sqrt", "x"), np.array([[1], [-1], [1]], np.float32)
    n.node("MatMul", inner, n.weight(16, 16), outputs=["y"])
    with pytest.raises(sonde.Error, match=r"sample 1: tensor 'v0' has NaN; node 'Sqrt_v0' \(Sqrt\) makes it"):
        sonde.quantize(n.model(["batch", 16], "y"), tmp_path / "q.onnx", {"x": np.abs(samples(3)) * signs})
    assert not (tmp_path / "q.onnx").exists()


# ---------------------------------------------------------------- nodes by name
def test_nodes_are_selected_as_in_sparsify(tmp_path):
    data, x = chain(4), {"x": samples(4)}
    products = [node.name for node in onnx.load_from_string(data).graph.node if node.op_type == "MatMul"]
    (tmp_path / "names.txt").write_text(f"{products[0]}\n\n  {products[2]}\n")
    cases = [(f"{products[0]},{products[2]}", {0, 2}), ("MatMul_*", {0, 1, 2, 3}), (f"@{tmp_path}/names.txt", {0, 2}),
             (["c1", "v0"], {0, 1}), (f"MatMul_v?,{products[1]}", {0, 1, 2, 3})]
    for entry, expected in cases:
        pruned = sonde.sparsify(data, None, 0.5, only=entry).set_index("node").skipped
        assert {i for i, name in enumerate(products) if pruned[name] == ""} == expected
        table = sonde.quantize(data, tmp_path / "q.onnx", x, only_nodes=entry).set_index("node").made
        assert {i for i, name in enumerate(products) if table[name] == "int8"} == expected
        if len(expected) < 4:
            table = sonde.quantize(data, tmp_path / "q.onnx", x, except_nodes=entry).set_index("node").made
            assert {i for i, name in enumerate(products) if table[name] == "float"} == expected


@pytest.mark.parametrize("entry, message", [("MatMul_v01", "no node and no weight 'MatMul_v01'; similar names: 'MatMul_v0'"),
                                            ("Conv*", r"no node and no weight 'Conv\*'; its first names: 'MatMul_v0'"),
                                            ("@nowhere", "cannot open 'nowhere'"), ("", "is empty")])
def test_names_of_nothing_are_refused_alike(tmp_path, entry, message):
    for option in ("only_nodes", "except_nodes"):
        with pytest.raises(sonde.Error, match=message):
            sonde.quantize(chain(3), tmp_path / "q.onnx", {"x": samples(2)}, **{option: entry})
    for option in ("only", "except_"):
        with pytest.raises(sonde.Error, match=message):
            sonde.sparsify(chain(3), tmp_path / "q.onnx", **{option: entry})
    assert not (tmp_path / "q.onnx").exists()


def test_a_convolution_stays_in_float_with_the_normalisation_that_is_folded_into_it(tmp_path):
    n = Net()
    ones = [n.constant(np.ones(4, np.float32)) for _ in range(4)]
    n.node("BatchNormalization", n.node("Conv", "x", n.weight(4, 3, 3, 3)), *ones, outputs=["b"])
    n.node("Conv", n.node("Relu", "b"), n.weight(2, 4, 1, 1), outputs=["y"])
    x = {"x": np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)}
    table = sonde.quantize(n.model([1, 3, 8, 8], "y"), tmp_path / "q.onnx", x, except_nodes="BatchNormalization_*")
    assert list(table[table.op_type == "Conv"].made) == ["float", "int8"]


def test_names_of_a_file_must_be_of_the_model(tmp_path):
    (tmp_path / "c.json").write_text('{"schema": "sonde.compare/1", "leave_in_float": ["MatMul_v0", "other"]}')
    with pytest.raises(sonde.Error, match="c.json': the model has no node and no weight 'other'"):
        sonde.quantize(chain(3), tmp_path / "q.onnx", {"x": samples(2)}, except_nodes=f"@{tmp_path}/c.json")
    (tmp_path / "c.json").write_text('{"schema": "sonde.compare/1", "leave_in_float": []}')
    table = sonde.quantize(chain(3), tmp_path / "q.onnx", {"x": samples(2)}, except_nodes=f"@{tmp_path}/c.json")
    assert table.attrs["products_quantized"] == 3


def test_names_of_a_file_are_no_patterns(tmp_path):
    """Also behind the mark that some editors put in front of a text."""
    nodes = [h.make_node("MatMul", [x, w], [y], name=name)
             for x, w, y, name in (("x", "a", "u", "*"), ("u", "b", "v", "st*r"), ("v", "c", "y", "star"))]
    weights = [onnx.numpy_helper.from_array(samples(16, seed), name) for seed, name in enumerate("abc")]
    ends = [[h.make_tensor_value_info(name, T.FLOAT, ["batch", 16])] for name in "xy"]
    data = h.make_model(h.make_graph(nodes, "net", *ends, weights), ir_version=8,
                        opset_imports=[h.make_opsetid("", 17)]).SerializeToString()
    (tmp_path / "c.json").write_text('{"schema": "sonde.compare/1", "leave_in_float": ["*", "st*r"]}')
    (tmp_path / "n.txt").write_bytes("\ufeffst*r\n*\n".encode())
    for name in ("c.json", "n.txt"):
        table = sonde.quantize(data, tmp_path / "q.onnx", {"x": samples(4)}, except_nodes=f"@{tmp_path}/{name}")
        assert dict(zip(table.node, table.made, strict=True)) == {"*": "float", "st*r": "float", "star": "int8"}


# ---------------------------------------------------------------- numbers in range
@pytest.mark.parametrize("options, message", [
    ({"percentile": 0}, "percentile is 0; it must be above 50 and at most 100"),
    ({"percentile": float("nan")}, "percentile is nan"), ({"percentile": 100.1}, "at most 100"),
    ({"weights_only": 4, "block_size": 0}, "block_size is 0; it must be a power of two from 16 to 1048576"),
    ({"weights_only": 4, "block_size": 1 << 21}, "power of two"), ({"weights_only": 4, "block_size": -32}, "power of two"),
    ({"goal": 0}, "goal is 0; it must be a number of dB above 0"), ({"goal": -3.0}, "above 0"),
    ({"goal": float("inf")}, "above 0"), ({"goal": float("nan")}, "above 0"), ({"max_samples": -1}, "at least 1"),
])
def test_numbers_out_of_range_are_refused(tmp_path, options, message):
    with pytest.raises(sonde.Error, match=message):
        sonde.quantize(chain(2), tmp_path / "q.onnx", {"x": samples(2)}, **options)
    assert not (tmp_path / "q.onnx").exists()


# ---------------------------------------------------------------- models
def test_models_are_given_as_sessions_take_them(tmp_path):
    data, x = chain(3), {"x": samples(4)}
    (tmp_path / "m.onnx").write_bytes(data)
    made = []
    for model in (data, bytearray(data), memoryview(data), onnx.load_from_string(data), tmp_path / "m.onnx",
                  os.fspath(tmp_path / "m.onnx")):
        sonde.quantize(model, tmp_path / "q.onnx", x)
        made.append((tmp_path / "q.onnx").read_bytes())
        assert len(sonde.sparsify(model, None, 0.5)) == 3
    assert made == made[:1] * len(made)
    with pytest.raises(TypeError, match="Unable to load from type"):
        sonde.quantize(7, tmp_path / "q.onnx", x)
    with pytest.raises(sonde.Error):
        sonde.quantize(tmp_path / "gone.onnx", tmp_path / "q.onnx", x)


# ---------------------------------------------------------------- interruption
@needs_program
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_calibration_writes_nothing(tmp_path, number):
    from test_interrupt import Program

    np.savez(tmp_path / "x.npz", input=np.zeros((64, 3, 224, 224), np.float32))
    running = Program(tmp_path, "quantize", "zoo:mobilenet_v2", "--calibrate", "x.npz", "-o", "q.onnx", "--json", "q.json")
    running.wait_for(b"calibrating", 2)
    status, out, said = running.end(number)
    assert (status, out, said) == (128 + number, "", "sonde: interrupted; no file was written\n")
    assert os.listdir(tmp_path) == ["x.npz"]
