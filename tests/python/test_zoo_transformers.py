# SPDX-License-Identifier: Apache-2.0
"""The zoo's transformers and its speech model against ONNX Runtime at several sizes, with passes on and off; a
decoder's cache against computing everything at once; a training step against finite differences in float64.
SONDE_FULL=1 adds the models of some hundred megabytes."""

import math
import os

import numpy as np
import onnx
import onnxruntime
import pytest

from test_against_onnxruntime import PROGRAM, WAYS, saved, sonde  # noqa: F401 (saved is a fixture)

FULL = os.environ.get("SONDE_FULL") == "1"
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

# Sizes of the symbolic dims. "past_sequence + sequence" follows from its parts.
CASES = {
    "tiny_vit": [{"batch": 1}, {"batch": 3}],
    "tiny_bert": [{"batch": 1, "sequence": 16}, {"batch": 3, "sequence": 1}, {"batch": 2, "sequence": 128}],
    "tiny_gpt2": [{"batch": 1, "sequence": 1, "past_sequence": 16}, {"batch": 2, "sequence": 5, "past_sequence": 0},
                  {"batch": 3, "sequence": 4, "past_sequence": 7}],
    "tiny_vad": [{"batch": 1, "samples": 640}, {"batch": 3, "samples": 64}],
    "tiny_bert_train": [{"batch": 1, "sequence": 16}, {"batch": 3, "sequence": 9}],
    "bert_mini": [{"batch": 1, "sequence": 128}, {"batch": 2, "sequence": 17}],
    "speech_vad": [{"batch": 1, "samples": 16000}, {"batch": 2, "samples": 4321}],
}
LARGE = {
    "vit_b_16": [{"batch": 1}],
    "bert_base": [{"batch": 1, "sequence": 128}, {"batch": 2, "sequence": 7}],
    "gpt2": [{"batch": 1, "sequence": 1, "past_sequence": 128}, {"batch": 2, "sequence": 9, "past_sequence": 0}],
    "bert_mini_train": [{"batch": 1, "sequence": 128}, {"batch": 2, "sequence": 11}],
}
IGNORED = -100


def run(model, feeds, folder, way="plain"):
    args, env = WAYS[way]
    np.savez(folder / "in.npz", **feeds)
    done = sonde("run", model, "-i", folder / "in.npz", "-o", folder / "out.npz", *args, env=env)
    if done.returncode == 1 and "SONDE_CPU" in env and "instruction set" in done.stderr:
        pytest.skip("this machine has no such instructions")
    assert done.returncode == 0, done.stderr
    return dict(np.load(folder / "out.npz"))


def vocabulary(model):
    ends = ("word_embeddings.weight", "wte.weight")
    return next((t.dims[0] for t in onnx.load(model).graph.initializer if t.name.endswith(ends)), 2)


def feeds_for(session, model, sizes, rng):
    words = vocabulary(model)
    feeds = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else sum(sizes[part] for part in d.split(" + ")) for d in i.shape]
        if i.name.endswith(".exp_avg_sq"):
            feeds[i.name] = rng.random(shape, np.float32)
        elif i.type == "tensor(float)":
            feeds[i.name] = rng.standard_normal(shape).astype(np.float32)
        elif i.name == "attention_mask":
            feeds[i.name] = (rng.random(shape) < 0.8).astype(np.int64)
            feeds[i.name][:, 0] = 1
        elif i.name == "token_type_ids":
            feeds[i.name] = rng.integers(0, 2, shape)
        elif i.name == "position_ids":
            feeds[i.name] = np.broadcast_to(sizes["past_sequence"] + np.arange(shape[1]), shape).copy()
        elif i.name == "labels":
            feeds[i.name] = np.where(rng.random(shape) < 0.5, IGNORED, rng.integers(0, words, shape))
            feeds[i.name][0, 0] = 1
        else:
            feeds[i.name] = rng.integers(0, words, shape)
    return feeds


def agrees(model, sizes, folder, way="plain"):
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feeds = feeds_for(session, model, sizes, np.random.default_rng(7))
    theirs = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    ours = run(model, feeds, folder, way)
    assert ours.keys() == theirs.keys()
    for key, b in theirs.items():
        assert np.isfinite(b).all(), key
        assert ours[key].shape == b.shape, key
        bound = 1e-4 * max(1.0, float(np.abs(b).max()))
        assert float(np.abs(ours[key] - b).max()) <= bound, key


def cases():
    """Every way to run at the first sizes, passes on and off at the others."""
    return [(name, sizes, way) for name, rows in CASES.items() for k, sizes in enumerate(rows)
            for way in (("plain", "no passes") if k else WAYS)]


@pytest.mark.parametrize("name, sizes, way", cases(), ids=str)
def test_the_same_answer_as_onnxruntime(saved, tmp_path, name, sizes, way):  # noqa: F811
    agrees(saved(name), sizes, tmp_path, way)


@pytest.mark.skipif(not FULL, reason="SONDE_FULL=1 asks for it")
@pytest.mark.parametrize("name, sizes", [(n, s) for n, rows in LARGE.items() for s in rows], ids=str)
def test_the_same_answer_as_onnxruntime_for_large_ones(saved, tmp_path, name, sizes):  # noqa: F811
    agrees(saved(name), sizes, tmp_path)


# ---------------------------------------------------------------- decoding
def test_decoding_with_a_cache_equals_reading_everything_at_once(saved, tmp_path):  # noqa: F811
    model, rng = saved("tiny_gpt2"), np.random.default_rng(3)
    batch, length, heads, head = 2, 12, 2, 16
    ids = rng.integers(0, 128, (batch, length))
    mask = np.ones((batch, length), np.int64)
    mask[1, :3] = 0  # the second text is shorter: padded on the left
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    names = [f"{layer}.{what}" for layer in range(2) for what in ("key", "value")]
    empty = {n: np.zeros((batch, heads, 0, head), np.float32) for n in names}

    def step(begin, end, cache):
        now = slice(begin, end)
        feeds = {"input_ids": ids[:, now], "attention_mask": mask[:, :end], "position_ids": positions[:, now]}
        feeds |= {f"past_key_values.{n}": v for n, v in cache.items()}
        out = run(model, feeds, tmp_path)
        return out["logits"], {n: out[f"present.{n}"] for n in names}

    whole, last = step(0, length, empty)
    cache, pieces = empty, []
    for begin, end in [(0, 4), (4, 5), (5, 6), (6, 9), (9, 10), (10, 11), (11, 12)]:
        logits, cache = step(begin, end, cache)
        pieces.append(logits)
    visible = mask == 1
    assert np.abs(np.concatenate(pieces, axis=1) - whole)[visible].max() <= 1e-4
    for n in names:
        seen = visible[:, None, :, None]
        assert np.abs(np.where(seen, cache[n] - last[n], 0)).max() <= 1e-4
    changed = ids.copy()
    changed[:, -1] = (changed[:, -1] + 1) % 128
    ids = changed
    assert np.abs(step(0, length, empty)[0][:, :-1] - whole[:, :-1])[visible[:, :-1]].max() == 0  # nobody looks ahead


# ---------------------------------------------------------------- a training step
def layer_norm(x, w, path):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-12) * w[path + ".weight"] + w[path + ".bias"]


def dense(x, w, path):
    return x @ w[path + ".weight"] + w[path + ".bias"]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def loss_of(w, feeds, layers=2, heads=2):
    """Masked-language-model loss of BERT, written down a second time, in the weights' precision."""
    ids, types, labels = feeds["input_ids"], feeds["token_type_ids"], feeds["labels"]
    e = "bert.embeddings."
    x = (w[e + "word_embeddings.weight"][ids] + w[e + "token_type_embeddings.weight"][types]
         + w[e + "position_embeddings.weight"][: ids.shape[1]])
    x = layer_norm(x, w, e + "LayerNorm")
    far = np.where(feeds["attention_mask"] == 1, 0.0, -1e30)[:, None, None, :]
    batch, length, width = x.shape
    for k in range(layers):
        p = f"bert.encoder.layer.{k}."
        q, key, v = (dense(x, w, p + "attention.self." + n).reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)
                     for n in ("query", "key", "value"))
        a = softmax(q @ key.swapaxes(-1, -2) / math.sqrt(width / heads) + far) @ v
        a = a.transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = layer_norm(dense(a, w, p + "attention.output.dense") + x, w, p + "attention.output.LayerNorm")
        y = gelu(dense(x, w, p + "intermediate.dense"))
        x = layer_norm(dense(y, w, p + "output.dense") + x, w, p + "output.LayerNorm")
    c = "cls.predictions."
    x = layer_norm(gelu(dense(x, w, c + "transform.dense")), w, c + "transform.LayerNorm")
    p = softmax(x @ w[e + "word_embeddings.weight"].T + w[c + "bias"])
    counts = labels != IGNORED
    return -np.log(np.take_along_axis(p, np.where(counts, labels, 0)[..., None], -1)[..., 0])[counts].mean()


@pytest.fixture(scope="module")
def training(saved):  # noqa: F811
    """The model, its parameters and one batch, before the first step."""
    path = saved("tiny_bert_train")
    model = onnx.load(path)
    weights = {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer
               if len(t.dims)}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = feeds_for(session, path, {"batch": 3, "sequence": 7}, np.random.default_rng(11))
    feeds |= {name: np.zeros_like(value) for name, value in feeds.items() if ".exp_avg" in name}
    return path, weights, feeds


def test_gradients_are_those_of_finite_differences(training, tmp_path):
    path, weights, feeds = training
    out = run(path, feeds, tmp_path)
    assert abs(out["loss"] - loss_of(weights, feeds)) < 1e-4
    rng, h = np.random.default_rng(5), 1e-5
    for name, w in weights.items():
        gradient = out[f"{name}.exp_avg.new"].astype(np.float64) / (1 - np.float64(np.float32(0.9)))
        flat, g = w.reshape(-1), gradient.reshape(-1)
        picked = set(np.argsort(-np.abs(g))[:3]) | set(rng.integers(0, flat.size, 2))
        for i in picked:
            middle = flat[i]
            flat[i] = middle + h
            up = loss_of(weights, feeds)
            flat[i] = middle - h
            slope = (up - loss_of(weights, feeds)) / (2 * h)
            flat[i] = middle
            bound = 3e-4 * np.abs(g).max() + 1e-7
            assert abs(g[i] - slope) <= bound, f"{name}[{i}]: {g[i]} is given, {slope} is measured"


def test_the_optimiser_is_adamw(training, tmp_path):
    path, weights, feeds = training
    rng, rate, step = np.random.default_rng(6), 1e-3, 4
    states = {f"{n}.exp_avg": 1e-2 * rng.standard_normal(w.shape) for n, w in weights.items()}
    states |= {f"{n}.exp_avg_sq": 1e-3 * rng.random(w.shape) for n, w in weights.items()}
    first = run(path, feeds, tmp_path)
    given = {n: v.astype(np.float32) for n, v in states.items()}
    given |= {"learning_rate": np.float32(rate), "step": np.float32(step)}
    out = run(path, feeds | given, tmp_path)
    assert out["loss"] == first["loss"]
    for name, w in weights.items():
        g = first[f"{name}.exp_avg.new"].astype(np.float64) / 0.1
        m = 0.9 * states[f"{name}.exp_avg"] + 0.1 * g
        v = 0.999 * states[f"{name}.exp_avg_sq"] + 0.001 * g * g
        kept = w * (1 - rate * 0.01) if w.ndim > 1 else w
        new = kept - rate / (1 - 0.9**step) * m / (np.sqrt(v) / math.sqrt(1 - 0.999**step) + 1e-6)
        assert np.abs(out[f"{name}.exp_avg.new"] - m).max() <= 1e-6
        assert np.abs(out[f"{name}.exp_avg_sq.new"] - v).max() <= 1e-7
        assert np.abs(out[f"{name}.new"] - new).max() <= 1e-5, name


def test_steps_in_a_row_learn_the_batch(training, tmp_path):
    path, _, feeds = training
    state, losses = {"learning_rate": np.float32(3e-3)}, []
    for step in range(1, 7):
        out = run(path, feeds | state | {"step": np.float32(step)}, tmp_path)
        losses.append(float(out.pop("loss")))
        state |= {name.removesuffix(".new"): value for name, value in out.items()}
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.9 * losses[0], losses
