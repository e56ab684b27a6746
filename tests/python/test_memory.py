# SPDX-License-Identifier: Apache-2.0
"""What a model costs in memory: packed weights stay near the size of the raw ones, and the program's peak near what
it cannot do without. Both are properties of the plan, not of the machine."""

import json
import os
import re
import subprocess
import sys

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

MODELS = ["regnet_x_400mf", "mobilenet_v2", "resnet50", "bert_mini"]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
PACKED_OF_RAW = 1.15
# Bytes beside packed weights and arena: program, libraries, graph, inputs; a profile has its records, too, and looks at
# the weights in their file, a few pages at a time.
BESIDES = {"run": 12_000_000, "profile": 16_000_000}


@pytest.fixture(scope="module", params=MODELS)
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / f"{request.param}.onnx"
    subprocess.run([PROGRAM, "zoo", "save", request.param, path], check=True, capture_output=True, timeout=PATIENCE)
    yield path
    path.unlink()


def memory_rows(report):
    rows = re.findall(r"^ *([a-z, ]+?)  +([\d.]+) (B|KiB|MiB|GiB)$", report, re.M)
    return {name: float(number) * UNITS[unit] for name, number, unit in rows}


def memory_report(model, threads="1"):
    done = subprocess.run([PROGRAM, "profile", model, "-n", "1", "-t", threads, "--report", "memory"],
                          capture_output=True, text=True, timeout=PATIENCE, check=True)
    return memory_rows(done.stdout)


@pytest.mark.parametrize("name", ["tiny_mlp", "tiny_cnn", "bert_mini"])
def test_reports_and_inspect_have_the_same_arena(name, tmp_path):
    def text(*arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout

    text("inspect", f"zoo:{name}", "-t", "1", "--json", tmp_path / "look.json")
    planned = json.loads((tmp_path / "look.json").read_text())["run"]["memory"]
    report = text("profile", f"zoo:{name}", "-n", "1", "-t", "1", "--report", "memory")
    rows = memory_rows(report)
    shown = re.search(r"^lifetimes on the arena.*, ([\d.]+) (B|KiB|MiB):", report, re.M)
    behind = rows.get("workspace", 0)
    assert rows["activations"] == pytest.approx(planned["activations"], rel=0.01)
    assert float(shown[1]) * UNITS[shown[2]] == pytest.approx(planned["activations"] + behind, rel=0.01)


# A process starts with the peak of the one it was forked from: a small one stands between this one and the program.
STARTER = """
import os, sys
program = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(program, 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
"""


def peak_resident(*command):
    """Bytes, as the system counted them for this process alone."""
    done = subprocess.run([sys.executable, "-S", "-c", STARTER, *command], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]) * 1024


def test_packed_weights_are_about_as_large_as_raw_ones(model):
    assert memory_report(model)["weights, packed"] <= PACKED_OF_RAW * model.stat().st_size


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("verb", list(BESIDES))
def test_the_peak_is_packed_weights_and_arena_and_little_more(model, verb, threads):
    report = memory_report(model, threads)
    needed = report["weights, packed"] + report["activations"] + report.get("workspace", 0)
    peak = peak_resident(PROGRAM, verb, model, "-n", "1", "-t", threads, "-q")
    assert peak <= needed + BESIDES[verb], f"{(peak - needed) / 1e6:.1f} MB beside {needed / 1e6:.1f} MB"
