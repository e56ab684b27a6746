# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: every operator, and operators that are fused, with each of their sizes 0, known when the model
is made or only when it runs. Shapes and values are those of ONNX Runtime or the onnx reference where they take the model,
and always the same in every way of running it.

Models run in a child process, so that one that crashes is named."""
import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import sonde
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operator_families import all_families

import every_way
import exact_onnxruntime

# Name of a way: (whether the size is known beforehand, entries of the session, whether passes run).
WAYS = {
    "as users run it": (True, {}, True),
    "without passes": (True, {}, False),
    "not packed": (True, {"session.disable_prepacking": "1"}, True),
    "bf16": (True, {"sonde.precision": "bf16"}, True),
    "f16": (True, {"sonde.precision": "f16"}, True),
    "at run time": (False, {}, True),
    "at run time, without passes": (False, {}, False),
    "at run time, bf16": (False, {"sonde.precision": "bf16"}, True),
}
REFUSED = "refused"


def answer(reference, model, feeds):
    """What another engine says, or None."""
    with np.errstate(all="ignore"):
        try:
            if reference == "onnxruntime":
                return exact_onnxruntime.plain_session(model.SerializeToString()).run(None, feeds)
            if reference == "onnx":
                return ReferenceEvaluator(model).run(None, feeds)
        except Exception:  # noqa: BLE001  (engines raise whatever they like)
            pass
    return None


def session(model, way):
    _, entries, passes = WAYS[way]
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1 + (way == "as users run it")
    if not passes:
        options.graph_optimization_level = sonde.GraphOptimizationLevel.ORT_DISABLE_ALL
    for key, entry in entries.items():
        options.add_session_config_entry(key, entry)
    return sonde.InferenceSession(model.SerializeToString(), options)


def run(family, letter, way):
    """Results, or REFUSED. At run time the usual size comes first and last, whose results must not change."""
    sizes = {**family.sizes, letter: 0}
    known = WAYS[way][0]
    model, inputs = family.model(sizes if known else family.sizes, "" if known else letter)
    arrays = family.arrays(sizes)
    try:
        made = session(model, way)
        if known:
            return made.run(None, {name: arrays[name] for name in inputs})
        usual = family.arrays(family.sizes)
        usual = {name: usual[name] for name in inputs}
        before = made.run(None, usual)
    except sonde.Error:
        if not known:
            raise
        return REFUSED
    try:
        found = made.run(None, {name: arrays[name] for name in inputs})
    except sonde.Error:
        found = REFUSED
    for a, b in zip(before, made.run(None, usual)):
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), "a size of 0 changed what comes after it"
    return found


def difference(found, expected, coarse):
    if found is REFUSED or expected is REFUSED:
        return None if found is expected else f"{describe(found)}, expected {describe(expected)}"
    for a, b in zip(found, expected):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{describe(found)}, expected {describe(expected)}"
        if a.dtype.kind == "f":
            top = max([1.0, *np.abs(b[np.isfinite(b)]).ravel()])
            if not np.allclose(a, b, atol=(0.05 if coarse else 1e-4) * top, equal_nan=True):
                return f"{a.ravel()[:4]}…, expected {b.ravel()[:4]}…"
        elif not np.array_equal(a, b):
            return f"{a.ravel()[:4]}…, expected {b.ravel()[:4]}…"
    return None


def describe(results):
    return results if results is REFUSED else ", ".join(f"{np.asarray(r).dtype}{np.shape(r)}" for r in results)


def check(family, letter, ways):
    """The differences, as texts."""
    model, inputs = family.model({**family.sizes, letter: 0})
    arrays = family.arrays({**family.sizes, letter: 0})
    print("in others", flush=True)
    expected = answer(family.reference_without(letter), model, {name: arrays[name] for name in inputs})
    print("in sonde", flush=True)
    who = "others"
    for way in ways if family.is_open(letter) else [w for w in ways if WAYS[w][0]]:
        found = run(family, letter, way)
        if expected is None:
            expected, who = found, ways[0]
        wrong = difference(found, expected, "16" in way)
        if wrong:
            yield f"{family.name} with {letter} = 0, {way} (against {who}): {wrong}"


def main(ways):
    onnxruntime.set_default_logger_severity(4)
    for family in all_families():
        for letter in family.letters():
            print("at", family.name, letter, flush=True)
            for wrong in check(family, letter, ways):
                print("WRONG", wrong, flush=True)
    print("done", flush=True)


LEVELS = ["baseline", "avx2", "best"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_size_of_zero_gives_what_other_engines_give(level):
    ways = list(WAYS) if level == "best" else ["as users run it", "at run time"]
    environment = {k: v for k, v in os.environ.items() if k != "SONDE_CPU"}
    if level != "best":
        environment["SONDE_CPU"] = level
    done = subprocess.run([sys.executable, __file__, *ways], env=environment, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("WRONG")]
    assert done.returncode == 0 and lines[-1] == "done", f"ended with {done.returncode} after {lines[-2:]}\n{done.stderr}"
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main(sys.argv[1:])


@pytest.mark.parametrize("rows,columns", [(2, 0), (0, 0), (0, 5)])
def test_weights_of_few_bits_without_rows_or_columns(rows, columns):
    node = helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=32, N=columns, bits=4, block_size=32)
    x = np.ones((rows, 32), np.float32)
    model = every_way.model([node], {"x": x}, {"y": np.float32},
                            {"b": np.zeros((columns, 1, 16), np.uint8), "s": np.zeros(columns, np.float32)})
    assert every_way.run(model, {"x": x})[0].shape == (rows, columns)
