# SPDX-License-Identifier: Apache-2.0
"""A sampling profiler beside sonde names our kernels and walks our stacks: symbols and frame pointers are there."""

import os
import re
import shutil
import subprocess

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM or not shutil.which("perf"), reason="needs SONDE_PROGRAM and perf")

KERNEL = re.compile(r"^(conv|conv_s2|conv_any|gemm)_\d+x\d+$|^sn_f32_\w+_(avx2|avx512|neon|ref)$")


def stacks(text):
    """Lists of function names, innermost first; one per sample."""
    for block in text.split("\n\n"):
        lines = [line.split() for line in block.splitlines()[1:]]
        yield [words[1].split("+")[0] for words in lines if len(words) > 1]


def test_perf_names_kernels_and_who_called_them(tmp_path):
    data = tmp_path / "perf.data"
    command = ["perf", "record", "-e", "cpu-clock", "-F", "999", "-g", "-o", data, "--",
               PROGRAM, "run", "zoo:regnet_x_400mf", "-n", "60", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "SONDE_THREADS": "1"})
    if not data.exists() or re.search(r"[Pp]ermission|perf_event_paranoid|not supported", done.stderr):
        pytest.skip(f"perf is refused here: {done.stderr.strip().splitlines()[-1:]}")
    assert done.returncode == 0, done.stderr
    script = subprocess.run(["perf", "script", "-i", data, "-F", "comm,ip,sym"], capture_output=True, text=True,
                            timeout=PATIENCE)
    assert script.returncode == 0, script.stderr
    samples = [s for s in stacks(script.stdout) if s]
    in_kernels = [s for s in samples if KERNEL.match(s[0])]
    assert len(samples) >= 50, "too few samples to say anything"
    # Convolutions are nearly all of this model's time; loading and the kernel's share are the rest.
    assert len(in_kernels) > 0.3 * len(samples), sorted({s[0] for s in samples})
    called = [s for s in in_kernels if "sonde_session_run" in s]
    assert len(called) > 0.8 * len(in_kernels), in_kernels[:5]
    assert any("sn_conv_run" in s for s in called)
