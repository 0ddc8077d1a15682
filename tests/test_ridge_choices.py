"""Paths of penalties, validation rows, early stopping, warm starts, losses, callbacks, interrupts."""

import pickle
import pkgutil

import numpy as np
import pytest
from callbacks import Callback
from hard import hard
from interrupts import interrupted
from scipy import optimize, sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score
from sklearn.svm import LinearSVC
from solving import ProcessRows, SolverOptions, solve_ridge

from binfeat import BinMatrix, CGRidge, CGRidgeClassifier, RandomBinning
from binfeat.linear import hinge


@pytest.fixture
def table(rng):
    """Return codes, targets and labels of a smooth function with noise."""
    X = rng.uniform(-2, 2, size=(600, 2))
    Z = RandomBinning(gamma=0.5, n_grids=40, output="codes", random_state=0).fit_transform(X)
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=600)
    return Z, y, np.digitize(y, [0.8, 2.0])


ALPHAS = np.geomspace(1e-3, 1e2, 12)


def objective(Z, y, coef, alpha):
    fit = Z @ coef
    return np.sum((y - y.mean() - fit + fit.mean()) ** 2) + alpha * coef @ coef


def test_path_solutions_are_those_of_each_penalty(table):
    Z, y, _ = table
    falling = ALPHAS[::-3]
    rows = ProcessRows(Z, np.stack([y, -y, y**2], 1))
    results = list(solve_ridge(rows, falling, SolverOptions(tol=1e-6, max_iter=500)))
    for alpha, result in zip(falling, results, strict=True):
        alone = CGRidge(alpha=alpha, tol=1e-12, max_iter=3000).fit(Z, y).coef_
        best = objective(Z, y, alone, alpha)
        assert objective(Z, y, result.solution[:, 0], alpha) <= best * (1 + 1e-6)
        np.testing.assert_allclose(result.solution[:, 1], -result.solution[:, 0], atol=1e-12)


def test_path_is_cheaper_than_its_parts(table):
    """Each solve starts near its end, so all together need fewer iterations than cold starts."""
    Z, y, _ = table
    results = solve_ridge(ProcessRows(Z, y[:, None]), ALPHAS[::-1], SolverOptions(tol=1e-3, max_iter=500))
    warm = sum(result.n_iter for result in results)
    cold = sum(CGRidge(alpha=alpha, tol=1e-3, max_iter=500).fit(Z, y).n_iter_ for alpha in ALPHAS)
    assert warm < 0.7 * cold


@pytest.mark.parametrize("cv", [None, *hard(3, KFold(4, shuffle=True, random_state=1))])
def test_chosen_penalty(table, cv):
    Z, y, _ = table
    model = CGRidge(alphas=ALPHAS, cv=cv, tol=1e-6, max_iter=1000, random_state=0).fit(Z, y)
    splits = ShuffleSplit(1, test_size=0.1, random_state=0) if cv is None else KFold(3) if cv == 3 else cv
    expected = [
        [CGRidge(alpha=a, tol=1e-6, max_iter=1000).fit(Z[rows], y[rows]).score(Z[out], y[out]) for a in ALPHAS]
        for rows, out in splits.split(np.zeros(600))
    ]
    np.testing.assert_allclose(model.path_scores_, expected, rtol=1e-3)
    np.testing.assert_array_equal(model.alphas_, ALPHAS)
    assert model.alpha_ == ALPHAS[np.argmax(np.mean(expected, axis=0))]
    alone = CGRidge(alpha=model.alpha_, tol=1e-6, max_iter=1000).fit(Z, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)


@pytest.mark.parametrize("kind", [CGRidge, CGRidgeClassifier])
def test_a_fit_without_path_forgets_that_of_the_last(table, kind):
    Z, _, labels = table
    model = kind(alphas=ALPHAS).fit(Z, labels).set_params(alphas=None).fit(Z, labels)
    assert not hasattr(model, "alphas_")
    assert not hasattr(model, "path_scores_")


def test_scoring_and_given_rows_choose(table):
    Z, _, labels = table
    rows = [(np.arange(400), np.arange(400, 600))]
    model = CGRidgeClassifier(alphas=ALPHAS, cv=rows, scoring="balanced_accuracy").fit(Z, labels)
    assert model.path_scores_.shape == (1, ALPHAS.size)
    other = CGRidgeClassifier(alphas=ALPHAS, cv=rows, scoring=lambda m, Z, y: -np.mean(m.predict(Z) != y)).fit(
        Z, labels
    )
    accuracy = CGRidgeClassifier(alphas=ALPHAS, cv=rows).fit(Z, labels)
    np.testing.assert_allclose(other.path_scores_, accuracy.path_scores_ - 1)


def repeated(n_rows, rng):
    """Return weights 0 to 3, the rows that they repeat, and validation sets with and without repetition."""
    weights = rng.integers(0, 4, n_rows)
    rows, is_out = np.repeat(np.arange(n_rows), weights), np.arange(n_rows) % 3 == 0
    return weights, rows, *((np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in (is_out, is_out[rows]))


@pytest.mark.parametrize("kind", [CGRidge, *hard(CGRidgeClassifier)])
def test_weights_are_repeated_rows_in_validation_sets(table, rng, kind):
    Z, y, labels = table
    own = y if kind is CGRidge else labels
    weights, rows, apart, together = repeated(600, rng)
    options = {"tol": 1e-8, "max_iter": 1000}
    for given in ({"alphas": ALPHAS}, {"alpha": 1e-4, "early_stopping": True, "tol": 1e-8}):
        weighted = kind(cv=[apart], **options | given).fit(Z, own, sample_weight=weights)
        model = kind(cv=[together], **options | given).fit(Z.take(rows), own[rows])
        assert weighted.alpha_ == model.alpha_
        np.testing.assert_allclose(weighted.coef_, model.coef_, atol=1e-4)
        if "alphas" in given:
            np.testing.assert_allclose(weighted.path_scores_, model.path_scores_, rtol=1e-4)


def test_rows_without_weight_are_in_no_validation_set(table):
    """Also for scorers that do not accept weights."""
    Z, y, _ = table
    weights, seen = (np.arange(600) < 300).astype(float), []

    def scoring(model, Z, y):
        seen.append(Z.shape[0])
        return model.score(Z, y)

    cv = [(np.arange(200), np.arange(200, 600))]
    few, own = [(np.arange(200), np.arange(200, 300))], np.where(weights > 0, y, 1e6)
    for given in (scoring, "neg_max_error"):
        model = CGRidge(alphas=ALPHAS, cv=cv, scoring=given).fit(Z, own, sample_weight=weights)
        other = CGRidge(alphas=ALPHAS, cv=few, scoring=given).fit(Z[:300], y[:300])
        np.testing.assert_allclose(model.path_scores_, other.path_scores_, rtol=1e-2)
    assert set(seen) == {100}
    with pytest.raises(ValueError, match="sample_weight is zero for all validation rows"):
        CGRidge(alphas=ALPHAS, cv=cv).fit(Z, y, sample_weight=np.arange(600) < 200)


@pytest.mark.parametrize(
    "options", [{"alphas": [0.1, 1.0]}, {"early_stopping": True}, {"alphas": [1.0], "probability": True}]
)
def test_splits_of_a_generator(table, options):
    Z, _, labels = table
    pairs = list(KFold(3).split(labels))
    first, second = (CGRidgeClassifier(cv=cv, **options).fit(Z, labels) for cv in (iter(pairs), pairs))
    np.testing.assert_array_equal(first.decision_function(Z), second.decision_function(Z))


def test_probabilities_select_a_penalty(table):
    Z, _, labels = table
    options = {"alphas": ALPHAS, "random_state": 0, "probability": True, "tol": 1e-6}
    model = CGRidgeClassifier(scoring="neg_log_loss", **options).fit(Z, labels)
    best = model.path_scores_[0]
    assert best.max() > np.log(1 / 3)
    assert model.alpha_ == ALPHAS[best.argmax()]
    assert ALPHAS[0] < model.alpha_ < ALPHAS[-1]
    with pytest.raises(AttributeError, match="none of the following attributes: predict_proba"):
        CGRidgeClassifier(scoring="neg_log_loss", **options | {"probability": False}).fit(Z, labels)


def test_groups_are_held_out_together(table):
    Z, y, _ = table
    groups = np.repeat(np.arange(60), 10)
    seen = []

    def scoring(model, Z, y):
        seen.append(len(Z))
        return model.score(Z, y)

    CGRidge(alphas=[1.0, 10.0], scoring=scoring, random_state=0).fit(Z, y, groups=groups)
    assert set(seen) == {60}
    CGRidge(alphas=[1.0, 10.0], cv=GroupKFold(3)).fit(Z, y, groups=groups)


def test_early_stopping_keeps_the_best_iterate(table):
    Z, y, _ = table
    scores = []

    def scoring(model, Z, y):
        scores.append(model.score(Z, y))
        return scores[-1]

    model = CGRidge(alpha=1e-6, tol=0, early_stopping=True, scoring=scoring, random_state=0).fit(Z, y)
    assert model.status_ == "early_stopped"
    assert model.n_iter_ == len(scores)
    assert np.argmax(scores) == len(scores) - 6
    _, out = next(ShuffleSplit(1, test_size=0.1, random_state=0).split(np.zeros(600)))
    assert model.score(Z[out], y[out]) == max(scores)


@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge"])
def test_a_warm_start_has_the_type_of_the_new_features(rng, loss):
    X, labels = rng.normal(size=(200, 5)), rng.random(200) > 0.5
    given = {"loss": loss, "tol": 1e-9, "max_iter": 5000}
    expected = CGRidgeClassifier(**given).fit(sparse.csr_matrix(X), labels)
    ridge = CGRidgeClassifier(**given, warm_start=True).fit(sparse.csr_matrix(X.astype(np.float32)), labels)
    ridge.fit(sparse.csr_matrix(X), labels)
    assert ridge.coef_.dtype == np.float64
    assert ridge.status_ == "converged"
    np.testing.assert_allclose(ridge.coef_, expected.coef_, atol=1e-7)


@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge"])
def test_a_warm_start_without_intercept_drops_the_earlier_one(table, loss):
    Z, _, labels = table
    model = CGRidgeClassifier(loss=loss, warm_start=True).fit(Z, labels == 0)
    assert model.intercept_ != 0
    assert model.set_params(fit_intercept=False).fit(Z, labels == 0).intercept_ == 0


def test_features_without_columns_are_refused(rng):
    X = rng.normal(size=(200, 3))
    with pytest.warns(UserWarning, match="Grids are too fine"):
        Z = RandomBinning(gamma=50.0, min_count=150, output="codes", random_state=0).fit_transform(X)
    assert Z.shape == (200, 0)
    with pytest.raises(ValueError, match="X has no features, and CGRidge needs at least one"):
        CGRidge().fit(Z, X[:, 0])


def test_warm_start(table):
    Z, y, _ = table
    model = CGRidge(alpha=0.1, tol=1e-8, max_iter=1000, warm_start=True).fit(Z, y)
    first = model.n_iter_
    assert model.fit(Z, y).n_iter_ == 1
    assert model.set_params(alpha=0.11).fit(Z, y).n_iter_ < first
    np.testing.assert_allclose(model.coef_, CGRidge(alpha=0.11, tol=1e-10, max_iter=1000).fit(Z, y).coef_, atol=1e-5)
    with pytest.raises(ValueError, match="warm_start=True requires the features and targets of the earlier fit"):
        model.fit(Z, np.stack([y, y], axis=1))


def hinge_objective(Z, y, w, b, alpha, weights=1.0):
    return np.sum(weights * np.maximum(0, 1 - y * (Z @ w + b)) ** 2) + alpha * w @ w


@pytest.mark.parametrize("alpha", [0.05, 1.0, 20.0])
def test_squared_hinge_against_liblinear(table, alpha):
    Z, _, labels = table
    y = np.where(labels > 0, 1.0, -1.0)
    csr = Z.tocsr()
    exact = LinearSVC(C=1 / (2 * alpha), dual=False, fit_intercept=False, tol=1e-8, max_iter=10_000).fit(csr, y)
    ours = CGRidgeClassifier(alpha=2 * alpha, loss="squared_hinge", fit_intercept=False, tol=1e-8, max_iter=5000)
    for form in (Z, csr, csr.toarray()):
        ours.set_params(alpha=alpha).fit(form, y)
        theirs = hinge_objective(csr, y, exact.coef_[0], 0, alpha)
        assert hinge_objective(csr, y, ours.coef_[0], 0, alpha) == pytest.approx(theirs, rel=1e-6)
        assert ours.status_ == "converged"


@pytest.mark.parametrize("weighted", [False, True])
def test_squared_hinge_with_intercept_against_scipy(rng, weighted):
    Z = rng.normal(size=(150, 6)) + 1
    y = np.where(Z[:, 0] + rng.normal(size=150) > 2.0, 1.0, -1.0)
    weights = rng.integers(0, 4, 150).astype(float) if weighted else np.ones(150)

    def loss(x):
        return hinge_objective(Z, y, x[:6], x[6], 0.7, weights)

    best = optimize.minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-9}).fun
    ours = CGRidgeClassifier(alpha=0.7, loss="squared_hinge", tol=1e-9, max_iter=1000).fit(Z, y, sample_weight=weights)
    assert hinge_objective(Z, y, ours.coef_[0], ours.intercept_[0], 0.7, weights) == pytest.approx(best, rel=1e-6)


def test_squared_hinge_stops_where_the_objective_settles(table):
    Z, _, labels = table
    dense, y = Z.tocsr().toarray(), np.where(labels > 0, 1.0, -1.0)

    def fitted(tol):
        model = CGRidgeClassifier(alpha=0.01, loss="squared_hinge", fit_intercept=False, tol=tol, max_iter=2000)
        model.fit(Z, y)
        return model.n_iter_, hinge_objective(dense, y, model.coef_[0], 0, 0.01)

    best = fitted(1e-8)[1]
    beyond = {
        1e-1: 0.3,
        1e-2: 0.01,
        1e-4: 1e-6,
    }  # 1.5 times the measured values; the residual rule has 3 to 8 times
    found = [fitted(tol) for tol in beyond]
    assert sorted({n_iter for n_iter, _ in found}) == [n_iter for n_iter, _ in found]
    for (_, objective), most in zip(found, beyond.values(), strict=True):
        assert best <= objective * (1 + 1e-9)
        assert objective <= best * (1 + most)


@pytest.mark.hard
def test_squared_hinge_classes_are_one_against_the_rest(table):
    Z, _, labels = table
    options = {"alpha": 1.0, "loss": "squared_hinge", "tol": 1e-8, "max_iter": 2000}
    every = CGRidgeClassifier(**options).fit(Z, labels)
    for k in range(3):
        one = CGRidgeClassifier(**options).fit(Z, labels == k)
        np.testing.assert_allclose(every.coef_[k], one.coef_[0], atol=1e-5)
        np.testing.assert_allclose(every.intercept_[k], one.intercept_[0], atol=1e-5)
    chosen = CGRidgeClassifier(alphas=ALPHAS, random_state=0, **options).fit(Z, labels)
    assert chosen.path_scores_.max() > 0.7


@pytest.mark.hard
def test_path_of_squared_hinge_is_its_models_alone(table):
    Z, y, _ = table
    labels = np.digitize(y, [-0.3, 0.3])
    rows, out = np.arange(400), np.arange(400, 600)
    options = {"loss": "squared_hinge", "tol": 1e-8, "max_iter": 2000}

    def scoring(model, Z, y):
        return model.decision_function(Z)[:, 0].std()

    path = CGRidgeClassifier(alphas=ALPHAS, cv=[(rows, out)], scoring=scoring, **options).fit(Z, labels)
    alone = [CGRidgeClassifier(alpha=alpha, **options).fit(Z[rows], labels[rows]) for alpha in ALPHAS]
    expected = [scoring(model, Z[out], None) for model in alone]
    np.testing.assert_allclose(path.path_scores_, [expected], rtol=1e-4)
    assert path.solver_ == "newton-cg"


def test_unfinished_squared_hinge_says_so(table):
    Z, _, labels = table
    model = CGRidgeClassifier(alpha=1e-3, loss="squared_hinge", tol=1e-10, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="after 3 iterations with status 'max_iter'"):
        model.fit(Z, labels)
    assert model.score(Z, labels) > 0.5


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0, 1: 1.0, 2: 0.5}])
def test_class_weight_against_sklearn(table, class_weight):
    Z, _, labels = table
    dense = Z.tocsr().toarray()
    exact = RidgeClassifier(alpha=2.0, solver="cholesky", class_weight=class_weight).fit(dense, labels)
    ours = CGRidgeClassifier(alpha=2.0, tol=1e-10, max_iter=2000, class_weight=class_weight).fit(Z, labels)
    np.testing.assert_allclose(ours.decision_function(Z), exact.decision_function(dense), atol=1e-6)


def test_cross_validation_on_codes(table):
    Z, _, labels = table
    search = GridSearchCV(CGRidgeClassifier(tol=1e-6), {"alpha": [0.1, 10.0]}, cv=3).fit(Z, labels)
    csr = GridSearchCV(CGRidgeClassifier(tol=1e-6), {"alpha": [0.1, 10.0]}, cv=3).fit(Z.tocsr(), labels)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], csr.cv_results_["mean_test_score"])
    assert cross_val_score(CGRidgeClassifier(), Z, labels, cv=3).mean() > 0.7


def test_callbacks_see_every_iteration_and_stop(table):
    Z, y, _ = table
    counter = Callback("iteration")
    model = CGRidge(alpha=0.1, tol=1e-6).set_callbacks(counter).fit(Z, y)
    assert counter.n_tasks == model.n_iter_ > 5
    assert counter.ended
    stopped = CGRidge(alpha=0.1, tol=1e-6).set_callbacks(Callback("iteration", stop_at=3)).fit(Z, y)
    assert (stopped.n_iter_, stopped.status_) == (3, "stopped")
    assert stopped.score(Z, y) > 0.3


@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge"])
def test_a_callback_that_stops_a_solve_ends_the_path_of_penalties(table, loss):
    Z, _, labels = table
    model = CGRidgeClassifier(alphas=ALPHAS, loss=loss, cv=2).set_callbacks(Callback("iteration", stop_at=1))
    model.fit(Z, labels)
    np.testing.assert_array_equal(np.isfinite(model.path_scores_).sum(axis=1), [1, 1])


def test_interrupt_leaves_the_best_iterate(table):
    Z, y, labels = table
    for model, target in (
        (CGRidge(alpha=0.1, tol=1e-8), y),
        (CGRidgeClassifier(alpha=0.1, tol=1e-8, loss="squared_hinge"), labels),
    ):
        model.set_callbacks(Callback("iteration", fail_at=4, error=KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            model.fit(Z, target)
        assert model.status_ == "interrupted"
        assert model.n_iter_ >= 4
        assert model.score(Z, target) > 0.3


@pytest.mark.parametrize(("name", "call"), [("NormalEquations", 1), ("NormalEquations", 3), ("_search", 2)])
def test_interrupt_between_newton_steps_leaves_their_iterate(table, name, call):
    Z, _, labels = table
    model = CGRidgeClassifier(loss="squared_hinge").fit(Z, labels)
    before = model.coef_
    with interrupted(hinge, name, call), pytest.raises(KeyboardInterrupt):
        model.fit(Z, labels)
    assert model.status_ == "interrupted"
    assert np.any(model.coef_ != before)
    assert (model.score(Z, labels) > 0.6) == (call > 1)


def test_interrupt_of_a_path_leaves_its_iterate(table):
    Z, y, _ = table
    model = CGRidge(alphas=ALPHAS, tol=1e-8).set_callbacks(Callback("iteration", fail_at=4, error=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        model.fit(Z, y)
    assert model.status_ == "interrupted"
    assert model.alpha_ == ALPHAS[-1]
    assert np.isfinite(model.predict(Z)).all()


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(
    ("home", "name", "call"),
    [
        ("binfeat.linear.alpha_choice.HeldOutScore", "__call__", 3),
        ("binfeat.linear.solve", "ridge_system", 2),  # of the second split
        ("binfeat.linear.solve", "ridge_system", 3),  # of the last solve
    ],
)
def test_interrupt_between_the_solves_of_a_path_leaves_the_latest_result(table, dense, home, name, call):
    Z, y, _ = table
    Z = Z.toarray() if dense else Z
    model = CGRidge(alphas=[1.0, 0.1, 0.01], cv=[(np.arange(400), np.arange(400, 600))] * 2)
    with interrupted(pkgutil.resolve_name(home), name, call), pytest.raises(KeyboardInterrupt):
        model.fit(Z, y)
    assert model.status_ == "interrupted"
    assert model.alpha_ == 0.01
    expected = CGRidge(alpha=0.01, max_iter=1000).fit(Z[np.arange(400)], y[:400])
    np.testing.assert_allclose(model.predict(Z), expected.predict(Z), atol=0.1)
    assert pickle.loads(pickle.dumps(model)).alpha_ == 0.01


def test_other_errors_of_a_callback_pass(table):
    Z, y, _ = table
    with pytest.raises(RuntimeError, match="mine"):
        CGRidge(tol=1e-8).set_callbacks(Callback("iteration", fail_at=4, error=RuntimeError("mine"))).fit(Z, y)


@pytest.mark.parametrize("parameters", [{"alphas": [0.1, 1.0]}, {"early_stopping": True}])
def test_few_rows_are_enough_to_choose(rng, parameters):
    X = rng.normal(size=(6, 2))
    CGRidge(**parameters, random_state=0).fit(X, X[:, 0])
    CGRidgeClassifier(**parameters, random_state=0).fit(X, [0, 1, 2, 0, 1, 2])


BAD = [
    (CGRidge(early_stopping=True, validation_fraction=0.0), "validation_fraction must be between 0 and 1"),
    (CGRidge(alphas=[]), "alphas must be a sequence of at least one number"),
    (CGRidge(alphas=1.0), "alphas must be a sequence"),
    (CGRidge(alphas=[1.0, -1.0]), "alphas must be finite and non-negative"),
    (CGRidge(alphas=[1.0, np.nan]), "alphas must be finite and non-negative"),
    (CGRidge(alphas=[1.0], early_stopping=True), "early_stopping=True does not support alphas"),
    (CGRidgeClassifier(class_weight="even"), "class_weight must be a dict, 'balanced' or None, got 'even'"),
    (CGRidgeClassifier(class_weight={0: -1.0}), "class_weight must be finite, non-negative and not all 0"),
    (CGRidgeClassifier(loss="hinge"), "loss must be 'squared_error' or 'squared_hinge'"),
    (CGRidgeClassifier(loss="squared_hinge", early_stopping=True), "early_stopping=True requires loss='squared_error'"),
]


@pytest.mark.parametrize(("model", "message"), BAD)
def test_bad_parameters(table, model, message):
    Z, _, labels = table
    with pytest.raises(ValueError, match=message):
        clone(model).fit(Z, labels)


RANGES = [
    ("f4", 1.0, 1e30, True), ("f4", 1e16, 1.0, True), ("f4", 1e-20, 1e17, True), ("f4", 1.0, 1e99, False),
    ("f4", 1e30, 1.0, False), ("f8", 1e50, 1e50, True), ("f8", 1e90, 1e99, False), ("f8", 1e200, 1.0, False),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "size", "y_size", "fits"), RANGES)
@pytest.mark.parametrize("parameters", [{}, {"alphas": [1.0, 10.0]}, {"early_stopping": True}])
@pytest.mark.parametrize("n_columns", [3, 300])  # with and without the Gram matrix
@pytest.mark.filterwarnings("error", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_overflow_is_refused_and_never_silent(rng, dtype, size, y_size, fits, parameters, n_columns):
    Z = rng.normal(size=(60, n_columns))
    y = Z[:, 0] + 0.1 * rng.normal(size=60)
    model = CGRidge(alpha=0.0, random_state=0).set_params(**parameters)
    if fits:
        model.fit((Z * size).astype(dtype), y * y_size)
        assert np.isfinite(model.coef_).all()
        return
    with pytest.raises(ValueError, match=r"Sums of products of X and y.* Divide X and y by constants"):
        model.fit((Z * size).astype(dtype), y * y_size)
    assert not hasattr(model, "coef_")


def test_targets_beyond_their_limit_are_refused(table):
    Z, y, _ = table
    with pytest.raises(ValueError, match=r"y must be at most 1e\+100 in magnitude"):
        CGRidge().fit(Z, y * 1e200)


@pytest.mark.parametrize("parameters", [{"alphas": [1.0, 2.0]}, {"early_stopping": True}])
def test_bare_operators_have_no_rows(table, parameters):
    Z, y, _ = table
    with pytest.raises(ValueError, match="rows of a LinearOperator cannot be selected"):
        CGRidge(**parameters).fit(aslinearoperator(Z.tocsr()), y)


def test_line_search_finds_the_minimum(rng):
    Z, y = rng.normal(size=(80, 3)), np.where(rng.random((80, 2)) < 0.5, 1.0, -1.0)
    alpha, weights = np.array([0.3, 2.0]), np.ones((80, 1))

    def models(coef):
        return hinge._Models(coef, np.zeros(2), Z @ coef)

    now, aim = models(rng.normal(size=(3, 2))), models(rng.normal(size=(3, 2)) * 0.1)
    found = hinge._search(now, aim, y, weights, alpha)
    for k in range(2):
        best = optimize.minimize_scalar(
            lambda t, k=k: hinge_objective(Z, y[:, k], (now.coef + t * (aim.coef - now.coef))[:, k], 0, alpha[k]),
            options={"xtol": 1e-12},
        ).fun
        assert hinge_objective(Z, y[:, k], found.coef[:, k], 0, alpha[k]) == pytest.approx(best, rel=1e-10)


@pytest.mark.engine
def test_codes_of_a_grid_of_few_bins_are_summed_in_copies(rng):
    codes = np.stack([rng.integers(0, size, 5000) for size in (1, 2, 256, 257)]).astype(np.uint16)
    codes[:, ::11] = 65_535
    Z = BinMatrix(codes, np.cumsum([0, 1, 2, 256, 257]))
    v = rng.normal(size=5000)
    np.testing.assert_allclose(Z.T @ v, Z.tocsr().T @ v, rtol=1e-12, atol=1e-12)


def test_scores_that_are_no_numbers(table):
    Z, y = table[0], np.arange(table[0].shape[0], dtype=float)
    lone = [(np.arange(1, Z.shape[0]), [0])]  # R^2 of one row is undefined
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.raises(ValueError, match=r"scoring returned no .* of split 0"),
    ):
        CGRidge(alphas=[0.1, 1.0], cv=lone).fit(Z, y)
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.raises(ValueError, match=r"scoring returned no number.* early_stopping"),
    ):
        CGRidge(early_stopping=True, cv=lone).fit(Z, y)


@pytest.mark.parametrize("options", [{"alphas": [0.1, 1.0]}, {"alphas": [0.1, 1.0], "cv": 2}, {"early_stopping": True}])
def test_one_row_has_no_validation_set(options):
    with pytest.raises(ValueError, match="CGRidge with alphas or early_stopping needs at least 2 rows, got"):
        CGRidge(**options).fit(np.ones((1, 2)), [1.0])
