# SPDX-License-Identifier: Apache-2.0
"""Files of SONDE_TRACE and SONDE_PROFILE in Python programs. The library writes them when the process calls libc's
`exit`, or before SIGTERM ends it. Python ends in other ways, too: after Ctrl-C it kills itself with SIGINT, and the
processes of multiprocessing and concurrent.futures leave with `os._exit`. All of them call Python functions first."""

from __future__ import annotations

import atexit
import os
import sys

from . import _sonde


def _finish_worker(_: object = None) -> None:
    """Called in a process of multiprocessing that begins its work; after the finalizers of the program's own."""
    util = sys.modules["multiprocessing.util"]
    util.Finalize(None, _sonde.environment_finish, exitpriority=-1000)


def _watch_worker() -> None:
    """multiprocessing drops what was to be done at the end of the parent, then asks what the child wants to do."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_finish_worker, _finish_worker)


def _name_apart() -> None:
    """Processes that were not forked have their parent's SONDE_TRACE, and would overwrite its file."""
    trace = os.environ.get("SONDE_TRACE")
    if trace and "%p" not in trace.replace("%%", ""):
        stem, suffix = os.path.splitext(trace)
        os.environ["SONDE_TRACE"] = f"{stem}.%p{suffix}"


def watch() -> None:
    """Called once, when the package is imported."""
    # Registered before what the program registers, it is called after that.
    atexit.register(_sonde.environment_finish)
    os.register_at_fork(after_in_child=_watch_worker)
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return
    begun = process.parent_process() is not None
    if begun or getattr(process.current_process(), "_inheriting", False):  # set while a new process imports
        _name_apart()
        _watch_worker()
    if begun:
        _finish_worker()
