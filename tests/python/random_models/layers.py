# SPDX-License-Identifier: Apache-2.0
"""Layers with weights: convolutions, pooling, products, normalisation, recurrence, attention."""

import math

import numpy as np

from .builder import BOOL, F16, F32, F64, I32, I64, U8, NoFit, broadcast, row

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 32, 33)


def image(b, spatial=None, dtypes=(F32,), least=1, channels=None, **more):
    """An N, C, spatial… value with at least `least` elements along each spatial axis."""
    rank = 2 + (spatial or b.choice((1, 2, 2, 2, 2, 3)))
    try:
        return b.pick(dtypes, rank=rank, fresh=False, where=lambda v: v.size and min(v.shape[2:]) >= least and (
            channels is None or v.shape[1] == channels), **more)
    except NoFit:
        top = {3: 20, 4: 10, 5: 5}[rank] * (3 if b.large else 1)
        n, c = b.choice((1, 1, 2, 3)), channels or b.choice(CHANNELS if not b.large else (16, 33, 64, 65))
        shape = (n, c, *(b.int(max(3, least), max(top, least)) for _ in range(rank - 2)))
        return b.input(dtypes[0] if b.main not in dtypes else b.main, shape)


def weights(b, dtype, shape, fan_in):
    return (b.random(dtype, shape) / np.sqrt(max(fan_in, 1))).astype(dtype)


def window(b, x, most=3, pads=True, dilate=True, ceil=False):
    """Kernel, strides, pads, dilations over the spatial axes of x: (kernel, attributes, output dims)."""
    spatial = x.shape[2:]
    most = most if b.chance(0.8) else 7
    kernel = [b.int(1, min(most, d)) for d in spatial]
    strides = [b.choice((1, 1, 2, 3)) for _ in spatial]
    dilations = [b.choice((1, 1, 1, 2)) if dilate else 1 for _ in spatial]
    dilations = [d if (k - 1) * d < size else 1 for d, k, size in zip(dilations, kernel, spatial)]
    attributes = {}
    if b.chance(0.7) or strides != [1] * len(spatial):
        attributes["strides"] = strides
    if dilations != [1] * len(spatial):
        attributes["dilations"] = dilations
    how = b.choice(("none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if x.dtype == F64 or b.level:  # the reference, which runs those and bodies, has its own idea of auto_pad
        how = b.choice(("none", "pads"))
    out = []
    # A stride past the kernel would need a negative pad, which engines treat as they like.
    if how.startswith("SAME") and pads and dilations == [1] * len(spatial) and not ceil and all(
            s <= k for s, k in zip(strides, kernel)):
        attributes["auto_pad"] = how
        return kernel, attributes, [-(-d // s) for d, s in zip(spatial, strides)]
    begin, end = [0] * len(spatial), [0] * len(spatial)
    if how == "pads" and pads:
        begin = [b.int(0, (k - 1) * d) for k, d in zip(kernel, dilations)]
        end = [b.int(0, (k - 1) * d) for k, d in zip(kernel, dilations)]
        if not dilate or ceil:  # pooling: a window never lies in the padding alone
            begin, end = [min(p, k - 1) for p, k in zip(begin, kernel)], [min(p, k - 1) for p, k in zip(end, kernel)]
        attributes["pads"] = begin + end
    elif how == "VALID" and not ceil:
        attributes["auto_pad"] = "VALID"
    for i, d in enumerate(spatial):
        span = d + begin[i] + end[i] - ((kernel[i] - 1) * dilations[i] + 1)
        if span < 0:
            raise NoFit
        n = (-(-span // strides[i]) if ceil else span // strides[i]) + 1
        if ceil and (n - 1) * strides[i] >= d + begin[i]:
            n -= 1
        out.append(n)
    return kernel, attributes, out


def conv_node(b, x, out_channels=None, group=None, bias=None):
    """A Conv on x; returns its value."""
    c = x.shape[1]
    groups = [g for g in range(1, c + 1) if c % g == 0]
    if group is None:
        group = b.choice((1, 1, 1, c, b.choice(groups)))
    m = group * b.choice((1, 1, 2)) if group == c and c > 1 else group * b.int(1, max(1, 34 // group) if b.chance(
        0.5) else max(1, 9 // group))
    if out_channels is not None:
        if out_channels % group:
            group = 1
        m = out_channels
    kernel, attributes, out = window(b, x)
    if b.chance(0.6):
        attributes["kernel_shape"] = kernel
    if group > 1 or b.chance(0.3):
        attributes["group"] = group
    fan_in = c // group * math.prod(kernel)
    inputs = [x, b.weight_or_input(weights(b, x.dtype, (m, c // group, *kernel), fan_in))]
    if b.chance(0.5) if bias is None else bias:
        inputs.append(b.weight_or_input(b.random(x.dtype, (m,))))
    return b.emit("Conv", inputs, shape=(x.shape[0], m, *out), sources=[x], attributes=attributes, mag=x.mag + 3)


@row(5)
def conv(b):
    conv_node(b, image(b, dtypes=(F32, F32, F32, F64, F16) if b.opset >= 11 else (F32,), mag=30))


@row(1)
def conv_transpose(b):
    x = image(b, mag=30)
    c, spatial = x.shape[1], x.shape[2:]
    if math.prod(spatial) * c > 1500:
        raise NoFit
    group = b.choice((1, 1, b.choice([g for g in range(1, c + 1) if c % g == 0])))
    m = b.int(1, 6)
    kernel = [b.int(1, 3) for _ in spatial]
    strides = [b.choice((1, 2, 3)) for _ in spatial]
    dilations = [b.choice((1, 1, 2)) for _ in spatial]
    full = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    extra = [b.int(0, s - 1) if b.chance(0.4) else 0 for s, d in zip(strides, dilations)]
    attributes = {"strides": strides, "dilations": dilations, "group": group}
    if any(extra):
        attributes["output_padding"] = extra
    kind = b.int(0, 3)
    begin = [0] * len(spatial)
    end = [0] * len(spatial)
    if kind == 0:
        begin, end = [b.int(0, f - 1) for f in full], [b.int(0, f - 1) for f in full]
        attributes["pads"] = begin + end
    out = [s * (d - 1) + e + f - p - q for s, d, e, f, p, q in zip(strides, spatial, extra, full, begin, end)]
    if kind == 1 and all(f + e >= s for f, e, s in zip(full, extra, strides)):
        attributes["auto_pad"] = b.choice(("SAME_UPPER", "SAME_LOWER")) if b.opset >= 11 else None
        if attributes["auto_pad"]:
            out = [s * d for s, d in zip(strides, spatial)]
    if min(out) < 1:
        raise NoFit
    if b.chance(0.5):
        attributes["kernel_shape"] = kernel
    inputs = [x, b.weight_or_input(weights(b, x.dtype, (c, m, *kernel), c // group * math.prod(kernel)))]
    if b.chance(0.5):
        inputs.append(b.param(b.random(x.dtype, (m * group,))))
    b.emit("ConvTranspose", inputs, shape=(x.shape[0], m * group, *out), sources=[x], attributes=attributes,
           mag=x.mag + 3)


@row(0.3, since=19)
def deform_conv(b):
    x = image(b, 2, mag=30, least=3)
    n, c, h, w = x.shape
    m, k = b.int(1, 4), b.int(1, 3)
    out = (h - k + 1, w - k + 1)
    offset = b.param(b.random(F32, (n, 2 * k * k, *out)))
    mask = b.param(b.random(F32, (n, k * k, *out), 0, 1)) if b.chance(0.5) else None
    bias = b.param(b.random(F32, (m,))) if b.chance(0.5) else None
    b.emit("DeformConv", [x, b.param(weights(b, F32, (m, c, k, k), c * k * k)), offset, bias, mask],
           shape=(n, m, *out), sources=[x], attributes={"kernel_shape": [k, k], "pads": [0, 0, 0, 0]}, mag=x.mag + 3)


@row(3)
def pool(b):
    op = b.choice(("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"))
    ceil = b.opset >= 10 and op != "LpPool" and b.chance(0.3)
    dilate = (op == "MaxPool" and b.opset >= 10 or op == "AveragePool" and b.opset >= 19) and b.chance(0.3)
    small = op == "MaxPool" and b.opset >= 12 and b.chance(0.1)
    x = image(b, dtypes=(U8,) if small else (F32, F64) if op == "MaxPool" and b.opset >= 8 else (F32,),
              mag=30)
    kernel, attributes, out = window(b, x, 4, dilate=dilate, ceil=ceil)
    attributes["kernel_shape"] = kernel
    if not ceil and not dilate and "pads" in attributes:
        pads = attributes["pads"]
        attributes["pads"] = [min(p, k - 1) for p, k in zip(pads, kernel * 2)]
        spatial, n = x.shape[2:], len(kernel)
        strides = attributes.get("strides", [1] * n)
        out = [(spatial[i] + attributes["pads"][i] + attributes["pads"][i + n] - kernel[i]) // strides[i] + 1
               for i in range(n)]
    if ceil:
        attributes["ceil_mode"] = 1
    if op == "AveragePool":
        attributes["count_include_pad"] = b.choice((None, 0, 1))
    if op == "LpPool":
        attributes["p"] = b.choice((None, 1, 2, 3))
    shape = (*x.shape[:2], *out)
    if op == "MaxPool" and b.opset >= 8 and x.distinct and b.chance(0.4):
        names = b.node("MaxPool", [x], 2, **attributes)
        b.result(names[0], x.dtype, shape, [x], exact=True)
        b.result(names[1], I64, shape, exact=True)
        return
    b.emit(op, [x], shape=shape, attributes=attributes, exact=x.exact and op == "MaxPool",
           mag=x.mag * (1 if op != "LpPool" else math.prod(kernel)))


@row(0.3, since=11)
def max_unpool(b):
    shape = (1, b.int(1, 3), 2 * b.int(1, 3), 2 * b.int(1, 3))
    x = b.pick((F32,), shape=shape, distinct=True)
    half = (*shape[:2], shape[2] // 2, shape[3] // 2)
    names = b.node("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    y = b.result(names[0], F32, half, [x], exact=True)
    i = b.result(names[1], I64, half, exact=True)
    b.emit("MaxUnpool", [y, i], shape=shape, sources=[x], exact=True,
           attributes={"kernel_shape": [2, 2], "strides": [2, 2]})


@row(1)
def global_pool(b):
    x = image(b, mag=30)
    op = b.choice(("GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"))
    b.emit(op, [x], shape=(*x.shape[:2], *[1] * (x.rank - 2)), exact=x.exact and op == "GlobalMaxPool",
           mag=x.mag * (x.size if op == "GlobalLpPool" else 1))


def batch_norm_node(b, x):
    c = x.shape[1]
    parts = [b.random(x.dtype, (c,)), b.random(x.dtype, (c,)), b.random(x.dtype, (c,)),
             b.random(x.dtype, (c,), 0.3, 2)]
    return b.emit("BatchNormalization", [x, *(b.weight_or_input(p) for p in parts)], sources=[x], mag=3 * x.mag + 6,
                  attributes={"epsilon": b.choice((None, 1e-3))})


@row(1.5)
def batch_norm(b):
    x = image(b, mag=30) if b.chance(0.8) else b.pick((F32, F64), rank=2, mag=30)
    batch_norm_node(b, x)


@row(1)
def channel_norm(b):
    ops = ["InstanceNormalization", "LRN"]
    ops += ["MeanVarianceNormalization"] if b.opset >= 9 else []
    ops += ["GroupNormalization"] if b.opset >= 21 else []
    op = b.choice(ops)
    x = image(b, None if op in ("InstanceNormalization", "GroupNormalization") else 2, mag=10)
    c = x.shape[1]
    per_channel = [b.param(b.random(x.dtype, (c,))) for _ in range(2)]
    if op == "LRN":
        b.emit(op, [x], attributes={"size": b.choice((1, 3, 5)), "alpha": b.choice((None, 0.1)),
                                    "beta": b.choice((None, 0.5)), "bias": b.choice((None, 1.5))})
    elif op == "InstanceNormalization":
        b.emit(op, [x, *per_channel], sources=[x], mag=12, attributes={"epsilon": 1e-2})
    elif op == "GroupNormalization":
        g = b.choice([g for g in range(1, c + 1) if c % g == 0])
        b.emit(op, [x, *per_channel], sources=[x], mag=12, attributes={"num_groups": g, "epsilon": 1e-2})
    else:
        if min(x.shape[0] * math.prod(x.shape[2:]), 9) < 9:
            raise NoFit  # no variance to divide by
        b.emit(op, [b.input(F32, x.shape)], sources=[x], mag=5,
               attributes={"axes": b.choice((None, [0, 2, 3]))})


@row(1.5, since=17)
def row_norm(b):
    op = b.choice(("LayerNormalization", "RMSNormalization")) if b.opset >= 23 else "LayerNormalization"
    x = b.pick((F32, F32, F64, F16), rank=(1, 4), mag=10)
    axis = b.axis(x.rank)
    shape = x.shape[axis % x.rank:]
    inputs = [x, b.weight_or_input(b.random(x.dtype, shape))]
    if op == "LayerNormalization" and b.chance(0.6):
        inputs.append(b.weight_or_input(b.random(x.dtype, shape)))
    b.emit(op, inputs, sources=[x], mag=12, attributes={"axis": axis if axis != -1 or b.chance(0.5) else None,
                                                        "epsilon": b.choice((1e-2, 1e-3))})


@row(0.4)
def lp_norm(b):
    x = b.pick((F32,), rank=(1, 4), low=0.3)
    b.emit("LpNormalization", [x], attributes={"axis": b.axis(x.rank), "p": b.choice((None, 1, 2))}, mag=1)


# ---- products


def gemm_node(b, x, n=None):
    k = x.shape[1]
    n = n or b.choice((1, 2, 5, 8, 16, 17, 33) if not b.large else (64, 100, 193))
    turn_a, turn_b = b.chance(0.25), b.chance(0.4)
    if turn_a:
        k = x.shape[0]
    m = x.shape[1] if turn_a else x.shape[0]
    w = weights(b, x.dtype, (n, k) if turn_b else (k, n), k)
    inputs = [x, b.weight_or_input(w)]
    if b.opset < 11 or b.chance(0.7):
        bias = b.choice(((n,), (1, n), (m, n), (m, 1), (1,), ()))
        inputs.append(b.weight_or_input(b.random(x.dtype, bias)))
    attributes = {"transA": 1 if turn_a else None, "transB": 1 if turn_b else None,
                  "alpha": b.choice((None, None, 0.5)), "beta": b.choice((None, None, 2.0, 0.0))}
    return b.emit("Gemm", inputs, shape=(m, n), sources=[x], attributes=attributes, mag=x.mag + 6)


@row(3)
def gemm(b):
    gemm_node(b, b.pick((F32, F32, F32, F64, F16), rank=2, mag=30, zero=True))


@row(0.3, since=13)
def integer_matmul(b):
    x = b.pick((I32, I64), rank=2, exact=True, mag=1000)
    y = b.const(b.random(x.dtype, (x.shape[1], b.int(1, 5))))
    b.emit("MatMul", [x, y], shape=(x.shape[0], y.shape[1]), exact=True,
           mag=min(x.mag * 64, 1e6))


def matmul_node(b, x):
    kind = b.int(0, 3)
    k = x.shape[-1]
    n = b.choice((1, 2, 3, 5, 8, 16, 17) if not b.large else (64, 100, 193))
    if kind == 0:
        shape = (k,)
    elif kind == 1 and x.rank > 2:
        shape = (*[d if b.chance(0.7) else 1 for d in x.shape[:-2]], k, n)
    else:
        shape = (k, n)
    near = [v for v in b.values if not v.sequence and v.dtype == x.dtype and v.shape == shape and v.mag <= 3 and
            not v.tol and v is not x]
    if near and b.chance(0.4):
        y = b.choice(near)
    elif b.chance(0.7):
        y = b.param(weights(b, x.dtype, shape, k))
    else:
        y = b.input(x.dtype, shape)
    a, c = x.shape, y.shape
    lead = broadcast(a[:-2], c[:-2])
    out = [*lead, *(a[-2:-1] if len(a) > 1 else ()), *(c[-1:] if len(c) > 1 else ())]
    return b.emit("MatMul", [x, y], shape=out, mag=x.mag * 3 if y.mag > 1 else x.mag + 3)


@row(3)
def matmul(b):
    matmul_node(b, b.pick((F32, F32, F32, F64, F16), rank=(1, 4), mag=20, zero=True))


@row(0.6)
def matmul_pair(b):
    """Both sides are activations."""
    x = b.pick((F32, F64), rank=(2, 4), mag=10)
    perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    t = b.emit("Transpose", [x], shape=[x.shape[p] for p in perm], attributes={"perm": perm})
    b.emit("MatMul", [x, t], shape=[*x.shape[:-1], x.shape[-2]], mag=x.mag ** 2 * 4)


# ---- recurrence and attention

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@row(1.6)
def recurrent(b):
    op = b.choice(list(GATES))
    x = b.pick((F32,), rank=3, mag=10)
    seq, batch, size = x.shape  # the other layout no other engine runs
    hidden, gates = b.choice((1, 2, 3, 5, 8)), GATES[op]
    direction = b.choice(("forward", "reverse", "bidirectional"))
    d = 2 if direction == "bidirectional" else 1
    inputs = [x, b.param(weights(b, F32, (d, gates * hidden, size), size)),
              b.param(weights(b, F32, (d, gates * hidden, hidden), hidden)), None, None, None]
    if b.chance(0.6):
        inputs[3] = b.param(b.random(F32, (d, 2 * gates * hidden)))
    if b.chance(0.3):
        lens = b.random(I32, (batch,), 1, seq)
        lens[b.rng.randrange(batch)] = seq
        inputs[4] = b.input(I32, lens.shape, data=lens)
    state = (d, batch, hidden)
    if b.chance(0.5):
        inputs[5] = b.weight_or_input(b.random(F32, state))
    attributes = {"hidden_size": hidden, "direction": direction if direction != "forward" or b.chance(0.5) else None,
                  "clip": b.choice((None, None, None, 1.5))}
    if op == "GRU":
        attributes["linear_before_reset"] = b.choice((None, 0, 1))
    if op == "LSTM":
        if b.chance(0.4):
            inputs.append(b.param(b.random(F32, state)))
            if b.chance(0.5):
                inputs.append(b.param(b.random(F32, (d, 3 * hidden))))
        if b.chance(0.1):
            attributes["input_forget"] = 1
    if b.chance(0.2):
        choices = {"RNN": (("Relu",), ("Sigmoid",)), "GRU": (("Sigmoid", "Tanh"), ("HardSigmoid", "Softsign")),
                   "LSTM": (("Sigmoid", "Tanh", "Relu"), ("Sigmoid", "Tanh", "Tanh"))}[op]
        attributes["activations"] = list(b.choice(choices)) * d
    names = b.node(op, inputs, 3 if op == "LSTM" else 2, **attributes)
    b.result(names[0], F32, (seq, d, batch, hidden), [x], mag=20 if "activations" in attributes else 1)
    for name in names[1:]:
        b.result(name, F32, state, [x], mag=20)


@row(1, since=23)
def attention(b):
    n, heads, groups = b.int(1, 2), b.int(1, 3), b.choice((1, 1, 2))
    seq, past, size, v_size = b.int(1, 5), b.choice((0, 0, 3)), b.choice((2, 4, 5, 8)), b.choice((2, 4, 8))
    kv = b.int(1, 5)
    total = kv + past
    flat = b.chance(0.4)
    q_heads = heads * groups

    def side(h, s, d):
        return b.pick((F32,), shape=(n, s, h * d) if flat else (n, h, s, d), mag=4)

    q, k, v = side(q_heads, seq, size), side(heads, kv, size), side(heads, kv, v_size)
    mask = None
    causal = b.chance(0.3)
    if b.chance(0.5):
        shape = b.choice(((seq, total), (n, 1, seq, total), (n, q_heads, seq, total)))
        mask = b.random(F32, shape)
        if b.chance(0.5):  # one column stays open: a row with nothing to look at is undefined
            mask = b.random(BOOL, shape)
            mask[..., 0] = True
            causal = False  # the reference multiplies zero by infinity
        mask = b.param(mask)
    before = [b.param(b.random(F32, (n, heads, past, d))) for d in (size, v_size)] if past else [None, None]
    attributes = {"is_causal": 1 if causal else None, "scale": b.choice((None, 0.3)),
                  "softcap": b.choice((None, None, 2.0))}
    if flat:
        attributes.update(q_num_heads=q_heads, kv_num_heads=heads)
    names = b.node("Attention", [q, k, v, mask, *before], 3 if past else 1, **attributes)
    b.result(names[0], F32, (n, seq, q_heads * v_size) if flat else (n, q_heads, seq, v_size), [v], mag=v.mag)
    for name, d in zip(names[1:], (size, v_size)):
        b.result(name, F32, (n, heads, total, d), [k, v])


@row(0.5, since=23)
def rotary_embedding(b):
    n, heads, seq, half = b.int(1, 2), b.int(1, 3), b.int(1, 5), b.int(1, 4)
    size = 2 * half
    flat = b.chance(0.4)
    x = b.pick((F32,), shape=(n, seq, heads * size) if flat else (n, heads, seq, size))
    angles = b.random(F32, (8, half), 0, 6)
    if b.chance(0.6):
        ids = b.input(I64, (n, seq), data=b.random(I64, (n, seq), 0, 7))
    else:
        ids, angles = None, b.random(F32, (n, seq, half), 0, 6)
    b.emit("RotaryEmbedding", [x, b.param(np.cos(angles)), b.param(np.sin(angles)), ids], sources=[x],
           attributes={"interleaved": b.choice((None, 0, 1)), "num_heads": heads if flat else None}, mag=2 * x.mag)


@row(0.4, since=12)
def losses(b):
    n, c = b.int(1, 4), b.int(2, 5)
    spatial = () if b.chance(0.5) else (b.int(1, 3), b.int(1, 3))
    x = b.pick((F32,), shape=(n, c, *spatial), mag=10)
    target = b.param(b.random(I64, (n, *spatial), 0, c - 1))
    weight = b.param(b.random(F32, (c,), 0.3, 1.5)) if b.chance(0.5) else None
    how = b.choice((None, "none", "mean", "sum"))
    shape = (n, *spatial) if how == "none" else ()
    attributes = {"reduction": how, "ignore_index": b.choice((None, None, 0)) if how in ("none", "sum") else None}
    if b.chance(0.5):
        x = b.emit("LogSoftmax", [x], attributes={"axis": 1}, mag=20) if b.opset >= 13 else x
        b.emit("NegativeLogLikelihoodLoss", [x, target, weight], shape=shape, sources=[x], attributes=attributes,
               mag=100)
    else:
        names = b.node("SoftmaxCrossEntropyLoss", [x, target, weight], b.int(1, 2), **attributes)
        b.result(names[0], F32, shape, [x], mag=100)
        if len(names) > 1:
            b.result(names[1], F32, x.shape, [x], mag=20)


@row(0.3, since=24)
def tensor_scatter(b):
    n, top, step, d = b.int(1, 2), b.int(4, 6), b.int(1, 3), b.int(1, 4)
    past = b.pick((F32,), shape=(n, b.int(1, 2), top, d))
    new = b.param(b.random(F32, (n, past.shape[1], step, d)))
    at = b.input(I64, (n,), data=b.random(I64, (n,), 0, top - step)) if b.chance(0.7) else None
    b.emit("TensorScatter", [past, new, at], sources=[past], exact=past.exact,
           attributes={"axis": b.choice((None, -2, 2)), "mode": b.choice((None, "linear", "circular"))})


@row(0.3, since=11)
def det(b):
    n = b.int(1, 4)
    x = b.pick((F32, F64), shape=(*b.dims(b.int(0, 2), 3), n, n) if not b.zero else (n, n), mag=4)
    b.emit("Det", [x], shape=x.shape[:-2], mag=200)


@row(0.4)
def half_layer(b):
    """A short chain in half precision."""
    x = b.input(F16, b.dims(2))
    y = gemm_node(b, x, 4) if b.chance(0.5) else b.emit("Tanh", [x], mag=1)
    if b.opset >= 11 and b.chance(0.5):
        b.emit("Clip", [y, b.scalar(-1, F16), b.scalar(1, F16)], sources=[y], mag=1)
    else:
        b.emit("Relu", [y])
