# SPDX-License-Identifier: Apache-2.0
"""sonde.precision and --precision: weights of products and convolutions are packed as f32, bf16 or f16; each weight is
rounded once, and whatever is not such a weight stays as it is."""
import json
import os
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import pytest
import sonde
from half_models import KINDS, narrowed, tiles_bytes
from onnx import TensorProto, helper, numpy_helper
from small_models import model, value

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

# Half the distance of neighbours: the largest relative error of a rounded weight; and its largest absolute error below
# the normal numbers.
UNIT = {"f16": (2.0 ** -11, 2.0 ** -25), "bf16": (2.0 ** -8, 2.0 ** -134)}
ZOO = ["tiny_cnn", "tiny_resnet", "tiny_regnet_y", "tiny_mobilenet", "tiny_efficientnet", "tiny_mlp", "tiny_attention",
       "tiny_vit", "tiny_bert", "tiny_gpt2", "tiny_chain", "tiny_loop"]


def random(*shape, seed=0):
    return np.random.default_rng([*shape, seed]).standard_normal(shape).astype(np.float32)


def rounded(x, kind):
    return x.astype(KINDS[kind][1]).astype(np.float32)


def session(proto, precision=None, **entries):
    options = sonde.SessionOptions()
    if precision:
        options.add_session_config_entry("sonde.precision", precision)
    for key, entry in entries.items():
        options.add_session_config_entry(key.replace("__", "."), str(entry))
    return sonde.InferenceSession(proto if isinstance(proto, (str, bytes)) else proto.SerializeToString(), options)


def run(proto, x, precision=None, **entries):
    return session(proto, precision, **entries).run(None, {"x": x} if isinstance(x, np.ndarray) else x)[0]


def packed(proto, precision, path):
    onnx.save(proto, path)
    done = subprocess.run([PROGRAM, "inspect", path, "--precision", precision, "--json", "-", "-q"], check=True,
                          capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["precision"] == precision
    return told["run"]["memory"]["packed"]


def one(nodes, shape, weights, opset=17, dtype=TensorProto.FLOAT, domains=()):
    made = model(nodes, [value("x", dtype, shape)], [value("y", dtype)],
                 [numpy_helper.from_array(w, name) for name, w in weights.items()], opset=opset)
    for domain in domains:
        made.opset_import.append(helper.make_opsetid(domain, 1))
    return made


def attention(w):
    """Its scores are small, so that their exponentials are no less accurate than they are."""
    return one([("Attention", ["x", "w", "b"], ["y"], {"num_heads": 4, "scale": 0.01, "domain": "com.microsoft"})], [2, 5, 32],
               {"w": w, "b": random(96)}, domains=["com.microsoft"])


# name: the shape of the weight, the shape of x, and a model of a weight.
PACKED = {
    "conv": ((32, 16, 3, 3), lambda w: one([("Conv", ["x", "w", "b"], ["y"], {"pads": [1] * 4})], [1, 16, 9, 9],
                                           {"w": w, "b": random(32)})),
    "first conv": ((32, 3, 7, 7), lambda w: one([("Conv", ["x", "w"], ["y"], {"strides": [2, 2]})], [1, 3, 24, 24],
                                                {"w": w})),
    "pointwise": ((64, 32, 1, 1), lambda w: one([("Conv", ["x", "w"], ["y"])], [2, 32, 6, 6], {"w": w})),
    "grouped": ((64, 16, 3, 3), lambda w: one([("Conv", ["x", "w"], ["y"], {"group": 2, "pads": [1] * 4})],
                                              [1, 32, 8, 8], {"w": w})),
    "depthwise": ((32, 1, 3, 3), lambda w: one([("Conv", ["x", "w"], ["y"], {"group": 32})], [1, 32, 8, 8],
                                               {"w": w})),
    "1-D conv": ((32, 16, 3), lambda w: one([("Conv", ["x", "w"], ["y"])], [1, 16, 20], {"w": w})),
    "3-D conv": ((32, 16, 2, 2, 2), lambda w: one([("Conv", ["x", "w"], ["y"])], [1, 16, 5, 5, 5], {"w": w})),
    "opset 7 conv": ((32, 16, 3, 3), lambda w: one([("Conv", ["x", "w"], ["y"])], [1, 16, 9, 9], {"w": w}, opset=7)),
    "matmul": ((64, 40), lambda w: one([("MatMul", ["x", "w"], ["y"])], [7, 64], {"w": w})),
    "matmul of rank 3": ((64, 40), lambda w: one([("MatMul", ["x", "w"], ["y"])], [3, 7, 64], {"w": w})),
    "batched matmul": ((3, 64, 40), lambda w: one([("MatMul", ["x", "w"], ["y"])], [3, 7, 64], {"w": w})),
    "gemm": ((40, 64), lambda w: one([("Gemm", ["x", "w", "b"], ["y"], {"transB": 1})], [7, 64],
                                     {"w": w, "b": random(40)})),
    "opset 9 gemm": ((64, 40), lambda w: one([("Gemm", ["x", "w", "b"], ["y"])], [7, 64], {"w": w, "b": random(40)},
                                             opset=9)),
    "fused gemm": ((40, 64), lambda w: one([("Gemm", ["x", "w", "b"], ["a"], {"transB": 1}), ("Relu", ["a"], ["y"])],
                                           [7, 64], {"w": w, "b": random(40)})),
    "attention": ((32, 96), attention),
}
# Weights that are packed in f32, and for products in bf16 where the CPU has these (test_bf16.py), but not in f16.
ROWS = {
    "conv transpose": ((16, 32, 3, 3), lambda w: one([("ConvTranspose", ["x", "w"], ["y"])], [1, 16, 6, 6],
                                                     {"w": w})),
}
# Weights that no kernel reads packed.
PLAIN = {
    "vector": ((48,), lambda w: one([("MatMul", ["x", "w"], ["y"])], [7, 48], {"w": w})),
}


def x_of(proto):
    """Numbers of bf16, so that it does not matter whether a CPU rounds both sides of a product to that."""
    return rounded(random(*(d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim), seed=1), "bf16")


def close(got, want, scale, layers=0):
    """Equal but for the order of sums in f32, of fewer than 1000 numbers, and for what so many products lose if their
    left sides are rounded to bf16."""
    unit = 1000 * 2.0 ** -24 + layers * UNIT["bf16"][0]
    return np.abs(np.asarray(got, np.float64) - want).max() <= unit * max(1.0, float(np.abs(scale).max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PACKED)
def test_each_weight_is_rounded_once(name, kind):
    shape, make = PACKED[name]
    w = random(*shape)
    x = x_of(make(w))
    got = run(make(w), x, kind)
    # The products of attention itself may be in bf16, too.
    layers = 2 if name == "attention" and kind == "bf16" else 0
    assert close(got, run(make(rounded(w, kind)), x), got, layers)
    assert got.tolist() != run(make(w), x).tolist()


@pytest.mark.parametrize("name", [n for n in PACKED if n.endswith(("matmul", "gemm")) or "matmul" in n])
def test_products_in_bf16_round_both_sides_or_the_weights_only(name):
    """Both on CPUs that multiply bf16 (AMX); sums are f32 everywhere."""
    shape, make = PACKED[name]
    w = random(*shape)
    x = random(*x_of(make(w)).shape, seed=2)
    got = run(make(w), x, "bf16")
    assert any(close(got, run(make(rounded(w, "bf16")), v), got) for v in (x, rounded(x, "bf16")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in PACKED if n not in ("attention", "fused gemm")])
def test_the_error_is_that_of_the_weights(name, kind):
    """|y' - y| <= sum |x| |w' - w|, element by element."""
    shape, make = PACKED[name]
    w = random(*shape)
    proto = make(w)
    x = x_of(proto)
    got, want = run(proto, x, kind), run(proto, x)
    relative, absolute = UNIT[kind]
    bound = run(make(relative * np.abs(w) + absolute), np.abs(x))  # a bias only makes it larger by at most its own:
    bias = next((numpy_helper.to_array(i) for i in proto.graph.initializer if i.name == "b"), None)
    if bias is not None:
        bound = bound - (bias[:, None, None] if bound.ndim == 4 else bias)
    slack = 1000 * 2.0 ** -24 * max(1.0, float(np.abs(want).max()))  # sums in another order
    assert (np.abs(got.astype(np.float64) - want) <= bound + slack).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PACKED)
def test_packed_weights_take_half_the_memory(name, kind, tmp_path):
    shape, make = PACKED[name]
    proto = make(random(*shape))
    wide, narrow = (packed(proto, p, tmp_path / "m.onnx") for p in ("file", kind))
    assert 0 < narrow <= max(wide / 2, tiles_bytes(shape)) + 64  # a weight begins at a multiple of 64 bytes
    assert wide == packed(proto, "f32", tmp_path / "m.onnx")
    assert packed(proto, "auto", tmp_path / "m.onnx") in (wide, packed(proto, "bf16", tmp_path / "m.onnx"))


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16", "auto"])
@pytest.mark.parametrize("name", PLAIN)
def test_weights_that_are_not_packed_stay(name, precision, tmp_path):
    shape, make = PLAIN[name]
    proto = make(random(*shape))
    x = x_of(proto)
    assert packed(proto, precision, tmp_path / "m.onnx") == 0
    assert run(proto, x, precision).tolist() == run(proto, x).tolist()


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
def test_without_packing_nothing_changes(precision):
    shape, make = PACKED["conv"]
    proto = make(random(*shape))
    x = x_of(proto)
    off = {"session__disable_prepacking": 1}
    assert run(proto, x, precision, **off).tolist() == run(proto, x, **off).tolist()


@pytest.mark.parametrize("precision", ["file", "f32"])
@pytest.mark.parametrize("name", PACKED)
def test_f32_files_are_not_changed_by_other_names_of_their_type(name, precision):
    shape, make = PACKED[name]
    proto = make(random(*shape))
    x = x_of(proto)
    assert run(proto, x, precision).tolist() == run(proto, x).tolist()


@pytest.mark.parametrize("name", PACKED)
def test_auto_is_bf16_or_f32(name):
    shape, make = PACKED[name]
    proto = make(random(*shape))
    x = x_of(proto)
    assert run(proto, x, "auto").tolist() in (run(proto, x, "bf16").tolist(), run(proto, x, "f32").tolist())


# ---------------------------------------------------------------------- files in 16 bits

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*PACKED, *PLAIN, *ROWS])
def test_narrow_files_in_f32_compute_the_same(name, kind, tmp_path):
    shape, make = {**PACKED, **PLAIN, **ROWS}[name]
    proto = narrowed(make(random(*shape)), kind)
    if kind == "bf16" and proto.opset_import[0].version < 13:
        pytest.skip("there was no bf16 then")
    x = x_of(proto).astype(KINDS[kind][1])
    got, want = run(proto, x, "f32"), run(proto, x)
    assert got.dtype == want.dtype == KINDS[kind][1]
    eps = 2 * UNIT[kind][0]  # the output is rounded, from sums in another order
    assert np.abs(got.astype(np.float64) - want.astype(np.float64)).max() <= eps * np.abs(want.astype(np.float64)).max()
    sizes = [packed(proto, p, tmp_path / "m.onnx") for p in ("file", "f32")]
    if name in ROWS:
        assert sizes[1] > 0
    else:
        assert sizes[1] == 0 if name in PLAIN else 0 < sizes[0] <= max(sizes[1] / 2, tiles_bytes(shape)) + 64


@pytest.mark.parametrize("name", PACKED)
def test_f16_files_in_bf16_and_back(name):
    shape, make = PACKED[name]
    for kind, other in (("f16", "bf16"), ("bf16", "f16")):
        if name.startswith("opset"):
            continue
        w = rounded(random(*shape), kind)
        x = x_of(make(w)).astype(KINDS[kind][1])
        got = run(narrowed(make(w), kind), x, other)
        want = run(narrowed(make(rounded(w, other)), kind), x, "f32") if kind == "f16" else run(narrowed(make(w), kind), x)
        eps = 2 * UNIT[kind][0] + (2 * UNIT["bf16"][0] if name == "attention" and other == "bf16" else 0)
        scale = np.abs(want.astype(np.float64)).max()
        # What is rounded to bf16 is an f16 number again unless it has become subnormal: weights of 2^-14 are rare.
        assert got.dtype == want.dtype == KINDS[kind][1]
        assert np.abs(got.astype(np.float64) - want.astype(np.float64)).max() <= eps * scale + 2.0 ** -20


# ---------------------------------------------------------------------- numbers beyond the range

@pytest.mark.parametrize("number", [65520.0, -1e30, np.inf, np.nan])
@pytest.mark.parametrize("name", PACKED)
def test_a_weight_beyond_the_range_of_f16_stays_f32(name, number, tmp_path):
    shape, make = PACKED[name]
    w = random(*shape)
    w.flat[-1] = number
    proto = make(w)
    x = x_of(proto)
    assert np.array_equal(run(proto, x, "f16"), run(proto, x), equal_nan=True)
    assert packed(proto, "f16", tmp_path / "m.onnx") == packed(proto, "file", tmp_path / "m.onnx")


def test_the_largest_numbers_that_fit_are_kept():
    w = random(64, 40)
    w.flat[:2] = 65519.99, -65504
    proto = PACKED["matmul"][1](w)
    x = x_of(proto)
    got = run(proto, x, "f16")
    assert np.isfinite(got).all() and close(got, run(PACKED["matmul"][1](rounded(w, "f16")), x), got)


def test_what_bf16_would_make_infinite_stays_f32():
    w = random(64, 40)
    w.flat[5] = np.finfo(np.float32).max
    proto = PACKED["matmul"][1](w)
    x = x_of(proto) * 0.01
    assert np.isfinite(run(proto, x, "bf16")).all()
    assert run(proto, x, "bf16").tolist() == run(proto, x).tolist()


def test_a_bf16_weight_beyond_f16_stays_bf16(tmp_path):
    w = random(64, 40)
    w.flat[5] = 1e6
    proto = narrowed(PACKED["matmul"][1](w), "bf16")
    x = x_of(proto).astype(ml_dtypes.bfloat16)
    assert run(proto, x, "f16").tolist() == run(proto, x).tolist()
    assert packed(proto, "f16", tmp_path / "m.onnx") == packed(proto, "file", tmp_path / "m.onnx")


def two_products(a, b):
    return one([("MatMul", ["x", "a"], ["h"]), ("MatMul", ["h", "b"], ["y"])], [7, 64], {"a": a, "b": b})


def test_it_is_decided_for_each_weight(tmp_path):
    a, b = random(64, 64), random(64, 64, seed=3)
    b[3, 4] = 1e5
    x = rounded(random(7, 64), "bf16")
    got = run(two_products(a, b), x, "f16")
    assert close(got, run(two_products(rounded(a, "f16"), b), x), got)
    sizes = [packed(two_products(a, w), "f16", tmp_path / "m.onnx") for w in (np.clip(b, -9, 9), b)]
    assert sizes[1] * 2 == sizes[0] * 3


def test_the_scale_of_a_normalisation_counts(tmp_path):
    """Folded into a convolution, it takes weights out of the range, or into it."""
    def scaled(w, by):
        ones, zeros = np.ones(32, np.float32), np.zeros(32, np.float32)
        return one([("Conv", ["x", "w"], ["c"]), ("BatchNormalization", ["c", "s", "z", "z", "o"], ["y"], {"epsilon": 0.0})],
                   [1, 32, 9, 9], {"w": w, "s": ones * np.float32(by), "z": zeros, "o": ones})
    w = random(32, 32, 3, 3)
    x = rounded(random(1, 32, 9, 9), "bf16")
    for weights, by, fits in ((w, 2.0 ** 18, False), (w * np.float32(2.0 ** 18), 2.0 ** -18, True)):
        proto = scaled(weights, by)
        got, want = run(proto, x, "f16"), run(proto, x)
        sizes = [packed(proto, p, tmp_path / "m.onnx") for p in ("f16", "file")]
        assert sizes[0] * (2 if fits else 1) == sizes[1]
        assert (got.tolist() != want.tolist()) == fits
        if fits:
            assert close(got, run(one([("Conv", ["x", "w"], ["y"])], [1, 32, 9, 9], {"w": rounded(w, "f16")}), x), got)


@pytest.mark.parametrize("kind", ["file of f16", "f16", "bf16"])
@pytest.mark.parametrize("name", ["matmul", "conv", "pointwise", "first conv", "grouped"])
def test_an_infinity_stays_one(name, kind):
    """f16 is split into two of bf16: an infinity in one of them must not meet a zero in the other."""
    shape, make = PACKED[name]
    proto = make(rounded(np.abs(random(*shape)) + 0.5, "bf16"))
    dims = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    if name == "matmul":
        dims = [70, 64]
        proto = one([("MatMul", ["x", "w"], ["y"])], dims, {"w": rounded(np.abs(random(64, 40)) + 0.5, "bf16")})
    x = rounded(np.abs(random(*dims)), "bf16")
    x.flat[x.size // 2] = np.inf
    if kind == "file of f16":
        proto, x = narrowed(proto, "f16"), x.astype(np.float16)
    want = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})[0]
    got = run(proto, x, None if kind == "file of f16" else kind)
    if name == "grouped":  # groups that are computed together share what is not finite
        assert not np.isfinite(got[~np.isfinite(want)]).any()
    else:
        assert (np.isposinf(got) == np.isposinf(want)).all() and not np.isnan(got).any()


@pytest.mark.parametrize("where", ["initializer", "constant", "folded", "body"])
def test_a_process_of_its_own_may_use_what_f16_needs(where, tmp_path):
    """AMX has to be asked for, once in a process, wherever the weights of f16 are. In this process others did."""
    w = random(64, 48).astype(np.float16)
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    half, boolean = TensorProto.FLOAT16, TensorProto.BOOL
    nodes, weights, inputs = [product], [numpy_helper.from_array(w, "w")], [value("x", half, [128, 64])]
    if where == "constant":
        nodes, weights = [helper.make_node("Constant", [], ["w"], value=weights[0]), product], []
    elif where == "folded":
        nodes = [helper.make_node("Cast", ["wide"], ["w"], to=half), product]
        weights = [numpy_helper.from_array(w.astype(np.float32), "wide")]
    elif where == "body":
        body = helper.make_graph(nodes, "body", [], [value("y", half, [128, 48])], weights)
        nodes, weights = [helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)], []
        inputs.append(value("c", boolean, []))
    graph = helper.make_graph(nodes, "g", inputs, [value(nodes[-1].output[0], half, [128, 48])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    done = subprocess.run([PROGRAM, "run", tmp_path / "m.onnx", "-t", "1", "-q"], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


@pytest.mark.parametrize("channels", [32, 24])
@pytest.mark.parametrize("gated", [False, True])
def test_images_between_convolutions_when_one_has_to_stay_f32(gated, channels):
    """Images may lie in memory as bf16; a convolution whose weights do not fit bf16 reads and writes them all the same."""
    w = [random(channels, channels, 1, 1, seed=i) for i in range(4)]
    w[1][3, 5] = np.finfo(np.float32).max
    nodes = [("Conv", ["x", "w0"], ["a"]), ("Relu", ["a"], ["b"])]
    if gated:
        nodes += [("GlobalAveragePool", ["x"], ["p"]), ("Conv", ["p", "w2"], ["q"]), ("Sigmoid", ["q"], ["s"]),
                  ("Mul", ["b", "s"], ["g"])]
    nodes += [("Conv", ["g" if gated else "b", "w1"], ["c"]), ("Add", ["c", "b"], ["d"]),
              ("Clip", ["d", "lo", "hi"], ["e"]), ("Conv", ["e", "w3"], ["y"])]
    proto = one(nodes, [1, channels, 9, 9], {**{f"w{i}": v for i, v in enumerate(w)}, "lo": np.float32(-4), "hi": np.float32(4)})
    x = random(1, channels, 9, 9, seed=7)
    got, want = run(proto, x, "bf16"), run(proto, x)
    assert np.isfinite(got).all()
    assert np.abs(got - want).max() <= 4 * UNIT["bf16"][0] * np.abs(want).max()


# ---------------------------------------------------------------------- graphs

@pytest.mark.parametrize("precision", ["f32", "bf16", "f16", "auto"])
@pytest.mark.parametrize("name", ZOO)
def test_whole_models(zoo, name, precision):
    proto = zoo(name)
    ours, file = session(proto, precision), session(proto)
    x = file.random_inputs(3)
    layers = sum(n.op_type in ("Conv", "MatMul", "Gemm") for n in proto.graph.node) or 1
    unit = UNIT["bf16" if precision == "auto" else precision][0] if precision != "f32" else 0.0
    for got, want in zip(ours.run(None, x), file.run(None, x), strict=True):
        if want.dtype != np.float32:
            continue
        scale = max(1.0, float(np.abs(want).max()))
        assert np.abs(got - want).max() <= layers * unit * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", ["tiny_cnn", "tiny_mobilenet", "tiny_efficientnet", "tiny_bert", "tiny_vit"])
def test_whole_narrow_models(zoo, name, precision, kind):
    proto = narrowed(zoo(name), kind)
    ours, file = session(proto, precision), session(proto)
    x = file.random_inputs(3)
    layers = sum(n.op_type in ("Conv", "MatMul", "Gemm") for n in proto.graph.node)
    unit = max(UNIT[kind][0], UNIT[precision][0] if precision in UNIT else 0.0)
    for got, want in zip(ours.run(None, x), file.run(None, x), strict=True):
        got, want = (np.asarray(v, np.float64) for v in (got, want))
        assert np.abs(got - want).max() <= layers * unit * max(1.0, np.abs(want).max())


def if_model(w, v):
    """Both bodies have a product; one's weight is of the graph around, the other's its own."""
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"])], "then", [], [value("t")])
    other = helper.make_graph([helper.make_node("MatMul", ["x", "v"], ["e"])], "else", [], [value("e")],
                              [numpy_helper.from_array(v, "v")])
    return model([("If", ["c"], ["y"], {"then_branch": then, "else_branch": other})],
                 [value("x", shape=[7, 64]), value("c", TensorProto.BOOL, [])], [value("y")],
                 [numpy_helper.from_array(w, "w")], opset=17)


def loop_model(w):
    body = helper.make_graph(
        [helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["n"]),
         helper.make_node("Identity", ["go"], ["on"])], "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("h")],
        [value("on", TensorProto.BOOL, []), value("n")])
    return model([("Loop", ["m", "", "x"], ["y"], {"body": body})], [value("x", shape=[7, 64])], [value("y")],
                 [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array(3, np.int64), "m")], opset=17)


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_of_control_flow(kind, tmp_path):
    w, v, x = random(64, 64) / 8, random(64, 64, seed=2) / 8, rounded(random(7, 64), "bf16")
    proto, twin = if_model(w, v), if_model(rounded(w, kind), rounded(v, kind))
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        got = run(proto, feeds, kind)
        assert close(got, run(twin, feeds), got) and got.tolist() != run(proto, feeds).tolist()
    assert packed(proto, kind, tmp_path / "m.onnx") * 2 == packed(proto, "file", tmp_path / "m.onnx") > 0
    got = run(loop_model(w), x, kind)
    assert close(got, run(loop_model(rounded(w, kind)), x), got, 3 if kind == "bf16" else 0)
    assert got.tolist() != run(loop_model(w), x).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_steps_whose_shapes_depend_on_data(kind):
    def picked(w):
        return one([("NonZero", ["x"], ["i"]), ("Cast", ["i"], ["f"], {"to": TensorProto.FLOAT}),
                    ("Transpose", ["f"], ["t"]), ("MatMul", ["t", "w"], ["y"])], [4, 5], {"w": w})
    w, x = random(2, 40), (random(4, 5) > 0).astype(np.float32)
    got = run(picked(w), x, kind)
    assert close(got, run(picked(rounded(w, kind)), x), got) and got.tolist() != run(picked(w), x).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_tied_weight_is_rounded_where_it_is_multiplied_only(kind):
    table = random(50, 16)

    def tied(head):
        return model([("Gather", ["t", "i"], ["e"]), ("Transpose", ["t"], ["tt"], {"perm": [1, 0]}),
                      ("MatMul", ["e", "tt"], ["y"])], [value("i", TensorProto.INT64, [3])], [value("y"), value("e")],
                     [numpy_helper.from_array(head, "t")], opset=17)
    rows = np.array([4, 0, 49])
    y, e = session(tied(table), kind).run(None, {"i": rows})
    assert e.tolist() == table[rows].tolist()
    head = rounded(table, kind).T.astype(np.float64)
    want = [t[rows].astype(np.float64) @ head for t in (table, rounded(table, "bf16"))]
    assert close(y, want[0], y) or (kind == "bf16" and close(y, want[1], y))


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_that_is_read_in_two_ways(kind):
    """By a product, by one that transposes it, and by an addition, which needs it as it is."""
    w, x = random(32, 32), random(7, 32)

    def proto(a, b):
        shared = a is b
        return one([("MatMul", ["x", "w"], ["p"]), ("Gemm", ["p", "w" if shared else "r"], ["q"], {"transB": 1}),
                    ("MatMul", ["q", "w"], ["m"]), ("ReduceSum", ["u" if not shared else "w"], ["s"], {"keepdims": 0}),
                    ("Add", ["m", "s"], ["y"])], [7, 32], {"w": a} if shared else {"w": a, "r": a, "u": b})
    got = run(proto(w, w), x, kind)
    assert close(got, run(proto(rounded(w, kind), w), x), got, 3 if kind == "bf16" else 0)
    assert got.tolist() != run(proto(w, w), x).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0, 2])
def test_weights_in_other_files(kind, offset, tmp_path):
    """At an address that is a multiple of four, and at another one."""
    shape, make = PACKED["conv"]
    w = random(*shape)
    proto = make(w)
    x = x_of(proto)
    (tmp_path / "data.bin").write_bytes(bytes(offset) + w.tobytes())
    tensor = next(t for t in proto.graph.initializer if t.name == "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "data.bin"), ("offset", str(offset)), ("length", str(w.nbytes))):
        tensor.external_data.add(key=key, value=text)
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    for entries in ({}, {"sonde__no_mmap": 1}, {"sonde__weights_cache": tmp_path / "cache"},
                    {"sonde__weights_cache": tmp_path / "cache"}):
        got = run(str(path), x, kind, **entries)
        assert got.tolist() == run(make(w), x, kind).tolist()


def test_equal_bits_of_two_types_are_two_weights_in_the_cache(tmp_path):
    bits = np.random.default_rng(0).integers(0x3c00, 0x3f00, (48, 40)).astype(np.uint16)
    cache = {"sonde__weights_cache": tmp_path}
    x = np.full((7, 48), 0.5, np.float32)
    for kind, (number, dtype) in KINDS.items():
        proto = one([("MatMul", ["x", "w"], ["y"])], [7, 48], {"w": bits.view(dtype)}, dtype=number)
        want, got = run(proto, x.astype(dtype), "f32"), run(proto, x.astype(dtype), "f32", **cache)
        assert got.tolist() == want.tolist()


# ---------------------------------------------------------------------- what people type

def test_names_that_mean_nothing_are_refused():
    proto = PACKED["matmul"][1](random(64, 40))
    for name in ("int8", "F16", "fp8", " f16"):
        with pytest.raises(sonde.InvalidArgument, match="expected one of file, f32, bf16, f16, auto"):
            session(proto, name)


def test_the_profile_of_a_session_says_it():
    proto = PACKED["matmul"][1](random(64, 40))
    x = x_of(proto)
    with sonde.profile() as recorded:
        run(proto, x, "f16")
    assert recorded.summary()["precision"] == "f16"


def test_the_program_says_it_in_its_summary():
    done = subprocess.run([PROGRAM, "profile", "zoo:tiny_mlp", "-n", "2", "--precision", "bf16", "--json", "-", "-q"],
                          check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["machine"]["precision"] == "bf16"


def test_a_weight_that_several_steps_read_is_looked_at_once():
    """Whether it fits the type is remembered for steps of the graph and of its bodies."""
    w = numpy_helper.from_array(random(64, 64, seed=3) / 8, "w")
    z = value("z", shape=[2, 64])
    bodies = [helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["z"])],
                                name, [], [z]) for name in ("then", "else")]
    nodes = [("MatMul", ["x", "w"], ["a"]), ("MatMul", ["a", "w"], ["b"]),
             ("If", ["c"], ["d"], {"then_branch": bodies[0], "else_branch": bodies[1]}), ("Add", ["b", "d"], ["y"])]
    proto = model(nodes, [value("x", shape=[2, 64]), value("c", TensorProto.BOOL, [])], [value("y", shape=[2, 64])], [w])
    feeds = {"x": random(2, 64), "c": np.array(True)}
    want = session(proto).run(None, feeds)[0]
    # Two products in a row: what each reads, and its weights, are rounded by at most 2^-9 of themselves, four times.
    for kind in ("bf16", "f16"):
        np.testing.assert_allclose(session(proto, kind).run(None, feeds)[0], want, rtol=0, atol=2**-7 * np.abs(want).max())


@pytest.mark.parametrize("case", ["convolutions", "a sine between", "twice", "an output", "a pool"])
def test_images_that_are_joined_are_all_stored_alike(case):
    """Concat moves images of bf16 if all its neighbours know them, else all stay f32: either way the result is close."""
    weights = {n: random(*s, seed=i) / 6 for i, (n, s) in enumerate(
        {"w0": (16, 8, 3, 3), "w1": (32, 16, 1, 1), "w2": (16, 16, 3, 3), "w3": (16, 48, 1, 1), "w4": (16, 64, 1, 1)}.items())}
    pad = {"pads": [1, 1, 1, 1]}
    nodes = [("Conv", ["x", "w0"], ["a"], pad), ("Conv", ["a", "w1"], ["b"]), ("Conv", ["a", "w2"], ["c"], pad)]
    outputs = ["y"]
    if case == "a sine between":
        nodes += [("Sin", ["c"], ["d"]), ("Concat", ["b", "d"], ["j"], {"axis": 1}), ("Conv", ["j", "w3"], ["y"])]
    elif case == "twice":
        nodes += [("Concat", ["b", "c"], ["i"], {"axis": 1}), ("Concat", ["a", "i"], ["j"], {"axis": -3}),
                  ("Conv", ["j", "w4"], ["y"])]
    elif case == "a pool":
        pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]}
        nodes += [("MaxPool", ["c"], ["d"], pool), ("Concat", ["b", "d"], ["j"], {"axis": 1}), ("Conv", ["j", "w3"], ["y"])]
    else:
        nodes += [("Concat", ["b", "c"], ["j"], {"axis": 1}), ("Conv", ["j", "w3"], ["y"])]
        outputs += ["j"] if case == "an output" else []
    proto = model(nodes, [value("x", shape=[1, 8, 9, 11])], [value(n) for n in outputs],
                  [numpy_helper.from_array(w, n) for n, w in weights.items()])
    x = {"x": random(1, 8, 9, 11, seed=9)}
    # Three convolutions in a row: images and weights are rounded by at most 2^-9 of themselves, six times.
    for got, want in zip(session(proto, "bf16").run(None, x), session(proto).run(None, x)):
        np.testing.assert_allclose(got, want, rtol=0, atol=6 * 2**-9 * np.abs(want).max())
