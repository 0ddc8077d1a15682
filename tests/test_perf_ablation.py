"""The ablation: mechanisms are switched off in one place, and fits with and without them are compared."""

import argparse
from dataclasses import fields
from pathlib import Path

import limits
import pytest
from sklearn.metrics import log_loss

import binfeat
from perf.cases import ablation
from perf.cases.ablation import Outcome
from perf.record import Row
from perf.tables import load
from perf.tables.peers import ours
from perf.tables.results import error_of

MECHANISMS = [field.name for field in fields(limits.current_limits().mechanisms)]


def test_mechanisms_are_off_within_the_block_only():
    before = limits.current_limits()
    with ablation.without(("ranks", "averages")) as watched:
        inside = limits.current_limits().mechanisms
        assert watched.asked == set()
        assert (inside.ranks, inside.averages, inside.linear_maps) == (False, False, True)
    assert watched.asked == {"ranks", "averages", "linear_maps"}
    assert limits.current_limits() is before


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_is_read_by_the_fit(name):
    files = (Path(binfeat.__file__).parent / "models").rglob("*.py")
    assert any(f"mechanisms.{name}" in path.read_text() for path in files)


def test_all_mechanisms_are_on_by_default():
    default = limits.current_limits().mechanisms
    assert all(getattr(default, name) for name in MECHANISMS)


def test_figures_without_a_mechanism_over_those_with_it():
    at = {"off": "duplicates", "is_asked": True, "error": 1.0, "seconds": 0.5}
    found = [
        Row("worse", 1.21, at=at | {"table": "worse", "metric": 1.21}),
        Row("same", 1.0, at=at | {"table": "same", "metric": 1.0}),
        Row("of another mechanism", 2.0, at=at | {"off": "ranks", "metric": 2.0}),
        Row("failed", None, error="MemoryError"),
    ]
    rows = {row.what.partition(": ")[2]: row.ours for row in ablation._of_all_tables(("duplicates",), found)}
    assert rows["metric without / with"] == pytest.approx(1.1)
    assert rows["error without / with"] == pytest.approx(1.0)
    assert rows["seconds without / with"] == pytest.approx(0.5)
    assert rows["metric without / with, usual tables"] == pytest.approx(1.0)
    assert rows["tables whose fits ask for it"] == 2
    assert (rows["tables worse by 2 %"], rows["tables better by 2 %"]) == (1, 0)
    assert rows["lines of modules of its own"] == ablation._n_lines("models.table.unique_rows") > 20


def test_ratios_are_of_means_over_splits():
    off = ("ranks",)
    outcomes = [
        {(): Outcome(2.0, 12.0, 2.0, set()), off: Outcome(3.0, 15.0, 1.0, set())},
        {(): Outcome(2.0, 6.0, 4.0, set()), off: Outcome(4.0, 9.0, 1.0, set())},
    ]
    assert ablation._ratio(outcomes, off, "metric") == pytest.approx(7 / 4)
    assert ablation._ratio(outcomes, off, "error") == pytest.approx(24 / 18)
    assert ablation._ratio(outcomes, off, "seconds") == pytest.approx(1 / 3)


def test_outcomes_contain_floors():
    split = load("wine").split(0)
    outcome = ablation._fit(split, (), 0)
    model = ours(split.X, split.y, 0).fit(split.X, split.y)
    assert outcome.error == pytest.approx(sum(error_of(model.predict(split.X_test), split.y_test)))
    assert outcome.metric == pytest.approx(log_loss(split.y_test, model.predict_proba(split.X_test)) + 0.001)


def test_modules_of_mechanisms_are_counted():
    assert set(ablation._MODULES) <= set(MECHANISMS)
    assert all(ablation._n_lines(name) > 20 for names in ablation._MODULES.values() for name in names)


@pytest.mark.hard
def test_a_quick_run_compares_each_mechanism():
    rows = list(ablation.run(quick=True, off=[("ranks",), ("ranks", "averages"), ("averages",)]))
    assert [row.error for row in rows] == [None] * (3 + 3 * 8)
    assert rows[1].what == "iris, 120 rows, ranks+averages: metric without / with"
    assert [row.at["is_asked"] for row in rows[:3]] == [True, True, False]  # exact models are not averages
    assert (rows[2].ours, rows[2].at["seconds"]) == (1, 1)
    assert rows[3 + 8].what == "ranks+averages: metric without / with"


def test_tables_of_more_rows_are_skipped():
    assert list(ablation.run(quick=False, only=["iris"], most_rows=100)) == []


def test_unknown_mechanisms_are_refused():
    assert ablation._groups("ranks,ranks+averages") == [("ranks",), ("ranks", "averages")]
    with pytest.raises(argparse.ArgumentTypeError, match=r"unknown: magic; there are: .*ranks"):
        ablation._groups("ranks,magic")
