#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of sonde against each other: does a change make models slower, loading slower, or memory larger?

    python3 bench/builds.py OLD NEW                          the seven models, on one and two threads
    python3 bench/builds.py OLD NEW resnet50 my.onnx -t 1    built-in models and files by name
    python3 bench/builds.py OLD NEW --rounds 12 --json builds.json

OLD and NEW are `sonde` programs; each must find its own library (for an older build, its folder in LD_LIBRARY_PATH
through a small script). The builds take turns: a round measures every model once with each build in fresh processes,
and rounds alternate who is first. A ratio is NEW as a share of OLD: the geometric mean over rounds of the ratio of
medians, with its 95 % interval; below 1, NEW is better. Run it on a quiet machine."""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from models import MODELS, interval

KINDS = ("latency", "load", "memory")


def measure(program, model, threads, seconds):
    """Median latency and load time in ms and peak memory in bytes of one process."""
    command = [program, "bench", str(model), "--json", "-", "-q", "-t", str(threads), "--rounds", "1", "--no-program",
               "--duration", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    result = json.loads(done.stdout)
    return {"latency": statistics.median(result["samples"]["latency"]["values"]), "load": result["load_ms"],
            "memory": result["peak_rss_bytes"]}


def saved(program, name, folder):
    """A file of the model: both builds read the same bytes."""
    if os.path.exists(name):
        return pathlib.Path(name)
    path = folder / f"{name}.onnx"
    subprocess.run([program, "zoo", "save", name, str(path)], check=True, stdout=subprocess.DEVNULL)
    return path


def shown(ratio):
    spread = "" if ratio["low"] is None else f" ({ratio['low']:.3f} … {ratio['high']:.3f})"
    return f"{ratio['value']:.3f}{spread}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("-t", "--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--rounds", type=int, default=8, help="pairs of measurements (8)")
    parser.add_argument("--duration", type=float, default=1, help="length of one measurement (1)")
    parser.add_argument("--json", help="save all measurements to this file")
    given = parser.parse_args()
    programs = {"old": given.old, "new": given.new}
    cases = [(model, int(t)) for model in given.models for t in given.threads.split(",")]
    taken = {case: {"old": [], "new": []} for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        files = {name: saved(given.new, name, pathlib.Path(folder)) for name in given.models}
        for number in range(given.rounds):
            for case in cases:
                for build in ("old", "new") if number % 2 == 0 else ("new", "old"):
                    taken[case][build].append(measure(programs[build], files[case[0]], case[1], given.duration))
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    print(f"{'model':<20} {'threads':>7}   {'old ms':>9}   NEW / OLD: {'latency':<25} {'load':<25} memory")
    means = {kind: [[] for _ in range(given.rounds)] for kind in KINDS}  # logarithms by round, over all cases
    for (model, threads), pair in taken.items():
        texts = []
        for kind in KINDS:
            logs = [math.log(new[kind] / old[kind]) for old, new in zip(pair["old"], pair["new"])]
            for number, value in enumerate(logs):
                means[kind][number].append(value)
            texts.append(f"{shown(interval(logs)):<25}")
        old_ms = statistics.median(m["latency"] for m in pair["old"])
        print(f"{pathlib.Path(model).name:<20} {threads:>7}   {old_ms:>9.3f}              {' '.join(texts)}".rstrip())
    every = [f"{shown(interval([statistics.fmean(logs) for logs in means[kind]])):<25}" for kind in KINDS]
    print(f"{'geometric mean':<20} {'':>7}   {'':>9}              {' '.join(every)}".rstrip())
    if given.json:
        rows = [{"model": model, "threads": threads, **pair} for (model, threads), pair in taken.items()]
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
