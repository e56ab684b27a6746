# SPDX-License-Identifier: Apache-2.0
"""Models of one operator that the onnx package has no case for, one row each."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

ML, MS, OWN = "ai.onnx.ml", "com.microsoft", "sonde"
VERSIONS = {"": 21, ML: 3, MS: 1, OWN: 1}


class Given:
    """An input that is fed, as opposed to a constant."""

    def __init__(self, *shape, dtype=T.FLOAT):
        self.shape, self.dtype = shape, dtype


def f32(*shape):
    return (np.arange(int(np.prod(shape)), dtype=np.float32) % 7 / 4 - 0.5).reshape(shape)


def u8(*shape):
    return (np.arange(int(np.prod(shape))) * 37 % 256).astype(np.uint8).reshape(shape)


def i64(*values):
    return np.array(values, np.int64)


def i32(*values):
    return np.array(values, np.int32)


SCALE, ZERO = np.array(0.25, np.float32), np.array(3, np.uint8)
X, IMAGE, BYTES = Given(2, 4), Given(1, 4, 5, 5), Given(2, 4, dtype=T.UINT8)
TOKENS = Given(1, 3, 8)
TREE = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[1, 0, 0],
            nodes_values=[0.5, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
            nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
Q4 = [f32(1, 3, 2, 4), f32(1, 3, 1, 4), f32(1, 3, 1, 4)]

# domain, operator, inputs (None: left out), number of outputs, attributes
ROWS = [
    ("", "GlobalLpPool", [IMAGE], 1, {"p": 2}),
    ("", "MaxRoiPool", [IMAGE, f32(2, 5)], 1, {"pooled_shape": [2, 2], "spatial_scale": 1.0}),
    ("", "Multinomial", [X], 1, {"sample_size": 3}),
    ("", "RandomNormal", [], 1, {"shape": [2, 3]}),
    ("", "RandomUniform", [], 1, {"shape": [2, 3], "high": 2.0}),
    ("", "RandomNormalLike", [X], 1, {}),
    ("", "RandomUniformLike", [X], 1, {}),
    ("", "Multinomial", [X], 1, {"sample_size": 2, "dtype": T.INT64}),
    ("", "SequenceConstruct", [X, X, f32(2, 4)], 1, {}),
    ("", "Optional", [X], 1, {}),
    (ML, "CategoryMapper", [Given(3, dtype=T.INT64)], 1,
     {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "c"], "default_string": "?"}),
    (ML, "FeatureVectorizer", [X, Given(2, 3)], 1, {"inputdimensions": [4, 3]}),
    (ML, "Imputer", [X], 1, {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}),
    (ML, "LinearClassifier", [X], 2,
     {"coefficients": [0.1] * 12, "intercepts": [0.0, 0.1, 0.2], "classlabels_ints": [0, 1, 2],
      "multi_class": 1, "post_transform": "SOFTMAX"}),
    (ML, "LinearRegressor", [X], 1, {"coefficients": [0.1] * 8, "intercepts": [0.0, 1.0], "targets": 2}),
    (ML, "Normalizer", [X], 1, {"norm": "L2"}),
    (ML, "OneHotEncoder", [Given(3, dtype=T.INT64)], 1, {"cats_int64s": [0, 1, 2], "zeros": 1}),
    (ML, "Scaler", [X], 1, {"offset": [0.5] * 4, "scale": [2.0] * 4}),
    (ML, "Binarizer", [X], 1, {"threshold": 0.5}),
    (ML, "ArrayFeatureExtractor", [X, i64(0, 2)], 1, {}),
    (ML, "LabelEncoder", [Given(3, dtype=T.INT64)], 1,
     {"keys_int64s": [0, 1, 2], "values_strings": ["a", "b", "c"], "default_string": "?"}),
    (ML, "SVMClassifier", [X], 2,
     {"classlabels_ints": [0, 1], "coefficients": [0.5, -0.5], "kernel_params": [0.1, 0.0, 2.0],
      "kernel_type": "RBF", "rho": [0.1], "support_vectors": [0.5] * 8, "vectors_per_class": [1, 1]}),
    (ML, "SVMRegressor", [X], 1,
     {"coefficients": [0.5, -0.5], "kernel_params": [0.1, 0.0, 2.0], "kernel_type": "POLY", "n_supports": 2,
      "rho": [0.1], "support_vectors": [0.5] * 8}),
    (ML, "TreeEnsembleRegressor", [X], 1,
     {**TREE, "n_targets": 1, "target_ids": [0, 0], "target_nodeids": [1, 2], "target_treeids": [0, 0],
      "target_weights": [1.0, 2.0]}),
    (ML, "TreeEnsembleClassifier", [X], 2,
     {**TREE, "class_ids": [0, 1], "class_nodeids": [1, 2], "class_treeids": [0, 0], "class_weights": [1.0, 2.0],
      "classlabels_int64s": [0, 1], "post_transform": "NONE"}),
    (MS, "Attention", [TOKENS, f32(8, 24), f32(24), i32(3)], 1, {"num_heads": 2}),
    (MS, "MultiHeadAttention", [TOKENS, Given(1, 3, 8), f32(1, 3, 8), f32(24)], 1, {"num_heads": 2}),
    (MS, "GroupQueryAttention", [TOKENS, f32(1, 3, 4), f32(1, 3, 4), f32(1, 1, 4, 4), f32(1, 1, 4, 4), i32(2), i32(3)],
     3, {"num_heads": 2, "kv_num_heads": 1}),
    (MS, "RotaryEmbedding", [Given(1, 2, 3, 4), i64(0), f32(5, 2), f32(5, 2)], 1, {"interleaved": 0}),
    (MS, "FusedConv", [IMAGE, f32(4, 4, 3, 3), f32(4)], 1, {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    (MS, "FusedMatMul", [Given(2, 3, 4), f32(2, 5, 4)], 1, {"transB": 1, "alpha": 0.5}),
    (MS, "FusedGemm", [X, f32(4, 3), f32(3)], 1, {"activation": "LeakyRelu", "activation_alpha": 0.1}),
    (MS, "MatMulNBits", [Given(2, 32), u8(3, 2, 8), f32(6), u8(3)], 1, {"K": 32, "N": 3, "bits": 4, "block_size": 16}),
    (MS, "DynamicQuantizeMatMul", [X, u8(4, 3), SCALE, ZERO], 1, {}),
    (MS, "DynamicQuantizeLSTM",
     [Given(2, 1, 3), u8(1, 3, 8), u8(1, 2, 8), None, None, None, None, None, f32(1), u8(1), f32(1), u8(1)], 3,
     {"hidden_size": 2}),
    (MS, "MatMulIntegerToFloat", [BYTES, u8(4, 3), SCALE, SCALE, ZERO, ZERO, f32(3)], 1, {}),
    (MS, "Gelu", [X], 1, {}),
    (MS, "BiasGelu", [X, f32(4)], 1, {}),
    (MS, "FastGelu", [X, f32(4)], 1, {}),
    (MS, "QuickGelu", [X], 1, {"alpha": 1.7}),
    (MS, "SkipLayerNormalization", [TOKENS, f32(1, 3, 8), f32(8), f32(8), f32(8)], 1, {}),
    (MS, "SkipSimplifiedLayerNormalization", [TOKENS, f32(1, 3, 8), f32(8)], 1, {}),
    (MS, "SimplifiedLayerNormalization", [TOKENS, f32(8)], 1, {"axis": -1}),
    ("", "SimplifiedLayerNormalization", [TOKENS, f32(8)], 1, {"axis": -1}),
    (MS, "EmbedLayerNormalization",
     [i32(0, 1, 2).reshape(1, 3), i32(0, 0, 1).reshape(1, 3), f32(5, 4), f32(6, 4), f32(2, 4), f32(4), f32(4)], 2, {}),
    (MS, "BiasSoftmax", [X, f32(1, 4)], 1, {"axis": 1, "is_inner_broadcast": 0}),
    (MS, "Tokenizer", [np.array(["ab, c", "d"], object)], 1,
     {"mark": 1, "mincharnum": 1, "pad_value": "#", "tokenexp": "[a-z]+"}),
    (MS, "Inverse", [Given(2, 3, 3)], 1, {}),
    (MS, "Trilu", [Given(3, 3), i64(1).reshape(())], 1, {"upper": 0}),
    (MS, "GatherND", [X, i64(0, 1).reshape(1, 2)], 1, {}),
    (MS, "Pad", [X, i64(0, 1, 0, 1), SCALE], 1, {"mode": "constant"}),
    (MS, "QuantizeLinear", [X, SCALE, ZERO], 1, {}),
    (MS, "DequantizeLinear", [BYTES, SCALE, ZERO], 1, {}),
    (MS, "QLinearAdd", [BYTES, SCALE, ZERO, u8(2, 4), SCALE, ZERO, SCALE, ZERO], 1, {}),
    (MS, "QLinearMul", [BYTES, SCALE, ZERO, u8(4), SCALE, ZERO, SCALE, ZERO], 1, {}),
    (MS, "QLinearSigmoid", [BYTES, SCALE, ZERO, SCALE, ZERO], 1, {}),
    (MS, "QLinearLeakyRelu", [BYTES, SCALE, ZERO, SCALE, ZERO], 1, {"alpha": 0.1}),
    (MS, "QLinearConcat", [SCALE, ZERO, BYTES, SCALE, ZERO, u8(2, 2), SCALE, ZERO], 1, {"axis": 1}),
    (MS, "QLinearAveragePool", [Given(1, 2, 4, 4, dtype=T.UINT8), SCALE, ZERO, SCALE, ZERO], 1,
     {"kernel_shape": [2, 2]}),
    (MS, "QLinearGlobalAveragePool", [Given(1, 2, 4, 4, dtype=T.UINT8), SCALE, ZERO, SCALE, ZERO], 1,
     {"channels_last": 0}),
    (MS, "QLinearSoftmax", [BYTES, SCALE, ZERO, SCALE, ZERO], 1, {"axis": -1, "opset": 13}),
    (OWN, "FusedConv", [IMAGE, f32(4, 4, 3, 3), f32(4), f32(1, 4, 5, 5)], 1,
     {"activation": "Clip", "activation_params": [0.0, 6.0], "pads": [1, 1, 1, 1]}),
    (OWN, "ConvDepthwise", [IMAGE, f32(8, 1, 3, 3), f32(8, 4, 1, 1), f32(8), f32(8)], 1,
     {"first_activation": "Relu", "activation": "Silu", "pads": [1, 1, 1, 1]}),
    (OWN, "GatedConv", [IMAGE, f32(8, 4, 1, 1), f32(1, 4, 1, 1), f32(8), f32(1, 8, 5, 5)], 1,
     {"activation": "Relu"}),
    (OWN, "FusedGemm", [X, f32(4, 3), f32(3), f32(2, 3)], 1,
     {"activation": "LeakyRelu", "activation_params": [0.1]}),
    (OWN, "FusedAttention", [TOKENS, f32(1, 3, 8), f32(1, 3, 8), f32(1, 1, 3, 3)], 1,
     {"heads": 2, "kv_heads": 1, "head_size": 4, "v_head_size": 4, "q_view": [0, -1, 1, 4, 0],
      "k_view": [0, -1, 1, 0, 0], "v_view": [0, -1, 1, 0, 4], "y_axes": [1, 3, 24], "scale": 0.5}),
    (OWN, "FusedRotary", [TOKENS, f32(3, 4), f32(1, 1, 3, 4)], 1,
     {"heads": 2, "head_size": 4, "x_view": [0, -1, 1, 4, 0], "interleaved": 1}),
    (OWN, "Reorder", [IMAGE], 1, {"block": 8}),
]


def one(domain, op, inputs, n_outputs, attributes):
    names, fed, constants = [], [], []
    for k, value in enumerate(inputs):
        name = f"i{k}" if value is not None else ""
        names.append(name)
        if isinstance(value, Given):
            fed.append(h.make_tensor_value_info(name, value.dtype, value.shape))
        elif value is not None:
            constants.append(nh.from_array(value, name))
    outputs = [f"o{k}" for k in range(n_outputs)]
    node = h.make_node(op, names, outputs, domain=domain, **attributes)
    graph = h.make_graph([node], "seed", fed, [onnx.ValueInfoProto(name=o) for o in outputs], constants)
    opsets = [h.make_opsetid("", VERSIONS[""])]
    if domain:
        opsets.append(h.make_opsetid(domain, VERSIONS[domain]))
    return h.make_model(graph, opset_imports=opsets, ir_version=10)


def sequences():
    """What takes a sequence or a map, behind what makes one."""
    def chain(name, nodes, outputs, constants=(), domain=""):
        graph = h.make_graph(nodes, name, [h.make_tensor_value_info("x", T.FLOAT, ("N", 4))],
                             [onnx.ValueInfoProto(name=o) for o in outputs],
                             [nh.from_array(v, n) for n, v in constants])
        opsets = [h.make_opsetid("", 21)] + ([h.make_opsetid(domain, 3)] if domain else [])
        return name, h.make_model(graph, opset_imports=opsets, ir_version=10)

    make = h.make_node("SequenceConstruct", ["x", "x", "x"], ["s"])
    at = [("at", np.array(1, np.int64))]
    yield chain("sequence_at", [make, h.make_node("SequenceAt", ["s", "at"], ["y"])], ["y"], at)
    yield chain("sequence_erase", [make, h.make_node("SequenceErase", ["s", "at"], ["t"]),
                                   h.make_node("SequenceLength", ["t"], ["y"])], ["y", "t"], at)
    yield chain("concat_from_sequence", [make, h.make_node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)],
                ["y"])
    yield chain("optional_of_sequence", [make, h.make_node("Optional", ["s"], ["o"]),
                                         h.make_node("OptionalHasElement", ["o"], ["h"]),
                                         h.make_node("OptionalGetElement", ["o"], ["y"])], ["y", "h"])
    yield chain("zip_map", [h.make_node("ZipMap", ["x"], ["y"], domain=ML, classlabels_int64s=[0, 1, 2, 3])], ["y"],
                domain=ML)


def operator_seeds():
    """Yields (name, model)."""
    for k, row in enumerate(ROWS):
        yield f"{row[1]}_{(row[0] or 'onnx').split('.')[-1]}_{k}", one(*row)
    yield from sequences()
