# SPDX-License-Identifier: Apache-2.0
"""What the adapters for Ray, Dask and Spark share: a Job is what a worker does and travels to it, a Worker has loaded
it. A worker turns a batch, a dict of columns with a row for each sample, into a dict of columns in the same order."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ._arguments import (
    check_kept,
    column_names,
    columns_of_inputs,
    columns_of_outputs,
    folder,
    hook,
    labels_of,
    whole_number,
)
from ._columns import check_rows, column_rows, fit, result_column, table
from ._errors import InvalidArgument
from ._options import SessionOptions
from ._profile import PathLike
from ._session import InferenceSession, NodeArg
from ._trace import give_trace, take_trace

Columns: TypeAlias = dict[str, Any]
Hook: TypeAlias = Callable[[Columns], Mapping[str, Any]]


class Job:
    """What a worker does.

    model: a path, "zoo:NAME", the bytes of a model, or a session, of which only the description travels. A path is
    best: workers of one machine share the file.
    options: SessionOptions; the worker's number of threads is set by the adapter.
    inputs: the column of every input: {"input": "image"}, or "image" if there is one input. A list of columns is put
    side by side. The default: columns that have the names of the inputs.
    outputs: the column of every output that is wanted: {"output": "scores"}, or "scores" if there is one output.
    The default: all outputs under their names.
    keep: columns of the batch that the result has, too.
    pre, post: functions that take a dict of columns and return one: before the model what it reads, after it what the
    result has.
    rows: the model always gets exactly so many rows: longer batches are cut, shorter ones padded. The result of a
    sample then hardly depends on how the batches were cut, and memory is planned once. The default: batches as they come.
    share_weights: packed weights are mapped from a file, so that workers of one machine have them once. A path: the
    folder of that file. False: every worker has its own.
    profile_to: a folder in which every worker process writes a trace of its own (level 1). labels: what the traces are
    called besides host and worker, such as {"version": "3"}.
    """

    def __init__(
        self,
        model: Any,
        options: SessionOptions | None = None,
        inputs: str | Mapping[str, str | Sequence[str]] | None = None,
        outputs: str | Mapping[str, str] | None = None,
        keep: Sequence[str] = (),
        pre: Hook | None = None,
        post: Hook | None = None,
        rows: int | None = None,
        share_weights: bool | PathLike = True,
        profile_to: PathLike | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        if options is not None and not isinstance(options, SessionOptions):
            raise TypeError(f"options must be a sonde.SessionOptions, not {type(options).__name__}")
        self.key = uuid.uuid4().hex
        self.sessions: Callable[..., InferenceSession] = InferenceSession
        self.relative: str | None = None
        if isinstance(model, InferenceSession):
            self.sessions, (model, session_options, _) = model.__reduce__()
            options = options if options is not None else session_options
        elif isinstance(model, (bytearray, memoryview)):
            model = bytes(model)
        elif hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        elif isinstance(model, (str, os.PathLike)) and not str(model).startswith("zoo:"):
            self.relative = os.fsdecode(model)
            model = os.path.abspath(self.relative)
        self.model, self.options = model, copy.deepcopy(options)
        self.inputs, self.outputs = columns_of_inputs(inputs), columns_of_outputs(outputs)
        self.keep, self.pre, self.post = tuple(column_names("keep", keep)), hook("pre", pre), hook("post", post)
        if post is None and self.outputs is not None:
            made = [self.outputs] if isinstance(self.outputs, str) else self.outputs.values()
            check_kept(self.keep, made, "outputs= makes")
        self.rows = None if rows is None else whole_number("rows", rows)
        shared = isinstance(share_weights, bool)
        self.share_weights = share_weights if shared else folder("share_weights", share_weights)
        self.profile_to = None if profile_to is None else folder("profile_to", profile_to)
        self.labels = labels_of(labels)

    def place(self) -> Any:
        """The model for a session on this machine. A cluster may have brought the file to its working folder only."""
        if self.relative is not None and not os.path.exists(self.model) and os.path.exists(self.relative):
            return self.relative
        return self.model


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker:
    """A job that is loaded, with its session on so many threads, at most one for each core."""

    def __init__(self, job: Job, threads: int = 1) -> None:
        self.job = job
        options = copy.deepcopy(job.options) if job.options is not None else SessionOptions()
        options.intra_op_num_threads = max(1, min(int(threads), cores()))
        if job.share_weights and not options._entries.get("sonde.weights_cache"):
            folder = "1" if job.share_weights is True else str(job.share_weights)
            options.add_session_config_entry("sonde.weights_cache", folder)
        self.trace: str | None = None
        self._finish: Callable[[], object] = lambda: None
        if job.profile_to is not None:
            self.trace = take_trace(job.profile_to, job.labels)
            self._finish = weakref.finalize(self, give_trace, os.getpid())
        try:
            self.session = job.sessions(job.place(), options)
            self._inputs = self._columns_in()
            self._outputs = self._columns_out()
        except BaseException:
            self._finish()
            raise

    # ---------------------------------------------------------------- names
    def _columns_in(self) -> list[tuple[NodeArg, list[str]]]:
        required = self.session.get_inputs()
        known = {arg.name: arg for arg in required + self.session.get_overridable_initializers()}
        names = self.job.inputs
        if isinstance(names, str):
            if len(required) != 1:
                raise InvalidArgument(
                    f"inputs is '{names}', but the model has the inputs {', '.join(map(repr, known))}; say which column "
                    "feeds which: inputs={input: column, …}"
                )
            names = {required[0].name: [names]}
        wanted = dict(names) if names is not None else {}
        for name in wanted:
            if name not in known:
                raise InvalidArgument(f"the model has no input '{name}'; it has {', '.join(map(repr, known))}")
        for arg in required:
            wanted.setdefault(arg.name, [arg.name])
        return [(known[name], columns) for name, columns in wanted.items()]

    def _columns_out(self) -> dict[str, str]:
        known = [arg.name for arg in self.session.get_outputs()]
        names = self.job.outputs
        if isinstance(names, str):
            if len(known) != 1:
                raise InvalidArgument(
                    f"outputs is '{names}', but the model has the outputs {', '.join(map(repr, known))}; say which "
                    "column takes which: outputs={output: column, …}"
                )
            return {known[0]: names}
        wanted = dict(names) if names is not None else {name: name for name in known}
        for name in wanted:
            if name not in known:
                raise InvalidArgument(f"the model has no output '{name}'; it has {', '.join(map(repr, known))}")
        if self.job.post is None:
            check_kept(self.job.keep, wanted.values(), "the model makes")
        return wanted

    @property
    def input_columns(self) -> list[str]:
        return [column for _, columns in self._inputs for column in columns]

    @property
    def output_columns(self) -> list[str]:
        """Before `post`."""
        return list(self._outputs.values())

    # ---------------------------------------------------------------- running
    def __call__(self, batch: Mapping[str, Any], rows: int | None = None) -> Columns:
        """The result of a batch. rows: how many rows it must have, where the engine needs one for each of the batch.
        Errors of what comes after the model, which is not the fault of the batch, have `sonde_after_run`."""
        given = table("the batch is", batch)
        kept = {}
        for name in self.job.keep:
            if name not in given:
                raise InvalidArgument(f"the batch has no column '{name}' to keep; it has {_listed(given)}")
            kept[name] = given[name]
        read = table("`pre` returned", self.job.pre(dict(given))) if self.job.pre else given
        feeds, count = self._feeds(read)
        results: Columns = self._run(feeds, count)
        try:
            return self._finished(results, kept, rows)
        except Exception as error:
            error.sonde_after_run = True  # type: ignore[attr-defined]
            raise

    def _finished(self, results: Columns, kept: Mapping[str, Any], rows: int | None) -> Columns:
        if self.job.post:
            returned = table("`post` returned", self.job.post(results))
            results = {name: result_column(name, column) for name, column in returned.items()}
            check_kept(kept, results, "`post` returned")
        whole = {**kept, **results}
        check_rows(whole, rows, kept, "`post` returned" if self.job.post else "the model returned")
        return whole

    def _feeds(self, batch: Mapping[str, Any]) -> tuple[dict[str, tuple[NodeArg, Any]], int]:
        """Arrays for the inputs, and how many rows they have. Scalars are not rows."""
        feeds: dict[str, tuple[NodeArg, Any]] = {}
        rows: dict[str, int] = {}
        for arg, columns in self._inputs:
            for column in columns:
                if column not in batch:
                    raise InvalidArgument(
                        f"input '{arg.name}' has no column '{column}' in the batch, which has {_listed(batch)}; say "
                        f"which column feeds it: inputs={{'{arg.name}': column}}"
                    )
            array = column_rows(columns, [batch[column] for column in columns], arg)
            feeds[arg.name] = (arg, array)
            if array.ndim:
                rows[", ".join(columns)] = len(array)
        if len(set(rows.values())) > 1:
            told = ", ".join(f"'{column}' has {count}" for column, count in rows.items())
            raise InvalidArgument(f"the columns of a batch need equal numbers of rows: {told}")
        return feeds, next(iter(rows.values()), 1)

    def _run(self, feeds: Mapping[str, tuple[NodeArg, Any]], rows: int) -> Columns:
        piece = self.job.rows or max(rows, 1)
        for arg, array in feeds.values():
            if array.ndim and arg.shape and isinstance(arg.shape[0], int) and arg.shape[0] > 0:
                piece = arg.shape[0]
        parts: list[Columns] = []
        for begin in range(0, max(rows, 1), piece):
            count = min(piece, rows - begin)
            fed = {name: fit(arg, array, begin, count, piece) for name, (arg, array) in feeds.items()}
            values = self.session.run(list(self._outputs), fed)
            parts.append(
                {
                    column: _rows_of(name, value, piece)[: max(count, 0)]
                    for (name, column), value in zip(self._outputs.items(), values, strict=True)
                }
            )
        if len(parts) == 1:
            return parts[0]
        return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}

    def close(self) -> None:
        """Ends the session, and the trace if no other worker of this process writes to it."""
        self.session.close()
        self._finish()


@contextlib.contextmanager
def looking(job: Job) -> Iterator[Worker]:
    """The job loaded here for a moment, to see what it takes and, of no rows, what it returns. That is no work of a
    worker, so no trace has it."""
    other = copy.copy(job)
    other.profile_to = None
    made = Worker(other)
    try:
        yield made
    finally:
        made.close()


def _listed(batch: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in batch) or "none"


def _rows_of(name: str, value: Any, rows: int) -> Any:
    """An output as a column."""
    if isinstance(value, list):  # a sequence, such as a map for every row
        column = np.empty(len(value), object)
        column[:] = value
        value = column
    if not isinstance(value, np.ndarray) or value.ndim == 0 or len(value) != rows:
        what = f"the shape {value.shape}" if isinstance(value, np.ndarray) else f"the type {type(value).__name__}"
        raise InvalidArgument(
            f"output '{name}' has {what} for {rows} rows, so it is no column with a row for each of the batch; choose "
            "others with outputs="
        )
    return value


# ---------------------------------------------------------------- workers of a process
class _Slot:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.worker: Worker | None = None


MOST = 8
_slots: OrderedDict[tuple[str, int], _Slot] = OrderedDict()
_lock = threading.Lock()


def _forget() -> None:
    """Called in a forked child: another thread of the parent may have held a lock."""
    global _lock
    _slots.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def worker(job: Job, threads: int = 1) -> Worker:
    """The worker of this process for a job: loaded at the first call. The eight used last are kept; others end when
    nobody runs them."""
    with _lock:
        slot = _slots.setdefault((job.key, threads), _Slot())
        _slots.move_to_end((job.key, threads))
        while len(_slots) > MOST:
            _slots.popitem(last=False)
    with slot.lock:
        if slot.worker is None:
            slot.worker = Worker(job, threads)
        return slot.worker


def clear() -> None:
    """Forgets the workers of this process."""
    with _lock:
        _slots.clear()
