# SPDX-License-Identifier: Apache-2.0
"""Random small models, run by sonde and by ONNX Runtime; the onnx reference evaluator stands in where
ONNX Runtime refuses a model and decides where the two disagree.

    differential.py --seed 1 --count 1000        model i of seed 1 has the seed 1000000 + i
    differential.py --family integers            integers and quantised numbers: the bounds of each element,
                                                 which tests/python/bounds computes, decide
    differential.py --only 1000042 --minimize    one model again, made as small as it still fails
    differential.py --seed 1 2 3 --count 10000 --everywhere --part 2/6 --log done.jsonl
                                                 a sixth of 30,000; repeated, it goes on where it ended

A child process runs the models, so that one that crashes or hangs is named and counted like any other.
SONDE_LIBRARY names the library. The exit status is 1 when anything failed."""

import argparse
import collections
import json
import os
import pathlib
import sys
import traceback

import numpy as np
import onnx

import libsonde
from differ.judging import AgainstBounds, AgainstEngines
from differ.many import run_all
from differ.minimize import minimize
from differ.runs import Outcome, concrete, context, refuses, run_cut, run_sonde, tell, ways
from random_models import FAMILIES


def check(model, everywhere=False):
    judge = AgainstBounds(model) if model.bounded else AgainstEngines(model)
    if not judge.runs:
        return Outcome("skipped")
    data = model.proto.SerializeToString()
    worst = Outcome("agree")
    for way in ways(model.seed, model.bounded, everywhere):
        tell("sonde")
        where = f" [{', '.join(f'{k}={v}' for k, v in way.items())}"
        way = dict(way)
        machine = context(way.pop("threads"), way.pop("cpu"))
        buffered, cut = way.pop("buffers", False), way.pop("cut", None)
        session = None
        try:
            session = libsonde.Session(machine, data, **way)
            for i, (feeds, expected) in enumerate(judge.runs):
                try:
                    ours = run_sonde(session, feeds, buffered)
                    if cut is not None:
                        ours = run_cut(session, model, feeds, ours, cut, judge.same)
                except libsonde.Failure:
                    if i and refuses(machine, concrete(model.proto, feeds), feeds):
                        continue  # not for being symbolic: these sizes do not fit, and others do not mind
                    raise
                outcome = judge.judge(feeds, expected, ours)
                if outcome is not None:
                    outcome.text += f"{where}{', other sizes' if i else ''}]"
                    if outcome.kind == "failed":
                        return outcome
                    worst = outcome
        except libsonde.Failure as e:
            if judge.who is None:
                return Outcome("skipped", f"nobody runs it: {e}")
            return Outcome("failed", f"refused, {judge.who} runs it: {e}{where}]")
        finally:
            if session is not None:
                session.close()
    return worst


def worker(options, first, count):
    """Writes 'begin SEED', 'in ENGINE' and 'end SEED {…}' per model, while somebody is there who reads it."""
    parent = os.getppid()
    for seed in range(first, first + count):
        if os.getppid() != parent:
            return
        print("begin", seed, flush=True)
        try:
            outcome = check(FAMILIES[options.family](seed), options.everywhere)
        except Exception:  # noqa: BLE001  (a mistake of the tester is one failure, not the end)
            outcome = Outcome("failed", traceback.format_exc())
        print("end", seed, json.dumps(outcome.__dict__), flush=True)


def save(folder, model):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{model.seed}.onnx").write_bytes(model.proto.SerializeToString())
    np.savez(folder / f"{model.seed}.npz", **{k: v for k, v in model.feeds.items() if v.dtype.kind not in "OV"})


def replay(options):
    """One model in this process, with everything there is to know about it."""
    model = FAMILIES[options.family](options.only)
    print(onnx.printer.to_text(model.proto))
    outcome = check(model, options.everywhere)
    if outcome.kind == "failed" and options.minimize:
        if "other sizes" in outcome.text:
            model.feeds, model.again = model.again, None
        model = minimize(model, lambda m: check(m, options.everywhere).kind == "failed")
        outcome = check(model, options.everywhere)
        print("made small:")
        print(onnx.printer.to_text(model.proto))
    if options.keep:
        save(options.keep, model)
    print(f"{outcome.kind} {outcome.text}")
    return outcome.kind


def part_of(text):
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError
    return part, parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, default="mixed")
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--count", type=int, default=300, help="models of each seed")
    parser.add_argument("--everywhere", action="store_true",
                        help="every model at each instruction level of this machine, with 1 and 2 threads")
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="K/N", help="an Nth of the models")
    parser.add_argument("--jobs", type=int, default=1, help="child processes at a time")
    parser.add_argument("--log", type=pathlib.Path, metavar="FILE", help="what is done, not to be repeated")
    parser.add_argument("--only", type=int, metavar="SEED", help="one model, by its own seed")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="save the models that fail")
    parser.add_argument("--minimize", action="store_true", help="make a failing model small (with --only)")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options, *options.worker)
        return 0
    if options.only is not None:
        return int(replay(options) == "failed")
    counts, differ = collections.Counter(), collections.defaultdict(list)
    again = f"{sys.argv[0]} --family {options.family}{' --everywhere' if options.everywhere else ''}"

    def report(seed, outcome):
        counts[outcome.kind] += 1
        if outcome.kind == "failed":
            print(f"seed {seed}: {outcome.text}\n    replay: {again} --only {seed} --minimize", flush=True)
            if options.keep:
                save(options.keep, FAMILIES[options.family](seed))
        elif outcome.kind == "skipped" and outcome.text:
            print(f"seed {seed}: {outcome.text}", flush=True)
        elif outcome.kind == "onnxruntime":
            differ[outcome.op].append(seed)

    models = run_all(options, report)
    for op, seeds in sorted(differ.items()):
        print(f"onnxruntime differs from sonde and the reference: {op} {len(seeds)}, e.g. seed {min(seeds)}")
    print(f"{models} models, {counts['skipped']} skipped, {counts['agree']} agree, "
          f"{counts['onnxruntime']} onnxruntime differs, {counts['failed']} failed")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
