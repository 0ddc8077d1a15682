"""The comparison on many tables: splits, stored results, and comparisons."""

import os
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hard import easy, hard
from threadpoolctl import threadpool_limits

pytest.importorskip("perf", reason="perf is in the checkout only")
pytest.importorskip("pandas")

from perf import __main__ as command
from perf import plots, record, suite
from perf.cases import tables as case
from perf.data import MissingDataError, Split
from perf.tables import TABLES, boosting, contest, loss_peers, splitting
from perf.tables.contest import Child
from perf.tables.mixed import MixedLM
from perf.tables.peers import LIGHTGBM, MACHINES, OURS, Peer
from perf.tables.results import Result, error_of, keep, kept
from perf.tables.standings import geometric_mean, mean_ranks, standing_of

HERE = ("diabetes", "iris", "made_categories", "made_missing", "made_wide", "made_rare")  # no file or package needed


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "tables"


def result(who, error, split=0, table="a", fit=1.0, **more):
    more = {"floor": 0.05, "predict": 0.1, "regression": True, "n_train": 80, "n_inputs": 3, **more}
    return Result(table, who, split, error=error, fit=fit, **more)


def failed(who, split=0, table="a"):
    return Result(table, who, split, failed="ValueError: no")


# tables


@pytest.mark.parametrize("name", HERE)
def test_splits_are_those_of_their_seed(name):
    first, again, other = (TABLES[name]().split(seed) for seed in (0, 0, 1))
    for split in (first, other):
        assert len(split.X) == len(split.y)
        assert len(split.X_test) == len(split.y_test) > 0
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


def test_a_fifth_of_the_rows_is_tested_with():
    table = splitting.Table(np.arange(100.0)[:, None], np.arange(100.0))
    split = table.split(3)
    assert sorted(np.concatenate([split.y, split.y_test])) == list(range(100))
    assert len(split.y_test) == 20
    bounded = replace(table, most_test_rows=5).split(3)
    assert len(bounded.y_test) == 5
    assert len(bounded.y) == 80


def test_numbers_are_floats_and_text_is_categories_that_both_parts_know():
    import pandas as pd

    table = splitting.with_text_as_categories(pd.DataFrame({"n": [1, 2, 3], "t": ["b", "a", None]}))
    assert [str(dtype) for dtype in table.dtypes] == ["float64", "category"]
    parts = Split(table[:1], np.zeros(1), table[1:].assign(t=pd.Categorical(["c", None])), np.zeros(2))
    shared = splitting.with_shared_categories(parts)
    assert list(shared.X["t"].cat.categories) == ["b", "c"]
    assert shared.X["t"].dtype == shared.X_test["t"].dtype
    assert shared.X_test["t"].isna().tolist() == [False, True]


def test_classes_are_numbered_by_those_of_the_training_rows():
    labels = Split(None, np.array(["b", "d", "b"]), None, np.array(["a", "b", "d", "e"]))
    split = contest._with_numbered_classes(labels)
    assert split.y.tolist() == [0, 1, 0]
    assert split.y_test.tolist() == [-1, 0, 1, -1]


def test_what_is_not_there_is_named(monkeypatch):
    monkeypatch.delenv("BINFEAT_DATA", raising=False)
    with pytest.raises(MissingDataError, match="set BINFEAT_DATA"):
        TABLES["cpu_act"]()
    with pytest.raises(MissingDataError, match="no_such_package is not installed; pip install it"):
        splitting.require("no_such_package", "it")


# errors, ratios and ranks


def test_error_is_relative_to_the_spread_or_a_share_of_the_rows():
    y = np.array([0.0, 2.0])
    assert error_of(np.array([1.0, 1.0]), y) == (100, 0.05)
    assert error_of(np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0])) == (25, 12.5)


def test_ratios_have_a_floor_and_take_the_best_peer():
    one = standing_of("a", [result(OURS, 0.0, fit=3.0), result(LIGHTGBM, 0.15, fit=2.0), result("svm", 0.05)])
    assert one.best_peer == "svm"
    assert one.error_ratio == pytest.approx(0.5)
    assert one.fit_ratio == 1.5
    assert one.is_first
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2)


def test_errors_are_means_and_times_medians_of_the_splits_that_all_have():
    ours = [result(OURS, error, split, fit=error) for split, error in enumerate((1.0, 2.0, 9.0))]
    theirs = [result(LIGHTGBM, 1.0, split) for split in range(3)]
    entry = standing_of("a", ours + theirs).entries[OURS]
    assert (entry.error, entry.fit) == (4.0, 2.0)
    assert standing_of("a", ours + theirs[:2]).entries[OURS].error == 1.5


def test_equal_errors_share_a_rank_and_who_has_no_figures_is_last():
    results = [result(OURS, 2.0), result(LIGHTGBM, 1.0), result("svm", 2.0), failed("xgboost")]
    one = standing_of("a", results)
    everybody = [OURS, LIGHTGBM, "svm", "xgboost", "xrfm"]
    assert list(one.ranks(everybody).values()) == [2.5, 1, 2.5, 4.5, 4.5]
    assert one.failed == {"xgboost": "ValueError: no"}
    alone = standing_of("b", [result(OURS, 1.0, table="b"), result(LIGHTGBM, 3.0, table="b")])
    assert mean_ranks([one, alone], [OURS, LIGHTGBM]) == {OURS: 1.5, LIGHTGBM: 1.5}
    text = one.text(everybody)
    assert text.index(LIGHTGBM) < text.index("xgboost")
    assert "FAILED: ValueError: no" in text


def test_a_table_that_one_side_has_no_figures_of_is_not_compared():
    assert not standing_of("a", [failed(OURS), result("svm", 1.0)]).is_comparable
    assert not standing_of("a", [result(OURS, 1.0)]).is_comparable


# fits in a separate process


class Mean:
    """A regression by the mean, or another outcome of a fit."""

    def __init__(self, what):
        self.what = what

    def fit(self, X, y):
        if self.what == "raises":
            raise ValueError("no")
        if self.what == "dies":
            os._exit(1)
        if self.what == "sleeps":
            time.sleep(600)
        self.mean = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)


def good(X, y, seed):
    return Mean("is good")


def raises(X, y, seed):
    return Mean("raises")


class Shares(Mean):
    """A classifier with equal probabilities of all classes."""

    def predict(self, X):
        return np.zeros(len(X), int)

    def predict_proba(self, X):
        return np.full((len(X), 3), 1 / 3)


def shares(X, y, seed):
    return Shares("is good")


def told(X, y, seed, seconds):
    model = Shares("is good")
    model.n_trials_ = seconds
    return model


def dies(X, y, seed):
    return Mean("dies")


def sleeps(X, y, seed):
    return Mean("sleeps")


@pytest.mark.hard
def test_a_fit_that_raises_or_dies_leaves_the_others():
    models = {make.__name__: Peer(make) for make in (good, raises, dies)}
    models["small"] = Peer(good, most_rows=10)
    with Child("diabetes", models) as child:
        fits = {who: child.fit(who, 0) for who in models}
        again = child.fit("good", 1)
    assert fits.pop("small") is None
    assert {who: one.failed for who, one in fits.items()} == {
        "good": None,
        "raises": "ValueError: no",
        "dies": "its process ended",
    }
    assert 90 < fits["good"].error < 120
    assert (fits["good"].regression, fits["good"].n_train, fits["good"].n_inputs) == (True, 354, 10)
    assert again.error != fits["good"].error
    assert (fits["good"].categories, fits["good"].missing, fits["good"].n_classes) == (False, False, 0)
    assert fits["good"].log_loss is None


def test_models_of_levels_take_numeric_targets_and_many_levels_only():
    pd = pytest.importorskip("pandas")
    y = np.arange(60.0)
    few, many = (pd.DataFrame({"level": pd.Categorical(np.arange(60) % n)}) for n in (19, 20))
    labels = np.where(y > 9, "a", "b")
    assert MACHINES["gpboost"].takes(many, y)
    assert [MACHINES["gpboost"].takes(*own) for own in ((few, y), (many, labels), (y[:, None], y))] == [False] * 3
    assert MACHINES["linear"].takes(few, labels)


@pytest.mark.hard
def test_a_child_keeps_losses_of_probabilities_and_says_how_many_seconds_there_are():
    models = {"shares": Peer(shares), "told": Peer(told)}
    with Child("iris", models) as child:
        result, slow = child.fit("shares", 0), child.fit("told", 0, 0.5)
    assert result.log_loss == pytest.approx(np.log(3))
    assert result.auc_loss == 0.5
    assert result.n_classes == 3
    assert slow.n_trials == 0.5


@pytest.mark.hard
def test_a_fit_that_lasts_leaves_the_others():
    with Child("diabetes", {"good": Peer(good), "sleeps": Peer(sleeps)}, limit=3) as child:
        assert child.fit("sleeps", 0).failed == "more than 3 s"
        assert 90 < child.fit("good", 0).error < 120


@pytest.mark.hard
def test_a_child_without_its_table_says_so(monkeypatch):
    monkeypatch.delenv("BINFEAT_DATA", raising=False)
    with pytest.raises(MissingDataError, match="set BINFEAT_DATA"):
        Child("cpu_act")


# stored results


FITS = []


class StandIn:
    """Stand-in for the process: it records fits, and only fits of svm fail."""

    def __init__(self, table, models):
        if table == "iris":
            raise MissingDataError("not here")
        self.table = table

    def fit(self, who, split, seconds=None):
        FITS.append((self.table, who, split) if seconds is None else (self.table, who, split, seconds))
        return failed(who, split, self.table) if who == "svm" else result(who, 5.0 + split, split, self.table)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def fits():
    FITS.clear()
    return FITS


@pytest.fixture
def run(folder):
    """Run the case with stand-ins for the models and for the process."""
    models = {name: Peer(None) for name in (OURS, LIGHTGBM, "svm")}
    return partial(case.run, models=models, child=StandIn, folder=folder)


def test_results_come_back_as_they_were(folder):
    results = [result(OURS, 1.0), failed("svm", 2)]
    for one in results:
        keep(one, folder)
    assert list(kept(folder).values()) == results
    (folder / "broken.json").write_text("{")
    with pytest.raises(record.RecordError, match=r"broken\.json is not a result, delete it"):
        kept(folder)


@pytest.mark.hard
def test_ours_is_fitted_anew_and_of_the_peers_what_is_not_kept(fits, run, folder):
    rows = list(run(False, only=["wine"], splits=1, peers=[LIGHTGBM]))
    assert fits == [("wine", LIGHTGBM, 0)]
    assert rows == []
    rows = list(run(False, only=["wine", "iris"], splits=2))
    assert fits[1:] == [("wine", OURS, 0), ("wine", "svm", 0), ("wine", OURS, 1), ("wine", LIGHTGBM, 1)]
    assert "iris: skipped, not here" in [row.what for row in rows]
    assert [row.what for row in rows if row.error] == ["wine: svm"]
    assert kept(folder)["wine", "svm", 1].failed  # not fitted again
    fits.clear()
    list(run(False, only=["wine"], splits=2, ours=True))
    assert fits == [("wine", OURS, 0), ("wine", OURS, 1)]
    fits.clear()
    rows = {row.what: row for row in run(False, only=["wine"], printed=True)}
    assert fits == []
    assert rows["error / the best peer's, geometric mean"].ok
    assert rows["mean rank / the best peer's"].measured == 1
    assert rows["tables where we are first"].ours == 1
    assert plots.tables([row.as_dict() for row in rows.values()]).axes[0].texts[0].get_text() == "wine"


def test_options_narrow_the_case_and_leave_no_record(fits, run, tmp_path, capsys):
    options = {"add_options": case.add_options, "NARROWING": case.NARROWING}
    cases = {"tables": SimpleNamespace(run=partial(run, tables={"wine": None}), **options)}
    narrowing = ["--only", "wine", "--peers", LIGHTGBM, "--splits", "1"]
    assert command.main(["tables", "--ours", *narrowing], cases, tmp_path) == 0
    assert "Not recorded" in capsys.readouterr().out
    assert list(tmp_path.glob("*.json")) == []
    assert command.main(["tables", "--ours"], cases, tmp_path) == 0
    assert len(list(tmp_path.glob("tables-*.json"))) == 1
    with pytest.raises(SystemExit):
        command.main(["tables", "--only", "wine,tea"])
    assert f"unknown: tea; there are: {', '.join(TABLES)}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["ridge", "--only", "wine"])


@pytest.mark.hard
def test_quick_run_keeps_nothing(fits, run, folder):
    rows = list(run(True))
    assert {row.what for row in rows if row.error is None} >= {"diabetes, error / rbf_sampler"}
    assert not folder.exists()


# peers


@pytest.mark.parametrize("name", ["made_categories", *hard("made_missing", "iris")])
@pytest.mark.parametrize("who", easy([name for name in MACHINES if name != OURS], "lightgbm", "svm", "rbf_sampler"))
def test_every_peer_takes_categories_missing_values_and_classes(name, who, monkeypatch):
    if not MACHINES[who].installed:
        pytest.skip(f"{who} is not installed")
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # waiting threads are slow on a busy computer
    monkeypatch.setattr(boosting, "MOST_TREES", 20)
    split = contest._few(contest._with_numbered_classes(TABLES[name]().split(0)))
    if not MACHINES[who].takes(split.X, split.y):
        assert who == "gpboost"  # it is only for categories with many levels
        return
    with threadpool_limits(1):
        seconds = 0.1 if MACHINES[who].takes_our_seconds else None
        fit = contest._timed(MACHINES[who], split, 0, seconds)
    assert fit.predictions.shape == split.y.shape
    assert error_of(fit.predictions, split.y)[0] < 100
    assert fit.seconds > 0
    assert fit.seconds_of_predict > 0


def test_boosting_stops_on_a_tenth_of_every_class():
    y = np.repeat([0, 1, 2], [100, 40, 3])
    inner = boosting.held_out(np.arange(143.0)[:, None], y, 0)
    assert np.bincount(inner.y_test).tolist() == [10, 4]
    assert np.bincount(inner.y).tolist() == [90, 36, 3]
    assert sorted(np.concatenate([inner.X, inner.X_test])[:, 0]) == list(range(143))


@pytest.mark.parametrize(("seconds", "whole", "n_trials", "loss"), [(0, True, 1, 3), (5, True, 3, 2), (0, False, 1, 3)])
def test_trials_go_on_while_seconds_last(seconds, whole, n_trials, loss, monkeypatch):
    """The trial with the lowest loss is used; only the first can exceed the limit."""
    losses, limits = iter([3, 2, 4]), []

    def fit(inner, seed, until, n_estimators, learning_rate):
        limits.append(until - time.perf_counter())
        return SimpleNamespace(loss=(own := next(losses)), trees=n_estimators * learning_rate), own

    monkeypatch.setitem(boosting.LIBRARIES, "stand-in", (fit, lambda rng: None))
    rates = [{}, {"learning_rate": 0.01}, {"learning_rate": 0.1}]
    model = boosting.Boosting("stand-in", lambda draw, seed: rates, 0, seconds, whole)
    model.fit(np.zeros((20, 1)), np.arange(20.0))
    assert (model.n_trials_, model.model_.loss, model.model_.trees) == (n_trials, loss, 250)
    assert limits[0] > 500 if whole else limits[0] <= 0
    assert all(limit <= seconds for limit in limits[1:])


@pytest.mark.parametrize("library", boosting.LIBRARIES)
def test_boosting_ends_in_time_with_settings_of_any_draw(library):
    pytest.importorskip(library)
    fit, draw = boosting.LIBRARIES[library]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    inner = boosting.held_out(X, X[:, 0], 0)
    with threadpool_limits(1):
        for _ in range(3):
            settings = draw(rng)
            model, loss = fit(inner, 0, time.perf_counter() + 0.2, n_estimators=10**9, **settings)
            assert np.isfinite(loss)
            assert model.predict(X).shape == (200,)


def test_the_case_is_among_the_others():
    assert "tables" in suite.CASES


@pytest.mark.parametrize(("peer", "package"), [("CatBoost", "catboost"), *hard(("LightGBM", "lightgbm"))])
def test_shares_of_peers_are_in_the_order_of_labels(peer, package, monkeypatch):
    """The order is that of `np.unique`, also if a peer reads digits as numbers."""
    pytest.importorskip(package)
    monkeypatch.setattr(loss_peers, "_MOST_TREES", 20)
    rng = np.random.default_rng(0)
    labels = rng.integers(12, size=600)
    X = labels[:, np.newaxis] + 0.01 * rng.normal(size=(600, 2))
    split = Split(X[:500], labels[:500].astype(str), X[500:], labels[500:].astype(str))
    shares = loss_peers.of_classes(split)[peer]()
    assert np.mean(np.unique(split.y)[shares.argmax(axis=1)] == split.y_test) > 0.8


# mixed models


def _panel():
    import pandas as pd

    rng = np.random.default_rng(0)
    levels, x = rng.integers(30, size=600), rng.normal(size=600)
    y = rng.normal(size=30)[levels] + 2 * x + 0.1 * rng.normal(size=600)
    few = pd.Categorical(rng.choice(["a", "b"], 600))
    return pd.DataFrame({"level": pd.Categorical(levels.astype(str)), "few": few, "x": x}), y


def test_categories_with_many_levels_have_random_intercepts():
    X, _ = _panel()
    assert MixedLM()._columns(X) == (["level"], ["few", "x"])


def test_a_linear_mixed_model_takes_one_category():
    X, y = _panel()
    assert MixedLM().suits(X)
    assert not MixedLM().suits(X.assign(other=X["level"]))
    pytest.importorskip("statsmodels")
    model = MixedLM().fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) == pytest.approx(0.01, rel=0.2)
    new = X.assign(level="new")
    assert np.corrcoef(model.predict(new), X["x"])[0, 1] == pytest.approx(1, abs=1e-3)
