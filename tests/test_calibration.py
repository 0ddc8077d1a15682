"""Calibrated log-odds of classes: likelihood, weights, rare classes, and public results."""

import naive
import numpy as np
import pytest
from hard import hard
from scipy.optimize import nnls
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.svm import SVC

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat._common import calibration
from binfeat._common.labels import Labels
from binfeat.kernels import RBF
from binfeat.length_scales import kernel_sum, matrices
from binfeat.models.fitted.saved import migrate
from binfeat.models.kernel_algebra.solve import CellInverse
from binfeat.models.solvers import exact


@pytest.fixture
def scored(rng):
    """Return scores of three classes (the first two are hard to distinguish), labels and weights."""
    labels = rng.choice(3, size=500, p=[0.6, 0.3, 0.1])
    scores = 2.0 * np.eye(3)[labels] - 1 + 0.5 * rng.normal(size=(500, 3))
    scores[:, 0] -= 0.6 * (labels == 1) * rng.normal(size=500)
    return scores, labels, rng.uniform(0.5, 2.0, size=(500, 1))


@pytest.mark.parametrize("sign", [-1, 1])
def test_loss_and_slopes_are_those_of_its_definition(scored, rng, sign, monkeypatch):
    scores, labels, weights = (part[:40] for part in scored)
    monkeypatch.setattr(calibration, "_BLOCK_ROWS", 15)
    likelihood = calibration._Likelihood.of(scores, labels, weights)
    intercept, coef = rng.normal(size=3), rng.normal(size=(3, 6)) + 2 * np.eye(3, 6, 3) + 2 * sign * np.eye(3, 6)
    loss, by_intercept, by_coef = likelihood(intercept, coef)
    halves = np.hsplit(coef, 2)
    factors = [nnls(np.eye(3).reshape(9, 1), own.ravel())[0][0] for own in halves]
    beside = [own - factor * np.eye(3) for own, factor in zip(halves, factors, strict=True)]
    assert loss == pytest.approx(
        naive.calibration_loss(scores, labels, weights[:, 0], factors, intercept, beside), rel=1e-10
    )
    by_hand = naive.slopes_by_entries(
        lambda values: likelihood(values[:3], values[3:].reshape(3, 6))[0], np.append(intercept, coef)
    )
    np.testing.assert_allclose(np.append(by_intercept, by_coef), by_hand, rtol=1e-5, atol=1e-8)


def test_coordinates_are_those_of_the_curvature(scored, rng):
    """Coordinates invert, slopes follow the chain rule, and for balanced classes the curvature is near the identity."""
    scores, labels, weights = scored
    likelihood = calibration._Likelihood.of(scores, labels, weights)
    coordinates = calibration._Coordinates.of(likelihood)
    values = coordinates.values(*(parameters := (rng.normal(size=3), rng.normal(size=(3, 6)))))
    for own, expected in zip(coordinates.parameters(values), parameters, strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-10)

    def slopes(values):
        return coordinates.slopes(*likelihood(*coordinates.parameters(values))[1:])

    by_hand = naive.slopes_by_entries(lambda own: likelihood(*coordinates.parameters(own))[0], values)
    np.testing.assert_allclose(slopes(values), by_hand, rtol=1e-4, atol=1e-7)
    at, h = coordinates.values(np.log(likelihood.shares), np.zeros((3, 6))), 1e-5
    curvature = np.array([(slopes(at + h * step) - slopes(at - h * step)) / (2 * h) for step in np.eye(at.size)])
    found = np.linalg.eigvalsh((curvature + curvature.T) / 2)
    assert found.max() < 3
    assert np.median(found) > 0.3


def test_the_likelihood_is_highest(scored, rng):
    scores, labels, _ = scored
    fitted = calibration.Calibration.fitted(scores, labels, None)
    before = log_loss(labels, softmax(scores, axis=1))
    after = log_loss(labels, softmax(fitted(scores), axis=1))
    factor = log_loss(labels, softmax(3.0 * scores, axis=1))
    assert after < min(before, factor) - 0.02
    for _ in range(20):
        changed = calibration.Calibration(
            fitted.coef + 0.2 * rng.normal(size=(2, 3, 3)), fitted.intercept + 0.2 * rng.normal(size=3)
        )
        assert log_loss(labels, softmax(changed(scores), axis=1)) > after - 5e-3


def test_scores_far_away_and_classes_that_are_told_apart(scored):
    labels = scored[1]
    sure = calibration.Calibration.fitted(2.0 * np.eye(3)[labels] - 1, labels, None)
    odds = sure(np.array([[1e6, -1e6, 0.0], [-1e6, 1e6, -1.0], [0.0, 0.0, 0.0]]))
    assert np.isfinite(odds).all()
    p = softmax(sure(2.0 * np.eye(3) - 1), axis=1)
    assert (np.diag(p) > 0.9).all()
    assert p.min() > 1e-6  # 500 rows are not informative about one in a million


def test_a_class_without_rows(scored):
    scores, labels, _ = scored
    p = softmax(calibration.Calibration.fitted(scores, np.minimum(labels, 1), None)(scores), axis=1)
    assert np.isfinite(p).all()
    assert p[:, 2].mean() < 0.02


@pytest.mark.parametrize("sizes", [(270, 30), (180, 90, 30)])
def test_leave_one_out_scores_of_a_constant_give_the_shares(sizes):
    """A score without the own label decreases with this label."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    Y = 2.0 * np.eye(len(sizes))[labels] - 1
    fitted = calibration.Calibration.fitted((Y.sum(axis=0) - Y) / (len(Y) - 1), labels, None)
    assert not fitted.coef.any()
    np.testing.assert_allclose(softmax(fitted.intercept), np.array(sizes) / 300, atol=0.003)


@pytest.mark.parametrize("loss", ["squared", "log", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_inputs_have_the_shares_of_the_classes(loss, n_classes):
    labels = np.minimum(np.arange(300) % 10, n_classes - 1)  # the first class has a share of 0.1
    with pytest.warns(UserWarning, match="All rows of X are equal"):
        model = KernelMachineClassifier(loss=loss, random_state=0).fit(np.ones((300, 2)), labels)
    p = model.predict_proba(np.ones((1, 2)))
    np.testing.assert_allclose(p[0], np.unique(labels, return_counts=True)[1] / 300, atol=0.003)


def test_noise_has_the_log_loss_of_a_constant():
    rng = np.random.default_rng(3)  # scores decrease with their labels
    X, rare = rng.normal(size=(2300, 4)), rng.random(2300) < 0.1
    model = KernelMachineClassifier(loss="log", random_state=0).fit(X[:300], rare[:300])
    constant = log_loss(rare[300:], np.full(2000, rare[:300].mean()))
    assert log_loss(rare[300:], model.predict_proba(X[300:])) == pytest.approx(constant, rel=0.01)


def test_nearly_equal_scores_of_few_rows_get_no_large_factor(rng):
    """With other training rows, their mean would be another one, and all probabilities near 0 or 1."""
    labels = rng.integers(2, size=30)
    scores = -0.3 + 0.01 * (labels + rng.normal(size=30))
    found = calibration.Calibration.fitted(np.column_stack([-scores, scores]), labels, None)
    assert not found.coef.any()
    wide = 50 * (scores + 0.3)  # the same scores in units in which their mean is known well enough
    assert calibration.Calibration.fitted(np.column_stack([-wide, wide]), labels, None).coef.any()


def test_many_inputs_have_no_wrong_certainties():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 1400))
    labels = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=900) > 0
    model = KernelMachineClassifier(random_state=0).fit(X[:100], labels[:100])
    assert log_loss(labels[100:], model.predict_proba(X[100:])) < 0.69  # the constant's; 6.7 if scores are stretched


def test_many_rows_whose_labels_alternate(rng, monkeypatch):
    monkeypatch.setattr(calibration, "_MOST_ROWS", 100)
    labels = np.arange(200) % 2
    scores = np.clip(2.0 * labels - 1 + 0.5 * rng.normal(size=200), -1, 1)
    found = calibration.Calibration.fitted(np.column_stack([-scores, scores]), labels, None)
    shares = softmax(found(np.column_stack([-scores, scores])), axis=1).mean(axis=0)
    np.testing.assert_allclose(shares, 0.5, atol=0.1)


@pytest.mark.hard
@pytest.mark.parametrize("share", [0.002, 0.01, 0.05])
def test_rare_classes_have_the_shares_that_are_observed(rng, share):
    """The highest probabilities equal the shares of the rows, and are near the true function."""
    X = rng.normal(size=(24_000, 4))
    odds = 1.5 * X[:, 0] + np.sin(2 * X[:, 1])
    odds += np.log(share) - np.log(np.exp(odds).mean())
    rare = rng.random(24_000) < 1 / (1 + np.exp(-odds))
    model = KernelMachineClassifier(random_state=0, max_seconds=20).fit(X[:8000], rare[:8000])
    p = model.predict_proba(X[8000:])[:, 1]
    top = np.argsort(-p)[:800]
    observed = rare[8000:][top].mean()
    error = np.sqrt(max(observed, 1 / 800) / 800)
    assert abs(p[top].mean() - observed) < 4 * error + 0.35 * observed
    constant = log_loss(rare[8000:], np.full(16_000, rare[:8000].mean()))
    linear = LogisticRegression().fit(X[:8000], rare[:8000]).predict_proba(X[8000:])
    ours = log_loss(rare[8000:], p)
    assert ours < constant * 1.001
    assert ours < log_loss(rare[8000:], linear) * 1.07


def losses_of_rare_classes(rng, share, n_train):
    """Return log-losses of 16,000 new rows for a constant and for calibrated support vectors, minus ours."""
    X = rng.normal(size=(n_train + 16_000, 4))
    odds = 1.5 * X[:, 0] + 2 * np.sin(2 * X[:, 1])
    odds += np.log(share) - np.log(np.exp(odds).mean())
    rare, train, test = rng.random(len(X)) < 1 / (1 + np.exp(-odds)), slice(n_train), slice(n_train, None)
    model = KernelMachineClassifier(random_state=0).fit(X[train], rare[train])
    vectors = CalibratedClassifierCV(SVC(), cv=3, ensemble=False).fit(X[train], rare[train])

    def losses(p):
        return -np.log(np.where(rare[test], p, 1 - p))

    ours = losses(model.predict_proba(X[test])[:, 1])
    return losses(rare[train].mean()) - ours, losses(vectors.predict_proba(X[test])[:, 1]) - ours


@pytest.mark.parametrize(("share", "n_train"), [(0.05, 1000), *hard((0.002, 3000), (0.01, 3000), (0.05, 3000))])
def test_rare_classes_lose_less_than_calibrated_support_vectors(rng, share, n_train):
    """Losses are below a constant's by two standard errors if 3,000 rows have several positives (three draws)."""
    few = share < 0.005
    drawn = [losses_of_rare_classes(rng, share, n_train) for _ in range(3 if few else 1)]
    for less, least in zip(map(np.concatenate, zip(*drawn, strict=True)), (-2 if few else 2, -2), strict=True):
        assert less.mean() > least * less.std() / np.sqrt(less.size)


def test_predictions_follow_probabilities(three):
    X, labels = three
    model = KernelMachineClassifier(random_state=0).fit(X[:300], labels[:300])
    p, odds = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(softmax(odds, axis=1), p)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert model.calibration_coef_.shape == (2, 3, 3)


def test_scores_of_probabilities_choose_by_calibrated_ones(three, few_steps):
    X, labels = three
    by_loss = KernelMachineClassifier(random_state=0, scoring="neg_log_loss").fit(X[:300], labels[:300])
    assert by_loss.held_out_error_[0] == pytest.approx(log_loss(labels[300:], by_loss.predict_proba(X[300:])), abs=0.25)
    by_auc = KernelMachineClassifier(random_state=0, scoring="roc_auc_ovr").fit(X[:300], labels[:300])
    assert -by_auc.held_out_error_[0] == pytest.approx(
        roc_auc_score(labels[300:], by_auc.predict_proba(X[300:]), multi_class="ovr"), abs=0.1
    )
    with pytest.raises(ValueError, match=r"scoring='roc_auc' accepts two classes, got 3. Use 'roc_auc_ovr' or"):
        KernelMachineClassifier(scoring="roc_auc").fit(X, labels)


def test_files_with_a_factor_are_read(three):
    labels = three[1]
    scores = np.random.default_rng(1).normal(size=(20, 3))
    state = {"sharpness_": 2.5, "classes_": np.unique(labels), "multilabel_": False}
    migrate(state, 1)
    known = Labels(
        state["classes_"], calibration.Calibration(state["calibration_coef_"], state["calibration_intercept_"])
    )
    np.testing.assert_allclose(known.probabilities(scores), softmax(2.5 * scores, axis=1))


# Leave-one-out predictions of exact models with more rows than in the tuning.


def left_out(X, y, monkeypatch):
    """Return the leave-one-out error of a model, and the error of naive refits without each row."""
    monkeypatch.setattr(exact, "TUNING_ROWS", 100)
    model = KernelMachineRegressor(features="exact", target_transform=None, random_state=0).fit(X, y)
    function = model._fitted.function
    K = np.asarray(function.kernel()(function.support, function.support), np.float64)
    columns = function.standardizer.columns(model._fitted.rows(model, X))
    order = [int(np.abs(columns - own[:, np.newaxis]).sum(axis=0).argmin()) for own in function.support.T]
    Y = ((y - y.mean()) / y.std())[order, np.newaxis]
    return model.held_out_error_[0], naive.left_out_error(K, Y, float(function.alpha))


def test_all_rows_are_left_out(table, monkeypatch):
    X, y, _ = table
    found, expected = left_out(X[:200], y[:200], monkeypatch)
    assert found == pytest.approx(expected, rel=1e-3)  # one cell


@pytest.mark.hard
def test_cells_and_landmarks_say_nearly_the_same(table, monkeypatch):
    X, y, _ = table
    monkeypatch.setattr("binfeat.models.fitted.exact.rows_of_cell", lambda n_rows: 100)
    monkeypatch.setattr("binfeat.models.fitted.exact._LANDMARKS", 50)
    found, expected = left_out(X[:400], y[:400], monkeypatch)
    assert found == pytest.approx(expected, rel=0.1)  # a probe estimates the mean of 400 values within 7 %


def test_cells_of_which_landmarks_know_all(rng):
    """Diagonal and products equal the inverse for any cells."""
    X = rng.normal(size=(3, 90)).astype(np.float32)
    weights = rng.uniform(0.5, 2.0, size=90)
    kernel = kernel_sum.KernelValues(
        [matrices.kernel_matrix(RBF(), np.zeros(3, bool), 1)], np.ones(1), [np.full(3, 0.01)], 1
    )
    cells = np.array_split(np.arange(90), 3)
    known = [(X[:, rows].copy(), weights[rows]) for rows in cells]
    found = CellInverse(kernel, known, X[:, ::2].copy(), 0.1, 1)
    inverse = np.linalg.inv(np.asarray(kernel(X, X), np.float64) + 1 + np.diag(0.1 / weights))
    # Landmarks have additional noise.
    np.testing.assert_allclose(np.concatenate(found.diagonals()), np.diag(inverse), rtol=0.01)
    columns = rng.normal(size=(90, 2))
    expected = inverse @ columns
    products = np.concatenate(found.times(np.split(columns, 3)))
    np.testing.assert_allclose(products, expected, atol=0.01 * np.abs(expected).max())


@pytest.mark.parametrize("alpha", [1e-3, 4e-3])
def test_a_cell_of_equal_rows(rng, alpha):
    """Rounding of landmark features of equal rows adds up, and can exceed a small penalty."""
    X = rng.normal(size=(4, 1200)).astype(np.float32)
    X[:, 100:1100] = X[:, 100:101]
    kernel = kernel_sum.KernelValues(
        [matrices.kernel_matrix(RBF(), np.zeros(4, bool), 1)], np.ones(1), [np.full(4, 0.3)], 1
    )
    cells = np.split(np.arange(1200), [100, 1100])
    found = CellInverse(kernel, [(X[:, rows].copy(), None) for rows in cells], X[:, ::3].copy(), alpha, 1).diagonals()
    K = np.asarray(kernel(X, X), np.float64)
    expected = np.diag(np.linalg.inv(K + 1 + alpha * np.eye(1200)))
    np.testing.assert_allclose(found[1], expected[cells[1]], rtol=0.01)


@pytest.mark.parametrize(("slope", "expected"), [(0.5, 0.5), (1.1, 1.0), (-0.3, 0.0)])
def test_a_diagonal_corrected_by_noisy_values(rng, slope, expected):
    """The correction is linear in the approximation, at most proportional, with the correct mean."""
    weights, part = rng.uniform(0.5, 2.0, size=2000), rng.uniform(0.5, 1.0, size=2000)
    mean = np.average(part, weights=weights)
    true = weights * (mean + slope * (part - mean))
    estimated = true + 0.2 * rng.normal(size=2000)
    approximated = weights * part
    approximated[::7] = np.nan
    known = np.isfinite(approximated)
    found = exact._corrected(approximated, estimated, weights)
    np.testing.assert_array_equal(np.isfinite(found), known)
    assert found[known].sum() == pytest.approx(estimated[known].sum())
    error = 0.2 / (weights[known] @ (part - mean)[known] ** 2) ** 0.5  # standard error of the slope
    here, there = np.argmin(part[known]), np.argmax(part[known])
    parts = found[known] / weights[known]
    line = (parts[there] - parts[here]) / np.ptp(part[known])
    assert abs(line - expected) < 4 * error


@pytest.mark.parametrize(
    "given", [{}, {"features": "local"}, {"features": "binning", "solver_params": {"max_grids": 50}}, {"cv": 3}]
)
def test_classes_with_one_row(given, three, few_steps):
    """Their probabilities are small, also if the only row is a validation row."""
    X, labels = three[0][:200].copy(), three[1][:200].astype(object)
    X[7] = 4.0 * np.abs(X).max()
    labels[7], labels[8] = "far", "among"
    with pytest.warns(UserWarning, match="2 of \\d+ classes have a single row"):
        model = KernelMachineClassifier(random_state=0, **given).fit(X, labels)
    p = model.predict_proba(three[0])
    assert model.classes_.size == len(np.unique(labels.astype(str)))
    assert np.isfinite(p).all()
    rare = np.isin(model.classes_, ["far", "among"])
    assert p[:, rare].max() < 0.2
    assert 0 < p[:, rare].mean() < 0.05
    assert np.mean(model.predict(three[0]) == three[1]) > 0.6
