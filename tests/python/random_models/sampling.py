# SPDX-License-Identifier: Apache-2.0
"""Resizing, sampling, regions and signals."""

from fractions import Fraction

import numpy as np

from .builder import F32, I64, NoFit, row
from .layers import image


@row(2, since=10)
def resize(b):
    x = image(b, b.choice((2, 2, 2, 1)), mag=30)
    mode = b.choice(("nearest", "nearest", "linear") if b.opset == 10 else ("nearest", "nearest", "linear", "cubic"))
    if mode == "cubic" and x.rank != 4:
        raise NoFit
    # Powers of two, so that no sampling point lies a rounding error away from a border between two pixels.
    scales = [1.0, 1.0, *(b.choice((0.5, 1.0, 2.0, 2.0, 4.0)) for _ in x.shape[2:])]
    sizes = [int(np.floor(d * s)) for d, s in zip(x.shape, scales)]
    # No fractions of a pixel either: engines differ in whether the width is rounded before it is used.
    if any(d * s != n for d, s, n in zip(x.shape, scales, sizes)) or np.prod(sizes) > 20000:
        raise NoFit
    if b.opset == 10:
        b.emit("Resize", [x, b.param(np.array(scales, F32))], shape=sizes, sources=[x], attributes={"mode": mode},
               exact=x.exact and mode == "nearest")
        return
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    ways += ["half_pixel_symmetric"] if b.opset >= 19 else []
    way = b.choice(ways)
    attributes = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        attributes["nearest_mode"] = b.choice((None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
        if way == "align_corners":
            raise NoFit  # coordinates with thirds: which side of a tie they fall is rounding
    if mode == "cubic":
        attributes["cubic_coeff_a"] = b.choice((None, -0.5))
        attributes["exclude_outside"] = b.choice((None, 0, 1))
    if mode != "nearest" and b.opset >= 18 and b.chance(0.2) and way != "align_corners":
        attributes["antialias"] = 1
    by_size = b.chance(0.4)
    roi = b.param(np.zeros(0, F32)) if b.opset < 13 else None
    if b.opset >= 18 and b.chance(0.3):
        attributes["axes"] = list(range(2, x.rank))
        scales, given = scales[2:], sizes[2:]
    else:
        given = sizes
    if by_size:
        empty = b.param(np.zeros(0, F32)) if b.opset < 13 else None
        inputs = [x, roi, empty, b.ints(given)]
    else:
        inputs = [x, roi, b.param(np.array(scales, F32))]
    b.emit("Resize", inputs, shape=sizes, sources=[x], attributes=attributes, mag=2 * x.mag,
           exact=x.exact and mode == "nearest")


@row(0.5, since=13)
def resize_to_any_size(b):
    """Nearest, between sizes without a common factor; no sampling point lies a rounding error away from where
    another element begins."""
    x = image(b, b.choice((1, 2)), mag=30)
    shape = [*x.shape[:2], *(b.int(1, 12) for _ in x.shape[2:])]
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    ways += ["half_pixel_symmetric"] if b.opset >= 19 else []
    way = b.choice(ways)
    nearest = b.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    for i, o in zip(x.shape[2:], shape[2:]):
        for at in range(o):
            position = {"asymmetric": Fraction(at * i, o),
                        "align_corners": Fraction(at * (i - 1), max(o - 1, 1))}.get(
                            way, Fraction(2 * at + 1, 2) * i / o - Fraction(1, 2))
            edge = position - Fraction(1, 2) if nearest.startswith("round") else position
            if abs(edge - round(edge)) < Fraction(1, 1000) and i != o and position != 0:
                raise NoFit
    b.emit("Resize", [x, None, None, b.ints(shape)], shape=shape, sources=[x], exact=x.exact,
           attributes={"mode": "nearest", "coordinate_transformation_mode": way, "nearest_mode": nearest})


@row(0.6, until=9)
def upsample(b):
    x = image(b, 2, mag=30)
    scales = [1.0, 1.0, float(b.int(1, 3)), float(b.int(1, 3))]
    shape = [int(d * s) for d, s in zip(x.shape, scales)]
    mode = b.choice((None, "nearest", "linear"))
    if b.opset >= 9:
        b.emit("Upsample", [x, b.param(np.array(scales, F32))], shape=shape, sources=[x], attributes={"mode": mode})
    else:
        b.emit("Upsample", [x], shape=shape, attributes={"mode": mode, "scales": scales})


@row(0.6, since=16)
def grid_sample(b):
    x = image(b, 2, mag=30)
    out = (b.int(1, 5), b.int(1, 5))
    modes = ("bilinear", "bicubic") if b.opset < 20 else ("linear", "cubic")
    grid = b.param(b.random(F32, (x.shape[0], *out, 2), -1.3, 1.3)) if b.chance(0.6) else \
        b.input(F32, (x.shape[0], *out, 2), -1.3, 1.3)
    b.emit("GridSample", [x, grid], shape=(*x.shape[:2], *out), sources=[x],
           attributes={"mode": b.choice(modes), "padding_mode": b.choice((None, "zeros", "border", "reflection")),
                       "align_corners": b.choice((None, 0, 1))}, mag=2 * x.mag)


@row(0.3, since=20)
def affine_grid(b):
    n = b.int(1, 2)
    theta = b.pick((F32,), shape=(n, 2, 3), mag=10)
    h, w = b.int(2, 4), b.int(2, 4)
    b.emit("AffineGrid", [theta, b.ints([n, 1, h, w])], shape=(n, h, w, 2), sources=[theta],
           attributes={"align_corners": b.choice((None, 0, 1))}, mag=3 * theta.mag)


@row(0.5, since=10)
def roi_align(b):
    x = image(b, 2, mag=30, least=3)
    n = b.int(1, 3)
    corner = b.random(F32, (n, 2), 0, 2)
    rois = b.param(np.concatenate([corner, corner + b.random(F32, (n, 2), 1, 4)], 1).astype(F32))
    index = b.param(b.random(I64, (n,), 0, x.shape[0] - 1))
    out = (b.int(1, 3), b.int(1, 3))
    attributes = {"output_height": out[0], "output_width": out[1], "sampling_ratio": b.choice((1, 2, 3)),
                  "spatial_scale": b.choice((None, 0.5, 1.0)), "mode": b.choice((None, "avg"))}
    if b.opset >= 16:
        attributes["coordinate_transformation_mode"] = b.choice((None, "half_pixel", "output_half_pixel"))
    b.emit("RoiAlign", [x, rois, index], shape=(n, x.shape[1], *out), sources=[x], attributes=attributes)


@row(0.3, since=18)
def col2im(b):
    n, c = b.int(1, 2), b.int(1, 3)
    size, block = (b.int(3, 5), b.int(3, 5)), (b.int(1, 3), b.int(1, 3))
    blocks = (size[0] - block[0] + 1) * (size[1] - block[1] + 1)
    x = b.pick((F32,), shape=(n, c * block[0] * block[1], blocks))
    b.emit("Col2Im", [x, b.ints(size), b.ints(block)], shape=(n, c, *size), sources=[x], mag=9 * x.mag)


@row(0.4, since=17)
def dft(b):
    n, length = b.int(1, 3), b.choice((1, 2, 3, 4, 5, 7, 8, 12))
    pairs = b.chance(0.5)
    x = b.pick((F32,), shape=(n, length, 2 if pairs else 1), mag=10)
    one = not pairs and b.chance(0.4)
    inverse = pairs and b.chance(0.3)
    attributes = {"onesided": 1 if one else None, "inverse": 1 if inverse else None}
    inputs = [x]
    if b.opset >= 20:
        inputs += [None, b.scalar(1, I64)]
    else:
        attributes["axis"] = 1
    b.emit("DFT", inputs, shape=(n, length // 2 + 1 if one else length, 2), sources=[x], attributes=attributes,
           mag=x.mag * length)


@row(0.3, since=17)
def stft(b):
    length, frame, step = b.int(8, 20), b.choice((4, 5, 8)), b.int(1, 4)
    x = b.pick((F32,), shape=(b.int(1, 2), length, 1), mag=10)
    one = b.choice((None, 0, 1))
    bins = frame if one == 0 else frame // 2 + 1
    window = b.param(b.random(F32, (frame,), 0.1, 1)) if b.chance(0.6) else None
    b.emit("STFT", [x, b.scalar(step, I64), window, b.scalar(frame, I64)],
           shape=(x.shape[0], (length - frame) // step + 1, bins, 2), sources=[x], attributes={"onesided": one},
           mag=x.mag * frame)


@row(0.3, since=17)
def signal_window(b):
    n = b.int(2, 9)  # a window of one divides by zero elsewhere
    op = b.choice(("HannWindow", "HammingWindow", "BlackmanWindow"))
    b.emit(op, [b.scalar(n, I64)], F32, (n,), attributes={"periodic": b.choice((None, 0, 1))}, mag=1)


@row(0.2, since=17)
def mel_weights(b):
    bins, length = b.int(2, 5), b.choice((8, 16, 17))
    b.emit("MelWeightMatrix", [b.scalar(bins, I64), b.scalar(length, I64), b.scalar(8000, I64), b.scalar(0.0, F32),
                               b.scalar(4000.0, F32)], F32, (length // 2 + 1, bins), [], mag=1)


@row(0.2)
def max_roi_pool(b):
    x = image(b, 2, mag=30, least=4)
    rois = b.param(np.array([[b.int(0, x.shape[0] - 1), 0, 0, 2, 3], [0, 1, 1, 3, 3]], F32))
    b.emit("MaxRoiPool", [x, rois], shape=(2, x.shape[1], 2, 2), sources=[x], exact=x.exact,
           attributes={"pooled_shape": [2, 2], "spatial_scale": b.choice((None, 1.0, 0.5))})


@row(0.3, since=10)
def non_max_suppression(b):
    batch, classes, n = b.int(1, 2), b.int(1, 2), b.int(1, 6)
    corner = b.random(F32, (batch, n, 2), 0, 3)
    boxes = b.input(F32, (batch, n, 4), data=np.concatenate([corner, corner + b.random(F32, (batch, n, 2), 1, 3)], 2))
    scores = b.input(F32, (batch, classes, n), data=b.random(F32, (batch, classes, n), 0.1, 1))
    b.emit("NonMaxSuppression", [boxes, scores, b.ints([b.int(1, 4)]), b.param(np.array([0.3], F32)),
                                 b.param(np.array([0.2], F32)) if b.chance(0.5) else None], I64, None, exact=True,
           attributes={"center_point_box": b.choice((None, 0))})
