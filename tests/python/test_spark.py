# SPDX-License-Identifier: Apache-2.0
"""sonde.spark: a model as a pandas UDF of a local Spark. script/setup full installs Spark and a Java runtime."""

import importlib.util
import os
import shutil
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sonde = pytest.importorskip("sonde")
if importlib.util.find_spec("pyspark") is None:
    pytest.skip("pyspark is not installed (script/setup full)", allow_module_level=True)
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("there is no Java runtime (script/setup full)", allow_module_level=True)
from pyspark.sql import SparkSession, types  # noqa: E402

import sonde.spark  # noqa: E402
from sonde import _worker  # noqa: E402


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    made = (SparkSession.builder.master("local[2]").appName("test").config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
            .config("spark.local.dir", str(folder)).config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.driver.memory", "512m").config("spark.log.level", "ERROR")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "8").getOrCreate())
    gateway = made.sparkContext._gateway
    yield made
    made.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # what the Java process waits for
    gateway.proc.wait()
    type(made.sparkContext)._gateway = type(made.sparkContext)._jvm = None


@pytest.fixture
def weights(tmp_path):
    return tmp_path / "weights"


IMAGES = np.random.default_rng(1).random((40, 3, 32, 32), np.float32)


def frame_of(spark, partitions=3):
    rows = [(i, image.ravel().tolist()) for i, image in enumerate(IMAGES)]
    return spark.createDataFrame(rows, "id long, image array<float>").repartition(partitions, "id")


def single():
    session = sonde.InferenceSession("zoo:tiny_resnet")
    return np.concatenate([session.run(None, {"input": image[None]})[0] for image in IMAGES])


def model(nodes, inputs, outputs, path):
    ports = [[helper.make_tensor_value_info(*port) for port in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "columns", *ports)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def test_a_udf_of_arrays(spark, weights, tmp_path):
    folder = tmp_path / "traces"
    classify = sonde.spark.udf("zoo:tiny_resnet", rows=1, share_weights=weights, profile_to=folder)
    assert classify.returnType == types.ArrayType(types.FloatType())
    rows = frame_of(spark).select("id", classify("image").alias("scores")).orderBy("id").collect()
    assert [row["id"] for row in rows] == list(range(40))
    assert np.array_equal(np.array([row["scores"] for row in rows], np.float32), single())
    traces = list(folder.iterdir())
    assert traces and not any(f"-{os.getpid()}-" in path.name for path in traces)
    for path in traces:
        sonde.load_profile(path)


def test_a_udf_of_numbers_that_loads_once_for_each_worker(spark, weights):
    """Python workers live on between tasks."""
    def loaded(results):
        count = len(next(iter(results.values())))
        return {"process": np.full(count, f"{os.getpid()} {id(_worker.worker.__globals__['_slots'])}", object)}

    where = sonde.spark.udf("zoo:tiny_resnet", return_type="string", post=loaded, rows=1, share_weights=weights)
    frame = frame_of(spark, 6).select(where("image").alias("where"))
    processes = {row["where"] for row in frame.collect()} | {row["where"] for row in frame.collect()}
    assert 1 <= len(processes) <= 2
    best = sonde.spark.udf("zoo:tiny_resnet", rows=1, share_weights=weights,
                           post=lambda results: {"class": results["output"].argmax(axis=1)})
    assert best.returnType == types.LongType()
    rows = frame_of(spark).select("id", best("image").alias("class")).orderBy("id").collect()
    assert [row["class"] for row in rows] == single().argmax(axis=1).tolist()


def test_a_udf_of_several_columns(spark, tmp_path):
    path = model([helper.make_node("Sub", ["a", "b"], ["c"])],
                 [(name, TensorProto.DOUBLE, ["n"]) for name in "ab"], [("c", TensorProto.DOUBLE, ["n"])], tmp_path / "m.onnx")
    minus = sonde.spark.udf(path, share_weights=False)
    frame = spark.createDataFrame([(i, i / 2, 3 * i) for i in range(20)], "id long, left double, right long")
    rows = frame.select("id", minus("left", "right").alias("c")).orderBy("id").collect()
    assert [row["c"] for row in rows] == [i / 2 - 3 * i for i in range(20)]


def test_data_frames_of_several_outputs(spark, tmp_path):
    path = model([helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("ReduceSum", ["x", "axes"], ["z"], keepdims=0),
                  helper.make_node("Constant", [], ["axes"], value=helper.make_tensor("axes", TensorProto.INT64, [1], [1]))][::-1],
                 [("x", TensorProto.FLOAT, ["n", 2])], [("y", TensorProto.FLOAT, ["n", 2]), ("z", TensorProto.FLOAT, ["n"])],
                 tmp_path / "m.onnx")
    run = sonde.spark.map_in_pandas(path, inputs={"x": ["p", "q"]}, keep=["id"], share_weights=False)
    frame = spark.createDataFrame([(i, float(i), float(-2 * i)) for i in range(20)], "id long, p double, q double")
    rows = frame.mapInPandas(run, "id long, y array<float>, z float").orderBy("id").collect()
    assert [(row["id"], row["y"], row["z"]) for row in rows] == [(i, [2.0 * i, -4.0 * i], float(-i)) for i in range(20)]


def test_what_is_wrong_is_said(spark, tmp_path):
    with pytest.raises(sonde.InvalidArgument, match="a UDF returns one column, but the model gives"):
        sonde.spark.udf(model([helper.make_node("Split", ["x"], ["y", "z"], axis=1)], [("x", TensorProto.FLOAT, ["n", 2])],
                              [(name, TensorProto.FLOAT, ["n", 1]) for name in "yz"], tmp_path / "m.onnx"), share_weights=False)
    for arguments, said in (({"keep": ["id"]}, "a UDF returns one column; use map_in"), ({"rows": 1.5}, "rows is 1.5"),
                            ({"post": lambda _: None}, "`post` returned a value of type NoneType, expected a dict"),
                            ({"post": lambda _: {"y": 3}}, "`post` returned a single value .int. for column 'y'")):
        with pytest.raises(sonde.InvalidArgument, match=said):
            sonde.spark.udf("zoo:tiny_mlp", share_weights=False, **arguments)
    with pytest.raises(sonde.InvalidArgument, match="keep has 'scores', but outputs= makes a column 'scores'"):
        sonde.spark.map_in_pandas("zoo:tiny_mlp", outputs="scores", keep=["scores"])
    numbers = spark.createDataFrame([(i, [0.5] * 16) for i in range(5)], "id long, image array<double>").coalesce(1)
    fewer = sonde.spark.udf("zoo:tiny_mlp", share_weights=False, post=lambda results: {"y": results["output"][:3, 0]})
    with pytest.raises(Exception, match="`post` returned 3 rows in column 'y' for 5 rows of the batch"):
        numbers.select(fewer("image")).collect()
    run = sonde.spark.map_in_pandas("zoo:tiny_mlp", inputs="image", keep=["id"], share_weights=False,
                                    post=lambda results: {"y": results["output"][:3, 0]})
    with pytest.raises(Exception, match="equal numbers of rows: 'id' has 5, 'y' has 3"):
        numbers.mapInPandas(run, "id long, y float").collect()
    run = sonde.spark.map_in_pandas("zoo:tiny_mlp", inputs="image", keep=["output"], share_weights=False)
    with pytest.raises(Exception, match="keep has 'output', but the model makes a column 'output'"):
        numbers.withColumnRenamed("id", "output").mapInPandas(run, "output array<float>").collect()
    large = spark.createDataFrame([([0.5] * 16,), ([1e300] * 16,)], "image array<double>").coalesce(1)
    with pytest.raises(Exception, match="column 'input' has numbers that do not fit float32.*row 1 has 1e.300"):
        large.select(sonde.spark.udf("zoo:tiny_mlp", share_weights=False)("image")).collect()
    scores = sonde.spark.udf("zoo:tiny_resnet", share_weights=False)
    frame = spark.createDataFrame([(1, [1.0, 2.0])], "id long, image array<float>")
    with pytest.raises(Exception, match=r"input 'input' should be f32\[batch, 3, 32, 32\]"):
        frame.select(scores("image")).collect()
