# SPDX-License-Identifier: Apache-2.0
"""What the adapters for Ray, Dask and Spark share: columns become inputs and outputs columns, in order and in the model's
types; jobs travel, workers load where they arrive, each process once; traces of their own; weights once for a machine."""

import gc
import json
import os
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sonde = pytest.importorskip("sonde")
import sonde.zoo  # noqa: E402
from sonde import _trace, _worker  # noqa: E402
from sonde._worker import Job, Worker  # noqa: E402


def model(nodes, inputs, outputs):
    """The bytes of a model; ports are (name, type, shape)."""
    ports = [[helper.make_tensor_value_info(*port) for port in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "job", *ports)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def doubled(rows="n", width=3, kind=TensorProto.FLOAT):
    return model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", kind, [rows, width])], [("y", kind, [rows, width])])


ADDED = model([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])],
              [("a", TensorProto.FLOAT, ["n"]), ("b", TensorProto.FLOAT, ["n"])],
              [("sum", TensorProto.FLOAT, ["n"]), ("difference", TensorProto.FLOAT, ["n"])])


def worker(model, **arguments):
    return Worker(Job(model, share_weights=False, **arguments))


X = np.arange(21, dtype=np.float32).reshape(7, 3)


def test_columns_go_in_and_come_out_by_name():
    batch = {"id": np.arange(7), "image": X}
    results = worker(doubled(), inputs="image", outputs="scores", keep="id")(batch)
    assert list(results) == ["id", "scores"]
    assert np.array_equal(results["scores"], 2 * X) and np.array_equal(results["id"], batch["id"])
    assert list(worker(doubled())({"x": X})) == ["y"]
    both = worker(ADDED, inputs={"a": "left", "b": "right"})({"left": X[:, 0], "right": X[:, 1]})
    assert np.array_equal(both["sum"], X[:, 0] + X[:, 1]) and np.array_equal(both["difference"], X[:, 0] - X[:, 1])
    one = worker(ADDED, outputs={"difference": "d"})({"a": X[:, 0], "b": X[:, 1]})
    assert list(one) == ["d"]
    side = worker(doubled(), inputs={"x": ["p", "q", "r"]})({"p": X[:, 0], "q": X[:, 1], "r": X[:, 2]})
    assert np.array_equal(side["y"], 2 * X)


def test_hooks_see_dicts_and_change_them():
    job = worker(doubled(), pre=lambda batch: {"x": batch["bytes"].astype(np.float32) / 255},
                 post=lambda results: {"class": results["y"].argmax(axis=1)}, keep=["id"])
    pixels = np.array([[0, 255, 3], [9, 8, 7]], np.uint8)
    assert {name: column.tolist() for name, column in job({"id": np.array([4, 5]), "bytes": pixels}).items()} == {
        "id": [4, 5], "class": [1, 0]}


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8])
def test_a_model_of_fixed_rows_runs_batches_of_any_length(rows):
    made = worker(doubled(rows=rows))
    for n in (0, 1, rows, rows + 1, 3 * rows + 2):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        y = made({"x": x})["y"]
        assert y.shape == (n, 3) and y.dtype == np.float32 and np.array_equal(y, 2 * x)


@pytest.mark.parametrize("rows", [1, 8])
def test_with_rows_given_the_model_gets_so_many_whatever_the_batch(rows):
    made = worker("zoo:tiny_resnet", rows=rows)
    images = np.random.default_rng(1).random((20, 3, 32, 32), np.float32)
    with sonde.profile(level=1) as profiler:
        whole = made({"input": images})["output"]
        for cut in (1, 3, 8, 11):
            parts = np.concatenate([made({"input": images[i : i + cut]})["output"] for i in range(0, 20, cut)])
            assert np.allclose(parts, whole, atol=1e-5)
            assert rows > 1 or np.array_equal(parts, whole)
    assert {text.split("*")[0] for text in profiler.columns()["input_shapes"] if text} == {str(rows)}
    with pytest.raises(sonde.InvalidArgument, match="rows is 0"):
        Job("zoo:tiny_resnet", rows=0)


@pytest.mark.parametrize("empty", [np.empty((0, 3), np.float32), np.empty(0, object), np.empty(0)])
def test_an_empty_batch_has_results_of_the_same_types(empty):
    assert worker(doubled())({"x": empty})["y"].shape == (0, 3)
    classes = worker(doubled(), post=lambda results: {"class": results["y"].argmax(axis=1)})({"x": empty})["class"]
    assert classes.shape == (0,) and classes.dtype == np.int64


def test_cells_become_arrays_of_the_input():
    made = worker(doubled())
    cells = np.empty(7, object)
    for flat in (list(X), [row.tolist() for row in X], [tuple(row) for row in X.tolist()]):
        cells[:] = flat
        assert np.array_equal(made({"x": cells})["y"], 2 * X)
    image = worker(model([helper.make_node("Identity", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["n", 1, 2, 2])],
                         [("y", TensorProto.FLOAT, ["n", 1, 2, 2])]))
    flat = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(image({"x": flat})["y"], flat.reshape(3, 1, 2, 2))
    nested = np.empty(2, object)
    nested[:] = [np.array([np.array([1.0, 2.0]), None], object), np.array([3.0, 4.0])]
    nested[0][1] = np.array([3.0, 4.0])
    with pytest.raises(sonde.InvalidArgument, match="different shapes"):
        image({"x": nested})
    words = worker(model([helper.make_node("Identity", ["x"], ["y"])], [("x", TensorProto.STRING, ["n"])],
                         [("y", TensorProto.STRING, ["n"])]))
    texts = np.array(["a", "b\n'\"", "", "ü"], object)
    assert words({"x": texts})["y"].tolist() == texts.tolist()
    assert words({"x": np.empty(0, object)})["y"].shape == (0,)


def test_types_change_only_where_nothing_is_lost():
    made = worker(doubled())
    for kind in (np.float64, np.int64, np.uint8, bool):
        values = np.array([[0, 1, 1]]).astype(kind)
        assert made({"x": values})["y"].tolist() == [[0, 2, 2]]
    whole = worker(doubled(kind=TensorProto.INT32))
    assert whole({"x": np.array([[1, 2, -3]], np.int64)})["y"].tolist() == [[2, 4, -6]]
    with pytest.raises(sonde.InvalidArgument, match="column 'x' has numbers that do not fit int32"):
        whole({"x": np.array([[1, 2, 2**40]])})
    with pytest.raises(sonde.InvalidArgument, match="column 'x' has numbers that do not fit uint8"):
        worker(doubled(kind=TensorProto.UINT8))({"x": np.array([[1, 2, -3]])})
    with pytest.raises(sonde.InvalidArgument, match="column 'x' is float64, but input 'x' takes int32; convert it"):
        whole({"x": np.array([[1.5, 2, 3]])})


def one(kind):
    """A model that returns a column as it gets it."""
    return worker(model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, ["n"])], [("y", kind, ["n"])]))


FLOATS = {TensorProto.FLOAT16: np.float16, TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64}
EDGES = [0, 1, -1, 7, 127, 255, 257, 2047, 2048, 2049, 65504, 65505, 65519, 65520, 65536, *(
    sign * (2**power + less) for power in (24, 25, 31, 52, 53, 54, 60, 62, 63, 64) for less in (-2, -1, 0, 1, 2, 2**12)
    for sign in (1, -1))]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("integer", [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_become_only_floats_that_are_equal(kind, integer):
    made, info = one(kind), np.iinfo(integer)
    for value in EDGES:
        if not info.min <= value <= info.max:
            continue
        with np.errstate(over="ignore"):
            there = float(FLOATS[kind](value))
        column = np.array([3, 1, value], integer)
        if abs(there) < float("inf") and int(there) == value:
            assert int(made({"x": column})["y"][2]) == value
        else:
            with pytest.raises(sonde.InvalidArgument, match=f"column 'x' has numbers .* row 2 has {value}$"):
                made({"x": column})


@pytest.mark.parametrize("kind,limit", [(TensorProto.FLOAT, 3.4028235677973366e38), (TensorProto.FLOAT16, 65520.0)])
def test_floats_beyond_the_range_are_errors_and_infinities_are_not(kind, limit):
    """limit: what rounds to infinity."""
    made = one(kind)
    under = np.nextafter(limit, 0)
    got = made({"x": np.array([np.inf, -np.inf, np.nan, under, -under, 1e-300, 0.1])})["y"]
    assert got.tolist()[:2] == [np.inf, -np.inf] and np.isnan(got[2]) and np.isfinite(got[3:]).all() and got[5] == 0
    for value in (limit, -limit, 1e300):
        said = f"column 'x' has numbers that do not fit .* row 1 has {re.escape(str(value))}"
        with pytest.raises(sonde.InvalidArgument, match=said):
            made({"x": np.array([np.inf, value, np.nan])})
    with pytest.raises(sonde.InvalidArgument, match="column 'q' .* row 1 has -1e.300"):  # side by side, in cells
        worker(doubled(), inputs={"x": ["p", "q"]})({"p": [[1.0], [2.0]], "q": [[1.0, 2.0], [3.0, -1e300]]})
    with np.errstate(all="raise"):
        assert made({"x": np.array([1e-300])})["y"].tolist() == [0]


def test_integers_beside_floats_and_missing_values_are_not_lost():
    made = one(TensorProto.DOUBLE)
    assert made({"x": [0.5, 2**53 + 2, float("inf")]})["y"].tolist() == [0.5, 2**53 + 2, np.inf]
    with pytest.raises(sonde.InvalidArgument, match=f"column 'x' has integers beside floats .* row 1 has {2**60 + 1}"):
        made({"x": [0.5, 2**60 + 1]})
    with pytest.raises(sonde.InvalidArgument, match=f"row 1 has {2**53 + 1}"):
        worker(doubled(kind=TensorProto.DOUBLE))({"x": [[1.5, 2, 3], (0.5, 2**53 + 1, 3)]})
    with pytest.raises(sonde.InvalidArgument, match="row 1 of column 'x' has no value"):
        made({"x": np.ma.array([1.0, 2.0], mask=[False, True])})
    assert made({"x": np.ma.array([1.0, 2.0], mask=False)})["y"].tolist() == [1, 2]
    pandas = pytest.importorskip("pandas")
    assert made({"x": pandas.Series([1, 2], dtype="Int64")})["y"].tolist() == [1, 2]
    with pytest.raises(sonde.InvalidArgument, match="row 1 of column 'x' has no value"):
        made({"x": pandas.Series([2**60 + 1, None], dtype="Int64")})


def test_texts_are_texts():
    words = one(TensorProto.STRING)
    assert words({"x": ["a\0", "ü"]})["y"].tolist() == words({"x": [["a\0"], ["ü"]]})["y"].tolist() == ["a\0", "ü"]
    for wrong, said in (([1, 2], "value of type int"), (["a", 2.5], "value of type float"), (np.array([1, 2]), "int64")):
        with pytest.raises(sonde.InvalidArgument, match=f"column 'x' .*{said}, but input 'x' takes texts"):
            words({"x": wrong})
    with pytest.raises(sonde.InvalidArgument, match="row 1 of column 'x' has no value"):
        words({"x": ["a", None]})


def test_a_kept_column_and_one_of_the_result_have_two_names():
    batch = {"x": X, "y": np.arange(7), "s": np.arange(7)}
    with pytest.raises(sonde.InvalidArgument, match="keep has 's', but outputs= makes a column 's'"):
        Job("no such file.onnx", keep=["s"], outputs="s")
    with pytest.raises(sonde.InvalidArgument, match="keep has 'y', but the model makes a column 'y'"):
        worker(doubled(), keep=["y"])
    made = worker(doubled(), keep=["y"], post=lambda results: {"y": results["y"]})
    with pytest.raises(sonde.InvalidArgument, match="keep has 'y', but `post` returned a column 'y'"):
        made(batch)
    assert list(worker(doubled(), keep=["y"], outputs="z")(batch)) == ["y", "z"]
    assert list(worker(doubled(), keep=["y"], post=lambda results: {"z": results["y"]})(batch)) == ["y", "z"]
    with pytest.raises(sonde.InvalidArgument, match="outputs puts 'sum' and 'difference' into one column 's'"):
        Job(ADDED, outputs={"sum": "s", "difference": "s"})


def test_columns_of_a_result_have_equal_numbers_of_rows():
    fewer = worker(doubled(), post=lambda results: {"y": results["y"][:3]})
    assert len(fewer({"x": X})["y"]) == 3  # engines that allow it
    with pytest.raises(sonde.InvalidArgument, match="`post` returned 3 rows in column 'y' for 7 rows of the batch"):
        fewer({"x": X}, 7)
    with pytest.raises(sonde.InvalidArgument, match="equal numbers of rows: 'y' has 7, 'z' has 2"):
        worker(doubled(), post=lambda results: {"y": results["y"], "z": results["y"][:2]})({"x": X})
    half = {"pre": lambda batch: {"x": batch["x"][::2]}}
    with pytest.raises(sonde.InvalidArgument, match="the model returned 4 rows in column 'y' for 7 rows"):
        worker(doubled(), **half)({"x": X}, 7)
    with pytest.raises(sonde.InvalidArgument, match="equal numbers of rows: 'id' has 7, 'y' has 4"):
        worker(doubled(), keep=["id"], **half)({"x": X, "id": np.arange(7)})


@pytest.mark.parametrize("returned,said", [
    (None, "returned a value of type NoneType, expected a dict"), (3, "returned a value of type int, expected a dict"),
    (X, "returned a value of type ndarray, expected a dict"), ([("y", X)], "returned a value of type list"),
    ({"y": None}, r"returned a single value \(NoneType\) for column 'y'"),
    ({"y": 3.5}, r"returned a single value \(float\) for"),
    ({"y": np.float32(3)}, r"returned a single value \(float32\) for"),
    ({"y": np.array(3)}, r"returned a single value \(ndarray\) for"),
    ({"y": "abcdefg"}, r"returned a single value \(str\) for"), ({0: X}, "returned a column with the name 0, but names"),
])
def test_what_post_may_not_return_is_said(returned, said):
    with pytest.raises(sonde.InvalidArgument, match="`post` " + said):
        worker(doubled(), post=lambda _: returned)({"x": X})


def test_hooks_return_lists_and_raise_what_they_like():
    def wrong(columns):
        raise KeyError("mine")

    made = worker(doubled(), post=lambda results: {"a": [1] * 7, "b": ["é\0"] * 7, "c": [[1]] * 6 + [[1, 2]]})({"x": X})
    assert made["a"].dtype == np.int64 and made["b"].tolist() == ["é\0"] * 7 and made["c"][6] == [1, 2]
    for hook in ("pre", "post"):
        with pytest.raises(KeyError, match="mine"):
            worker(doubled(), **{hook: wrong})({"x": X})
    with pytest.raises(sonde.InvalidArgument, match="`pre` returned a value of type NoneType, expected a dict"):
        worker(doubled(), pre=lambda batch: None)({"x": X})


@pytest.mark.parametrize("argument,value,said", [
    ("rows", 1.5, "rows is 1.5, expected a whole number"), ("rows", True, "rows is True"), ("rows", "3", "rows is '3'"),
    ("rows", -1, "rows is -1"), ("keep", 3, "keep is 3"), ("keep", [1], "keep has the name 1, but names"),
    ("inputs", 3, "inputs is 3"), ("inputs", ["x"], r"inputs is \['x'\]"), ("inputs", {"x": 0}, r"inputs\['x'\] is 0"),
    ("inputs", {"x": [0, 1]}, r"inputs\['x'\] has the name 0"), ("inputs", {"x": []}, "names no column"),
    ("outputs", ["ys"], r"outputs is \['ys'\]"), ("outputs", {}, "names no output"), ("outputs", {"y": 1}, "is 1, exp"),
    ("outputs", {"y": ["a", "b"]}, "expected the name of one column"), ("pre", 3, "pre is 3, expected a function"),
    ("post", "f", "post is 'f', expected a function"), ("share_weights", None, "share_weights is None"),
    ("profile_to", 3, "profile_to is 3, expected the path"), ("labels", ["a"], "labels is .* expected a dict"),
])
def test_wrong_arguments_are_said_in_a_sentence(argument, value, said):
    with pytest.raises(sonde.InvalidArgument, match=said) as failed:
        Job("no such file.onnx", **{argument: value})
    assert "\n" not in str(failed.value)


def test_single_values_are_no_columns():
    for value in (1.5, 3, np.array(1.0), np.array(1, np.int8), None, "text", {}, {1, 2}):
        with pytest.raises(sonde.InvalidArgument, match="column 'x' is a (single value|value of type)"):
            worker(doubled())({"x": value})
    with pytest.raises(sonde.InvalidArgument, match="column 'p' is a single value"):
        worker(doubled(), inputs={"x": ["p", "q", "r"]})({"p": np.array(1.0), "q": 2.0, "r": 3})
    with pytest.raises(sonde.InvalidArgument, match="column 'id' is a single value"):
        worker(doubled(), keep=["id"])({"x": X, "id": np.array(3)})
    with pytest.raises(sonde.InvalidArgument, match="different shapes .uneven"):
        worker(doubled())({"x": [[[1], [2, 3]]]})
    with pytest.raises(sonde.InvalidArgument, match="the batch is a value of type list, expected a dict"):
        worker(doubled())([X])
    scalar = worker(model([helper.make_node("Mul", ["x", "k"], ["y"])],
                          [("x", TensorProto.FLOAT, ["n", 3]), ("k", TensorProto.FLOAT, [])],
                          [("y", TensorProto.FLOAT, ["n", 3])]))
    assert np.array_equal(scalar({"x": X, "k": 2.0})["y"], 2 * X)


def test_what_is_wrong_with_a_batch_is_said():
    made = worker(doubled())
    with pytest.raises(sonde.InvalidArgument, match="input 'x' has no column 'x' in the batch, which has 'image', 'i'"):
        made({"image": X, "i": X})
    with pytest.raises(sonde.InvalidArgument, match="'a' has 7, 'b' has 6"):
        worker(ADDED)({"a": X[:, 0], "b": X[:6, 0]})
    with pytest.raises(sonde.InvalidArgument, match="no column 'id' to keep"):
        worker(doubled(), keep=["id"])({"x": X})
    for wrong, said in (({"inputs": {"z": "x"}}, "no input 'z'; it has 'x'"), ({"outputs": {"z": "x"}}, "no output 'z'")):
        with pytest.raises(sonde.InvalidArgument, match=said):
            worker(doubled(), **wrong)
    with pytest.raises(sonde.InvalidArgument, match="inputs is 'a', but the model has the inputs 'a', 'b'"):
        worker(ADDED, inputs="a")
    cells = np.array([[1.0, 2, 3], None], object)
    with pytest.raises(sonde.InvalidArgument, match="row 1 of column 'x' has no value"):
        made({"x": cells})
    summed = model([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [("x", TensorProto.FLOAT, ["n", 3])],
                   [("y", TensorProto.FLOAT, [])])
    with pytest.raises(sonde.InvalidArgument, match=r"output 'y' has the shape \(\) for 7 rows"):
        worker(summed)({"x": X})
    with pytest.raises(sonde.NoSuchFile):
        worker("no such file.onnx")


def test_a_job_travels_as_a_description(tmp_path, monkeypatch):
    (tmp_path / "away").mkdir()
    (tmp_path / "m.onnx").write_bytes(doubled())
    monkeypatch.chdir(tmp_path)
    options = sonde.SessionOptions()
    options.add_session_config_entry("sonde.precision", "f16")
    session = sonde.InferenceSession("m.onnx", options)
    jobs = [Job(what, share_weights=False) for what in
            ("m.onnx", tmp_path / "m.onnx", doubled(), bytearray(doubled()), onnx.load("m.onnx"), session)]
    monkeypatch.chdir(tmp_path / "away")
    for job in jobs:
        text = pickle.dumps(job)
        assert len(text) < 4000
        assert np.array_equal(Worker(pickle.loads(text))({"x": X})["y"], 2 * X)
    assert jobs[-1].options.get_session_config_entry("sonde.precision") == "f16"
    # where only the working folder has the file
    (tmp_path / "m.onnx").rename(tmp_path / "away" / "m.onnx")
    assert np.array_equal(Worker(jobs[0])({"x": X})["y"], 2 * X)
    with pytest.raises(TypeError, match="SessionOptions"):
        Job("m.onnx", options={})


def test_threads_are_never_more_than_cores():
    for asked, expected in ((1, 1), (0, 1), (10**6, _worker.cores())):
        made = Worker(Job("zoo:tiny_mlp", share_weights=False), asked)
        assert made.session.get_session_options().intra_op_num_threads == expected


def test_a_process_loads_a_job_once():
    job = Job("zoo:tiny_mlp", share_weights=False)
    found, gate = [], threading.Barrier(8)

    def ask():
        gate.wait()
        found.append(_worker.worker(pickle.loads(pickle.dumps(job))))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(made) for made in found}) == 1
    for _ in range(_worker.MOST):
        _worker.worker(Job("zoo:tiny_mlp", share_weights=False))
    assert _worker.worker(job) is not found[0]
    _worker.clear()
    assert not _worker._slots


PROCESS = """
import json, os, sys, time
import numpy as np
from sonde._worker import Job, Worker
made = Worker(Job(sys.argv[1], share_weights=sys.argv[2]))
run = made({arg.name: value for arg, value in zip(made.session.get_inputs(), made.session.random_inputs(seed=1).values())})
print(json.dumps(float(sum(np.sum(value, dtype=np.float64) for value in run.values()))), flush=True)
sys.stdin.readline()
files = {line.split()[4] for line in open("/proc/self/maps") if sys.argv[2] in line}
print(json.dumps(sorted(files)))
"""


def test_processes_of_one_machine_map_one_file_of_weights(tmp_path):
    path, cache = tmp_path / "m.onnx", tmp_path / "weights"
    sonde.zoo.save("tiny_resnet", str(path))
    command = [sys.executable, "-c", PROCESS, str(path), str(cache)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    sums = [json.loads(process.stdout.readline()) for process in started]
    mapped = [json.loads(process.communicate("\n")[0]) for process in started]
    assert len(set(sums)) == 1
    (file,) = cache.iterdir()
    assert mapped == [[str(file.stat().st_ino)]] * 4


# ---------------------------------------------------------------- traces
def runs(path):
    return sonde.load_profile(path).summary()["iterations"]


def test_workers_write_one_trace_for_the_process(tmp_path):
    folder = tmp_path / "a 'folder'\nthat is new"
    one = Worker(Job(doubled(), share_weights=False, profile_to=folder, labels={"version": "3 'b'"}))
    two = Worker(Job(ADDED, share_weights=False, profile_to=folder))
    assert one.trace == two.trace and os.listdir(folder) == [os.path.basename(one.trace)]
    assert f"-{os.getpid()}-" in one.trace
    with pytest.raises(sonde.InvalidArgument, match="use one folder"):
        Worker(Job(doubled(), profile_to=tmp_path / "other"))
    for _ in range(5):
        one({"x": X})
    one.close()
    two({"a": X[:, 0], "b": X[:, 0]})
    del two
    gc.collect()
    assert _trace._shared is None and runs(one.trace) == 6
    labels = sonde.load_profile(one.trace).labels
    assert labels["version"] == "3 'b'" and labels["worker"] == str(os.getpid()) and labels["host"]
    three = Worker(Job(doubled(), share_weights=False, profile_to=folder))
    assert three.trace != one.trace
    three.close()
    # what fails to load leaves no trace open
    with pytest.raises(sonde.Error):
        Worker(Job(b"no model", profile_to=folder))
    assert _trace._shared is None


KILLED = """
import os, signal, sys, time
import numpy as np
from sonde._worker import Job, Worker
made = Worker(Job("zoo:tiny_mlp", share_weights=False, profile_to=sys.argv[1]))
feed = made.session.random_inputs(seed=1)
made(feed)
child = os.fork()
if child == 0:  # has no trace, and does not end that of its parent
    made(feed)
    made.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
made(feed)
size = os.stat(made.trace).st_size
while os.stat(made.trace).st_size == size:  # until the last run is written
    made(feed)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_trace_survives_its_process(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    (trace,) = tmp_path.iterdir()
    assert runs(trace) >= 1


ABSENT = [("ray", "'ray[data,serve]'"), ("dask", "'dask[array,dataframe]'"), ("spark", "pyspark")]


@pytest.mark.parametrize("name,what", ABSENT)
def test_without_the_package_the_import_says_so_in_a_sentence(name, what, tmp_path):
    package = {"spark": "pyspark"}.get(name, name)
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise ImportError('not here')")
    done = subprocess.run([sys.executable, "-c", f"import sonde.{name}"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"})
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith(f"ImportError: sonde.{name} needs ") and f"pip install {what}" in last


def test_a_trace_has_nothing_that_was_recorded_before_it_began(tmp_path):
    session = sonde.InferenceSession("zoo:tiny_mlp")
    feed = session.random_inputs(seed=1)
    with sonde.profile(level=1) as older:  # keeps its records while the trace is written
        for _ in range(7):
            session.run(None, feed)
        with sonde.profiler.stream(tmp_path / "a.pftrace"):
            for _ in range(3):
                session.run(None, feed)
    assert older.summary()["iterations"] == 10
    assert runs(tmp_path / "a.pftrace") == 3
