# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime with exact products of bytes. On x86 CPUs without VNNI it adds two products of a u8 and an i8 in 16 bits,
which saturates; with an option it does not, if it may rewrite the graph. sonde's are exact on every CPU. The option is not
for weights in bodies, and not for those that nodes share, which make it fail: there products saturate. Tests of such
models compare with CLOSE. On other CPUs nothing here changes anything."""

import pathlib
import platform

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _errors

_LEVEL = onnxruntime.GraphOptimizationLevel
_cpuinfo = pathlib.Path("/proc/cpuinfo")
EXACT = platform.machine() != "x86_64" or (_cpuinfo.exists() and "vnni" in _cpuinfo.read_text())

CLOSE = 35 if EXACT else 10  # dB between us and a model of bytes there: 14 and more where products saturate

_Session = onnxruntime.InferenceSession


class InferenceSession(_Session):
    def __init__(self, path_or_bytes, sess_options=None, *rest, **more):
        if EXACT:
            super().__init__(path_or_bytes, sess_options, *rest, **more)
            return
        options = sess_options or onnxruntime.SessionOptions()
        options.add_session_config_entry("session.x64quantprecision", "1")
        try:
            super().__init__(path_or_bytes, options, *rest, **more)
        except _errors.Fail as e:
            if "replace the existing tensor" not in str(e):
                raise
            options.add_session_config_entry("session.x64quantprecision", "0")
            super().__init__(path_or_bytes, options, *rest, **more)


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
