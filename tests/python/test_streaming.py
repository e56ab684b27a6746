# SPDX-License-Identifier: Apache-2.0
"""A trace that is written while a program runs: no record of a long run is lost, and memory does not grow with it.

tiny_chain makes records as fast as they can be made: 2,000 a run, many millions a second. script/test --full asks for
five million of them (1.3 GB on disk)."""

import os
import subprocess

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")
RUNS = 2500 if os.environ.get("SONDE_FULL") == "1" else 300


def stream(folder, runs):
    """Peak resident memory in MB, and what the trace says."""
    path = folder / f"{runs}.pftrace"
    command = [PROGRAM, "run", "zoo:tiny_chain", "--no-optimize", "-n", str(runs), "-w", "0", "-t", "1"]
    pid = os.posix_spawn(PROGRAM, command, {**os.environ, "SONDE_TRACE": str(path), "SONDE_LEVEL": "1"},
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    done = subprocess.run([PROGRAM, "report", path], capture_output=True, text=True, timeout=PATIENCE)
    path.unlink()
    assert done.returncode == 0, done.stderr
    return usage.ru_maxrss / 1024, done.stdout + done.stderr


def test_millions_of_events_are_kept_in_flat_memory(tmp_path):
    """A disk that stands still for a second costs records, which is said; three times in a row it is not the disk."""
    few, _ = stream(tmp_path, 150)  # more than a ring holds
    for _ in range(3):
        many, said = stream(tmp_path, RUNS)
        assert many < few + 8, f"{few:.1f} MB, then {many:.1f} MB"
        if "lost" not in said and "dropped" not in said:
            break
    assert "lost" not in said and "dropped" not in said
    assert f"mean of {RUNS} runs" in said and "Graph run of 2000 ops" in said
