# SPDX-License-Identifier: Apache-2.0
"""Products of integers that give i32 or f32, products with weights of few bits, and what windows they have."""

import numpy as np

from .grower import BYTES, F32, I8, MS, U8, NoFit, elements, row


def window(b, spatial, pool=False):
    """(kernel, attributes) for an image; pools never meet nothing but padding."""
    kernel, strides, dilations, pads = [], [], [], [[], []]
    for d in spatial:
        k = b.choice((1, 2, 3, 3, 5)) if not b.chance(0.3) else 1
        dilation = b.choice((1, 1, 1, 2)) if not pool else 1
        reach = (k - 1) * dilation + 1
        most = min(k - 1, 2)
        p, q = b.int(0, most), b.int(0, most)
        if d + p + q < reach:
            k, dilation, p, q = 1, 1, 0, 0
        kernel.append(k)
        strides.append(b.choice((1, 1, 1, 2, 3)))
        dilations.append(dilation)
        pads[0].append(p)
        pads[1].append(q)
    if b.chance(0.4):
        kernel, pads = [min(3, *spatial) if spatial else 1] * len(spatial), [[0] * len(spatial)] * 2
        dilations, strides = [1] * len(spatial), [1] * len(spatial)
        if all(k == 3 for k in kernel) and b.chance(0.7):
            pads = [[1] * len(spatial)] * 2
    if 0 in kernel:
        raise NoFit
    attributes = {"strides": strides, "pads": pads[0] + pads[1]}
    if any(d > 1 for d in dilations):
        attributes["dilations"] = dilations
    elif b.chance(0.15):
        attributes = {"strides": strides, "auto_pad": b.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))}
    return kernel, attributes


def kind_of_weights(b, t):
    """Engines know weights of either type beside u8, of i8 beside i8."""
    return b.choice(BYTES) if t == U8 else I8


@row(3)
def matmul_integer(b):
    long = b.chance(0.06)
    x = b.input(b.choice(BYTES), (b.int(1, 3), b.choice((300, 1000, 4099, 20000)))) if long else \
        b.take(BYTES, rank=(1, 4) if b.chance(0.2) else (2, 4))
    k, n = x.shape[-1], b.int(1, 3) if long else b.size(32, 64)
    t = b.choice(BYTES)
    shape = (*x.shape[:-2], k, n) if b.chance(0.2) and x.rank > 2 else (k, n)
    w = b.weight(b.weights(t, shape, len(shape) - 1)) if b.chance(0.7) else b.input(t, shape)
    zeros = [b.zero_point(x.dtype) if b.chance(0.6) else None, None]
    if b.chance(0.4):
        zeros[1] = b.zero_point(t, (n,) if b.chance(0.4) else ())
    b.add("MatMulInteger", [x, w, *zeros])


@row(2)
def conv_integer(b):
    x = b.take((U8,), rank=4, where=lambda v: v.shape[1] > 0)
    c = x.shape[1]
    group = b.choice((1, 1, c))
    m = group * b.choice((1, 2)) if group > 1 else b.size()
    kernel, attributes = window(b, x.shape[2:])
    t = b.choice(BYTES)
    w = b.weight(b.weights(t, (m, c // group, *kernel), 0))
    zeros = [b.zero_point(U8) if b.chance(0.6) else None, b.zero_point(t) if b.chance(0.3) else None]
    b.add("ConvInteger", [x, w, *zeros], group=group if group > 1 else None, **attributes)


@row(1.5)
def integer_to_float(b):
    x = b.take(BYTES, rank=(2, 3))
    n = b.size(32)
    t = kind_of_weights(b, x.dtype)
    per = (n,) if b.chance(0.4) else ()
    w = b.param(b.weights(t, (x.shape[-1], n), 1))
    zeros = [b.zero_point(x.dtype) if b.chance(0.7) else None, b.zero_point(t, per) if b.chance(0.4) else None]
    bias = b.param(b.data_rng.standard_normal(n).astype(F32)) if b.chance(0.5) else None
    b.add("MatMulIntegerToFloat", [x, w, b.scale(0.03), b.scale(0.03, per), *zeros, bias], domain=MS)


@row(1.5)
def dynamic_matmul(b):
    x = b.take((F32,), rank=(2, 3), exact=True, where=lambda v: v.size)
    n = b.size(32)
    t = b.choice(BYTES)
    per = (n,) if b.chance(0.4) else ()
    w = b.param(b.weights(t, (x.shape[-1], n), 1))
    zero = b.zero_point(t, per) if b.chance(0.4) else None
    bias = b.param(b.data_rng.standard_normal(n).astype(F32)) if b.chance(0.5) else None
    b.add("DynamicQuantizeMatMul", [x, w, b.scale(0.03, per), zero, bias], domain=MS)


@row(1.5)
def dynamic_chain(b):
    """What dynamic quantisation writes: bytes, their product with weights, scaled back."""
    x = b.take((F32,), rank=(2, 3), exact=True, where=lambda v: v.size)
    q, scale, zero = b.add("DynamicQuantizeLinear", [x], outputs=3)
    n = b.size(32)
    t = b.choice((I8, I8, U8))
    w = b.param(b.weights(t, (x.shape[-1], n), 1))
    y = b.add("MatMulInteger", [q, w, zero, b.zero_point(t) if b.chance(0.3) else None])
    y = b.add("Cast", [y], to=1)
    by = b.add("Mul", [scale, b.scale(0.03, (n,) if b.chance(0.3) else ())])
    y = b.add("Mul", [y, by])
    if b.chance(0.5):
        b.add("Add", [y, b.param(b.data_rng.standard_normal(n).astype(F32))])


@row(2)
def few_bits(b):
    bits, block = b.choice((4, 4, 8)), b.choice((16, 32, 64, 128))
    k, n = b.choice((16, 32, 40, 64, 96, 130, 256)), b.size(32, 64)
    m = b.size()
    shape = (m, k) if b.chance(0.7) else (b.int(1, 3), m, k)
    x = b.take((F32,), rank=(2, 3), where=lambda v: v.shape[-1] == k, fresh=0.5,
               make=lambda rng, s: elements(rng, F32, (*s[:-1], k)))
    if x.shape[-1] != k:
        x = b.input(F32, shape)
    blocks = -(-k // block)
    size = block * bits // 8
    packed = b.data_rng.integers(0, 256, (n, blocks, size)).astype(np.uint8)
    scales = b.data_rng.uniform(0.005, 0.05, (n, blocks)).astype(F32)
    per_row = -(-blocks * bits // 8)
    kind = b.int(0, 2)
    zeros = None if kind == 0 else b.param(
        b.data_rng.integers(0, 256, (n, per_row)).astype(np.uint8) if kind == 1 else
        b.data_rng.uniform(0, 2**bits - 1, (n, blocks)).astype(F32))
    bias = b.param(b.data_rng.standard_normal(n).astype(F32)) if b.chance(0.3) else None
    if b.chance(0.5):
        scales, zeros_flat = scales.reshape(-1), None
        if zeros is not None:
            zeros_flat = b.param(np.asarray(b.spans[zeros.name].lo).reshape(-1))
        zeros = zeros_flat
    b.add("MatMulNBits", [x, b.param(packed), b.param(scales), zeros, None, bias], domain=MS, K=k, N=n, bits=bits,
          block_size=block)

