# SPDX-License-Identifier: Apache-2.0
"""The forms of all values of small models, as `sonde inspect --forms` lists them, are those in the files of forms/: one
per model and instruction set. A change of these files shows which steps compute in another type or layout, and where
conversions came or went. To renew them, run this file with RENEW=1 in the environment and read the difference."""

import json
import os
import pathlib
import subprocess

import onnx
import pytest

from half_models import narrowed
from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

FOLDER = pathlib.Path(__file__).parent / "forms"
LEVELS = ["baseline", "avx2", "avx512"]
MODELS = ["tiny_cnn", "tiny_regnet_y", "tiny_bert", "tiny_loop", "tiny_cnn_int8", "tiny_cnn f16", "tiny_attention bf16"]


def sonde(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)


def model_of(name, folder):
    """The argument for `sonde inspect`: "tiny_cnn", or "tiny_cnn f16" for one whose numbers are f16."""
    name, _, kind = name.partition(" ")
    if not kind:
        return "zoo:" + name
    path = folder / f"{name}.onnx"
    assert sonde("zoo", "save", name, path).returncode == 0
    path.write_bytes(narrowed(onnx.load(path), kind).SerializeToString())
    return path


def at_level(model, level, *options):
    done = sonde("inspect", model, "--cpu", level, "-t", 1, *options)
    if done.returncode and "instruction set" in done.stderr:  # this machine has it not
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MODELS)
def test_forms_are_as_listed(tmp_path, name, level):
    text = at_level(model_of(name, tmp_path), level, "--forms")
    listing = text[text.index("\nforms\n") + len("\nforms\n"):]
    file = FOLDER / f"{name.replace(' ', '_')}-{level}.txt"
    if os.environ.get("RENEW"):
        file.write_text(listing)
    assert listing == file.read_text()


@pytest.mark.parametrize("level", ["avx512", "amx"])
@pytest.mark.parametrize("name", ["tiny_resnet", "tiny_efficientnet"])
def test_forms_in_bf16_are_as_listed(tmp_path, name, level):
    """Images between convolutions are bf16 in memory where convolutions are computed in it."""
    text = at_level(model_of(name, tmp_path), level, "--forms", "--precision", "bf16")
    listing = text[text.index("\nforms\n") + len("\nforms\n"):]
    file = FOLDER / f"{name}-{level}-precision_bf16.txt"
    if os.environ.get("RENEW"):
        file.write_text(listing)
    assert listing == file.read_text()
    assert ("{bf16, blocks of 16}" in listing) == (level == "amx")


def test_json_says_the_same(tmp_path):
    model = model_of("tiny_cnn f16", tmp_path)
    text = at_level(model, "baseline", "--forms")
    said = json.loads(at_level(model, "baseline", "--forms", "--json", "-"))

    def port(p):
        return "const " * p["constant"] + p["type"] + (" {%s}" % p["form"] if p["form"] else "")

    for step in said["forms"]:
        head = "+".join(filter(None, [step["op"], step["post_op"]])) + (" (%s)" % step["name"] if step["name"] else "")
        ports = [", ".join(map(port, step[side])) for side in ("inputs", "outputs")]
        assert f"\n  {head}: {ports[0]} -> {ports[1]}\n" in text
    assert text[text.index("\nforms\n"):].count("\n") == len(said["forms"]) + 2
    assert {"[Convert]", "[Reorder]"} & {step["op"] for step in said["forms"]}
