#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `sonde diff` is wrong, on this machine as busy as it is.

    python3 bench/turns.py build/release                          200 pairs without a difference, 200 with one
    python3 bench/turns.py build/release --models tiny_bert --pairs 50 --keep pairs

Records pairs of profiles with sonde_bench_turns (bench/turns/main.c): the same model twice in one process, in turns.
Counts the pairs that `sonde diff --fail-above 5%` fails although they are the same, by operator type and by node
together, and then those whose operator, a tenth of the run or more, was made 15 % slower: the row must be named
'slower'. --apart compares OLD of one pair with NEW of the next instead, which were not recorded in turns."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

MODELS = ("tiny_resnet", "tiny_efficientnet", "tiny_mobilenet", "tiny_bert")
ROWS = ("op", "node")


def compare(program, old, new, by, limit):
    """What passed the limit, as the program says it, and the rows."""
    done = subprocess.run([program, "diff", old, new, "--by", by, "--fail-above", f"{limit}%", "--json", "-"],
                          capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    told = json.loads(done.stdout)
    return done.stderr.splitlines() if done.returncode == 3 else [], [told["total"], *told["rows"]]


def record(build, model, pairs, runs, folder, *slowdown):
    """Records pairs into the folder; type and node of the operators that were slowed down."""
    done = subprocess.run([build / "sonde_bench_turns", model, str(pairs), str(runs), folder, *slowdown], text=True,
                          stdout=subprocess.PIPE, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def files(folder, pair, pairs, apart):
    return folder / f"{pair}-old.pftrace", folder / f"{(pair + 1) % pairs if apart else pair}-new.pftrace"


def equal_pairs(given, model, pairs, folder):
    """Of so many pairs without a difference, those that failed; prints what failed them."""
    record(given.build, model, pairs, given.runs, folder)
    failed = set()
    for pair in range(pairs):
        for by in ROWS:
            over, _ = compare(given.build / "sonde", *files(folder, pair, pairs, given.apart), by, given.limit)
            failed |= {pair} if over else set()
            for line in over:
                print(f"  pair {pair} by {by}: {line}")
    return len(failed)


def slowed_pairs(given, model, pairs, by, folder):
    """Of so many pairs with a slower operator, those in which it was named."""
    slowed, found = record(given.build, model, pairs, given.runs, folder, str(given.slower), by), 0
    for pair, (op, node) in enumerate(slowed):
        _, rows = compare(given.build / "sonde", *files(folder, pair, pairs, given.apart), by, given.limit)
        mine = [r for r in rows if r["op"] == op and (by == "op" or r["node"].split(", ")[0] == node)]
        verdicts = {r["verdict"] for r in mine}
        found += "slower" in verdicts
        if "slower" not in verdicts:
            print(f"  pair {pair}: {op} {node} is {', '.join(sorted(verdicts)) or 'missing'}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build folder with the programs sonde and sonde_bench_turns")
    parser.add_argument("--models", nargs="+", default=MODELS, help=f"built-in models ({' '.join(MODELS)})")
    parser.add_argument("--pairs", type=int, default=200, help="pairs over all models, of either kind (200)")
    parser.add_argument("--runs", type=int, default=200, help="runs of each profile (200)")
    parser.add_argument("--slower", type=float, default=15, help="percent that an operator is made slower by (15)")
    parser.add_argument("--limit", type=float, default=5, help="percent of --fail-above (5)")
    parser.add_argument("--apart", action="store_true", help="compare profiles that were not recorded in turns")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the profiles in this folder")
    given = parser.parse_args()
    share = max(1, given.pairs // len(given.models))
    equal = failed = slowed = found = 0
    for model in given.models:
        for by in (None, *ROWS):
            pairs = share if by is None else max(1, share // len(ROWS))
            with tempfile.TemporaryDirectory() as name:
                folder = given.keep / f"{model}-{by or 'equal'}" if given.keep else pathlib.Path(name) / "pairs"
                folder.mkdir(parents=True, exist_ok=True)
                if by is None:
                    count = equal_pairs(given, model, pairs, folder)
                    equal, failed = equal + pairs, failed + count
                    print(f"{model}: {count} of {pairs} equal pairs fail", flush=True)
                else:
                    count = slowed_pairs(given, model, pairs, by, folder)
                    slowed, found = slowed + pairs, found + count
                    print(f"{model}, by {by}: {count} of {pairs} slower operators found", flush=True)
    print(f"{failed} of {equal} equal pairs fail at {given.limit:g} %; {found} of {slowed} operators that are "
          f"{given.slower:g} % slower are named")
    return 0 if failed * 100 <= equal and found * 10 >= slowed * 9 else 1


if __name__ == "__main__":
    sys.exit(main())
