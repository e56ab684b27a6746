# SPDX-License-Identifier: Apache-2.0
"""SessionOptions and the enumerations of onnxruntime. Options that sonde does not need are stored, so
that programs can set them and read them back, but have no effect."""

from __future__ import annotations

import enum
import os
from typing import Any

from . import _sonde
from ._errors import InvalidArgument, NotImplemented


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL runs no passes; every other level runs all passes."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Steps run one after the other, each on all threads, in either mode."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Has no effect: the planner determines the order of steps."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


# Configuration entries that mean something here. Those named session.* are onnxruntime's.
CONFIG_ENTRIES = {
    "session.disable_prepacking": "'1': weights stay as they are in the file",
    "session.set_denormal_as_zero": "'1': denormal numbers count as 0 while a run lasts",
    "sonde.disabled_passes": "names of passes to leave out, comma-separated",
    "sonde.weights_cache": "folder that keeps packed weights; '1': the user's cache folder",
    "sonde.tune": "folder that keeps measured ways to cut products and convolutions; '1': the user's cache folder",
    "sonde.external_dir": "folder of the model's external data",
    "sonde.no_mmap": "'1': the file is read, not mapped",
    "sonde.precision": "'f32', 'bf16', 'f16' or 'auto': type in which weights of products and convolutions are stored, and in which CPUs compute them that are fast in bf16",
    "sonde.instance": "number of the session among several that run side by side; profiles show it",
    "sonde.instances": "how many sessions these are: they share the threads, and with sonde.numa the nodes and their cores",
    "sonde.numa": "'auto', 'off', or memory nodes such as '0' or '0,2-3', to which threads and memory are bound (SONDE_NUMA)",
}


class SessionOptions:
    """Options of a session. intra_op_num_threads, graph_optimization_level, enable_profiling,
    optimized_model_filepath and the entries of CONFIG_ENTRIES have an effect."""

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath: str | os.PathLike[str] = ""
        self.profile_file_prefix = "sonde_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: dict[str, str] = {}
        self._dims: dict[str, int] = {}
        self._providers: list[str] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry. Entries of onnxruntime that sonde does not need are stored and have no effect; a name that
        begins with "sonde." must be one of CONFIG_ENTRIES."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("the key and the value of a session configuration entry must be str")
        if key.startswith("sonde.") and key not in CONFIG_ENTRIES:
            own = ", ".join(name for name in CONFIG_ENTRIES if name.startswith("sonde."))
            raise InvalidArgument(f"unknown session configuration entry '{key}'; the entries of sonde are {own}")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        try:
            return self._entries[key]
        except KeyError:
            raise RuntimeError(f"unknown session configuration entry '{key}'") from None

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Sets the size of a symbolic dimension; inputs then show it instead of the name."""
        if dim_value < 0:
            raise InvalidArgument(f"the size of dimension '{dim_name}' is {dim_value}, expected 0 or more")
        self._dims[dim_name] = int(dim_value)

    def add_free_dimension_override_by_denotation(self, denotation: str, dim_value: int) -> None:
        raise NotImplemented("dimensions can only be overridden by name")

    def add_provider(self, provider: str, options: dict[str, str] | None = None) -> None:
        self._providers.append(provider)

    def has_providers(self) -> bool:
        return bool(self._providers)

    def register_custom_ops_library(self, path: str) -> None:
        raise NotImplemented("libraries of custom operators are not supported")

    def add_initializer(self, name: str, value: Any) -> None:
        raise NotImplemented("setting initializers is not supported; they come from the model")

    def add_external_initializers(self, names: Any, values: Any) -> None:
        raise NotImplemented("setting initializers is not supported; they come from the model")


def _folder(entry: str | None) -> str | None:
    """A folder as the library takes it: "" is the user's cache folder, None is none."""
    return "" if entry == "1" else entry or None


_PRECISIONS = ("file", "f32", "bf16", "f16", "auto")


def precision_number(text: str | None) -> int:
    if text is not None and text not in _PRECISIONS:
        raise InvalidArgument(f"sonde.precision is '{text}', expected one of {', '.join(_PRECISIONS)}")
    return _PRECISIONS.index(text or "file")


def precision_name(number: int) -> str:
    return _PRECISIONS[number]


def _number(key: str, entry: str) -> int:
    if not entry.isdecimal():
        raise InvalidArgument(f"{key} is '{entry}', expected a number from 0")
    return int(entry)


def session_arguments(options: SessionOptions, disabled: Any = None) -> dict[str, Any]:
    """The extension's keyword arguments for these options. `disabled`: names of passes to leave out; names that
    only onnxruntime knows are ignored."""
    entries = options._entries
    threads = int(options.intra_op_num_threads)
    if threads < 0:
        raise InvalidArgument(f"intra_op_num_threads is {threads}, expected 0 or more")
    known = {name for name, _ in _sonde.pass_list()}
    passes = [name.strip() for name in entries.get("sonde.disabled_passes", "").split(",") if name.strip()]
    passes += [name for name in disabled or () if name in known]
    return {
        "no_optimize": int(options.graph_optimization_level) == 0,
        "no_prepack": entries.get("session.disable_prepacking") == "1",
        "no_mmap": entries.get("sonde.no_mmap") == "1",
        "flush_denormals": entries.get("session.set_denormal_as_zero") == "1",
        "threads": threads,
        "disabled": tuple(passes),
        "weights_cache": _folder(entries.get("sonde.weights_cache")),
        "tune": _folder(entries.get("sonde.tune")),
        "external_dir": entries.get("sonde.external_dir"),
        "precision": precision_number(entries.get("sonde.precision")),
        "instance": _number("sonde.instance", entries.get("sonde.instance", "0")),
        "instances": _number("sonde.instances", entries.get("sonde.instances", "0")),
        "numa": entries.get("sonde.numa"),
    }
