"""The report: one page without other files; its quantities are tested one by one."""

import pickle
import re
from html.parser import HTMLParser

import naive
import numpy as np
import pytest
from hard import hard
from kernel_models import FIXED, moments, with_options
from limits import limited
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat.kernels import Laplacian
from binfeat.report import bottlenecks, effects, errors, learning, pictures

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.usefixtures("few_grids")

EVIL = "<script>alert('x')</script> & $x^$"


def frame_of(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "slope": rng.normal(size=n_rows),
            EVIL: rng.choice(["a & <b>", "$c$", "d"], size=n_rows),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(3000, size=n_rows), unit="h"),
        }
    )
    y = frame["slope"] + 2.0 * (frame[EVIL] == "d") + 0.5 * rng.normal(size=n_rows)
    frame.loc[::9, "slope"] = np.nan
    return frame, y


class Elements(HTMLParser):
    """Parse a page: open tags, which must be closed, with their attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.links, self.text = set(), [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


ALL = ["Errors", "Limits of the error", "Decisions", "Inputs"]


def test_page_of_a_regressor(tmp_path):
    X, y = frame_of(300)
    with limited(n_steps=5):
        model = KernelMachineRegressor(random_state=0).fit(X[:200], y[:200])
    model.report(tmp_path / "page.html", X[200:], y[200:])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(text) == [*ALL, "Explanations", "Learning curves", "Residuals", "Time and memory"]
    page = Elements(text)
    assert "script" not in page.tags
    assert "are training rows" not in page.text
    assert "measured on 100 rows that were not used for training" in page.text
    assert EVIL in page.text  # caption of the effect
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert not re.search(
        r"url\((?!#)|@import|https?://(?!www\.w3\.org|creativecommons|purl\.org|matplotlib\.org)", text
    )
    for row in model.decisions_:
        assert row["choice"] in page.text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_page_of_a_classifier_and_of_a_model_alone(tmp_path, three):
    X, y = three
    model = KernelMachineClassifier(**FIXED).fit(X[:600], y[:600])
    model.report(tmp_path / "page.html", X[600:], list(y[600:]))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(text) == [*ALL, "Explanations", "Labels and probabilities", "Time and memory"]
    model.report(str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(text) == [*ALL, "Time and memory"]
    Elements(text)


@pytest.mark.parametrize(
    ("estimator", "options", "what"),
    [
        (KernelMachineRegressor, {"loss": "poisson"}, "mean of loss='poisson'"),
        (KernelMachineClassifier, {"loss": "log", "scoring": "accuracy"}, "negative score"),
        *hard(
            (KernelMachineRegressor, {}, "mean squared error of the standardized targets"),
            (KernelMachineClassifier, {"loss": "log"}, "mean of loss='log'"),
        ),
    ],
)
def test_the_error_in_the_fit_is_named_by_what_it_is(tmp_path, table, estimator, options, what):
    X, y, labels = table
    given = {"features": "exact", "kernel": "laplacian", "gamma": 0.5, "alpha": 0.1, "random_state": 0}
    answers = labels if estimator is KernelMachineClassifier else np.abs(y)
    estimator(**given, **options).fit(X[:100], answers[:100]).report(tmp_path / "page.html")
    page = Elements((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"Validation error in fit ({what})" in page.text


@pytest.mark.hard
def test_several_targets(tmp_path, table):
    X, y = table[0][:, :2], table[1]
    Y = np.column_stack([y, -y])
    KernelMachineRegressor(**FIXED).fit(X, Y).report(tmp_path / "page.html", X[:50], Y[:50])
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("Root mean squared error, target") == 2


def page_of(model, folder, X, y):
    model.report(folder / "page.html", X, y)
    return Elements((folder / "page.html").read_text(encoding="utf-8")).text


@pytest.mark.parametrize("kind", ["many rows", *hard("numbers", "labels")])
def test_rows_of_fit_are_known(tmp_path, monkeypatch, table, kind):
    X, y, labels = table
    X = X[:, :2]
    own, Estimator = (labels, KernelMachineClassifier) if kind == "labels" else (y, KernelMachineRegressor)
    if kind == "many rows":
        monkeypatch.setattr("binfeat.models.table.unique_rows._KEPT", 100)
    model = pickle.loads(pickle.dumps(Estimator(**FIXED).fit(X[:300], own[:300])))
    assert model._seen["hashes"].nbytes <= 2400
    assert "All the 300 test rows are training rows" in page_of(model, tmp_path, X[:300], own[:300])
    assert evaluated(model, X[300:], own[300:]).seen == 0
    some = evaluated(model, X[200:], own[200:]).seen
    assert some == pytest.approx(100 / (len(X) - 200), abs=0.2 if kind == "many rows" else 0)
    swapped = np.roll(own[:300], 1)
    assert evaluated(model, X[:300], swapped).seen < 0.7  # wrong targets


@pytest.mark.hard
def test_rows_of_a_source_are_not_said_to_be_new(tmp_path, table, sampled_rows):
    X, y = table[0][:, :2], table[1]
    sampled_rows(200)
    model = KernelMachineRegressor(**FIXED).fit(blocks([(X[i : i + 50], y[i : i + 50]) for i in range(0, 400, 50)]))
    assert "if these include training rows" in page_of(model, tmp_path, X, y)


@pytest.mark.hard
def test_what_pictures_leave_out_is_said(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(26, size=1000)
    X = pd.DataFrame({"x": np.sin(codes) + 0.1 * rng.normal(size=1000), "level": pd.Categorical(codes % 13)})
    model = KernelMachineClassifier(**{**FIXED, "gamma": "scale"}).fit(
        X[:800], np.array([*"abcdefghijklmnopqrstuvwxyz"])[codes[:800]]
    )
    text = page_of(model, tmp_path, X[800:], np.array([*"abcdefghijklmnopqrstuvwxyz"])[codes[800:]])
    assert "Confusion matrix, the 12 most frequent of 26 labels" in text
    assert "Effect of level, the 10 most frequent of 13 levels, on the first 4 of 26 labels" in text


def evaluated(model, X, y):
    return errors.Evaluation.of(model, X, y)


def test_errors_are_those_of_scikit_learn(table, three):
    from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, root_mean_squared_error

    X, y, _ = table
    model = KernelMachineRegressor(**FIXED).fit(X[:300], y[:300])
    predicted = model.predict(X[300:])
    found = [measure.value for measure in evaluated(model, X[300:], y[300:]).measures]
    both = y[300:], predicted
    expected = 1 - r2_score(*both), root_mean_squared_error(*both), mean_absolute_error(*both)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    X, y = three
    model = KernelMachineClassifier(**FIXED).fit(X[:600], y[:600])
    wrong, _, loss = (measure.value for measure in evaluated(model, X[600:], y[600:]).measures)
    assert wrong == pytest.approx(1 - accuracy_score(y[600:], model.predict(X[600:])))
    assert loss == pytest.approx(log_loss(y[600:], model.predict_proba(X[600:])))


def test_a_transformed_target_is_reported_in_its_own_units(table):
    X, y, _ = table
    y = np.exp(2 * y)
    model = KernelMachineRegressor(**FIXED, target_transform=FunctionTransformer(np.log, np.exp)).fit(X, y)
    own = evaluated(model, X, y)
    np.testing.assert_allclose(own.predicted[:, 0], model.predict(X))
    assert own.measures[0].value == pytest.approx(1 - model.score(X, y))
    assert effects.effects_of(model, own.table, list("abcd"))[0].means.min() > 0


def test_equal_targets_have_no_variance_to_explain(table):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED).fit(X, y)
    equal = np.full(20, 0.1)
    assert [own.name for own in evaluated(model, X[:20], equal).measures] == [
        "Root mean squared error",
        "Mean absolute error",
    ]


def test_standard_errors_are_the_spread_over_other_rows():
    """200 tables of 100 rows: a standard deviation of 200 numbers has an error of 5 %; four of these are allowed."""
    X, y = frame_of(20_300)
    model = KernelMachineRegressor(**FIXED).fit(X[:300], y[:300])
    whole = evaluated(model, X[300:], y[300:])
    found = [
        whole._measures(whole.y[start : start + 100], whole.predicted[start : start + 100])
        for start in range(0, 20_000, 100)
    ]
    for own in zip(*found):
        spread = np.std([measure.value for measure in own], ddof=1)
        assert np.mean([measure.spread for measure in own]) == pytest.approx(spread, rel=0.2), own[0].name


@pytest.mark.parametrize("features", ["exact", "binning"])
def test_reasons_add_up_to_predictions(features):
    """In units of y, with the columns of the input; for labels, scores of the last class."""
    X, y = frame_of(300)
    given = {**FIXED, "features": features, "gamma": "scale"}
    model = KernelMachineRegressor(**given).fit(X, y)
    found = effects.reasons_of(model, evaluated(model, X, y).table)
    assert found.values.shape == found.data.shape == (200, 3)
    some = X.iloc[np.linspace(0, 299, 200).astype(int)]
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(some), rtol=1e-6, atol=1e-6)
    assert found.farthest == np.argmax(np.abs(model.predict(some) - found.base))
    labels = np.where(y > 0, "yes", "no")
    classifier = KernelMachineClassifier(**given).fit(X, labels)
    found = effects.reasons_of(classifier, evaluated(classifier, X, labels).table)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), classifier._scores(some)[:, 0], atol=1e-6)
    assert found.output == "the score of yes"


def test_effects_are_partial_dependence(table):
    from inspect import signature

    from sklearn.inspection import partial_dependence

    if "custom_values" not in signature(partial_dependence).parameters:
        pytest.skip("scikit-learn computes partial dependence at given values from version 1.7 on")
    X, y, labels = table
    for model, targets in ((KernelMachineRegressor, y), (KernelMachineClassifier, labels)):
        fitted = model(**FIXED).fit(X, targets)
        own = evaluated(fitted, X[:80], targets[:80])
        for effect in effects.effects_of(fitted, own.table, list("abcd")):
            j = "abcd".index(effect.name)
            options = {"method": "brute", "custom_values": {j: effect.values}, "response_method": "auto"}
            if model is KernelMachineClassifier:
                options["response_method"] = "predict_proba"
            expected = partial_dependence(fitted, X[:80], [j], **options)["average"]
            np.testing.assert_allclose(effect.means.T, expected, rtol=1e-9)


def test_effects_of_categories_dates_and_gaps():
    X, y = frame_of(200)
    model = KernelMachineRegressor(**{**FIXED, "gamma": "scale"}).fit(X, y)
    own = evaluated(model, X, y)
    found = {effect.name: effect for effect in effects.effects_of(model, own.table, list(X))}
    assert found[EVIL].levels == ["$c$", "a & <b>", "d"]
    assert found["when"].kind == "dates"
    assert {"when, day of week", "when, hour"} < found.keys()
    for value, mean in zip(found["slope"].values[::8], found["slope"].means[::8]):
        rows = X.iloc[np.linspace(0, 199, 100).astype(int)].assign(slope=value)
        assert model.predict(rows).mean() == pytest.approx(mean[0])


def limits(model, X, y):
    own = evaluated(model, X, y)
    return {limit.title: limit for limit in bottlenecks.limits_of(model, own)}


def test_what_limits_the_error():
    """Only noise; far too few rows; too few grids."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(1400, 2))
    noise = rng.normal(size=1400)
    smooth = np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1])
    noisy = KernelMachineRegressor(random_state=0).fit(X[:400], 0.05 * smooth[:400] + noise[:400])
    found = limits(noisy, X[400:], 0.05 * smooth[400:] + noise[400:])
    assert not found["Rows"].is_relevant
    assert found["Noise"].is_relevant
    hungry = KernelMachineRegressor(random_state=0).fit(X[:100], smooth[:100])
    found = limits(hungry, X[400:], smooth[400:])
    assert found["Rows"].is_relevant
    assert not found["Noise"].is_relevant
    coarse = KernelMachineRegressor(
        features="binning", gamma=1.0, alpha=0.01, solver_params={"max_grids": 20}, random_state=0
    )
    found = limits(coarse.fit(X[:400], smooth[:400]), X[400:], smooth[400:])
    assert (found["Time"].text, found["Time"].is_relevant) == (
        "The fit stopped at its limit max_grids; a higher limit may lower the error.",
        True,
    )
    coarse.decisions_ = coarse.decisions_[coarse.decisions_["what"] != "limit"]
    assert "max_seconds, max_grids or max_bytes" in bottlenecks.limits_of(coarse, None)[0].text
    assert "the model stores no rows" in found["Rows"].text
    left = limits(noisy, X[400:420], noisy.predict(X[400:420]))
    assert left["Noise"].text == "The error on the test rows is 0."
    assert set(limits(noisy, X[380:420], noise[380:420])) == {"Time", "Random features", "Rows", "Noise"}
    seen = limits(noisy, X[:20], (0.05 * smooth + noise)[:20])
    assert set(seen) == {"Time", "Random features", "Rows"}  # training residuals do not show noise


@pytest.mark.parametrize("loss", ["log", "squared_hinge"])
def test_the_share_of_noise_is_unknown_if_scores_do_not_estimate_the_labels(loss):
    X = np.linspace(-1, 1, 120)[:, np.newaxis]
    options = {"loss": loss, "features": "exact", "gamma": "scale", "alpha": 0.01, "random_state": 0}
    model = KernelMachineClassifier(**options).fit(X[::2], X[::2, 0] > 0)
    assert limits(model, X[1::2], X[1::2, 0] > 0)["Noise"] == bottlenecks.Limit(
        "Noise", f"The share of noise is unknown with loss={loss!r}.", False
    )


@pytest.mark.parametrize("loss", ["poisson", "squared_hinge"])
def test_squares_that_stand_for_a_loss_tell_nothing_of_more_rows(table, loss):
    X, y, labels = table
    Estimator, own = (KernelMachineRegressor, np.exp(y)) if loss == "poisson" else (KernelMachineClassifier, labels)
    model = Estimator(loss=loss, features="exact", gamma="scale", alpha=0.3, random_state=0).fit(X[:100], own[:100])
    found = {limit.title: limit for limit in bottlenecks.limits_of(model, None)}
    assert found["Rows"].text == f"The gain from more rows is unknown with loss={loss!r}."


@pytest.mark.hard
def test_what_twice_the_rows_bring():
    """Compared with a fit to twice the rows; residuals of neighbors do not show it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    y = np.sin(3 * X[:, 0] + 2 * X[:, 1]) + np.abs(X[:, 2] * X[:, 3])
    models = [KernelMachineRegressor(random_state=0).fit(X[:n], y[:n]) for n in (800, 1600)]
    before, after = (np.mean((model.predict(X[1600:]) - y[1600:]) ** 2) for model in models)
    gain, spread = learning.gain_of_twice_the_rows(models[0]._fitted.function, models[0]._fitted.intercept, None)
    assert abs(gain - (1 - after / before)) < 3 * spread
    assert gain > 2 * spread


def test_a_cell_of_a_single_row_next_to_others_has_no_halves():
    """In columns with a single 1, each split separates one row."""
    X = np.eye(100, 60)
    options = with_options(FIXED, n_grids=None, cell_rows=40, n_trees=1)
    model = KernelMachineRegressor(**{**options, "features": "local"}).fit(X, np.arange(100.0))
    gain, spread = learning.gain_of_twice_the_rows(model._fitted.function, model._fitted.intercept, None)
    assert np.isfinite([gain, spread]).all()


def test_gains_of_doublings_are_a_geometric_series():
    def errors(n_rows):
        return 0.2 + 3.0 * n_rows**-0.6

    for doublings in (0.0, 1.0, 3.0):
        n_rows = 100 * 2**doublings
        expected = 1 - errors(2 * n_rows) / errors(n_rows)
        assert learning._gain(errors(np.array([25, 50, 100])), doublings) == pytest.approx(expected)
    assert learning._gain(np.array([1.0, 1.0, 1.25]), 0.0) == -0.2
    assert learning._gain(np.array([3.0, 2.0, 1.0]), 9.0) == 0.5  # like the last one


@pytest.mark.parametrize(
    "options",
    [
        {"features": "exact"},
        {"features": "local", "solver_params": {"cell_rows": 30}},
        *hard({"features": "local", "solver_params": {"cell_rows": 80}}),
    ],
)
def test_rows_of_a_model_with_their_targets(options):
    """They are the training rows; errors are those of naive refits without each row."""
    rng = np.random.default_rng(0)
    X, weights = rng.uniform(-2, 2, size=(120, 2)), rng.uniform(0.5, 2.0, size=120)
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=120)
    given = {"kernel": "laplacian", "gamma": 0.5, "alpha": 0.3, "random_state": 0}
    fitted = (
        KernelMachineRegressor(**given, **with_options(options, n_trees=1)).fit(X, y, sample_weight=weights)._fitted
    )
    function = fitted.function
    exact = options["features"] == "exact"
    known = learning._of_rows(function, fitted.intercept) if exact else learning._of_cells(function)
    rows = known.X.T * function.unit + function.center
    places = np.abs(rows[:, np.newaxis] - X).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(rows, X[places], atol=1e-5)
    mean, std = moments(y, weights)
    np.testing.assert_allclose(known.Y[:, 0], ((y - mean) / std)[places], atol=1e-3)
    for sets in known.levels:
        assert np.sort(np.concatenate(sets)).tolist() == list(range(len(places)))
        found = known.errors(sets, 1.0, 1.0, None)
        for own in sets[:2]:
            K = Laplacian()(X[places[own]], gamma=0.5)
            shares = known.weights[own]
            residuals = naive.left_out_residuals(K, known.Y[own], float(function.alpha), shares)
            np.testing.assert_allclose(found[own], shares * residuals[:, 0] ** 2, rtol=0.01, atol=1e-5)


@pytest.mark.parametrize(("features", "grown"), [("binning", "grids"), *hard(("local", "trees"))])
def test_growth_is_of_grids_or_trees(table, tmp_path, features, grown):
    X, y, _ = table
    given = with_options(FIXED, n_grids=None, max_grids=200, cell_rows=50, n_trees=3)
    model = KernelMachineRegressor(**{**given, "features": features}).fit(X, y)
    assert len(model.learning_curve_) > 1
    model.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"Number of {grown}" in page
    assert f">{grown}<" in page or f"<!-- {grown} -->" in page


def test_the_gain_from_more_fourier_features_is_unknown(table):
    X, y, _ = table
    model = KernelMachineRegressor(**{**FIXED, "features": "fourier", "kernel": "rbf"}).fit(X, y)
    found = {limit.title: limit.text for limit in bottlenecks.limits_of(model, None)}
    assert found["Random features"] == "The gain from more Fourier features is unknown."


@pytest.mark.parametrize(("limit", "share"), [(1.0, "9.1%"), (-0.9, "12.5%")])
def test_grids_are_extrapolated_by_their_inverse(limit, share):
    """Errors of limit + 8 / n, also of a score, which are negative."""
    X = np.linspace(0, 1, 60)[:, np.newaxis]
    model = KernelMachineRegressor(**FIXED).fit(X, X[:, 0])
    model.learning_curve_ = np.array([[40, limit + 0.2], [80, limit + 0.1]])
    (found,) = (own for own in bottlenecks.limits_of(model, None) if own.title == "Random features")
    assert f"about {share}" in found.text
    assert found.is_relevant
    (ax,) = pictures.figure_of(pictures.growth, model.learning_curve_, "grids").axes
    low, high = ax.get_ylim()
    assert low <= min(0.0, limit + 0.1) < max(0.0, limit + 0.2) <= high


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda X, y: (X, None), "Only X was given. Pass both X and y, or neither."),
        (lambda X, y: (X[:5], y[:5]), "X has 5 rows; a report needs at least 10 test rows"),
        (lambda X, y: (X, y[:-1]), r"X and the model have \(400, 1\) rows and targets"),
        (lambda X, y: (X, np.column_stack([y, y])), r"y has shape \(400, 2\)"),
        (lambda X, y: (X[:, :3], y), "4 features"),
    ],
)
def test_bad_rows(table, tmp_path, rows, message):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.report(tmp_path / "page.html", *rows(X, y))
    assert not list(tmp_path.iterdir())


def test_bad_labels_and_models(table, tmp_path, without_package):
    X, _, labels = table
    model = KernelMachineClassifier(**FIXED)
    with pytest.raises(NotFittedError):
        model.report(tmp_path / "page.html")
    model.fit(X, labels)
    with pytest.raises(
        ValueError, match=r"labels that are not classes of the model: \['maybe'\]. Classes: \['no', 'yes'\]"
    ):
        model.report(tmp_path / "page.html", X, ["maybe", *labels[1:]])
    with pytest.raises(ValueError, match="y has 399 labels, but X has 400 rows"):
        model.report(tmp_path / "page.html", X, labels[1:])
    with pytest.raises(FileNotFoundError, match=r"The folder .*no for the file page.html does not exist"):
        model.report(tmp_path / "no" / "page.html")
    without_package("binfeat.report.page")
    with pytest.raises(ImportError, match=r"pip install 'binfeat\[plot\]'"):
        model.report(tmp_path / "page.html")
