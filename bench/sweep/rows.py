# SPDX-License-Identifier: Apache-2.0
"""The results of the sweep: a file with one row for each model and number of threads, written after every model.

Several sweeps may write one file: each locks it, reads it, puts its row in and replaces it."""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib

import models as bench

SCHEMA = "sonde.sweep/1"
LOSING = 0.95  # models above this share of the better peer are explained


def read(path):
    """The rows of a results file; none where there is no file."""
    try:
        found = json.loads(pathlib.Path(path).read_text())
    except FileNotFoundError:
        return []
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ValueError(f"{path} is not a file of sweep results; choose another name")
    return found["rows"]


@contextlib.contextmanager
def locked(path):
    with open(f"{path}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def put(path, row):
    """Puts a row in the place of the one with the same model and number of threads, or at the end."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        rows = read(path)
        same = [k for k, old in enumerate(rows) if (old["model"], old["threads"]) == (row["model"], row["threads"])]
        if same:
            rows[same[0]] = row
        else:
            rows.append(row)
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps({"schema": SCHEMA, "rows": rows}, indent=1) + "\n")
        os.replace(fresh, path)


def build_of(program):
    """Names a build of sonde: a hash of the program and of the library beside it."""
    program, digest = pathlib.Path(program), hashlib.sha256()
    for file in (program, *sorted(program.resolve().parent.glob("libsonde.so.*"))[:1]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def key_of(export_key, build, versions, threads):
    """Changes when a row must be measured again: another model, build, peer or number of threads."""
    peers = {name: versions.get(name) for name in ("onnxruntime", "openvino")}
    return hashlib.sha256(repr((export_key, build, sorted(peers.items()), threads)).encode()).hexdigest()[:16]


def known(rows, model, threads, key):
    """Whether the model was measured with this key already, or failed with it."""
    return any((r["model"], r["threads"], r["key"]) == (model, threads, key) for r in rows)


def summary(results):
    """What a row says of the results of `sonde bench`: medians, and ratios of turns with intervals over the rounds."""
    good = {r["runtime"]["name"]: r for r in results if r["status"] == "ok" and r["latency_ms"]}
    rivals = [name for name in bench.RIVALS if name in good]
    line = {"ms": {name: r["latency_ms"]["p50"] for name, r in good.items()},
            "first_ms": {name: (r["load_ms"] or 0) + (r["first_ms"] or 0) for name, r in good.items()},
            "peak_mb": {name: round((r["peak_rss_bytes"] or 0) / 1e6, 1) for name, r in good.items()},
            "differ": [name for name, r in good.items() if r["outputs"] == "differs"],
            "left_out": {r["runtime"]["name"]: r["message"] for r in results if r["status"] != "ok"},
            "machine": results[0].get("machine") if results else None, "better": None, "ratio": None, "ratios": {}}
    if "sonde" in good and rivals:
        line["ratios"] = {name: bench.ratio(good["sonde"], good[name]) for name in rivals}
        line["better"], line["ratio"] = bench.better(line["ratios"])
    return line


def loses(row):
    return bool(row.get("ratio")) and row["ratio"]["value"] > LOSING


def part(items, text):
    """Every N-th item from the K-th on, for "K/N": parts have models of every family."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"--part {text}: a part is K/N, such as 1/4, where K is 1 to N")
    number, count = int(number), int(count)
    return items[number - 1::count]
