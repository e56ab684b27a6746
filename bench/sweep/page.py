# SPDX-License-Identifier: Apache-2.0
"""The page of the sweep, in Markdown, from the rows of the results file."""

import math
import statistics

import models as bench
from rows import LOSING, loses

AGREES = 1e-3  # a larger difference, as a share of the largest value, is listed as a disagreement
SHORT = {"onnxruntime": "ONNX Runtime", "openvino:precision=f32": "OpenVINO"}


def short(runtime):
    return SHORT.get(runtime, runtime)


def number(value, digits=3):
    """A figure with so many digits, without an exponent; nothing for None."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if abs(value) < 0.001:
        return "<0.001"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows])


def count(n, thing):
    return f"{n} {thing}{'' if n == 1 else 's'}"


def means(rows):
    """Geometric means of the ratio to the better peer and to each of them."""
    found = {}
    for name in ("better", *bench.RIVALS):
        ratios = [r["ratio"] if name == "better" else r["ratios"].get(name) for r in rows]
        ratios = [ratio for ratio in ratios if ratio]
        if ratios:
            found[name] = {**bench.combined(ratios), "models": len(ratios)}
    return found


def verdict(rows):
    """The first paragraph: how many models, the means, how many are behind, how closely they agree."""
    good = [r for r in rows if r.get("ratio")]
    if not good:
        return "No model was measured."
    mean, values = means(good), [r["ratio"]["value"] for r in good]
    text = [f"{count(len(good), 'model')}. sonde takes {bench.with_interval(mean['better'])} of the time of the better of "
            "ONNX Runtime and OpenVINO in f32 (geometric mean)."]
    text += [f"Of {short(name)} it takes {mean[name]['value']:.3f}." for name in bench.RIVALS if name in mean]
    behind, far = sum(v > 1 for v in values), sum(v > 1.1 for v in values)
    text.append(f"{count(len(good) - behind, 'model')} ahead, {behind} behind, {far} of them by more than 10 %.")
    errors = [r["agreement"]["error"] for r in rows if r.get("agreement") and r["agreement"]["error"] is not None]
    if errors:
        text.append(f"The outputs of {count(sum(e <= AGREES for e in errors), 'model')} agree with ONNX Runtime's; the "
                    f"median error is {statistics.median(errors):.1e}, the largest {max(errors):.1e} of the output's "
                    "largest value.")
    return " ".join(text)


def families(rows):
    lines = []
    for family in dict.fromkeys(r["family"] for r in rows):
        good = [r for r in rows if r["family"] == family and r.get("ratio")]
        if good:
            values = [r["ratio"]["value"] for r in good]
            lines.append([family, len(good), f"{means(good)['better']['value']:.3f}", f"{min(values):.2f}",
                          f"{max(values):.2f}"])
    return table(["family", "models", "of the better", "least", "most"], lines)


def all_models(rows):
    """Every measured model, the worst first."""
    def error(r):
        found = r.get("agreement") or {}
        return f"{found['error']:.0e}" if found.get("error") is not None else found.get("message") or ""
    good = sorted((r for r in rows if r.get("ratio")), key=lambda r: -r["ratio"]["value"])
    return table(["model", "exporter", "sonde ms", *map(short, bench.RIVALS), "of the better (95 %)", "error"],
                 [[r["model"], r["exporter"], number(r["ms"]["sonde"]), *(number(r["ms"].get(n)) for n in bench.RIVALS),
                   bench.with_interval(r["ratio"]), error(r)] for r in good])


def explained(row):
    """What loses in one model."""
    title = f"### {row['model']}: {bench.with_interval(row['ratio'])} of {short(row['better'])}"
    lost = row.get("losers")
    if not lost:
        return f"{title}\n\nNot profiled."
    if lost.get("message"):
        return f"{title}\n\nNot profiled: {lost['message']}"
    peer = short(row["better"])
    steps = table(["operator", "input shapes", "steps", "sonde ms", f"{peer} ms", "GFLOP/s", "kernel"],
                  [[g["op"], " ".join(filter(None, [g["shapes"], g["what"] and f"({g['what']})"])), g["steps"],
                    number(g["ms"]), number(g["peer_ms"]), number(g["gflops"]), f"`{g['kernel']}`" if g["kernel"] else ""]
                   for g in lost["steps"]])
    classes = table(["class", "sonde ms", f"{peer} ms"], [[name, number(a), number(b)] for name, a, b in lost["classes"]])
    return f"{title}\n\n{steps}\n\n{classes}"


def troubles(rows):
    """Models that failed, runtimes that left one out, outputs that differ."""
    lines = [f"- {r['model']} ({r['exporter']}), {r['status']}: {r['message']}" for r in rows if r["status"] != "ok"]
    for r in rows:
        found = r.get("agreement") or {}
        if found.get("message") or (found.get("error") or 0) > AGREES:
            lines.append(f"- {r['model']} ({r['exporter']}): output {found['output']} differs from ONNX Runtime's: "
                         f"{found.get('message') or format(found['error'], '.1e')}")
        lines += [f"- {r['model']} ({r['exporter']}): {name} left it out: {why}"
                  for name, why in (r.get("left_out") or {}).items()]
    return "\n".join(lines)


def section(rows, threads):
    parts = [f"## {count(threads, 'thread')}", verdict(rows), families(rows), all_models(rows)]
    behind = sorted((r for r in rows if loses(r)), key=lambda r: -r["ratio"]["value"])
    if behind:
        parts.append(f"## What loses, {count(threads, 'thread')}\n\nEvery model above {LOSING} of the better peer, the "
                     "steps with the largest loss first. A step of the peer stands beside the step of sonde that computes "
                     "the same node; where none has that name the cell is empty, and only the sums by class compare.")
        parts += map(explained, behind)
    if found := troubles(rows):
        parts.append(f"## Failures and differences, {count(threads, 'thread')}\n\n{found}")
    return "\n\n".join(parts)


def write(rows):
    """The page as text."""
    first = next((r for r in rows if r.get("machine")), None)
    machine = first["machine"] if first else {}
    versions = first["versions"] if first else {}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    dates = sorted({r["date"][:10] for r in rows})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
    about = (f"Measured {when} on {machine.get('cores')} cores of {machine.get('cpu')}, with {listed}." if first else
             f"{count(len(rows), 'row')}, nothing measured.")
    head = ("# Sweep over architectures\n\n<!-- Written by bench/sweep.py: change that, not this page. -->\n\n"
            "Networks of torchvision, timm, transformers and of this project, with random weights, exported by both "
            "exporters of torch. Every runtime computes in f32, batch size as exported, in its own process, in rounds; "
            "[benchmarking.md](benchmarking.md) describes the method.\n\n" + about)
    numbers = sorted({r["threads"] for r in rows})
    return "\n\n".join([head, *(section([r for r in rows if r["threads"] == n], n) for n in numbers)]) + "\n"
