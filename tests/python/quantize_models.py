# SPDX-License-Identifier: Apache-2.0
"""What tests of sonde.quantize share: small models, inputs, and how far two arrays are apart."""

import os

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh


def sqnr(reference, other):
    """In dB; more than 200 stands for equal."""
    signal = np.square(reference.astype(np.float64)).sum()
    noise = np.square(reference.astype(np.float64) - other).sum()
    return 200.0 if noise == 0 else 10 * np.log10(signal / noise)


def run(runtime, model, feeds):
    model = model if isinstance(model, bytes) else os.fspath(model)
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)


def images(n, size, seed=0):
    """Smooth fields and noise, about as images that were normalised."""
    rng = np.random.default_rng(seed)
    x = 0.1 * rng.standard_normal((n, 3, size, size))
    for cells in (4, 8, 16):
        x += np.kron(rng.standard_normal((n, 3, cells, cells)), np.ones((size // cells,) * 2)) * 2 / cells**0.5
    return x.astype(np.float32)


class Net:
    """A graph that grows; methods return value names."""

    def __init__(self, seed=0):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def constant(self, array, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants.append(nh.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, spread=1.0):
        fan = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
        scales = np.exp(spread * self.rng.standard_normal((shape[0],) + (1,) * (len(shape) - 1)))
        return self.constant((self.rng.standard_normal(shape) * scales / fan**0.5).astype(np.float32))

    def vector(self, n):
        return self.constant((0.1 * self.rng.standard_normal(n)).astype(np.float32))

    def node(self, op, *inputs, outputs=None, **attributes):
        names = outputs or [f"v{len(self.nodes)}"]
        self.nodes.append(h.make_node(op, inputs, names, name=f"{op}_{names[0]}", **attributes))
        return names[0]

    def model(self, shape, *outputs, opset=17, extra_inputs=()):
        ports = [h.make_tensor_value_info("x", T.FLOAT, shape), *extra_inputs]
        graph = h.make_graph(self.nodes, "net", ports, [h.make_tensor_value_info(y, T.FLOAT, None) for y in outputs],
                             self.constants)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8).SerializeToString()
