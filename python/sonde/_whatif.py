# SPDX-License-Identifier: Apache-2.0
"""sonde.whatif: what another form of a model would give on this machine, measured."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _sonde
from ._errors import InvalidArgument
from ._options import precision_number
from ._session import InferenceSession

_BY = {"op": 0, "node": 1, "shape": 2, "scenario": 2}


def _words(value: str | Iterable[str] | None) -> str | None:
    return value if value is None or isinstance(value, str) else ",".join(value)


def _names(nodes: str | Iterable[str] | None) -> tuple[str, ...]:
    return (nodes,) if isinstance(nodes, str) else tuple(nodes or ())


def _paths(file: Any) -> tuple[bytes, ...]:
    several = file if isinstance(file, (list, tuple)) else () if file is None else (file,)
    return tuple(os.fsencode(path) for path in several)


def whatif(
    model: Any,
    feeds: Mapping[str, Any] | None = None,
    *,
    scenarios: str | Iterable[str] | None = None,
    only: str | Iterable[str] | None = None,
    by: str = "shape",
    threads: int = 0,
    precision: str | None = None,
    runs: int | None = None,
    warmup: int = 3,
    mix: bool = True,
    cache: bool | str | os.PathLike[str] = True,
    file: Any = None,
    seed: int = 0,
) -> Any:
    """Measures what other forms of a model would give: a pandas.DataFrame with the times in milliseconds.

    model: a session, or anything that InferenceSession accepts. Without feeds the inputs are random. scenarios: a list, or
    a str such as "sparse90,int8,sparse90+int8,batch=4,threads=2"; docs/whatif.md explains them. only: the nodes whose
    weights change, chosen as in sonde.quantize: names, wildcards, "@FILE". by: what a row is: "op", "node", "shape", or "scenario" for totals, speed-up, its interval and
    memory. runs: measured runs per scenario, and as many of the model as it is beside them; by default half a second of
    both and at least 6. mix: whether the best mix is measured. cache: False measures again and keeps nothing; a path is the folder of what is kept. file: one or several
    paths that end in .csv, .xlsx or .json. attrs["scenarios"] of the frame has the scenarios as dicts.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("whatif returns a DataFrame, which needs pandas (pip install pandas)") from error
    if by not in _BY:
        raise InvalidArgument(f"by is '{by}', expected one of {', '.join(_BY)}")
    if (runs is not None and runs < 1) or warmup < 0:
        raise InvalidArgument("runs must be at least 1, warmup at least 0")
    session = model if isinstance(model, InferenceSession) else InferenceSession(model)
    inputs = dict(feeds) if feeds is not None else session.random_inputs(seed)
    folder = None if isinstance(cache, bool) else os.fspath(cache)
    found, rows = _sonde.whatif(
        session,
        list(inputs.items()),
        _words(scenarios),
        _names(only),
        _BY[by],
        threads,
        precision_number(precision),
        runs or 0,
        warmup or -1,
        not mix,
        cache is False,
        folder,
        _paths(file),
    )
    if by == "scenario":
        return pandas.DataFrame(found)
    names = [scenario["scenario"] for scenario in found]
    columns = ["name", "op_type", "node", "shapes", "weight", "count", "fastest", "bracket"]
    frame = pandas.DataFrame(
        [
            (*texts, count, "" if bracket else names[best], bracket, *times)
            for *texts, count, best, bracket, times in rows
        ],
        columns=[*columns, *names],
    )
    frame.attrs["scenarios"] = found
    return frame
