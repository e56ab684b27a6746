# SPDX-License-Identifier: Apache-2.0
"""Weights that are mostly zero, in blocks: they are found when a model is loaded, packed without their zeros and
multiplied by kernels that skip them. Results are those of the dense kernels."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import sonde
from half_models import KINDS
from onnx import TensorProto, helper, numpy_helper
from patience import PATIENCE
from small_models import model, value


def random(*shape, seed=0):
    return np.random.default_rng([*shape, seed]).standard_normal(shape).astype(np.float32)


def pruned(k, n, zeros=0.9, outputs=4, ks=1, seed=0):
    """A weight [k, n] of which that share of the blocks is zero."""
    rng = np.random.default_rng([k, n, seed])
    kept = rng.random((-(-k // ks), -(-n // outputs))) >= zeros
    return random(k, n, seed=seed) * np.kron(kept, np.ones((ks, outputs)))[:k, :n].astype(np.float32)


def session(proto, precision="f32", threads=1, **entries):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = threads
    for key, entry in {"sonde__precision": precision, **entries}.items():
        options.add_session_config_entry(key.replace("__", "."), str(entry))
    return sonde.InferenceSession(proto.SerializeToString(), options)


def profiled(proto, feeds, **options):
    s = session(proto, **options)
    with sonde.profile() as recorded:
        y = s.run(None, feeds)
    return y, [row for row in recorded.rows(by="node") if row["kernel"]]


def kernels(proto, feeds, **options):
    return [row["kernel"] for row in profiled(proto, feeds, **options)[1]]


def small(nodes, feeds, weights, sparse=(), opset=17):
    """A model of these nodes with one output y; initialisers in `sparse` are ONNX sparse tensors."""
    proto = model(nodes, [value(name, shape=list(x.shape)) for name, x in feeds.items()], [value("y")],
                  [numpy_helper.from_array(w, name) for name, w in weights.items() if name not in sparse], opset=opset)
    for name in sparse:
        w = weights[name]
        at = np.flatnonzero(w)
        values = numpy_helper.from_array(w.ravel()[at], name)
        indices = numpy_helper.from_array(at.astype(np.int64), "")
        proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, list(w.shape)))
    return proto


def check(proto, feeds, want, scale):
    found = kernels(proto, feeds)
    assert any("sparse4x1" in k for k in found), found
    first = session(proto).run(None, feeds)[0]
    assert (np.abs(first - want) <= 1e-5 * (scale + 1)).all()
    for threads in (2, 3):
        assert session(proto, threads=threads).run(None, feeds)[0].tobytes() == first.tobytes()


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 16, 50, 128])
@pytest.mark.parametrize("turned", [False, True])
def test_products_with_zeros_are_sparse_and_right(rows, turned):
    k, n = (200, 130) if rows >= 16 else (1000, 262)  # few rows gain only by reading less of large weights
    x, w, b = random(rows, k), pruned(k, n), random(n)
    want, scale = x @ w + b, np.abs(x) @ np.abs(w)
    nodes = [("Gemm", ["x", "w", "b"], ["y"], {"transB": int(turned)})]
    check(small(nodes, {"x": x}, {"w": w.T.copy() if turned else w, "b": b}), {"x": x}, want, scale)


def test_what_follows_a_product_is_fused_into_it():
    x, w, b, z = random(2, 40, 96), pruned(96, 96), random(96), random(2, 40, 96, seed=1)
    nodes = [("MatMul", ["x", "w"], ["p"]), ("Add", ["p", "b"], ["s"]), ("Add", ["s", "z"], ["t"]), ("Relu", ["t"], ["y"])]
    proto = small(nodes, {"x": x, "z": z}, {"w": w, "b": b})
    feeds = {"x": x, "z": z}
    assert len(kernels(proto, feeds)) == 1
    check(proto, feeds, np.maximum(x @ w + b + z, 0), np.abs(x) @ np.abs(w))


def test_sparse_initialisers_of_onnx_stay_sparse():
    x, w = random(64, 128), pruned(128, 96)
    proto = small([("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w}, sparse=("w",))
    assert len(proto.graph.sparse_initializer) == 1
    check(proto, {"x": x}, x @ w, np.abs(x) @ np.abs(w))


def test_few_zeros_and_zeros_in_no_blocks_are_dense():
    x = random(64, 128)
    half = pruned(128, 128, zeros=0.4)
    scattered = random(128, 128) * (np.random.default_rng(0).random((128, 128)) >= 0.6)
    for w in (random(128, 128), half, scattered.astype(np.float32)):
        proto = small([("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w})
        assert not any("sparse" in k for k in kernels(proto, {"x": x}))


def test_many_zeros_without_a_pattern_are_left_out():
    x = random(64, 256)
    w = random(256, 192) * (np.random.default_rng(0).random((256, 192)) >= 0.93)
    w = w.astype(np.float32)
    proto = small([("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w})
    (got,), rows = profiled(proto, {"x": x})
    assert [row["kernel"].split("_")[2] for row in rows] == ["sparse1x1"]
    assert [row["flops"] for row in rows] == [2 * 64 * np.count_nonzero(w)]
    assert np.abs(got - x @ w).max() <= 1e-5 * (np.abs(x) @ np.abs(w)).max()


@pytest.mark.parametrize("zeros, outputs", [(0.9, 4), (0.95, 1)])
@pytest.mark.parametrize("shape, attributes", [
    ((128, 96, 1, 1), {}), ((160, 128, 3, 3), {"pads": [1, 1, 1, 1]}), ((66, 40, 3, 3), {"strides": [2, 2]}),
    ((64, 40, 5), {"pads": [2, 2], "dilations": [1]}), ((64, 24, 3, 3, 3), {"strides": [1, 2, 1]}),
])
def test_filters_with_zeros_are_sparse_and_right(shape, attributes, zeros, outputs):
    w = pruned(int(np.prod(shape[1:])), shape[0], zeros, outputs).T.reshape(shape).copy()
    x = {"x": random(2, shape[1], *([40] if len(shape) == 3 else [14] * (len(shape) - 2)), seed=1)}
    proto = small([("Conv", ["x", "w"], ["y"], attributes)], x, {"w": w})
    assert any("_sparse" in k for k in kernels(proto, x))
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, x)[0]
    first = session(proto).run(None, x)[0]
    assert np.abs(first - want).max() <= 1e-5 * np.abs(want).max()
    assert session(proto, threads=2).run(None, x)[0].tobytes() == first.tobytes()


def test_flops_are_those_that_are_computed():
    x, w = random(64, 256), pruned(256, 256)
    (_,), rows = profiled(small([("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w}), {"x": x})
    blocks = np.count_nonzero(np.abs(w).reshape(256, 64, 4).sum(-1))
    assert [row["flops"] for row in rows] == [2 * 64 * 4 * blocks]


def test_weights_of_sixteen_bits_may_be_sparse():
    x, w = random(64, 128), pruned(128, 96).astype(np.float16)
    proto = small([("Cast", ["w"], ["v"], {"to": TensorProto.FLOAT}), ("MatMul", ["x", "v"], ["y"])], {"x": x}, {"w": w})
    want = x @ w.astype(np.float32)
    check(proto, {"x": x}, want, np.abs(x) @ np.abs(w.astype(np.float32)))


def test_an_infinity_reaches_outputs_whose_weights_are_zero():
    x, w = random(20, 1000), pruned(1000, 256)
    x[3, 7], x[11, 90] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        want = x @ w
    for rows in (20, 4):
        feeds = {"x": x[:rows]}
        proto = small([("MatMul", ["x", "w"], ["y"])], feeds, {"w": w})
        got, found = session(proto).run(None, feeds)[0], kernels(proto, feeds)
        assert any("sparse" in k for k in found)
        assert (np.isnan(got) == np.isnan(want[:rows])).all()


def test_packed_weights_are_cached(tmp_path):
    x, w = random(64, 128), pruned(128, 96)
    path = tmp_path / "sparse.onnx"
    onnx.save(small([("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w}), path)
    results = []
    for _ in range(2):
        options = sonde.SessionOptions()
        options.add_session_config_entry("sonde.precision", "f32")
        options.add_session_config_entry("sonde.weights_cache", str(tmp_path / "cache"))
        results.append(sonde.InferenceSession(str(path), options).run(None, {"x": x})[0])
    assert results[0].tobytes() == results[1].tobytes()
    assert any((tmp_path / "cache").iterdir())


def test_weights_that_a_pass_has_joined_may_be_sparse():
    """Query, key and value of one input become one product."""
    x = random(1, 64, 128)
    ws = {name: pruned(128, 128, seed=i) for i, name in enumerate("qkv")}
    nodes = [("MatMul", ["x", n], [n + "x"]) for n in "qkv"]
    nodes += [("Transpose", ["kx"], ["kt"], {"perm": [0, 2, 1]}), ("MatMul", ["qx", "kt"], ["s"]),
              ("Softmax", ["s"], ["p"]), ("MatMul", ["p", "vx"], ["y"])]
    proto = small(nodes, {"x": x}, ws)
    found = kernels(proto, {"x": x})
    assert sum("sparse" in k for k in found) in (1, 3), found
    q, k, v = (x @ ws[n] for n in "qkv")
    s = q @ k.transpose(0, 2, 1)
    p = np.exp(s - s.max(-1, keepdims=True))
    want = p / p.sum(-1, keepdims=True) @ v
    assert np.abs(session(proto).run(None, {"x": x})[0] - want).max() <= 1e-2


def byte_matrix(k, n, zeros=0.9, seed=0):
    return np.clip(np.rint(pruned(k, n, zeros, seed=seed) * 40), -127, 127).astype(np.int8)


def at_level(script, level):
    """A program of its own: the instruction set is chosen when the library is loaded."""
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "SONDE_CPU": level}, capture_output=True,
                          text=True, timeout=PATIENCE)
    if "instruction set" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


BYTES = """
import itertools
import sys
sys.path.insert(0, {folder!r})
from test_sparse import *
rng = np.random.default_rng(0)
w = byte_matrix(256, 192)
for rows, kind in itertools.product((1, 2, 64, 130), ("MatMulInteger", "QLinearMatMul", "QLinearConv")):
    x = rng.integers(0, 256, (rows, 256), dtype=np.uint8)
    xz, yz = np.uint8(120), np.uint8(100)
    sums = (x.astype(np.int64) - 120) @ w.astype(np.int64)
    weights = dict(w=w, xz=xz, yz=yz, s=np.float32(0.01), t=np.float32(0.02), u=np.float32(3))
    want = np.clip(np.rint(sums.astype(np.float32) * np.float32(np.float32(0.01) * np.float32(0.02) / np.float32(3))) + 100, 0, 255)
    feeds = dict(x=x)
    if kind == "MatMulInteger":
        nodes, want = [(kind, ["x", "w", "xz"], ["y"])], sums
    elif kind == "QLinearMatMul":
        weights["wz"] = np.int8(0)
        nodes = [(kind, ["x", "s", "xz", "w", "t", "wz", "u", "yz"], ["y"])]
    else:
        weights["wz"] = np.int8(0)
        weights["w"] = w.T.reshape(192, 256, 1, 1).copy()
        feeds = dict(x=x.T.reshape(1, 256, rows, 1).copy())
        want = want.T.reshape(1, 192, rows, 1)
        nodes = [(kind, ["x", "s", "xz", "w", "t", "wz", "u", "yz"], ["y"])]
    weights = {{k: v for k, v in weights.items() if any(k in n[1] for n in nodes)}}
    proto = model(nodes, [value("x", 2, list(feeds["x"].shape))], [value("y", 6 if kind == "MatMulInteger" else 2)],
                  [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()])
    got = session(proto).run(None, feeds)[0]
    assert (got == want).all(), (rows, kind)
    found = [k for k in kernels(proto, feeds)]
    print(rows, kind, *[k for k in found if "gemm" in k or "conv" in k])
"""


@pytest.mark.parametrize("level", ["avx2", "avxvnni", "vnni", "neon", "dotprod"])
def test_bytes_are_exact_with_zeros_skipped(level):
    out = at_level(BYTES.format(folder=str(pathlib.Path(__file__).parent)), level)
    assert sum("sparse4x1" in word for word in out) >= 6, out


TILES = """
import sys
sys.path.insert(0, {folder!r})
from test_sparse import *
x, w = random(128, 1024), pruned(1024, 256, outputs=16, ks=4)
half = lambda a: a.astype(KINDS["bf16"][1]).astype(np.float32)
proto = small([("MatMul", ["x", "w"], ["y"])], dict(x=x), dict(w=w))
want, scale = half(x) @ half(w), np.abs(x) @ np.abs(w)
first = session(proto, "bf16").run(None, dict(x=x))[0]
assert (np.abs(first - want) <= 1e-5 * (scale + 1)).all()
for threads in (2, 3):
    assert session(proto, "bf16", threads).run(None, dict(x=x))[0].tobytes() == first.tobytes()
print(*kernels(proto, dict(x=x), precision="bf16"))
b = np.clip(np.rint(w * 40), -127, 127).astype(np.int8)
a = np.random.default_rng(0).integers(0, 256, (128, 1024), dtype=np.uint8)
proto = model([("MatMulInteger", ["x", "w"], ["y"])], [value("x", 2, [128, 1024])], [value("y", 6)],
              [numpy_helper.from_array(b, "w")])
assert (session(proto).run(None, dict(x=a))[0] == a.astype(np.int32) @ b.astype(np.int32)).all()
print(*kernels(proto, dict(x=a)))
x[5, 100], x[70, 3] = np.inf, np.nan
got = session(small([("MatMul", ["x", "w"], ["y"])], dict(x=x), dict(w=w)), "bf16").run(None, dict(x=x))[0]
with np.errstate(invalid="ignore"):
    want = half(x) @ half(w)
assert (np.isnan(got) == np.isnan(want)).all()
"""


def test_blocks_that_suit_tiles_are_multiplied_by_them():
    out = at_level(TILES.format(folder=str(pathlib.Path(__file__).parent)), "amx")
    assert [word for word in out if "sparse" in word] == ["bf16_gemm_sparse16x4_amx", "u8_gemm_sparse16x4_amx"], out


@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("shape, window", [((2, 24, 19, 23), (9, 9)), ((1, 40, 31, 30), (3, 5)), ((1, 33, 200), (15,)),
                                           ((1, 16, 9, 14, 22), (3, 3, 3))])
def test_filters_of_few_outputs_are_computed_over_pixels(outputs, shape, window):
    """Also without a zero among the weights: most lanes of vectors over channels would be empty."""
    feeds = {"x": random(*shape)}
    weights = {"w": random(outputs, shape[1], *window) / np.float32(np.sqrt(shape[1] * np.prod(window))),
               "b": random(outputs)}
    pads = [(k - 1) // 2 for k in window] * 2
    for strides in ([1] * len(window), [2] * len(window)):
        nodes = [("Conv", ["x", "w", "b"], ["c"], {"pads": pads, "strides": strides}), ("Tanh", ["c"], ["y"])]
        proto = small(nodes, feeds, weights)
        want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)[0]
        first = session(proto).run(None, feeds)[0]
        assert np.abs(first - want).max() < 2e-5
        assert session(proto, threads=3).run(None, feeds)[0].tobytes() == first.tobytes()
        if strides[0] == 1 and outputs <= 4 and len(window) < 3:
            assert any("pixels" in k for k in kernels(proto, feeds)), kernels(proto, feeds)
