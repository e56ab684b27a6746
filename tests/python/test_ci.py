# SPDX-License-Identifier: Apache-2.0
"""The job of docs/ci.md: its script with plain shells, and its files for CI services."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "ci" / "compare.sh"
SONDE = os.environ["SONDE_PROGRAM"]
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]

# A program that answers like sonde with the times it is told: one line of $TIMES for each profile.
FAKE = """#!/bin/sh
if [ "$1" = diff ]; then echo "Conv  slower"; exit 0; fi
printf '%s\\n' "$(printf '%s' "$2" | tr '\\n ' '__')" >> "$SEEN"
for word; do case $last in -o) : > "$word" ;; --json) json=$word ;; esac; last=$word; done
n=$(($(wc -l < "$SEEN")))
p50=$(sed -n "${n}p" "$TIMES")
[ "$p50" = fail ] && { echo "sonde: no such model" >&2; exit 1; }
printf '{"latency_ms":{"min":0.1,"mean":9.9,"p50":%s,"p90":8}}' "$p50" > "$json"
"""


def compare(tmp_path, *arguments, shell="sh", **variables):
    command = ["busybox", "sh"] if shell == "busybox" else [shell]
    env = {**os.environ, "SONDE": SONDE, "OUT": str(tmp_path / "out"), **variables}
    done = subprocess.run([*command, SCRIPT, *map(str, arguments)], env=env, capture_output=True, text=True, cwd=tmp_path)
    comment = tmp_path / "out" / "comment.md"
    if done.returncode in (0, 3):
        assert comment.read_text() == done.stdout
    return done


def told(tmp_path, pairs, **variables):
    """The script with a program that reports these times: (base, head) for each round."""
    program, times, seen = tmp_path / "fake", tmp_path / "times", tmp_path / "seen"
    program.write_text(FAKE)
    program.chmod(0o755)
    seen.write_text("")
    order = [pair if i % 2 == 0 else pair[::-1] for i, pair in enumerate(pairs)]  # who is first changes
    times.write_text("".join(f"{ms}\n" for pair in order for ms in pair))
    extra = {"SONDE": str(program), "TIMES": str(times), "SEEN": str(seen), "ROUNDS": str(len(pairs)), **variables}
    return compare(tmp_path, "base", "head", "m.onnx", **extra), seen.read_text().split()


def row(done):
    """The cells of the one row of figures."""
    line = next(line for line in done.stdout.splitlines() if line.startswith("| `"))
    return [cell.strip() for cell in line.strip("|").split("|")]


NOISE = [1.00, 1.01, 0.99, 1.02, 1.00, 0.98, 1.01]


@pytest.mark.parametrize("shell", SHELLS)
def test_two_times_the_same_is_not_slower(tmp_path, shell):
    done = compare(tmp_path, tmp_path, tmp_path, "zoo:tiny_mlp", shell=shell, ROUNDS="6", RUNS="-n 20 -w 2", LIMIT="900")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("### sonde: not slower\n")
    assert row(done)[0] == "`zoo:tiny_mlp`"
    assert {"Gemm", "total"} & set(re.findall(r"\w+", done.stdout)), "the operators are told"


def test_a_larger_model_is_slower(tmp_path):
    for side, model in (("base", "tiny_mlp"), ("head", "tiny_bert")):
        (tmp_path / side / "models").mkdir(parents=True)
        subprocess.run([SONDE, "zoo", "save", model, tmp_path / side / "models" / "a model.onnx"], check=True, capture_output=True)
    done = compare(tmp_path, "base", "head", "models/a model.onnx", ROUNDS="6", RUNS="-n 20 -w 2")
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.startswith("### sonde: 1 of 1 slower by more than 5 %\n")
    assert row(done)[0] == "`models/a model.onnx`" and row(done)[-1] == "**slower**"
    assert (tmp_path / "out" / "1.base.1.pftrace").stat().st_size > 0


def test_the_figures_are_medians_and_ratios_of_rounds(tmp_path):
    done, seen = told(tmp_path, [(10, 11 * x) for x in NOISE])
    assert done.returncode == 3, done.stderr
    assert row(done) == ["`m.onnx`", "10", "11", "+10.0 %", "+7.8 % … +12.2 %", "**slower**"]
    assert seen == (["base/m.onnx", "head/m.onnx", "head/m.onnx", "base/m.onnx"] * 4)[:14], "sides take turns"


def test_a_slow_minute_of_the_machine_meets_both_sides(tmp_path):
    done, _ = told(tmp_path, [(10 * slow, 10.1 * slow * x) for slow, x in zip([1, 1, 5, 5, 5, 1, 1], NOISE)])
    assert done.returncode == 0 and row(done)[-1] == "**not slower**"


def test_an_interval_around_the_limit_is_unclear_and_fails_nothing(tmp_path):
    done, _ = told(tmp_path, [(10, 10.6 * x) for x in NOISE])
    assert done.returncode == 0
    assert row(done)[-1] == "**unclear**" and done.stdout.startswith("### sonde: 1 of 1 unclear")


def test_faster_is_said(tmp_path):
    done, _ = told(tmp_path, [(10, 8 * x) for x in NOISE])
    assert done.returncode == 0 and row(done)[-1] == "**faster**" and row(done)[3] == "-20.0 %"


def test_many_rounds_leave_outliers_out(tmp_path):
    done, _ = told(tmp_path, [(10, 10)] * 10 + [(10, 90), (90, 10)])
    assert done.returncode == 0 and row(done)[4] == "+0.0 % … +0.0 %"


def test_the_limit_is_that_of_the_variable(tmp_path):
    done, _ = told(tmp_path, [(10, 11 * x) for x in NOISE], LIMIT="7.5")
    assert done.returncode == 3 and "more than 7.5 %" in done.stdout
    (tmp_path / "again").mkdir()
    done, _ = told(tmp_path / "again", [(10, 11 * x) for x in NOISE], LIMIT="15")
    assert done.returncode == 0


def test_what_fails_is_said_and_no_verdict_given(tmp_path):
    done, _ = told(tmp_path, [(10, 10)] * 3 + [("fail", 10)] * 3)
    assert done.returncode == 1 and "no such model" in done.stderr
    done = compare(tmp_path, "base", "head", "missing.onnx")
    assert done.returncode == 1 and "missing.onnx" in done.stderr


@pytest.mark.parametrize("arguments, variables", [
    ((), {}), (("a", "b"), {}), (("a", "b", "c"), {"ROUNDS": "5"}), (("a", "b", "c"), {"ROUNDS": "many"}),
    (("a", "b", "c"), {"LIMIT": "five"}), (("a", "b", "c"), {"LIMIT": "1.2.3"})])
def test_wrong_usage_is_refused(tmp_path, arguments, variables):
    done = compare(tmp_path, *arguments, **variables)
    assert done.returncode == 2 and done.stderr and not done.stdout


def test_names_cannot_break_the_table(tmp_path):
    program = tmp_path / "fake"
    name = "a|b`c\n| d.onnx"
    told(tmp_path, [(1, 1)] * 6)
    (tmp_path / "seen").write_text("")
    done = compare(tmp_path, "base", "head", name, SONDE=str(program), TIMES=str(tmp_path / "times"), SEEN=str(tmp_path / "seen"), ROUNDS="6")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    assert len(lines) == 1 and lines[0].startswith(r"| `a\|b'c \| d.onnx` |")


def yaml_blocks():
    return re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "ci.md").read_text(), re.S | re.M)


def test_the_files_for_ci_services_are_yaml_and_call_the_script():
    yaml = pytest.importorskip("yaml")
    github, gitlab = map(yaml.safe_load, yaml_blocks())
    steps = github["jobs"]["compare"]["steps"]
    commands = [step.get("run", "") for step in steps]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert sum("examples/ci/compare.sh base head" in text for text in commands) == 1
    assert sum("examples/ci/compare.sh base ." in text for text in gitlab["compare"]["script"]) == 1
    assert SCRIPT.exists() and os.access(SCRIPT, os.X_OK)
    for text in [*commands, *gitlab["compare"]["before_script"], *gitlab["compare"]["script"], *gitlab["compare"]["after_script"]]:
        if not isinstance(text, str):
            pytest.fail(f"{text!r} is not a command")
        assert subprocess.run(["sh", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", text), text=True).returncode == 0, text
