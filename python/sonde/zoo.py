# SPDX-License-Identifier: Apache-2.0
"""Built-in models: the structure of well-known networks with seeded weights, made in milliseconds, nothing
downloaded. Use them to measure and test; their predictions mean nothing."""

from __future__ import annotations

import os
from typing import NamedTuple

from . import _sonde
from ._options import SessionOptions
from ._session import InferenceSession

__all__ = ["ZooModel", "models", "names", "save", "session"]


class ZooModel(NamedTuple):
    """One of them; figures as published, floating-point operations of one inference at the default sizes."""

    name: str
    summary: str
    parameters: int
    flops: int


def models() -> list[ZooModel]:
    """All built-in models."""
    return [ZooModel(*row) for row in _sonde.zoo_list()]


def names() -> list[str]:
    """Their names: zoo:NAME is a model wherever a path is."""
    return [model.name for model in models()]


def session(name: str, sess_options: SessionOptions | None = None) -> InferenceSession:
    """InferenceSession("zoo:NAME")."""
    return InferenceSession(f"zoo:{name.removeprefix('zoo:')}", sess_options)


def save(name: str, path: str | os.PathLike[str], seed: int = 0, external_data: bool | str = False) -> None:
    """Writes a built-in model as an ONNX file. Equal seeds give equal weights on every machine. external_data: weights go
    to a second file, whose name may be given; models above 2 GiB have one anyway."""
    plain = _sonde.Session(zoo=name.removeprefix("zoo:"), seed=seed, plan_only=True)
    name_of_data = external_data if isinstance(external_data, str) else None
    plain._save(os.fspath(path), False, external_data is not False, name_of_data)
