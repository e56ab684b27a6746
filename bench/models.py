#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models against every installed runtime, in one table: how long sonde takes as a share of the better of ONNX
Runtime and OpenVINO in fp32, with its 95 % interval, for each model and number of threads.

    script/bench models                         the seven models; about twenty minutes
    script/bench models --quick                 few runs, to see where things stand
    script/bench models resnet50 my.onnx -t 1   built-in models and files by name

Each model goes through `sonde bench`, which saves it to a temporary file; there runtimes take turns in rounds, pinned
to the same cores. A ratio is that of a turn's medians; what is shown is the median over the turns of a round and the
geometric mean over the rounds. Run it on a quiet machine."""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ("regnet_x_400mf", "mobilenet_v2", "resnet50", "bert_mini", "bert_base", "vit_b_16", "regnet_y_16gf")
RIVALS = ("onnxruntime", "openvino:precision=f32")  # the ratio is to the better of these
PEERS = (*RIVALS, "torch", "rten")


def student(freedom):
    """The 97.5th percentile of Student's distribution: a table, then Abramowitz and Stegun 26.7.5."""
    few = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
    if freedom <= len(few):
        return few[freedom - 1]
    z = 1.959964
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))


def turn_medians(result, kind="latency"):
    """The median of each turn, by round and turn. Results without turns have one a round."""
    series, turns = result["samples"][kind], {}
    for value, *when in zip(series["values"], series["rounds"], series.get("turns") or [0] * len(series["rounds"])):
        turns.setdefault(tuple(when), []).append(value)
    return {when: statistics.median(values) for when, values in turns.items()}


def interval(logs):
    """Geometric mean and 95 % interval from logarithms, and the standard error of their mean."""
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return {"value": math.exp(mean), "low": None, "high": None, "error": None}
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    half = student(len(logs) - 1) * error
    return {"value": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half), "error": error}


def ratio(own, other, kinds=("latency",)):
    """How long `own` takes as a share of `other`: turn by turn, the median of a round's turns, and the geometric mean
    of the rounds with its interval. None where they share no turn."""
    def total(result):
        parts = [turn_medians(result, kind) for kind in kinds]
        return {when: sum(part[when] for part in parts) for when in parts[0] if all(when in part for part in parts)}
    a, b, rounds = total(own), total(other), {}
    for when in sorted(a):
        if when in b and a[when] > 0 and b[when] > 0:
            rounds.setdefault(when[0], []).append(math.log(a[when] / b[when]))
    if not rounds:
        return None
    found, turns = interval([statistics.median(logs) for logs in rounds.values()]), sum(rounds.values(), [])
    if len(rounds) < 3 and len(turns) >= 6:  # as `sonde bench`: the interval of the turns' median
        middle = statistics.median(turns)
        deviation = 1.4826 * statistics.median(abs(x - middle) for x in turns)
        found["error"] = math.sqrt(math.pi / 2) * deviation / math.sqrt(len(turns))
        half = student(len(turns) - 1) * found["error"]
        found |= {"low": found["value"] * math.exp(-half), "high": found["value"] * math.exp(half)}
    return found


def better(ratios):
    """The faster of the rivals, in the turns they share with sonde, and sonde's ratio to it."""
    known = {name: r for name, r in ratios.items() if r}
    name = max(known, key=lambda k: known[k]["value"], default=None)
    return name, known.get(name)


def combined(ratios):
    """The geometric mean of several ratios; their errors are independent."""
    logs = [math.log(r["value"]) for r in ratios]
    mean = statistics.fmean(logs)
    if any(r["error"] is None for r in ratios):
        return {"value": math.exp(mean), "low": None, "high": None}
    half = 1.96 * math.sqrt(sum(r["error"] ** 2 for r in ratios)) / len(ratios)
    return {"value": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half)}


def measure(given, name, folder):
    """The results of `sonde bench` on one model."""
    model = name if name.endswith(".onnx") or name.startswith("zoo:") else f"zoo:{name}"
    out = pathlib.Path(folder) / "results.json"
    often = ["-n", "12", "--rounds", "3"] if given.quick else ["--duration", given.duration, "--rounds", given.rounds,
                                                               "--turns", given.turns]
    command = [given.sonde, "bench", model, "--threads", given.threads, "--against", f"sonde,{given.against}",
               "--timeout", "300", "--json", out, "-q", *often]
    command += ["--min-runs", "3" if given.quick else "10"] if given.program else ["--no-program"]
    command += ["--python", given.python] if given.python else []
    done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"sonde bench ended with {done.returncode}: {done.stderr.strip()}")
    results = json.loads(out.read_text())
    return results.get("results", [results])


def summary(name, threads, rows):
    """What the table says of one model on so many threads."""
    good = {r["runtime"]["name"]: r for r in rows if r["status"] == "ok" and r["latency_ms"]}
    line = {"model": name, "threads": threads, "ms": {k: r["latency_ms"]["p50"] for k, r in good.items()},
            "differ": [k for k, r in good.items() if r["outputs"] == "differs"], "better": None, "ratio": None,
            "first_result": None, "load_ms": {k: (r["load_ms"] or 0) + (r["first_ms"] or 0) for k, r in good.items()},
            "peak_mb": {k: round((r["program_peak_rss_bytes"] or r["peak_rss_bytes"] or 0) / 1e6, 1)
                        for k, r in good.items()},
            "program_ms": {k: r["program_ms"]["mean"] for k, r in good.items() if r["program_ms"]},
            "left_out": {r["runtime"]["name"]: r["message"] for r in rows if r["status"] != "ok"}}
    rivals = [k for k in RIVALS if k in good]
    if "sonde" in good and rivals:
        line["better"], line["ratio"] = better({k: ratio(good["sonde"], good[k]) for k in rivals})
        if "onnxruntime" in good:
            line["first_result"] = ratio(good["sonde"], good["onnxruntime"], ("load", "first"))
    return line


def short(runtime):
    return runtime.split(":")[0]


def with_interval(r):
    if r is None:
        return ""
    return f"{r['value']:.3f}" + (f" ({r['low']:.3f}…{r['high']:.3f})" if r["low"] is not None else "")


def table(title, heads, rows):
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    print(f"\n{title}\n")
    for row in [heads, *rows]:
        cells = [str(cell).ljust(w) if i == 0 else str(cell).rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def geometric_means(lines):
    """By number of threads."""
    means = {}
    for threads in dict.fromkeys(x["threads"] for x in lines):
        known = [x["ratio"] for x in lines if x["threads"] == threads and x["ratio"]]
        if known:
            means[threads] = {**combined(known), "models": len(known)}
    return means


def report(lines):
    runtimes = list(dict.fromkeys(k for line in lines for k in line["ms"]))
    heads = ["model", "threads", *map(short, runtimes), "of the better", "(95 %)"]
    table("Inference, medians in ms; sonde as a share of the better of ONNX Runtime and OpenVINO f32", heads,
          [[x["model"], x["threads"], *(f"{x['ms'][k]:.2f}" if k in x["ms"] else "" for k in runtimes),
            short(x["better"] or ""), with_interval(x["ratio"]) + (" DIFFERS" if x["differ"] else "")] for x in lines])
    print()
    for threads, mean in geometric_means(lines).items():
        models, some = mean["models"], "s" * (threads > 1)
        print(f"geometric mean of {models} model{'s' * (models > 1)}, {threads} thread{some}: {with_interval(mean)}")
    table("From file to first result, ms; sonde as a share of ONNX Runtime", heads[:-2] + ["of onnxruntime (95 %)"],
          [[x["model"], x["threads"], *(f"{x['load_ms'][k]:.1f}" if k in x["load_ms"] else "" for k in runtimes),
            with_interval(x["first_result"])] for x in lines])
    table("Peak resident memory, MB" + (" (whole program)" if any(x["program_ms"] for x in lines) else ""), heads[:-2],
          [[x["model"], x["threads"], *(f"{x['peak_mb'][k]:.0f}" if k in x["peak_mb"] else "" for k in runtimes)]
           for x in lines])
    if any(x["program_ms"] for x in lines):
        table("Whole program, mean ms", heads[:-2],
              [[x["model"], x["threads"], *(f"{x['program_ms'][k]:.1f}" if k in x["program_ms"] else ""
                                            for k in runtimes)] for x in lines])
    for name, why in {k: why for x in lines for k, why in x["left_out"].items()}.items():
        print(f"\nleft out: {name}: {why}")


def main():
    parser = argparse.ArgumentParser(prog="script/bench models", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="built-in models or .onnx files")
    parser.add_argument("-t", "--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--quick", action="store_true", help="few runs: three rounds of four")
    parser.add_argument("--rounds", default="7", help="times each runtime is started anew (7)")
    parser.add_argument("--turns", default="10", help="turns of the runtimes in a round, all of them alive (10)")
    parser.add_argument("--duration", default="5", help="seconds for each model, runtime and number of threads (5)")
    parser.add_argument("--against", default=",".join(PEERS), help="runtimes (%(default)s)")
    parser.add_argument("--program", action="store_true", help="whole programs too, from process start to result")
    parser.add_argument("--python", help="interpreter that has the Python runtimes (SONDE_BENCH_PYTHON, python3)")
    parser.add_argument("--sonde", default=ROOT / "build" / "release" / "sonde", help="the program")
    parser.add_argument("--json", default=ROOT / "build" / "models.json", type=pathlib.Path,
                        help="all results, samples included (build/models.json)")
    given = parser.parse_args()
    results, lines = [], []
    for name in given.names or MODELS:
        with tempfile.TemporaryDirectory(prefix="sonde-models-") as folder:
            print(f"{name} …", file=sys.stderr, flush=True)
            rows = measure(given, name, folder)
        label = pathlib.Path(name.removeprefix("zoo:")).stem
        for threads in dict.fromkeys(r["threads"] for r in rows):
            lines.append(summary(label, threads, [r for r in rows if r["threads"] == threads]))
        results += [{**r, "model": label} for r in rows]
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"schema": "sonde.models/1", "lines": lines, "geometric_means": geometric_means(lines),
                                          "results": results}))
    report(lines)
    print(f"\nall results: {os.path.relpath(given.json)}")


if __name__ == "__main__":
    main()
