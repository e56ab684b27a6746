# SPDX-License-Identifier: Apache-2.0
"""Arguments of the adapters for Ray, Dask and Spark. They are looked at where they are given: an error of a worker
comes late, from another process, and often between many lines of the engine's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ._errors import InvalidArgument


def whole_number(what: str, value: Any) -> int:
    """An argument that counts something."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidArgument(f"{what} is {value!r}, expected a whole number from 1 on")
    return int(value)


def hook(what: str, function: Any) -> Callable[[dict[str, Any]], Any] | None:
    if function is not None and not callable(function):
        raise InvalidArgument(f"{what} is {function!r}, expected a function of a dict of columns")
    made: Callable[[dict[str, Any]], Any] | None = function
    return made


def folder(what: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument(f"{what} is {path!r}, expected the path of a folder")
    return os.path.abspath(os.fsdecode(path))


def labels_of(labels: Any) -> dict[str, Any] | None:
    if labels is not None and not isinstance(labels, Mapping):
        raise InvalidArgument(f"labels is {labels!r}, expected a dict")
    return None if labels is None else dict(labels)


def column_names(what: str, names: Any) -> list[str]:
    """Names of columns. One needs no list."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, (bytes, Mapping)) or not isinstance(names, Iterable):
        raise InvalidArgument(f"{what} is {names!r}, expected names of columns")
    listed: list[Any] = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise InvalidArgument(f"{what} has the name {name!r}, but names of columns are texts")
    return listed


def _mapped(what: str, names: Any) -> dict[str, list[str]]:
    if not isinstance(names, Mapping):
        raise InvalidArgument(f"{what} is {names!r}, expected the name of a column or a dict of them")
    made = {name: column_names(f"{what}[{name!r}]", columns) for name, columns in names.items()}
    for name, columns in made.items():
        if not columns:
            raise InvalidArgument(f"{what}[{name!r}] names no column")
    return made


def columns_of_inputs(names: Any) -> str | dict[str, list[str]] | None:
    return names if names is None or isinstance(names, str) else _mapped("inputs", names)


def columns_of_outputs(names: Any) -> str | dict[str, str] | None:
    if names is None or isinstance(names, str):
        return names
    mapped = _mapped("outputs", names)
    if not mapped:
        raise InvalidArgument("outputs names no output; without outputs= all of them become columns")
    taken: dict[str, str] = {}
    for name, columns in mapped.items():
        if len(columns) != 1:
            raise InvalidArgument(f"outputs[{name!r}] is {columns}, expected the name of one column")
        if columns[0] in taken:
            raise InvalidArgument(
                f"outputs puts '{taken[columns[0]]}' and '{name}' into one column '{columns[0]}', expected two"
            )
        taken[columns[0]] = name
    return {name: columns[0] for name, columns in mapped.items()}


def check_kept(keep: Iterable[str], made: Iterable[str], maker: str) -> None:
    """A column that is kept and one of the result cannot have the same name."""
    for name in sorted(set(keep).intersection(made)):
        raise InvalidArgument(f"keep has '{name}', but {maker} a column '{name}', too; give one of them another name")
