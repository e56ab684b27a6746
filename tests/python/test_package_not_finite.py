# SPDX-License-Identifier: Apache-2.0
"""Infinities and NaN: a number that is not finite reaches those results that an operator's formula makes of it, and no
others, whichever way sonde computes them. ONNX Runtime without its rewrites has the formulas."""
import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import sonde
from operator_families import all_families

import exact_onnxruntime

KINDS = {"NaN": np.nan, "infinity": np.inf}
MAXIMA = ("Max", "Min", "Arg", "TopK")  # of a NaN, which wins here: the engines differ
# Families that are not compared. ONNX Runtime lets a NaN disappear in functions of gates, and lets it into neighbours in
# running sums; bytes have no NaN; elsewhere results are a choice: an interpolation with a weight of zero, a key that is
# not read, the sine of nothing.
LEFT_OUT = ("RNN", "GRU", "LSTM", "LRN", "Quantize", "bytes", "Hardmax", "Unique", "Cast", "Inverse", "Resize linear",
            "Attention 3-D", "DFT", "STFT", "AffineGrid", "SoftmaxCrossEntropy")
COORDINATES = {"GridSample": "i1", "GridSample 3-D": "i1"}
WAYS = {"": {}, "without passes": {}, "bf16": {"sonde.precision": "bf16"}}


def session(model, way, threads):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = threads
    if way == "without passes":
        options.graph_optimization_level = sonde.GraphOptimizationLevel.ORT_DISABLE_ALL
    for key, entry in WAYS[way].items():
        options.add_session_config_entry(key, entry)
    return sonde.InferenceSession(model.SerializeToString(), options)


def spoiled(feeds, name, number, seed):
    """Feeds with one element of `name` in its place."""
    other = feeds[name].copy()
    other.ravel()[np.random.default_rng(seed).integers(other.size)] = number
    return {**feeds, name: other}


def difference(found, expected, coarse):
    for a, b in zip(found, expected):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.shape != b.shape:
            return f"shape {a.shape}, expected {b.shape}"
        fa, fb = np.isfinite(a), np.isfinite(b)
        if not np.array_equal(fa, fb):
            at = int(np.flatnonzero(fa.ravel() != fb.ravel())[0])
            return f"element {at} is {a.ravel()[at]}, expected {b.ravel()[at]}; {(~fa).sum()} are not finite, expected {(~fb).sum()}"
        if not np.allclose(a[fa], b[fa], atol=(0.05 if coarse else 1e-3) * max([1.0, *np.abs(b[fa])]), rtol=0):
            return "numbers that are finite differ"
        if not coarse and not np.array_equal(np.isnan(a), np.isnan(b)):
            return "a NaN in place of an infinity, or the other way round"
    return None


def check(family):
    model, inputs = family.model(family.sizes)
    arrays = family.arrays(family.sizes)
    feeds = {name: arrays[name] for name in inputs}
    wanted = [n for n in inputs if feeds[n].dtype.kind == "f" and feeds[n].size and n != COORDINATES.get(family.name)]
    try:
        other = exact_onnxruntime.plain_session(model.SerializeToString())
    except Exception:  # noqa: BLE001  (no kernel for it)
        return
    sessions = {way: session(model, way, 1 + (way == "")) for way in WAYS}
    for name in wanted:
        for kind, number in KINDS.items():
            if kind == "NaN" and any(m in node[0] for node in family.nodes for m in MAXIMA):
                continue
            for seed in range(2):
                odd = spoiled(feeds, name, number, seed)
                try:
                    expected = other.run(None, odd)
                except Exception:  # noqa: BLE001  (such numbers are refused)
                    continue
                for way, one in sessions.items():
                    wrong = difference(one.run(None, odd), expected, way == "bf16")
                    if wrong:
                        yield f"{family.name}, {kind} in {name}, {way}: {wrong}"


def main():
    onnxruntime.set_default_logger_severity(4)
    for family in all_families():
        for wrong in [] if any(word in family.name for word in LEFT_OUT) else check(family):
            print("WRONG", wrong, flush=True)
    print("done", flush=True)


@pytest.mark.parametrize("level", ["baseline", "avx2", "best"])
def test_what_is_not_finite_reaches_only_its_own_results(level):
    environment = {k: v for k, v in os.environ.items() if k != "SONDE_CPU"}
    if level != "best":
        environment["SONDE_CPU"] = level
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("WRONG")]
    assert done.returncode == 0 and lines[-1] == "done", done.stderr
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main()
