# SPDX-License-Identifier: Apache-2.0
"""The memory profiler of the process: the memory of inferences after every step. It can be enabled separately from the
time profilers. "used" is the memory of values and weights, "allocated" is the memory taken from the system, both in MiB
(2^20 bytes)."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _sonde
from ._errors import InvalidArgument
from .profiler import memory_switch

_running = False


class MemorySample(NamedTuple):
    """Memory after a step, in MiB."""

    tag: str
    used: float
    allocated: float


def start() -> None:
    """Starts the profiler. Earlier records are discarded unless another profiler is active."""
    global _running
    if not _running:
        memory_switch.kept = True
        memory_switch.take()
        _running = True


def stop() -> None:
    """Stops the profiler. The maxima and the trace are kept."""
    global _running
    if _running:
        memory_switch.give()
        _running = False


def reset() -> None:
    """Discards the maxima and the trace. An active profiler continues."""
    memory_switch.kept = _running
    _sonde.memory_reset()


def _check(device: Any) -> None:
    if str(device).lower().partition(":")[0] != "cpu":
        raise InvalidArgument(f"unknown device '{device}'; the only device is cpu")


def get_max_memory_info(device: Any = "cpu") -> dict[str, Any]:
    """max_used and max_allocated in MiB (the two maxima may occur at different times), both also in bytes, and
    fragmentation: 1 - used / allocated at the time of maximum use."""
    _check(device)
    return _sonde.memory_max()


def get_memory_trace(device: Any = "cpu") -> list[MemorySample]:
    """The memory after every step."""
    _check(device)
    return [MemorySample(tag, used / 2**20, held / 2**20) for tag, used, held, _ in _sonde.memory_trace()]
