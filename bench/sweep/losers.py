# SPDX-License-Identifier: Apache-2.0
"""Which operators lose: sonde's steps beside the other runtime's, from the profiles of both.

A step of sonde names the nodes of the file that it computes. A step of another runtime has a name made from the name of
one node or of the tensor it makes; where that node is found, the two steps are compared. What cannot be matched shows in
the sums by class."""

import re

CLASSES = {
    "convolution": "Conv FusedConv ConvTranspose Convolution GroupConvolution Deconvolution ConvolutionBackpropData "
                   "NhwcFusedConv",
    "product": "MatMul Gemm FusedMatMul FusedGemm FullyConnected MatMulNBits Einsum",
    "attention": "Attention MultiHeadAttention ScaledDotProductAttention ScaledDotProductAttentionWithKVCache MHA RoPE "
                 "RotaryEmbedding",
    "normalisation": "LayerNormalization SkipLayerNormalization SimplifiedLayerNormalization RMSNormalization MVN RMS "
                     "GroupNormalization InstanceNormalization BatchNormalization RMSNorm LpNormalization",
    "softmax and reduction": "Softmax LogSoftmax ReduceMean ReduceSum ReduceMax ReduceMin ReduceL2 Reduce TopK ArgMax "
                             "CumSum",
    "pooling and resizing": "MaxPool AveragePool GlobalAveragePool GlobalMaxPool Pooling AdaptivePooling Resize Upsample "
                            "Interpolate GridSample",
    "recurrent": "LSTM GRU RNN RNNCell LSTMSequence GRUSequence LSTMCell GRUCell Loop Scan TensorIterator",
    "layout and copies": "Transpose Reshape Reorder ReorderInput ReorderOutput Concat Concatenation Slice StridedSlice "
                         "Split Gather GatherND GatherElements ScatterND ScatterElements ScatterUpdate Pad Expand "
                         "Broadcast Tile Flatten Squeeze Unsqueeze DepthToSpace SpaceToDepth Identity Roll Shape "
                         "ConstantOfShape Cast Convert ShuffleChannels",
}
CLASS_OF = {op: name for name, ops in CLASSES.items() for op in ops.split()}
# What runtimes put around the name of a node when they change it.
AROUND = re.compile(r"^(fused |Fused_)+|(_nchwc|_nhwc|/MatMulAddFusion|/WithoutBiases|/MatMulScaleFusion/?|_token_\d+"
                    r"|/fq_.*|_abcd.*|/DequantizeLinear|_original|_fused|_\d+_merged)+$")


def class_of(step):
    """The class of a step of either profile. Sonde's fused attention is a product with a softmax behind it."""
    if "Softmax" in step.get("post", ""):
        return "attention"
    return CLASS_OF.get(step["op"].strip("[]"), "elementwise and other")


def own_steps(trace):
    """The steps of a Chrome trace of sonde, with the mean milliseconds of each in a run."""
    steps, runs = {}, set()
    for event in trace["traceEvents"]:
        about = event.get("args") or {}
        if event.get("cat") != "operator" or event.get("ph") != "X" or about.get("warmup"):
            continue
        runs.add(about.get("iteration"))
        nodes = tuple(about.get("nodes") or ())
        step = steps.setdefault((event["name"], about.get("op"), nodes, about.get("kernel"), about.get("input_shape")), {
            "op": about.get("op") or event["name"], "post": about.get("post_op") or "", "nodes": nodes,
            "shapes": about.get("input_shape") or "", "attributes": about.get("attributes") or "",
            "kernel": about.get("kernel") or "", "flops": 0, "ms": 0.0})
        step["ms"] += event["dur"] / 1000
        step["flops"] += about.get("flops") or 0
    count = max(1, len(runs))
    return [{**step, "ms": step["ms"] / count, "flops": step["flops"] / count} for step in steps.values()]


def matched(own, peer, producers):
    """For each own step the milliseconds of the peer's steps on its nodes, or None where it has none."""
    where, times = {}, [None] * len(own)
    for k, step in enumerate(own):
        for node in step["nodes"]:
            where.setdefault(node, k)
    for step in peer:
        plain = AROUND.sub("", step["name"])
        names = (step["name"], producers.get(step["name"]), plain, producers.get(plain))
        k = next((where[name] for name in names if name in where), None)
        if k is not None:
            times[k] = (times[k] or 0.0) + step["ms"]
    return times


def by_class(own, peer):
    """[(class, own ms, peer's ms)], the largest loss first."""
    sums = {}
    for k, steps in enumerate((own, peer)):
        for step in steps:
            sums.setdefault(class_of(step), [0.0, 0.0])[k] += step["ms"]
    return sorted(((name, *pair) for name, pair in sums.items()), key=lambda row: row[2] - row[1])


def what(step):
    """Attributes that matter to a reader: groups, strides and dilations that are not 1."""
    found = dict(part.split("=", 1) for part in step["attributes"].split(";") if "=" in part)
    kept = [f"{short} {found[name]}" for name, short in (("group", "groups"), ("strides", "stride"),
                                                         ("dilations", "dilation"))
            if set(found.get(name, "1").split(",")) != {"1"}]
    return ", ".join(kept)


def groups(own, peer, producers):
    """Own steps of the same operator, shapes and kernel together, with the peer's time on the same nodes."""
    found = {}
    for step, theirs in zip(own, matched(own, peer, producers)):
        label = step["op"] + (f"+{step['post']}" if step["post"] else "")
        key = (label, step["shapes"], what(step), step["kernel"])
        group = found.setdefault(key, {"op": label, "shapes": step["shapes"], "what": what(step),
                                       "kernel": step["kernel"], "steps": 0, "ms": 0.0, "flops": 0.0, "peer_ms": None})
        group["steps"] += 1
        group["ms"] += step["ms"]
        group["flops"] += step["flops"]
        if theirs is not None:
            group["peer_ms"] = (group["peer_ms"] or 0.0) + theirs
    for group in found.values():
        flops = group.pop("flops")
        group["gflops"] = flops / group["ms"] / 1e6 if flops and group["ms"] else None
    return list(found.values())


def report(own, peer, producers, most=8):
    """What the page says of a model that loses. Steps that lose come first, then long ones without a counterpart."""
    total = sum(step["ms"] for step in own)
    rows = [g for g in groups(own, peer, producers) if g["ms"] - (g["peer_ms"] or 0) > 0.005 * total]
    known = sorted((g for g in rows if g["peer_ms"] is not None), key=lambda g: g["peer_ms"] - g["ms"])
    alone = sorted((g for g in rows if g["peer_ms"] is None and g["ms"] > 0.03 * total), key=lambda g: -g["ms"])
    return {"own_ms": total, "peer_ms": sum(step["ms"] for step in peer), "classes": by_class(own, peer),
            "steps": known[:most] + alone[:most // 2]}
