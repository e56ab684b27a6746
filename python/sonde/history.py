# SPDX-License-Identifier: Apache-2.0
"""sonde.history: a database of what was measured, over months and machines, with trends and comparisons.

    import sonde
    with sonde.history.open() as history:
        history.add(profile, commit="1a2b3c4")
        for entry in history.entries(model="resnet50.onnx", since="2026-01-01"):
            print(entry.id, entry.time, entry.median_ms)
        for trend in history.trends():
            print(trend.title, trend.changes)

It is the same database as that of `sonde profile --save` and `sonde history` on the command line.
"""

from __future__ import annotations

import datetime
import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _sonde
from ._bench import BenchResult
from ._errors import InvalidArgument
from ._profile import Comparison, PathLike, Profile, ProfileViews
from ._session import InferenceSession

Time: TypeAlias = datetime.datetime | datetime.date | str | float

_ACROSS = {"models": 1, "hosts": 2, "machines": 4, "options": 8}
_BY = {"op": 0, "node": 1, "shape": 2}


def _milliseconds(time: Time | None) -> int:
    """Of a datetime (a naive one is local time), an ISO date or seconds since 1970."""
    if time is None:
        return 0
    said = time
    try:
        if isinstance(time, str):
            time = datetime.datetime.fromisoformat(time)
        if isinstance(time, datetime.date) and not isinstance(time, datetime.datetime):
            time = datetime.datetime.combine(time, datetime.time())
        seconds = time.timestamp() if isinstance(time, datetime.datetime) else float(time)
        if not abs(seconds) < 2**43:
            raise ValueError
        return round(seconds * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidArgument(f"'{said}' is no date such as 2026-01-31 or 2026-01-31T12:00") from error


def _count(name: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise InvalidArgument(f"{name} is {value!r}, expected a number") from error
    if not 0 <= number < 2**63:
        raise InvalidArgument(f"{name} is {number}, expected 0 or more, and less than 2**63")
    return number


def _options(options: Mapping[str, Any] | str | None) -> str | None:
    return options if options is None or isinstance(options, str) else json.dumps(dict(options))


def _with(known: Mapping[str, Any], said: str | None) -> str | None:
    """The options that somebody said, and those that are known; what is no JSON object is left to be refused."""
    try:
        own = json.loads(said or "{}")
    except ValueError:
        return said
    return json.dumps({**known, **own}) if isinstance(own, dict) else said


def _wanted(options: Mapping[str, Any] | str | None) -> str | None:
    if options is None or isinstance(options, str):
        return options
    texts = {k: v if isinstance(v, str) else json.dumps(v, separators=(",", ":")) for k, v in options.items()}
    return ",".join(f"{key}={text}" for key, text in texts.items())


def _filter(
    model: str | None = None,
    *,
    kind: str | None = None,
    runtime: str | None = None,
    commit: str | None = None,
    machine: str | None = None,
    note: str | None = None,
    options: Mapping[str, Any] | str | None = None,
    since: Time | None = None,
    until: Time | None = None,
    series: int = 0,
    limit: int = 0,
) -> tuple[Any, ...]:
    times = _milliseconds(since), _milliseconds(until)
    return (model, kind, runtime, commit, machine, note, _wanted(options), *times, _count("series", series), _count("limit", limit))


@dataclass(frozen=True)
class Entry:
    """One entry. Times of runs are nanoseconds; entries with the same `series` are alike: same kind, runtime, model,
    machine and options."""

    id: int
    at_ms: int
    kind: str
    model: str
    model_hash: str
    model_form: str
    runtime: str
    version: str
    commit: str
    note: str
    host: str
    cpu: str
    cpu_level: str
    cores: int
    options: Mapping[str, Any]
    series: int
    runs: int
    median_ns: float
    low_ns: float
    high_ns: float
    mean_ns: float
    stddev_ns: float
    min_ns: float
    max_ns: float
    p95_ns: float
    p99_ns: float
    peak_bytes: int
    profile_bytes: int
    _history: _sonde.History = field(repr=False, compare=False)

    @property
    def time(self) -> datetime.datetime:
        """When it was measured, with the local time zone."""
        return datetime.datetime.fromtimestamp(self.at_ms / 1000).astimezone()

    @property
    def median_ms(self) -> float:
        return self.median_ns / 1e6

    def samples_ns(self) -> NDArray[np.float64]:
        """The latencies in their order; of very many runs, some at equal distances."""
        return np.frombuffer(self._history.get(self.id)[2], np.float64)

    def operators(self) -> list[dict[str, Any]]:
        """Mean times per run by operator type, largest first: name, calls, mean_ns."""
        return self._history.get(self.id)[1]

    def profile(self) -> Profile:
        """The profile as it was kept."""
        return Profile(self._history.profile(self.id))

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(name for name in Entry.__dataclass_fields__ if not name.startswith("_"))


class Change(NamedTuple):
    """A series changes its level for good: from index `at` on it is `ratio` times as high, with a 95 % interval. `p` is
    the chance that noise alone shows such a change anywhere."""

    at: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Level:
    """Points [start, stop) between two changes, and the change with which they begin (ratio 1: the first level)."""

    start: int
    stop: int
    ns: float
    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Trend:
    """The medians of a series, oldest first, and its levels."""

    title: str
    machine: str
    points: Sequence[Mapping[str, Any]] = field(repr=False)
    """id, at_ms, ns, low_ns, high_ns, commit, note, version, new_model, model, which ("resnet-v2": what tells it from
    other points of a joined series)"""
    levels: Sequence[Level]
    across: str = ""
    """What the points differ in: "model", "host", "machine", "options" or several of them; "": they are alike."""

    @property
    def changes(self) -> list[Level]:
        """The levels that begin with a change."""
        return list(self.levels[1:])

    @property
    def regression(self) -> Level | None:
        """The newest level if it is slower than the one before it."""
        last = self.levels[-1]
        return last if len(self.levels) > 1 and last.low > 1 else None


class History:
    """A database; open() makes it. Any number of processes and threads may use it."""

    def __init__(self, path: PathLike | None = None, *, read_only: bool = False) -> None:
        self._history = _sonde.History.open(path, read_only)

    def close(self) -> None:
        """Calls and lists under way may end before."""
        self._history.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"<sonde history {self.path}>"
        except InvalidArgument:
            return "<sonde history, closed>"

    @property
    def path(self) -> str:
        return self._history.path()

    # ---------------------------------------------------------------- adding
    def add(
        self,
        measured: ProfileViews | BenchResult | Iterable[float],
        *,
        session: InferenceSession | None = None,
        model: str | None = None,
        kind: str | None = None,
        runtime: str | None = None,
        version: str | None = None,
        commit: str | None = None,
        host: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        note: str | None = None,
        peak_bytes: int = 0,
        time: Time | None = None,
    ) -> int:
        """Adds an entry and returns its number.

        measured: a profile, a result of sonde.bench, or latencies in nanoseconds. session: what was measured; its model
        is known by a hash of its content then, its options and the inputs of its last run are added. commit: None takes
        what GITHUB_SHA, CI_COMMIT_SHA or git say, "" none. options: what else decides how long a run takes; only entries
        with the same options are compared. Threads and precision of a profile are added where they are not said. host:
        None is this machine, or what SONDE_MACHINE says.
        """
        if session is not None and not isinstance(session, InferenceSession):
            raise InvalidArgument(f"session is a {type(session).__name__}, expected an InferenceSession")
        profile = samples = None
        known: dict[str, Any] = {}
        if isinstance(measured, ProfileViews):
            profile = measured._profile()
            if (level := profile.summary()["level"]) in (1, 3):  # the usual is not said
                known["level"] = level
        elif isinstance(measured, BenchResult):
            samples = np.asarray(measured.samples_ms, np.float64) * 1e6
            if model is None:  # as the command line calls it
                model = measured.model if measured.model.startswith("zoo:") else os.path.basename(measured.model)
            peak_bytes = peak_bytes or measured.peak_rss_bytes
            known = dict(measured.options)
        else:
            samples = np.ascontiguousarray(np.fromiter(measured, np.float64))
        if session is not None and not session.closed:
            known = {**session._measured_as(), **known}
            model = session._typed_name if model is None else model
        said = _options(options)
        if known:
            said = _with(known, said)
        words = (model, kind, runtime, version, commit, host, said, note)
        return self._history.add(profile, samples, session, words, _count("peak_bytes", peak_bytes), _milliseconds(time))

    # ---------------------------------------------------------------- reading
    def _entry(self, raw: dict[str, Any]) -> Entry:
        return Entry(**{**raw, "options": json.loads(raw["options"])}, _history=self._history)

    def entries(self, model: str | None = None, **filter: Any) -> Iterator[Entry]:
        """Entries, the newest first; they are read as they are asked for.

        model: a name, a pattern (* ? [a-z]) or the beginning of a hash. Others: kind, runtime, commit (its beginning),
        machine (a pattern for host or processor), note (a pattern), options (a dict, or "threads=1,batch=8"), since,
        until, series, limit.
        """
        return (self._entry(raw) for raw in self._history.list(_filter(model, **filter)))

    def __iter__(self) -> Iterator[Entry]:
        return self.entries()

    def records(self, model: str | None = None, **filter: Any) -> list[dict[str, Any]]:
        """entries() as a list of dicts."""
        return [entry.to_dict() for entry in self.entries(model, **filter)]

    def dataframe(self, model: str | None = None, **filter: Any) -> Any:
        """entries() as a pandas.DataFrame, with a column `time`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("a DataFrame needs pandas (pip install pandas); records() works without it") from error
        frame = pandas.DataFrame(self.records(model, **filter), columns=list(_FIELDS))
        frame.insert(1, "time", pandas.to_datetime(frame["at_ms"], unit="ms", utc=True))
        return frame

    def find(self, reference: str | int, model: str | None = None, **filter: Any) -> int:
        """The number of an entry: "@0" is the newest, "@-1" the one before it among those alike, "17" or 17 a number,
        four or more characters the beginning of a commit."""
        return self._history.find(str(reference), _filter(model, **filter))

    def get(self, reference: str | int = "@0", model: str | None = None, **filter: Any) -> Entry:
        """The entry that find() finds."""
        return self._entry(self._history.get(self.find(reference, model, **filter))[0])

    # ---------------------------------------------------------------- comparing
    def diff(
        self,
        old: str | int = "@-1",
        new: str | int = "@0",
        *,
        by: str = "op",
        model: str | None = None,
        **filter: Any,
    ) -> Comparison:
        """Compares two entries like `sonde history diff`, by "op", "node" or "shape". Entries without profiles are
        compared as a whole."""
        if by not in _BY:
            raise InvalidArgument(f"entries cannot be compared by '{by}', only by op, node or shape")
        after = self.get(new, model, **filter)
        alike = {**filter, "series": after.series} if str(old).startswith("@") else filter
        before = self.get(old, model, **alike)
        if before.profile_bytes and after.profile_bytes:
            return before.profile().compare(after.profile(), by)
        return Comparison(self._history.compare(before.id, after.id)[0], [])

    def unlike(self, old: str | int, new: str | int) -> str:
        """What makes two entries not alike, such as "threads 1 and 2"; "" if they are."""
        return self._history.compare(self.find(old), self.find(new))[1]

    def trends(
        self,
        model: str | None = None,
        *,
        op: str | None = None,
        across: str | Iterable[str] = (),
        false_alarms: float = 0,
        least: float = 0,
        shortest: int = 0,
        file: Any = None,
        **filter: Any,
    ) -> list[Trend]:
        """Each series over time with its levels; that of the newest entry first.

        op: the mean time of an operator type instead of the median of the run. across: what entries of a series may
        differ in: "models", "hosts", "machines", "options". false_alarms, least and shortest as in changes(). file: one
        or several paths that end in .svg or .html.
        """
        words = across.split(",") if isinstance(across, str) else list(across)
        if unknown := [word for word in words if word and word not in _ACROSS]:
            raise InvalidArgument(f"across takes {', '.join(_ACROSS)}, not '{unknown[0]}'")
        several = file if isinstance(file, (list, tuple)) else () if file is None else (file,)
        raw = self._history.trends(
            _filter(model, **filter),
            sum(_ACROSS[word] for word in set(words) if word),
            op,
            false_alarms,
            least,
            _count("shortest", shortest),
            tuple(os.fsencode(path) for path in several),
        )
        return [
            Trend(title, machine, points, [Level(**level) for level in levels], differ)
            for title, machine, points, levels, differ in raw
        ]

    # ---------------------------------------------------------------- removing
    def remove(self, *references: str | int) -> None:
        for id in [self.find(reference) for reference in references]:
            self._history.remove(id)

    def prune(self, keep: int, *, only_profiles: bool = False, model: str | None = None, **filter: Any) -> int:
        """Removes all but the newest `keep` entries of each series; how many. With only_profiles, entries keep their
        figures and lose their profiles."""
        return self._history.prune(_filter(model, **filter), _count("keep", keep), only_profiles)


def open(path: PathLike | None = None, *, read_only: bool = False) -> History:
    """Opens a database, which is made if it does not exist. None: the one that SONDE_HISTORY names, else
    sonde/history.db in $XDG_DATA_HOME or ~/.local/share."""
    return History(path, read_only=read_only)


def changes(
    values: Iterable[float], *, false_alarms: float = 0, least: float = 0, shortest: int = 0
) -> list[Change]:
    """Where a series of measurements changes its level for good.

    false_alarms: the chance that a series without a change shows one (default 0.005). least: the smallest change that is
    reported (0.01: one percent). shortest: how many values a level must last (5).
    """
    data = np.ascontiguousarray(np.fromiter(values, np.float64))
    return [
        Change(
            found["at"],
            found["before"],
            found["after"],
            found["after"] / found["before"] if found["before"] else float("nan"),
            found["low"],
            found["high"],
            found["p"],
        )
        for found in _sonde.find_changes(data, false_alarms, least, _count("shortest", shortest))
    ]


def find_commit(folder: PathLike | None = None) -> str:
    """The commit that GITHUB_SHA or CI_COMMIT_SHA name, else the one that git has checked out in the folder (default:
    the current one) or in one above it; "" if there is none."""
    return _sonde.history_commit(None if folder is None else os.fsencode(folder))
