#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sweep asks of the other runtimes beside their speed, as one line of JSON.

usage: peer_run.py compare MODEL.onnx INPUTS.npz OUTPUTS.npz            the outputs against those of ONNX Runtime
       peer_run.py profile MODEL.onnx INPUTS.npz onnxruntime|openvino THREADS
                                             mean ms of each of its steps, and which node of the file makes which tensor
"""

import json
import pathlib
import sys
import tempfile
import time

import numpy as np


def session(model, threads, folder=None):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    if folder:
        options.enable_profiling, options.profile_file_prefix = True, str(pathlib.Path(folder) / "ort")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def difference(ours, theirs):
    """The largest difference as a share of the largest value; None where shapes or special values differ."""
    if ours.shape != theirs.shape:
        return None, f"shape {list(ours.shape)}, not {list(theirs.shape)}"
    if theirs.size == 0:
        return 0.0, None
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    usual = np.isfinite(b)
    if not np.array_equal(usual, np.isfinite(a)) or not np.array_equal(a[~usual], b[~usual], equal_nan=True):
        return None, "infinities or NaNs at other places"
    if not usual.any():
        return 0.0, None
    largest = float(np.abs(b[usual]).max())
    return float(np.abs(a[usual] - b[usual]).max()) / (largest or 1.0), None


def compare(model, inputs, outputs):
    reference = session(model, 1)
    names = [output.name for output in reference.get_outputs()]
    with np.load(inputs) as file:
        theirs = dict(zip(names, reference.run(None, {name: file[name] for name in file.files if name in
                                                      {i.name for i in reference.get_inputs()}})))
    ours = {}
    if pathlib.Path(outputs).exists():
        with np.load(outputs) as file:
            ours = {name: file[name] for name in file.files}
    worst = {"error": 0.0, "output": None, "message": None, "outputs": len(names)}
    for name, value in theirs.items():
        error, message = difference(ours[name], value) if name in ours else (None, "missing")
        if message:
            return {"error": None, "output": name, "message": message, "outputs": len(names)}
        if error >= worst["error"]:
            worst |= {"error": error, "output": name}
    return worst


def repeat(run, seconds=1.0, least=5):
    """Runs for so long, after two runs that do not count; how often it ran."""
    run(), run()
    runs, end = 0, time.perf_counter() + seconds
    while runs < least or time.perf_counter() < end:
        run()
        runs += 1
    return runs


def profile_onnxruntime(model, feed, threads):
    with tempfile.TemporaryDirectory(prefix="sonde-sweep-") as folder:
        net = session(model, threads, folder)
        runs = repeat(lambda: net.run(None, feed))
        events = json.loads(pathlib.Path(net.end_profiling()).read_text())
    steps = {}
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        about = event["args"]
        shapes = [list(shape) for entry in about.get("input_type_shape", []) for shape in entry.values()]
        step = steps.setdefault(event["name"], {"name": event["name"].removesuffix("_kernel_time"),
                                                "op": about["op_name"], "shapes": shapes, "us": []})
        step["us"].append(event["dur"])
    total = runs + 2  # the first two are recorded too; their times are the earliest of each step
    return [{"name": s["name"], "op": s["op"], "shapes": s["shapes"],
             "ms": sum(s["us"][len(s["us"]) * 2 // total:]) / runs / 1000} for s in steps.values()]


def profile_openvino(model, feed, threads):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
                                                 "PERFORMANCE_HINT": "LATENCY", "PERF_COUNT": True})
    request, steps = compiled.create_infer_request(), {}

    def run():
        request.infer(feed, share_inputs=True, share_outputs=True)
        for step in request.get_profiling_info():
            took = step.real_time.total_seconds() * 1000
            known = steps.setdefault(step.node_name, {"name": step.node_name, "op": step.node_type, "shapes": [],
                                                      "kernel": step.exec_type, "ms": []})
            known["ms"].append(took)

    repeat(run)
    return [{**s, "ms": sum(s["ms"][2:]) / len(s["ms"][2:])} for s in steps.values() if sum(s["ms"][2:])]


def producers(model):
    """The name of the node that makes each tensor: runtimes name steps after either."""
    import onnx

    nodes = onnx.load(model, load_external_data=False).graph.node
    return {output: node.name for node in nodes for output in node.output if output}


def main():
    what, model, inputs, *rest = sys.argv[1:]
    if what == "compare":
        print(json.dumps(compare(model, inputs, *rest)))
        return
    with np.load(inputs) as file:
        feed = {name: file[name] for name in file.files}
    kinds = {"onnxruntime": profile_onnxruntime, "openvino": profile_openvino}
    print(json.dumps({"steps": kinds[rest[0]](model, feed, int(rest[1])), "producers": producers(model)}))


if __name__ == "__main__":
    main()
