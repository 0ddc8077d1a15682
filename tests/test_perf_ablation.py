"""The ablation: mechanisms are switched off in one place, and figures compare fits with and without them."""

import argparse
from dataclasses import fields
from pathlib import Path

import limits
import pytest

import binfeat
from perf.cases import ablation
from perf.cases.ablation import Outcome

MECHANISMS = [field.name for field in fields(limits.current_limits().mechanisms)]


def test_mechanisms_are_off_within_the_block_only():
    before = limits.current_limits()
    with ablation.without(("ranks", "averages")):
        inside = limits.current_limits().mechanisms
    assert (inside.ranks, inside.averages, inside.linear_maps) == (False, False, True)
    assert limits.current_limits() is before


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_is_read_by_the_fit(name):
    files = (Path(binfeat.__file__).parent / "models").rglob("*.py")
    assert any(f"mechanisms.{name}" in path.read_text() for path in files)


def test_all_mechanisms_are_on_by_default():
    default = limits.current_limits().mechanisms
    assert all(getattr(default, name) for name in MECHANISMS)


def test_figures_without_a_mechanism_over_those_with_it():
    off = ("duplicates",)
    found = {
        "worse": [{(): Outcome(1.0, 10.0, 0.0, 0.0, 2.0), off: Outcome(1.21, 10.0, 0.0, 0.0, 1.0)}],
        "same": [{(): Outcome(3.0, 2.0, 1.0, 0.0, 2.0), off: Outcome(3.0, 2.0, 1.0, 0.0, 1.0)}] * 3,
    }
    rows = {row.what.partition(": ")[2]: row.ours for row in ablation._rows("duplicates", found, off)}
    assert rows["metric without / with"] == pytest.approx(1.1)
    assert rows["error without / with"] == pytest.approx(1.0)
    assert rows["seconds without / with"] == pytest.approx(0.5)
    assert rows["metric without / with, usual tables"] == pytest.approx(1.0)
    assert (rows["tables worse by 2 %"], rows["tables better by 2 %"]) == (1, 0)
    assert rows["lines of modules of its own"] == ablation._n_lines("models.table.unique_rows") > 20


def test_modules_of_mechanisms_are_counted():
    assert set(ablation._MODULES) <= set(MECHANISMS)
    assert all(ablation._n_lines(name) > 20 for names in ablation._MODULES.values() for name in names)


@pytest.mark.hard
def test_a_quick_run_compares_each_mechanism(capsys):
    rows = list(ablation.run(quick=True, off=[("ranks",), ("ranks", "averages")]))
    assert [row.error for row in rows] == [None] * 14
    assert rows[7].what == "ranks+averages: metric without / with"
    assert "iris, 120 rows" in capsys.readouterr().out


def test_tables_of_more_rows_are_skipped():
    assert list(ablation.run(quick=False, only=["iris"], most_rows=100)) == []


def test_unknown_mechanisms_are_refused():
    assert ablation._groups("ranks,ranks+averages") == [("ranks",), ("ranks", "averages")]
    with pytest.raises(argparse.ArgumentTypeError, match=r"unknown: magic; there are: .*ranks"):
        ablation._groups("ranks,magic")
