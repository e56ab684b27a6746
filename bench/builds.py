#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of sonde against each other: does a change make models slower, loading slower, or memory larger?

    python3 bench/builds.py OLD NEW                          the seven models, on one and two threads
    python3 bench/builds.py OLD NEW resnet50 my.onnx -t 1    built-in models and files by name
    python3 bench/builds.py OLD NEW --rounds 12 --json builds.json

OLD and NEW are `sonde` programs; each must find its own library (an older one through a small script that sets
LD_LIBRARY_PATH). For each model and number of threads a round starts a process of each build, as `sonde bench` does,
and lets them run in short turns, so that what else the machine does meets both alike; rounds alternate who is first. A
ratio is NEW as a share of OLD: the median over the turns of a round, then the geometric mean over rounds with its 95 %
interval. Below 1, NEW is better. Run it on a quiet machine."""

import argparse
import array
import json
import math
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile

from models import MODELS, interval

KINDS = ("latency", "load", "memory")
ELEMENTS = {"f32": ("F32", "f"), "f64": ("F64", "d"), "i64": ("I64", "q"), "i32": ("I32", "i"), "u8": ("U8", "B"),
            "i8": ("I8", "b"), "bool": ("BOOL", "B")}


class Driver:
    """A process that has loaded the model and runs it when told, by the protocol of docs/benchmarking.md."""

    def __init__(self, program, model, inputs, threads):
        self.process = subprocess.Popen([program, "bench-driver"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in (f"model {model}", f"inputs {inputs}", f"threads {threads}"):
            self.process.stdin.write(line + "\n")
        self.load = int(self.ask("load", "loaded").split()[0])

    def ask(self, command, word):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        if not line.startswith(word + " "):
            raise SystemExit(f"{' '.join(self.process.args)}: '{command}' was answered with '{line}'")
        return line[len(word) + 1:]

    def run(self, runs):
        """The median of so many runs, in ns."""
        return statistics.median(int(ns) for ns in self.ask(f"run {runs}", "times").split(" wall")[0].split())

    def close(self):
        """Ends the process; its peak memory in KiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        self.process.stdin.close()
        self.process.wait()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def make_inputs(program, model, sizes, path):
    """Random inputs as a .safetensors file; whole numbers are 0 or 1, which is right for tokens and masks."""
    told = json.loads(subprocess.run([program, "inspect", str(model), "--json", "-"], check=True, capture_output=True,
                                     text=True).stdout)
    header, data, rng = {}, b"", random.Random(1)
    for each in told["inputs"]:
        if each["dtype"] not in ELEMENTS:
            raise SystemExit(f"{model}: input '{each['name']}' is {each['type']}, which is not supported here")
        name, code = ELEMENTS[each["dtype"]]
        shape = [d if isinstance(d, int) else sizes.get(d, 1 if d in ("batch", "N") else 128) for d in each["shape"]]
        made = array.array(code, (rng.random() if code in "fd" else rng.randint(0, 1) for _ in range(math.prod(shape))))
        header[each["name"]] = {"dtype": name, "shape": shape, "data_offsets": [len(data), len(data) + len(made.tobytes())]}
        data += made.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def measure(programs, case, runs, turns):
    """Ratios NEW / OLD of one round, by kind, and OLD's latency in ms."""
    drivers = {}
    for build, program in programs:
        drivers[build] = Driver(program, *case)
    for build in drivers:
        drivers[build].run(2)
    pairs = []
    for turn in range(turns):
        order = list(drivers) if turn % 2 == 0 else list(drivers)[::-1]
        taken = {build: drivers[build].run(runs) for build in order}
        pairs.append((taken["new"] / taken["old"], taken["old"] / 1e6))
    loads = drivers["new"].load / drivers["old"].load
    memory = {build: drivers[build].close() for build in drivers}
    return {"latency": statistics.median(p[0] for p in pairs), "load": loads, "memory": memory["new"] / memory["old"],
            "old_ms": statistics.median(p[1] for p in pairs)}


def saved(program, name, folder):
    """A file of the model: both builds read the same bytes."""
    if os.path.exists(name):
        return pathlib.Path(name).resolve()
    path = folder / f"{name}.onnx"
    subprocess.run([program, "zoo", "save", name, str(path)], check=True, stdout=subprocess.DEVNULL)
    return path


def shown(ratio):
    spread = "" if ratio["low"] is None else f" ({ratio['low']:.3f} … {ratio['high']:.3f})"
    return f"{ratio['value']:.3f}{spread}"


def show(rounds):
    print(f"{'model':<20} {'threads':>7}  {'old ms':>9}  NEW / OLD: {'latency':<23} {'load':<23} memory")
    for (model, threads), taken in rounds.items():
        texts = [f"{shown(interval([math.log(r[kind]) for r in taken])):<23}" for kind in KINDS]
        old_ms = statistics.median(r["old_ms"] for r in taken)
        print(f"{pathlib.Path(model).name:<20} {threads:>7}  {old_ms:>9.3f}             {' '.join(texts)}".rstrip())
    each = [[statistics.fmean(math.log(r[kind]) for r in numbered) for numbered in zip(*rounds.values())] for kind in KINDS]
    print(f"{'geometric mean':<20} {'':>7}  {'':>9}             " + " ".join(f"{shown(interval(e)):<23}" for e in each).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("-t", "--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("-s", "--size", action="append", default=[], metavar="DIM=N",
                        help="size of a symbolic dimension (batch=1, others 128)")
    parser.add_argument("--rounds", type=int, default=10, help="times each build is started anew (10)")
    parser.add_argument("--turns", type=int, default=8, help="turns in a round (8)")
    parser.add_argument("--duration", type=float, default=0.1, help="seconds of one turn, at least one run (0.1)")
    parser.add_argument("--json", help="save the ratios of all rounds to this file")
    given = parser.parse_args()
    programs = [("old", os.path.abspath(given.old)), ("new", os.path.abspath(given.new))]
    sizes = {name: int(number) for name, _, number in (each.partition("=") for each in given.size)}
    rounds = {(model, int(t)): [] for model in given.models for t in given.threads.split(",")}
    with tempfile.TemporaryDirectory() as name:
        folder, runs = pathlib.Path(name), {}
        files = {model: saved(programs[1][1], model, folder) for model in given.models}
        inputs = {model: make_inputs(programs[1][1], files[model], sizes, folder / f"{i}.safetensors")
                  for i, model in enumerate(given.models)}
        for number in range(given.rounds):
            for model, threads in rounds:
                case = (files[model], inputs[model], threads)
                if number == 0:
                    first = measure(programs, case, 1, 3)
                    runs[model, threads] = max(1, int(given.duration * 1000 / first["old_ms"]))
                rounds[model, threads].append(measure(programs[::-1] if number % 2 else programs, case,
                                                      runs[model, threads], given.turns))
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    show(rounds)
    if given.json:
        rows = [{"model": model, "threads": threads, "rounds": taken} for (model, threads), taken in rounds.items()]
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
