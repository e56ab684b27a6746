#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The RegNet study: PyTorch, ONNX Runtime from Python and without it, OpenVINO, RTen and sonde on the same two
classifiers, whole program and inference alone, time and memory. Installs the runtimes, measures, writes the page.

    bench/regnet/study.py                      from a checkout with a release build; half an hour, most of it measuring
    bench/regnet/study.py --quick --page x.md  few runs, to see that everything works
    bench/regnet/study.py --no-setup           installs and builds nothing: measures what is there

What is not there is named in the page; the rest is measured all the same. Run it on a quiet machine."""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = ROOT / "build" / "peers"
PYTHON = PEERS / "venv" / "bin" / "python"
NATIVE = PEERS / "native" / "release" / "regnet-native"
RTEN, ONNXRUNTIME_NODE = "0.27.0", "1.30.0"
MODELS = ("regnet_x_400mf", "regnet_y_16gf")
PANELS = ("latency", "violins", "program", "memory", "scaling")


def attempt(what, *command, **options):
    """Runs a step of the set-up; a step that fails is told and left out."""
    print(f"{what} …", flush=True)
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    except OSError as error:
        print(f"  left out: {error}")
        return False
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        print(f"  left out: {last}")
    return done.returncode == 0


def interpreter():
    """The Python that has the runtimes: the study's own, the one the bench would take, or this one."""
    return str(PYTHON) if PYTHON.exists() else os.environ.get("SONDE_BENCH_PYTHON") or sys.executable


def set_up():
    PEERS.mkdir(parents=True, exist_ok=True)
    if not PYTHON.exists():
        attempt("a Python environment", sys.executable, "-m", "venv", PEERS / "venv")
    attempt("PyTorch, ONNX Runtime, OpenVINO", PYTHON, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt")
    if not (PEERS / "rten" / "bin" / "rten").exists():
        attempt("RTen", "cargo", "install", "rten-cli", "--version", RTEN, "--root", PEERS / "rten")
    attempt("ONNX Runtime's library", "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix",
            PEERS / "node", f"onnxruntime-node@{ONNXRUNTIME_NODE}")
    attempt("the program that uses it", "cargo", "build", "--release", "--manifest-path",
            HERE / "native" / "Cargo.toml", env={**os.environ, "CARGO_TARGET_DIR": str(PEERS / "native")})


def make_images(folder):
    """Photographs nobody owns: soft colours with noise, in sizes cameras have."""
    code = ("import sys, numpy as np\nfrom PIL import Image\nr = np.random.default_rng(1)\n"
            "for k, (w, h) in enumerate([(640, 480), (480, 640), (800, 600), (500, 375)]):\n"
            "    base = Image.fromarray(r.integers(0, 255, (6, 8, 3), np.uint8)).resize((w, h), Image.BICUBIC)\n"
            "    noisy = np.clip(np.asarray(base, float) + r.normal(0, 6, (h, w, 3)), 0, 255).astype(np.uint8)\n"
            "    Image.fromarray(noisy).save(f'{sys.argv[1]}/image{k}.jpg', quality=90)\n")
    folder.mkdir(parents=True, exist_ok=True)
    return attempt("images", interpreter(), "-c", code, folder)


def environment():
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "x64")
    library = list(PEERS.glob(f"node/node_modules/onnxruntime-node/bin/*/linux/{machine}/libonnxruntime.so.1"))
    env = {**os.environ, "PATH": f"{PEERS / 'rten' / 'bin'}:{os.environ['PATH']}"}
    if library:
        env["ORT_DYLIB_PATH"], env["ORT_VERSION"] = str(library[0]), ONNXRUNTIME_NODE
    return env


def bench(sonde, folder, name, *arguments):
    """One run of sonde bench: its results, and its tables as Markdown."""
    command = [sonde, "bench", *arguments, "--against", "sonde,onnxruntime,openvino,torch,rten", "--python",
               interpreter(), "--timeout", "180", "--json", folder / f"{name}.json", "-o", folder / f"{name}.md"]
    for panel in PANELS:
        command += ["-o", folder / f"{name}.{panel}.svg"]
    own = pathlib.Path(sonde).resolve().parent / "sonde_bench_regnet"
    for peer, file in (("onnxruntime-native", NATIVE), ("sonde-c-api", own)):
        if file.exists():
            command += ["--peer", f"{peer}={file}"]
    done = subprocess.run(list(map(str, command)), env=environment(), check=False)
    if done.returncode:
        sys.exit(f"sonde bench ended with {done.returncode}")
    results = json.loads((folder / f"{name}.json").read_text())
    return results.get("results", [results]), (folder / f"{name}.md").read_text(), command


def unclear(ratio):
    """Whether the interval is so wide that its ends tell nothing; the rule of the bench's own tables."""
    return ratio["high"] is None or ratio["high"] > 10 * ratio["value"]


def ratio_text(ratio):
    ends = "unclear" if unclear(ratio) else f"{ratio['low']:.2f}…{ratio['high']:.2f}"
    return f"{ratio['value']:.2f} ({ends})"


def agreement(first, second):
    """Whether the ratios of two runs lie within one another's intervals."""
    rows = ["| threads | runtime | first run | second run | |", "| --- | --- | --- | --- | --- |"]
    for a, b in zip(first, second):
        one, two = a.get("ratio"), b.get("ratio")
        if not one or not two or one["low"] is None or two["low"] is None or one["low"] == one["high"]:
            continue
        if unclear(one) or unclear(two):
            verdict = "unclear"
        else:
            verdict = "agree" if one["low"] <= two["high"] and two["low"] <= one["high"] else "differ"
        rows.append(f"| {a['threads']} | {a['runtime']['name']} | {ratio_text(one)} | {ratio_text(two)} | {verdict} |")
    return "\n".join(rows)


def place(results, model):
    """Where every whole program stands, at the most threads."""
    most = max(r["threads"] for r in results)
    rows = [r for r in results if r["model"].endswith(model) and r["threads"] == most and r["program_ms"]]
    own = next((r["program_ms"]["mean"] for r in rows if r["runtime"]["name"] == "sonde"), None)
    lines = [f"| {model}, whole program | ms | MB | times sonde's |", "| --- | --- | --- | --- |"]
    for r in sorted(rows, key=lambda r: r["program_ms"]["mean"]):
        mean = r["program_ms"]["mean"]
        lines.append(f"| {r['runtime']['name']} {r['runtime']['version'] or ''} | {mean:.1f} | "
                     f"{r['program_peak_rss_bytes'] / 1e6:.0f} | {f'{mean / own:.2f}' if own else ''} |")
    return "\n".join(lines)


# How the page introduces a runtime, in this order.
RUNTIMES = {
    "torch": "PyTorch", "onnxruntime": "ONNX Runtime from Python",
    "onnxruntime-native": "ONNX Runtime's library without Python (a small Rust program, `onnxruntime-native`)",
    "openvino": "OpenVINO", "rten": "RTen", "sonde": "sonde",
    "sonde-c-api": "sonde's library without its program (`bench/regnet/c_api.c`, `sonde-c-api`)",
}
NAMES = {"regnet_x_400mf": "RegNet_x_400mf", "regnet_y_16gf": "RegNet_y_16gf"}


def listed(words):
    """a, b and c"""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def introduction(models, results):
    """Which models ran in which runtimes, and why others did not."""
    names = [model.removeprefix("zoo:") for model in models]
    ran = {r["runtime"]["name"] for r in results if r["status"] == "ok"}
    who = [text for name, text in RUNTIMES.items() if name in ran]
    who += sorted(f"`{name}`" for name in ran - RUNTIMES.keys())
    missing = {r["runtime"]["name"]: f"not installed: {r['message']}" if r["status"] == "missing" else
               r["message"] or r["status"] for r in results if r["runtime"]["name"] not in ran}
    several = len(names) > 1
    text = (f"{'Two image classifiers' if several else 'One image classifier'}, "
            f"{listed([NAMES.get(name, name) for name in names])}, in {listed(who)}. "
            f"{'The models are' if several else 'The model is'} {listed([f'`zoo:{name}`' for name in names])}: ")
    reasons = "; ".join(f"{name} ({why})" for name, why in missing.items())
    return text, f"Not measured here: {reasons}.\n\n" if missing else ""


def closing(results):
    """What the names in the tables stand for, of those that are there."""
    text = []
    if any(r.get("latency_full_ms") for r in results):
        text.append("`_full` is with decoding, resizing and normalising a JPEG image.")
    text.append("The whole program of sonde is `sonde run`.")
    return "In all tables: " + " ".join(text)


PAGE = """# Benchmarks

<!-- Written by bench/regnet/study.py: change that, not this page. -->

{introduction}torchvision's structure with random weights, so nothing is
downloaded. All runtimes use the same weights and inputs; the column *outputs* shows whether their outputs agree. Batch size 1, fp32. [benchmarking.md](benchmarking.md) describes the method, the statistics
and the protocol. To repeat this on another machine:

```sh
script/setup && cmake --preset release && cmake --build build/release
bench/regnet/study.py
```

{missing}Time from process start to result, {threads} threads:

{place}

{tables}

## Repeatability

Inference of regnet_x_400mf, measured again after the tables above: time relative to sonde, with 95 % intervals.

{agreement}

## Plots

{plots}

## The command

{command}

{closing}
"""


def write_page(page, work, models, results, again, tables, command):
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    plots = []
    for panel in PANELS:
        drawing = work / f"study.{panel}.svg"
        if drawing.exists():
            shutil.copyfile(drawing, folder / f"{panel}.svg")
            plots.append(f"![{panel}]({folder.name}/{panel}.svg)")
    shown = [pathlib.Path(str(word)).name if str(word).startswith("/") else
             "=".join(pathlib.Path(part).name for part in str(word).split("=")) if "=/" in str(word) else str(word)
             for word in command]
    introduced, missing = introduction(models, results)
    page.write_text(PAGE.format(
        introduction=introduced, missing=missing, closing=closing(results),
        threads=max(r["threads"] for r in results),
        place="\n\n".join(place(results, model.removeprefix("zoo:")) for model in models), tables=tables.strip(),
        agreement=agreement([r for r in results if r["model"] == models[0]], again), plots="\n\n".join(plots),
        command="`" + " ".join(shown) + "`"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sonde", default=ROOT / "build" / "release" / "sonde", help="the program")
    parser.add_argument("--page", default=ROOT / "docs" / "benchmarks.md", type=pathlib.Path, help="where it is written")
    parser.add_argument("--quick", action="store_true", help="few runs of the smaller model")
    parser.add_argument("--no-setup", action="store_true", help="install and build nothing: use what is there")
    given = parser.parse_args()
    if not given.no_setup:
        set_up()
    else:
        print(f"nothing is installed; Python runtimes are those of {interpreter()}", flush=True)
    work = PEERS / "study"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    images = ["-i", work / "images"] if make_images(work / "images") else []
    models = [f"zoo:{m}" for m in (MODELS[:1] if given.quick else MODELS)]
    often = ["-n", "20", "--rounds", "2", "--min-runs", "3"] if given.quick else ["--duration", "6", "--rounds", "6"]
    results, tables, command = bench(given.sonde, work, "study", *models, "--threads", "1,2", *often, *images)
    again = bench(given.sonde, work, "again", models[0], "--threads", "1,2", "--no-program", *often)[0]
    write_page(given.page, work, models, results, again, tables, command)
    print(f"written: {given.page}")


if __name__ == "__main__":
    main()
