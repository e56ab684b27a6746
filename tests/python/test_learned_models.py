# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, LightGBM and XGBoost, converted by skl2onnx and onnxmltools, give what onnxruntime gives:
classes, probabilities as a list of dicts, scores. script/requirements-full.txt names the packages."""

import warnings

import numpy as np
import pytest

import sonde

sklearn = pytest.importorskip("sklearn")
skl2onnx = pytest.importorskip("skl2onnx")
import onnxruntime  # noqa: E402
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType  # noqa: E402
from sklearn import (  # noqa: E402
    cluster, compose, decomposition, discriminant_analysis, ensemble, feature_extraction, gaussian_process, linear_model,
    multiclass, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree,
)
from sklearn.feature_selection import SelectKBest  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(120, 6)).astype(np.float32)
NUMBERS = (X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.1 * RANDOM.normal(size=120)).astype(np.float32)
CLASSES = np.digitize(NUMBERS, [-0.5, 0.5])
NAMES = np.array(["low", "middle", "high"])[CLASSES]
TWO = (NUMBERS > 0).astype(np.int64)

CLASSIFIERS = {
    "logistic regression": linear_model.LogisticRegression(max_iter=500),
    "decision tree": tree.DecisionTreeClassifier(max_depth=5, random_state=0),
    "random forest": ensemble.RandomForestClassifier(20, max_depth=6, random_state=0),
    "extra trees": ensemble.ExtraTreesClassifier(15, random_state=0),
    "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0),
    "ada boost": ensemble.AdaBoostClassifier(n_estimators=10, random_state=0),
    "voting": ensemble.VotingClassifier([("a", linear_model.LogisticRegression()),
                                         ("b", tree.DecisionTreeClassifier(max_depth=3))], voting="soft",
                                        flatten_transform=False),
    "support vectors": svm.SVC(probability=True, random_state=0),
    "linear support vectors": svm.LinearSVC(),
    "nearest neighbours": neighbors.KNeighborsClassifier(4),
    "naive Bayes": naive_bayes.GaussianNB(),
    "multi-layer perceptron": neural_network.MLPClassifier((12, 8), max_iter=300, random_state=0),
    "stochastic gradient": linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "discriminants": discriminant_analysis.LinearDiscriminantAnalysis(),
    "one against the rest": multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    "scaled": pipeline.make_pipeline(preprocessing.StandardScaler(), preprocessing.Normalizer(),
                                     linear_model.LogisticRegression()),
    "selected": pipeline.make_pipeline(SelectKBest(k=3), preprocessing.PolynomialFeatures(2),
                                       linear_model.LogisticRegression(max_iter=500)),
    "components": pipeline.make_pipeline(decomposition.PCA(3), svm.SVC(probability=True, random_state=0)),
}
REGRESSORS = {
    "linear regression": linear_model.LinearRegression(),
    "ridge": linear_model.Ridge(),
    "lasso": linear_model.Lasso(0.05),
    "tree": tree.DecisionTreeRegressor(max_depth=6, random_state=0),
    "forest": ensemble.RandomForestRegressor(20, random_state=0),
    "boosting": ensemble.GradientBoostingRegressor(n_estimators=20, random_state=0),
    "support vectors": svm.SVR(),
    "nearest": neighbors.KNeighborsRegressor(3),
    "perceptron": neural_network.MLPRegressor(hidden_layer_sizes=(10,), max_iter=2000, random_state=0),
    "gaussian process": gaussian_process.GaussianProcessRegressor(),
    "poisson": linear_model.TweedieRegressor(power=0),
}
TRANSFORMERS = {
    "scaler": preprocessing.StandardScaler(), "min and max": preprocessing.MinMaxScaler(),
    "robust": preprocessing.RobustScaler(), "normalizer": preprocessing.Normalizer("l1"),
    "largest": preprocessing.MaxAbsScaler(), "binarizer": preprocessing.Binarizer(threshold=0.2),
    "bins": preprocessing.KBinsDiscretizer(4, encode="ordinal"), "powers": preprocessing.PowerTransformer(),
    "polynomials": preprocessing.PolynomialFeatures(3), "components": decomposition.PCA(2),
    "singular values": decomposition.TruncatedSVD(3), "means": cluster.KMeans(4, n_init=2, random_state=0),
    "imputer": SimpleImputer(), "splines or nothing": preprocessing.FunctionTransformer(),
}


def converted(model, options=None, types=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = types or [("X", FloatTensorType([None, 6]))]
        return skl2onnx.convert_sklearn(model, initial_types=inputs, target_opset={"": 19, "ai.onnx.ml": 3},
                                        options=options).SerializeToString()


def agree(ours, theirs):
    """Equal words and classes, numbers up to rounding, in lists and dicts alike."""
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs)
        for pair in zip(ours, theirs):
            agree(*pair)
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict) and ours.keys() == theirs.keys()
        assert all(type(a) is type(b) for a, b in zip(ours, theirs))
        for key in theirs:
            assert isinstance(ours[key], type(theirs[key]))
            assert ours[key] == pytest.approx(theirs[key], abs=2e-5)
    else:
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if theirs.dtype.kind == "f":  # f32 sums of trees and kernels, formed in another order, then exponentials
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)
        else:
            assert ours.tolist() == theirs.tolist()


def both(data, feed):
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    ours = sonde.InferenceSession(data)
    assert [arg.type for arg in ours.get_outputs()] == [arg.type for arg in theirs.get_outputs()]
    expected = theirs.run(None, feed)
    agree(ours.run(None, feed), expected)
    for arg, value in zip(theirs.get_outputs(), expected):  # each by itself
        agree(ours.run([arg.name], feed), [value])
    return expected


@pytest.mark.parametrize("target", ["numbers", "names", "two"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, target):
    model = sklearn.base.clone(CLASSIFIERS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, {"numbers": CLASSES, "names": NAMES, "two": TWO}[target])
    for options in (None, {"zipmap": False}) if hasattr(model, "predict_proba") else (None,):
        both(converted(model, options), {"X": X[:40]})


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    both(converted(sklearn.base.clone(REGRESSORS[name]).fit(X, NUMBERS)), {"X": X[:40]})


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sklearn.base.clone(TRANSFORMERS[name]).fit(X)
    both(converted(model), {"X": X[:40]})


def test_columns_of_words_and_numbers():
    words = np.array(["red", "green", "blue"], object)[RANDOM.integers(0, 3, (120, 1))]
    counts = RANDOM.integers(0, 5, (120, 1))
    model = pipeline.make_pipeline(
        compose.ColumnTransformer([("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), [0]),
                                   ("counts", preprocessing.OrdinalEncoder(), [1])]),
        linear_model.LogisticRegression())
    model.fit(np.hstack([words, counts]), TWO)
    data = converted(model, types=[("word", StringTensorType([None, 1])), ("count", Int64TensorType([None, 1]))])
    both(data, {"word": words[:30], "count": counts[:30]})
    both(data, {"word": np.array([["violet"], ["red"]], object), "count": counts[:2]})


VECTORIZERS = {
    "weighted words": feature_extraction.text.TfidfVectorizer(),
    "words": feature_extraction.text.CountVectorizer(token_pattern="[a-z]+"),
    "pairs of words": feature_extraction.text.CountVectorizer(ngram_range=(1, 2), token_pattern="[a-z]+"),
    "characters": feature_extraction.text.CountVectorizer(analyzer="char", ngram_range=(1, 2)),
}


@pytest.mark.parametrize("name", VECTORIZERS)
def test_texts(name):
    """Against scikit-learn itself: onnxruntime needs locales for these that not every machine has."""
    texts = np.array(["the cat sat on the mat", "my dog is our dog", "cats, dogs and cats", "the end"], object)
    vectorizer = sklearn.base.clone(VECTORIZERS[name])
    expected = vectorizer.fit_transform(texts).toarray().astype(np.float32)
    session = sonde.InferenceSession(converted(vectorizer, types=[("X", StringTensorType([None]))]))
    agree(session.run(None, {"X": texts}), [expected])


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("kind", ["classes", "two", "numbers"])
def test_boosted_trees_of_other_packages(package, kind):
    pytest.importorskip(package)
    onnxmltools = pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats

    if package == "lightgbm":
        import lightgbm

        make = lightgbm.LGBMRegressor if kind == "numbers" else lightgbm.LGBMClassifier
        model = make(n_estimators=12, num_leaves=9, verbose=-1)
        convert = onnxmltools.convert_lightgbm
    else:
        import xgboost

        make = xgboost.XGBRegressor if kind == "numbers" else xgboost.XGBClassifier
        model = make(n_estimators=12, max_depth=4)
        convert = onnxmltools.convert_xgboost
    model.fit(X, {"classes": CLASSES, "two": TWO, "numbers": NUMBERS}[kind])
    data = convert(model, initial_types=[("X", Floats([None, 6]))], target_opset=15).SerializeToString()
    both(data, {"X": X[:40]})
