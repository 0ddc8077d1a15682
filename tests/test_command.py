"""The command: fit, predict and report for tables in files; each failure is one line."""

import io
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hard import each_value_once, hard
from interrupts import interrupted
from limits import limited

import binfeat
from binfeat.cli import commands, main, messages, models, tables

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
sio = pytest.importorskip("skops.io")

LIMITS = {"n_steps": 6, "exact_rows": 0, "sample_grids": (5, 20), "n_fourier": 32}


@pytest.fixture(scope="module")
def flights():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "carrier": rng.choice(["01", "02", "3C"], size=300),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(700, size=300), unit="D"),
            "miles": rng.gamma(2.0, 500.0, size=300),
        }
    )
    frame["delay"] = 15.0 * (frame["carrier"] == "02") + frame["miles"] / 100 + rng.normal(size=300)
    frame.loc[::20, "miles"] = np.nan
    frame["late"] = np.where(frame["delay"] > 15, "yes, late", "no")
    frame["stars"] = rng.integers(1, 6, size=300)
    frame["passengers"] = rng.integers(1, 300, size=300)
    return frame


@pytest.fixture(scope="module")
def folder(flights, tmp_path_factory):
    """Return the table as CSV, Parquet and parts, and models that the command has fitted to it."""
    folder = tmp_path_factory.mktemp("flights")
    flights.to_csv(folder / "flights.csv", index=False)
    flights.to_parquet(folder / "flights.parquet")
    (folder / "parts").mkdir()
    flights[:170].to_parquet(folder / "parts" / "0.parquet")
    flights[170:].to_parquet(folder / "parts" / "1.parquet")
    with limited(**LIMITS):
        for target in ("delay", "late"):
            table, model = str(folder / "flights.csv"), str(folder / f"{target}.skops")
            assert main.main(["fit", table, "--target", target, "--model", model]) == 0
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch, limits, folder):
    limits(**LIMITS)
    monkeypatch.chdir(folder)


def run(*words):
    return main.main([str(word) for word in words])


def failed(capsys, *words):
    """Return the line of a failure."""
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    assert run(*words) == 1
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "error: " in line]
    assert len(lines) == 1
    assert out == ""
    assert "Traceback" not in err
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before  # no file is added or lost
    return lines[0]


def test_fit_says_what_it_took(capsys, tmp_path):
    with limited(**LIMITS):
        assert run("fit", "flights.parquet", "--target", "late", "--model", tmp_path / "m.skops", "--seconds", 9) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["decision", "choice", "validation", "error", "seconds"]
    assert "binfeat: classification: the target 'late' contains 2 labels." in err
    assert "binfeat: penalty: " in err  # a line for each decision
    assert f"model saved to {tmp_path / 'm.skops'}." in err
    model = sio.load(tmp_path / "m.skops", trusted=["binfeat.KernelMachineClassifier"])
    assert model.max_seconds == 9.0
    assert list(model.feature_names_in_) == ["carrier", "day", "miles", "delay", "stars", "passengers"]


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("stars", (), "classification: the target 'stars' contains 5 different integers"),
        ("stars", ("--task", "regression"), "regression: the target 'stars' contains 5 different integers"),
        ("passengers", (), "regression: the target 'passengers' contains"),
        ("delay", (), "regression: the target 'delay' contains real numbers"),
    ],
)
def test_the_task_follows_from_the_target(capsys, monkeypatch, target, options, said):
    class Stop(ValueError):
        pass

    def stop(*_):
        raise Stop

    monkeypatch.setattr(tables, "training_rows", stop)
    assert run("fit", "flights.csv", "--target", target, *options) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("files", ["flights.parquet", "parts/*.parquet"])
def test_categorical_targets(capsys, tmp_path, files):
    for path in Path().glob(files):
        pd.read_parquet(path).astype({"late": "category"}).to_parquet(tmp_path / path.name)
    assert run("fit", tmp_path, "--target", "late", "--model", tmp_path / "m.skops") == 0
    assert "classification: the target 'late' contains 2 labels." in capsys.readouterr().err
    assert models.load(tmp_path / "m.skops").classes_.tolist() == ["no", "yes, late"]


def test_types_that_arrow_does_not_convert_are_failures(capsys, monkeypatch):
    def unsupported(*_):
        raise NotImplementedError("no kernel")

    monkeypatch.setattr(tables, "open_table", unsupported)
    assert failed(capsys, "outliers", "flights.csv") == "binfeat: error: no kernel"


def test_predictions_are_those_of_the_model(capsys, flights):
    model = models.load(Path("delay.skops"))
    expected = model.predict(flights[model.feature_names_in_])
    assert run("predict", "delay.skops", "flights.parquet") == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-12)
    columns = flights.columns[::-1]  # in another order, without the target
    flights[columns].drop(columns="delay").to_parquet("shuffled.parquet")
    assert run("predict", "delay.skops", "shuffled.parquet", "--out", "out.parquet") == 0
    np.testing.assert_array_equal(pd.read_parquet("out.parquet")["prediction"], expected)
    for name in ("shuffled.parquet", "out.parquet"):
        Path(name).unlink()


def test_classes_have_probabilities_and_labels_are_quoted(flights, tmp_path):
    model = models.load(Path("late.skops"))
    assert run("predict", "late.skops", "parts", "--out", tmp_path / "out.csv") == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found) == ["prediction", "probability_no", "probability_yes, late"]
    X = flights[model.feature_names_in_]
    assert found["prediction"].tolist() == model.predict(X).tolist()
    expected = np.concatenate([model.predict_proba(part)[:, 0] for part in (X[:170], X[170:])])  # as files have them
    np.testing.assert_allclose(found["probability_no"], expected, rtol=1e-9)


def test_explanations_are_those_of_the_models(capsys, flights, tmp_path):
    some = flights[:30]
    some.to_parquet(tmp_path / "some.parquet")
    for name in ("delay", "late"):
        model = models.load(Path(f"{name}.skops"))
        assert run("explain", f"{name}.skops", tmp_path / "some.parquet", "--out", tmp_path / "out.csv") == 0
        found = pd.read_csv(tmp_path / "out.csv")
        assert list(found) == ["base", *model.feature_names_in_]
        X = some[model.feature_names_in_]
        scores = model.predict(X) if name == "delay" else model._scores(X)[:, 0]
        np.testing.assert_allclose(found.sum(axis=1), scores, rtol=1e-6, atol=1e-6)
    flights[:20].to_csv(tmp_path / "some.csv", index=False)
    assert run("explain", "delay.skops", tmp_path / "some.csv") == 0
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 20


def test_news_of_several_blocks_are_said_once(capsys, monkeypatch, flights, tmp_path):
    flights[:60].assign(passengers=1e6).to_csv(tmp_path / "far.csv", index=False)
    monkeypatch.setattr(tables, "_BLOCK_ROWS", 20)
    for command in ("predict", "explain"):
        assert run(command, "delay.skops", tmp_path / "far.csv", "--out", tmp_path / "out.csv") == 0
        said = capsys.readouterr().err.splitlines()
        assert [line for line in said if "warning" in line] == [
            "binfeat: warning: the table differs from the training table, so some predictions are extrapolations:"
        ]
        assert any("passengers" in line and "60" in line for line in said)
        assert len(pd.read_csv(tmp_path / "out.csv")) == 60


def test_explanations_relative_to_rows_of_a_file(capsys, flights, tmp_path):
    model = models.load(Path("delay.skops"))
    X = flights[:30][model.feature_names_in_]
    flights[:30].to_parquet(tmp_path / "some.parquet")
    flights[40:90].to_parquet(tmp_path / "others.parquet")
    words = "--background", tmp_path / "others.parquet", "--out", tmp_path / "out.csv"
    assert run("explain", "delay.skops", tmp_path / "some.parquet", *words) == 0
    found, known = pd.read_csv(tmp_path / "out.csv"), model.shapley_values(X, flights[40:90][X.columns])
    np.testing.assert_allclose(found["base"], known.base_values, rtol=1e-9)
    np.testing.assert_allclose(found[model.feature_names_in_], known.values, atol=1e-6)
    given = {"features": "binning", "gamma": "scale", "alpha": 0.1, "solver_params": {"n_grids": 20}, "random_state": 0}
    grids = binfeat.KernelMachineClassifier(**given).fit(X, flights["late"][:30])  # stores no training rows
    models.save(grids, "late", tmp_path / "grids.skops")
    assert "rows as background" in failed(capsys, "explain", tmp_path / "grids.skops", "flights.parquet")
    assert run("explain", tmp_path / "grids.skops", tmp_path / "some.parquet", *words) == 0
    assert list(pd.read_csv(tmp_path / "out.csv")) == ["base", *model.feature_names_in_]


@pytest.mark.parametrize("name", ["flights.tsv", "flights.csv.gz", "flights.tsv.gz", "F.CSV", "F.TSV", "F.CSV.gz"])
def test_tables_with_tabs_and_compressed_ones(capsys, flights, tmp_path, name):
    flights.to_csv(tmp_path / name, index=False, sep="\t" if ".tsv" in name.lower() else ",")
    assert run("predict", "delay.skops", tmp_path / name) == 0
    found = capsys.readouterr().out
    assert run("predict", "delay.skops", "flights.csv") == 0
    assert found == capsys.readouterr().out


def test_predictions_are_compressed_by_the_ending(flights, tmp_path):
    for name in ("plain.csv", "packed.csv.gz"):
        assert run("predict", "delay.skops", "flights.csv", "--out", tmp_path / name) == 0
    assert (tmp_path / "packed.csv.gz").read_bytes()[:2] == b"\x1f\x8b"
    packed = pd.read_csv(tmp_path / "packed.csv.gz", compression="gzip")
    pd.testing.assert_frame_equal(packed, pd.read_csv(tmp_path / "plain.csv"))


def test_endings_may_be_in_upper_case(tmp_path):
    for name in ("plain.csv", "CSV", "OUT.PARQUET", "OUT.TSV.GZ"):  # a name without an ending is CSV
        assert run("predict", "delay.skops", "flights.csv", "--out", tmp_path / name) == 0
    assert (tmp_path / "CSV").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    plain = pd.read_csv(tmp_path / "plain.csv")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "OUT.PARQUET"), plain)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "OUT.TSV.GZ", sep="\t", compression="gzip"), plain)


def test_an_index_without_a_name_is_no_input(capsys, flights, tmp_path):
    flights.sort_values("delay", ignore_index=True).to_csv(tmp_path / "sorted.csv")
    with limited(**LIMITS):
        assert run("fit", tmp_path / "sorted.csv", "--target", "delay", "--model", tmp_path / "sorted.skops") == 0
    model = binfeat.load(tmp_path / "sorted.skops")
    assert set(model.feature_names_in_) == set(flights) - {"delay"}
    for name in ("flights.csv", tmp_path / "sorted.csv"):
        assert run("predict", tmp_path / "sorted.skops", name) == 0


@pytest.mark.parametrize(
    ("encoding", "ending"), each_value_once(["utf-8", "utf-16", "windows-1252"], [".csv", ".csv.gz", ".tsv"])
)
def test_tables_of_a_german_spreadsheet(capsys, flights, tmp_path, ending, encoding):
    table = tmp_path / f"other{ending}"
    flights.assign(Größe=1).to_csv(table, index=False, sep=";", decimal=",", encoding=encoding)
    assert run("predict", "delay.skops", "flights.csv") == 0
    known = capsys.readouterr().out
    assert run("predict", "delay.skops", table) == 0
    out, err = capsys.readouterr()
    assert out == known
    words = {"utf-8": "UTF-8", "utf-16": "UTF-16", "windows-1252": "Windows-1252"}[encoding]
    assert err == f"binfeat: {table}: columns separated by semicolons, decimal commas, encoding {words}.\n"
    options = "--delimiter", ";", "--decimal", ",", "--encoding", encoding
    assert run("predict", *options, "delay.skops", table) == 0
    assert capsys.readouterr().out == known
    if encoding == "utf-8":
        assert "no column 'carrier', " in failed(capsys, "check", "delay.skops", table, "--delimiter", "|")
        assert "columns separated by" not in capsys.readouterr().err
        assert "got 'utf-99'" in failed(capsys, "check", "delay.skops", table, "--encoding", "utf-99")


def test_damaged_tables_make_no_model(capsys, flights, tmp_path):
    flights.to_csv(tmp_path / "nul.csv", index=False)
    content = (tmp_path / "nul.csv").read_bytes()
    (tmp_path / "nul.csv").write_bytes(content[:200] + b"\0" * 4000 + content[5000:])
    words = "--target", "delay", "--model", tmp_path / "m.skops"
    assert "has NUL bytes" in failed(capsys, "fit", tmp_path / "nul.csv", *words)
    (tmp_path / "few.csv").write_text("a,delay\n1,2\n2,3.5\n3,9\n")
    said = failed(capsys, "fit", tmp_path / "few.csv", *words)
    assert "The error of the decision 'length scales' is not finite, so no model was written" in said
    assert not (tmp_path / "m.skops").exists()


@pytest.mark.parametrize("wrong", ["held_out_error_", "feature_coef_"])
def test_errors_that_are_not_finite_make_no_model(capsys, monkeypatch, tmp_path, wrong):
    def fitted(self, *_):
        model = models.load(Path("delay.skops"))
        vars(self).update(vars(model) | {wrong: np.full_like(getattr(model, wrong), np.nan)})

    monkeypatch.setattr(commands.KernelMachineRegressor, "fit", fitted)
    said = failed(capsys, "fit", "flights.csv", "--target", "delay", "--model", tmp_path / "m.skops")
    assert "not finite, so no model was written" in said


def test_a_target_alone_is_no_table(capsys, flights, tmp_path):
    flights[["delay"]].to_csv(tmp_path / "alone.csv", index=False)
    words = "fit", "--target", "delay", tmp_path / "alone.csv"
    assert run(*words) == 1
    assert "error: The table has no column except the target 'delay'." in capsys.readouterr().err


@pytest.mark.parametrize("words", [("fit", "--target", "delay"), ("predict", "delay.skops"), ("report", "delay.skops")])
def test_a_header_alone_is_no_table(capsys, flights, words, tmp_path):
    flights[:0].to_csv(tmp_path / "empty.csv", index=False)
    assert "The table has no rows" in failed(capsys, *words, tmp_path / "empty.csv")


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit) as ended:
        run("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("binfeat ")


def test_several_files_are_read_in_blocks(capsys, flights, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_ROWS", 100)
    for number, paths in enumerate((["parts/0.parquet", "parts/1.parquet"], ["flights.parquet"])):
        with limited(**LIMITS):
            assert run("fit", *paths, "--target", "delay", "--model", tmp_path / f"{number}.skops") == 0
        assert run("predict", tmp_path / f"{number}.skops", *paths, "--out", tmp_path / f"{number}.csv") == 0
    assert run("predict", tmp_path / "0.skops", "parts", "--out", tmp_path / "2.csv") == 0
    first, whole, of_folder = (pd.read_csv(tmp_path / f"{number}.csv") for number in range(3))
    pd.testing.assert_frame_equal(first, of_folder)
    pd.testing.assert_frame_equal(first, whole)  # the sample contains all of these few rows


def test_categories_that_look_like_numbers_and_unknown_ones(capsys, flights):
    some = flights[flights["carrier"] == "02"][:3].assign(carrier="02")
    some.to_csv("some.csv", index=False)
    assert run("predict", "delay.skops", "some.csv") == 0
    out, err = capsys.readouterr()
    assert "warning" not in err
    model = models.load(Path("delay.skops"))
    expected = model.predict(some[model.feature_names_in_])
    np.testing.assert_allclose(pd.read_csv(io.StringIO(out))["prediction"], expected, rtol=1e-12)
    pd.concat([some.assign(carrier=name) for name in ("07", "08", "09", "X", "01")]).to_csv("some.csv", index=False)
    assert run("predict", "delay.skops", "some.csv") == 0
    lines = capsys.readouterr().err.splitlines()
    assert [" ".join(line.split()[1:]) for line in lines] == [
        "warning: the table differs from the training table, so some predictions are extrapolations:",
        "column found rows such as in fit",
        "Column 'carrier' unseen categories 12 '07', '08', '09' 3 categories",
    ]
    assert run("check", "delay.skops", "some.csv") == 3
    assert capsys.readouterr().out.splitlines()[1] == lines[2].removeprefix("binfeat:   ")
    model.set_params(on_unseen="error")
    models.save(model, "delay", Path("strict.skops"))
    assert "Column 'carrier': unseen categories, in 12 rows" in failed(capsys, "predict", "strict.skops", "some.csv")
    for name in ("some.csv", "strict.skops"):
        Path(name).unlink()


def test_words_among_numbers_are_a_finding(capsys, flights, tmp_path):
    flights.assign(miles=["far", *flights["miles"][1:]]).to_csv(tmp_path / "words.csv", index=False)
    assert run("check", "delay.skops", tmp_path / "words.csv") == 3
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "no numbers" in line]
    assert line.split() == ["Column", "'miles'", "no", "numbers", "1", "'far'", "numbers"]


def test_check_of_a_table_as_in_fit(capsys):
    for table in ("flights.parquet", "flights.csv", "parts"):
        assert run("check", "delay.skops", table) == 0
        out, err = capsys.readouterr()
        lines = [
            "300 rows without differences from the training rows.",
            "The table has not drifted significantly: p = 1, ",
        ]
        assert all(line.startswith(known) for line, known in zip(out.splitlines(), lines, strict=True))
        assert not err
    assert "no column 'carrier'" in failed(capsys, "check", "delay.skops", bare_table())


def bare_table():
    pd.DataFrame({"miles": [1.0]}).to_csv("bare.csv", index=False)
    return "bare.csv"


def newer(path):
    """Return the file of a model, as a later version would write it."""
    out = io.BytesIO()
    with zipfile.ZipFile("delay.skops") as old, zipfile.ZipFile(out, "w") as new:
        for item in old.namelist():
            content = old.read(item)
            if item == "schema.json":
                content = content.replace(binfeat.__version__.encode(), b"9.1.0")
            new.writestr(item, content)
    path.write_bytes(out.getvalue())
    return path


def cut(path):
    path.write_bytes(Path("delay.skops").read_bytes()[:-500])
    return path


def foreign(path):
    from sklearn.linear_model import Ridge

    sio.dump(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]), path)
    return path


def ridge(path):
    sio.dump(binfeat.CGRidge(), path)
    return path


def written(text):
    def write(path):
        path.write_text(text)
        return path

    return write


FAILURES = [
    (lambda _: ["fit", "no.csv", "--target", "delay"], r"There is no file or folder no\.csv"),
    (lambda _: ["fit", "delay.skops", "--target", "delay"], "files that end in .parquet, .*; got 'delay.skops'"),
    (
        lambda _: ["fit", "flights.csv", "--target", "dealy"],
        "no column 'dealy'. Its columns are carrier, day, miles, delay",
    ),
    (lambda _: ["fit", "flights.csv", "--target", "miles"], "target 'miles' is missing in 15 of 300 rows"),
    (
        lambda _: ["fit", "flights.csv", "--target", "day"],
        "target 'day' has values of type date32.*Use a column of numbers or labels",
    ),
    (lambda _: ["fit", "flights.csv", "--target", "late", "--task", "regression"], "y must contain numbers, got"),
    (
        lambda _: ["fit", "flights.csv", "--target", "delay", "--model", "no/m.skops"],
        "folder no for the file m.skops",
    ),
    (lambda _: ["fit", "flights.csv", "--target", "delay", "--model", "parts"], "parts is a folder"),
    (lambda p: ["fit", written("a,b\n1,2\nx,3,4\n")(p / "bad.csv"), "--target", "a"], r"bad\.csv.* cannot be read"),
    (lambda p: ["fit", written("PAR1")(p / "bad.parquet"), "--target", "a"], r"bad\.parquet\) cannot be read"),
    (lambda _: ["predict", "no.skops", "flights.csv"], r"There is no file no\.skops"),
    (lambda p: ["predict", newer(p / "new"), "flights.csv"], r"saved by binfeat 9\.1\.0, and this is .*; update"),
    (lambda p: ["predict", cut(p / "cut"), "flights.csv"], "Cannot load a model from .*cut"),
    (lambda _: ["predict", "flights.csv", "flights.csv"], r"Cannot load a model from .*flights\.csv"),
    (lambda p: ["predict", foreign(p / "ridge"), "flights.csv"], "ridge contains no estimator of binfeat"),
    (lambda p: ["predict", ridge(p / "r.skops"), "flights.csv"], "r.skops contains no kernel model, but a CGRidge"),
    (lambda p: ["predict", "delay.skops", written("carrier,day\n1,2\n")(p / "a.csv")], "no column 'miles', 'late'"),
    (
        lambda p: ["predict", "delay.skops", written("carrier,day,miles,late,stars,passengers\n")(p / "a.csv")],
        "The table has no rows",
    ),
    (lambda _: ["report", "delay.skops", "no.csv"], r"There is no file or folder no\.csv"),
]


@pytest.mark.parametrize(("words", "message"), FAILURES)
def test_failures_are_one_line(capsys, tmp_path, words, message):
    assert re.search(message, failed(capsys, *words(tmp_path)))


def test_rows_that_cannot_be_predicted_leave_no_file(capsys, tmp_path, flights):
    flights.assign(miles="far").to_csv(tmp_path / "bad.csv", index=False)
    out = tmp_path / "out.csv"
    line = failed(capsys, "predict", "delay.skops", tmp_path / "bad.csv", "--out", out)
    assert "miles" in line
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_a_failed_write_leaves_the_file_that_was_there(capsys, monkeypatch):
    def fail(model, path):
        path.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(sio, "dump", fail)
    monkeypatch.setattr(commands.KernelMachineRegressor, "summary", lambda self: "")
    assert "no space left" in failed(capsys, "fit", "flights.csv", "--target", "delay", "--model", "delay.skops")


@pytest.mark.parametrize(
    "words", [[], ["fit", "a.csv"], ["fit", "a.csv", "--target", "y", "--seconds", "-1"], ["fti"], ["predict", "m"]]
)
def test_wrong_arguments(capsys, words):
    with pytest.raises(SystemExit) as stopped:
        main.main(words)
    assert stopped.value.code == 2
    assert "usage: binfeat" in capsys.readouterr().err


def linked(path):
    path.hardlink_to("flights.csv")
    return path


def copied(path, name):
    shutil.copy(name, path)
    return path


REPLACED = [
    lambda _: ["predict", "delay.skops", "flights.csv", "--out", "flights.csv"],
    lambda p: ["predict", "delay.skops", "flights.csv", "--out", linked(p / "other.csv")],
    lambda p: ["predict", copied(p / "m.csv", "delay.skops"), "flights.csv", "--out", p / "m.csv"],
    lambda _: ["predict", "delay.skops", "parts", "--out", "parts/1.parquet"],
    lambda _: ["explain", "delay.skops", "flights.csv", "--out", "flights.parquet", "--background", "flights.parquet"],
    lambda _: ["fit", "flights.csv", "--target", "delay", "--model", "flights.csv"],
    lambda p: ["report", copied(p / "m.html", "delay.skops"), "flights.csv"],
]


@pytest.mark.parametrize("words", REPLACED)
def test_files_that_are_read_are_not_replaced(capsys, tmp_path, words):
    words = words(tmp_path)
    assert "is also an input of this command. Pass another file." in failed(capsys, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("predict", "delay.skops", "flights.csv", "--out", "late.skops"),
            "late.skops is a table, so its name must end in .csv, .csv.gz, .tsv",
        ),
        (("predict", "delay.skops", "flights.csv", "--out", "a.csv.bz2"), "must end in .csv, .csv.gz, .tsv"),
        (("predict", "delay.skops", "flights.csv", "--out", "a.parquet.gz"), "must end in .csv, .csv.gz, .tsv"),
        (("predict", "delay.skops", "flights.csv", "--out", "a.arrow"), "a.arrow is a table, so its name must end in"),
        (("outliers", "flights.csv", "--out", "late.skops"), "late.skops is a table, so its name must end in"),
        (("fit", "parts", "--target", "delay", "--model", "flights.csv"), "is a model, so its name must end in .skops"),
        (("fit", "parts", "--target", "delay", "--model", "T.CSV"), "is a model, so its name must end in .skops"),
        (("fit", "parts", "--target", "delay", "--model", "report.HTML"), "is a model, so its name must end in .skops"),
    ],
)
def test_files_of_another_kind_are_not_replaced(capsys, words, message):
    assert message in failed(capsys, *words)


@pytest.mark.skipif(os.name != "posix", reason="devices and modes of POSIX")
def test_devices_and_modes_are_kept(capsys, flights, tmp_path):
    assert run("predict", "delay.skops", "flights.csv", "--out", "/dev/null") == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    (tmp_path / "out.tsv").touch(mode=0o600)
    assert run("predict", "late.skops", "flights.csv", "--out", tmp_path / "out.tsv") == 0
    assert stat.S_IMODE((tmp_path / "out.tsv").stat().st_mode) == 0o600
    found = pd.read_csv(tmp_path / "out.tsv", sep="\t")
    assert list(found) == ["prediction", "probability_no", "probability_yes, late"]


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_pipes_may_have_any_name(tmp_path):
    os.mkfifo(tmp_path / "out.pipe")
    with subprocess.Popen(["cat", tmp_path / "out.pipe"], stdout=subprocess.PIPE) as reader:
        assert run("predict", "delay.skops", "flights.csv", "--out", tmp_path / "out.pipe") == 0
        assert len(pd.read_csv(reader.stdout)) == 300


@pytest.fixture
def not_ignored(number):
    """Handle the signal by default, because tests under nohup inherit that it is ignored."""
    handle = signal.signal  # which the test replaces
    inherited = handle(number, signal.SIG_DFL)
    yield
    handle(number, inherited)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.usefixtures("not_ignored")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing(capsys, monkeypatch, tmp_path, number):
    def end(self, X):
        assert len(list(tmp_path.iterdir())) == 1
        os.kill(os.getpid(), number)

    monkeypatch.setattr(commands.KernelMachineRegressor, "predict", end)
    known = signal.getsignal(number)
    assert run("predict", "delay.skops", "flights.csv", "--out", tmp_path / "out.csv") == 128 + number
    assert capsys.readouterr().err == "binfeat: terminated; no file was written.\n"
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is known
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)  # as with nohup
    monkeypatch.setattr(os, "kill", lambda *_: None)
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("a handler was set"))
    monkeypatch.setattr(commands.KernelMachineRegressor, "predict", lambda self, X: np.zeros(len(X)))
    assert run("predict", "delay.skops", "flights.csv", "--out", tmp_path / "out.csv") == 0


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("lost", [None, ImportError("initialization failed")])
def test_signals_end_the_command_if_an_import_drops_or_replaces_their_exception(capsys, monkeypatch, tmp_path, lost):
    def ignore(self, X):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException:
            if lost is not None:
                raise lost from None
        return np.zeros(len(X))

    words = "predict", "delay.skops", "flights.csv", "--out", tmp_path / "out.csv"
    with monkeypatch.context() as patch:
        patch.setattr(commands.KernelMachineRegressor, "predict", ignore)
        assert run(*words) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "binfeat: terminated; no file was written.\n"
    assert list(tmp_path.iterdir()) == []
    assert run(*words) == 0


def test_closed_standard_output(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    assert run("predict", "delay.skops", "flights.csv") == 1
    assert capfd.readouterr().err == "binfeat: error: standard output is closed. Pass an output file by --out.\n"
    monkeypatch.setattr(sys, "stdout", None)
    assert run("predict", "delay.skops", "flights.csv", "--out", tmp_path / "out.csv") == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 300
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)  # messages would go to standard output
    assert run("check", "delay.skops", "flights.csv") == 0
    assert run("check", "delay.skops", "no.csv") == 1
    assert capfd.readouterr() == ("", "")


def test_output_in_an_encoding_that_lacks_characters(flights, monkeypatch, tmp_path):
    flights.assign(carrier="Größe").to_csv(tmp_path / "new.csv", index=False)
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    assert run("check", "delay.skops", tmp_path / "new.csv") == 3
    assert rb"Gr\xf6\xdfe" in printed.getvalue()


class Full(io.StringIO):
    def flush(self):
        raise OSError("no space left")


def test_standard_output_without_space(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr(main, "drop_output", lambda: None)
    assert run("check", "delay.skops", "flights.csv") == 1
    assert capsys.readouterr().err == "binfeat: error: no space left\n"


EVIL = "\x1b[31mred\u202e"


@pytest.fixture
def evil(flights, tmp_path):
    """Return a table and a model with names and classes that would color a terminal and reverse text."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({EVIL: rng.normal(size=200), "b": rng.normal(size=200)})
    frame["y"] = np.where(frame[EVIL] > 0, f"up {EVIL}", "down")
    frame.to_parquet(tmp_path / "evil.parquet")
    given = {"features": "binning", "gamma": "scale", "alpha": 0.1, "solver_params": {"n_grids": 5}, "random_state": 0}
    model = binfeat.KernelMachineClassifier(**given).fit(frame[[EVIL, "b"]], frame["y"])
    models.save(model, f"y {EVIL} \udc80", tmp_path / "evil.skops")
    return tmp_path


def is_safe(text):
    return all(character.isprintable() or character == "\n" for character in text)


def test_names_do_not_reach_the_terminal_as_they_are(capsys, monkeypatch, evil):
    table, model = evil / "evil.parquet", evil / "evil.skops"
    assert run("predict", model, table) == 0
    assert EVIL in capsys.readouterr().out  # a pipe receives unchanged names
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("predict", model, table) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == r'"prediction","probability_down","probability_up \x1b[31mred\u202e"'
    assert len(out.splitlines()) == 201
    assert is_safe(out + err)
    pd.read_parquet(table).assign(**{EVIL: 1e6}).to_parquet(table)
    for words in (("check", model, table), ("predict", model, table), ("predict", model, "flights.csv")):
        run(*words)
        out, err = capsys.readouterr()
        assert r"\x1b[31mred\u202e" in out + err
        assert is_safe(out + err)
    with pytest.raises(SystemExit):
        run("predict", model, table, f"--{EVIL}")
    assert is_safe(capsys.readouterr().err)
    (evil / "evil.csv").write_text(f"{EVIL},y\n1,2\n2,3,4\n")
    assert run("fit", evil / "evil.csv", "--target", "z") == 1
    assert is_safe(capsys.readouterr().err)


def test_reports_of_names_that_are_no_text(capsys, evil):
    pytest.importorskip("matplotlib")
    assert run("report", evil / "evil.skops") == 0
    text = (evil / "evil.html").read_text(encoding="utf-8")
    assert is_safe(text)
    assert r"<h1>KernelMachineClassifier for y \x1b[31mred\u202e \udc80</h1>" in text


def test_ctrl_c_writes_nothing(capsys):
    with interrupted(tables, "training_rows"):
        assert run("fit", "flights.csv", "--target", "delay", "--model", "none.skops") == 130
    assert "interrupted; no file was written" in capsys.readouterr().err
    assert not Path("none.skops").exists()


@pytest.mark.parametrize(("package", "remedy"), [("pyarrow.dataset", "parquet"), ("skops.io", "persist")])
def test_missing_packages_are_named(capsys, without_package, package, remedy):
    without_package(package)
    line = failed(capsys, "fit", "flights.csv", "--target", "delay")
    assert f"pip install 'binfeat[{remedy}]'" in line


def test_a_terminal_shows_a_bar_and_the_file_keeps_nothing_of_it(capsys, monkeypatch, tmp_path):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before version 1.9")
    pytest.importorskip("rich")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    made = []
    monkeypatch.setattr(messages, "_progress_bar", lambda bar=messages._progress_bar: made.append(bar()) or made[-1])
    with limited(**LIMITS):
        assert run("fit", "flights.csv", "--target", "delay", "--model", tmp_path / "m.skops") == 0
    assert len(made) == 1
    assert "penalty: " not in capsys.readouterr().err
    assert sio.get_untrusted_types(file=tmp_path / "m.skops") == ["binfeat.KernelMachineRegressor"]


@pytest.mark.parametrize("rows", [["parts"], *hard([])], ids=["new rows", "no rows"])
def test_reports(capsys, tmp_path, rows):
    pytest.importorskip("matplotlib")
    shutil.copy("late.skops", tmp_path / "late.skops")
    assert run("report", tmp_path / "late.skops", *rows) == 0
    assert f"report saved to {tmp_path / 'late.html'}." in capsys.readouterr().err
    text = (tmp_path / "late.html").read_text(encoding="utf-8")
    assert "<h1>KernelMachineClassifier for late</h1>" in text
    assert ("Wrong labels" in text) == bool(rows)


@pytest.mark.hard
def test_a_report_of_many_rows_draws_some(capsys, flights, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(tables, "_REPORT_ROWS", 60)
    monkeypatch.setattr(tables, "_BLOCK_ROWS", 70)
    shutil.copy("delay.skops", tmp_path / "delay.skops")
    assert run("report", tmp_path / "delay.skops", "parts") == 0
    assert "the report uses a random sample of 60 of the 300 rows." in capsys.readouterr().err
    X, y, n_rows = tables.sample_with_target(tables.open_table([Path("parts")], {}), "delay")
    assert (len(X), n_rows) == (60, 300)
    assert X.column("passengers").to_pylist() == flights.set_index("delay")["passengers"][y].tolist()
    assert (np.diff(flights.reset_index().set_index("delay")["index"][y]) > 0).all()


def test_a_report_needs_the_target(capsys, flights, tmp_path):
    model = models.load(Path("late.skops"))
    del model._target
    sio.dump(model, tmp_path / "m.skops")
    assert "m.skops does not contain the name of the target" in failed(
        capsys, "report", tmp_path / "m.skops", "flights.csv"
    )
    flights.assign(late="perhaps").to_csv(tmp_path / "new.csv", index=False)
    assert "labels that are not classes of the model: ['perhaps']" in failed(
        capsys, "report", "late.skops", tmp_path / "new.csv"
    )


def test_as_a_process():
    """Only one such test, because skops and scikit-learn make the start slow."""
    words = [sys.executable, "-m", "binfeat", "fit", "flights.csv", "--target", "dealy"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("binfeat: error: The table has no column 'dealy'. Its columns are carrier, ")
