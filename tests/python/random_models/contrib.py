# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain com.microsoft, which ONNX Runtime defines: the reference has none of them."""

import numpy as np

from .builder import F32, I8, I32, U8, NoFit, row
from .layers import image, weights, window
from .quantized import scale_of, zero_of

MS = "com.microsoft"


@row(0.5)
def ms_gelu(b):
    op = b.choice(("Gelu", "FastGelu", "QuickGelu", "BiasGelu"))
    x = b.pick((F32,), rank=(1, 4), mag=10)
    inputs = [x]
    if op == "BiasGelu" or op == "FastGelu" and b.chance(0.5):
        inputs.append(b.param(b.random(F32, (x.shape[-1],))))
    b.emit(op, inputs, sources=[x], domain=MS, attributes={"alpha": 1.5} if op == "QuickGelu" and b.chance(0.5) else {})


@row(0.5)
def ms_skip_norm(b):
    x = b.pick((F32,), rank=3, mag=8)
    n = x.shape[-1]
    rms = b.chance(0.4)
    skip = b.pick((F32,), shape=x.shape, mag=8) if b.chance(0.5) else b.param(b.random(F32, x.shape))
    inputs = [x, skip, b.param(b.random(F32, (n,)))]
    if not rms and b.chance(0.7):
        inputs.append(b.param(b.random(F32, (n,))))
    elif not rms:
        inputs.append(None)
    if b.chance(0.3):
        inputs.append(b.param(b.random(F32, (n,))))
    outputs = 1
    names = b.node("SkipSimplifiedLayerNormalization" if rms else "SkipLayerNormalization", inputs, outputs, domain=MS,
                   epsilon=1e-2)
    b.result(names[0], F32, x.shape, [x, skip], mag=12)


@row(0.6)
def ms_fused_matmul(b):
    x = b.pick((F32,), rank=(2, 4), mag=10)
    turn_a, turn_b = b.chance(0.4), b.chance(0.4)
    m, k = (x.shape[-1], x.shape[-2]) if turn_a else x.shape[-2:]
    n = b.choice((1, 3, 8, 17))
    y = b.param(weights(b, F32, (n, k) if turn_b else (k, n), k))
    b.emit("FusedMatMul", [x, y], shape=(*x.shape[:-2], m, n), sources=[x], domain=MS, mag=x.mag + 3,
           attributes={"transA": int(turn_a), "transB": int(turn_b), "alpha": b.choice((None, 0.5))})


@row(0.6)
def ms_fused_matmul_batches_inside(b):
    """Batches between the two axes of the matrices, which ONNX Runtime's optimiser writes; both have one rank."""
    x = b.pick((F32,), rank=(3, 4), mag=10)
    turn_a, turn_b, inside_a, inside_b = (b.chance(0.5) for _ in range(4))
    rows, cols = (x.shape[0], x.shape[-1]) if inside_a else x.shape[-2:]
    batch = x.shape[1:-1] if inside_a else x.shape[:-2]
    m, k = (cols, rows) if turn_a else (rows, cols)
    n = b.choice((1, 3, 8, 17))
    first, last = (n, k) if turn_b else (k, n)
    y = weights(b, F32, (first, *batch, last) if inside_b else (*batch, first, last), k)
    y = b.param(y) if b.chance(0.5) else b.emit("Identity", [b.param(y)])
    b.emit("FusedMatMul", [x, y], shape=(*batch, m, n), sources=[x], domain=MS, mag=x.mag + 3,
           attributes={"transA": int(turn_a), "transB": int(turn_b), "transBatchA": int(inside_a),
                       "transBatchB": int(inside_b), "alpha": b.choice((None, 0.5))})


@row(0.5)
def ms_fused_gemm(b):
    x = b.pick((F32,), rank=2, mag=10)
    k, n = x.shape[1], b.choice((1, 3, 8, 17))
    act = b.choice(("Relu", "Tanh", "Sigmoid", "LeakyRelu"))
    bias = b.param(b.random(F32, (n,))) if b.chance(0.6) else None
    b.emit("FusedGemm", [x, b.param(weights(b, F32, (k, n), k)), bias], shape=(x.shape[0], n), sources=[x], domain=MS,
           mag=x.mag + 3, attributes={"activation": act, "activation_alpha": 0.1 if act == "LeakyRelu" else None})


@row(0.5)
def ms_fused_conv(b):
    x = image(b, 2, mag=15)
    kernel, attributes, out = window(b, x)
    m = b.choice((1, 5, 8, 16))
    c = x.shape[1]
    w = b.param(weights(b, F32, (m, c, *kernel), c * kernel[0] * kernel[1]))
    bias = b.param(b.random(F32, (m,))) if b.chance(0.7) else None
    shape = (x.shape[0], m, *out)
    z = b.input(F32, shape) if bias is not None and b.chance(0.4) else None
    act = b.choice(("Relu", "Tanh", "Sigmoid", "Clip", "LeakyRelu"))
    params = {"Clip": [-1.0, 1.0], "LeakyRelu": [0.1]}.get(act)
    b.emit("FusedConv", [x, w, bias, z], shape=shape, sources=[x], domain=MS, mag=x.mag + 3,
           attributes={**attributes, "activation": act, "activation_params": params})


@row(0.5)
def ms_matmul_nbits(b):
    k, n, block = b.choice((16, 32, 40, 64)), b.choice((1, 3, 8, 17)), b.choice((16, 32))
    x = b.pick((F32,), shape=(b.int(1, 4), k), mag=5)
    blocks = -(-k // block)
    w = b.param(b.random(U8, (n, blocks, block // 2), 0, 255))
    scales = b.param(b.random(F32, (n * blocks,), 0.01, 0.1))
    zeros = b.param(b.random(U8, (n * ((blocks + 1) // 2),), 0, 255)) if b.chance(0.5) else None
    b.emit("MatMulNBits", [x, w, scales, zeros], shape=(x.shape[0], n), sources=[x], domain=MS, mag=30,
           attributes={"K": k, "N": n, "bits": 4, "block_size": block})


@row(0.5)
def ms_integer_to_float(b):
    x = b.pick((U8, I8), rank=2, exact=True, mag=1e9)
    k, n = x.shape[1], b.choice((1, 3, 8, 17))
    t = b.choice((U8, I8)) if x.dtype == U8 else I8
    w = b.param(b.random(t, (k, n), *((0, 255) if t == U8 else (-128, 127))))
    per = b.chance(0.5)
    zeros = [zero_of(b, x.dtype), zero_of(b, t, (n,) if per and b.chance(0.5) else ())]
    bias = b.param(b.random(F32, (n,))) if b.chance(0.5) else None
    b.emit("MatMulIntegerToFloat", [x, w, scale_of(b), scale_of(b, (n,) if per else ()), *zeros, bias], F32,
           (x.shape[0], n), [x], domain=MS, mag=200)


@row(0.4)
def ms_dynamic_quantize_matmul(b):
    x = b.pick((F32,), rank=2, distinct=True, mag=5)
    k, n = x.shape[1], b.choice((1, 3, 8, 17))
    w = b.param(b.random(I8, (k, n), -128, 127))
    # A step of the activations' scale may go either way, times the weights it meets.
    b.emit("DynamicQuantizeMatMul", [x, w, scale_of(b), zero_of(b, I8) if b.chance(0.5) else None], shape=(
        x.shape[0], n), sources=[x], domain=MS, mag=200, tol=0.03 * 12.8 * k)


@row(0.6)
def ms_qlinear(b):
    op = b.choice(("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearGlobalAveragePool"))
    t = b.choice((U8, I8))
    x = b.pick((t,), rank=4 if op.endswith("Pool") else (1, 4), exact=True, mag=1e9)
    shape = x.shape
    inputs, attributes = [x, scale_of(b), zero_of(b, t)], {}
    if op in ("QLinearAdd", "QLinearMul"):
        other = b.param(b.random(t, x.shape[b.int(0, x.rank):]))
        inputs += [other, scale_of(b), zero_of(b, t)]
    if op == "QLinearLeakyRelu":
        attributes["alpha"] = 0.1
    if op == "QLinearGlobalAveragePool":
        shape = (*x.shape[:2], 1, 1)
    inputs += [b.param(np.array(0.05, F32)), zero_of(b, t)]
    b.emit(op, inputs, t, shape, [x], domain=MS, attributes=attributes, tol=1.0, mag=255)


@row(0.4)
def ms_qlinear_more(b):
    t = b.choice((U8, I8))
    kind = b.int(0, 2)
    if kind == 0:
        x = b.pick((t,), rank=(1, 4), exact=True, mag=1e9)
        axis = b.int(0, x.rank - 1)
        y = b.param(b.random(t, x.shape))
        shape = list(x.shape)
        shape[axis] *= 2
        inputs = [b.param(np.array(0.05, F32)), zero_of(b, t)]
        for part in (x, y):
            inputs += [part, scale_of(b), zero_of(b, t)]
        b.emit("QLinearConcat", inputs, t, shape, [x], domain=MS, attributes={"axis": axis}, tol=1.0, mag=255)
    elif kind == 1:
        x = b.pick((t,), rank=4, exact=True, mag=1e9, where=lambda v: min(v.shape[2:]) >= 2)
        shape = (*x.shape[:2], x.shape[2] - 1, x.shape[3] - 1)
        b.emit("QLinearAveragePool", [x, scale_of(b), zero_of(b, t), b.param(np.array(0.05, F32)), zero_of(b, t)], t,
               shape, [x], domain=MS, attributes={"kernel_shape": [2, 2]}, tol=1.0, mag=255)
    else:
        x = b.pick((t,), rank=(2, 3), exact=True, mag=1e9)
        zero = b.param(np.array(0 if t == U8 else -128, t))
        # Steps that a probability of one does not run out of: ONNX Runtime would wrap around.
        scale = b.param(np.array(1 / 128, F32))
        b.emit("QLinearSoftmax", [x, scale_of(b), zero_of(b, t), scale, zero], t, x.shape, [x], domain=MS,
               attributes={"axis": x.rank - 1, "opset": 13}, tol=1.0, mag=255)


@row(0.3)
def ms_rotary(b):
    n, heads, seq, half = b.int(1, 2), b.int(1, 3), b.int(1, 5), b.int(1, 4)
    x = b.pick((F32,), shape=(n, seq, heads * 2 * half))
    angles = b.random(F32, (8, half), 0, 6)
    ids = b.input(np.dtype("i8"), (n, seq), data=b.random(np.dtype("i8"), (n, seq), 0, 7))
    b.emit("RotaryEmbedding", [x, ids, b.param(np.cos(angles)), b.param(np.sin(angles))], sources=[x], domain=MS,
           attributes={"interleaved": b.choice((None, 0, 1)), "num_heads": heads}, mag=2 * x.mag)


@row(0.5)
def ms_multi_head_attention(b):
    n, heads, seq, size = b.int(1, 2), b.int(1, 3), b.int(1, 5), b.choice((2, 4, 8))
    kv = b.choice((seq, b.int(1, 5)))
    q = b.pick((F32,), shape=(n, seq, heads * size), mag=5)
    k, v = (b.pick((F32,), shape=(n, kv, heads * size), mag=5) for _ in range(2))
    bias = b.param(b.random(F32, (3 * heads * size,))) if b.chance(0.4) else None
    b.emit("MultiHeadAttention", [q, k, v, bias], shape=(n, seq, heads * size), sources=[v], domain=MS,
           attributes={"num_heads": heads, "scale": b.choice((None, 0.4))})


@row(0.4)
def ms_attention(b):
    n, heads, seq, size = b.int(1, 2), b.int(1, 3), b.int(1, 5), b.choice((2, 4, 8))
    hidden = heads * size
    width = b.choice((hidden, 5))
    x = b.pick((F32,), shape=(n, seq, width), mag=5)
    inputs = [x, b.param(weights(b, F32, (width, 3 * hidden), width)), b.param(b.random(F32, (3 * hidden,)))]
    if b.chance(0.4):
        inputs.append(b.input(I32, (n,), data=b.random(I32, (n,), 1, seq)))
    b.emit("Attention", inputs, shape=(n, seq, hidden), sources=[x], domain=MS, mag=10,
           attributes={"num_heads": heads, "unidirectional": b.choice((None, 0, 1))})


@row(0.4)
def ms_group_query_attention(b):
    n, kv_heads, groups, seq, size = b.int(1, 2), b.int(1, 2), b.int(1, 3), b.int(1, 5), b.choice((8, 16))
    heads = kv_heads * groups
    q = b.pick((F32,), shape=(n, seq, heads * size), mag=5)
    k, v = (b.pick((F32,), shape=(n, seq, kv_heads * size), mag=5) for _ in range(2))
    past = b.int(0, 3) if seq == 1 else 0
    before = [b.input(F32, (n, kv_heads, past, size)) if past else None for _ in range(2)]
    lens = b.param(np.full((n,), past + seq - 1, np.int32))
    total = b.param(np.array([past + seq], np.int32))
    names = b.node("GroupQueryAttention", [q, k, v, *before, lens, total], 3, domain=MS, num_heads=heads,
                   kv_num_heads=kv_heads)
    b.result(names[0], F32, (n, seq, heads * size), [v])
    for name in names[1:]:
        b.result(name, F32, (n, kv_heads, past + seq, size), [k, v])


@row(0.3)
def ms_small(b):
    kind = b.int(0, 2)
    if kind == 0:
        n = b.int(1, 4)
        x = b.param(np.eye(n, dtype=F32) * 3 + 0.3 * b.random(F32, (n, n)))
        y = b.emit("Identity", [x])
        b.emit("Inverse", [y], domain=MS, mag=5)
    elif kind == 1:
        x = b.pick((F32,), rank=(2, 4), mag=10)
        b.emit("BiasSoftmax", [x, b.param(b.random(F32, x.shape))], sources=[x], domain=MS, mag=1,
               attributes={"axis": x.rank - 1, "is_inner_broadcast": 0})
    else:
        if b.opset < 17:
            raise NoFit
        x = b.pick((F32,), rank=(2, 4), mag=8)
        b.emit("SimplifiedLayerNormalization", [x, b.param(b.random(F32, (x.shape[-1],)))], sources=[x], mag=12,
               attributes={"axis": -1, "epsilon": 1e-2})
