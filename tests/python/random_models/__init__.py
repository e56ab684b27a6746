# SPDX-License-Identifier: Apache-2.0
"""Random valid ONNX models for differential testing: `FAMILIES[name](seed)` gives one, always the same.

`mixed` has every operator; builder.py has the half-built model and how to write a generator; every other module is a
list of generators. A new operator is one function with @row above it. `integers` is the folder of that name: graphs of
integers and quantised numbers, with bounds for each element of every value."""

from . import contrib, control, extremes, integers, layers, ml, movement, patterns, quantized, shapes
from . import elementwise, sampling  # noqa: F401  (for their rows)
from .builder import BOOL, F16, F32, F64, I8, I32, I64, ROWS, U8, Builder
from .finish import Model, finish  # noqa: F401

OPSETS = range(7, 27)
# What a model is mostly made of: modules whose generators are chosen six times as often.
THEMES = [(), (), (layers, patterns), ("vision",), ("vision",), ("dense",), (quantized,), (control,),
          (movement, shapes), (contrib,), (ml,), (extremes,)]
GROUPS = {
    "vision": {"conv", "conv_block", "two_branches", "conv_tail", "pool", "global_pool", "batch_norm", "resize",
               "concat", "split", "slice_", "pad", "smooth_unary", "arithmetic", "channel_norm", "prelu", "reduce",
               "transpose", "conv_transpose", "softmax", "extremes", "clip"},
    "dense": {"matmul", "gemm", "dense_block", "attention_chain", "gelu_chain", "layer_norm_chain", "row_norm",
              "reshape", "transpose", "softmax", "transpose_pair", "arithmetic", "squeeze", "unsqueeze", "split",
              "concat", "slice_", "matmul_pair", "shape_program", "attention", "rotary_embedding", "extremes"},
}
MAIN = [(F32, 14), (F64, 2), (F16, 2), (I64, 1.5), (I32, 1), (U8, 0.7), (I8, 0.7), (BOOL, 0.5)]


def build(seed):
    b = Builder(seed, 0)
    b.opset = b.int(13, 22) if b.chance(0.5) else b.choice(OPSETS)
    b.opsets[""] = b.opset
    b.main = b.rng.choices([m[0] for m in MAIN], [m[1] for m in MAIN])[0]
    b.zero = b.chance(0.06)
    b.large = not b.zero and b.chance(0.05)
    b.symbolic = b.chance(0.35)
    theme = b.choice(THEMES)
    rows = [themed(r, theme) for r in ROWS if r[2] <= b.opset <= r[3]]
    b.grow(rows, b.int(1, 3) if b.large or b.chance(0.2) else b.int(2, 12))
    return finish(b, seed)


FAMILIES = {"mixed": build, "integers": integers.build}


def themed(row, theme):
    function, weight, *rest = row
    wanted = any(function.__name__ in GROUPS[t] if isinstance(t, str) else function.__module__ == t.__name__
                 for t in theme)
    return (function, weight * (6 if wanted else 1), *rest)
