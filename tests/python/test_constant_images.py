# SPDX-License-Identifier: Apache-2.0
"""Images that are constants, where convolutions want them in blocks: as what is convolved, as what is added to the
result, and as operands of an image of another rank, in one model."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper as h

import every_way

RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def check(nodes, feeds, outputs, constants):
    model = every_way.model(nodes, feeds, {name: np.float32 for name in outputs}, constants)
    wanted = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    for got in every_way.each(model, feeds):
        for ours, theirs in zip(got, wanted):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def conv(x, w, y, spatial, **more):
    return h.make_node("Conv", [x, w], [y], pads=[1] * 2 * spatial, **more)


@pytest.mark.parametrize("group", [1, 32])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_a_constant_is_convolved(spatial, group):
    """Beside an input, so that the node is not folded: its bias is one."""
    node = h.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1] * 2 * spatial, group=group)
    check([node], {"b": floats(64)}, ["y"], {"x": floats(2, 32, *[5] * spatial), "w": floats(64, 32 // group, *[3] * spatial)})


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_a_constant_is_added_to_the_result(spatial):
    nodes = [conv("x", "w", "a", spatial), h.make_node("Add", ["a", "z"], ["b"]), h.make_node("Relu", ["b"], ["y"])]
    size = [5] * spatial
    check(nodes, {"x": floats(1, 16, *size)}, ["y"], {"w": floats(20, 16, *[3] * spatial), "z": floats(1, 20, *size)})


@pytest.mark.parametrize("sequence_first", [False, True])
def test_a_constant_is_a_sequence_and_an_operand_of_an_image(sequence_first):
    """[1, 20, 5] beside a sequence; [C, h, w] beside an image of one channel."""
    nodes = [conv("s", "v", "a", 1), h.make_node("Add", ["a", "z"], ["y"]),
             conv("i", "w", "b", 2), h.make_node("Mul", ["b", "z"], ["u"])]
    check(nodes if sequence_first else nodes[2:] + nodes[:2], {"s": floats(1, 16, 5), "i": floats(1, 16, 20, 5)}, ["y", "u"],
          {"v": floats(20, 16, 3), "w": floats(1, 16, 3, 3), "z": floats(1, 20, 5)})


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "Shape"])
def test_a_constant_sequence_is_read_in_any_layout(op):
    """Behind a convolution that reads it in blocks."""
    nodes = [h.make_node("Conv", ["z", "w", "b"], ["y"], pads=[1, 1]), h.make_node("Add", ["c", "z"], ["d"]),
             h.make_node(op, ["d"], ["u" if op != "Shape" else "n"])]
    if op == "Shape":
        nodes.append(h.make_node("Cast", ["n"], ["u"], to=1))
    check(nodes, {"b": floats(24), "c": floats(1, 16, 1)}, ["y", "u"], {"z": floats(1, 16, 7), "w": floats(24, 16, 3)})
