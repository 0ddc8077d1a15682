"""The report: one page that needs nothing else, from quantities that are checked here one by one."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from machines import FIXED
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat._common.subsets import evenly_spaced
from binfeat._report import bottlenecks, effects, errors, reasons

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
    """The tags of a page that are opened, each of which has to be closed, with their attributes; and the text."""

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


ALL = ["Errors", "What limits the error", "What was decided", "Inputs"]


def test_page_of_a_regressor(tmp_path):
    X, y = frame_of(300)
    machine = KernelMachineRegressor(random_state=0).fit(X[:200], y[:200])
    machine.report(tmp_path / "page.html", X[200:], y[200:])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(text) == [*ALL, "Reasons", "How it learned", "Residuals", "Time and memory"]
    page = Elements(text)
    assert "script" not in page.tags
    assert EVIL in page.text  # the caption of its effect
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert not re.search(
        r"url\((?!#)|@import|https?://(?!www\.w3\.org|creativecommons|purl\.org|matplotlib\.org)", text
    )
    for row in machine.decisions_:
        assert row["choice"] in page.text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_page_of_a_classifier_and_of_a_machine_alone(tmp_path, three):
    X, y = three
    machine = KernelMachineClassifier(**FIXED).fit(X[:600], y[:600])
    machine.report(tmp_path / "page.html", X[600:], list(y[600:]))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(text) == [*ALL, "Reasons", "Labels and probabilities", "Time and memory"]
    machine.report(str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(text) == [*ALL, "Time and memory"]
    Elements(text)


def test_several_targets(tmp_path, table):
    X, y, _ = table
    Y = np.column_stack([y, -y])
    KernelMachineRegressor(**FIXED).fit(X, Y).report(tmp_path / "page.html", X[:50], Y[:50])
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("Root mean squared error, target") == 2


def judged(machine, X, y):
    return errors.Judged.of(machine, X, y)


def test_errors_are_those_of_scikit_learn(table, three):
    from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, root_mean_squared_error

    X, y, _ = table
    machine = KernelMachineRegressor(**FIXED).fit(X[:300], y[:300])
    predicted = machine.predict(X[300:])
    found = [measure.value for measure in judged(machine, X[300:], y[300:]).measures]
    both = y[300:], predicted
    expected = 1 - r2_score(*both), root_mean_squared_error(*both), mean_absolute_error(*both)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    X, y = three
    machine = KernelMachineClassifier(**FIXED).fit(X[:600], y[:600])
    wrong, _, loss = (measure.value for measure in judged(machine, X[600:], y[600:]).measures)
    assert wrong == pytest.approx(1 - accuracy_score(y[600:], machine.predict(X[600:])))
    assert loss == pytest.approx(log_loss(y[600:], machine.predict_proba(X[600:])))


def test_a_transformed_target_is_reported_in_its_own_units(table):
    X, y, _ = table
    y = np.exp(2 * y)
    machine = KernelMachineRegressor(**FIXED, target_transform=FunctionTransformer(np.log, np.exp)).fit(X, y)
    own = judged(machine, X, y)
    np.testing.assert_allclose(own.predicted[:, 0], machine.predict(X))
    assert own.measures[0].value == pytest.approx(1 - machine.score(X, y))
    assert effects.effects_of(machine, own.table, list("abcd"))[0].means.min() > 0


def test_standard_errors_are_the_spread_over_other_rows():
    """Of 200 tables of 100 rows; a standard deviation of 200 numbers is known within 5 %, here within four of these."""
    X, y = frame_of(20_300)
    machine = KernelMachineRegressor(**FIXED).fit(X[:300], y[:300])
    whole = judged(machine, X[300:], y[300:])
    found = [
        whole._measures(whole.y[start : start + 100], whole.predicted[start : start + 100])
        for start in range(0, 20_000, 100)
    ]
    for own in zip(*found):
        spread = np.std([measure.value for measure in own], ddof=1)
        assert np.mean([measure.spread for measure in own]) == pytest.approx(spread, rel=0.2), own[0].name


@pytest.mark.parametrize("features", ["exact", "binning"])
def test_reasons_add_up_to_predictions(features):
    """In the units of y, with a column for each of the caller's; of labels, to the scores of the last class."""
    X, y = frame_of(300)
    given = {**FIXED, "features": features, "gamma": "scale"}
    machine = KernelMachineRegressor(**given).fit(X, y)
    found = reasons.reasons_of(machine, judged(machine, X, y).table)
    assert found.values.shape == found.data.shape == (200, 3)
    some = X.iloc[evenly_spaced(300, 200)]
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), machine.predict(some), rtol=1e-6, atol=1e-6)
    assert found.farthest == np.argmax(np.abs(machine.predict(some) - found.base))
    labels = np.where(y > 0, "yes", "no")
    classifier = KernelMachineClassifier(**given).fit(X, labels)
    found = reasons.reasons_of(classifier, judged(classifier, X, labels).table)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), classifier._scores(some)[:, 0], atol=1e-6)
    assert found.what == "the score of yes"


def test_effects_are_partial_dependence(table):
    from inspect import signature

    from sklearn.inspection import partial_dependence

    if "custom_values" not in signature(partial_dependence).parameters:
        pytest.skip("scikit-learn computes partial dependence at given values from version 1.7 on")
    X, y, labels = table
    for machine, targets in ((KernelMachineRegressor, y), (KernelMachineClassifier, labels)):
        fitted = machine(**FIXED).fit(X, targets)
        own = judged(fitted, X[:80], targets[:80])
        for effect in effects.effects_of(fitted, own.table, list("abcd")):
            j = "abcd".index(effect.name)
            options = {"method": "brute", "custom_values": {j: effect.values}, "response_method": "auto"}
            if machine is KernelMachineClassifier:
                options["response_method"] = "predict_proba"
            expected = partial_dependence(fitted, X[:80], [j], **options)["average"]
            np.testing.assert_allclose(effect.means.T, expected, rtol=1e-9)


def test_effects_of_categories_dates_and_gaps():
    X, y = frame_of(200)
    machine = KernelMachineRegressor(**{**FIXED, "gamma": "scale"}).fit(X, y)
    own = judged(machine, X, y)
    found = {effect.name: effect for effect in effects.effects_of(machine, own.table, list(X))}
    assert found[EVIL].levels == ["$c$", "a & <b>", "d"]
    assert found["when"].kind == "dates"
    assert {"when, day of week", "when, hour"} < found.keys()
    for value, mean in zip(found["slope"].values[::8], found["slope"].means[::8]):
        rows = X.iloc[np.linspace(0, 199, 100).astype(int)].assign(slope=value)
        assert machine.predict(rows).mean() == pytest.approx(mean[0])


def limits(machine, X, y):
    own = judged(machine, X, y)
    return {limit.what: limit for limit in bottlenecks.limits_of(machine, own)}


def test_what_limits_the_error():
    """Nothing but noise; far too few rows; too few grids."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(1400, 2))
    noise = rng.normal(size=1400)
    smooth = np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1])
    noisy = KernelMachineRegressor(random_state=0).fit(X[:400], 0.05 * smooth[:400] + noise[:400])
    found = limits(noisy, X[400:], 0.05 * smooth[400:] + noise[400:])
    assert not found["Rows"].counts
    assert found["Noise"].counts
    hungry = KernelMachineRegressor(random_state=0).fit(X[:60], smooth[:60])
    found = limits(hungry, X[400:], smooth[400:])
    assert found["Rows"].counts
    assert not found["Noise"].counts
    coarse = KernelMachineRegressor(features="binning", gamma=1.0, alpha=0.01, max_grids=20, random_state=0)
    found = limits(coarse.fit(X[:400], smooth[:400]), X[400:], smooth[400:])
    assert found["Time"].counts
    assert limits(noisy, X[:20], noisy.predict(X[:20]))["Rows"].says == "There is no error left on the test rows."


def test_grids_are_extrapolated_by_their_inverse():
    """Errors of 1 + 8 / n: the limit is 1."""
    X = np.linspace(0, 1, 60)[:, np.newaxis]
    machine = KernelMachineRegressor(**FIXED).fit(X, X[:, 0])
    machine.learning_curve_ = np.array([[40, 1.2], [80, 1.1]])
    limits = bottlenecks.limits_of(machine, None)
    (limit,) = (limit for limit in limits if limit.what == "Random features")
    assert "about 9.1%" in limit.says
    assert limit.counts


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda X, y: (X, None), "X and y must both be given, or both be None; got X alone"),
        (lambda X, y: (X[:5], y[:5]), "at least 10 rows, got 5"),
        (lambda X, y: (X, y[:-1]), r"y must have a value for each of \(400, 1\)"),
        (lambda X, y: (X, np.column_stack([y, y])), r"got shape \(400, 2\)"),
        (lambda X, y: (X[:, :3], y), "4 features"),
    ],
)
def test_bad_rows(table, tmp_path, rows, message):
    X, y, _ = table
    machine = KernelMachineRegressor(**FIXED).fit(X, y)
    with pytest.raises(ValueError, match=message):
        machine.report(tmp_path / "page.html", *rows(X, y))
    assert not list(tmp_path.iterdir())


def test_bad_labels_and_machines(table, tmp_path, without_package):
    X, _, labels = table
    machine = KernelMachineClassifier(**FIXED)
    with pytest.raises(NotFittedError):
        machine.report(tmp_path / "page.html")
    machine.fit(X, labels)
    with pytest.raises(
        ValueError, match=r"labels that the machine does not know: \['maybe'\]; it knows \['no', 'yes'\]"
    ):
        machine.report(tmp_path / "page.html", X, ["maybe", *labels[1:]])
    with pytest.raises(ValueError, match="a label for each of 400 rows, got 399"):
        machine.report(tmp_path / "page.html", X, labels[1:])
    with pytest.raises(FileNotFoundError):
        machine.report(tmp_path / "no" / "page.html")
    without_package("binfeat._report.page")
    with pytest.raises(ImportError, match=r"pip install 'binfeat\[plot\]'"):
        machine.report(tmp_path / "page.html")
