# SPDX-License-Identifier: Apache-2.0
"""Traces of many processes: merge() joins them, and Fleet has their figures by host, worker and version."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _sonde
from ._errors import InvalidArgument
from ._profile import PathLike, Profile

_BY = {"host": 0, "worker": 1, "version": 2}


def rows(fleet: _sonde.Fleet, by: str) -> list[dict[str, Any]]:
    if by not in _BY:
        raise InvalidArgument(f"cannot group traces by '{by}', only by {', '.join(_BY)}")
    return fleet.rows(_BY[by])


class Fleet:
    """Traces of many processes on one line of time: see merge()."""

    def __init__(self, fleet: _sonde.Fleet) -> None:
        self._made = fleet

    @property
    def traces(self) -> list[dict[str, Any]]:
        """Each trace: its path, host, worker, version and model, a note of what is missing, and when it began."""
        return self._made.traces()

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Files that are not among the traces, and why. Nothing is missing of those that are a "duplicate"."""
        return self._made.skipped()

    @property
    def clocks(self) -> dict[str, Any]:
        """How well the common time is known. "boots" are the clocks that traces share: those of one boot of one machine
        are exact, those of two are apart by up to "error_ns", or None if that is not known."""
        return self._made.clocks()

    def by(self, by: str = "worker") -> list[dict[str, Any]]:
        """A row for each "host", "worker" or "version": runs, runs per second, latencies, time in operators. Names are ""
        where the traces of a row differ. pandas.DataFrame(fleet.by("host")) is a table of them."""
        return rows(self._made, by)

    @property
    def stragglers(self) -> list[dict[str, Any]]:
        """Workers that are slower than those that run the same version of the same model: by 10 % at least, and by three
        scaled median absolute deviations. "op" is the operator that takes longest beyond what is usual."""
        return self._made.stragglers()

    def save(self, path: PathLike) -> None:
        """Writes all traces to one file. A .pftrace is written trace by trace; others need all of them in memory."""
        self._made.save(os.fsencode(path))

    def profile(self) -> Profile:
        """All traces as one profile, in memory."""
        return Profile(self._made.profile())

    def __len__(self) -> int:
        return len(self.traces)

    def __repr__(self) -> str:
        return f"<sonde.Fleet of {len(self)} traces>"


def merge(
    paths: PathLike | Iterable[PathLike], output: PathLike | None = None, *, no_mmap: bool = True
) -> Fleet:
    """Joins traces of many processes, like `sonde merge`, and writes them to `output` if that is given.

    paths: files in any format that load_profile reads, and folders, of which every .pftrace is taken. Files that cannot
    be read are listed in `skipped`; it is an error only if none can.
    no_mmap: read files instead of mapping them, as workers may still be writing.
    """
    listed = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    target = b"" if output is None else os.fsencode(output)
    fleet = Fleet(_sonde.Fleet.open([os.fsencode(path) for path in listed], target, no_mmap))
    if output is not None:
        fleet.save(output)
    return fleet
