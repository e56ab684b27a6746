# SPDX-License-Identifier: Apache-2.0
"""The memory profiler of the process: what inferences hold while they run, step by step. It switches apart from the
time profilers. Used is what values and weights take, allocated is what was taken from the system; MB are 2^20 bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _sonde
from ._errors import InvalidArgument
from .profiler import memory_switch

_running = False


class MemorySample(NamedTuple):
    """What was held after a step, in MB."""

    tag: str
    used: float
    allocated: float


def start() -> None:
    """Begins; what an earlier profiler recorded is forgotten, unless another still runs."""
    global _running
    if not _running:
        memory_switch.kept = True
        memory_switch.take()
        _running = True


def stop() -> None:
    """Stops; maxima and trace stay."""
    global _running
    if _running:
        memory_switch.give()
        _running = False


def reset() -> None:
    """Forgets maxima and trace; a running profiler goes on from here."""
    memory_switch.kept = _running
    _sonde.memory_reset()


def _check(device: Any) -> None:
    if str(device).lower().partition(":")[0] != "cpu":
        raise InvalidArgument(f"there is no device '{device}'; there is cpu")


def get_max_memory_info(device: Any = "cpu") -> dict[str, Any]:
    """max_used and max_allocated in MB, each its own maximum; both in bytes; fragmentation: 1 - used / allocated
    at the moment when most was used."""
    _check(device)
    return _sonde.memory_max()


def get_memory_trace(device: Any = "cpu") -> list[MemorySample]:
    """What was held after every step."""
    _check(device)
    return [MemorySample(tag, used / 2**20, held / 2**20) for tag, used, held, _ in _sonde.memory_trace()]
