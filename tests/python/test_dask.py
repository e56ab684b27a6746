# SPDX-License-Identifier: Apache-2.0
"""sonde.dask: arrays, data frames and bags give what one process gives, in order, with threads, processes and a cluster
of Dask; a worker process loads a model once. script/setup full installs Dask."""

import importlib.util
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sonde = pytest.importorskip("sonde")
if importlib.util.find_spec("dask") is None:
    pytest.skip("dask is not installed (script/setup full)", allow_module_level=True)
import dask  # noqa: E402
import dask.array  # noqa: E402
import dask.bag  # noqa: E402

import sonde.dask  # noqa: E402

SCHEDULERS = ["synchronous", "threads", "processes"]


@pytest.fixture(autouse=True)
def fresh():
    yield
    sonde.dask.clear()


@pytest.fixture
def weights(tmp_path):
    return tmp_path / "weights"


IMAGES = np.random.default_rng(1).random((50, 3, 32, 32), np.float32)


def single(images=IMAGES):
    session = sonde.InferenceSession("zoo:tiny_resnet")
    return np.concatenate([session.run(None, {"input": image[None]})[0] for image in images])


def add(path):
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "add", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_arrays_keep_their_chunks(scheduler, weights):
    images = dask.array.from_array(IMAGES, chunks=((7, 20, 0, 23), 2, 32, 16))
    scores = sonde.dask.map_blocks(images, "zoo:tiny_resnet", rows=1, share_weights=weights)
    assert scores.chunks == ((7, 20, 0, 23), (10,)) and scores.dtype == np.float32
    with dask.config.set(scheduler=scheduler, num_workers=2):
        assert np.array_equal(scores.compute(), single())
        classes = sonde.dask.map_blocks(images, "zoo:tiny_resnet", rows=1, share_weights=weights,
                                        post=lambda results: {"class": results["output"].argmax(axis=1)})
        assert classes.chunks == ((7, 20, 0, 23),)
        assert np.array_equal(classes.compute(), single().argmax(axis=1))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_data_frames_keep_their_index(scheduler, tmp_path, weights):
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    path = add(tmp_path / "add.onnx")
    frame = pandas.DataFrame({"id": np.arange(31), "a": np.arange(31) / 4, "b": np.arange(31)[::-1]},
                             index=[f"row {i:02}" for i in range(31)])
    with dask.config.set(scheduler=scheduler, num_workers=2):
        made = sonde.dask.map_partitions(dataframe.from_pandas(frame, npartitions=4), path, inputs={"x": ["a", "b"]},
                                         outputs="sum", keep=["id"], share_weights=weights)
        result = made.compute()
        assert list(result.columns) == ["id", "sum"] and list(result.index) == list(frame.index)
        assert np.array_equal(np.stack(result["sum"]), np.stack([2 * frame["a"], 2 * frame["b"]], axis=1))
        assert result["id"].tolist() == list(range(31)) and result["id"].dtype == np.int64
        split = sonde.dask.map_partitions(
            dataframe.from_pandas(frame, npartitions=4), path, inputs={"x": ["a", "b"]}, share_weights=weights,
            post=lambda results: {"left": results["y"][:, 0], "right": results["y"][:, 1]})
        assert dict(split.dtypes) == {"left": np.float32, "right": np.float32}
        assert np.array_equal(split.compute()["right"], 2 * frame["b"])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_bags_of_arrays_and_of_dicts(scheduler, weights):
    with dask.config.set(scheduler=scheduler, num_workers=2):
        arrays = dask.bag.from_sequence(list(IMAGES), npartitions=3)
        scores = sonde.dask.map_bag(arrays, "zoo:tiny_resnet", rows=1, batch_size=8, share_weights=weights).compute()
        assert np.array_equal(np.stack(scores), single())
        items = dask.bag.from_sequence([{"id": i, "image": image} for i, image in enumerate(IMAGES)], npartitions=3)
        made = sonde.dask.map_bag(items, "zoo:tiny_resnet", rows=1, inputs="image", keep="id", share_weights=weights)
        results = made.compute()
        assert [item["id"] for item in results] == list(range(50))
        assert np.array_equal(np.stack([item["output"] for item in results]), single())
        assert sonde.dask.map_bag(dask.bag.from_sequence([], npartitions=1), "zoo:tiny_resnet").compute() == []


def test_models_with_several_inputs_need_columns():
    array = dask.array.zeros((4, 8), chunks=2)
    with pytest.raises(sonde.InvalidArgument, match="one input and one output, but this one has the inputs 'input_ids'"):
        sonde.dask.map_blocks(array, "zoo:tiny_bert")


def test_a_block_has_a_row_for_each_of_its_own(tmp_path):
    path, array = add(tmp_path / "add.onnx"), dask.array.ones((5, 2), chunks=(5, 2), dtype=np.float32)
    fewer = sonde.dask.map_blocks(array, path, post=lambda results: {"y": results["y"][:3]})
    with pytest.raises(sonde.InvalidArgument, match="`post` returned 3 rows in column 'y' for 5 rows of the batch"):
        fewer.compute(scheduler="synchronous")
    wider = sonde.dask.map_blocks(array, path, post=lambda results: {
        "y": np.ones((len(results["y"]), 2 + len(results["y"])))})
    with pytest.raises(sonde.InvalidArgument, match=r"result shape \(5, 7\), but the result of no rows has \(0, 2\)"):
        wider.compute(scheduler="synchronous")
    for post, said in ((lambda _: None, "NoneType, expected a dict"), (lambda _: {"y": 3}, "a single value"),
                       (lambda _: {"a": X0, "b": X0}, "returned 2 columns, expected one")):
        with pytest.raises(sonde.InvalidArgument, match=said):
            sonde.dask.map_blocks(array, path, post=post)
    listed = sonde.dask.map_blocks(array, path, post=lambda results: {"y": [1.5] * len(results["y"])})
    assert listed.compute(scheduler="synchronous").tolist() == [1.5] * 5
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    frame = dataframe.from_pandas(pandas.DataFrame({"a": np.arange(5.0), "y": 1, "b": 2}), npartitions=1)
    columns = {"inputs": {"x": ["a", "b"]}}
    with pytest.raises(sonde.InvalidArgument, match="keep has 'y', but the model makes a column 'y'"):
        sonde.dask.map_partitions(frame, path, keep=["y"], **columns)
    short = sonde.dask.map_partitions(frame, path, post=lambda results: {"z": results["y"][:3, 0]}, **columns)
    with pytest.raises(sonde.InvalidArgument, match="`post` returned 3 rows in column 'z' for 5 rows of the batch"):
        short.compute(scheduler="synchronous")
    for items in ([np.ones(2)] * 5, [{"x": np.ones(2), "id": i} for i in range(5)]):
        for rows in (3, 7):
            bag = dask.bag.from_sequence(items, npartitions=1)
            made = sonde.dask.map_bag(bag, path, post=lambda _, rows=rows: {"z": np.ones(rows)})
            with pytest.raises(sonde.InvalidArgument, match=f"`post` returned {rows} rows in column 'z' for 5 rows"):
                made.compute(scheduler="synchronous")


X0 = np.empty(0)


def test_what_is_wrong_is_said_in_a_sentence(tmp_path):
    path = add(tmp_path / "add.onnx")
    array, bag = dask.array.ones((4, 2), chunks=2), dask.bag.from_sequence([{"x": [1, 2]}] * 4, npartitions=1)
    big = dask.array.from_array(np.array([[1, 2], [3, 1e300]]))
    with pytest.raises(sonde.InvalidArgument, match="column 'x' has numbers that do not fit float32.*row 1 has 1e.300"):
        sonde.dask.map_blocks(big, path).compute(scheduler="synchronous")
    for call, said in (
        (lambda: sonde.dask.map_blocks(dask.array.ones(()), path), "no dimensions"),
        (lambda: sonde.dask.map_blocks(np.ones((4, 2)), path), "takes a dask array, not a value of type ndarray"),
        (lambda: sonde.dask.map_blocks(array, path, threads=1.5), "threads is 1.5"),
        (lambda: sonde.dask.map_blocks(array, path, keep=["id"]), "arrays have no columns"),
        (lambda: sonde.dask.map_partitions(array, path), "takes a dask data frame, not a value of type Array"),
        (lambda: sonde.dask.map_bag([1, 2], path), "takes a dask bag, not a value of type list"),
        (lambda: sonde.dask.map_bag(bag, path, batch_size=0), "batch_size is 0"),
        (lambda: sonde.dask.map_bag(bag, path, batch_size=1.5), "batch_size is 1.5"),
    ):
        with pytest.raises(sonde.InvalidArgument, match=said):
            call()
    for odd, said in (({"z": 1}, "an item of the bag has no 'x', but others have"), (3, "int, but others are dicts")):
        made = sonde.dask.map_bag(dask.bag.from_sequence([{"x": [1, 2]}, odd], npartitions=1), path)
        with pytest.raises(sonde.InvalidArgument, match=said):
            made.compute(scheduler="synchronous")
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    twice = pandas.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "y", "x"])
    with pytest.raises(sonde.InvalidArgument, match="more than one column 'x'"):
        sonde.dask._rows(sonde._worker.Worker(sonde._worker.Job(path, share_weights=False)), twice)
    numbered = dataframe.from_pandas(pandas.DataFrame({0: [1.0], 1: [2.0]}), npartitions=1)
    with pytest.raises(sonde.InvalidArgument, match=r"inputs\['x'\] has the name 0, but names of columns are texts"):
        sonde.dask.map_partitions(numbered, path, inputs={"x": [0, 1]})
    named = sonde.dask.map_partitions(numbered, path, pre=lambda batch: {"x": np.stack([batch[0], batch[1]], axis=1)})
    assert named.compute(scheduler="synchronous")["y"][0].tolist() == [2, 4]


def test_a_cluster_of_processes_loads_a_model_once_in_each(tmp_path, weights):
    distributed = pytest.importorskip("distributed")
    folder = tmp_path / "traces"
    with dask.config.set({"distributed.worker.daemon": True, "temporary-directory": str(tmp_path)}):
        with distributed.LocalCluster(n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address=None,
                                      local_directory=str(tmp_path)) as cluster, distributed.Client(cluster) as client:
            images = dask.array.from_array(IMAGES, chunks=(5, 3, 32, 32))
            scores = sonde.dask.map_blocks(images, "zoo:tiny_resnet", rows=1, share_weights=weights, profile_to=folder)
            assert np.array_equal(scores.compute(), single())
            assert set(client.run(lambda: len(sonde._worker._slots)).values()) <= {0, 1}
            client.run(sonde.dask.clear)
            workers = {str(pid) for pid in client.run(os.getpid).values()}
    traces = [sonde.load_profile(path) for path in folder.iterdir()]
    assert {trace.labels["worker"] for trace in traces} <= workers and len(traces) == len(list(folder.iterdir())) <= 2
    assert sum(trace.summary()["iterations"] for trace in traces) == 50
