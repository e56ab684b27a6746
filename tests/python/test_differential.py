# SPDX-License-Identifier: Apache-2.0
"""Random models against ONNX Runtime, the onnx reference and exact bounds; script/test --full runs many more, and
script/differential very many. The tester itself is tested, too: what it lets pass, and that its parts add up.

SONDE_LIBRARY names the library; without it everything here is skipped."""

import argparse
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import bounds
from bounds.spans import F32, I8, U8, Span, linear

pytestmark = pytest.mark.skipif(not os.environ.get("SONDE_LIBRARY"), reason="SONDE_LIBRARY is not set")

PROGRAM = pathlib.Path(__file__).with_name("differential.py")


def differential(*arguments):
    return subprocess.run([sys.executable, PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def counts(done):
    """models, skipped, agree, onnxruntime differs, failed"""
    return list(map(int, re.findall(r"\d+", done.stdout.splitlines()[-1])))


@pytest.mark.parametrize("family", ["mixed", "integers"])
def test_random_models_give_the_same_answer_everywhere(family):
    done = differential("--family", family, "--seed", 1, "--count", 300)
    assert done.returncode == 0, done.stdout + done.stderr
    models, skipped, _agree, _differ, failed = counts(done)
    assert models == 300 and failed == 0
    assert skipped < 30, done.stdout  # a generator that makes nothing valid would test nothing


def test_every_generator_of_integers_makes_something():
    from random_models import integers
    from random_models.integers.grower import ROWS

    used = set()
    for seed in range(600):
        used |= integers.build(seed).generators
        if len(used) == len(ROWS):
            break
    assert used == {row[0].__name__ for row in ROWS}


# ---- what bounds let pass


def one(op, arrays, opset=21, domain="", **attributes):
    """The span of a node's first output."""
    names = [f"i{i}" for i in range(len(arrays))]
    node = helper.make_node(op, [n if a is not None else "" for n, a in zip(names, arrays)], ["y"], domain=domain,
                            **attributes)
    spans = [None if a is None else a if isinstance(a, Span) else bounds.exact(a) for a in arrays]
    return bounds.evaluate(node, spans, {"": opset, domain: opset if not domain else 1})[0]


def test_quantising_exact_numbers_leaves_one_answer():
    x = np.array([0.5, 1.5, -0.5, 2.5, 126.5, 1e9, -1e9, np.inf], np.float32)
    span = one("QuantizeLinear", [x, np.float32(1), np.int8(0)])
    right = np.array([0, 2, 0, 2, 126, 127, -128, 127], np.int8)
    assert span.exact and bounds.outside(span, right) is None
    for i in range(right.size):
        wrong = right.copy()
        wrong[i] ^= 1
        assert "1 differ" in bounds.outside(span, wrong)


def test_a_rounded_number_may_be_either_at_a_tie_only():
    # A product of integers by scales in f32: 5 · 0.1 is at a tie, 4 · 0.1 is not.
    a, w = np.array([[5], [4]], np.uint8), np.array([[1]], np.uint8)
    span = one("QLinearMatMul", [a, np.float32(0.1), np.uint8(0), w, np.float32(1), np.uint8(0), np.float32(1),
                                 np.uint8(3)])
    for first in (3, 4):
        assert bounds.outside(span, np.array([[first], [3]], np.uint8)) is None
    for bad in ([[5], [3]], [[3], [4]], [[2], [3]]):
        assert bounds.outside(span, np.array(bad, np.uint8)) is not None


def test_sums_of_integers_are_exact_and_wrap_around():
    a, w = np.full((1, 40000), 255, np.uint8), np.full((40000, 1), 255, np.uint8)
    span = one("MatMulInteger", [a, w])
    assert span.exact and span.lo[0, 0] == np.int64(255 * 255 * 40000).astype(np.int32)
    assert bounds.outside(span, span.lo + np.int32(1)) is not None


def test_bounds_of_a_float_sum_hold_any_order_and_no_wrong_one():
    rng = np.random.default_rng(7)
    x, w = rng.standard_normal((1, 1000)).astype(F32), rng.standard_normal((1000, 1)).astype(F32)
    span = linear(F32, bounds.exact(x), bounds.exact(w), np.matmul, 1000)
    terms = x[0] * w[:, 0]
    for order in (np.arange(1000), np.argsort(terms), np.argsort(np.abs(terms)), rng.permutation(1000)):
        total = np.float32(0)
        for t in terms[order]:
            total = np.float32(total + t)
        assert bounds.outside(span, total.reshape(1, 1)) is None
    missing = np.float32(np.delete(terms, np.argmax(np.abs(terms))).sum())
    assert bounds.outside(span, missing.reshape(1, 1)) is not None
    assert bounds.outside(span, np.full((1, 1), np.nan, F32)) is not None


def test_nan_and_infinity_have_to_be_where_they_belong():
    x = np.array([[np.nan, 1], [np.inf, 1], [1, 1]], F32)
    span = one("MatMul", [x, np.array([[1], [2]], F32)])
    assert bounds.outside(span, np.array([[np.nan], [np.inf], [3]], F32)) is None
    for bad in ([1, np.inf, 3], [np.nan, np.nan, 3], [np.nan, 1e38, 3], [np.nan, np.inf, np.nan]):
        assert bounds.outside(span, np.array(bad, F32).reshape(3, 1)) is not None


def test_an_inexact_byte_says_little_about_its_bits_but_much_about_its_sum():
    x = Span(U8, np.array([7], U8), np.array([8], U8))
    with pytest.raises(bounds.Unknown):
        one("DequantizeLinear", [x, x, np.uint8(0)])
    span = one("DequantizeLinear", [x, np.float32(0.5), np.uint8(8)])
    assert bounds.outside(span, np.array([-0.5], F32)) is None and bounds.outside(span, np.array([0], F32)) is None
    assert bounds.outside(span, np.array([0.5], F32)) is not None
    anything = one("BitShift", [x, np.array([1], U8)], direction="LEFT")
    assert bounds.outside(anything, np.array([255], U8)) is None and bounds.outside(anything, np.array([1], I8))


# ---- parts, and what is done already


def arguments(tmp_path, **changed):
    settings = {"family": "integers", "everywhere": False, "seed": [5, 6], "count": 250, "part": (1, 1), "jobs": 1,
                "log": tmp_path / "log.jsonl"}
    return argparse.Namespace(**{**settings, **changed})


def test_parts_are_the_whole():
    from differ.many import chunks

    for seeds, count in (([1], 300), ([1, 2, 3], 1050), ([4], 7)):
        whole = chunks(seeds, count, 1, 1)
        models = [first + i for first, n in whole for i in range(n)]
        assert models == [s * 1_000_000 + i for s in seeds for i in range(count)]
        for n in range(1, 12):
            assert sum((chunks(seeds, count, k, n) for k in range(1, n + 1)), []) == whole


def test_what_a_log_has_is_not_repeated(tmp_path, monkeypatch):
    from differ import many

    ran = []

    def run_chunk(options, first, count):
        ran.append((first, count))
        return {first + i: many.Outcome("failed" if i == 3 else "agree", "text", "Op") for i in range(count)}

    monkeypatch.setattr(many, "run_chunk", run_chunk)
    seen = []
    report = lambda seed, outcome: seen.append((seed, outcome.kind))  # noqa: E731
    options = arguments(tmp_path)
    assert many.run_all(arguments(tmp_path, part=(1, 2)), report) == 250 and len(ran) == 3
    options.log.write_text(options.log.read_text() + '{"first": 1, "cou')  # the line of a call that was ended
    seen.clear()
    assert many.run_all(options, report) == 500 and len(ran) == 6
    assert sorted(s for s, _ in seen) == [s * 1_000_000 + i for s in (5, 6) for i in range(250)]
    assert sum(kind == "failed" for _, kind in seen) == 6
    many.run_all(arguments(tmp_path, everywhere=True), report)
    assert len(ran) == 12  # other ways are other results
    another = tmp_path / "libother.so"
    another.write_bytes(b"another library")
    monkeypatch.setenv("SONDE_LIBRARY", str(another))
    many.run_all(options, report)
    assert len(ran) == 18  # and so is another library


def test_a_model_that_fails_is_named_kept_and_repeated(tmp_path):
    """A library of which one operator is wrong: the tester itself is changed to expect something else."""
    wrong = tmp_path / "sitecustomize.py"
    wrong.write_text("import sys\nsys.path.insert(0, %r)\nimport bounds.rules as r\nimport numpy as np\n"
                     "from bounds.spans import exact\n"
                     "old = r.RULES['', 'MatMulInteger']\n"
                     "r.RULES['', 'MatMulInteger'] = lambda c: [exact(old(c)[0].lo + np.int32(1))]\n" %
                     str(PROGRAM.parent))
    more = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, PROGRAM, "--family", "integers", "--count", "40", "--keep",
                           tmp_path / "kept"], capture_output=True, text=True, env=more)
    failed = re.findall(r"^seed (\d+): .*\(MatMulInteger\)", done.stdout, re.M)
    assert done.returncode == 1 and failed, done.stdout + done.stderr
    assert f"--family integers --only {failed[0]} --minimize" in done.stdout
    assert (tmp_path / "kept" / f"{failed[0]}.onnx").exists() and (tmp_path / "kept" / f"{failed[0]}.npz").exists()
    again = subprocess.run([sys.executable, PROGRAM, "--family", "integers", "--only", failed[0], "--minimize"],
                           capture_output=True, text=True, env=more)
    small = again.stdout[again.stdout.index("made small"):]
    assert again.returncode == 1 and "MatMulInteger" in small
    assert differential("--family", "integers", "--only", failed[0]).returncode == 0


def test_levels_are_those_of_the_source():
    import libsonde
    from differ.runs import LEVELS, levels_here, ways

    assert {"baseline", "avx2", "avx512", "vnni", "amx", "neon", "i8mm"} <= set(LEVELS)
    here = levels_here()
    assert None in here and "baseline" in here
    with pytest.raises(libsonde.Failure):
        libsonde.Context(1, "nosuchlevel")
    every = ways(3, True, True)
    for level in here:
        assert {w["threads"] for w in every if w["cpu"] == level and not w.get("no_optimize")} >= {1, 2}
        assert any(w.get("no_optimize") for w in every if w["cpu"] == level)
