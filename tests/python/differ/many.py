# SPDX-License-Identifier: Apache-2.0
"""Many models in child processes, in chunks. A log has one line for each chunk that is done, so that a call that is
repeated goes on where the last one ended, and parts of the work add up."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import select
import subprocess
import sys

from .runs import Outcome

SECONDS_OF_SILENCE = 300  # a child says what it begins, a few times for each model
CHUNK = 100
PROGRAM = pathlib.Path(__file__).parents[1] / "differential.py"


def lines_of(process):
    """The child's lines; None when it is silent for too long."""
    rest = b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], SECONDS_OF_SILENCE)
        if not ready:
            yield None
            return
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode() for line in lines)


def run_child(options, first, count, report):
    """Runs models from `first`; gives the seed to go on with."""
    command = [sys.executable, str(PROGRAM), "--worker", str(first), str(count), "--family", options.family]
    process = subprocess.Popen(command + ["--everywhere"] * options.everywhere, stdout=subprocess.PIPE)
    current, done, who, line = None, first, "others", ""
    for line in lines_of(process):
        if line is None:
            process.kill()
            break
        word, _, rest = line.partition(" ")
        if word == "begin":
            current, who = int(rest), "others"
        elif word == "in":
            who = rest
        elif word == "end":
            report(current, Outcome(**json.loads(rest.partition(" ")[2])))
            current, done = None, current + 1
    status = process.wait()
    process.stdout.close()
    if done == first + count and status == 0:
        return done
    if current is None:
        raise SystemExit(f"the child ended with {status} before a model began")
    how = "hangs" if line is None else f"ended the process with {status}"
    # Another engine's crash says nothing about ours.
    report(current, Outcome("failed" if who == "sonde" else "skipped", f"{who}: {how}"))
    return current + 1


def run_chunk(options, first, count):
    """{seed: outcome} of the models from `first`."""
    found, at = {}, first
    while at < first + count:
        at = run_child(options, at, first + count - at, found.__setitem__)
    return found


def chunks(seeds, count, part, parts):
    """(first, count) of those that belong to part 1 … parts."""
    every = [(seed * 1_000_000 + at, min(CHUNK, count - at)) for seed in seeds for at in range(0, count, CHUNK)]
    return every[(part - 1) * len(every) // parts:part * len(every) // parts]


class Log:
    """Chunks that are done: JSON, a line each. A result is that of one library, in one set of ways."""

    def __init__(self, path, options):
        self.path, self.done = path, {}
        library = hashlib.sha256(pathlib.Path(os.environ["SONDE_LIBRARY"]).read_bytes()).hexdigest()
        self.key = {"library": library, "family": options.family, "everywhere": options.everywhere}
        if path is None or not path.exists():
            return
        for line in path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the last line of a call that was ended
            if all(entry.get(k) == v for k, v in self.key.items()):
                self.done[entry["first"], entry["count"]] = {
                    int(seed): Outcome(*o) for seed, o in entry["outcomes"].items()}

    def add(self, first, count, outcomes):
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {**self.key, "first": first, "count": count,
                 "outcomes": {seed: [o.kind, o.text, o.op] for seed, o in outcomes.items()}}
        with open(self.path, "a") as f:
            f.write(json.dumps(entry) + "\n")


def run_all(options, report):
    """Calls report(seed, outcome) for all models of options.seed, options.count and options.part."""
    log = Log(options.log, options)
    wanted = chunks(options.seed, options.count, *options.part)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {}
        for first, count in wanted:
            if (first, count) in log.done:
                for seed, outcome in log.done[first, count].items():
                    report(seed, outcome)
            else:
                running[pool.submit(run_chunk, options, first, count)] = first, count
        try:
            for future in concurrent.futures.as_completed(running):
                outcomes = future.result()
                log.add(*running[future], outcomes)
                for seed, outcome in outcomes.items():
                    report(seed, outcome)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sum(count for _, count in wanted)
