# SPDX-License-Identifier: Apache-2.0
"""--precision bf16 on a CPU with AMX, beyond images: convolutions of one and three dims, transposed ones, products of two
activations, and the input of recurrent layers. Both sides of a product are rounded to bf16, once, to nearest even; sums
are f32. So a result is that of f32 for operands that were rounded before, but for the order of sums."""
import itertools

import numpy as np
import onnx
import pytest
import sonde
from half_models import KINDS, narrowed
from onnx import TensorProto, helper, numpy_helper
from small_models import model, value

EPS = 2.0 ** -24  # half of what a number of f32 may be rounded by, relative to it


def random(*shape, seed=0):
    return np.random.default_rng([*shape, seed]).standard_normal(shape).astype(np.float32)


def rounded(x):
    return x.astype(KINDS["bf16"][1]).astype(np.float32)


def session(proto, precision, threads=1, **entries):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = threads
    for key, entry in {"sonde__precision": precision, **entries}.items():
        options.add_session_config_entry(key.replace("__", "."), str(entry))
    return sonde.InferenceSession(proto.SerializeToString(), options)


def run(proto, feeds, precision="f32", threads=1, **entries):
    return session(proto, precision, threads, **entries).run(None, feeds)


def kernels(proto, feeds, precision="bf16"):
    s = session(proto, precision)
    with sonde.profile() as recorded:
        s.run(None, feeds)
    return [row["kernel"] for row in recorded.rows()]


def small(nodes, feeds, weights, opset=17):
    """A model of these nodes, all of whose outputs are called y…"""
    outputs = [o for n in nodes for o in n[2] if o.startswith("y")]
    return model(nodes, [value(name, shape=list(x.shape)) for name, x in feeds.items()], [value(o) for o in outputs],
                 [numpy_helper.from_array(w, name) for name, w in weights.items()], opset=opset)


def has_tiles():
    a, b = random(64, 64), random(64, 64, seed=1)
    proto = small([("MatMul", ["a", "b"], ["y"])], {"a": a}, {"b": b})
    return any("amx" in k for k in kernels(proto, {"a": a}))


@pytest.fixture(scope="module")
def tiles():
    if not has_tiles():
        pytest.skip("this CPU does not multiply bf16")


def check(make, feeds, weights, multiplied, threads=(1, 2)):
    """`multiplied`: names of the operands that are rounded. A sum in another order may differ by a few roundings of f32,
    64 are allowed: 2^-18 of all terms. Sums in bf16 would differ by 2^-9, operands that are rounded once more or not at all
    by 2^-10 of a term on average."""
    proto = make(weights)
    twin = {k: rounded(w) if k in multiplied else w for k, w in weights.items()}
    x = {k: rounded(v) if k in multiplied else v for k, v in feeds.items()}
    want, plain = run(make(twin), x)[0].astype(np.float64), run(proto, feeds)[0]
    # Sums of the magnitudes of all terms: what errors of f32 are relative to.
    scale = run(make({k: np.abs(w) for k, w in weights.items()}), {k: np.abs(v) for k, v in feeds.items()})[0]
    for t in threads:
        got = run(proto, feeds, "bf16", t)[0]
        assert got.dtype == np.float32 and got.shape == want.shape
        assert np.isfinite(got).all()
        assert (np.abs(got - want) <= 64 * EPS * scale + 1e-30).all(), np.abs((got - want) / (scale + 1e-30)).max() / EPS
        assert got.tolist() != plain.tolist()
        # And it is as far from f32 as rounding both sides allows, element by element.
        assert (np.abs(got - plain) <= 2.01 * 2.0 ** -8 * scale + 1e-30).all()


# ---------------------------------------------------------------------- convolutions

CONVS = {  # shape of x, shape of the weight, attributes
    "1-D": ((2, 24, 50), (40, 24, 3), {"pads": [1, 1]}),
    "1-D odd": ((1, 7, 37), (13, 7, 5), {"pads": [3, 0], "strides": [2]}),
    "1-D dilated": ((3, 33, 61), (17, 33, 3), {"pads": [4, 4], "dilations": [4]}),
    "1-D one channel": ((1, 1, 400), (32, 1, 10), {"strides": [5]}),
    "1-D one result": ((1, 16, 9), (20, 16, 9), {}),
    "1-D pointwise": ((2, 64, 33), (48, 64, 1), {}),
    "1-D grouped": ((2, 36, 45), (24, 9, 3), {"group": 4, "pads": [1, 1]}),
    "1-D long": ((1, 16, 3000), (16, 16, 7), {"pads": [3, 3]}),
    "1-D depthwise": ((2, 19, 70), (19, 1, 31), {"group": 19, "pads": [15, 15]}),
    "1-D two filters a channel": ((1, 8, 40), (16, 1, 3), {"group": 8}),
    "3-D": ((1, 20, 5, 6, 7), (24, 20, 3, 3, 3), {"pads": [1] * 6}),
    "3-D strided": ((2, 5, 7, 9, 11), (18, 5, 3, 2, 3), {"pads": [1, 0, 2, 0, 1, 1], "strides": [2, 1, 3]}),
    "3-D dilated and grouped": ((1, 12, 6, 8, 20), (10, 6, 2, 3, 3), {"group": 2, "dilations": [2, 1, 3]}),
    "3-D depthwise": ((1, 6, 4, 9, 9), (6, 1, 3, 3, 3), {"group": 6, "pads": [1] * 6}),
    "2-D in odd groups": ((1, 21, 9, 11), (15, 7, 3, 3), {"group": 3, "pads": [1] * 4}),
}


# Groups of so few channels are computed as depthwise ones are: in f32, with weights in bf16.
BY_CHANNELS = {"1-D depthwise", "1-D grouped", "1-D two filters a channel", "2-D in odd groups"}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", CONVS)
def test_convolutions_of_plain_tensors(tiles, name, bias):
    shape, weight, attributes = CONVS[name]
    x = {"x": random(*shape, seed=1)}
    weights = {"w": random(*weight), **({"b": random(weight[0])} if bias else {})}

    def make(w):
        return small([("Conv", ["x", *w], ["y"], attributes)], x, w)
    by_channels = name in BY_CHANNELS
    check(make, x, weights, {"w"} if by_channels else {"x", "w"})
    expected = "bf16_conv" if not by_channels else "f32_depthwise" if "depthwise" in name else "f32_groups"
    assert any(expected in k for k in kernels(make(weights), x))


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid", "Tanh"])
def test_what_follows_a_convolution_is_f32(tiles, activation):
    x, w, b = {"x": random(2, 24, 50, seed=1)}, random(24, 24, 3) / 8, random(24)

    def make(weight):
        return small([("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1]}), ("Add", ["c", "x"], ["s"]),
                      (activation, ["s"], ["y"])], x, {"w": weight, "b": b})
    got = run(make(w), x, "bf16")[0]
    conv = run(small([("Conv", ["x", "w", "b"], ["y"], {"pads": [1, 1]})], x, {"w": rounded(w), "b": b}),
               {"x": rounded(x["x"])})[0]
    s = (conv + x["x"]).astype(np.float64)  # the residual is not rounded
    want = {"Relu": np.maximum(s, 0), "Sigmoid": 1 / (1 + np.exp(-s)), "Tanh": np.tanh(s)}[activation]
    assert np.abs(got - want).max() <= 1e-5


TRANSPOSED = {
    "1-D": ((1, 40, 30), (40, 12, 4), {"strides": [2], "pads": [1, 1]}),
    "1-D odd": ((2, 17, 23), (17, 5, 7), {"strides": [3], "dilations": [2], "output_padding": [1]}),
    "2-D small": ((2, 48, 5, 7), (48, 9, 3, 3), {"strides": [2, 2], "pads": [1] * 4}),
    "2-D large": ((1, 20, 31, 33), (20, 11, 3, 2), {"strides": [1, 2]}),
    "2-D grouped": ((1, 40, 20, 19), (40, 7, 2, 2), {"group": 2, "strides": [2, 2]}),
    "2-D grouped small": ((2, 51, 6, 5), (51, 6, 3, 3), {"group": 3}),
    "2-D chunks": ((1, 32, 64, 65), (32, 19, 3, 3), {"strides": [2, 2], "pads": [1] * 4}),
    "3-D": ((1, 24, 4, 5, 6), (24, 10, 2, 2, 2), {"strides": [2, 2, 2]}),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(tiles, name, bias):
    shape, weight, attributes = TRANSPOSED[name]
    x = {"x": random(*shape, seed=1)}
    weights = {"w": random(*weight), **({"b": random(weight[1] * attributes.get("group", 1))} if bias else {})}

    def make(w):
        return small([("ConvTranspose", ["x", *w], ["y"], attributes)], x, w)
    check(make, x, weights, {"x", "w"})


def test_weights_that_bf16_cannot_hold_stay_f32(tiles):
    for op, weight in itertools.product(("Conv", "ConvTranspose"), ((24, 24, 3),)):
        w = random(*weight)
        w[3, 4, 1] = np.finfo(np.float32).max
        x = {"x": random(1, 24, 20) * np.float32(0.01)}
        proto = small([(op, ["x", "w"], ["y"])], x, {"w": w})
        assert np.isfinite(run(proto, x)[0]).all()
        # A transposed one in f32 adds in another order.
        np.testing.assert_allclose(run(proto, x, "bf16")[0], run(proto, x)[0], rtol=0 if op == "Conv" else 1e-5,
                                   atol=0 if op == "Conv" else 1e-5)


# ---------------------------------------------------------------------- products of activations

PRODUCTS = {  # shapes of both sides
    "matrices": ((64, 96), (96, 80)),
    "odd": ((33, 51), (51, 67)),
    "heads": ((2, 3, 65, 33), (2, 3, 33, 49)),
    "one left side": ((70, 40), (3, 40, 50)),
    "one right side": ((3, 70, 40), (40, 50)),
    "both repeated": ((2, 1, 40, 48), (1, 3, 48, 64)),
    "vectors of the batch": ((5, 40, 600), (5, 600, 20)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_activations(tiles, name):
    a, b = PRODUCTS[name]
    feeds = {"a": random(*a, seed=1), "b": random(*b, seed=2)}
    check(lambda w: small([("MatMul", ["a", "b"], ["y"])], feeds, w), feeds, {}, {"a", "b"})


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm_of_activations(tiles, trans_a, trans_b):
    feeds = {"a": random(*((90, 70) if trans_a else (70, 90)), seed=1),
             "b": random(*((80, 90) if trans_b else (90, 80)), seed=2), "c": random(80)}
    check(lambda w: small([("Gemm", ["a", "b", "c"], ["y"], {"transA": trans_a, "transB": trans_b, "alpha": 0.5})], feeds, w),
          feeds, {}, {"a", "b"})


EQUATIONS = {
    "ij,jk->ik": ((40, 50), (50, 60)),
    "bqhd,bkhd->bhqk": ((2, 33, 3, 40), (2, 35, 3, 40)),
    "bhqk,bkhd->bqhd": ((2, 3, 33, 35), (2, 35, 3, 40)),
    "btd,dhk->bthk": ((2, 30, 64), (64, 3, 20)),
    "bij,bjk": ((3, 40, 33), (3, 33, 40)),
    "...ij,...kj->...ki": ((2, 3, 40, 33), (2, 3, 50, 33)),
    "aij,bij->ab": ((40, 9, 7), (44, 9, 7)),
    "ij,kj->ki": ((60, 64), (50, 64)),
    "bij,jk->bik": ((1, 40, 50), (50, 60)),
    "iij,jk->ik": ((40, 40, 50), (50, 60)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_of_two_matrices(tiles, equation):
    a, b = EQUATIONS[equation]
    feeds = {"a": random(*a, seed=1), "b": random(*b, seed=2)}

    def make(w):
        return small([("Einsum", ["a", "b"], ["y"], {"equation": equation})], feeds, w)
    check(make, feeds, {}, {"a", "b"})
    assert any(k.startswith("bf16_gemm") for k in kernels(make({}), feeds))


@pytest.mark.parametrize("equation, a, b", [("ij,jk->i", (64, 64), (64, 64)), ("ijl,jk->ik", (64, 64, 2), (64, 64)),
                                            ("ij,ij->ij", (64, 64), (64, 64)), ("i,j->ij", (300,), (300,))])
def test_other_equations_stay_f32(equation, a, b):
    feeds = {"a": random(*a, seed=1), "b": random(*b, seed=2)}
    proto = small([("Einsum", ["a", "b"], ["y"], {"equation": equation})], feeds, {})
    assert run(proto, feeds, "bf16")[0].tolist() == run(proto, feeds)[0].tolist()


def test_what_does_not_pay_stays_f32():
    """Few rows, columns or numbers, and matrices of little work."""
    for a, b in (((12, 512), (512, 512)), ((512, 512), (512, 15)), ((512, 15), (15, 512)), ((7, 20, 24), (7, 24, 20))):
        feeds = {"a": random(*a, seed=1), "b": random(*b, seed=2)}
        proto = small([("MatMul", ["a", "b"], ["y"])], feeds, {})
        assert run(proto, feeds, "bf16")[0].tolist() == run(proto, feeds)[0].tolist()


@pytest.mark.parametrize("optimized", [True, False])
def test_attention_fused_or_not(tiles, optimized):
    """Scores and their softmax are f32 between two products in bf16: what is rounded are q, k, v and probabilities."""
    feeds = {n: random(2, 4, 96, 40, seed=i) for i, n in enumerate("qkv")}
    nodes = [("Transpose", ["k"], ["t"], {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "t"], ["s"]),
             ("Mul", ["s", "scale"], ["m"]), ("Softmax", ["m"], ["p"], {"axis": -1}), ("MatMul", ["p", "v"], ["y"])]
    if not optimized:  # somebody else reads the scores, so that no pass fuses it
        nodes.insert(3, ("Identity", ["m"], ["y_scores"]))
    proto = small(nodes, feeds, {"scale": np.float32(40 ** -0.5)})
    name = "bf16_attention_tiles" if optimized else "bf16_gemm_amx"
    assert any(name in k for k in kernels(proto, feeds))
    s = session(proto, "bf16")
    got = dict(zip((o.name for o in s.get_outputs()), s.run(None, feeds)))["y"]
    q, k, v = (rounded(feeds[n]).astype(np.float64) for n in "qkv")
    scores = q @ k.transpose(0, 1, 3, 2) * 40 ** -0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True) @ v
    # Probabilities are rounded by at most 2^-8 of themselves and sum up to 1; errors of 96 of them cancel out for the most
    # part. Scores in bf16 would be off by 2^-8 of themselves, or 0.01.
    assert np.abs(got - want).max() <= 2.0 ** -10 * np.abs(v).max()


# ---------------------------------------------------------------------- recurrent layers

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(op, feeds, weights, **attributes):
    hidden = weights["r"].shape[2]
    return small([(op, ["x", "w", "r", "b"], ["y"], {"hidden_size": hidden, **attributes})], feeds, weights)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
def test_recurrent_layers_multiply_their_input_in_bf16(tiles, op, direction, threads):
    seq, batch, size, hidden, gates = 9, 3, 37, 21, GATES[op]
    dirs = 2 if direction == "bidirectional" else 1
    feeds = {"x": random(seq, batch, size, seed=1)}
    weights = {"w": random(dirs, gates * hidden, size) / 6, "r": random(dirs, gates * hidden, hidden, seed=2) / 5,
               "b": random(dirs, 2 * gates * hidden, seed=3) / 4}
    weights = {k: v.astype(np.float32) for k, v in weights.items()}
    proto = recurrent(op, feeds, weights, direction=direction)
    got = run(proto, feeds, "bf16", threads)[0]
    want = run(recurrent(op, feeds, {**weights, "w": rounded(weights["w"])}, direction=direction),
               {"x": rounded(feeds["x"])})[0]
    # Nothing but the order of sums, which a state feeds back nine times; weights of the recurrence are not rounded.
    assert np.abs(got - want).max() <= 1e-5
    assert np.abs(got - run(proto, feeds)[0]).max() >= 1e-4
    assert any(k.startswith("bf16_") for k in kernels(proto, feeds))


# ---------------------------------------------------------------------- what is not asked for

def every_model():
    for name, (shape, weight, attributes) in CONVS.items():
        x = {"x": random(*shape, seed=1)}
        yield "Conv " + name, small([("Conv", ["x", "w"], ["y"], attributes)], x, {"w": random(*weight)}), x
    for name, (shape, weight, attributes) in TRANSPOSED.items():
        x = {"x": random(*shape, seed=1)}
        yield "ConvTranspose " + name, small([("ConvTranspose", ["x", "w"], ["y"], attributes)], x, {"w": random(*weight)}), x
    for name, (a, b) in PRODUCTS.items():
        feeds = {"a": random(*a, seed=1), "b": random(*b, seed=2)}
        yield "MatMul " + name, small([("MatMul", ["a", "b"], ["y"])], feeds, {}), feeds


@pytest.mark.parametrize("precision", ["file", "f16"])
def test_nothing_is_bf16_unless_it_is_asked_for(precision):
    for name, proto, feeds in every_model():
        if precision == "f16" and name.startswith("Conv "):
            continue  # weights in blocks are rounded to f16
        assert run(proto, feeds, precision)[0].tolist() == run(proto, feeds)[0].tolist(), name
        assert not any("bf16" in k for k in kernels(proto, feeds, precision)), name


def test_without_packing_weights_stay_f32():
    for name, proto, feeds in every_model():
        if not name.startswith("MatMul"):
            got, want = (run(proto, feeds, p, session__disable_prepacking=1)[0] for p in ("bf16", "f32"))
            # A transposed one in f32 adds in another order.
            tolerance = 1e-5 * np.abs(want).max() if name.startswith("ConvTranspose") else 0
            assert np.abs(got - want).max() <= tolerance, name


@pytest.mark.parametrize("name", ["matmul", "gemm", "1-D", "transposed"])
def test_files_in_f16(tiles, name):
    """Their weights are rounded to bf16, and what they multiply."""
    nodes, shape, weight = {"matmul": ([("MatMul", ["x", "w"], ["y"])], (70, 64), (64, 40)),
                            "gemm": ([("Gemm", ["x", "w"], ["y"], {"transB": 1})], (70, 64), (40, 64)),
                            "1-D": ([("Conv", ["x", "w"], ["y"])], (2, 24, 50), (16, 24, 3)),
                            "transposed": ([("ConvTranspose", ["x", "w"], ["y"])], (2, 24, 50), (24, 16, 3))}[name]
    half = np.float16
    x, w = random(*shape, seed=1).astype(half).astype(np.float32), random(*weight).astype(half).astype(np.float32)
    proto = narrowed(small(nodes, {"x": x}, {"w": w}), "f16")
    got = run(proto, {"x": x.astype(half)}, "bf16")[0]
    assert got.dtype == half
    want = run(small(nodes, {"x": x}, {"w": rounded(w)}), {"x": rounded(x)})[0]
    # The result is rounded to f16, once.
    assert (np.abs(got - want) <= 2.0 ** -11 * np.abs(want) + 1e-3 * 2.0 ** -11 * np.abs(want).max()).all()


def test_weights_of_few_bits_are_not_touched():
    """MatMulNBits has its own kernels, whatever the precision is."""
    n, k, block = 32, 64, 32
    rng = np.random.default_rng(0)
    x = {"x": random(20, k)}
    nodes = [helper.make_node("MatMulNBits", ["x", "q", "s"], ["y"], domain="com.microsoft", K=k, N=n, bits=4, block_size=block)]
    graph = helper.make_graph(nodes, "g", [value("x", shape=[20, k])], [value("y", shape=[20, n])],
                              [numpy_helper.from_array(rng.integers(0, 256, (n, k // block, block // 2)).astype(np.uint8), "q"),
                               numpy_helper.from_array(random(n * k // block), "s")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=8)
    assert run(proto, x, "bf16")[0].tolist() == run(proto, x)[0].tolist()


@pytest.mark.parametrize("rows", [1, 40])
def test_shapes_that_change_from_run_to_run(tiles, rows):
    w = random(24, 24, 3)
    proto = model([("Conv", ["x", "w"], ["y"], {"pads": [1, 1]})], [value("x", TensorProto.FLOAT, ["n", 24, "l"])], [value("y")],
                  [numpy_helper.from_array(w, "w")], opset=17)
    s, twin = session(proto, "bf16"), onnx.ModelProto.FromString(proto.SerializeToString())
    twin.graph.initializer[0].CopyFrom(numpy_helper.from_array(rounded(w), "w"))
    plain = session(twin, "f32")
    for n, length in ((rows, 5), (1, 100), (0, 7), (2, 1)):
        x = random(n, 24, length, seed=3)
        got, want = s.run(None, {"x": x})[0], plain.run(None, {"x": rounded(x)})[0]
        assert got.shape == want.shape and (n == 0 or np.abs(got - want).max() <= 1e-4)
