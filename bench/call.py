#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs: InferenceSession.run of sonde and of onnxruntime on models of one node, in turns,
by the calling thread's CPU time, so that a busy machine disturbs both alike.

usage: call.py [ROUNDS]     (with sonde, onnxruntime and onnx importable)
"""

import statistics
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import sonde


def model(inputs):
    """The sum of `inputs` vectors of 4."""
    names = [f"x{i}" for i in range(inputs)]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in [*names, "y"]]
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "call", ports[:-1], ports[-1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def session(runtime, data):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def nanoseconds(run, feeds, calls=1000):
    begin = time.thread_time_ns()
    for _ in range(calls):
        run(None, feeds)
    return (time.thread_time_ns() - begin) / calls


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    print(f"sonde {sonde.__version__}, onnxruntime {onnxruntime.__version__}; medians of {rounds} rounds of 1,000 calls")
    for inputs in (1, 4, 16):
        feeds = {f"x{i}": np.ones((1, 4), np.float32) for i in range(inputs)}
        ours, theirs = (session(runtime, model(inputs)).run for runtime in (sonde, onnxruntime))
        nanoseconds(ours, feeds), nanoseconds(theirs, feeds)
        pairs = [(nanoseconds(ours, feeds), nanoseconds(theirs, feeds)) for _ in range(rounds)]
        a, b = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(x / y for x, y in pairs)
        print(f"{inputs:2} inputs: sonde {a / 1000:5.2f} us, onnxruntime {b / 1000:5.2f} us, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
