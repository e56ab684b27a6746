# SPDX-License-Identifier: Apache-2.0
"""sonde runs ONNX models and profiles their time and memory.

    import sonde
    session = sonde.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": array})

Code written for onnxruntime runs with the import changed.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _convert as _convert
from . import _ending, history, memory_profiler, metrics, op_profiler, profiler
from ._bench import BenchResult, bench
from ._binding import IOBinding
from ._compare import ModelComparison, compare
from ._environment import (
    OrtDevice,
    OrtMemoryInfo,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from ._errors import (
    Cancelled,
    EngineError,
    EPFail,
    Error,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    OutOfMemory,
    RuntimeException,
)
from ._options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtMemType,
    SessionOptions,
)
from ._fleet import Fleet, merge
from ._profile import Profile, load_profile
from ._quantize import quantize
from ._random import rand
from ._session import InferenceSession, ModelMetadata, NodeArg
from ._sonde import OrtValue, RunOptions
from ._sonde import version as __version__
from ._sparsify import sparsify
from .op_profiler import profile_op
from .profiler import Profiler, RecordFormat, profile, record
from ._torch import from_torch
from ._whatif import whatif

__all__ = [
    "BenchResult",
    "Cancelled",
    "EPFail",
    "EngineError",
    "Error",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "Fleet",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelComparison",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtValue",
    "OutOfMemory",
    "Profile",
    "Profiler",
    "RecordFormat",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "__version__",
    "bench",
    "compare",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "from_torch",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "history",
    "load_profile",
    "memory_profiler",
    "merge",
    "metrics",
    "op_profiler",
    "profile",
    "profile_op",
    "profiler",
    "quantize",
    "rand",
    "record",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
    "sparsify",
    "whatif",
]

_ending.watch()

# Where people look for them, and where tracebacks say they are.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name


# Imported when they are first used: some of them need packages that are not installed everywhere.
_LATER = ("backend", "dask", "onnxruntime", "opentelemetry", "ray", "spark", "zoo")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
