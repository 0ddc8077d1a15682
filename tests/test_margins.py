"""Log-loss and squared hinge of kernel models for labels."""

import pickle

import naive
import numpy as np
import pandas as pd
import pytest
from hard import easy, hard
from kernel_models import assert_same_state, with_options
from scipy.special import expit, logit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from binfeat import KernelMachineClassifier, blocks, kernels
from binfeat._common.labels import Labels
from binfeat.length_scales.leave_one_out import precise_inverse_root, solver_by
from binfeat.models.kernel_algebra import solve
from binfeat.models.kernel_algebra.loss import ColumnsLoss, LogLoss, SoftmaxLoss, SquaredHinge, loss_of
from binfeat.models.solvers import exact

GAMMA = [0.5, 0.3, 0.1]
GIVEN = {"features": "exact", "kernel": "laplacian", "alpha": 0.3, "gamma": GAMMA, "random_state": 0}
LOSSES = ["log", "squared_hinge"]
KINDS = [(LogLoss(), 1), (LogLoss(), 3), (SoftmaxLoss(), 3), (SquaredHinge(), 1), (SquaredHinge(), 3)]
BESIDE = ColumnsLoss([(slice(0, 3), SoftmaxLoss()), (slice(3, 4), LogLoss())])


@pytest.fixture
def to_the_end(monkeypatch):
    """Continue steps to the minimum."""
    monkeypatch.setattr(solve, "_ENOUGH", 1e-10)


def drawn(rng, n_rows, n_classes):
    """Return labels with softmax probabilities of smooth functions."""
    X = rng.uniform(-1, 1, size=(n_rows, 3))
    odds = np.column_stack([np.sin(3 * X[:, k]) * (2 + X[:, 2 - k]) for k in range(n_classes)]) * 2
    return X, np.array([rng.choice(n_classes, p=p) for p in softmax(odds, axis=1)])


def targets(rng, loss, n_targets, n_rows=12):
    if isinstance(loss, SoftmaxLoss):
        return 2.0 * np.eye(n_targets)[rng.choice(n_targets, size=n_rows)] - 1
    return rng.choice([-1.0, 1.0], size=(n_rows, n_targets))


@pytest.mark.parametrize(("loss", "n_targets"), KINDS)
def test_derivatives_are_those_by_differences(loss, n_targets, rng):
    Y = targets(rng, loss, n_targets)
    S = rng.normal(size=Y.shape)

    def total(scores):
        return loss.halves(Y, scores).sum()

    np.testing.assert_allclose(-loss.pulls(Y, S), naive.slopes_by_entries(total, S), rtol=1e-5, atol=1e-8)
    bends = naive.slopes_by_entries(lambda scores: -loss.pulls(Y, scores).sum(), S)
    if isinstance(loss, SoftmaxLoss):
        # The trace of the Hessian for scores that sum to 0, per row, divided by the number of classes minus 1.
        own = np.array(
            [-(loss.pulls(Y, S + 1e-5 * unit) - loss.pulls(Y, S))[:, k] / 1e-5 for k, unit in enumerate(np.eye(3))]
        )
        np.testing.assert_allclose(loss.curvatures(Y, S)[:, 0], own.sum(axis=0) / 2, rtol=1e-3)
    else:
        np.testing.assert_allclose(loss.curvatures(Y, S), bends, rtol=1e-4, atol=1e-8)


def test_columns_side_by_side_are_the_sum_of_their_losses(rng):
    Y = np.hstack([targets(rng, SoftmaxLoss(), 3), targets(rng, LogLoss(), 1)])
    S = rng.normal(size=Y.shape)
    parts = [(loss, Y[:, own], S[:, own]) for own, loss in BESIDE.columns]
    np.testing.assert_allclose(BESIDE.halves(Y, S), sum(loss.halves(*pair) for loss, *pair in parts))
    np.testing.assert_allclose(BESIDE(Y, S), sum(loss(*pair) for loss, *pair in parts) / 2)
    np.testing.assert_array_equal(BESIDE.pulls(Y, S), np.hstack([loss.pulls(*pair) for loss, *pair in parts]))
    classes, label = (loss.curvatures(*pair) for loss, *pair in parts)
    np.testing.assert_array_equal(BESIDE.curvatures(Y, S), np.hstack([np.repeat(classes, 3, axis=1), label]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "n_targets"), KINDS)
def test_the_minimum_is_that_of_a_dense_solver(loss, n_targets, weighted, rng, to_the_end):
    X = rng.uniform(-1, 1, size=(80, 3))
    Y = targets(rng, loss, n_targets, 80)
    weights = rng.uniform(0.3, 2.0, size=80) if weighted else None
    K = kernels.Laplacian()(X, gamma=[3.0, 1.0, 1.0]).astype(np.float32)
    coef, scores, _, alpha = solve.minimize(loss, solver_by(precise_inverse_root, K), 0.05, weights, Y)
    v = np.ones(80) if weights is None else weights
    expected = naive.penalized_margins(K, Y, v, 0.05, type(loss).__name__)
    np.testing.assert_allclose(scores, expected, atol=2e-3)
    np.testing.assert_allclose((K + 1) @ coef, scores, atol=1e-3)
    assert alpha == pytest.approx(0.05)


@pytest.mark.parametrize("group_rows", [1, 3])
@pytest.mark.parametrize(("loss", "n_targets"), KINDS)
def test_rows_left_out_are_as_if_they_were(loss, n_targets, group_rows, rng, to_the_end):
    """To first order: nearer to the refit without the row or group than the refit is to the whole model."""
    X = rng.uniform(-1, 1, size=(60, 3))
    S = 1.5 * np.sin(3 * X[:, :n_targets])
    Y = np.where(S + rng.logistic(size=S.shape) > 0, 1.0, -1.0)
    if isinstance(loss, SoftmaxLoss):
        Y = 2.0 * np.eye(3)[(S + rng.gumbel(size=S.shape)).argmax(axis=1)] - 1
    K = kernels.Laplacian()(X, gamma=[1.0, 0.5, 0.5]).astype(np.float32)
    _, scores, _, alpha = solve.minimize(loss, solver_by(precise_inverse_root, K), 0.5, None, Y)
    groups = rng.permutation(60) // group_rows
    given = groups if group_rows > 1 else None
    told = solve.left_out(loss, K, alpha, None, Y, scores, precise_inverse_root, given)
    exact = np.empty(Y.shape)
    for group in range(60 // group_rows):
        own, others = groups == group, groups != group
        less, *_ = solve.minimize(
            loss, solver_by(precise_inverse_root, K[np.ix_(others, others)]), 0.5, None, Y[others]
        )
        exact[own] = (K[np.ix_(own, others)] + 1) @ less
    far = np.sqrt(np.mean((exact - scores) ** 2))
    assert np.sqrt(np.mean((told - exact) ** 2)) < 0.15 * far


@pytest.mark.parametrize(("loss", "n_targets"), KINDS)
def test_few_steps_are_near_the_minimum(loss, n_targets, rng):
    X = rng.uniform(-1, 1, size=(150, 3))
    Y = targets(rng, loss, n_targets, 150)
    K = kernels.Laplacian()(X, gamma=[3.0, 1.0, 1.0]).astype(np.float32)
    _, scores, gain, _ = solve.minimize(loss, solver_by(precise_inverse_root, K), 0.05, None, Y)
    expected = naive.penalized_margins(K, Y, np.ones(150), 0.05, type(loss).__name__)
    assert np.sqrt(np.mean((scores - expected) ** 2)) < 0.03 * expected.std()
    assert gain < 1e-4


def test_linear_kernels_are_logistic_regression(rng, to_the_end):
    X = np.hstack([rng.normal(size=(150, 3)), np.ones((150, 1))])
    for n_classes in (2, 3):
        labels = (X[:, :n_classes] + rng.gumbel(size=(150, n_classes))).argmax(axis=1)
        Y = 2.0 * np.eye(n_classes)[labels][:, [1] if n_classes == 2 else slice(None)] - 1
        loss = loss_of("log", Labels(np.arange(n_classes)))
        K = (X @ X.T - 1).astype(np.float32)  # the added constant is the last input
        _, scores, *_ = solve.minimize(loss, solver_by(precise_inverse_root, K), 0.7, None, Y)
        peer = LogisticRegression(C=(2 if n_classes == 2 else 1) / 0.7, fit_intercept=False, tol=1e-10, max_iter=10_000)
        odds = peer.fit(X, labels).decision_function(X)
        ours = 2 * scores[:, 0] if n_classes == 2 else scores
        np.testing.assert_allclose(ours, odds, atol=2e-3)


@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_scores_are_the_mode_of_a_gaussian_process(alpha, rng, to_the_end):
    """Log-odds 2 s have the prior covariance of the kernel plus a constant, times 2 / alpha."""
    (X, labels), new = drawn(rng, 150, 2), rng.uniform(-1, 1, size=(50, 3))
    model = KernelMachineClassifier(**{**GIVEN, "kernel": "rbf", "alpha": alpha}, loss="log").fit(X, labels)
    covariance = ConstantKernel(2 / alpha) * (ConstantKernel(1.0) + RBF(1 / np.sqrt(2 * np.array(GAMMA))))
    peer = GaussianProcessClassifier(covariance, optimizer=None, max_iter_predict=1000).fit(X, labels).base_estimator_
    np.testing.assert_allclose(2 * model._scores(X)[:, 0], logit(peer.pi_), atol=2e-3)
    told = peer.kernel_(new, X) @ (labels - peer.pi_)
    np.testing.assert_allclose(2 * model._scores(new)[:, 0], told, atol=2e-3)
    assert told.std() > 0.5


def test_linear_kernels_are_support_vector_models(rng, to_the_end):
    X = np.hstack([rng.normal(size=(150, 3)), np.ones((150, 1))])
    labels = X[:, 0] + rng.normal(size=150) > 0
    K = (X @ X.T - 1).astype(np.float32)
    Y = np.where(labels, 1.0, -1.0)[:, np.newaxis]
    _, scores, *_ = solve.minimize(SquaredHinge(), solver_by(precise_inverse_root, K), 0.7, None, Y)
    peer = LinearSVC(C=1 / 0.7 / 2, fit_intercept=False, loss="squared_hinge", dual=False, tol=1e-10)
    np.testing.assert_allclose(scores[:, 0], peer.fit(X, labels).decision_function(X), atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_model_minimizes_what_is_written(loss, n_classes, rng, to_the_end):
    X, labels = drawn(rng, 100, n_classes)
    weights = rng.uniform(0.5, 2.0, size=100)
    model = KernelMachineClassifier(**GIVEN, loss=loss).fit(X, labels, sample_weight=weights)
    Y = np.where(np.eye(n_classes)[labels] > 0, 1.0, -1.0)
    kind = type(loss_of(loss, Labels(np.arange(n_classes)))).__name__
    expected = naive.penalized_margins(
        kernels.Laplacian()(X, gamma=GAMMA), Y[:, 1:] if n_classes == 2 else Y, weights, 0.3, kind
    )
    np.testing.assert_allclose(model._scores(X), expected, atol=2e-3)
    assert model.alpha_ == 0.3


@pytest.mark.parametrize("n_classes", [3, *hard(2)])
def test_probabilities_are_near_those_of_the_truth(n_classes, rng, few_steps):
    X, labels = drawn(rng, 1600, n_classes)
    odds = np.column_stack([np.sin(3 * X[:, k]) * (2 + X[:, 2 - k]) for k in range(n_classes)]) * 2
    best = log_loss(labels[800:], softmax(odds[800:], axis=1))
    constant = log_loss(labels[800:], np.tile(np.bincount(labels[:800]) / 800, (800, 1)))
    for loss in LOSSES:
        model = KernelMachineClassifier(loss=loss, random_state=0).fit(X[:800], labels[:800])
        left = log_loss(labels[800:], model.predict_proba(X[800:])) - best
        assert left < 0.2 * (constant - best)
        assert model.features_ == "exact"
    told, known = model.held_out_error_, model._fitted.targets
    assert known.is_multilabel is False
    assert 0 < told[1] < told[0]


@pytest.mark.parametrize("loss", easy(LOSSES, "log"))
def test_cells_are_the_whole_where_there_is_one(loss, rng, to_the_end):
    X, labels = drawn(rng, 200, 3)
    exact = KernelMachineClassifier(**GIVEN, loss=loss).fit(X, labels)
    local = KernelMachineClassifier(**with_options({**GIVEN, "features": "local"}, n_trees=1), loss=loss).fit(X, labels)
    np.testing.assert_allclose(local._scores(X), exact._scores(X), atol=2e-3)
    np.testing.assert_allclose(local.held_out_error_, exact.held_out_error_, rtol=2e-3)
    several = KernelMachineClassifier(features="local", solver_params={"cell_rows": 80}, loss=loss, random_state=0).fit(
        X, labels
    )
    assert several.n_trees_ > 1
    assert np.mean(several.predict(X) == exact.predict(X)) > 0.85


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_rows_are_left_out_of_large_models(loss, n_classes, rng, monkeypatch):
    X, labels = drawn(rng, 300, n_classes)
    few = KernelMachineClassifier(**GIVEN, loss=loss).fit(X, labels).held_out_error_
    monkeypatch.setattr(exact, "TUNING_ROWS", 100)
    np.testing.assert_allclose(
        KernelMachineClassifier(**GIVEN, loss=loss).fit(X, labels).held_out_error_, few, rtol=0.02
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_that_are_told_apart_and_classes_with_one_row(loss, rng):
    X = rng.uniform(-1, 1, size=(90, 2))
    labels = np.where(X[:, 0] > 0.2, "b", "a").astype(object)
    model = KernelMachineClassifier(loss=loss, random_state=0).fit(X, labels)
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert model.score(X, labels) > 0.95
    labels[0] = "lone"
    with pytest.warns(UserWarning, match="1 of \\d+ classes have a single row"):
        model = KernelMachineClassifier(loss=loss, random_state=0).fit(X, labels)
    assert model.classes_.tolist() == ["a", "b", "lone"]
    assert 0 < model.predict_proba(X[1:])[:, 2].mean() < 0.1


def test_weights_are_rows(rng, to_the_end):
    X, labels = drawn(rng, 90, 3)
    twice = rng.random(90) < 0.5
    given = {**GIVEN, "loss": "log"}
    weighted = KernelMachineClassifier(**given).fit(X, labels, sample_weight=1.0 + twice)
    repeated = KernelMachineClassifier(**given).fit(np.vstack([X, X[twice]]), np.append(labels, labels[twice]))
    np.testing.assert_allclose(weighted._scores(X), repeated._scores(X), atol=2e-3)
    without = KernelMachineClassifier(**given).fit(X, labels, sample_weight=(~twice).astype(float))
    alone = KernelMachineClassifier(**given).fit(X[~twice], labels[~twice])
    np.testing.assert_allclose(without._scores(X), alone._scores(X), atol=2e-3)
    by_class = KernelMachineClassifier(**given, class_weight={0: 3.0, 1: 1.0, 2: 1.0}).fit(X, labels)
    assert by_class.predict_proba(X)[:, 0].mean() > weighted.predict_proba(X)[:, 0].mean()


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_of_their_own(loss, rng, to_the_end):
    X, labels = drawn(rng, 150, 3)
    both = np.column_stack([labels == 0, X[:, 1] > 0]).astype(int)
    model = KernelMachineClassifier(**GIVEN, loss=loss).fit(X, both)
    for column in range(2):
        alone = KernelMachineClassifier(**GIVEN, loss=loss).fit(X, both[:, column])
        np.testing.assert_allclose(model._scores(X)[:, column], alone._scores(X)[:, 0], atol=2e-3)
    assert model.predict_proba(X).shape == (150, 2)


@pytest.mark.parametrize("loss", easy(LOSSES, "squared_hinge"))
def test_files_determinism_and_warm_starts(loss, rng):
    X, labels = drawn(rng, 200, 3)
    model, again = (KernelMachineClassifier(loss=loss, random_state=0).fit(X, labels) for _ in range(2))
    assert_same_state(model, again)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    warm = KernelMachineClassifier(loss=loss, random_state=0, warm_start=True).fit(X, labels).fit(X, labels)
    assert "warm start" in warm.decisions_["what"]
    np.testing.assert_allclose(warm.predict_proba(X), model.predict_proba(X), atol=0.1)
    other = warm.set_params(loss="squared").fit(X, labels)
    assert "none: loss changed" in other.decisions_["choice"]


def test_frames_groups_scores_and_few_seconds(rng, few_steps):
    X, labels = drawn(rng, 300, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["d"] = pd.Categorical(rng.choice(["u", "v"], size=300))
    frame.loc[::9, "a"] = np.nan
    groups = np.arange(300) // 5
    model = KernelMachineClassifier(loss="log", random_state=0).fit(frame, labels, groups=groups)
    assert model.features_ == "exact"
    scored = KernelMachineClassifier(loss="log", scoring="neg_log_loss", random_state=0).fit(frame, labels)
    plain = KernelMachineClassifier(loss="log", random_state=0).fit(frame, labels)
    np.testing.assert_allclose(scored.held_out_error_[0], plain.held_out_error_[0], rtol=0.15)
    finishing = KernelMachineClassifier(loss="log", max_seconds=0.01, random_state=0).fit(X, labels)
    assert np.isfinite(finishing.predict_proba(X)).all()
    with pytest.raises(ValueError, match="at least two classes"):
        KernelMachineClassifier(loss="log").fit(X, np.zeros(300))


def test_steps_that_do_not_end_are_warned_of(rng, monkeypatch):
    X, labels = drawn(rng, 60, 3)
    monkeypatch.setattr(solve, "_MOST", 1)
    monkeypatch.setattr(solve, "_FACTORS", 1)
    for features in ("exact", "local"):
        with pytest.warns(
            ConvergenceWarning, match="loss='log' did not converge: one more step would lower the objective"
        ):
            KernelMachineClassifier(**{**GIVEN, "features": features}, loss="log").fit(X, labels)


def test_what_other_losses_do_not_have(rng, sampled_rows, monkeypatch):
    X, labels = drawn(rng, 100, 3)
    refused = [{"features": "binning"}, {"features": "fourier"}, {"solver_params": {"n_grids": 4}}]
    for given in refused:
        with pytest.raises(ValueError, match="loss='log' requires a kernel matrix"):
            KernelMachineClassifier(loss="log", **given).fit(X, labels)
    with pytest.raises(ValueError, match=r"loss='log' accepts kernel='auto', 'laplacian', 'rbf', .*; got 'hat'"):
        KernelMachineClassifier(loss="log", kernel="hat").fit(X, labels)
    assert KernelMachineClassifier(loss="log", kernel="rbf").fit(X, labels).features_ == "exact"
    with pytest.raises(ValueError, match="loss must be"):
        KernelMachineClassifier(loss="hinge").fit(X, labels)
    monkeypatch.setattr("binfeat.models.solvers.choice.MOST_FACTORED", 50)
    with pytest.raises(ValueError, match="features='exact' supports up to 50 rows, got 100"):
        KernelMachineClassifier(loss="log", features="exact").fit(X, labels)
    sampled_rows(50)
    with pytest.raises(ValueError, match="loss='log' requires all rows in memory"):
        KernelMachineClassifier(loss="log").fit(blocks(X, labels, block_rows=30))


def test_more_rows_than_exact_models_have_are_local(rng, monkeypatch):
    X, labels = drawn(rng, 200, 2)
    monkeypatch.setattr("binfeat.models.solvers.sizes.MOST_FACTORED", 100)
    model = KernelMachineClassifier(loss="log", random_state=0).fit(X, labels)
    assert model.features_ == "local"
    assert solve.MOST_FACTORED > 100
    np.testing.assert_allclose(expit(model.decision_function(X)), model.predict_proba(X)[:, 1])
