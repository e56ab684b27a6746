# SPDX-License-Identifier: Apache-2.0
"""Classical models: the domain ai.onnx.ml."""

import numpy as np

from .builder import F32, F64, I64, STRING, NoFit, row

ML = "ai.onnx.ml"


def emit(b, *args, **known):
    b.opsets.setdefault(ML, 3)
    return b.emit(*args, domain=ML, **known)


def table(b, exact=False, dtypes=(F32,)):
    return b.pick(dtypes, rank=2, mag=20, exact=exact)


@row(0.4)
def scaler(b):
    x = table(b)
    n = x.shape[1]
    offset, scale = b.random(F32, (n,)), b.random(F32, (n,), 0.5, 2)
    if b.chance(0.3):
        offset, scale = offset[:1], scale[:1]
    emit(b, "Scaler", [x], attributes={"offset": offset.tolist(), "scale": scale.tolist()}, mag=2 * x.mag + 6)


@row(0.4)
def normalizer(b):
    x = b.pick((F32,), rank=2, low=0.3)
    emit(b, "Normalizer", [x], attributes={"norm": b.choice(("MAX", "L1", "L2"))}, mag=1)


@row(0.3)
def binarizer(b):
    x = table(b, exact=True)
    emit(b, "Binarizer", [x], attributes={"threshold": b.choice((None, 0.3))}, exact=True, mag=1)


@row(0.3)
def imputer(b):
    data = b.random(F32, (b.int(1, 4), b.int(1, 4)))
    data[b.random(np.dtype("?"), data.shape)] = np.nan
    x = b.input(F32, data.shape, data=data)
    b.values.remove(x)
    emit(b, "Imputer", [x], exact=True, mag=5,
         attributes={"imputed_value_floats": b.random(F32, (data.shape[1],)).tolist(),
                     "replaced_value_float": float("nan")})


@row(0.3)
def one_hot_encoder(b):
    x = b.input(I64, (b.int(1, 5),), data=b.random(I64, (b.int(1, 5),), 0, 4))
    emit(b, "OneHotEncoder", [x], F32, (*x.shape, 4), exact=True, mag=1,
         attributes={"cats_int64s": [0, 1, 2, 3], "zeros": b.choice((None, 1))} if (x.data < 4).all() else
         {"cats_int64s": [0, 1, 2, 3], "zeros": 1})


@row(0.3)
def label_encoder(b):
    x = b.input(I64, (4,), data=b.random(I64, (4,), 0, 4))
    if b.chance(0.5):
        emit(b, "LabelEncoder", [x], F32, exact=True,
             attributes={"keys_int64s": [0, 1, 2], "values_floats": [0.5, 1.5, 2.5], "default_float": -1.0})
    else:
        emit(b, "LabelEncoder", [x], STRING, exact=True,
             attributes={"keys_int64s": [0, 1, 2], "values_strings": ["a", "b", "c"], "default_string": "none"})


@row(0.4)
def linear(b):
    x = table(b)
    n, targets = x.shape[1], b.int(1, 3)
    attributes = {"coefficients": b.random(F32, (targets * n,)).tolist(), "targets": targets,
                  "post_transform": b.choice((None, "NONE", "SOFTMAX" if targets > 1 else "NONE"))}
    if b.chance(0.6):
        attributes["intercepts"] = b.random(F32, (targets,)).tolist()
    emit(b, "LinearRegressor", [x], F32, (x.shape[0], targets), mag=x.mag * n * 3, attributes=attributes)


@row(0.4)
def linear_classifier(b):
    b.opsets.setdefault(ML, 3)
    x = b.pick((F32,), rank=2, exact=True, distinct=True, mag=20)
    n, classes = x.shape[1], b.int(2, 4)
    names = b.node("LinearClassifier", [x], 2, domain=ML, coefficients=b.random(F32, (classes * n,)).tolist(),
                   intercepts=b.random(F32, (classes,)).tolist(), classlabels_ints=list(range(10, 10 + classes)),
                   multi_class=0, post_transform=b.choice(("NONE", "SOFTMAX", "LOGISTIC")))
    b.result(names[0], I64, (x.shape[0],), exact=True, mag=20)
    b.result(names[1], F32, (x.shape[0], classes), [x], mag=x.mag * n * 3)


def tree(b, features, depth):
    """One random tree: a list of (feature, value, true, false) and leaves (weight)."""
    nodes = []

    def grow(level):
        at = len(nodes)
        nodes.append(None)
        if level == depth or b.chance(0.2) and level:
            nodes[at] = ("LEAF", 0, 0.0, 0, 0)
        else:
            feature, value = b.int(0, features - 1), float(np.float32(b.rng.uniform(-1, 1)))
            left = grow(level + 1)
            right = grow(level + 1)
            nodes[at] = ("BRANCH_LEQ", feature, value, left, right)
        return at

    grow(0)
    return nodes


def forest(b, features, targets, prefix):
    """Attributes of a tree ensemble."""
    trees = [tree(b, features, b.int(1, 3)) for _ in range(b.int(1, 3))]
    rule = b.choice(("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"))
    a = {k: [] for k in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values",
                         "nodes_truenodeids", "nodes_falsenodeids", f"{prefix}_treeids", f"{prefix}_nodeids",
                         f"{prefix}_ids", f"{prefix}_weights")}
    for t, nodes in enumerate(trees):
        for i, (mode, feature, value, left, right) in enumerate(nodes):
            for key, item in zip(list(a)[:7], (t, i, feature, rule if mode != "LEAF" else mode, value, left, right)):
                a[key].append(item)
            if mode == "LEAF":
                # Every target: engines differ in what one is worth that no leaf speaks of.
                for k in range(targets):
                    for key, item in zip(list(a)[7:], (t, i, k, float(np.float32(b.rng.uniform(-1, 1))))):
                        a[key].append(item)
    return a


@row(0.6)
def tree_regressor(b):
    x = table(b, exact=True)
    targets = b.int(1, 2)
    attributes = forest(b, x.shape[1], targets, "target")
    how = b.choice((None, "SUM", "AVERAGE", "MIN", "MAX"))
    based = how in (None, "SUM") and b.chance(0.4)
    attributes.update(n_targets=targets, aggregate_function=how,
                      base_values=b.random(F32, (targets,)).tolist() if based else None)
    emit(b, "TreeEnsembleRegressor", [x], F32, (x.shape[0], targets), attributes=attributes, mag=4)


@row(0.4)
def tree_classifier(b):
    b.opsets.setdefault(ML, 3)
    x = table(b, exact=True)
    classes = b.int(3, 4)
    attributes = forest(b, x.shape[1], classes, "class")
    names = b.node("TreeEnsembleClassifier", [x], 2, domain=ML, **attributes, classlabels_int64s=list(range(classes)),
                   post_transform=b.choice(("NONE", "SOFTMAX")))
    b.result(names[0], I64, (x.shape[0],), exact=True)
    b.result(names[1], F32, (x.shape[0], classes), [x], mag=4)


@row(0.3)
def svm(b):
    x = table(b)
    n, vectors = x.shape[1], b.int(1, 4)
    emit(b, "SVMRegressor", [x], F32, (x.shape[0], 1), mag=20 * x.mag,
         attributes={"kernel_type": b.choice(("LINEAR", "RBF", "SIGMOID")), "kernel_params": [0.2, 0.1, 2.0],
                     "support_vectors": b.random(F32, (vectors * n,)).tolist(), "n_supports": vectors,
                     "coefficients": b.random(F32, (vectors,)).tolist(), "rho": [0.3]})


@row(0.2)
def array_feature_extractor(b):
    x = b.pick((F32, F64, I64), rank=2)
    index = b.random(I64, (b.int(1, 3),), 0, x.shape[1] - 1)
    emit(b, "ArrayFeatureExtractor", [x, b.param(index)], shape=(x.shape[0], index.size), sources=[x], exact=x.exact)


@row(0.2)
def feature_vectorizer(b):
    if b.opset < 9:
        raise NoFit
    x = b.pick((F32,), rank=2)
    y = b.pick((F32,), rank=2, where=lambda v: v.shape[0] == x.shape[0])
    emit(b, "FeatureVectorizer", [x, y], F32, (x.shape[0], x.shape[1] + y.shape[1]),
         attributes={"inputdimensions": [x.shape[1], y.shape[1]]}, exact=x.exact and y.exact)
