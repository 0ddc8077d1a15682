"""Ridge models compared with dense least squares and scikit-learn."""

import pickle

import naive
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, RidgeClassifier

from binfeat import BinMatrix, CGRidge, CGRidgeClassifier, RandomFourier, blocks


def problem(rng, n, d, rank=None, targets=1, empty=False, constant=False):
    Z = rng.normal(size=(n, d)) if rank is None else rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    if empty:
        Z[:, ::3] = 0
    Z += 2.0
    Y = Z @ rng.normal(size=(d, targets)) + rng.normal(size=(n, targets))
    return Z, np.full((n, targets), 3.5) if constant else Y


PROBLEMS = {
    "tall": {"n": 80, "d": 12},
    "wide": {"n": 15, "d": 60},
    "square": {"n": 30, "d": 30},
    "rank deficient": {"n": 60, "d": 20, "rank": 5},
    "empty columns": {"n": 60, "d": 20, "empty": True},
    "constant target": {"n": 60, "d": 10, "constant": True},
    "several targets": {"n": 70, "d": 15, "targets": 4},
    "one column": {"n": 20, "d": 1},
    "one row": {"n": 1, "d": 5},
}
FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "operator": aslinearoperator,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_against_dense_least_squares(rng, name, fit_intercept, weighted, form):
    Z, Y = problem(rng, **PROBLEMS[name])
    weights = rng.integers(0, 4, len(Z)) + (np.arange(len(Z)) == 0) if weighted else None
    coef, intercept = naive.ridge(Z, Y, 0.7, weights, fit_intercept)
    model = CGRidge(alpha=0.7, fit_intercept=fit_intercept, tol=1e-12, max_iter=2000)
    model.fit(FORMS[form](Z), Y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.predict(FORMS[form](Z)), Z @ coef.T + intercept, rtol=1e-6, atol=1e-6)
    assert model.n_iter_ >= 1
    assert model.status_ == "converged"


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_against_sklearn(rng, fit_intercept):
    Z, Y = problem(rng, 100, 20, targets=3)
    weights = rng.random(100)
    alpha = np.array([0.1, 1.0, 10.0])
    exact = Ridge(alpha=alpha, solver="cholesky", fit_intercept=fit_intercept).fit(Z, Y, sample_weight=weights)
    ours = CGRidge(alpha=alpha, tol=1e-12, fit_intercept=fit_intercept).fit(Z, Y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, exact.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, exact.intercept_, rtol=1e-6, atol=1e-9)
    assert ours.score(Z, Y) == pytest.approx(exact.score(Z, Y))


def binning_matrix(rng, dtype=np.float64):
    sizes = [9, 4, 30]
    code_type = np.uint16 if dtype == np.float64 else np.uint32
    codes = np.stack([rng.integers(0, size, 200) for size in sizes]).astype(code_type)
    codes[0, :20] = np.iinfo(code_type).max
    return BinMatrix(codes, np.cumsum([0, *sizes]), dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bin_matrix_equals_csr_and_dense(rng, dtype, fit_intercept):
    Z, Y, weights = binning_matrix(rng, dtype), rng.normal(size=(200, 2)), rng.random(200)
    models = [
        CGRidge(alpha=0.3, tol=1e-6, fit_intercept=fit_intercept).fit(form, Y, sample_weight=weights)
        for form in (Z, Z.tocsr(), Z.tocsr().toarray())
    ]
    assert models[0].coef_.dtype == dtype
    for other in models[1:]:
        np.testing.assert_allclose(models[0].coef_, other.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(models[0].predict(Z), other.predict(Z.tocsr()), rtol=1e-4, atol=1e-5)


def test_same_coefficients_for_any_number_of_threads(rng, threads):
    codes = rng.integers(0, 500, size=(6, 20_000)).astype(np.uint16)
    Z = BinMatrix(codes, np.arange(7) * 500)
    y = rng.normal(size=(20_000, 3))
    expected = CGRidge(tol=1e-4).fit(Z, y)
    threads(1)
    other = CGRidge(tol=1e-4).fit(Z, y)
    np.testing.assert_array_equal(other.coef_, expected.coef_)
    np.testing.assert_array_equal(other.intercept_, expected.intercept_)
    assert other.n_iter_ == expected.n_iter_


def test_weights_are_repetitions(rng):
    Z, Y = problem(rng, 40, 8)
    weights = rng.integers(0, 4, 40)
    a = CGRidge(tol=1e-12).fit(Z, Y, sample_weight=weights)
    b = CGRidge(tol=1e-12).fit(np.repeat(Z, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8)


def test_shapes_follow_the_target(rng):
    Z, Y = problem(rng, 40, 8)
    one, column = CGRidge().fit(Z, Y.ravel()), CGRidge().fit(Z, Y)
    assert one.coef_.shape == (8,)
    assert np.ndim(one.intercept_) == 0
    assert one.predict(Z).shape == (40,)
    assert column.coef_.shape == (1, 8)
    assert column.predict(Z).shape == (40, 1)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["int", "str"])
def test_classifier_against_sklearn(rng, n_classes, kind):
    Z, _ = problem(rng, 120, 10)
    labels = np.digitize(Z[:, 0] + Z[:, 1] ** 2 / 4, [4.0, 5.0, 6.0][: n_classes - 1])
    y = labels * 3 if kind == "int" else np.array(["ash", "beech", "cedar", "fir"])[labels]
    exact = RidgeClassifier(alpha=2.0, solver="cholesky").fit(Z, y)
    ours = CGRidgeClassifier(alpha=2.0, tol=1e-12).fit(Z, y)
    np.testing.assert_allclose(ours.coef_, np.atleast_2d(exact.coef_), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.decision_function(Z), exact.decision_function(Z), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(Z), exact.predict(Z))
    np.testing.assert_array_equal(ours.classes_, exact.classes_)


def test_unfinished_solve_warns_and_keeps_its_iterate(rng):
    Z, Y = problem(rng, 60, 30)
    model = CGRidge(alpha=1e-6, tol=1e-12, max_iter=2)
    with pytest.warns(
        ConvergenceWarning, match=r"after 2 iterations with status 'max_iter' .*relative residual.*Increase"
    ):
        model.fit(sparse.csr_array(Z), Y)
    assert (model.n_iter_, model.status_) == (2, "max_iter")
    assert model.score(Z, Y) > 0.5


def test_breakdown_is_said():
    class Wrong(LinearOperator):
        """An operator with a wrong transpose."""

        def __init__(self):
            super().__init__(np.float64, (5, 5))

        def _matmat(self, W):
            return W

        def _rmatvec(self, v):
            return -v

    with pytest.warns(ConvergenceWarning, match="status 'breakdown'.*not positive definite"):
        model = CGRidge(alpha=0.0, fit_intercept=False).fit(Wrong(), np.arange(5.0))
    assert model.status_ == "breakdown"
    assert np.isfinite(model.coef_).all()


Z0, y0 = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
BAD = [
    (CGRidge(alpha=-1.0), {}, ValueError, "alpha must be finite and non-negative"),
    (CGRidge(alpha=np.nan), {}, ValueError, "alpha must be finite and non-negative"),
    (
        CGRidge(alpha=[1.0, 2.0]),
        {},
        ValueError,
        "alpha must be .* per target, 1; got .* pass them as alphas",
    ),
    (CGRidge(alpha="much"), {}, ValueError, "alpha must be a number"),
    (CGRidge(tol=-1), {}, ValueError, "tol must be finite and at least 0"),
    (CGRidge(tol="small"), {}, TypeError, "tol must be a number"),
    (CGRidge(max_iter=0), {}, ValueError, "max_iter must be at least 1"),
    (CGRidge(), {"y": np.array([0, 1, np.nan, 3, 4, 5])}, ValueError, "y contains NaN"),
    (CGRidge(), {"y": np.arange(6).astype("M8[D]")}, ValueError, "y must contain numbers, not dates"),
    (CGRidge(), {"y": None}, ValueError, "requires y to be passed"),
    (CGRidge(), {"y": np.arange(5)}, ValueError, "inconsistent numbers of samples"),
    (CGRidge(), {"y": np.zeros((6, 1, 1))}, ValueError, "dim 3|1-d or 2-d"),
    (CGRidge(), {"sample_weight": -np.ones(6)}, ValueError, "sample_weight must be finite and non-negative"),
    (CGRidge(), {"sample_weight": np.zeros(6)}, ValueError, "sample_weight is zero for every row"),
    (CGRidge(), {"sample_weight": np.ones(5)}, ValueError, "sample_weight must have one value per row"),
    (CGRidge(), {"X": np.full((6, 2), np.nan)}, ValueError, "X contains NaN"),
    (CGRidgeClassifier(), {"y": np.ones(6)}, ValueError, "at least two classes, got one class: "),
    (CGRidgeClassifier(), {"y": y0 + 0.5}, ValueError, "Unknown label type"),
    (CGRidgeClassifier(), {"y": y0[:5]}, ValueError, "inconsistent numbers of samples"),
]


@pytest.mark.parametrize(("model", "changed", "error", "message"), BAD)
def test_bad_input(model, changed, error, message):
    with pytest.raises(error, match=message):
        model.fit(**({"X": Z0, "y": y0} | changed))


def test_operators_are_checked_for_width(rng):
    Z = binning_matrix(rng)
    model = CGRidge().fit(Z, rng.normal(size=200))
    assert model.n_features_in_ == Z.shape[1]
    with pytest.raises(ValueError, match="X has 3 features, but CGRidge is expecting 43"):
        model.predict(aslinearoperator(np.ones((2, 3))))


def test_operators_have_no_names_of_an_earlier_data_frame(rng):
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    source, y = blocks(frame.assign(y=frame["a"]), target="y"), frame["a"]
    model, Z = CGRidge().fit(frame, y), binning_matrix(rng)
    for operator in (Z, RandomFourier(random_state=0).fit_transform(source)):
        model.fit(operator, y)
        assert not hasattr(model, "feature_names_in_")
        assert pickle.loads(pickle.dumps(model)).n_features_in_ == operator.shape[1]
        assert list(model.fit(source).feature_names_in_) == list("abc")


def test_complex_operators_are_refused():
    Z, labels = aslinearoperator(Z0 * 1j), [0, 1] * 3
    classifier = CGRidgeClassifier().fit(Z0, labels)
    predictions = [CGRidge().fit(Z0, y0).predict, classifier.predict, classifier.decision_function]
    for call in [lambda Z: CGRidge().fit(Z, y0), lambda Z: CGRidgeClassifier().fit(Z, labels), *predictions]:
        with pytest.raises(ValueError, match=r"Complex data not supported: .* got a LinearOperator with dtype comp"):
            call(Z)


def test_integer_targets_and_scalar_weight():
    a = CGRidge(tol=1e-12).fit(Z0, np.arange(6), sample_weight=2.0)
    b = CGRidge(tol=1e-12, alpha=0.5).fit(Z0, y0)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8)


def test_operators_need_a_transpose():
    forward = LinearOperator((6, 2), matvec=lambda w: Z0 @ w, dtype=np.float64)
    with pytest.raises(ValueError, match="X must be a LinearOperator with rmatvec"):
        CGRidge().fit(forward, y0)


def test_warnings_point_to_the_callers_line(rng):
    Z = rng.normal(size=(200, 60))
    with pytest.warns(ConvergenceWarning) as seen:
        CGRidge(tol=1e-12, max_iter=1, early_stopping=True, random_state=0).fit(Z, rng.normal(size=200))
    assert seen[0].filename == __file__


def test_unsorted_csr_of_the_caller_is_unchanged(rng):
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    indices, starts = np.tile([3, 1, 0, 2, 0], 50), np.arange(0, 251, 5)
    values = X[:, [3, 1, 0, 2, 0]]
    values[:, [2, 4]] /= 2  # entries of column 0 add up
    arrays = values.ravel(), indices, starts
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    Z = sparse.csr_matrix(arrays, shape=X.shape)
    for model in (CGRidge(tol=1e-12).fit(Z, y), CGRidge(tol=1e-12).partial_fit(Z, y)):
        np.testing.assert_allclose(model.coef_, Ridge().fit(X, y).coef_, atol=1e-9)
    for own, array in zip((Z.data, Z.indices, Z.indptr), before, strict=True):
        np.testing.assert_array_equal(own, array)


def test_columns_of_float32_far_from_zero(rng):
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    far = sparse.csr_matrix(X + np.float32(1000))
    assert CGRidge().fit(far, X.sum(axis=1)).score(far, X.sum(axis=1)) > 0.9999  # 0.94 with sums in float32


@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1e-21), (np.float64, 1e-155)])
def test_sparse_columns_in_tiny_units_are_not_ignored(rng, dtype, unit):
    X = rng.normal(size=(100, 3)).astype(dtype)
    y = X @ [1.0, 2.0, 0.0]
    Z = sparse.csr_array(X * np.array([1, unit, 1], dtype))
    assert CGRidge(alpha=0.0, tol=1e-6).fit(Z, y).score(Z, y) > 0.9999


@pytest.mark.parametrize(("value", "alpha"), [(1e5, 1e-6), (0.1, 1e-30)])
def test_constant_float32_columns_have_no_coefficient(value, alpha, rng):
    Z = np.column_stack([rng.normal(size=(500, 4)), np.full(500, value)]).astype(np.float32)
    y = Z[:, :4].sum(axis=1)
    model = CGRidge(alpha=alpha).fit(sparse.csr_array(Z), y)
    assert model.coef_[-1] == 0
    assert model.score(Z, y) > 0.9999


@pytest.mark.parametrize("model", [CGRidge(0.0), CGRidgeClassifier(0.0), CGRidgeClassifier(0.0, loss="squared_hinge")])
def test_weights_below_the_range_of_the_features_are_refused(model):
    Z = sparse.csr_array(Z0.astype(np.float32))
    with pytest.raises(ValueError, match=r"sample_weight must be at least 1\.2e-38 on average for float32 features"):
        model.fit(Z, [0, 1] * 3, np.full(6, 1e-40))
    model.fit(Z, [0, 1] * 3, np.array([1e-40, 1e-40, 1e-40, 1e-40, 1e-36, 1e-36]))
    with pytest.raises(ValueError, match=r"sample_weight must be at least 1e-100 on average for float64 features"):
        model.fit(sparse.csr_array(Z0), [0, 1] * 3, np.full(6, 1e-200))


@pytest.mark.parametrize("options", [{}, {"alphas": [1e-3, 1e6]}, {"n_posterior_samples": 4}])
def test_targets_far_from_zero_with_float32_features(rng, options):
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = 1.7e9 + 60.0 * X[:, 0].astype(np.float64) + rng.normal(size=400)
    model = CGRidge(1e-3, random_state=0, **options).fit(X, y)
    assert model.score(X, y) > 0.99
    assert model.predict(X).dtype == model.intercept_.dtype == np.float64
    if "alphas" in options:
        assert model.alpha_ == 1e-3
    if "n_posterior_samples" in options:
        assert model.noise_variance_ == pytest.approx(1.0, rel=0.2)
        assert model.predict(X, return_std=True)[1].dtype == np.float64
