"""The performance suite: statistics, records, guards, loaders, the report, decisions of the gate."""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import binfeat
from perf import __main__ as command
from perf import data, floors, gate, judge, measure, peers, plots, record, report, sides, suite, worker
from perf.cases import losses, ridge, serving, stages
from perf.measure import Times
from perf.record import Row

ROWS = [
    Row("fit / peer", Times((2.0, 1.0, 3.0)), Times((4.0,)), (">=", 3)),
    Row("memory | own", 100.0, 120.0, ("<=", 1), "MB"),
    Row("error", 2.5, unit="%", at={"panel": "rows", "series": "ours", "x": 10}),
    Row("error", 1.5, unit="%", at={"panel": "rows", "series": "ours", "x": 100}),
    Row("peak", None, reach=("<=", 1.5), unit="MB"),
    Row("broken peer", None, error="ValueError: no <rows>"),
]


@pytest.fixture
def folder(tmp_path):
    """Return the folder of records."""
    return tmp_path / "records"


def case(run, **more):
    return types.SimpleNamespace(__doc__="A stand-in.", run=run, **more)


# statistics


def test_minimum_and_spread_of_times():
    times = Times((2.0, 1.0, 4.0))
    assert times.best == 1
    assert times.spread == 2


def test_rounds_are_interleaved_and_fewer_runs_spread_over_them():
    calls = []
    timers = {name: lambda name=name: calls.append(name) or len(calls) for name in ("often", "twice", "once")}
    times = measure.interleave(timers, {"often": 4, "twice": 2, "once": 1})
    assert [len(times[name].seconds) for name in timers] == [4, 2, 1]
    assert calls == ["often", "twice", *("often", "often", "twice", "often", "often", "twice", "once")]


def test_measured_is_the_ratio_that_the_reach_bounds():
    faster, smaller, alone, absent = ROWS[0], ROWS[1], ROWS[2], ROWS[4]
    assert faster.measured == 4
    assert faster.ok
    assert smaller.measured == 100 / 120
    assert smaller.ok
    assert alone.measured == 2.5
    assert alone.ok is None
    assert absent.measured is None
    assert Row("none", 0.0, 0.0).measured == 1.0
    assert Row("no error", 0.0, 2.0).measured == float("inf")
    assert absent.cells[-1] == "not measured"
    assert Row("slow", 2.0, 4.0, (">=", 3)).cells == ("slow", "2 s", "4 s", "2x", ">= 3x", "MISSED")


def test_table_puts_failures_and_misses_first():
    lines = record.table("case", [*ROWS, Row("slow", 2.0, 4.0, (">=", 3))], quick=True).splitlines()
    assert lines[0] == "case (quick: figures mean little): 1 of 3 figures MISSED"
    assert lines[1] == "FAILED broken peer: ValueError: no <rows>"
    assert lines[4].startswith("slow ")
    assert sum("broken peer" in line for line in lines) == 1


# records


def test_record_comes_back_as_it_was(folder):
    kept = record.read(record.save("case", ROWS, False, folder))
    assert kept.case == "case"
    assert kept.rows == ROWS
    assert kept.content["machine"]["cores"] >= 1
    assert {"python", "numpy", "numba"} <= kept.content["versions"].keys()


def test_newest_full_record_of_each_case_is_taken(folder):
    folder.mkdir()
    own = json.loads(record.save("a", ROWS, False, folder).read_text())
    (folder / "a-20990101T000000Z.json").write_text(json.dumps({**own, "time": "2099"}))
    (folder / "a-20990102T000000Z.json").write_text(json.dumps({**own, "quick": True}))
    (folder / "b-20990101T000000Z.json").write_text("{")
    (folder / "c-20990101T000000Z.json").write_text(json.dumps({**own, "rows": [{}]}))
    records, errors = record.newest(folder)
    assert [records[name].content["time"] for name in records] == ["2099"]
    assert [error.args[0].split(" is not")[0][-23:] for error in errors] == [
        "b-20990101T000000Z.json",
        "c-20990101T000000Z.json",
    ]


@pytest.fixture
def full_disk(monkeypatch):
    """Make a method of Path fail as on a full disk."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    return lambda method: monkeypatch.setattr(Path, method, fail)


def test_full_disk_is_said_and_leaves_no_half_record(folder, full_disk):
    full_disk("replace")
    with pytest.raises(record.RecordError, match=r"case-.*json cannot be written: .*No space left .* run case again"):
        record.save("case", ROWS, False, folder)
    assert list(folder.iterdir()) == []


# the run


def failing_midway(quick):
    yield Row("before", 1.0)
    raise ZeroDivisionError("a peer crashed")


def without_data(quick):
    raise data.MissingDataError("table.csv is not bundled")


def test_a_case_that_fails_leaves_its_rows_and_the_others(folder, capsys):
    cases = {"bad": case(failing_midway), "empty": case(without_data), "good": case(lambda quick: [Row("x", 1.0)])}
    assert command.main(["bad", "empty", "good"], cases, folder) == 1
    out, err = capsys.readouterr()
    assert "FAILED bad: ZeroDivisionError: a peer crashed" in out
    assert "FAILED empty: table.csv is not bundled" in out
    assert "failed, in part or in whole: bad, empty" in err
    assert "Traceback" in err
    kept = {path.name.split("-")[0]: record.read(path) for path in folder.iterdir()}
    assert [row.what for row in kept["bad"].rows] == ["before", "bad"]
    assert kept["good"].rows == [Row("x", 1.0)]


def test_an_interrupted_run_continues_after_the_parts_that_it_finished(folder, capsys):
    measured = []

    def part(name):
        measured.append(name)
        if name == "second" and len(measured) == 2:
            raise KeyboardInterrupt
        yield Row(name, Times((1.0, 2.0)))

    def run(quick, only=None, of_part=suite.guarded):
        for name in only or ("first", "second"):
            yield from of_part(name, part, name)

    cases = {"long": case(run, LONG=True, NARROWING=("only",))}
    with pytest.raises(KeyboardInterrupt):
        suite.run(["long"], False, cases=cases, folder=folder)
    assert "first" in capsys.readouterr().out  # rows are printed as soon as they are measured
    assert suite.run(["long"], True, cases=cases, folder=folder) == []
    (quick_record,) = folder.glob("*.json")
    quick_record.unlink()
    assert suite.run(["long"], False, {"long": {"only": ["first"]}}, cases, folder) == []
    assert measured == ["first", "second", "first", "second", "first"]
    measured.clear()
    assert suite.run(["long"], False, cases=cases, folder=folder) == []
    assert measured == ["second"]
    (path,) = folder.glob("*.json")
    assert record.read(path).rows == [Row(name, Times((1.0, 2.0))) for name in ("first", "second")]
    assert list((folder / "unfinished").iterdir()) == []


def test_finished_parts_are_kept_if_others_fail(folder):
    measured, failing = [], ["second"]

    def part(name):
        measured.append(name)
        if name in failing:
            raise ValueError("no data")
        yield Row(name, Times((1.0, 2.0)))

    def run(quick, of_part=suite.guarded):
        for name in ("first", "second"):
            yield from of_part(name, part, name)

    cases = {"long": case(run, LONG=True)}
    assert suite.run(["long"], False, cases=cases, folder=folder) == ["long"]
    failing.clear()
    assert suite.run(["long"], False, cases=cases, folder=folder) == []
    assert measured == ["first", "second", "second"]
    assert list((folder / "unfinished").iterdir()) == []


def test_processors_of_one_name_have_different_models(tmp_path):
    source = tmp_path / "cpuinfo"
    source.write_text("cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\n" * 2)
    assert record.cpu_model(source) == "AMD EPYC (family 26, model 2)"
    source.write_text("CPU implementer\t: 0x41\n")
    assert record.cpu_model(source) == record.cpu_model(tmp_path / "none") != ""


@pytest.mark.parametrize("changed", [{"cpu": "another"}, {"binfeat": "0.0.1"}])
def test_parts_of_another_computer_or_version_are_measured_again(folder, changed):
    def rows_of(number):
        return list(suite.continued("long", "first", lambda: [Row("it", number)], folder=folder))

    assert [row.ours for row in [*rows_of(1.0), *rows_of(2.0)]] == [1.0, 1.0]
    (path,) = (folder / "unfinished").iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    assert [row.ours for row in [*rows_of(3.0), *rows_of(4.0)]] == [3.0, 3.0]


def test_a_part_that_fails_is_measured_again(folder):
    def rows_of(error):
        return list(suite.continued("long", "first", lambda: [Row("it", None, error=error)], folder=folder))

    assert [row.error for row in [*rows_of("broken"), *rows_of(None)]] == ["broken", None]


def test_all_runs_every_case_and_none_lists_them(folder, capsys):
    cases = Cases({name: case(lambda quick: [Row(f"quick {quick}", 1.0)]) for name in ("one", "two")})
    assert command.main(["all", "--quick"], cases, folder) == 0
    assert len(list(folder.iterdir())) == 2
    capsys.readouterr()
    assert command.main([], cases, folder) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["one", "two", "report", "gate"]


class Cases(dict):
    """Stand-in for cases with summaries."""

    def summary(self, name):
        return f"the case {name}"


HIDDEN = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"skops", "dask", "distributed", "lightgbm", "matplotlib", "pandas"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.hard
def test_listing_imports_nothing_that_a_case_needs():
    run = subprocess.run(
        [sys.executable, "-c", HIDDEN + "from perf.__main__ import main; sys.exit(main([]))"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert run.returncode == 0, run.stderr
    listed = [line.split()[0] for line in run.stdout.splitlines()]
    assert {"binning", "ridge", "serving", "scale_dask", "report", "gate"} <= set(listed)


def test_a_missing_package_is_named_by_its_case(folder, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "perf.cases.serving", raising=False)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    assert command.main(["serving", "--quick"], folder=folder) == 1
    assert (
        "FAILED serving: needs the package skops, which is not installed: pip install skops" in capsys.readouterr().out
    )


def test_unknown_names_are_refused_with_those_there_are(capsys):
    cases = {"one": case(lambda quick: [])}
    for arguments, message in (
        (["none"], "unknown case none; there are: one, all"),
        (["gate", "HEAD", "--threshold", "25", "none"], "unknown case none; there are: hashed"),
    ):
        with pytest.raises(SystemExit) as stopped:
            command.main(arguments, cases)
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err


def test_cases_with_the_same_option_run_together_without_it(folder, capsys):
    seen = []

    def run(quick, rows=None):
        seen.append(rows)
        return [Row("x", 1.0)]

    def add_options(parser):
        parser.add_argument("--rows", type=int)

    cases = {name: case(run, add_options=add_options) for name in ("one", "two")}
    assert command.main(["one", "two", "--quick"], cases, folder) == 0
    assert command.main(["two", "--quick", "--rows", "5"], cases, folder) == 0
    assert seen == [None, None, 5]
    with pytest.raises(SystemExit):
        command.main(["one", "two", "--rows", "5"], cases, folder)
    assert "unrecognized arguments: --rows" in capsys.readouterr().err


def test_full_disk_fails_the_run_after_the_table(folder, capsys, full_disk):
    full_disk("write_text")
    cases = {name: case(lambda quick: [Row("x", 1.0)]) for name in ("one", "two")}
    assert command.main(["one", "two"], cases, folder) == 1
    out, err = capsys.readouterr()
    assert out.count("figures MISSED") == 2
    assert err.count("No space left on device") == 2


def test_every_case_has_a_first_line_and_a_run():
    for module in suite.CASES.values():
        assert module.__doc__.splitlines()[0]
        assert callable(module.run)


def test_floors_are_summed_and_the_largest_is_named():
    known = {"gather, 256 entries": 1e-9, "gather, 4,096 entries": 3e-9, "scatter, 256 entries": 2e-9}
    assert [floors.look_up("gather", n, known) for n in (2, 256, 257, 10**6)] == [1e-9, 1e-9, 3e-9, 3e-9]
    row = floors.over_floor("it", measure.Times((3.0, 2.0)), {"product": 0.5, "new memory": 1.1})
    assert (row.what, row.measured, row.ok) == ("it / floor, mostly new memory", 2.0 / 1.6, True)
    row = floors.over_floor("it", measure.Times((2.0,)), {"product": 0.8, "new memory": 0.5})
    assert (row.what, row.ok) == ("it / floor, mostly product", False)


def test_floor_of_products_looks_into_tables_of_adjacent_columns():
    known = {f"{kind}, {size} entries": rate for kind in ("gather", "scatter") for size, rate in ((256, 1), (1024, 3))}
    Z = types.SimpleNamespace(codes=np.zeros((2, 5), np.uint16), shape=(5, 512))
    floor = {n: ridge._floor(Z, n, known | {"memory: read": 1}) for n in (1, 7, 8)}
    assert [own["gathers"] for own in floor.values()] == [10 * 1, 10 * (3 + 3 + 1), 10 * (3 + 3)]
    assert [own["memory read"] for own in floor.values()] == [40, 120, 80]


@pytest.mark.hard
def test_work_of_the_floors_is_done():
    """Sums equal those of this number of rounds."""
    calls = floors._table_calls((256,)) | floors._arithmetic_calls(20)
    call, n_looks = calls["gather, 256 entries"]
    call()
    *_, rounds, values = call.args
    assert n_looks == rounds * values.size
    np.testing.assert_array_equal(values, 1 + rounds)
    call, n_terms = calls["hash, a term"]
    call()
    *_, key, rounds, hashes = call.args
    assert n_terms == rounds * hashes.size
    np.testing.assert_array_equal(hashes, np.uint64(rounds) * key)


# peers and loaders


class Constant(ClassifierMixin, BaseEstimator):
    """A classifier with a constant prediction, or an error."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        if self.answer is None:
            raise ValueError("no answer")

    def predict(self, X):
        return np.full(len(X), self.answer)


def test_absent_and_crashing_peers_are_named_and_leave_the_others():
    X, y = np.zeros((4, 1)), np.array([0, 0, 0, 1])
    makers = {"ours": lambda: Constant(0), "absent": lambda: None, "broken": lambda: Constant(None)}
    trials, rows = peers.contest(makers, [data.Split(X, y, X, y)] * 2)
    assert list(trials) == ["ours"]
    assert len(trials["ours"]) == 2
    assert peers.mean_error(trials["ours"]) == 25
    assert [(row.what, row.error) for row in rows] == [
        ("absent: not installed, skipped", None),
        ("broken", "ValueError: no answer"),
    ]


def test_missing_and_damaged_data_files(tmp_path, monkeypatch):
    monkeypatch.delenv("BINFEAT_DATA", raising=False)
    with pytest.raises(data.MissingDataError, match="set BINFEAT_DATA to a folder that holds it"):
        data.cpu_act()
    monkeypatch.setenv("BINFEAT_DATA", str(tmp_path))
    with pytest.raises(data.MissingDataError, match=r"must be a folder that holds cpu_act\.csv\.gz; there is no"):
        data.cpu_act()
    loaders = {
        "cpu_act.csv.gz": data.cpu_act,
        "forest_cover.npz": data.forest_cover,
        "adult_a9a_train.svm.gz": data.adult_a9a,
        "adult_uci.data.gz": data.adult_table,
        "kddcup99_10_percent.csv.gz": data.kddcup99,
    }
    for name, load in loaders.items():
        (tmp_path / name).write_bytes(b"\x1f\x8b damaged")
        with pytest.raises(data.MissingDataError, match=f"{name} cannot be read, get another copy"):
            load()


def test_a_made_table_takes_the_place_of_forest_cover_in_quick_runs(monkeypatch, tmp_path):
    """The output mentions it; full runs need the real table."""
    monkeypatch.delenv("BINFEAT_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr(data, "_fetch_forest_cover", lambda **_: without_data(True))
    X, gamma, labels, row = data.forest_cover_for(quick_rows=15_000)
    assert X.shape == (15_000, 54)
    assert X.min() == 0
    assert X.max() == 1
    assert (X[:, data.N_NUMERIC : data.N_NUMERIC + 4].sum(axis=1) == 1).all()
    assert gamma.shape == (54,)
    assert np.unique(labels).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert row.what.startswith("a made table of Forest Cover's shape, since BINFEAT_DATA is not set")
    with pytest.raises(data.MissingDataError):
        data.forest_cover_for(None)


def test_coefficients_that_an_iteration_on_dask_carries():
    pytest.importorskip("distributed")
    from perf.cases.scale_dask import ways_of_coefficients

    assert ways_of_coefficients(2, 4) == 7  # to the scheduler and back, to two workers, half of four sums between them
    assert ways_of_coefficients(1, 4) == 4


# the report


@pytest.fixture
def records(folder):
    record.save("case", [*ROWS, Row("slow <", 2.0, 4.0, (">=", 3))], False, folder)
    return record.newest(folder)[0]


@pytest.fixture
def places(folder, tmp_path):
    """Return the folders of the report."""

    def pictures(content):
        return {"case.png": plots.curves(content["rows"], "rows", "error")}

    return {
        "cases": {"case": case(None, pictures=pictures)},
        "folder": folder,
        "released": tmp_path / "released",
        "pages": (),
        "pictures_folder": tmp_path / "pictures",
    }


def test_a_curve_rises_and_has_the_title_of_its_panel():
    figure = plots.curves([row.as_dict() for row in reversed(ROWS)], "rows", "error")
    (line,) = figure.axes[0].get_lines()
    assert (line.get_label(), *zip(*line.get_xydata())) == ("ours", (10, 100), (2.5, 1.5))
    assert figure.axes[0].get_title() == "rows"


def test_page_is_whole_and_puts_misses_first(records):
    page = report.page(records, {"case": {"case.png": b"PNG"}})
    assert page.index("case: slow &lt;") < page.index("case: fit / peer")
    assert "FAILED broken peer: ValueError: no &lt;rows&gt;" in page
    assert 'src="data:image/png;base64,UE5H"' in page
    assert "http" not in page


PAGES = {
    "notes.md": "# a\n<!-- perf: case -->\nold\n<!-- /perf -->\n<!-- perf: other -->\nstays\n<!-- /perf -->\n",
    "page.rst": "a\n=\n\n.. perf: case\n\nold\n\n.. /perf\n\n.. perf: other\n\nstays\n\n.. /perf\n",
}


def test_report_writes_the_page_the_pictures_and_the_tables(records, places, tmp_path, capsys):
    pages = [tmp_path / name for name in PAGES]
    for page in pages:
        page.write_text(PAGES[page.name])
    assert report.main([], **{**places, "pages": pages}) == 0
    assert (places["folder"] / report.PAGE).read_text().startswith("<!doctype html>")
    for name in ("case.png", "reach.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")
    markdown, docs = (page.read_text() for page in pages)
    assert "| case: memory / own | 100 MB | 120 MB | 0.833x | <= 1x | ok |" in markdown
    assert '   "case: memory | own", "100 MB", "120 MB", "0.833x", "<= 1x", "ok"\n' in docs
    for page, text in zip(pages, (markdown, docs)):
        assert "old" not in text
        assert "stays" in text
        assert report.renew(text, records, page.suffix) == text


@pytest.mark.parametrize("page", report.PAGES, ids=lambda page: page.name)
def test_pages_have_tables_of_cases_that_there_are(page):
    for names in report.blocks(page.read_text(encoding="utf-8"), page.suffix):
        records = {name.partition(":")[0].partition(".")[0] for name in names}
        assert records <= set(suite.CASES) | {"reach"}


def test_one_page_has_all_figures_with_a_goal():
    page = next(path for path in report.PAGES if path.name == "measured.rst")
    blocks = report.blocks(page.read_text(encoding="utf-8"), page.suffix)
    records = {path.stem: json.loads(path.read_text()) for path in record.RELEASED.glob("*.json")}
    with_goals = {name for name, content in records.items() if any(row["reach"] for row in content["rows"])}
    assert with_goals <= {name for names in blocks for name in names}


def test_report_keeps_figures_of_cases_that_were_not_run_again(records, places, tmp_path):
    page = tmp_path / "notes.md"
    page.write_text(PAGES[page.name])
    assert report.main([], **{**places, "pages": [page]}) == 0
    text, kept = page.read_text(), (places["released"] / "case.json").read_text()
    for path in places["folder"].glob("*.json"):
        path.unlink()
    record.save("other", [Row("new", 1.0, reach=("<=", 2))], False, places["folder"])
    assert report.main([], **{**places, "pages": [page], "cases": {**places["cases"], "other": case(None)}}) == 0
    assert (places["released"] / "case.json").read_text() == kept
    assert text.partition("<!-- perf: other")[0] in page.read_text()
    assert "| other: new | 1 s |  |  | <= 2 s | ok |" in page.read_text()


@pytest.mark.parametrize("page", report.PAGES, ids=lambda page: page.name)
def test_tables_of_pages_are_those_of_the_released_records(page):
    records, errors = record.newest(record.RELEASED)
    assert errors == []
    text = page.read_text(encoding="utf-8")
    assert report.renew(text, records, page.suffix) == text


def test_report_without_records_or_with_a_picture_that_fails(records, places, tmp_path, capsys):
    places["cases"]["case"].pictures = lambda content: content["nothing"]
    assert report.main([], **places) == 1
    assert "the pictures of case cannot be drawn: KeyError: 'nothing'" in capsys.readouterr().err
    assert (places["folder"] / report.PAGE).is_file()
    nothing = dict.fromkeys(("folder", "released"), tmp_path / "empty")
    assert report.main([], **{**places, **nothing}) == 1
    assert "there is no full record" in capsys.readouterr().err


def test_report_on_a_full_disk(records, places, full_disk, capsys):
    full_disk("write_text")
    assert report.main([], **places) == 1
    assert "the report cannot be written: [Errno 28] No space left on device" in capsys.readouterr().err


# the gate


def noisy_looks(rng, factor):
    """Return measurements of a case of 20 ms on a computer that is sometimes twice as slow, for both sides or one."""

    def look(keys, rounds):
        def pair():
            shared = rng.choice([1, 2], p=[0.7, 0.3], size=rounds)
            own = 1 + 0.05 * rng.exponential(size=(2, rounds)) + 0.5 * (rng.uniform(size=(2, rounds)) < 0.05)
            base, head = 0.02 * shared * own
            return judge.Pair(Times(tuple(base)), Times(tuple(factor * head)))

        return {key: pair() for key in keys}

    return look


def test_planted_slowdown_fails_and_an_unchanged_tree_passes_ten_times_of_ten(rng):
    keys = [("case", k) for k in range(24)]
    for _ in range(10):
        assert len(judge.twice_slower(keys, noisy_looks(rng, 1.5), 25)[1]) > 12
        assert judge.twice_slower(keys, noisy_looks(rng, 1.0), 15)[1] == []


def pair(base, head):
    return judge.Pair(Times((base,)), Times((head,)))


def test_slower_takes_threshold_floor_and_nearly_all_rounds():
    assert pair(0.1, 0.12).slower(15)
    assert not pair(0.1, 0.12).slower(25)
    assert not pair(0.1, 0.05).slower(15)
    assert not pair(1e-4, 1e-3).slower(15), "below the floor"
    base, head = np.full(9, 2.0), np.full(9, 3.0)
    base[0] = 5
    assert judge.Pair(Times(tuple(base)), Times(tuple(head))).slower(15)
    base[1] = 5
    assert not judge.Pair(Times(tuple(base)), Times(tuple(head))).slower(15)


def test_what_is_slower_is_looked_at_again_in_more_rounds():
    slow, same = pair(0.1, 0.2), pair(0.1, 0.1)
    found = iter([{"a": slow, "b": slow, "c": same}, {"a": same, "b": slow}])
    asked = []
    looks, slower = judge.twice_slower(list("abc"), lambda *request: asked.append(request) or next(found), 15)
    assert asked == [(["a", "b", "c"], 9), (["a", "b"], 18)]
    assert len(looks) == 2
    assert slower == ["b"]


def test_changed_counters_need_a_new_reason():
    base, head = {("ridge", "iterations"): 9, ("ridge", "bytes"): 8}, {("ridge", "iterations"): 10, ("x", "bytes"): 8}
    changed = judge.changes(base, head)
    assert changed == {("ridge", "bytes"): (8, None), ("ridge", "iterations"): (9, 10), ("x", "bytes"): (None, 8)}
    old = "# how: to\nridge iterations: a better start\nno reason:\n"
    assert judge.accepted(old, old) == {}
    assert judge.accepted(old, old + "ridge iterations: a safer stop\n") == {("ridge", "iterations"): "a safer stop"}


class Side:
    """A stand-in for a side of the gate."""

    dependencies = ()
    n_signatures = 5

    def __init__(self, name, seconds, iterations=3, reasons="", broken=()):
        self.name, self.seconds, self.iterations = name, seconds, iterations
        self.reasons, self.broken = reasons, broken

    def stop(self):
        pass

    def ask(self, case, threads, count=False):
        if case in self.broken:
            return {"error": f"AttributeError: no {case}"}
        return {"seconds": self.seconds, "counters": {"iterations": self.iterations}}


def test_gate_decides_on_times_counters_and_what_does_not_run(capsys):
    names = ["ridge", "fourier"]
    base = Side("base", 0.01)
    assert gate._compare(base, Side("head", 0.01), names, 15).failures == []
    slow = gate._compare(base, Side("head", 0.015), names, 25).failures
    assert len(slow) == len(names) * len(gate.THREADS)
    assert slow[0] == "ridge with 1 threads is slower by more than 25 % and 1 ms, twice in a row"
    changed = gate._compare(base, Side("head", 0.01, iterations=4), ["ridge"], 15)
    assert changed.changes == {("ridge", "iterations"): (3, 4)}
    assert changed.failures == [
        "ridge iterations changed from 3 to 4; if that is meant, say why in perf/accepted.txt: ridge iterations: REASON"
    ]
    said = Side("head", 0.01, iterations=4, reasons="ridge iterations: a safer stop")
    assert gate._compare(base, said, ["ridge"], 15).failures == []
    broken = Side("head", 0.01, broken=["fourier"])
    assert gate._compare(base, broken, names, 15).failures == ["fourier does not run: AttributeError: no fourier"]
    capsys.readouterr()
    assert gate._compare(Side("base", 0.01, broken=["fourier"]), Side("head", 0.01), names, 15).failures == []
    assert "fourier does not run in base, not compared: AttributeError: no fourier" in capsys.readouterr().out


def test_compiled_signatures_are_counted():
    base, head = Side("base", 0.01), Side("head", 0.01)
    head.n_signatures = 6
    assert (
        gate._compare(base, head, ["ridge"], 15)
        .failures[0]
        .startswith("all signatures changed from 5 to 6; if that is meant")
    )


@pytest.mark.parametrize(("seconds", "status", "verdict"), [(0.01, 0, "open"), (0.02, 1, "shut")])
@pytest.mark.parametrize("as_json", [False, True])
def test_gate_prints_its_verdict_and_what_a_shut_one_asks_for(capsys, monkeypatch, seconds, status, verdict, as_json):
    both = contextlib.nullcontext((Side("base", 0.01), Side("head", seconds, iterations=3 + status)))
    monkeypatch.setattr(sides, "both", lambda *_: both)
    assert command.main(["gate", "main", "ridge", *(["--json"] if as_json else [])]) == status
    out, err = capsys.readouterr()
    text = err if as_json else out
    assert f"The gate is {verdict}." in text
    assert ("undo changed counters or give the reason for each in perf/accepted.txt" in text) == bool(status)
    if as_json:
        found = json.loads(out)
        assert found["open"] is not bool(status)
        assert len(found["failures"]) == status * (1 + len(gate.THREADS))
        assert len(found["changes"]) == status
        first = found["looks"][0][0]
        assert (first["case"], first["threads"], first["ratio"]) == ("ridge", 1, pytest.approx(seconds / 0.01))
        assert first["seconds"]["base"][0] == 0.01


def test_unknown_revision_is_said(tmp_path, capsys):
    assert command.main(["gate", "no-such-revision", "--repository", str(tmp_path)]) == 2
    assert "git worktree add" in capsys.readouterr().err


in_checkout = pytest.mark.skipif(not (sides.HEAD / "binfeat").is_dir(), reason="the suite is apart from the package")


def commit(git):
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "base"]):
        subprocess.run([*git, *words], check=True)


@in_checkout
def test_sides_hold_their_own_binfeat_and_this_suite(tmp_path):
    git = ["git", "-C", str(tmp_path / "repository"), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "repository" / "binfeat").mkdir(parents=True)
    (tmp_path / "repository" / "binfeat" / "__init__.py").write_text("raise ImportError('the base of the test')")
    commit(git)
    with sides.both("HEAD", tmp_path / "repository") as (base, head):
        assert (base.source / "binfeat" / "__init__.py").is_file()
        assert base.reasons == ""
        assert head.source == sides.HEAD
        assert base.cache != head.cache
        assert base.n_signatures == head.n_signatures == 0
        with pytest.raises(sides.GateError, match="base died in ridge with 1 threads"):
            base.ask("ridge", 1)
        with pytest.raises(sides.GateError, match="base died before it counted signatures"):
            _ = base.n_signatures
    trees = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True)
    assert len(trees.stdout.splitlines()) == 1


@in_checkout
@pytest.mark.skipif("NUMBA_CACHE_DIR" in os.environ, reason="kernels of this process are not next to their source")
def test_sides_with_the_same_engine_share_its_kernels(tmp_path):
    """Numba accepts the copies of kernels, because their sources have the same times."""
    git = ["git", "-C", str(tmp_path / "repository"), "-c", "user.name=a", "-c", "user.email=a@b"]
    engine = Path("binfeat", "_engine")
    shutil.copytree(sides.HEAD / engine, tmp_path / "repository" / engine, ignore=shutil.ignore_patterns("__pycache__"))
    commit(git)
    binfeat.transform(np.zeros((2, 2)), n_grids=2)  # compiles it, if no other test has
    with sides.both("HEAD", tmp_path / "repository") as (base, head):
        assert base.cache is head.cache is None
        for source in (head.source / engine).glob("*.py"):
            assert (base.source / engine / source.name).stat().st_mtime_ns == source.stat().st_mtime_ns
        assert list((base.source / engine / "__pycache__").glob("hashing.hash_dense_*.nbc"))
    assert worker.answer({"case": None})["signatures"] > 0


def test_pages_of_models_in_service():
    rows = [
        record.Row(f"{kind}: {what}", 2.0 / times) for kind in serving.KINDS for what, times in serving.FIGURES.values()
    ]
    beside = {"panel": "beside", "rows": 5000, "what": "fit"}
    for peer, seconds in (("LightGBM", 3.0), ("CatBoost", 4.0)):
        rows.append(record.Row(f"fit / {peer}", 1.0, seconds, at={**beside, "peer": peer}))
    parts = serving.parts({"rows": [row.as_dict() for row in rows]})
    assert '"exact, 5,000 rows", "2", "2", "2", "2", "2", "2"' in parts["kinds"]
    assert parts["beside"].split('"')[1:8:2] == ["rows of the fit", "what", "ours", "LightGBM"]
    assert '"5,000", "fit, s", "1", "3", "4"' in parts["beside"]


def test_stages_of_a_fit_take_all_of_its_time():
    rows = list(stages._numbers(200))
    shares = {row.at["stage"]: row.ours for row in rows}
    assert shares.pop("fit") > 0
    assert sum(shares[stage] for stage in (*stages.STAGES, stages.REST)) == pytest.approx(100)
    assert all(shares[stage] > 0 for stage in (*stages.STAGES, *stages.PARTS))
    assert shares["linear maps"] < shares["search"]
    assert '"numbers", "200"' in stages.parts({"rows": [row.as_dict() for row in rows]})["stages"]


def test_parts_of_losses_are_the_ratios_of_all_tables():
    figures = {("a", "log-loss"): (0.2, 0.4), ("b", "log-loss"): (0.3, 0.2), ("a", "pinball loss"): (1.0, 0.00001)}
    rows = [record.Row(f"{name}, {what} / LightGBM", *own, unit="") for (name, what), own in figures.items()]
    rows += [record.Row("a, fit / LightGBM", 1.0, 2.0), record.Row("log-loss / LightGBM, median", 0.9, reach=("<=", 1))]
    parts = losses.parts({"rows": [row.as_dict() for row in rows]})
    assert '"log-loss", "LightGBM", "2", "0.87", "1.00", "1", "b (1.50)"' in parts["losses"]
    assert parts["losses"].count("log-loss") == 1
    assert '"a", "pinball loss", "10000.000"' in parts["tables"]
    assert "log-loss" not in parts["tables"]


@pytest.mark.parametrize("name", [name for name in suite.CASES if hasattr(suite.CASES[name], "NARROWING")])
def test_a_run_without_options_is_a_whole_one(name):
    parser = argparse.ArgumentParser()
    suite.CASES[name].add_options(parser)
    given = vars(parser.parse_args([]))
    assert not any(given[option] for option in suite.CASES[name].NARROWING)
