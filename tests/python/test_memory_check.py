# SPDX-License-Identifier: Apache-2.0
"""A run that has no room is refused before its inputs are made and its weights packed."""

import os
import re
import subprocess
import sys

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

BATCH = 1000
INPUT = BATCH * 3 * 224 * 224 * 4
# The verb below a process of its own, which then says what it and the processes it waited for have held at most.
MEASURED = ("import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024); sys.exit(code)")


def refused(*arguments):
    done = subprocess.run([sys.executable, "-c", MEASURED, PROGRAM, *arguments], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr, int(done.stdout.split()[-1])


@pytest.mark.parametrize("verb", [["run"], ["profile"], ["bench", "--no-program"]])
@pytest.mark.parametrize("batch", [["zoo:resnet18", "-s", f"batch={BATCH}"],
                                   ["zoo:resnet18", "--batch-size", str(BATCH)],
                                   [f"zoo:resnet18?batch={BATCH}"]])
def test_inputs_without_room_are_never_made(verb, batch):
    said, held = refused(*verb, *batch, "-t", "1", "--max-memory", "1G")
    sizes = re.search(r"needs (\d+) bytes \(activations (\d+), workspace (\d+), outputs (\d+), inputs (\d+)\)", said)
    assert sizes, said
    total, *parts = map(int, sizes.groups())
    assert parts[-1] == INPUT
    assert sum(parts) <= total <= sum(parts) + 4096  # parts are aligned
    assert held < INPUT / 2


def test_inputs_with_room_are_made():
    done = subprocess.run([PROGRAM, "run", "zoo:tiny_cnn", "-s", "batch=6000", "-q", "-t", "1"], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
