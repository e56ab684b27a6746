#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many architectures with random weights in sonde, ONNX Runtime and OpenVINO, in f32: where sonde is behind, and which
operators are why.

    script/bench sweep --list                  the models
    script/bench sweep                         exports all of them, hours, and measures them, about twenty minutes
    script/bench sweep --part 1/4 -t 2         a quarter of them on two threads
    script/bench sweep --only 'swin*,gpt2*' --again --page build/sweep.md

Needs the packages of bench/sweep/requirements.txt (SONDE_BENCH_PYTHON names the interpreter). A model that was measured
with the same file, build and runtimes is not measured again, so a sweep that was stopped goes on where it was. Run it on
a quiet machine."""

import argparse
import datetime
import fnmatch
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "sweep")]

import catalogue  # noqa: E402
import losers  # noqa: E402
import models as bench  # noqa: E402
import page  # noqa: E402
import rows  # noqa: E402
import steps  # noqa: E402


def chosen(given):
    """The cases that the options leave."""
    cases = catalogue.cases()
    if given.only:
        patterns = given.only.split(",")
        cases = [c for c in cases if any(fnmatch.fnmatch(c.name, pattern) for pattern in patterns)]
        if not cases:
            raise ValueError(f"--only {given.only}: no model has such a name; --list prints them")
    return rows.part(cases, given.part) if given.part else cases


def measured(given, case, folder, row):
    """Fills the row of one model."""
    row["agreement"] = steps.agreement(given.sonde, given.python, folder, given.threads, 600)
    if given.check:
        return
    row |= rows.summary(steps.measure(given, folder))
    if row["ratio"] is None:
        raise steps.Failed("; ".join(f"{name}: {why}" for name, why in row["left_out"].items()) or "no ratio")
    if rows.loses(row):
        try:
            trace, peer = steps.profiles(given, folder, row["better"])
            row["losers"] = losers.report(losers.own_steps(trace), peer["steps"], peer["producers"])
        except (steps.Failed, ValueError) as failure:
            row["losers"] = {"message": str(failure)}


def told(row):
    """The progress line of one model."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['message']}"
    agreement = row.get("agreement") or {}
    error = agreement.get("message") or (f"error {agreement['error']:.0e}" if agreement else "")
    if not row.get("ratio"):
        return error or "exported"
    return (f"{page.number(row['ms']['sonde'])} ms, {bench.with_interval(row['ratio'])} of {page.short(row['better'])}, "
            f"{error}")


def one(given, case, key, row):
    """Exports, checks and measures one model; what goes wrong becomes its status."""
    stage = "export failed"
    try:
        folder = steps.export(case, key, given)
        stage = "failed"
        if not given.export_only:
            measured(given, case, folder, row)
    except steps.Failed as failure:
        row["status"], row["message"] = stage, str(failure)


def sweep(given):
    versions = steps.versions(given.python)
    if missing := [name for name in steps.PACKAGES if name not in versions]:
        sys.exit(f"{given.python} has no {', '.join(missing)}: pip install -r bench/sweep/requirements.txt")
    build = rows.build_of(given.sonde)
    cases, failed, known = chosen(given), 0, 0
    for k, case in enumerate(cases):
        export_key = case.key({name: versions[name] for name in steps.EXPORTING})
        key = rows.key_of(export_key, build, versions, given.threads)
        keeps = not given.export_only and not given.check
        if keeps and not given.again and rows.known(rows.read(given.json), case.name, given.threads, key):
            known += 1
            continue
        row = {"model": case.name, "family": case.family, "source": case.source, "exporter": case.exporter,
               "threads": given.threads, "key": key, "build": build, "versions": versions, "status": "ok",
               "message": None, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
        one(given, case, export_key, row)
        failed += row["status"] != "ok"
        print(f"[{k + 1}/{len(cases)}] {case.name} ({case.exporter}): {told(row)}", file=sys.stderr, flush=True)
        if keeps:
            rows.put(given.json, row)
    if known:
        print(f"{known} of {len(cases)} models were known", file=sys.stderr)
    return failed


def main():
    parser = argparse.ArgumentParser(prog="script/bench sweep", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="GLOB,GLOB", help="models whose names match one of the patterns")
    parser.add_argument("--part", metavar="K/N", help="the K-th of N parts")
    parser.add_argument("-t", "--threads", type=int, default=1, help="threads of every runtime (1)")
    parser.add_argument("--rounds", type=int, default=2, help="times each runtime is started anew (2)")
    parser.add_argument("--turns", type=int, default=20, help="turns of the runtimes in a round, all of them alive (20)")
    parser.add_argument("--seconds", type=float, default=0.8, help="seconds for each model and runtime (0.8)")
    parser.add_argument("--again", action="store_true", help="measure also what is known, export again what failed")
    parser.add_argument("--list", action="store_true", help="print the models and end")
    parser.add_argument("--export-only", action="store_true", help="export, measure nothing")
    parser.add_argument("--check", action="store_true",
                        help="export and compare outputs with ONNX Runtime, measure nothing")
    parser.add_argument("--page-only", action="store_true", help="write the page from the results there are")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE", help="write a page in Markdown")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build" / "sweep.json",
                        help="results, a row after each model (build/sweep.json)")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build" / "sweep", metavar="DIR",
                        help="where exported models are kept (build/sweep)")
    parser.add_argument("--export-seconds", type=int, default=300,
                        help="seconds of the processor that one export may take (300)")
    parser.add_argument("--export-memory", type=int, default=12, help="GiB that one export may use (12)")
    parser.add_argument("--python", default=os.environ.get("SONDE_BENCH_PYTHON") or sys.executable,
                        help="interpreter that has torch and the runtimes (SONDE_BENCH_PYTHON, this one)")
    parser.add_argument("--sonde", default=ROOT / "build" / "release" / "sonde", type=pathlib.Path, help="the program")
    given = parser.parse_args()
    try:
        if given.list:
            for case in chosen(given):
                print(f"{case.name:28} {case.exporter:7} {case.family:30} {case.source}")
            return 0
        failed = 0 if given.page_only else sweep(given)
        if given.page:
            given.page.write_text(page.write(rows.read(given.json)))
    except (ValueError, OSError) as error:
        sys.exit(f"script/bench sweep: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
