# SPDX-License-Identifier: Apache-2.0
"""Profilers. `profile()` profiles a block of code, and blocks may be nested:

    with sonde.profile() as profiler:
        with profiler.record("warm up", warm_up=True):
            session.run(None, feed)
        session.run(None, feed)
    profiler.print_summary()

The functions start() to dump() of this module are one profiler for the whole process. Both record every session."""

from __future__ import annotations

import atexit
import enum
import functools
import inspect
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from . import _sonde
from ._errors import InvalidArgument
from ._profile import (
    PathLike,
    Profile,
    ProfileViews,
    RecordSpan,
    _category_list,
    _label_list,
    _suffix,
    describe,
    load_profile,
)

__all__ = [
    "Profile",
    "Profiler",
    "RecordFormat",
    "RecordSpan",
    "Stream",
    "clear",
    "dump",
    "finish_environment",
    "get",
    "get_profile",
    "load_profile",
    "profile",
    "record",
    "start",
    "stop",
    "stream",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class RecordFormat(enum.Enum):
    """The format that profile(file=…, format=…) writes. export() can write any other format later. PandasDataFrame
    writes no file: call get_pandas_dataframe() after the block."""

    ChromeTrace = "json"
    Perfetto = "pftrace"
    PandasDataFrame = "dataframe"


class record(_sonde.Record):
    """Labels a part of this thread's work; records can be nested. Inferences inside a warm-up record are excluded from
    all numbers. It is a context manager and a decorator:

        with sonde.record("first batch"): …

        @sonde.record("decode")
        def decode(…): …
    """

    __slots__ = ()

    def __call__(self, function: _Function) -> _Function:
        label, warm_up = self.label, self.warm_up

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def in_record_async(*args: Any, **kwargs: Any) -> Any:
                with record(label, warm_up):
                    return await function(*args, **kwargs)

            return in_record_async  # type: ignore[return-value]

        @functools.wraps(function)
        def in_record(*args: Any, **kwargs: Any) -> Any:
            with record(label, warm_up):
                return function(*args, **kwargs)

        return in_record  # type: ignore[return-value]


class _Switch:
    """A feature that is on while at least one profiler needs it."""

    def __init__(self, on: Callable[[], object], off: Callable[[], object]) -> None:
        self._on, self._off = on, off
        self._users = 0
        self._lock = threading.Lock()

    def take(self) -> object:
        with self._lock:
            result = self._on() if self._users == 0 else ""
            self._users += 1
            return result

    def give(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._off()


class MemorySwitch(_Switch):
    """The library's memory profiler. Its records are kept only if sonde.memory_profiler is used, because the recorder
    cannot discard anything while they are kept."""

    kept = False

    def __init__(self) -> None:
        super().__init__(_sonde.memory_start, self._stop)

    def _stop(self) -> None:
        _sonde.memory_stop()
        if not self.kept:
            _sonde.memory_reset()


memory_switch = MemorySwitch()
_counters_switch = _Switch(_sonde.counters_start, _sonde.counters_stop)


def _write_object(file: Any, data: bytes, suffix: str) -> None:
    """To an open file: a text file takes text."""
    try:
        file.write(data)
    except TypeError:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidArgument(f"'{suffix}' is not text: open the file with mode 'wb'") from None
        file.write(text)


def _sampling(every: int, max_overhead: float) -> tuple[int, float]:
    """The two numbers as the library takes them."""
    if isinstance(every, bool) or not isinstance(every, int) or not 0 <= every < 2**31:
        raise InvalidArgument(f"sample_every is {every}, expected a number from 0 on")
    if not 0 < max_overhead <= 1e6:
        raise InvalidArgument(f"max_overhead is {max_overhead}, expected a share such as 0.01")
    return every, float(max_overhead)


class Profiler(ProfileViews):
    """A profiler for a `with` block: see profile()."""

    def __init__(
        self,
        file: PathLike | IO[Any] | None = None,
        format: RecordFormat | str | None = None,
        level: int = 2,
        categories: str | Iterable[str] | None = None,
        memory: bool = False,
        counters: bool = False,
        sample_every: int = 0,
        max_overhead: float = 0.01,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(level, bool) or level not in (1, 2, 3):
            raise InvalidArgument(f"the profiler's level is {level}, expected 1 to 3")
        if file is not None and not isinstance(file, (str, os.PathLike)) and not hasattr(file, "write"):
            raise TypeError(f"file must be a path or a file, not {type(file).__name__}")
        frame = format is not None and _suffix(format) == _suffix(RecordFormat.PandasDataFrame)
        if file is not None and frame:
            raise InvalidArgument(
                "a PandasDataFrame is no format of files: leave out `file` and call get_pandas_dataframe(), or leave out "
                "`format` to write a trace"
            )
        self._file, self._format, self._level = file, format, level
        self._categories = _category_list(categories)
        self._labels = _label_list(labels)
        self._memory, self._counters = memory, counters
        self._sampling = _sampling(sample_every, max_overhead)
        self._recording: _sonde.Recording | None = None
        self._final: _sonde.Profile | None = None
        self._paused = False

    def __enter__(self) -> Self:
        if self._recording is not None:
            raise InvalidArgument("the profiler is already running")
        self._final = None
        self._paused = False
        if self._memory:
            memory_switch.take()
        if self._counters and (why := _counters_switch.take()):
            warnings.warn(f"no hardware counters: {why}", RuntimeWarning, stacklevel=2)
        try:
            self._recording = _sonde.Recording(self._level, self._categories, *self._sampling, self._labels)
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recording = self._recording
        if recording is None:
            return
        try:
            self._final = recording.get()  # first: other threads may be asking
        finally:
            self._recording = None
            self._give_back()
            recording.close()
        if self._file is None:
            return
        try:
            self._write()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"the profile was not written: {failure}")  # what ended the block goes on

    def _give_back(self) -> None:
        if self._memory:
            memory_switch.give()
        if self._counters:
            _counters_switch.give()

    def _write(self) -> None:
        if isinstance(self._file, (str, os.PathLike)):
            self.export(self._file, format=self._format)
        elif self._file is not None:
            suffix = _suffix(self._format) if self._format is not None else ".json"
            _write_object(self._file, self.to_bytes(suffix), suffix)

    def _profile(self) -> _sonde.Profile:
        recording = self._recording
        if recording is not None:
            try:
                return recording.get()
            except InvalidArgument:
                if self._recording is recording:
                    raise
                # Another thread ended it meanwhile.
        final = self._final
        if final is None:
            raise InvalidArgument("the profiler has not run yet")
        return final

    def _running(self) -> _sonde.Recording:
        recording = self._recording
        if recording is None:
            raise InvalidArgument("the profiler is not running")
        return recording

    # ---------------------------------------------------------------- while it runs
    def record(self, label: str, warm_up: bool = False) -> record:
        """Labels a part of the work, like sonde.record."""
        return record(label, warm_up)

    def pause(self) -> None:
        """Pauses recording."""
        self._running().pause()
        self._paused = True

    def resume(self) -> None:
        """Continues recording after pause()."""
        self._running().resume()
        self._paused = False

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def running(self) -> bool:
        return self._recording is not None

    def clear(self) -> None:
        """Discards the records. An active profiler continues."""
        recording = self._recording
        if recording is not None:
            try:
                recording.clear()
            except InvalidArgument:
                if self._recording is recording:
                    raise
        self._final = None

    def __repr__(self) -> str:
        if self._recording is None and self._final is None:
            return "<sonde.Profiler, not run yet>"
        return describe(self._profile())


def profile(
    file: PathLike | IO[Any] | None = None,
    format: RecordFormat | str | None = None,
    level: int = 2,
    categories: str | Iterable[str] | None = None,
    memory: bool = False,
    counters: bool = False,
    sample_every: int = 0,
    max_overhead: float = 0.01,
    labels: Mapping[str, Any] | None = None,
) -> Profiler:
    """A profiler for a `with` block.

    file: written when the block ends, in the given `format`, else the format of its suffix. The default for an open file
    is a Chrome trace.
    level: 1 records operators, 2 also the work of the executor, 3 also a slice for every thread that works on an operator.
    categories: the categories of spans in traces, such as "operator,user".
    memory: also record the memory after every step. counters: also record hardware counters of every step.
    sample_every: record one inference of so many, at level 1; the others run as without a profiler. 0: record all.
    max_overhead: with sample_every, the share of the time of inferences that recording may take; 1: no bound.
    labels: what the profile is called, such as {"version": "3"}. "host" and "worker" are set; None takes a label away.
    """
    return Profiler(file, format, level, categories, memory, counters, sample_every, max_overhead, labels)


class Stream:
    """A trace that is written while the program runs: see stream()."""

    def __init__(self, path: str, level: int, categories: str | None, labels: list[tuple[str, str]]) -> None:
        _sonde.stream_start(path, level, categories, labels)
        self.path = path
        self._pid: int | None = os.getpid()
        self._lock = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        """Writes the rest and ends the trace. A second call does nothing, nor one in a forked child, whose parent has
        the trace."""
        with self._lock:
            mine = self._pid == os.getpid()
            self._pid = None
        if mine:
            atexit.unregister(self.close)
            _sonde.stream_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sonde.profiler.Stream to {self.path!r}{'' if self._pid else ', closed'}>"


def stream(
    path: PathLike,
    level: int = 1,
    categories: str | Iterable[str] | None = None,
    labels: Mapping[str, Any] | None = None,
) -> Stream:
    """Writes what every session does to a .pftrace file, ten times a second, until it is closed or its `with` block or
    the program ends. Memory stays constant, and whatever kills the process, the file is readable up to the last tenth of
    a second: this is for workers whose traces `sonde merge` joins. A process has one at a time."""
    return Stream(os.fspath(path), level, _category_list(categories), _label_list(labels))


# ---------------------------------------------------------------- one for the process
_lock = threading.Lock()
_shared: _sonde.Recording | None = None
_running = False


def start(prof_level: int = 1) -> None:
    """Starts or continues recording. Does nothing if the profiler is active."""
    global _shared, _running
    with _lock:
        if _shared is None:
            _shared = _sonde.Recording(prof_level)
        elif not _running:
            _shared.resume(prof_level)
        _running = True


def stop() -> None:
    """Stops recording. The records are kept until clear()."""
    global _running
    with _lock:
        if _shared is not None and _running:
            _shared.pause()
        _running = False


def get_profile() -> Profile:
    """The profile of everything recorded so far."""
    with _lock:
        if _shared is None:
            raise InvalidArgument("nothing was recorded")
        return Profile(_shared.get())


def get() -> dict[str, Any]:
    """Everything recorded so far as a Chrome trace. The records are kept."""
    with _lock:
        made = Profile(_shared.get()) if _shared is not None else None
    return made.get() if made is not None else {"traceEvents": [], "displayTimeUnit": "ms"}


def clear() -> None:
    """Discards the records. An active profiler continues."""
    global _shared
    with _lock:
        if _shared is None:
            return
        if _running:
            _shared.clear()
        else:
            _shared.close()
            _shared = None


def dump(path: PathLike = "profile.json") -> None:
    """Writes everything recorded so far to a file in the format of its suffix."""
    get_profile().export(path)


def finish_environment() -> None:
    """Writes the files that SONDE_TRACE and SONDE_PROFILE ask for now; what runs later is not in them. Only needed
    before os._exit and os.exec*: every other end of a program writes them."""
    _sonde.environment_finish()
