# SPDX-License-Identifier: Apache-2.0
"""Sums of more bytes than 32 bits hold: what is quantised again, or scaled to floats, is the exact sum; results that are
int32 themselves are modulo 2^32."""

import numpy as np
import pytest
from onnx import helper as h

import every_way

K = 200000  # int32 holds 65793 products of a u8 and an i8 at least, and 33025 of two u8
N = 5
RNG = np.random.default_rng(3)
S = np.float32


def high(shape, dtype):
    """Bytes next to the end of their type that is farthest from 0."""
    low, up = (200, 256) if dtype == np.uint8 else (-128, -90)
    return RNG.integers(low, up, shape).astype(dtype)


def byte_rule(sums, scale, y_scale, zero, dtype):
    info = np.iinfo(dtype)
    v = np.rint(sums.astype(np.float32) * (scale / y_scale).astype(np.float32)) + zero
    return np.clip(v, info.min, info.max).astype(dtype)


def alone(op, inputs, feeds, y, constants, domain="", **attributes):
    return every_way.run(every_way.model([h.make_node(op, inputs, ["y"], domain=domain, **attributes)], feeds, {"y": y},
                                         constants), feeds)[0]


def spread(sums):
    """The largest is far outside of 32 bits, and the results are many."""
    assert np.abs(sums).max() > 2**31
    return sums


@pytest.mark.parametrize("x_type,w_type", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("op", ["QLinearMatMul", "QGemm", "QGemm to floats", "MatMulIntegerToFloat", "MatMulInteger"])
def test_products(op, x_type, w_type):
    x, w = high((3, K), x_type), high((K, N), w_type)
    w[:, 1] //= 2
    x[1] //= 2
    scales = RNG.uniform(0.5, 1, N).astype(S) * S(2**-12)
    sums = spread(x.astype(np.int64) @ w.astype(np.int64))
    y_scale = S(np.abs(sums).max() * 2.0**-12 / 100)
    bias = RNG.integers(-(2**31), 2**31, N).astype(np.int32)
    c = {"sx": S(1), "zx": x_type(0), "w": w, "sw": scales, "zw": np.zeros(N, w_type), "sy": y_scale, "zy": np.uint8(128),
         "c": bias}
    if op == "QLinearMatMul":
        ours = alone(op, ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"], {"x": x}, np.uint8, c)
        want = byte_rule(sums, scales, y_scale, 128, np.uint8)
    elif op == "QGemm":
        ours = alone(op, ["x", "sx", "zx", "w", "sw", "zw", "c", "sy", "zy"], {"x": x}, np.uint8, c, "com.microsoft")
        want = byte_rule(sums + bias, scales, y_scale, 128, np.uint8)
    elif op == "QGemm to floats":
        ours = alone("QGemm", ["x", "sx", "zx", "w", "sw", "zw", "c"], {"x": x}, np.float32, c, "com.microsoft")
        want = (sums + bias).astype(S) * scales
    elif op == "MatMulIntegerToFloat":
        ours = alone(op, ["x", "w", "sx", "sw", "zx", "zw"], {"x": x}, np.float32, c, "com.microsoft")
        want = sums.astype(S) * scales
    else:
        ours = alone(op, ["x", "w"], {"x": x}, np.int32, c)
        want = sums.astype(np.int32)
    np.testing.assert_array_equal(ours, want)
    assert len(np.unique(ours)) > 2


@pytest.mark.parametrize("op", ["MatMul", "Gemm", "MatMul to floats"])
def test_products_in_qdq_notation(op):
    x, w = high((3, K), np.uint8), high((K, N), np.int8)
    w[:, 1] //= 2
    x[1] //= 2
    sums = spread((x.astype(np.int64) - 1) @ w.astype(np.int64))
    bias = RNG.integers(-(2**31), 2**31, N).astype(np.int32)
    c = {"sx": S(0.5), "zx": np.uint8(1), "w": w, "sw": S(2**-12), "sy": S(10000), "zy": np.uint8(255), "c": bias,
         "sc": S(2**-13)}
    nodes = [h.make_node("QuantizeLinear", ["real", "sx", "zx"], ["x"]),
             h.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xf"]), h.make_node("DequantizeLinear", ["w", "sw"], ["wf"])]
    feeds = {"real": (x.astype(S) - 1) * S(0.5)}
    if op == "Gemm":
        nodes += [h.make_node("DequantizeLinear", ["c", "sc"], ["cf"]), h.make_node("Gemm", ["xf", "wf", "cf"], ["f"])]
        sums = sums + bias
    else:
        nodes.append(h.make_node("MatMul", ["xf", "wf"], ["f"]))
    if op == "MatMul to floats":
        ours, = every_way.run(every_way.model(nodes, feeds, {"f": S}, c), feeds)
        want = sums.astype(S) * S(2**-13)
    else:
        nodes.append(h.make_node("QuantizeLinear", ["f", "sy", "zy"], ["y"]))
        ours, = every_way.run(every_way.model(nodes, feeds, {"y": np.uint8}, c), feeds)
        want = byte_rule(sums, S(2**-13), S(10000), 255, np.uint8)
    np.testing.assert_array_equal(ours, want)
    assert len(np.unique(ours)) > 2


@pytest.mark.parametrize("kind", ["many channels", "many taps", "one tap after the other", "depthwise", "groups"])
@pytest.mark.parametrize("result", ["bytes", "floats", "sums"])
def test_convolutions(kind, result):
    group, c, kernel = {"many channels": (1, K, (1, 1)), "many taps": (1, 44, (48, 50)), "one tap after the other": (1, K, (2, 1)),
                        "depthwise": (4, 4, (300, 320)), "groups": (2, 88, (48, 50))}[kind]
    oc = 4
    x = high((1, c, kernel[0], kernel[1] + 1), np.uint8)
    w = high((oc, c // group, *kernel), np.int8)
    x[0, c // 2:, :, -1] = 7
    sums = np.empty((1, oc, 1, 2), np.int64)
    for o in range(oc):
        of = slice(o // (oc // group) * (c // group), (o // (oc // group) + 1) * (c // group))
        for i in range(2):
            sums[0, o, 0, i] = (x[0, of, :, i:i + kernel[1]].astype(np.int64) * w[o]).sum()
    spread(sums)
    bias = RNG.integers(-(2**31), 2**31, oc).astype(np.int32)
    constants = {"sx": S(1), "zx": np.uint8(0), "w": w, "sw": S(2**-12), "zw": np.int8(0), "sy": S(6000), "zy": np.uint8(255),
                 "c": bias}
    if result == "bytes":
        ours = alone("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "c"], {"x": x}, np.uint8, constants,
                     group=group)
        want = byte_rule(sums + bias.reshape(1, oc, 1, 1), S(2**-12), S(6000), 255, np.uint8)
    elif result == "sums":
        ours = alone("ConvInteger", ["x", "w"], {"x": x}, np.int32, constants, group=group)
        want = sums.astype(np.int32)
    else:
        nodes = [h.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xf"]), h.make_node("DequantizeLinear", ["w", "sw"], ["wf"]),
                 h.make_node("Conv", ["xf", "wf"], ["yf"], group=group), h.make_node("QuantizeLinear", ["yf", "sy", "zy"], ["q"])]
        outputs = {"yf": S, "q": np.uint8}  # both are read, so the sums stay floats
        ours, bytes_of = every_way.run(every_way.model(nodes, {"x": x}, outputs, constants), {"x": x})
        want = sums.astype(S) * S(2**-12)
        np.testing.assert_array_equal(bytes_of, np.clip(np.rint(want / S(6000)) + 255, 0, 255).astype(np.uint8))
    np.testing.assert_array_equal(ours, want)


@pytest.mark.parametrize("op", ["MatMulInteger", "ConvInteger"])
def test_sums_of_integers_that_are_scaled_afterwards_stay_modulo(op):
    """With and without the pass that joins these nodes: the model says int32."""
    conv = op == "ConvInteger"
    x = high((1, K, 1, 2) if conv else (3, K), np.uint8)
    w = high((N, K, 1, 1) if conv else (K, N), np.int8)
    nodes = [h.make_node(op, ["x", "w"], ["i"]), h.make_node("Cast", ["i"], ["f"], to=1), h.make_node("Mul", ["f", "s"], ["y"])]
    ours, = every_way.run(every_way.model(nodes, {"x": x}, {"y": S}, {"w": w, "s": S(0.25)}), {"x": x})
    x64, w64 = x.astype(np.int64), w.astype(np.int64)
    sums = np.einsum("nchw,oc->nohw", x64, w64[:, :, 0, 0]) if conv else x64 @ w64
    np.testing.assert_array_equal(ours, spread(sums).astype(np.int32).astype(S) * S(0.25))


@pytest.mark.parametrize("group", [1, 40])
def test_biases_at_the_ends_of_int32(group):
    """Quantisers give channels whose weights are next to nothing the largest bias there is. With a residual behind it."""
    x = RNG.integers(0, 256, (2, 40, 7, 6)).astype(np.uint8)
    w = RNG.integers(-128, 128, (40, 40 // group, 1, 1)).astype(np.int8)
    bias = RNG.integers(-9000, 9000, 40).astype(np.int32)
    bias[::7] = 2**31 - 1 - RNG.integers(0, 300, 6)
    bias[3::7] = -(2**31) + RNG.integers(0, 300, 6)
    scales = np.where(np.abs(bias.astype(np.int64)) > 9000, 2.0**-24, 0.02).astype(S)
    constants = {"sx": S(1), "zx": np.uint8(128), "w": w, "sw": scales, "zw": np.zeros(40, np.int8), "sy": S(3),
                 "zy": np.uint8(128), "c": bias, "sz": S(0.5), "ss": S(3.25)}
    conv = h.make_node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "c"], ["y"], group=group)
    more = h.make_node("QLinearAdd", ["y", "sy", "zy", "x", "sz", "zx", "ss", "zy"], ["z"], domain="com.microsoft")
    x64 = x.astype(np.int64) - 128
    sums = x64 * w.reshape(1, 40, 1, 1) if group == 40 else np.einsum("nchw,oc->nohw", x64, w[:, :, 0, 0].astype(np.int64))
    want = byte_rule(sums + bias.reshape(1, 40, 1, 1), scales.reshape(1, 40, 1, 1), S(3), 128, np.uint8)
    ours, = every_way.run(every_way.model([conv], {"x": x}, {"y": np.uint8}, constants), {"x": x})
    np.testing.assert_array_equal(ours, want)
    assert len(np.unique(ours)) > 2
    both, = every_way.run(every_way.model([conv, more], {"x": x}, {"z": np.uint8}, constants), {"x": x})
    alone_, = every_way.run(every_way.model([more], {"x": x, "y": want}, {"z": np.uint8}, constants), {"x": x, "y": want})
    np.testing.assert_array_equal(both, alone_)
