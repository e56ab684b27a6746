# SPDX-License-Identifier: Apache-2.0
"""sonde in Dask: models run on the parts of arrays, data frames and bags. A worker process loads a model once.

    import sonde.dask
    scores = sonde.dask.map_blocks(images, "model.onnx")
    frame = sonde.dask.map_partitions(frame, "model.onnx", inputs={"x": ["a", "b"]}, keep=["id"])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

try:
    import dask
except ImportError as error:
    raise ImportError("sonde.dask needs Dask: pip install 'dask[array,dataframe]'") from error

from ._errors import InvalidArgument
from ._worker import Columns, Job, Worker, clear, looking, worker

__all__ = ["clear", "map_bag", "map_blocks", "map_partitions"]


def _only(ready: Worker) -> str:
    """The column of a model with one input and one output."""
    columns, outputs = ready.input_columns, ready.output_columns
    if len(columns) != 1 or (len(outputs) != 1 and ready.job.post is None):
        raise InvalidArgument(
            f"arrays need a model with one input and one output, but this one has the inputs "
            f"{', '.join(map(repr, columns))} and the outputs {', '.join(map(repr, outputs))}; choose an output with "
            "outputs={output: column}, or use a data frame or a bag"
        )
    return columns[0]


def _one(results: Columns) -> Any:
    if len(results) != 1:
        raise InvalidArgument(f"`post` returned {len(results)} columns, expected one for an array")
    return next(iter(results.values()))


def _through(ready: Worker, block: Any) -> Any:
    return _one(ready({_only(ready): block}))


def _block(block: Any, job: Job, threads: int) -> Any:
    return _through(worker(job, threads), block)


def map_blocks(array: Any, model: Any, *, threads: int = 1, **arguments: Any) -> Any:
    """The dask array that a model with one input and one output makes of a dask array, row by row. Chunks stay as they
    are along the first dimension and become whole along the others.

    threads: of a session. Dask runs a task on every core, so more than one oversubscribes unless its workers have
    fewer threads than cores. arguments: options, outputs, pre, post, rows, share_weights, profile_to, labels of a job
    (docs/fleets.md). The model is loaded here, too, for the shape of the result.
    """
    job = Job(model, **arguments)
    whole = array.rechunk({axis: -1 for axis in range(1, array.ndim)})
    with looking(job) as ready:
        sample = _through(ready, np.empty((0, *whole.shape[1:]), whole.dtype))
    return whole.map_blocks(
        _block,
        job,
        threads,
        dtype=sample.dtype,
        chunks=(whole.chunks[0], *((size,) for size in sample.shape[1:])),
        drop_axis=list(range(1, whole.ndim)),
        new_axis=list(range(1, sample.ndim)),
        meta=sample,
    )


def _rows(ready: Worker, frame: Any) -> Any:
    import pandas

    results = ready({name: frame[name] for name in frame.columns})
    columns = {
        name: pandas.Series(list(column) if getattr(column, "ndim", 1) > 1 else column, dtype=_cell_type(column))
        for name, column in results.items()
    }
    for column in columns.values():
        column.index = frame.index
    return pandas.DataFrame(columns, index=frame.index)


def _partition(frame: Any, job: Job, threads: int) -> Any:
    return _rows(worker(job, threads), frame)


def _cell_type(column: Any) -> Any:
    return object if getattr(column, "ndim", 1) > 1 else column.dtype


def map_partitions(frame: Any, model: Any, *, threads: int = 1, meta: Any = None, **arguments: Any) -> Any:
    """The dask data frame of a model's outputs and the columns in `keep`, with the index of the given one. An output
    with more than one number for each row becomes a column of arrays; split it with `post`.

    threads, arguments: as in map_blocks. meta: an empty data frame that says the types of the result; the default
    loads the model here to find out.
    """
    job = Job(model, **arguments)
    if meta is None:
        with looking(job) as ready:
            meta = _rows(ready, frame._meta)
    return frame.map_partitions(_partition, job, threads, meta=meta)


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _items(items: Iterable[Any], job: Job, threads: int, batch_size: int) -> list[Any]:
    ready = worker(job, threads)
    made: list[Any] = []
    for batch in _batches(items, batch_size):
        if not isinstance(batch[0], dict):
            made.extend(_one(ready({_only(ready): _column(batch)})))
            continue
        results = ready({name: _column([item[name] for item in batch]) for name in batch[0]})
        made.extend({name: column[row] for name, column in results.items()} for row in range(len(batch)))
    return made


def _column(values: list[Any]) -> Any:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def map_bag(bag: Any, model: Any, *, batch_size: int = 32, threads: int = 1, **arguments: Any) -> Any:
    """The dask bag of a model's results, in order. An item is a dict of columns, and so is its result; or, for a model
    with one input and one output, an array, and so is its result. threads, arguments: as in map_blocks."""
    return bag.map_partitions(_items, Job(model, **arguments), threads, batch_size)
