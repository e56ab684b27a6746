# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's module has around sessions: devices, providers, logging. There is one device, the CPU."""

from __future__ import annotations

import platform
from typing import NamedTuple

from . import _sonde
from ._options import OrtAllocatorType, OrtMemType


class OrtDevice(NamedTuple):
    """A device that has memory."""

    name: str = "cpu"
    id: int = 0

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        if ort_device_name.lower() != "cpu":
            raise ValueError(f"device '{ort_device_name}' is not supported; the only device is cpu")
        return OrtDevice("cpu", device_id)

    def device_id(self) -> int:
        return self.id

    def device_type(self) -> str:
        return self.name


class OrtMemoryInfo(NamedTuple):
    """Describes the memory of an allocator."""

    name: str = "Cpu"
    allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_DEVICE_ALLOCATOR
    id: int = 0
    mem_type: OrtMemType = OrtMemType.DEFAULT


def get_available_providers() -> list[str]:
    """The execution providers that can be used: the CPU."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    return ["CPUExecutionProvider"]


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return _sonde.version


def get_build_info() -> str:
    return f"sonde {_sonde.version}, {platform.machine()}"


def set_default_logger_severity(severity: int) -> None:
    """Without effect: the library is silent unless SONDE_LOG is set."""
    if not 0 <= severity <= 4:
        raise ValueError(f"severity is {severity}, expected 0 to 4")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without effect: the library is silent unless SONDE_LOG is set."""


def set_seed(seed: int) -> None:
    """Without effect: random operators follow their own seeds."""


def enable_telemetry_events() -> None:
    """Without effect: nothing is ever sent."""


def disable_telemetry_events() -> None:
    """Without effect: nothing is ever sent."""
