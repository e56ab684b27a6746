#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What profiling costs: sonde's recorder beside ONNX Runtime's profiler, measured alike.

usage: bench/profilers.py BUILD_DIR [PAIRS]     (python with onnxruntime and numpy)

Both run the same saved model with profiling on and off in pairs inside one process, the order within a pair
alternating; the figure is the median of the differences. ONNX Runtime cannot switch its profiler, so it gets two
sessions. Run it on a quiet machine.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime


def onnxruntime_cost(path, pairs, folder):
    def session(profiling):
        options = onnxruntime.SessionOptions()
        options.enable_profiling = profiling
        options.profile_file_prefix = str(folder / "ort")
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    both = [session(False), session(True)]
    first = both[0].get_inputs()[0]
    feeds = {first.name: np.zeros([d if isinstance(d, int) else 1 for d in first.shape], np.float32)}
    times = {False: [], True: []}
    for k in range(pairs + 20):
        for on in (k % 2 == 0, k % 2 != 0):
            begin = time.perf_counter_ns()
            both[on].run(None, feeds)
            times[on].append(time.perf_counter_ns() - begin)
    off, on = (np.array(times[way][20:], float) for way in (False, True))
    both[1].end_profiling()
    return np.median(off), np.median(on - off)


def main():
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    build, pairs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model, count in (("regnet_x_400mf", pairs), ("tiny_chain", pairs)):
            path = folder / f"{model}.onnx"
            subprocess.run([build / "sonde", "zoo", "save", model, path], check=True)
            for level, mode in (("1", "plain"), ("1", "stream"), ("1", "memory"), ("3", "plain")):
                ours = subprocess.run([build / "sonde_bench_overhead", model, str(count), level, mode], cwd=folder,
                                      capture_output=True, text=True, check=True).stdout
                print(ours, end="", flush=True)
            off, cost = onnxruntime_cost(path, min(count, 400), folder)
            steps = int(ours.split(" steps")[0].split()[-1])
            print(f"onnxruntime {onnxruntime.__version__}: off: median {off / 1e6:.4f} ms; profiler: "
                  f"{100 * cost / off:+.3f} % of a run, {cost / steps:+.1f} ns a step\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
