# SPDX-License-Identifier: Apache-2.0
"""Models of one operator, or of a few that are fused, whose sizes have names: a size can be any number, 0 among them, and
be known when the model is made or only when it runs.

A tensor is written as its dims: "M K" is fed, "!K N" is a constant, "u8:M K" has bytes, "!s:K N" is mostly zero, in
blocks. An array is a constant, and so is what a function of the sizes gives."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
DTYPES = {"u8": np.uint8, "i8": np.int8, "i32": np.int32, "i64": np.int64, "b": np.bool_, "f16": np.float16,
          "f64": np.float64, "s": np.float32, "p": np.float32}
SIZES = {"B": 2, "M": 5, "N": 40, "K": 24, "C": 16, "O": 32, "H": 9, "W": 10, "D": 4, "S": 6, "T": 3, "E": 32}


class Family:
    """`nodes`: tuples of helper.make_node's arguments, with a dict of attributes at the end if there are some, which may
    be functions of the sizes. `opset`: of the standard domain. `sizes`: those that are not as in SIZES. `reference`:
    whose answer counts; None: what all ways of running it agree on."""

    def __init__(self, name, nodes, tensors, opset=17, sizes=None, reference="onnx", outputs=("y",)):
        self.name, self.nodes, self.tensors, self.opset = name, nodes, tensors, opset
        self.sizes = {**SIZES, **(sizes or {})}
        self.reference, self.outputs = reference, outputs

    def letters(self):
        """The sizes that dims are made of."""
        words = " ".join(t.split(":")[-1].lstrip("!") for t in self.tensors.values() if isinstance(t, str))
        return sorted({c for c in words if c in self.sizes})

    def attributes(self, node, sizes):
        found = node[-1] if isinstance(node[-1], dict) else {}
        return {k: v(sizes) if callable(v) else v for k, v in found.items()}

    def is_open(self, letter):
        """Can a model be without knowing this size? No attribute depends on it."""
        other = {**self.sizes, letter: 0}
        return all(self.attributes(n, self.sizes) == self.attributes(n, other) for n in self.nodes)

    def reference_without(self, letter):
        """Whose answer counts where that size is 0: engines differ on whether a window fits an empty image, and on the
        shape that a pool without images has; some end with a crash, or not at all."""
        pools = any(word in n[0] for n in self.nodes for word in ("Pool", "Roi", "GridSample", "ConvTranspose"))
        windows = any("Conv" in n[0] for n in self.nodes)
        return None if pools or (windows and letter in "DHW") else self.reference

    def arrays(self, sizes):
        """Elements of every tensor, the same in every run of a size."""
        return {name: made(t, sizes, np.random.default_rng([ord(c) for c in name])) for name, t in self.tensors.items()}

    def model(self, sizes, named=""):
        """(model, names of its inputs). Dims that one of the sizes in `named` is part of have names, and what has such
        dims is an input."""
        arrays, inputs, constants = self.arrays(sizes), [], []
        for name, t in self.tensors.items():
            array = arrays[name]
            dims = t.split(":")[-1].lstrip("!").split() if isinstance(t, str) else None
            if dims is None:
                is_fed = callable(t) and bool(named)
                shape = [f"{name}_{i}" for i in range(array.ndim)]
            else:
                is_fed = not t.startswith("!") or any(c in named for c in t)
                shape = [d if any(c in named for c in d) else n for d, n in zip(dims, array.shape)]
            if is_fed:
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                inputs.append(helper.make_tensor_value_info(name, kind, shape))
            else:
                constants.append(numpy_helper.from_array(array, name))
        nodes = [helper.make_node(*(n[:-1] if isinstance(n[-1], dict) else n), **self.attributes(n, sizes))
                 for n in self.nodes]
        outputs = [onnx.ValueInfoProto(name=o) for o in self.outputs]
        graph = helper.make_graph(nodes, self.name, inputs, outputs, constants)
        domains = {n.domain for n in nodes}
        imports = [helper.make_opsetid("", self.opset)] + [
            helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in sorted(domains) if d]
        return helper.make_model(graph, opset_imports=imports, ir_version=12 if self.opset > 22 else 10), [
            i.name for i in inputs]


def made(t, sizes, rng):
    if not isinstance(t, str):
        return np.asarray(t(sizes) if callable(t) else t)
    kind, _, dims = t.lstrip("!").rpartition(":")
    shape = tuple(int(eval(d, {}, sizes)) for d in dims.split())  # noqa: S307  (the texts below)
    dtype = np.dtype(DTYPES.get(kind, np.float32))
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 7, shape).astype(dtype)
    x = rng.standard_normal(shape).astype(dtype)
    if kind == "p":
        return np.abs(x) + 0.5
    if kind == "s" and x.ndim >= 2:
        kept = rng.random((-(-shape[0] // 4), -(-shape[1] // 4))) < 0.06
        kept = np.kron(kept, np.ones((4, 4)))[:shape[0], :shape[1]].astype(dtype)
        x *= kept.reshape(kept.shape + (1,) * (x.ndim - 2))
    return x


def one(op, inputs, opset=17, sizes=None, reference="onnx", outputs=1, domain="", label="", **attributes):
    """A family of one operator; `inputs` are its tensors in order, None where one is left out."""
    tensors = {f"i{k}": t for k, t in enumerate(inputs) if t is not None}
    names = [f"i{k}" if t is not None else "" for k, t in enumerate(inputs)]
    made_outputs = [f"y{k}" for k in range(outputs)]
    if domain:
        attributes["domain"] = domain
        reference = reference and "onnxruntime"
    return Family(f"{op} {label}".strip(), [(op, names, made_outputs, attributes)], tensors, opset, sizes, reference,
                  made_outputs)


def chain(label, nodes, opset=17, sizes=None, reference="onnx", **tensors):
    return Family(label, nodes, tensors, opset, sizes, reference)


def scalar(x, dtype=np.float32):
    return np.array(x, dtype)


def ints(*x):
    return np.array(x, np.int64)


SCALE, ZERO, SIGNED_ZERO = scalar(0.05), scalar(3, np.uint8), scalar(0, np.int8)


def behind(label, product, tensors, opset=20, sizes=None):
    """A product and what is computed while its result is stored."""
    tails = {
        "alone": [],
        "Relu": [("Relu", ["p"], ["y"])],
        "Sigmoid": [("Sigmoid", ["p"], ["y"])],
        "SiLU": [("Sigmoid", ["p"], ["q"]), ("Mul", ["p", "q"], ["y"])],
        "Gelu": [("Gelu", ["p"], ["y"])],
        "Clip": [("Clip", ["p", "low", "high"], ["y"])],
        "Softmax": [("Softmax", ["p"], ["y"])],
        "Add itself": [("Relu", ["p"], ["q"]), ("Add", ["p", "q"], ["y"])],
    }
    for tail, nodes in tails.items():
        op, inputs, attributes = product
        first = (op, inputs, ["p" if nodes else "y"], attributes)
        limits = {"low": scalar(0), "high": scalar(6)} if tail == "Clip" else {}
        yield Family(f"{label}, {tail}", [first, *nodes], {**tensors, **limits}, opset, sizes)


def products():
    yield from behind("MatMul", ("MatMul", ["x", "w"], {}), {"x": "M K", "w": "!K N"})
    yield from behind("MatMul sparse", ("MatMul", ["x", "w"], {}), {"x": "M K", "w": "!s:K N"},
                      sizes={"K": 256, "N": 256})
    yield from behind("MatMul of activations", ("MatMul", ["x", "w"], {}), {"x": "B M K", "w": "B K N"})
    yield from behind("FusedMatMul", ("FusedMatMul", ["x", "w"], {"domain": MS, "alpha": 0.5, "transB": 1}),
                      {"x": "B M K", "w": "!N K"})
    for label, bias in {"row": "!N", "column": "!M 1", "one": "!1", "full": "!M N", "fed": "M N"}.items():
        yield from behind(f"Gemm bias {label}", ("Gemm", ["x", "w", "b"], {}), {"x": "M K", "w": "!K N", "b": bias})
    yield from behind("Gemm scaled", ("Gemm", ["x", "w", "b"], {"alpha": 0.5, "beta": 2.0, "transB": 1}),
                      {"x": "M K", "w": "!N K", "b": "!N"})
    yield from behind("Gemm turned", ("Gemm", ["x", "w", "b"], {"transA": 1, "alpha": 0.5}),
                      {"x": "K M", "w": "K N", "b": "!1 N"})
    yield one("MatMul", ["K", "!K N"], label="of a vector")
    yield one("MatMul", ["M K", "!K"], label="by a vector")
    yield one("MatMul", ["B T M K", "T K N"], label="broadcast")
    yield one("MatMul", ["f64:M K", "f64:K N"], label="f64")
    yield one("MatMul", ["f16:M K", "!f16:K N"], label="f16")
    yield one("MatMul", ["i32:M K", "i32:K N"], label="i32")
    yield one("Einsum", ["B M K", "B K N"], equation="bmk,bkn->bmn")
    yield one("Einsum", ["B M K"], equation="bmk->kb", label="sum")
    yield one("FusedGemm", ["M K", "!K N", "!N"], domain=MS, activation="LeakyRelu", activation_alpha=0.1)
    yield chain("products side by side", [("MatMul", ["x", "a"], ["p"]), ("MatMul", ["x", "b"], ["q"]),
                                          ("Sigmoid", ["p"], ["s"]), ("Mul", ["s", "q"], ["y"])],
                x="B M K", a="!K N", b="!K N")
    yield one("MatMulNBits", ["M K", lambda s: np.full((s["N"], s["K"] // 32, 16), 0x5a, np.uint8),
                              lambda s: np.full((s["N"], s["K"] // 32), 0.1, np.float32)], domain=MS, reference=None,
              sizes={"K": 64, "N": 40}, K=lambda s: s["K"], N=lambda s: s["N"], bits=4, block_size=32)


def convolutions():
    def conv(label, x, w, extra=(), tail=(), sizes=None, reference="onnx", **attributes):
        return Family(f"Conv {label}", [("Conv", ["x", "w", "b"], ["p" if tail else "y"], attributes), *tail],
                      {"x": x, "w": w, "b": "!O", **dict(extra)}, 20, sizes, reference)
    pads = {"pads": [1, 1, 1, 1]}
    relu, silu = [("Relu", ["p"], ["y"])], [("Sigmoid", ["p"], ["q"]), ("Mul", ["p", "q"], ["y"])]
    yield conv("1-D", "B C W", "!O C 3")
    yield conv("1-D f64", "f64:B C W", "!f64:O C 3", extra={"b": "!f64:O"})
    yield conv("3-D", "B C D H W", "!O C 2 3 3", pads=[0, 1, 1, 0, 1, 1])
    for label, tail in {"alone": (), "Relu": relu, "SiLU": silu}.items():
        yield conv(f"3x3 {label}", "B C H W", "!O C 3 3", tail=tail, **pads)
        yield conv(f"1x1 {label}", "B C H W", "!O C 1 1", tail=tail)
        yield conv(f"1x1 sparse {label}", "B C H W", "!s:O C 1 1", tail=tail, sizes={"C": 128, "O": 128})
        yield conv(f"3x3 sparse {label}", "B C H W", "!s:O C 3 3", tail=tail, sizes={"C": 128, "O": 128}, **pads)
    yield conv("residual", "B C H W", "!C C 3 3", extra={"b": "!C"}, tail=[("Add", ["p", "x"], ["q"]), ("Relu", ["q"], ["y"])],
               **pads)
    yield conv("strided", "B C H W", "!O C 3 3", strides=[2, 2], **pads)
    yield conv("dilated", "B C H W", "!O C 3 3", dilations=[2, 2], pads=[2, 2, 2, 2])
    yield conv("first layer", "B 3 H W", "!O 3 3 3", strides=[2, 2], **pads)
    yield conv("large", "B O H W", "!O O 3 3", sizes={"O": 64, "H": 28, "W": 28}, **pads)
    yield conv("groups", "B 32 H W", "!O 8 3 3", group=4, **pads)
    yield conv("groups 1x1", "B 32 H W", "!O 4 1 1", group=8)
    yield conv("groups 1-D", "B 32 W", "!O 8 3", group=4, pads=[1, 1])
    yield conv("groups 3-D", "B 32 D H W", "!O 8 1 3 3", group=4, pads=[0, 1, 1, 0, 1, 1])
    yield conv("groups residual", "B 32 H W", "!32 8 3 3", extra={"b": "!32", "low": scalar(0), "high": scalar(6)}, group=4, tail=[("Add", ["p", "x"], ["q"]), ("Clip", ["q", "low", "high"], ["y"])],
               **pads)
    yield conv("depthwise multiplied", "B 16 H W", "!O 1 3 3", group=16, **pads)
    yield conv("depthwise", "B 32 H W", "!O 1 3 3", group=32, **pads)
    yield conv("of fed weights", "B C H W", "O C 3 3", extra={"b": "O"}, **pads)
    yield chain("1x1, depthwise", [("Conv", ["x", "w"], ["p"]), ("Relu", ["p"], ["q"]),
                                   ("Conv", ["q", "v"], ["y"], {"group": 64, "pads": [1, 1, 1, 1]})],
                x="B C H W", w="!64 C 1 1", v="!64 1 3 3")
    yield chain("squeeze-excite", [("GlobalAveragePool", ["x"], ["g"]), ("Conv", ["g", "a"], ["h"]), ("Sigmoid", ["h"], ["s"]),
                                   ("Mul", ["x", "s"], ["m"]), ("Conv", ["m", "w"], ["y"])],
                x="B C H W", a="!C C 1 1", w="!O C 1 1")
    yield chain("Conv, BatchNormalization", [("Conv", ["x", "w"], ["p"], pads),
                                             ("BatchNormalization", ["p", "g", "g", "g", "v"], ["q"]), ("Relu", ["q"], ["y"])],
                x="B C H W", w="!O C 3 3", g="!O", v="!p:O")
    yield chain("Conv, pool, Concat", [("Conv", ["x", "w"], ["p"], pads), ("MaxPool", ["x"], ["q"], {"kernel_shape": [3, 3], **pads}),
                                       ("Concat", ["p", "q"], ["y"], {"axis": 1})], x="B C H W", w="!O C 3 3")
    yield one("Conv", ["f16:B C H W", "!f16:O C 3 3"], label="f16")
    for label, x, w in (("1-D", "B C W", "!C O 3"), ("2-D", "B C H W", "!C O 3 3"), ("3-D", "B C D H W", "!C O 2 3 3")):
        rank = len(x.split()) - 2
        yield one("ConvTranspose", [x, w, "!O"], label=label, strides=[2] * rank)
        yield one("ConvTranspose", [x, w], label=f"{label} stride 1", pads=[1] * 2 * rank if rank < 3 else [0] * 6)
    yield one("ConvTranspose", ["B 32 H W", "!32 O 2 2"], label="groups", group=2, strides=[2, 2])
    yield one("ConvTranspose", ["B 32 H W", "!32 4 3 3"], label="merged groups", group=8, strides=[2, 2])
    yield one("DeformConv", ["B C H W", "!O C 3 3", "B 18 7 8"], opset=19, reference=None, kernel_shape=[3, 3])
    yield one("CausalConvWithState", ["B C S", "!C 1 3", "!C"], opset=27, reference=None, outputs=2)


def pools():
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield one(op, ["B C W"], label="1-D", kernel_shape=[3], pads=[1, 1])
        yield one(op, ["B C H W"], label="2-D", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        yield one(op, ["B C D H W"], label="3-D", kernel_shape=[2, 2, 2])
    for op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        yield one(op, ["B C H W"])
    yield one("MaxPool", ["u8:B C H W"], label="of bytes", kernel_shape=[3, 3], strides=[2, 2])
    yield one("MaxPool", ["B C H W"], label="with indices", outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    yield one("MaxRoiPool", ["B C H W", lambda s: np.zeros((3, 5), np.float32)], pooled_shape=[2, 2])
    yield one("RoiAlign", ["B C H W", "R 4", lambda s: np.zeros(s["R"], np.int64)], sizes={"R": 3}, output_height=2,
              output_width=2, sampling_ratio=2)
    yield one("MaxUnpool", ["B C H W", lambda s: np.zeros((s["B"], s["C"], s["H"], s["W"]), np.int64)], kernel_shape=[2, 2],
              strides=[2, 2])
    yield one("GridSample", ["B C H W", "B S T 2"], opset=20)
    yield one("GridSample", ["B C D H W", "B S T M 2+1"], opset=20, label="3-D")
    yield one("AffineGrid", ["B 2 3", lambda s: ints(s["B"], 3, s["H"], s["W"])], opset=20)
    for mode in ("nearest", "linear", "cubic"):
        yield one("Resize", ["B C H W", None, scalar([1, 1, 2, 2])], mode=mode, label=mode)
        yield one("Resize", ["B C H W", None, None, lambda s: ints(s["B"], s["C"], 7, 5)], mode=mode, label=f"{mode} to sizes")
    yield one("Upsample", ["B C H W", scalar([1, 1, 2, 3])], opset=9, mode="nearest")
    yield one("Col2Im", ["B 9*C S", ints(4, 5), ints(3, 3)], opset=18, sizes={"S": 6})
    yield one("NonMaxSuppression", ["B S 4", "B C S", ints(2)])


def norms():
    yield one("BatchNormalization", ["B C H W", "!C", "!C", "!C", "!p:C"])
    yield one("InstanceNormalization", ["B C H W", "!C", "!C"])
    yield one("LayerNormalization", ["B S E", "!E", "!E"])
    yield one("LayerNormalization", ["B S E", "!S E"], axis=1, label="of two axes", outputs=3)
    yield one("GroupNormalization", ["B C H W", "!C", "!C"], opset=21, num_groups=4)
    yield one("RMSNormalization", ["B S E", "!E"], opset=23)
    yield one("LpNormalization", ["B S E"], axis=1)
    yield one("LRN", ["B C H W"], size=3)
    yield one("MeanVarianceNormalization", ["B C H W"])
    yield one("SkipLayerNormalization", ["B S E", "B S E", "!E", "!E", "!E"], domain=MS)
    yield one("SkipSimplifiedLayerNormalization", ["B S E", "B S E", "!E"], domain=MS)
    yield one("SimplifiedLayerNormalization", ["B S E", "!E"])
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in range(3):
            yield one(op, ["B S E"], axis=axis, label=f"axis {axis}")
        yield one(op, ["B S E"], axis=1, opset=11, label="coerced")
    yield one("BiasSoftmax", ["B S E", "1 S E"], domain=MS, axis=2, is_inner_broadcast=0, reference=None)


def reductions():
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            yield one(f"Reduce{op}", ["p:B S E", *([ints(*axes)] if op == "Sum" else [])], opset=13, keepdims=axes[0] % 2,
                      label=str(axes), **({} if op == "Sum" else {"axes": axes}))
    yield one("ReduceMean", ["i32:B S E"], opset=13, axes=[1], label="i32", reference=None)
    yield one("ReduceMax", ["u8:B S E"], opset=13, axes=[1], label="u8")
    for op in ("ArgMax", "ArgMin"):
        for axis in range(3):
            yield one(op, ["B S E"], axis=axis, label=f"axis {axis}")
    yield one("CumSum", ["B S E", scalar(1, np.int64)])
    yield one("CumProd", ["B S E", scalar(1, np.int64)], opset=26, reference=None)
    yield one("TopK", ["B S E", ints(0)], axis=1, outputs=2)
    yield one("Det", ["B S S"])
    yield one("Inverse", ["B S S"], domain=MS, reference=None)


def elementwise():
    for op in ("Relu", "Sigmoid", "Exp", "Erf", "Tanh", "Neg", "Softplus", "HardSwish", "Sign", "Round"):
        yield one(op, ["B S E"])
    for op in ("Add", "Sub", "Mul", "Div", "Min", "Max"):
        yield one(op, ["B S E", "B S E"], label="alike")
        yield one(op, ["B S E", "!E"], label="by row")
        yield one(op, ["B 1 E", "S 1"], label="both ways")
    yield one("Pow", ["p:B S E", "E"])
    yield one("Mod", ["i32:B S", lambda s: np.full(s["S"], 3, np.int32)])
    yield one("Where", ["b:B S 1", "E", "S E"])
    yield one("Equal", ["B S", "S"])
    yield one("And", ["b:B S", "b:S"])
    yield one("Cast", ["B S"], to=TensorProto.INT32)
    yield one("Cast", ["B S"], to=TensorProto.FLOAT16, label="to f16")
    yield one("Clip", ["B S", scalar(-1), scalar(1)])
    yield one("PRelu", ["B C H W", "!C 1 1"])
    yield one("Sum", ["B S E", "S E", "E"])
    yield one("Mean", ["B S E", "S E", "E"])
    yield one("IsNaN", ["B S"])
    yield one("BiasGelu", ["B S E", "!E"], domain=MS)
    yield one("FastGelu", ["B S E", "!E"], domain=MS)
    yield one("Gelu", ["B S E"], domain=MS)
    yield chain("elementwise chain", [("Mul", ["x", "a"], ["p"]), ("Add", ["p", "b"], ["q"]), ("Sigmoid", ["q"], ["r"]),
                                      ("Mul", ["r", "x"], ["y"])], x="B S E", a="!E", b="S 1")
    yield chain("blocks of channels", [("Conv", ["x", "w"], ["p"]), ("Mul", ["p", "a"], ["q"]), ("Sigmoid", ["q"], ["r"]),
                                       ("Add", ["r", "p"], ["s"]), ("Conv", ["s", "v"], ["y"])],
                x="B C H W", w="!O C 1 1", a="!O 1 1", v="!C O 3 3")


def movement():
    yield one("Concat", ["B S E", "B T E"], axis=1)
    yield one("Concat", ["B S E", "B S N"], axis=2, label="inner")
    yield one("Split", ["B S E"], axis=1, outputs=2, opset=18, num_outputs=2)
    yield one("Split", ["B S E", lambda s: ints(0, s["E"])], axis=2, outputs=2, label="with an empty part")
    yield one("Slice", ["B S E", ints(0, 1), ints(2, 5)])
    yield one("Slice", ["B S E", ints(-1), ints(-99), ints(1), ints(-2)], label="backwards")
    yield one("Pad", ["B S E", ints(0, 1, 2, 0, 3, 0), scalar(0.5)])
    yield one("Pad", ["B S E", ints(0, 1, 0, 0, 1, 0)], mode="edge", label="edge", reference=None)
    yield one("Pad", ["B S E", ints(0, 1, 0, 0, 1, 0)], mode="reflect", label="reflect", reference=None)
    yield one("Pad", ["B S E", ints(0, 1, 0, 0, 1, 0)], mode="wrap", opset=19, label="wrap", reference=None)
    yield one("Tile", ["B S E", ints(1, 2, 3)])
    yield one("Tile", ["B S E", ints(1, 0, 3)], label="no times")
    yield one("Expand", ["B 1 E", lambda s: ints(s["B"], s["S"], s["E"])])
    yield one("Transpose", ["B S E"], perm=[2, 0, 1])
    yield one("Reshape", ["B S E", ints(0, -1)], label="to two dims")
    yield one("Reshape", ["B S E", lambda s: ints(s["S"], s["E"], s["B"])], allowzero=1)
    yield one("Flatten", ["B S E"], axis=2)
    yield one("Squeeze", ["B 1 E", ints(1)])
    yield one("Unsqueeze", ["B E", ints(1)])
    yield one("DepthToSpace", ["B C H W"], blocksize=2)
    yield one("SpaceToDepth", ["B C H W"], blocksize=2, sizes={"H": 8})
    yield one("Trilu", ["B S E"])
    yield one("EyeLike", ["S E"])
    yield one("ReverseSequence", ["S B E", lambda s: np.full(s["B"], min(s["S"], 2), np.int64)], time_axis=0, batch_axis=1)
    yield one("CenterCropPad", ["B S E", ints(3, 5)], axes=[1, 2], opset=18)
    yield one("Shape", ["B S E"])
    yield one("Size", ["B S E"])
    yield one("ConstantOfShape", [lambda s: ints(s["S"], s["E"])], reference=None)
    yield chain("heads", [("Reshape", ["x", "shape"], ["p"]), ("Transpose", ["p"], ["q"], {"perm": [0, 2, 1, 3]}),
                          ("MatMul", ["q", "w"], ["y"])], x="B S E", w="!8 N", shape=ints(0, 0, 4, 8))
    indices = lambda s: np.zeros((s["T"], 2), np.int64)  # noqa: E731
    yield one("Gather", ["B S E", lambda s: np.zeros(s["T"] * min(s["S"], 1), np.int64)], axis=1, reference=None)
    yield one("Gather", ["!N E", lambda s: np.zeros((s["B"] * min(s["N"], 1), 2), np.int64)], label="embedding", reference=None)
    yield one("GatherElements", ["B S E", lambda s: np.zeros((s["B"], min(2, s["S"]), s["E"]), np.int64)], axis=1, reference=None)
    yield one("GatherND", ["M N E", indices], sizes={"T": 3}, reference=None)
    yield one("ScatterND", ["S E", lambda s: np.zeros((s["T"], 1), np.int64), "T E"], reference=None)
    yield one("ScatterElements", ["S E", lambda s: np.zeros((1 * min(s["S"], 1), s["E"]), np.int64), lambda s: np.ones((1 * min(s["S"], 1), s["E"]), np.float32)])
    yield one("TensorScatter", ["B S E", "B T E", lambda s: np.zeros(s["B"], np.int64)], opset=24, axis=1, reference=None)
    yield one("OneHot", ["i64:B S", ints(7), scalar([0, 1])])
    yield one("NonZero", ["B S"])
    yield one("Unique", ["B S"], axis=1, outputs=4)
    yield one("Unique", ["B S"], outputs=1, label="flat")
    yield one("Compress", ["B S", lambda s: np.ones(s["S"], bool)], axis=1)
    yield chain("sequence", [("SplitToSequence", ["x"], ["s"], {"axis": 1}), ("ConcatFromSequence", ["s"], ["y"], {"axis": 1})],
                x="B S E", reference=None)
    yield one("DFT", ["B S 1", None, scalar(1, np.int64)], opset=20, reference=None)
    yield one("STFT", ["B L 1", scalar(4, np.int64), scalar(np.ones(8))], opset=17, sizes={"L": 32}, reference=None)


def attention():
    yield one("Attention", ["B 4 S 8", "B 4 T 8", "B 4 T 8"], opset=23)
    yield one("Attention", ["B S 4*E", "B T 4*E", "B T 4*E"], opset=23, sizes={"E": 8}, label="3-D", q_num_heads=4,
              kv_num_heads=4, is_causal=1)
    yield one("MultiHeadAttention", ["B S E", "B T E", "B T E"], domain=MS, num_heads=4, reference=None)
    yield one("Attention", ["B S K", "!K 3*E", "!3*E"], domain=MS, num_heads=4, label="of Microsoft")
    yield one("RotaryEmbedding", ["B 4 S 8", lambda s: np.zeros((s["B"], s["S"]), np.int64), "!64 4", "!64 4"], domain=MS)
    pattern = [("MatMul", ["q", "k"], ["s"]), ("Mul", ["s", "c"], ["t"]), ("Add", ["t", "m"], ["u"]),
               ("Softmax", ["u"], ["p"]), ("MatMul", ["p", "v"], ["y"])]
    yield chain("attention of nodes", pattern, q="B 4 S 8", k="B 4 8 T", v="B 4 T N", c=scalar(0.35), m="S T")
    layer = [("MatMul", ["x", "wq"], ["q0"]), ("MatMul", ["x", "wk"], ["k0"]), ("MatMul", ["x", "wv"], ["v0"]),
             ("Reshape", ["q0", "shape"], ["q1"]), ("Reshape", ["k0", "shape"], ["k1"]), ("Reshape", ["v0", "shape"], ["v1"]),
             ("Transpose", ["q1"], ["q"], {"perm": [0, 2, 1, 3]}), ("Transpose", ["k1"], ["k"], {"perm": [0, 2, 3, 1]}),
             ("Transpose", ["v1"], ["v"], {"perm": [0, 2, 1, 3]}), ("MatMul", ["q", "k"], ["s"]), ("Mul", ["s", "c"], ["t"]),
             ("Softmax", ["t"], ["p"]), ("MatMul", ["p", "v"], ["o"]), ("Transpose", ["o"], ["o1"], {"perm": [0, 2, 1, 3]}),
             ("Reshape", ["o1", "back"], ["o2"]), ("MatMul", ["o2", "wo"], ["y"])]
    yield chain("attention layer", layer, x="B S K", wq="!K 32", wk="!K 32", wv="!K 32", wo="!32 N", c=scalar(0.35),
                shape=ints(0, 0, 4, 8), back=ints(0, 0, 32))
    yield one("GroupQueryAttention", ["B S 32", "B S 16", "B S 16", "B 2 T 8", "B 2 T 8", lambda s: np.full(s["B"], s["S"] + s["T"] - 1, np.int32),
                                      lambda s: scalar(s["S"] + s["T"], np.int32)], domain=MS, num_heads=4, kv_num_heads=2, outputs=3, reference=None)


def recurrent():
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for label, n in (("forward", 1), ("bidirectional", 2)):
            yield one(op, ["S B I", f"!{n} {gates}*H I", f"!{n} {gates}*H H", f"!{n} {2 * gates}*H"], label=label,
                      sizes={"S": 4, "I": 5, "H": 16}, outputs=2, hidden_size=lambda s: s["H"], direction=label)
        yield one(op, ["S B I", f"!1 {gates}*H I", f"!1 {gates}*H H", None, lambda s: np.zeros(s["B"], np.int32), "1 B H"],
                  label="without a step", sizes={"S": 4, "I": 5, "H": 16}, outputs=2, hidden_size=lambda s: s["H"], reference=None)


def bytes_():
    q = [scalar(0.1), scalar(100, np.uint8)]
    yield one("QuantizeLinear", ["B S E", *q])
    yield one("QuantizeLinear", ["B C H W", "!p:C", "!u8:C"], axis=1, label="by channel")
    yield one("DequantizeLinear", ["u8:B C H W", "!p:C", "!u8:C"], axis=1, label="by channel")
    yield one("DequantizeLinear", ["u8:B S", *q])
    yield one("DynamicQuantizeLinear", ["B S"], outputs=3, reference=None)
    yield one("MatMulInteger", ["u8:M K", "!i8:K N", ZERO, SIGNED_ZERO])
    yield one("MatMulInteger", ["u8:M K", "!u8:K N", ZERO, scalar(5, np.uint8)], label="u8")
    yield one("ConvInteger", ["u8:B C H W", "!u8:O C 3 3", ZERO, ZERO], pads=[1, 1, 1, 1])
    yield one("QLinearMatMul", ["u8:M K", *q, "!u8:K N", *q, *q])
    yield one("QLinearMatMul", ["u8:B M K", *q, "u8:B K N", *q, *q], label="of activations")
    yield one("QLinearConv", ["u8:B C H W", *q, "!u8:O C 3 3", *q, *q], pads=[1, 1, 1, 1])
    yield one("QLinearConv", ["u8:B C H W", *q, "!u8:O C 1 1", *q, *q, "!i32:O"], label="1x1")
    yield one("QLinearConv", ["u8:B C W", *q, "!u8:O C 3", *q, *q], label="1-D")
    yield one("QLinearConv", ["u8:B 32 H W", *q, "!u8:32 1 3 3", *q, *q], label="depthwise", group=32)
    yield one("QLinearConv", ["u8:B 32 H W", *q, "!u8:O 8 3 3", *q, *q], label="groups", group=4)
    yield one("DynamicQuantizeMatMul", ["M K", "!u8:K N", SCALE, ZERO], domain=MS, reference=None)
    yield one("MatMulIntegerToFloat", ["u8:M K", "!u8:K N", SCALE, SCALE, ZERO, ZERO, "!N"], domain=MS, reference=None)
    yield one("QGemm", ["u8:M K", *q, "!u8:K N", *q, "!i32:N", *q], domain=MS, reference=None)
    yield one("QLinearAdd", ["u8:B S E", *q, "u8:B S E", *q, *q], domain=MS)
    yield one("QLinearMul", ["u8:B S E", *q, "!u8:E", *q, *q], domain=MS, reference=None)
    yield one("QLinearSigmoid", ["u8:B S", *q, *q], domain=MS)
    yield one("QLinearLeakyRelu", ["u8:B S", *q, *q], domain=MS, alpha=0.1)
    yield one("QLinearConcat", [*q, "u8:B S", *q, "u8:B T", *q], domain=MS, axis=1)
    yield one("QLinearAveragePool", ["u8:B C H W", *q, *q], domain=MS, kernel_shape=[3, 3])
    yield one("QLinearGlobalAveragePool", ["u8:B C H W", *q, *q], domain=MS)
    yield one("QLinearSoftmax", ["u8:B S", *q, *q], domain=MS, axis=-1, opset=13, reference=None)

    def between(label, op, x, w, **attributes):
        """DequantizeLinear, an operator and QuantizeLinear, which are one of bytes."""
        return chain(label, [("QuantizeLinear", ["x", "s", "z"], ["a"]), ("DequantizeLinear", ["a", "s", "z"], ["b"]),
                             ("DequantizeLinear", ["w", "s", "z0"], ["v"]), (op, ["b", "v"], ["c"], attributes), ("Relu", ["c"], ["r"]),
                             ("QuantizeLinear", ["r", "s", "z"], ["d"]), ("DequantizeLinear", ["d", "s", "z"], ["y"])],
                     x=x, w=w, s=scalar(0.1), z=scalar(100, np.uint8), z0=SIGNED_ZERO)
    yield between("MatMul of bytes", "MatMul", "M K", "!i8:K N")
    yield between("Gemm of bytes", "Gemm", "M K", "!i8:N K", transB=1)
    yield between("Conv of bytes", "Conv", "B C H W", "!i8:O C 3 3", pads=[1, 1, 1, 1])
    yield between("Conv of bytes 1x1", "Conv", "B C H W", "!i8:O C 1 1")
    yield between("Conv of bytes depthwise", "Conv", "B 32 H W", "!i8:32 1 3 3", group=32)
    yield chain("dynamic bytes", [("DynamicQuantizeLinear", ["x"], ["a", "s", "z"]), ("MatMulInteger", ["a", "w", "z"], ["i"]),
                                  ("Cast", ["i"], ["f"], {"to": TensorProto.FLOAT}), ("Mul", ["s", "t"], ["u"]),
                                  ("Mul", ["f", "u"], ["g"]), ("Add", ["g", "b"], ["y"])],
                x="M K", w="!i8:K N", t=SCALE, b="!N", reference=None)
    yield chain("table of bytes", [("DequantizeLinear", ["x", "s", "z"], ["a"]), ("HardSwish", ["a"], ["b"]),
                                   ("QuantizeLinear", ["b", "s", "z"], ["y"])], x="u8:B S", s=scalar(0.1), z=scalar(100, np.uint8))


def others():
    ml = "ai.onnx.ml"
    yield one("LinearRegressor", ["B 4"], domain=ml, coefficients=[0.1] * 8, intercepts=[0.0, 1.0], targets=2)
    yield one("LinearClassifier", ["B 4"], domain=ml, outputs=2, coefficients=[0.1] * 12, intercepts=[0.0, 0.1, 0.2],
              classlabels_ints=[0, 1, 2], multi_class=1, post_transform="SOFTMAX")
    yield one("Normalizer", ["B S"], domain=ml, norm="L2", reference=None)
    yield one("Scaler", ["B 4"], domain=ml, offset=[0.5] * 4, scale=[2.0] * 4)
    yield one("Imputer", ["B 4"], domain=ml, imputed_value_floats=[1.0], replaced_value_float=0.0)
    yield one("OneHotEncoder", ["i64:B"], domain=ml, cats_int64s=[0, 1, 2], zeros=1)
    yield one("ArrayFeatureExtractor", ["B 4", ints(0, 2)], domain=ml, reference=None)
    yield one("FeatureVectorizer", ["B 4", "B 3"], domain=ml, reference=None, inputdimensions=[4, 3])
    yield one("SVMRegressor", ["B 4"], domain=ml, coefficients=[0.5, -0.5], kernel_params=[0.1, 0.0, 2.0], kernel_type="POLY",
              n_supports=2, rho=[0.1], support_vectors=[0.5] * 8)
    yield one("TreeEnsembleRegressor", ["B 4"], domain=ml, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
              nodes_featureids=[1, 0, 0], nodes_values=[0.5, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
              nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], n_targets=1, target_ids=[0, 0], target_nodeids=[1, 2],
              target_treeids=[0, 0], target_weights=[1.0, 2.0])
    target = lambda s: np.zeros((s["B"], s["S"]), np.int64)  # noqa: E731
    for reduction in ("none", "mean", "sum"):
        yield one("NegativeLogLikelihoodLoss", ["B 7 S", target], reduction=reduction, label=reduction, reference=None)
        yield one("SoftmaxCrossEntropyLoss", ["B 7 S", target], outputs=2, reduction=reduction, label=reduction, reference=None)


def all_families():
    makers = (products, convolutions, pools, norms, reductions, elementwise, movement, attention, recurrent, bytes_, others)
    return [family for maker in makers for family in maker()]
