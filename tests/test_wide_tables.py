import pkgutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hard import hard
from interrupts import SEARCH_STEP, interrupted
from scipy import sparse
from sklearn.linear_model import RidgeClassifier, RidgeCV

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat.kernels import RBF, Matern
from binfeat.models.search import high_dimensional
from binfeat.models.solvers import exact

pytestmark = pytest.mark.usefixtures("few_steps")
N_INPUTS = 1500


def _texts(rng, n_rows):
    """Return shares of words, most of them in few texts, and overlapping topics."""
    usual = 1 / np.arange(1.0, N_INPUTS + 1)
    topics = usual * np.exp(1.5 * rng.standard_normal((3, N_INPUTS)) * (rng.random((3, N_INPUTS)) < 0.15))
    topics /= topics.sum(axis=1, keepdims=True)
    labels = rng.integers(0, 3, n_rows)
    counts = np.array([rng.multinomial(50, topics[label]) for label in labels])
    return sparse.csr_matrix(np.log1p(counts) / 7), labels


def _few_matter(rng, n_rows):
    X = rng.normal(size=(n_rows, N_INPUTS))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 2 * X[:, 3] + 0.1 * rng.normal(size=n_rows)


def _words(model):
    return model.decisions_["choice"][model.decisions_["what"] == "length scales"].tolist()


@pytest.mark.parametrize("max_seconds", [1e-3, *hard(None)])
def test_texts_are_classified_as_well_as_by_ridge_regression_whatever_the_time(rng, max_seconds):
    X, y = _texts(rng, 700)
    model = KernelMachineClassifier(max_seconds=max_seconds, on_unseen="ignore", random_state=0)
    with pytest.warns(UserWarning, match="max_seconds") if max_seconds else np.errstate():
        model.fit(X[:400], y[:400])
    ridge = RidgeClassifier().fit(X[:400], y[:400])
    assert model.features_ == "exact"
    assert model.score(X[400:], y[400:]) >= ridge.score(X[400:], y[400:]) - 0.02
    assert "one for all inputs" in _words(model)[0]  # rare words with variance 1 would be noise


@pytest.mark.parametrize(("max_seconds", "n_validated"), [(1e-3, 300), *hard((None, 400))])
def test_rows_of_the_choices_validate_where_time_is_up(rng, limits, monkeypatch, max_seconds, n_validated):
    limits(n_steps=2)
    monkeypatch.setattr(exact, "TUNING_ROWS", 300)
    X, y = _few_matter(rng, 400)
    solutions, solved = [], exact.ExactSolver.solve
    monkeypatch.setattr(exact.ExactSolver, "solve", lambda *args: solutions.append(solved(*args)) or solutions[-1])
    with pytest.warns(UserWarning, match="max_seconds") if max_seconds else np.errstate():
        model = KernelMachineRegressor(max_seconds=max_seconds, random_state=0).fit(X, y)
    assert model.feature_coef_.shape == (1, 400)
    assert len(np.unique(solutions[0].rows)) == len(solutions[0].predictions) == n_validated
    np.testing.assert_allclose(model.held_out_error_[0], solutions[0].error)


def test_linear_targets_of_many_inputs_are_predicted_as_by_ridge_regression(rng):
    X = rng.normal(size=(800, N_INPUTS))
    y = X @ rng.normal(size=N_INPUTS) + rng.normal(size=800)
    ridge = RidgeCV(np.logspace(0, 5, 11)).fit(X[:500], y[:500])
    model = KernelMachineRegressor(random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) >= ridge.score(X[500:], y[500:]) - 0.02


@pytest.mark.hard
def test_the_input_that_matters_most_is_found(rng, limits):
    limits(n_steps=15, sample_grids=(10, 40), n_fourier=128)
    X, y = _few_matter(rng, 700)
    model = KernelMachineRegressor(random_state=0).fit(X[:500], y[:500])
    assert model.feature_relevances_.argmax() == 3
    assert model.score(X[500:], y[500:]) > 0.5
    assert model.length_scale_errors_.size == len(model.length_scale_gammas_) > 0


def test_rows_that_no_step_saw_validate_the_model(rng, monkeypatch):
    solutions, solved = [], exact.ExactSolver.solve
    monkeypatch.setattr(exact.ExactSolver, "solve", lambda *args: solutions.append(solved(*args)) or solutions[-1])
    steps, searched = [], high_dimensional.HighDimensionalSearch._search_of
    monkeypatch.setattr(
        high_dimensional.HighDimensionalSearch, "_search_of", lambda *args: steps.append(args[2]) or searched(*args)
    )
    X, y = _few_matter(rng, 800)
    model = KernelMachineRegressor(random_state=0).fit(X[:300], y[:300])
    assert len(_words(model)) == 2
    assert model.feature_coef_.shape == (1, 300)
    assert len(solutions[0].rows) == 90
    assert not set(solutions[0].rows) & set(steps[0])
    assert abs(model.held_out_error_[0] - (1 - model.score(X[300:], y[300:]))) < 0.15


def test_inputs_that_only_seem_to_matter_keep_one_length_scale(rng):
    X, y = rng.normal(size=(300, N_INPUTS)), rng.normal(size=300)
    model = KernelMachineRegressor(random_state=0).fit(X, y)
    inverse_lengths = model._fitted.inverse_lengths
    assert np.ptp(inverse_lengths * X.std(axis=0)) < 0.3 * inverse_lengths.mean()
    assert len(_words(model)) == 1


@pytest.mark.parametrize("has_groups", [True, False])
def test_the_error_of_few_groups_can_be_small_by_chance(rng, limits, monkeypatch, has_groups):
    limits(n_steps=2)
    search, learner, kernels = high_dimensional.HighDimensionalSearch, "binfeat.models.solvers.learner.Learner", []
    of_search, tried = search._kernels, pkgutil.resolve_name(learner)._tried
    monkeypatch.setattr(search, "_kernels", lambda own, found: of_search(own, replace(found, error=1e-9)))
    monkeypatch.setattr(
        f"{learner}._tried", lambda own, kernel, *given: kernels.append((own, kernel)) or tried(own, kernel, *given)
    )
    groups = np.arange(40) // 10 if has_groups else None
    KernelMachineRegressor(random_state=0).fit(*_few_matter(rng, 40), groups=groups)
    n_tried = sum(own is kernels[0][0] for own, _ in kernels)
    assert n_tried > 5 if has_groups else n_tried == 1  # with groups, there are five initial penalties


def test_ctrl_c_leaves_the_model_with_one_length_scale(rng):
    X, y = _few_matter(rng, 200)
    model = KernelMachineRegressor(random_state=0)
    with interrupted(*SEARCH_STEP, 5, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert (model.status_, model.features_) == ("interrupted", "exact")
    assert model.predict(X).shape == (200,)


def test_weights_count_and_rows_without_weight_do_not(rng):
    X, y = _few_matter(rng, 300)
    weights = np.append(np.full(200, 2.0), np.zeros(100))
    model = KernelMachineRegressor(random_state=0).fit(X, np.where(weights > 0, y, 1e3), sample_weight=weights)
    assert model.feature_coef_.shape == (1, 200)
    assert np.abs(model.predict(X)).max() < 100


@pytest.mark.hard
def test_more_rows_than_choices_are_made_by(rng, limits, monkeypatch):
    limits()  # as many steps as in a user's fit
    monkeypatch.setattr(exact, "TUNING_ROWS", 200)
    X, y = _few_matter(rng, 700)
    model = KernelMachineRegressor(random_state=0).fit(X[:500], y[:500])
    assert model.features_ == "exact"
    assert model.held_out_error_[0] < 0.6
    assert model.score(X[500:], y[500:]) > 0.5


@pytest.mark.parametrize("kernel", [RBF(), Matern(1.5)])
def test_values_by_inner_products_are_those_of_the_kernel(rng, kernel):
    X = rng.normal(size=(20, 7)).astype(np.float32)
    own = high_dimensional._values(kernel, 0.1 * X @ X.T, 3.0)
    np.testing.assert_allclose(own, kernel(X, gamma=0.3), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("best", [10**-3.5, 10**0.5])
def test_the_best_penalty_of_two_valleys_is_found(best):
    def left_out(rows, K, alpha, root):
        return np.minimum(abs(np.log(alpha / best)), 1 + abs(np.log(alpha / 10**-1.5)))

    search = SimpleNamespace(_alpha=None, _rows=np.arange(10), _problem=SimpleNamespace(left_out=left_out))
    error, alpha = high_dimensional.HighDimensionalSearch._least_error(
        search, search._rows, None, high_dimensional._PENALTIES, np.atleast_1d
    )
    assert error < 1e-6
    assert alpha == pytest.approx(best)


@pytest.mark.hard
def test_probabilities_choose_the_penalty_of_labels(rng):
    X, y = _texts(rng, 1200)
    model = KernelMachineClassifier(on_unseen="ignore", random_state=0).fit(X[:400], y[:400])
    scored = KernelMachineClassifier(on_unseen="ignore", random_state=0, scoring="neg_log_loss").fit(X[:400], y[:400])
    assert model.alpha_ == pytest.approx(scored.alpha_, rel=1e-3)
    assert model.held_out_error_[0] != pytest.approx(scored.held_out_error_[0], rel=0.01)  # the squared error


def test_a_given_penalty_is_kept(rng):
    X, y = _texts(rng, 200)
    assert KernelMachineClassifier(alpha=0.7, random_state=0).fit(X, y).alpha_ == 0.7
