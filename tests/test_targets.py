"""Transformed targets: selection, meaning of predictions, and storage."""

import datetime
import pickle
import warnings

import numpy as np
import pytest
from hard import hard
from kernel_models import FIXED, assert_same_state
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer, StandardScaler

from binfeat import KernelMachineRegressor, blocks
from binfeat.models.table import targets

EXACT = {"features": "exact", "random_state": 0}
pytestmark = pytest.mark.usefixtures("few_steps")


@pytest.fixture(scope="module")
def skewed():
    """Return rows, and positive targets with smooth, noisy logarithms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    logs = X[:, 0] + 0.7 * np.sin(2 * X[:, 1])
    return X, np.exp(logs + 0.4 * rng.normal(size=700)), np.exp(logs)


# Transforms.


@pytest.mark.parametrize("kind", targets.TRIED)
def test_inverses(rng, kind):
    Y = np.exp(rng.normal(size=(300, 2))) * [1.0, 1e6]
    transform = targets.TargetTransform.fit(kind, Y, False)
    Z = transform.transform(Y)
    np.testing.assert_allclose(transform.inverse(Z), Y, rtol=1e-9)
    np.testing.assert_array_equal(np.argsort(Z, axis=0), np.argsort(Y, axis=0))


@pytest.mark.parametrize("kind", targets.TRIED)
def test_slopes(rng, kind):
    Y = np.exp(rng.normal(size=(50, 2))) * [1.0, 1e3]
    transform, step = targets.TargetTransform.fit(kind, Y, False), 1e-6 * Y
    slopes = (transform.transform(Y + step) - transform.transform(Y - step)) / (2 * step)
    np.testing.assert_allclose(transform.log_slopes(Y), np.log(slopes), atol=1e-6)


@pytest.mark.parametrize(("seed", "scale"), [(2, 3), *hard((4, 1), (5, 2))])
def test_logarithms_of_log_normal_targets(seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(400, 4))
    y = np.exp(scale * (np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)))
    model = KernelMachineRegressor(**EXACT).fit(X, y)
    assert model.target_transform_ == "log"
    assert model.predict(rng.uniform(-1, 1, size=(2000, 4))).min() > 0


@pytest.mark.parametrize(
    ("gain", "noise", "nats", "wins"),
    [
        (0.1, 0.1, 0.0, True),
        (0.1, 1.0, 0.0, False),
        (0.01, 1.0, 1.0, True),
        (0.01, 0.0, 0.0, False),
        (-0.01, 1.0, 9.0, False),
    ],
    ids=["clear", "by chance", "likely", "small", "likely, with a higher error"],
)
def test_a_transform_has_to_lower_the_error(gain, noise, nats, wins):
    plain = targets.Targets.of(targets.TargetTransform("none"), np.arange(9.0))
    losses = 1 - gain + noise * np.resize([-1.0, 1.0], 20)
    assert targets.is_better((plain, losses, nats), (plain, np.ones(20), 0.0)) == wins


def test_arcsinh_of_a_constant():
    transform = targets.TargetTransform.fit("arcsinh", np.full((9, 1), 3.0), False)
    np.testing.assert_array_equal(transform.transform(np.full((9, 1), 3.0)), 0.0)


def test_means_by_residuals(rng):
    """The mean of a log-normal law is exp(1/2) times its median."""
    y = np.exp(rng.normal(size=20_000))
    standardized = targets.Targets.of(targets.TargetTransform("log"), y)
    prediction = np.zeros((1, 1)) - standardized.mean / standardized.std  # log y = 0
    means = standardized.of_means(standardized.encode(y) - prediction)
    np.testing.assert_allclose(standardized.decode(prediction), 1.0)
    standard_error = y.std() / np.sqrt(len(y))
    shortfall = 0.05  # 32 parts flatten the tail
    assert abs(means.decode(prediction)[0] - np.exp(0.5)) < 4 * standard_error + shortfall


def test_weighted_means_are_those_of_repeated_rows(rng):
    y = np.exp(rng.normal(size=(12, 2)))
    counts = np.append(np.ones(11, int), 9)
    given, residuals = targets.Targets.of(targets.TargetTransform("log"), y), rng.normal(size=(12, 2))
    shifts = given.of_means(residuals, counts / 3).shifts
    np.testing.assert_allclose(shifts.mean(axis=0), np.average(residuals, axis=0, weights=counts))
    repeated = np.repeat(residuals, 6 * counts, axis=0)  # 12 parts of 10 rows
    np.testing.assert_allclose(shifts, np.sort(repeated, axis=0).reshape(12, 10, 2).mean(axis=1), atol=1e-12)


def test_predictions_stay_near_all_targets(rng):
    y = np.exp(rng.normal(size=(500, 2)))
    limited = targets.Targets.of(targets.TargetTransform("log"), y).limited(y)
    far = np.array([[-50.0, 50.0]])
    ends = y[:, 0].min() * np.exp(-0.5), y[:, 1].max() * np.exp(0.5)
    np.testing.assert_allclose(limited.decode(far)[0], ends, rtol=0.05)
    np.testing.assert_allclose(limited.decode(limited.encode(y)), y)
    low, high = np.moveaxis(limited.bounds(far - 1, far + 1), -1, 0)
    assert (low <= limited.decode(far)).all()
    assert (limited.decode(far) <= high).all()


# Selection.


def test_logarithms_of_positive_skewed_targets(skewed):
    X, *values = skewed
    y, clean = (own**1.5 for own in values)  # without logarithms, predictions are below 0
    model, plain = (
        KernelMachineRegressor(**EXACT, target_transform=way).fit(X[:400], y[:400]) for way in ("auto", None)
    )
    assert model.target_transform_ == "log"
    assert (plain.target_transform_, "target transform" in plain.summary()) == ("none", False)
    assert model.predict(X).min() > 0 > plain.predict(X).min()
    assert 1 - model.score(X[400:], clean[400:]) < (1 - plain.score(X[400:], clean[400:])) / 1.5
    chosen = dict(zip(model.decisions_["what"], model.decisions_["choice"], strict=True))
    assert chosen["target transform"] == "log"
    assert chosen["predictions"] in ("means", "medians")


def test_targets_that_are_not_skewed_are_left(table):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED).fit(X, y)
    assert model.target_transform_ == "none"
    assert "target transform" not in model.summary()
    rare = KernelMachineRegressor(**FIXED).fit(X, y > np.quantile(y, 0.95))  # two values: all transforms are equivalent
    assert "target transform" not in rare.summary()


def test_skewed_targets_that_no_transform_helps(rng):
    X = rng.normal(size=(400, 2))
    model = KernelMachineRegressor(**EXACT).fit(X, X[:, 0] + 4 * (X[:, 1] > 1.5))
    assert model.target_transform_ == "none"
    assert "target transform  none" in " ".join(model.summary().split("   "))
    assert "predictions" not in model.summary()


@pytest.mark.hard
def test_errors_are_in_the_units_of_the_target(skewed):
    """A score of logarithms prefers medians, and squared errors prefer means."""
    X, y, _ = skewed
    chosen = []
    for scoring in ("neg_mean_squared_log_error", None):
        model = KernelMachineRegressor(**EXACT, scoring=scoring).fit(X, y)
        chosen.append(dict(zip(model.decisions_["what"], model.decisions_["choice"], strict=True)))
    assert [one["target transform"] for one in chosen] == ["log", "log"]
    assert [one["predictions"] for one in chosen] == ["medians", "means"]


@pytest.mark.parametrize("features", ["fourier", *hard("binning")])
def test_models_of_features(skewed, features):
    X, y, clean = skewed
    model = KernelMachineRegressor(features=features, random_state=0).fit(X[:500], y[:500])
    assert model.target_transform_ == "log"
    assert model.score(X[500:], clean[500:]) > 0.6


def test_several_targets(skewed):
    X, y, _ = skewed
    both = KernelMachineRegressor(**EXACT).fit(X, np.column_stack([y, 1000 * y]))
    predictions = both.predict(X)
    assert both.target_transform_ == "log"
    assert predictions.shape == (700, 2)
    np.testing.assert_allclose(predictions[:, 1], 1000 * predictions[:, 0], rtol=1e-3)


def test_a_source_of_blocks_is_decided_on_its_sample(skewed, sampled_rows):
    X, y, clean = skewed
    sampled_rows(400)
    model = KernelMachineRegressor(features="binning", random_state=0).fit(blocks(X, y, block_rows=100))
    assert model.target_transform_ == "log"
    assert model.predict(X).min() > 0
    assert model.score(X, clean) > 0.6


@pytest.fixture
def beyond_sample(skewed, sampled_rows):
    """Return rows, targets, and rows that the sample of a source does not contain."""
    X, y, _ = skewed
    sampled_rows(400)
    return X.copy(), y.copy(), [0, 10, 24, 33, 49, 70, 80, 90, 98, 110]


def test_predictions_are_limited_to_the_targets_of_all_rows(beyond_sample):
    X, y, others = beyond_sample
    X[others, 2] += 8
    y[others] *= 200
    model = KernelMachineRegressor(**FIXED, on_unseen="ignore").fit(blocks(X, y, block_rows=100))
    assert model.target_transform_ == "log"
    assert model.predict(X[others]).max() > 3 * np.delete(y, others).max()


@pytest.mark.parametrize(("weighted", "transform"), [(False, "arcsinh"), (True, "log")])
def test_logarithms_require_positive_targets_in_all_rows_of_positive_weight(beyond_sample, weighted, transform):
    X, y, others = beyond_sample
    y[others] = 0.0
    model = KernelMachineRegressor(**FIXED).fit(blocks(X, y, (y > 0) * 1.0 if weighted else None, block_rows=100))
    assert model.target_transform_ == transform
    with pytest.raises(ValueError, match="y with minimum 0"):
        KernelMachineRegressor(**FIXED, warm_start=True).fit(X, np.exp(X[:, 0])).fit(blocks(X, y, block_rows=100))


@pytest.mark.parametrize("warm_start", [False, True])
def test_rows_of_weight_zero_do_not_determine_the_transform(sampled_rows, warm_start):
    sampled_rows(800)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 2))
    y = np.sinh(2 * np.sin(2 * X).sum(axis=1) + 1 + 0.1 * rng.normal(size=1600))
    weights = rng.integers(2, size=1600)
    given = np.where(weights > 0, y, rng.uniform(1e4, 2e4, size=1600))
    model = KernelMachineRegressor(**FIXED, warm_start=warm_start)
    if warm_start:
        model.fit(X[:800], y[:800])
    model.fit(blocks(X, given, weights * 1.0, block_rows=400))
    assert model.target_transform_ == "arcsinh"
    assert model._target_transform["unit"][0] < 100.0


def test_little_time_tries_nothing_more(skewed):
    X, y, _ = skewed
    model = KernelMachineRegressor(**EXACT, max_seconds=0).fit(X, y)
    assert model.target_transform_ in ("none", "log")
    assert np.isfinite(model.predict(X)).all()


# Transformers of the caller.


@pytest.mark.parametrize("transformer", [FunctionTransformer(np.log, np.exp), *hard(StandardScaler())])
def test_transformers_of_the_caller(skewed, transformer):
    X, y, clean = skewed
    model = KernelMachineRegressor(**EXACT, target_transform=transformer).fit(X, y)
    assert model.target_transform_ == type(transformer).__name__
    assert not hasattr(transformer, "n_features_in_")  # a clone is fitted
    assert model.target_transformer_.n_features_in_ == 1
    assert np.corrcoef(model.predict(X), clean)[0, 1] > 0.8
    model.set_params(target_transform=None).fit(X, y)
    assert not hasattr(model, "target_transformer_")


def test_transformers_of_the_caller_are_not_fitted_to_rows_of_weight_zero(skewed):
    X, y, _ = skewed
    model = KernelMachineRegressor(**FIXED, target_transform=FunctionTransformer(np.log, np.exp))
    expected = model.fit(X[1:60], y[1:60]).predict(X)
    found = model.fit(X[:60], np.append(-1.0, y[1:60]), sample_weight=np.arange(60) > 0).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_log_error"])
def test_targets_of_weight_zero_in_a_source_can_be_outside_the_domain_of_a_transformer(rng, sampled_rows, scoring):
    sampled_rows(200)
    X = rng.normal(size=(600, 2))
    y, weights = np.exp(X[:, 0]), np.arange(600) % 4 > 0
    model = KernelMachineRegressor(**FIXED, target_transform=FunctionTransformer(np.log, np.exp), scoring=scoring)
    with warnings.catch_warnings(action="error"):
        found = model.fit(blocks(X, np.where(weights, y, -2.0), weights * 1.0, block_rows=100)).predict(X)
    expected = model.fit(blocks(X, y, weights * 1.0, block_rows=100)).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_limits_of_transformers_of_the_caller(rng):
    """Predictions stay where the inverse is finite and does not turn back."""
    y = np.exp(2 * rng.normal(size=(200, 2)))
    for transformer, margins in (
        (StandardScaler(), [10.0, 10.0]),
        (PowerTransformer(), [10.0, 0.0]),  # the inverse ends above
        (FunctionTransformer(np.reciprocal, np.reciprocal), [0.0, 10.0]),  # and is negative below 0
    ):
        given = targets.Targets.of(targets.TargetTransform("given", transformer=transformer.fit(y)), y)
        limited, Z = given.limited(y).of_means(rng.normal(size=(50, 2))), given.encode(y)
        np.testing.assert_allclose(limited.limits, [Z.min(axis=0) - margins[0], Z.max(axis=0) + margins[1]])
        assert np.isfinite(limited.decode(np.array([[-50.0, 50.0], [50.0, -50.0]]))).all()


def test_a_transformer_that_raises_outside_its_domain(rng):
    def logarithm(values):
        if (values <= 0).any():
            raise ValueError("numbers must be positive")
        return np.log(values)

    y = rng.uniform(-0.3, 0.3, size=(200, 1))
    given = targets.TargetTransform("given", transformer=FunctionTransformer(np.exp, logarithm))
    limited = targets.Targets.of(given, y).limited(y)
    assert np.isfinite(limited.limits).all()
    assert np.isfinite(limited.decode(np.array([[-50.0], [50.0]]))).all()


def test_error_bars_where_the_inverse_of_a_transformer_ends(rng):
    X = rng.uniform(-2, 2, size=(150, 1))
    y = np.exp(2 * np.sin(2 * X[:, 0]) + 0.8 * rng.normal(size=150))
    model = KernelMachineRegressor(**EXACT, target_transform=PowerTransformer()).fit(X, y)
    assert model.target_transformer_.lambdas_[0] < 0
    for values in (model.predict(X, return_std=True), model.sample_y(X, 100), model.predict_quantiles(X, [0.01, 0.99])):
        assert np.isfinite(values).all()


def test_round_trips(skewed):
    sio = pytest.importorskip("skops.io")
    X, y, _ = skewed
    for way in ("auto", QuantileTransformer(n_quantiles=50)):
        model = KernelMachineRegressor(**FIXED, target_transform=way).fit(X[:200], y[:200])
        data = sio.dumps(model)
        trusted = sio.get_untrusted_types(data=data)
        assert trusted == ["binfeat.KernelMachineRegressor"]
        for loaded in (pickle.loads(pickle.dumps(model)), sio.loads(data, trusted=trusted)):
            np.testing.assert_array_equal(loaded.predict(X[:50]), model.predict(X[:50]))
            if way == "auto":
                assert_same_state(loaded, model)


WANTED = "target_transform must be 'auto', None or a transformer with fit, transform and inverse_transform, got"


@pytest.mark.parametrize(("way", "kind"), [("cube", ValueError), (3, TypeError), (StandardScaler, TypeError)])
def test_bad_target_transform(table, way, kind):
    with pytest.raises(kind, match=WANTED):
        KernelMachineRegressor(target_transform=way).fit(table[0], table[1])


def test_transformers_that_do_not_fit_are_refused(table):
    X, y, _ = table
    for transformer, got in (
        (FunctionTransformer(np.log, np.exp), "returned NaN or infinity"),
        (FunctionTransformer(lambda Y: np.hstack([Y, Y]), np.copy), r"returned shape \(400, 2\)"),
    ):
        with (
            np.errstate(invalid="ignore"),
            pytest.raises(
                ValueError, match=rf"(?s)target_transform must return finite numbers of shape \(400, 1\).*{got}"
            ),
        ):
            KernelMachineRegressor(**FIXED, target_transform=transformer).fit(X, y)


@pytest.mark.parametrize("inverse", [None, np.sqrt, lambda Z: np.exp(np.where(Z > 0, Z, np.nan))])
def test_a_transformer_without_a_true_inverse_is_warned_of(rng, inverse):
    y = np.exp(rng.normal(size=(2500, 1)))
    with pytest.warns(UserWarning, match="does not restore y in .* rows, so predictions are not in the units of y"):
        targets.first_transform(FunctionTransformer(np.log, inverse, check_inverse=False), y, False)


@pytest.mark.parametrize(
    "transformer",
    [
        FunctionTransformer(np.log1p, np.expm1),
        FunctionTransformer(lambda Y: np.log(np.clip(Y, 2, 100)), np.exp, check_inverse=False),  # clips few rows
        PowerTransformer(),
        QuantileTransformer(n_quantiles=30, output_distribution="normal"),
    ],
)
@pytest.mark.parametrize("digits", [0, 9])
def test_transformers_with_a_nearly_exact_inverse_are_accepted(rng, transformer, digits):
    y = np.exp(2 + rng.normal(size=(2500, 2))).round(digits) + 1
    with warnings.catch_warnings(action="error"):
        targets.first_transform(transformer, y, False)


@pytest.mark.hard
def test_many_zeros_are_no_density(rng):
    """A transform makes a narrow peak of zeros, which increases the likelihood; so it must lower the error."""
    X = rng.normal(size=(2500, 3))
    some = rng.uniform(size=2500) < 1 / (1 + np.exp(0.6 - X[:, 0]))
    y = np.where(some, np.exp(1 + 0.8 * X[:, 1] + 0.5 * rng.normal(size=2500)), 0.0)
    model = KernelMachineRegressor(random_state=0).fit(X[:1500], y[:1500])
    plain = KernelMachineRegressor(random_state=0, target_transform=None).fit(X[:1500], y[:1500])
    assert model.score(X[1500:], y[1500:]) > plain.score(X[1500:], y[1500:]) - 0.02
    assert model.predict(X[1500:]).sum() == pytest.approx(y[1500:].sum(), rel=0.15)


@pytest.mark.parametrize(
    ("unit", "message"),
    [("datetime64[ns]", "dates. Subtract a date, and divide by"), ("timedelta64[s]", "durations. Divide it by")],
)
def test_dates_and_durations_are_no_targets(unit, message):
    pd = pytest.importorskip("pandas")
    y = np.arange(40).astype(unit)
    objects = np.array([*y], dtype=object)
    for targets_of_rows in (y, pd.Series(y), pd.Series(y).astype("category"), objects, pd.Series(y).tolist()):
        with pytest.raises(ValueError, match=rf"y must contain numbers, not {message} np.tim"):
            KernelMachineRegressor().fit(np.arange(40.0)[:, np.newaxis], targets_of_rows)
    with pytest.raises(TypeError, match="sample_weight must be numbers"):
        KernelMachineRegressor().fit(np.arange(40.0)[:, np.newaxis], np.arange(40.0), sample_weight=y)


def test_intervals_are_no_targets():
    intervals = pytest.importorskip("pandas").interval_range(0, 40)
    with pytest.raises(
        ValueError, match=r"y must contain numbers, got Interval.*; replace intervals by their midpoints"
    ):
        KernelMachineRegressor().fit(np.arange(40.0)[:, np.newaxis], intervals)


@pytest.mark.parametrize("kind", ["datetime", "date", "Timestamp", "Period"])
def test_dates_as_objects_are_no_targets(kind):
    if kind in ("Timestamp", "Period"):
        date = getattr(pytest.importorskip("pandas"), kind)("2026-01-01")
    else:
        date = getattr(datetime, kind)(2026, 1, 1)
    with pytest.raises(ValueError, match=r"(?i)y must contain numbers, .*subtract a date.*, and divide by"):
        KernelMachineRegressor().fit(np.arange(40.0)[:, np.newaxis], [date] * 40)
