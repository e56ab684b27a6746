# SPDX-License-Identifier: Apache-2.0
"""sonde in Spark: a model as a pandas UDF. Every Python worker of an executor loads it once.

    import sonde.spark
    classify = sonde.spark.udf("model.onnx")
    frame.select("id", classify("image").alias("scores"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

try:
    import pandas
    from pyspark import TaskContext
    from pyspark.sql import types
    from pyspark.sql.functions import pandas_udf
except ImportError as error:
    raise ImportError("sonde.spark needs Spark: pip install pyspark pandas pyarrow, and a Java runtime") from error

from ._columns import frame_columns
from ._errors import InvalidArgument
from ._worker import Columns, Job, looking, worker

__all__ = ["map_in_pandas", "udf"]


def _threads() -> int:
    """Cores of a task (spark.task.cpus)."""
    context = TaskContext.get()
    return context.cpus() if context is not None else 1


_TYPES = {
    "float32": types.FloatType, "float64": types.DoubleType, "float16": types.FloatType, "int8": types.ByteType,
    "int16": types.ShortType, "int32": types.IntegerType, "int64": types.LongType, "uint8": types.ShortType,
    "uint16": types.IntegerType, "uint32": types.LongType, "bool": types.BooleanType, "object": types.StringType,
}  # fmt: skip


def _spark_type(column: Any) -> Any:
    """Spark's type for a column: arrays of arrays for an output of more dimensions."""
    name = str(column.dtype)
    if name not in _TYPES:
        raise InvalidArgument(f"Spark has no type for {name}; say return_type=, and convert it in `post`")
    made: Any = _TYPES[name]()
    for _ in range(column.ndim - 1):
        made = types.ArrayType(made)
    return made


def _one(results: Columns) -> Any:
    if len(results) != 1:
        raise InvalidArgument(
            f"a UDF returns one column, but the model gives {', '.join(map(repr, results)) or 'none'}; choose one with "
            "outputs={output: column}, or use map_in_pandas"
        )
    return next(iter(results.values()))


def _series(column: Any) -> Any:
    if column.ndim <= 1:
        return pandas.Series(column)
    return pandas.Series(list(column) if column.ndim == 2 else column.tolist(), dtype=object)


def udf(model: Any, return_type: Any = None, **arguments: Any) -> Any:
    """A pandas UDF of one column for every input of the model, in the order of its inputs, or of the columns in
    `inputs`. Its result is the model's output: a number, or an array.

    return_type: Spark's type of the result; the default loads the model here to find out. arguments: options, inputs,
    outputs, pre, post, rows, share_weights, profile_to, labels of a job (docs/fleets.md). A session has
    spark.task.cpus threads.
    """
    job = Job(model, **arguments)
    if job.keep:
        raise InvalidArgument(f"keep is {list(job.keep)}, but a UDF returns one column; use map_in_pandas")
    with looking(job) as ready:
        names = ready.input_columns
        if return_type is None:
            return_type = _spark_type(np.asarray(_one(ready({name: np.empty(0, object) for name in names}, 0))))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        here = worker(job, _threads())
        for batch in batches:
            columns = batch if isinstance(batch, tuple) else (batch,)
            if len(columns) != len(names):
                raise InvalidArgument(f"the UDF takes {len(names)} columns ({', '.join(names)}), not {len(columns)}")
            given = dict(zip(names, columns, strict=True))
            yield _series(np.asarray(_one(here(given, len(columns[0])))))

    if len(names) == 1:
        run.__annotations__ = {"batches": Iterator[pandas.Series], "return": Iterator[pandas.Series]}
    else:
        run.__annotations__ = {"batches": Iterator[tuple[pandas.Series, ...]], "return": Iterator[pandas.Series]}
    return pandas_udf(run, return_type)


def map_in_pandas(model: Any, **arguments: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for DataFrame.mapInPandas, for models with several outputs: its data frames have the columns in `keep`
    and the outputs. The schema is given to mapInPandas. arguments: as in udf, and keep."""
    job = Job(model, **arguments)

    def run(frames: Iterator[Any]) -> Iterator[Any]:
        here = worker(job, _threads())
        for frame in frames:
            results = here(frame_columns(frame))
            columns = {name: _series(np.asarray(column)) for name, column in results.items()}
            yield pandas.DataFrame(columns)

    return run
