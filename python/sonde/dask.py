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

from ._arguments import whole_number
from ._columns import frame_columns, objects
from ._errors import InvalidArgument
from ._worker import Columns, Job, Worker, clear, looking, worker

__all__ = ["clear", "map_bag", "map_blocks", "map_partitions"]


def _only(ready: Worker) -> str:
    """The column of a model with one input and one output."""
    if ready.job.keep:
        raise InvalidArgument(f"keep is {list(ready.job.keep)}, but arrays have no columns; use a data frame or dicts")
    columns, outputs = ready.input_columns, ready.output_columns
    if len(columns) != 1 or (len(outputs) != 1 and ready.job.post is None):
        raise InvalidArgument(
            f"arrays need a model with one input and one output, but this one has the inputs "
            f"{', '.join(map(repr, columns))} and the outputs {', '.join(map(repr, outputs))}; choose an output with "
            "outputs={output: column}, or use a data frame or a bag"
        )
    return columns[0]


def _through(ready: Worker, block: Any) -> Any:
    results = ready({_only(ready): block}, len(block))
    if len(results) != 1:
        raise InvalidArgument(f"`post` returned {len(results)} columns, expected one for an array")
    return np.asarray(next(iter(results.values())))


def _block(block: Any, job: Job, threads: int, dims: tuple[int, ...]) -> Any:
    made = _through(worker(job, threads), block)
    if made.shape[1:] != dims:
        raise InvalidArgument(
            f"a block has the result shape {made.shape}, but the result of no rows has {(0, *dims)}"
        )
    return made


def _is_a(what: str, given: Any, member: str, expected: str) -> None:
    if not hasattr(given, member) or not dask.is_dask_collection(given):
        raise InvalidArgument(f"{what} takes {expected}, not a value of type {type(given).__name__}")


def map_blocks(array: Any, model: Any, *, threads: int = 1, **arguments: Any) -> Any:
    """The dask array that a model with one input and one output makes of a dask array, row by row. Chunks stay as they
    are along the first dimension and become whole along the others.

    threads: of a session. Dask runs a task on every core, so more than one oversubscribes unless its workers have
    fewer threads than cores. arguments: options, outputs, pre, post, rows, share_weights, profile_to, labels of a job
    (docs/fleets.md). The model is loaded here, too, for the shape of the result.
    """
    _is_a("map_blocks", array, "rechunk", "a dask array")
    if not array.ndim:
        raise InvalidArgument("the dask array has no dimensions, expected one with a row for each sample")
    if any(size != size for size in array.shape[1:]):  # NaN
        raise InvalidArgument(f"the dask array has the shape {array.shape}; only the number of rows may be unknown")
    job, threads = Job(model, **arguments), whole_number("threads", threads)
    whole = array.rechunk({axis: -1 for axis in range(1, array.ndim)})
    with looking(job) as ready:
        sample = _through(ready, np.empty((0, *whole.shape[1:]), whole.dtype))
    return whole.map_blocks(
        _block,
        job,
        threads,
        sample.shape[1:],
        dtype=sample.dtype,
        chunks=(whole.chunks[0], *((size,) for size in sample.shape[1:])),
        drop_axis=list(range(1, whole.ndim)),
        new_axis=list(range(1, sample.ndim)),
        meta=sample,
    )


def _rows(ready: Worker, frame: Any) -> Any:
    import pandas

    results = ready(frame_columns(frame), len(frame))
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
    _is_a("map_partitions", frame, "columns", "a dask data frame")
    job, threads = Job(model, **arguments), whole_number("threads", threads)
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
            made.extend(_through(ready, objects(batch)))
            continue
        results = {name: np.asarray(column) for name, column in ready(_columns(batch), len(batch)).items()}
        made.extend({name: column[row] for name, column in results.items()} for row in range(len(batch)))
    return made


def _columns(batch: list[Any]) -> Columns:
    """The columns of items that are dicts, all with what the first one has."""
    for item in batch:
        if not isinstance(item, dict):
            raise InvalidArgument(f"an item of the bag is a value of type {type(item).__name__}, but others are dicts")
        for name in batch[0]:
            if name not in item:
                raise InvalidArgument(f"an item of the bag has no '{name}', but others have")
    return {name: objects([item[name] for item in batch]) for name in batch[0]}


def map_bag(bag: Any, model: Any, *, batch_size: int = 32, threads: int = 1, **arguments: Any) -> Any:
    """The dask bag of a model's results, in order. An item is a dict of columns, and so is its result; or, for a model
    with one input and one output, an array, and so is its result. threads, arguments: as in map_blocks."""
    _is_a("map_bag", bag, "foldby", "a dask bag")
    threads, batch_size = whole_number("threads", threads), whole_number("batch_size", batch_size)
    return bag.map_partitions(_items, Job(model, **arguments), threads, batch_size)
