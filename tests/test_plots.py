"""Displays: what they draw, axes, and errors."""

import copy

import naive
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from binfeat import (
    CGRidge,
    IntervalDisplay,
    KernelErrorDisplay,
    KernelMachineRegressor,
    LearningCurveDisplay,
    RandomBinning,
    RandomFeatureUnion,
    RandomFourier,
    RelevanceDisplay,
    kernels,
)

matplotlib = pytest.importorskip("matplotlib")
pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def no_screen():
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return matplotlib.figure.Figure().subplots()


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    options = {"gamma": [0.1, 0.5, 0.0], "solver_params": {"n_grids": 20}, "random_state": 0}
    return KernelMachineRegressor(**options).fit(X, X["a"] + np.sin(3 * X["b"]))


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def widths(display):
    return [bar.get_width() for bar in display.bars_]


def test_relevances_of_a_model(model, ax):
    display = RelevanceDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert labels(display) == ["b", "a", "c"]
    np.testing.assert_array_equal(widths(display), model.feature_relevances_[[1, 0, 2]])
    bottom, top = ax.get_ylim()
    assert bottom > top  # the largest is at the top
    assert labels(RelevanceDisplay.from_estimator(model, feature_names=["x", "y", "z"])) == ["y", "x", "z"]


def test_relevances_that_are_many_share_a_last_bar(ax):
    relevances = np.array([0.1, 0.0, 0.4, 0.2, 0.3])
    display = RelevanceDisplay(relevances).plot(ax, max_features=2)
    assert labels(display) == ["x2", "x4", "3 others"]
    np.testing.assert_allclose(widths(display), [0.4, 0.3, 0.3])
    assert labels(RelevanceDisplay(relevances).plot(max_features=5)) == ["x2", "x4", "x3", "x0", "x1"]


def test_bars_take_options_and_a_figure_of_their_own():
    display = RelevanceDisplay([0.2, 1e-5]).plot(color="red")
    assert display.bars_[0].get_facecolor() == matplotlib.colors.to_rgba("red")
    assert [text.get_text() for text in display.ax_.texts] == ["0.200", "<0.001"]


@pytest.mark.parametrize(
    ("display", "options", "error", "message"),
    [
        (RelevanceDisplay([0.5, 0.5], ["a"]), {}, ValueError, "must have one name per relevance, 2; got 1"),
        (RelevanceDisplay([[0.5]]), {}, ValueError, r"relevances must have one dimension, got shape \(1, 1\)"),
        (RelevanceDisplay([0.5]), {"max_features": 0}, ValueError, "max_features must be at least 1, got 0"),
        (RelevanceDisplay([0.5]), {"max_features": 1.5}, TypeError, "max_features must be an integer"),
        (LearningCurveDisplay([1, 2], [0.1]), {}, ValueError, r"x and error must have one row per point; got shapes"),
        (LearningCurveDisplay([[1]], [0.1]), {}, ValueError, r"x and error must have one row per point; got shapes"),
        (
            LearningCurveDisplay([1], [1], x_labels=["a", "b"]),
            {},
            ValueError,
            "x_labels must have one word per point, 1; got 2",
        ),
        (LearningCurveDisplay([1], [1], steps=[[1]]), {}, ValueError, r"steps must have one error per step; got shape"),
        (KernelErrorDisplay([0.5], [0.5], n_grids=0), {}, ValueError, "n_grids must be at least 1, got 0"),
        (KernelErrorDisplay([1.0], [1.0, 0.5]), {}, ValueError, "exact and approximate must have one value per pair"),
        (KernelErrorDisplay([], []), {}, ValueError, "exact and approximate must have one value per pair"),
    ],
)
def test_bad_input(display, options, error, message):
    with pytest.raises(error, match=message):
        display.plot(**options)


def test_intervals_of_a_model(model, ax):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    y = X["a"] + np.sin(3 * X["b"])
    display = IntervalDisplay.from_estimator(model, X, y, coverage=0.8, max_rows=50, ax=ax)
    low, high = model.predict_interval(X, 0.8).T
    assert display.inside_ == np.mean((low <= y) & (y <= high))
    assert ax.get_title(loc="left") == f"{display.inside_:.3f} of 300 rows inside (nominal 0.8)"
    assert len(display.points_.get_offsets()) == len(display.bars_.get_segments()) == 50
    assert (np.diff(display.points_.get_offsets()[:, 0]) >= 0).all()
    x, ends = display.bars_.get_segments()[0].T
    assert x[0] == model.predict(X).min()
    np.testing.assert_allclose(ends, model.predict_interval(X, 0.8)[model.predict(X).argmin()])


def test_dots_inside_and_outside_of_intervals(ax):
    display = IntervalDisplay([1, 2, 3], [0.5, 5, 1], [[0, 1], [0, 1], [0, 1]], x_name="Age").plot(ax, s=5)
    assert display.inside_ == pytest.approx(2 / 3)
    first, second, third = map(tuple, display.points_.get_facecolor())
    assert first == third != second
    assert (ax.get_xlabel(), ax.get_title(loc="left")) == ("Age", "0.667 of 3 rows inside")


@pytest.mark.parametrize(
    ("display", "error", "message"),
    [
        (IntervalDisplay([1], [1, 2], [[0, 1]]), ValueError, r"must be of shapes .*; got \(1,\), \(2,\) and \(1, 2\)"),
        (IntervalDisplay([], [], np.empty((0, 2))), ValueError, "must be of shapes"),
        (IntervalDisplay([1], [np.nan], [[0, 1]]), ValueError, "x, y and intervals must be finite"),
        (IntervalDisplay([1], ["a"], [[0, 1]]), TypeError, "y must be numbers"),
        (IntervalDisplay([1], [1], [[0, 1]], coverage=2), ValueError, "coverage must be between 0 and 1"),
    ],
)
def test_bad_intervals(display, error, message):
    with pytest.raises(error, match=message):
        display.plot()


def test_models_without_intervals(model):
    X = np.zeros((3, 3))
    with pytest.raises(TypeError, match="estimator must be a KernelMachineRegressor, got CGRidge"):
        IntervalDisplay.from_estimator(CGRidge(), X, [0, 0, 0])
    with pytest.raises(NotFittedError):
        IntervalDisplay.from_estimator(KernelMachineRegressor(), X, [0, 0, 0])
    two = KernelMachineRegressor(gamma=0.5, solver_params={"n_grids": 5}, random_state=0).fit(
        np.eye(40), np.eye(40)[:, :2]
    )
    with pytest.raises(ValueError, match="estimator must have one target, got 2"):
        IntervalDisplay.from_estimator(two, np.eye(40), np.eye(40)[:, :2], coverage=0.5)


@pytest.mark.parametrize("display", [RelevanceDisplay, LearningCurveDisplay])
def test_models_that_are_not_fitted(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(KernelMachineRegressor())


SEARCHED = np.geomspace(0.5, 0.02, 60)


def grown(model, **attributes):
    """Return the fitted model with other attributes, as after a search and growing grids."""
    other = copy.deepcopy(model)
    vars(other).update(attributes)
    return other


def x_ticks(display):
    return [label.get_text() for label in display.ax_.get_xticklabels()]


def test_learning_curve_of_grids(model, ax):
    curve = np.array([[10.0, 0.3], [20.0, 0.2], [40.0, 0.1]])
    display = LearningCurveDisplay.from_estimator(grown(model, learning_curve_=curve), ax=ax, color="red")
    np.testing.assert_array_equal(display.line_.get_xydata(), curve)
    assert display.line_.get_color() == "red"
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("Grids", "Validation error", "linear")
    assert display.band_ is display.steps_ is None
    scored = LearningCurveDisplay.from_estimator(grown(model, learning_curve_=curve, scoring="r2"))
    assert scored.ax_.get_ylabel() == "Negative validation score"


def test_learning_curve_of_a_search_and_grids(model):
    curve = np.array([[400.0, 0.03], [800.0, 0.02], [1600.0, 0.01]])
    display = LearningCurveDisplay.from_estimator(
        grown(model, length_scale_errors_=SEARCHED, learning_curve_=curve, n_grids_=1600)
    )
    np.testing.assert_array_equal(display.steps_.get_xydata(), np.column_stack([np.arange(1, 61), SEARCHED]))
    np.testing.assert_array_equal(display.line_.get_ydata(), curve[:, 1])
    assert display.line_.get_xdata().min() > 60
    assert x_ticks(display)[-4:] == ["60", "400", "800", "1,600"]
    assert all(label.isdigit() for label in x_ticks(display)[:-3])
    assert (display.ax_.get_xlabel(), display.ax_.get_yscale()) == ("Step of the search, then grids", "log")


@pytest.mark.parametrize("features", ["exact", "fourier"])
def test_learning_curve_of_a_model_without_grids_is_its_search_and_its_error(model, features):
    attributes = {"learning_curve_": np.array([[0.0, 0.01]]), "n_grids_": 0, "features_": features}
    display = LearningCurveDisplay.from_estimator(grown(model, length_scale_errors_=SEARCHED, **attributes))
    assert len(display.steps_.get_xdata()) == 60
    assert x_ticks(display)[-1] == features
    np.testing.assert_array_equal(display.line_.get_ydata(), [0.01])
    assert ("then validation" in display.ax_.get_ylabel()) == (features == "fourier")


def test_learning_curve_of_errors_of_two_kinds_is_drawn_of_one(model):
    for curve in ([[400.0, -0.9]], [[400.0, -0.9], [800.0, -0.95]]):
        attributes = {"learning_curve_": np.array(curve), "length_scale_errors_": SEARCHED, "scoring": "r2"}
        display = LearningCurveDisplay.from_estimator(grown(model, **attributes))
        assert (display.steps_ is None) == (len(curve) == 2)
        assert len(display.line_.get_xdata()) == (2 if len(curve) == 2 else 0)


def test_learning_curve_of_a_model_without_steps_is_of_its_decisions(model):
    display = LearningCurveDisplay.from_estimator(model)
    assert x_ticks(display) == list(model.decisions_["what"])
    np.testing.assert_array_equal(display.line_.get_ydata(), model.decisions_["error"])
    assert len(model.decisions_) > 1


def test_axes_count_in_whole_numbers():
    display = LearningCurveDisplay([1, 2, 3], [0.3, 0.2, 0.1], x_name="Rounds").plot()
    display.figure_.canvas.draw()
    assert all(float(label).is_integer() for label in x_ticks(display))


def test_learning_curves_of_rows_and_of_iterations():
    rows = np.array([1000, 2000, 8000])
    folds = np.array([[0.3, 0.5], [0.2, 0.4], [0.1, 0.1]])
    display = LearningCurveDisplay(rows, folds, x_name="Rows").plot()
    assert (display.ax_.get_xlabel(), display.ax_.get_xscale()) == ("Rows", "log")
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["1,000", "2,000", "8,000"]
    np.testing.assert_allclose(display.line_.get_ydata(), [0.4, 0.3, 0.1])
    np.testing.assert_allclose(display.band_.get_datalim(display.ax_.transData).intervaly, [0.1, 0.5])
    iterations = LearningCurveDisplay(np.arange(20), 1 / np.arange(1, 21), x_name="Iterations").plot()
    assert iterations.ax_.get_xscale() == "linear"
    many = LearningCurveDisplay(np.arange(1, 21), np.ones(20)).plot()
    assert many.ax_.get_xscale() == "log"


MAPS = {
    "binning": (RandomBinning(gamma=[0.3, 0.2, 0.0], n_grids=60, random_state=0), kernels.Laplacian()),
    "codes": (RandomBinning(kernel="hat", gamma=0.2, n_grids=60, output="codes", random_state=0), kernels.Hat()),
    "fourier": (RandomFourier(gamma=0.2, n_components=120, random_state=0), kernels.RBF()),
}


@pytest.mark.parametrize("name", MAPS)
def test_kernel_errors_of_a_map(name, rng, ax):
    estimator, kernel = MAPS[name]
    X = rng.normal(size=(60, 3))
    display = KernelErrorDisplay.from_estimator(estimator.fit(X), X, random_state=0, ax=ax)
    exact = kernel(X, gamma=estimator.gamma_)[np.triu_indices(60, k=1)]
    np.testing.assert_allclose(np.sort(display.exact), np.sort(exact))  # all pairs: fewer than n_pairs
    Z = estimator.transform(X)
    Z = Z.toarray() if hasattr(Z, "toarray") else Z.tocsr().toarray() if hasattr(Z, "tocsr") else Z
    np.testing.assert_allclose(np.sort(display.approximate), np.sort((Z @ Z.T)[np.triu_indices(60, k=1)]), atol=1e-12)
    error = display.approximate - display.exact
    np.testing.assert_allclose(display.rms_error_, np.sqrt(np.mean(error**2)))
    assert display.rms_error_ < 0.1
    np.testing.assert_array_equal(display.points_.get_offsets(), np.stack([display.exact, error], axis=1))
    low, high = ax.get_ylim()
    assert -low == high > np.abs(error).max()
    captions = [text.get_text() for text in ax.texts]
    assert captions == ([] if name == "fourier" else ["stripes: products are multiples of 1 / 60"])


def test_kernel_errors_of_a_rotated_map(rng, ax):
    X, rotation = rng.normal(size=(40, 3)), rng.normal(size=(3, 2))
    fourier = RandomFourier(gamma=[0.2, 0.5, 0.0], rotation=rotation, n_components=400, random_state=0).fit(X)
    display = KernelErrorDisplay.from_estimator(fourier, X, ax=ax)
    exact = kernels.RBF()(naive.rotated(X, [0.2, 0.5, 0.0], rotation), gamma=1.0)
    np.testing.assert_allclose(np.sort(display.exact), np.sort(exact[np.triu_indices(40, k=1)]))
    assert display.rms_error_ < 0.1


def test_kernel_errors_of_a_union(rng, ax):
    X = rng.normal(size=(40, 2))
    parts = [("steps", RandomBinning(output="codes", random_state=0)), ("waves", RandomFourier(random_state=0))]
    for weights in (None, [0.25, 2.0]):
        union = RandomFeatureUnion(parts, weights=weights).fit(X)
        display = KernelErrorDisplay.from_estimator(union, X, ax=ax)
        steps, waves = (part for _, part in union.transformers_)
        first, second = (1, 1) if weights is None else weights
        K = first * kernels.Laplacian()(X, gamma=steps.gamma_) + second * kernels.RBF()(X, gamma=waves.gamma_)
        np.testing.assert_allclose(np.sort(display.exact), np.sort(K[np.triu_indices(40, k=1)]))


def test_kernel_errors_with_categories(rng, ax):
    X = np.column_stack([rng.normal(size=150), rng.integers(3, size=150)])
    binning = RandomBinning(gamma=[0.5, 0.7], n_grids=400, categorical_features=[1], random_state=0).fit(X)
    display = KernelErrorDisplay.from_estimator(binning, X, random_state=0, ax=ax)
    assert display.rms_error_ < 0.5 / np.sqrt(400) * 1.5  # sqrt(k (1 - k) / n_grids) at most


def test_kernel_errors_take_pairs_of_every_exact_value(rng, ax):
    X = rng.normal(size=(1000, 10))
    binning = RandomBinning(gamma=0.3, n_grids=30, n_features=3000, random_state=0).fit(X)
    display = KernelErrorDisplay.from_estimator(binning, X, n_pairs=500, random_state=0, ax=ax)
    assert display.exact.size == 500
    all_pairs = kernels.Laplacian()(X[:200], gamma=0.3)[np.triu_indices(200, k=1)]
    assert np.median(display.exact) > 2 * np.median(all_pairs)
    for table in (sparse.csr_array(X), sparse.coo_array(X), X.tolist()):
        again = KernelErrorDisplay.from_estimator(binning, table, n_pairs=500, random_state=0, ax=ax)
        np.testing.assert_array_equal(again.exact, display.exact)
        np.testing.assert_array_equal(again.approximate, display.approximate)


@pytest.mark.filterwarnings("error")
def test_kernel_errors_of_a_frame(rng, ax):
    X = rng.normal(size=(50, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    shown = [
        KernelErrorDisplay.from_estimator(RandomBinning(random_state=0).fit(table), table, random_state=0, ax=ax)
        for table in (frame, X)
    ]
    np.testing.assert_array_equal(shown[0].approximate, shown[1].approximate)


def test_kernel_and_gamma_of_the_caller(rng, ax):
    class Exact(BaseEstimator):
        gamma_ = 0.5

        def fit(self, X, y=None):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def transform(self, X):
            return np.linalg.cholesky(kernels.RBF()(X, gamma=0.5))

    X = rng.normal(size=(30, 2))
    for gamma in (None, 0.5):
        display = KernelErrorDisplay.from_estimator(Exact(), X, kernel=kernels.RBF(), gamma=gamma, ax=ax)
        assert display.rms_error_ < 1e-12
    with pytest.raises(TypeError, match="The kernel of Exact is unknown; pass kernel"):
        KernelErrorDisplay.from_estimator(Exact(), X)
    del Exact.gamma_
    with pytest.raises(ValueError, match="gamma must be given with kernel"):
        KernelErrorDisplay.from_estimator(Exact(), X, kernel=kernels.RBF())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_pairs": 0}, ValueError, "n_pairs must be at least 1, got 0"),
        ({"gamma": 1.0}, ValueError, "gamma requires kernel"),
        ({"X": np.ones((1, 2))}, ValueError, "Found array with 1 sample.* minimum of 2 is required"),
        ({"X": np.array([[1.0, np.nan], [0.0, 1.0]])}, ValueError, "X contains NaN"),
    ],
)
def test_kernel_errors_of_bad_input(rng, options, error, message):
    X = rng.normal(size=(20, 2))
    binning = RandomBinning(random_state=0).fit(X)
    with pytest.raises(error, match=message):
        KernelErrorDisplay.from_estimator(binning, **{"X": X, **options})


def test_an_exact_map_can_be_drawn():
    assert KernelErrorDisplay([0.5, 0.5], [0.5, 0.5]).plot().rms_error_ == 0


def test_without_matplotlib(without_package):
    without_package("matplotlib.pyplot")
    with pytest.raises(ImportError, match=r"RelevanceDisplay.plot needs Matplotlib. Install it: pip install 'binfeat"):
        RelevanceDisplay([1.0]).plot()
