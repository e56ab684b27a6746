# SPDX-License-Identifier: Apache-2.0
"""What ran in which precision, and what it had to do: every step of a profile tells the arithmetic of its products, the
types its tensors are stored in, and FLOPs and bytes that follow from these."""
import json
import math
import os
import subprocess

import onnx
import pytest
import sonde
from half_models import narrowed

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

WIDTHS = {"fp64": 8, "i64": 8, "fp32": 4, "i32": 4, "bf16": 2, "fp16": 2, "u8": 1, "i8": 1, "bool": 1}
PRODUCTS = {"f32": {"f32"}, "bf16": {"bf16_tiles"}, "f16": {"f16_tiles", "f16_split"}, "u8": {"i8", "i8_tiles"}, "i8": {"i8", "i8_tiles"}}
PARTS = {"Gather", "Slice"}  # which read less than their inputs
MODELS = [("tiny_cnn", "file"), ("tiny_mobilenet", "file"), ("tiny_mobilenet", "bf16"), ("tiny_mobilenet", "f16"),
          ("tiny_efficientnet", "bf16"), ("tiny_resnet", "bf16"), ("tiny_bert", "bf16"), ("tiny_bert", "file"),
          ("tiny_resnet_int8", "file"), ("tiny_efficientnet_int8", "file")]


def steps(tmp_path, model, *options):
    """The arguments of every step of one run, in order."""
    path = tmp_path / "trace.json"
    subprocess.run([PROGRAM, "profile", model, "-n", "1", "-w", "0", "-q", "-o", path, *options], check=True)
    events = json.loads(path.read_text())["traceEvents"]
    found = sorted((e["ts"], i, e["args"]) for i, e in enumerate(events) if "input_type" in e.get("args", {}))
    return [args for _, _, args in found]


def tensors(args, side):
    """(name, type, dims) of the tensors that are there."""
    parts = (args[f"{side}_{what}"].split(",") for what in ("tensor_name", "type", "shape"))
    return [(name, kind, [int(d) for d in dims.split("*")] if dims else []) for name, kind, dims in zip(*parts) if kind]


def moved(args):
    """Each tensor once, in the type it is stored in. In these models one projection makes queries, keys and values."""
    reads = {(name, kind, tuple(dims)) for name, kind, dims in tensors(args, "input")}
    if "attention" in args["kernel"]:
        reads = {("projection" if i < 3 else name, kind, tuple(dims))
                 for i, (name, kind, dims) in enumerate(tensors(args, "input"))}
    writes = [(name, kind, tuple(dims)) for name, kind, dims in tensors(args, "output")]
    return sum(WIDTHS[kind] * math.prod(dims) for _, kind, dims in [*reads, *writes])


@pytest.mark.parametrize("name, precision", MODELS)
def test_bytes_are_those_of_the_stored_types(tmp_path, name, precision):
    seen = 0
    for args in steps(tmp_path, f"zoo:{name}", "--precision", precision):
        if args["op"] in PARTS:
            continue
        assert args["bytes"] == moved(args), args
        seen += 1
    assert seen > 5


@pytest.mark.parametrize("name, precision", MODELS)
def test_flops_of_convolutions_are_two_for_each_multiplication(tmp_path, name, precision):
    seen = 0
    for args in steps(tmp_path, f"zoo:{name}", "--precision", precision):
        if args["op"] != "Conv" or "+" in args["kernel"] or "Conv" in args["post_op"]:
            continue
        weights = next(dims for _, _, dims in tensors(args, "input")[1:] if len(dims) == 4)
        (_, _, out), = tensors(args, "output")
        products = math.prod(out) * math.prod(weights[1:])
        image = math.prod(tensors(args, "input")[0][2])
        gate = max(math.prod(weights), image)  # a factor of the weights or of the image, as the CPU has it
        assert 2 * products <= args["flops"] <= 2 * products + gate, args
        seen += 1
    assert seen > 1 or "bert" in name


@pytest.mark.parametrize("name, precision", MODELS)
def test_the_arithmetic_is_that_of_the_kernel(tmp_path, name, precision):
    for args in steps(tmp_path, f"zoo:{name}", "--precision", precision):
        kind = args["kernel"].split("_")[0]
        if args["flops"] == 0:
            assert args["arithmetic"] == "", args
        elif args["op"] in ("Conv", "Gemm", "MatMul") and kind in PRODUCTS:
            assert args["arithmetic"] in PRODUCTS[kind], args


def has_tiles():
    done = subprocess.run([PROGRAM, "doctor", "-q", "--json", "-"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["machine"]["level"] in ("amx", "amxfp16")


def test_images_in_bf16_and_packed_weights_show_their_type(tmp_path):
    if not has_tiles():
        pytest.skip("images are bf16 in memory only where convolutions multiply bf16")
    types = {kind for args in steps(tmp_path, "zoo:tiny_mobilenet", "--precision", "bf16") if args["op"] == "Conv"
             for _, kind, dims in tensors(args, "output")}
    assert "bf16" in types
    for args in steps(tmp_path, "zoo:mobilenet_v2", "--precision", "bf16"):
        if args["kernel"].startswith("bf16_conv"):
            assert args["arithmetic"] == "bf16_tiles"
            assert tensors(args, "input")[1][1] == "bf16", args


def test_two_convolutions_in_one_step_name_the_kernels_of_both(tmp_path):
    both = [args for args in steps(tmp_path, "zoo:mobilenet_v2", "--precision", "bf16") if "+Conv" in args["post_op"]]
    for args in both:
        first, second = args["kernel"].split("+")
        assert "conv1x1" in first and "depthwise" in second
        assert args["arithmetic"] in PRODUCTS[first.split("_")[0]]


def test_what_one_projection_makes_is_read_once(tmp_path):
    attention = [args for args in steps(tmp_path, "zoo:tiny_bert") if "attention" in args["kernel"]]
    for args in attention:
        assert [dims for _, _, dims in tensors(args, "input")] == [[1, 16, 96]] * 3 + [[1, 1, 1, 16]]
        assert args["bytes"] == 4 * (16 * 96 + 16 + 16 * 32)
    assert attention


def test_conversions_and_reorders_are_rows_of_their_own(tmp_path):
    path = tmp_path / "half.onnx"
    subprocess.run([PROGRAM, "zoo", "save", "tiny_cnn", path, "-q"], check=True)
    onnx.save(narrowed(onnx.load(path), "f16"), path)
    found = steps(tmp_path, path)
    for args in found:
        if args["op"] in ("[Convert]", "[Reorder]"):
            assert args["bytes"] == moved(args) > 0 and args["flops"] == 0
    converts = [args for args in found if args["op"] in ("[Convert]", "[Reorder]")]
    assert any("fp16" in args["input_type"] and "fp32" in args["output_type"] for args in converts), found


def test_data_frames_rows_and_listings_tell_the_arithmetic(tmp_path):
    path = tmp_path / "m.onnx"
    subprocess.run([PROGRAM, "zoo", "save", "tiny_resnet_int8", path, "-q"], check=True)
    session = sonde.InferenceSession(str(path))
    with sonde.profile() as profiler:
        session.run(None, session.random_inputs(seed=1))
    columns = profiler.columns()
    told = {a for op, a in zip(columns["op_type"], columns["arithmetic"]) if op == "Conv"}
    assert told and told <= {"i8", "i8_tiles"}
    row = next(r for r in profiler.rows("op") if r["op_type"] == "Conv")
    assert set(row["arithmetic"].split("+")) == told
    listed = subprocess.run([PROGRAM, "inspect", path, "--nodes", "--optimized"], check=True, capture_output=True, text=True)
    assert " FLOP in i8" in listed.stdout
