# SPDX-License-Identifier: Apache-2.0
"""SessionOptions.enable_profiling and InferenceSession.end_profiling(), as onnxruntime has them: a Chrome trace from
the loading of the model on. Like every profiler it covers what other sessions do meanwhile, too."""

from __future__ import annotations

import os
import time
import weakref

from . import _sonde
from ._options import SessionOptions


def _path(prefix: str) -> str:
    """A name with the time in it that no file has yet."""
    stem = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    path, n = f"{stem}.json", 0
    while os.path.exists(path):
        n += 1
        path = f"{stem}_{n}.json"
    return path


class SessionProfiling:
    """A recording that belongs to a session. It is written when the session asks for it, or else when that goes."""

    def __init__(self, options: SessionOptions) -> None:
        self._prefix = os.fspath(options.profile_file_prefix)
        self.start_ns = time.time_ns()
        self._recording: _sonde.Recording | None = _sonde.Recording(2)

    def tie(self, session: object) -> None:
        """Without end_profiling() the file is written with the session's end."""
        weakref.finalize(session, self.end)

    def drop(self) -> None:
        """Nothing is written."""
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.close()

    def end(self) -> str:
        """Writes the trace. Its path; "" when that was done before."""
        recording, self._recording = self._recording, None
        if recording is None:
            return ""
        try:
            path = _path(self._prefix)
            recording.get().save(path, ".json", None, False, 0)
        finally:
            recording.close()
        return path
