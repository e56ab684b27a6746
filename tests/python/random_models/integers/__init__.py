# SPDX-License-Identifier: Apache-2.0
"""Random graphs of integers and quantised numbers: odd shapes, no elements, extreme scales and zero points, weights of
mostly zeros, and values that several nodes read. What engines must answer is computed along the way (grower.py); the
other modules are lists of generators, functions with @row above them."""

from ..finish import finish
from . import arithmetic, movement, products, qdq, qlinear
from .grower import ROWS, Grower

OPSETS = (13, 14, 15, 17, 18, 19, 20, 21, 21, 21, 22, 23, 24)
# What a model is mostly made of: a module whose generators are chosen eight times as often.
THEMES = [None, qdq, qdq, qdq, qlinear, qlinear, products, products, arithmetic, movement]


def build(seed):
    b = Grower(seed, 0)
    b.opset = b.choice(OPSETS)
    b.opsets[""] = b.opset
    b.zero = b.chance(0.06)
    b.large = not b.zero and b.chance(0.05)
    b.odd = b.chance(0.1)
    b.symbolic = b.chance(0.35)
    theme = b.choice(THEMES)
    rows = [(f, w * (8 if theme and f.__module__ == theme.__name__ else 1), s, u, n)
            for f, w, s, u, n in ROWS if s <= b.opset <= u]
    b.grow(rows, b.int(1, 4) if b.large or b.chance(0.2) else b.int(3, 14))
    made = finish(b, seed)
    made.bounded, made.generators = True, b.generators
    return made
