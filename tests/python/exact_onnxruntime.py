# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime with exact products of bytes. On x86 CPUs without VNNI it adds two products of a u8 and an i8 in 16 bits,
which saturates; with an option it does not, if it may rewrite the graph. sonde's are exact on every CPU."""

import pathlib
import platform

import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as _errors

_LEVEL = onnxruntime.GraphOptimizationLevel
_cpuinfo = pathlib.Path("/proc/cpuinfo")
EXACT = platform.machine() != "x86_64" or (_cpuinfo.exists() and "vnni" in _cpuinfo.read_text())


_Session = onnxruntime.InferenceSession


class InferenceSession(_Session):
    def __init__(self, path_or_bytes, sess_options=None, *rest, **more):
        options = sess_options or onnxruntime.SessionOptions()
        if not EXACT:
            options.add_session_config_entry("session.x64quantprecision", "1")
        try:
            super().__init__(path_or_bytes, options, *rest, **more)
        except _errors.Fail as e:
            if EXACT or "replace the existing tensor" not in str(e):
                raise
            pytest.skip("ONNX Runtime's products are not exact on this CPU, and it cannot rewrite weights that nodes share")


def plain_session(model, options=None):
    """A session that leaves the graph as it is, as far as products are exact then."""
    options = options or onnxruntime.SessionOptions()
    providers = ["CPUExecutionProvider"]
    if not EXACT:
        options.graph_optimization_level = _LEVEL.ORT_ENABLE_EXTENDED
        try:
            return InferenceSession(model, options, providers=providers)
        except _errors.NotImplemented:
            pass  # products of i8, which do not saturate, rewritten for u8
    options.graph_optimization_level = _LEVEL.ORT_DISABLE_ALL
    return _Session(model, options, providers=providers)


onnxruntime.InferenceSession = InferenceSession
