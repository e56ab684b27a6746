# SPDX-License-Identifier: Apache-2.0
"""The trace of a worker process, in a folder that it shares with others: one for all workers of the process."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Mapping
from typing import Any

from ._errors import InvalidArgument
from ._profile import PathLike
from .profiler import Stream, stream


class _Shared:
    """The trace of this process and how many workers use it."""

    def __init__(self, folder: str, made: Stream) -> None:
        self.folder, self.stream, self.users = folder, made, 1


_shared: _Shared | None = None
_lock = threading.Lock()


def _forget() -> None:
    """Called in a forked child, whose parent keeps the trace."""
    global _shared, _lock
    _shared = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def _free_name(folder: str) -> str:
    """A name that no file in the folder has; the file is made, so that no other process takes it. Process ids are
    used again, in containers from 1 on."""
    host = re.sub(r"[^A-Za-z0-9._-]", "_", socket.gethostname()) or "host"
    n = 0
    while True:
        path = os.path.join(folder, f"{host}-{os.getpid()}-{n}.pftrace")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
            return path
        except FileExistsError:
            n += 1


def take_trace(folder: PathLike, labels: Mapping[str, Any] | None = None) -> str:
    """Starts the trace of this process in the folder, unless it is being written already. Returns its path. Every
    call needs a give_trace()."""
    global _shared
    folder = os.path.abspath(os.fspath(folder))
    with _lock:
        if _shared is not None:
            if _shared.folder != folder:
                raise InvalidArgument(
                    f"this process writes its trace to '{_shared.folder}' already; a process has one trace, so use "
                    f"one folder instead of also '{folder}'"
                )
            _shared.users += 1
        else:
            os.makedirs(folder, exist_ok=True)
            path = _free_name(folder)
            try:
                _shared = _Shared(folder, stream(path, labels=labels))
            except BaseException:
                os.unlink(path)
                raise
        return _shared.stream.path


def give_trace(pid: int) -> None:
    """The last one ends the trace. `pid`: the process that took it."""
    global _shared
    with _lock:
        if _shared is None or os.getpid() != pid:
            return
        _shared.users -= 1
        ended = _shared.stream if _shared.users == 0 else None
        if ended is not None:
            _shared = None
    if ended is not None:
        ended.close()
