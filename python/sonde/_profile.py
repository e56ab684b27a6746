# SPDX-License-Identifier: Apache-2.0
"""Profiles as reports, files, numbers, columns, data frames and Arrow tables. The library itself writes reports and
files, so they are the same as those of the program `sonde`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import IO, Any, NamedTuple, TypeAlias
from urllib.parse import quote

import numpy as np

from . import _html, _sonde
from ._errors import InvalidArgument
from ._units import time_unit

PathLike: TypeAlias = str | os.PathLike[str]
Columns: TypeAlias = dict[str, Any]

# The order of columns, and those in which -1 stands for "none".
COLUMNS = (
    "trace_id span_id parent_span_id name cat thread.id start end dur node op_type iteration instance pe_index "
    "execution_index operator_index input_shapes input_types output_shapes output_types post_op kernel arithmetic flops bytes "
    "warm_up thread.name text"
).split()
NULLABLE = frozenset(("iteration", "pe_index", "execution_index", "operator_index", "flops", "bytes"))

_SUMMARY, _BY_RECORD, _INFERENCES, _EXECUTIONS, _OPERATORS, _EXTERNAL, _MEMORY = range(1, 8)
_BY = {"op": 0, "node": 1, "shape": 2, "kernel": 3}


class RecordSpan(NamedTuple):
    """A record: a labelled part of the user's code. Times are nanoseconds since 1970."""

    label: str
    thread_id: int
    start: int
    end: int
    dur: int
    warm_up: bool


class Comparison(NamedTuple):
    """The comparison of two profiles: the change of the whole run, and of its rows, largest first. Each has old_ns,
    new_ns, ratio, the interval of the ratio (low, high), a verdict (same, faster, slower, unclear, new, gone) and turns: not 0
    if both were recorded in turns."""

    total: dict[str, Any]
    rows: list[dict[str, Any]]


def _suffix(format: Any) -> str:
    """".json" from "json", ".json", "chrome" or a RecordFormat."""
    text = str(getattr(format, "value", format)).lower()
    text = {"chrome": "json", "chrometrace": "json", "perfetto": "pftrace"}.get(text, text)
    return text if text.startswith(".") else f".{text}"


def _category_list(categories: Any) -> str | None:
    if categories is None or isinstance(categories, str):
        return categories
    return ",".join(categories)


def _pairs(pairs: Mapping[str, str] | None) -> str | None:
    """A dict as OpenTelemetry's variables write it: "key=value,key=value"."""
    if pairs is None:
        return None
    return ",".join(f"{key}={quote(str(value), safe=' ')}" for key, value in pairs.items())


def _milliseconds(name: str, seconds: float) -> int:
    if not 0 < seconds <= 86400:
        raise InvalidArgument(f"{name} is {seconds}, expected seconds")
    return max(1, round(seconds * 1000))


def _label_list(labels: Any) -> list[tuple[str, str]]:
    """{"version": 3} as the library takes it; None takes a label away."""
    if labels is None:
        return []
    if not isinstance(labels, Mapping):
        raise TypeError(f"labels must be a mapping such as {{'version': '3'}}, not {type(labels).__name__}")
    return [(str(key), "" if value is None else str(value)) for key, value in labels.items()]


def _views(profile: Any) -> ProfileViews:
    if not isinstance(profile, ProfileViews):
        raise InvalidArgument(f"expected a profile to compare with, not {type(profile).__name__}")
    return profile


class ProfileViews:
    """The views of a profile. `_profile()` says of which."""

    def _profile(self) -> _sonde.Profile:
        raise NotImplementedError

    # ---------------------------------------------------------------- printing
    def report(self, kind: str, *, width: int = 0) -> str:
        """"summary", "records", "inferences", "executions", "operators", "external" or "memory" as text, like
        `sonde profile --report`. `width` is the maximum width of the map of "memory"; 0 means 80 columns."""
        kinds = ("summary", "records", "inferences", "executions", "operators", "external", "memory")
        if kind not in kinds:
            raise InvalidArgument(f"unknown report '{kind}'; the reports are {', '.join(kinds)}")
        return self._profile().report(kinds.index(kind) + 1, width)

    def print_summary(self, by_record: bool = False, *, file: IO[str] | None = None) -> None:
        """Prints counts and latencies over all inferences except warm-up; with by_record one block per label."""
        self._print(_BY_RECORD if by_record else _SUMMARY, file)

    def print_inferences(self, *, file: IO[str] | None = None) -> None:
        """Prints one line per inference."""
        self._print(_INFERENCES, file)

    def print_executions(self, *, file: IO[str] | None = None) -> None:
        """Prints executions on devices: total, run and wait time."""
        self._print(_EXECUTIONS, file)

    def print_operators(self, *, file: IO[str] | None = None) -> None:
        """Prints the mean time and the count of each operator."""
        self._print(_OPERATORS, file)

    def print_external_operators(self, *, file: IO[str] | None = None) -> None:
        """Prints operators on the host, one line per execution."""
        self._print(_EXTERNAL, file)

    def print_memory(self, *, width: int = 0, file: IO[str] | None = None) -> None:
        """Prints which values use memory, when it peaks, and a map of the arena (width 0 means 80 columns)."""
        self._print(_MEMORY, file, width)

    print_npu_executions = print_executions
    print_npu_operators = print_operators

    def _print(self, kind: int, file: IO[str] | None, width: int = 0) -> None:
        (sys.stdout if file is None else file).write(self._profile().report(kind, width))

    def table(
        self,
        *,
        sort: str = "time",
        by_shape: bool = False,
        by_node: bool = False,
        filter_op: str | None = None,
        width: int = 0,
        color: bool = False,
    ) -> str:
        """The timing table as text. If a width is given, names are shortened to it, and as many columns follow as fit."""
        if sort not in ("time", "name"):
            raise InvalidArgument(f"sort is '{sort}', expected 'time' or 'name'")
        return self._profile().table(sort == "name", by_shape, by_node, filter_op, width, color)

    def print_table(self, *, file: IO[str] | None = None, **options: Any) -> None:
        """Prints table()."""
        (sys.stdout if file is None else file).write(self.table(**options))

    # ---------------------------------------------------------------- figures
    def summary(self) -> dict[str, Any]:
        """The model, the machine, and latencies in nanoseconds. "cost_ns" is the time that recording took; it is None
        in profiles of other programs, for which it is unknown."""
        return self._profile().summary()

    @property
    def labels(self) -> dict[str, str]:
        """What the profile is called: "host", "worker", "version" and keys of your own."""
        return self._profile().labels()

    def by(self, by: str = "worker") -> list[dict[str, Any]]:
        """A row for each "host", "worker" or "version" of a joined profile (see merge()); of others there is one."""
        from ._fleet import rows  # it needs this module

        return rows(self._profile().fleet(), by)

    def rows(self, by: str = "op") -> list[dict[str, Any]]:
        """Times per run, largest first, by "op", "node", "shape" or "kernel". They add up to the time of a run."""
        if by not in _BY:
            raise InvalidArgument(f"cannot group rows by '{by}', only by {', '.join(_BY)}")
        return self._profile().rows(_BY[by])

    def findings(self) -> list[dict[str, str]]:
        """What the figures mean, like `sonde doctor MODEL`: each has a severity ("good", "note" or "slow"), a topic, the
        finding as a sentence, its evidence, and a remedy, which is "" if there is nothing to do."""
        return self._profile().findings()

    def compare(self, new: ProfileViews, by: str = "op") -> Comparison:
        """Compares this profile with a newer one, by "op", "node" or "shape", like `sonde diff`."""
        if by not in _BY or by == "kernel":
            raise InvalidArgument(f"profiles cannot be compared by '{by}', only by op, node or shape")
        total, *rows = self._profile().compare(_views(new)._profile(), _BY[by])
        return Comparison(total, rows)

    @property
    def records(self) -> list[RecordSpan]:
        """The records, in the order in which they began."""
        c = self.columns()
        return [
            RecordSpan(name, thread, start, end, end - start, bool(warm_up))
            for name, cat, thread, start, end, warm_up in zip(
                c["name"], c["cat"], c["thread.id"].tolist(), c["start"].tolist(), c["end"].tolist(), c["warm_up"]
            )
            if cat == "user"
        ]

    # ---------------------------------------------------------------- columns
    def columns(self) -> Columns:
        """Every span as a dict of columns: lists of str, arrays of int64 and bool. Times are in
        nanoseconds; start and end are Unix times. -1 means that a number does not apply."""
        raw = self._profile().spans()
        made: Columns = {
            name: data if isinstance(data, list) else np.frombuffer(data, np.int64) for name, data in raw.items()
        }
        made["dur"] = made["end"] - made["start"]
        made["warm_up"] = made["warm_up"].astype(np.bool_)
        return {name: made[name] for name in COLUMNS}

    def dataframe(self) -> Any:
        """The columns as a pandas.DataFrame. Values that do not apply are <NA>, or ""."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("a DataFrame needs pandas (pip install pandas); columns() works without it") from error
        columns = self.columns()
        for name in NULLABLE:
            columns[name] = pandas.arrays.IntegerArray(columns[name], columns[name] == -1)
        return pandas.DataFrame(columns)

    get_pandas_dataframe = dataframe

    def get_pandas_dataframe_with_filter(self, column: str, value: Any) -> Any:
        """The rows of dataframe() in which a column has the given value."""
        frame = self.dataframe()
        if column not in frame:
            raise InvalidArgument(f"unknown column '{column}'; the columns are {', '.join(COLUMNS)}")
        return frame[frame[column] == value]

    def _arrow_columns(self) -> tuple[list[tuple[str, Any, int | None]], int]:
        columns = self.columns()
        return [(name, columns[name], -1 if name in NULLABLE else None) for name in COLUMNS], len(columns["name"])

    def __arrow_c_schema__(self) -> Any:
        return _sonde.arrow_table(*self._arrow_columns())[0]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The columns for any library that reads Arrow: pyarrow.record_batch(profile)."""
        return _sonde.arrow_table(*self._arrow_columns())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The same as a stream: pyarrow.table(profile), polars.DataFrame(profile)."""
        return _sonde.arrow_stream(*self._arrow_columns())

    # ---------------------------------------------------------------- files
    def export(
        self,
        path: PathLike,
        *,
        format: Any = None,
        categories: Any = None,
        folded_nodes: bool = False,
        before: ProfileViews | None = None,
        trace_limit: int | None = None,
    ) -> None:
        """Writes a file. The format is `format`, else that of the suffix: .html (report page), .json (Chrome trace),
        .pftrace (Perfetto), .csv, .xlsx, .md, .txt, .folded, .summary.json, .pb.gz, .page.gz. With folded_nodes, .csv and
        .xlsx also have a row, with zero time, for each constant-folded node. With `before`, an earlier profile, a report
        page compares the two. trace_limit: bytes of a file that lists spans (default: 256 MiB; -1: no limit); if they are
        too few for all runs, the first, the slowest and an even sample of the runs have spans, and figures are still those
        of all runs."""
        suffix = None if format is None else _suffix(format)
        old = () if before is None else (_views(before)._profile(),)
        self._profile().save(os.fspath(path), suffix, _category_list(categories), folded_nodes, trace_limit or 0, *old)

    def export_chrome_trace(self, path: PathLike) -> None:
        """Writes a Chrome trace, whatever the suffix of the file is."""
        self.export(path, format=".json")

    dump = export

    def to_bytes(
        self, format: Any = ".json", categories: Any = None, folded_nodes: bool = False, trace_limit: int | None = None
    ) -> bytes:
        """The bytes that export() would write."""
        return self._profile().write(_suffix(format), _category_list(categories), folded_nodes, trace_limit or 0)

    def send_otlp(
        self,
        endpoint: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        service_name: str | None = None,
        attributes: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        max_wait: float = 30.0,
        categories: Any = None,
    ) -> dict[str, Any]:
        """Sends the spans to an OpenTelemetry collector (OTLP, HTTP, JSON) and returns what came of it: "spans",
        "rejected", "requests", "retries" and the collector's "message". What is None is taken from OpenTelemetry's
        environment variables; the default endpoint is http://127.0.0.1:4318."""
        return _sonde.otlp_send(
            self._profile(),
            endpoint,
            _pairs(headers),
            service_name,
            _pairs(attributes),
            _milliseconds("timeout", timeout),
            _milliseconds("max_wait", max_wait),
            0,
            _category_list(categories),
        )

    def get(self) -> dict[str, Any]:
        """The Chrome trace as Python objects."""
        trace: dict[str, Any] = json.loads(self.to_bytes())
        return trace

    def save_history(self, path: PathLike | None = None, **entry: Any) -> int:
        """Adds the profile to the history (None: the user's database) and returns the number of the entry. Further
        arguments are those of sonde.history.History.add, such as session, commit, options and note."""
        from . import history

        with history.open(path) as opened:
            return opened.add(self, **entry)

    # ---------------------------------------------------------------- showing
    def _repr_html_(self) -> str:
        return _html.profile(self._profile())


class Profile(ProfileViews):
    """A finished profile, for example one that was loaded from a file."""

    def __init__(self, profile: _sonde.Profile) -> None:
        self._made = profile

    def _profile(self) -> _sonde.Profile:
        return self._made

    def __repr__(self) -> str:
        return describe(self._made)


def describe(profile: _sonde.Profile) -> str:
    s = profile.summary()
    unit = time_unit(s["mean_ns"])
    mean = f", mean {unit.text(s['mean_ns'])} {unit.name}" if s["iterations"] else ""
    runs = f"{s['iterations']} inferences{mean}"
    return f"<sonde profile of {s['model'] or 'no model'}: {runs}, {s['spans']} spans>"


def load_profile(path: PathLike, *, no_mmap: bool = False) -> Profile:
    """Loads a saved profile: .pftrace or .json of sonde, or a profile of ONNX Runtime or PyTorch.

    no_mmap: read the file instead of mapping it. If another process truncates the file meanwhile, this gives an error
    instead of SIGBUS.
    """
    return Profile(_sonde.Profile.load(os.fspath(path), no_mmap))
