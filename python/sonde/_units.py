# SPDX-License-Identifier: Apache-2.0
"""Units of time for printed results, chosen by the rules of the timing table."""

from __future__ import annotations

from typing import NamedTuple


class TimeUnit(NamedTuple):
    ns: float
    name: str
    decimals: int

    def text(self, ns: float) -> str:
        return f"{ns / self.ns:.{self.decimals}f}"


def time_unit(ns: float) -> TimeUnit:
    """Milliseconds from 1 ms on and where nothing was measured, seconds from 10 s on."""
    if ns >= 1e10:
        return TimeUnit(1e9, "s", 3)
    if ns >= 999_999.5 or not ns > 0:
        return TimeUnit(1e6, "ms", 3)
    return TimeUnit(1e3, "µs", 2) if ns >= 999.995 else TimeUnit(1.0, "ns", 1)
