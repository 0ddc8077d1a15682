"""Figures on pages equal those of the code and of records, and are the same on all pages."""

import csv
import re
import tomllib
from pathlib import Path

import pytest
from kernel_models import FIXED
from limits import current_limits

import binfeat
from binfeat.length_scales.search import MOST_INPUTS
from binfeat.models.kernel_algebra import solve
from perf import record, report
from perf.cases import features

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "examples" / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
EXACT_ROWS = f"{current_limits().exact_rows:,} rows"


def words_of(path):
    """Return the text of a page in one line, without comment characters."""
    text = re.sub(r"^# ?", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return " ".join(text.split())


def in_one_line(text):
    return " ".join(text.split())


README = words_of(ROOT / "README.md")
MODEL_DOCSTRING = in_one_line(binfeat.KernelMachineRegressor.__doc__)
MATHEMATICS = words_of(DOCS / "guide" / "plot_11_mathematics.py")
QUESTIONS, LIMITS = words_of(DOCS / "questions.rst"), words_of(DOCS / "guide" / "plot_06_limits.py")


@pytest.mark.parametrize(
    "text",
    [
        README,
        words_of(DOCS / "guide" / "plot_03_decisions.py"),
        words_of(DOCS / "how_it_works.rst"),
        MODEL_DOCSTRING,
        MATHEMATICS,
    ],
    ids=["README", "guide", "how it works", "docstring", "mathematics"],
)
def test_rows_of_exact_models(text):
    assert EXACT_ROWS in text


def test_inputs_up_to_which_exact_models_take_so_many_rows():
    inputs = f"more than {round(current_limits().exact_work / current_limits().exact_rows ** 2)} inputs"
    assert f"(fewer with {inputs})" in MATHEMATICS
    text = words_of(DOCS / "guide" / "plot_08_text.py")
    assert f'With {inputs}, "auto" uses exact models for fewer than {EXACT_ROWS} only' in text


def test_rows_of_cells():
    rows = f"{current_limits().cell_rows:,}"
    assert f"default: {rows}, doubled" in MODEL_DOCSTRING
    assert f"until cells have m = {rows} rows" in MATHEMATICS


def test_inputs_of_wide_tables():
    assert f"more than {MOST_INPUTS:,} columns of numbers" in MATHEMATICS


def test_rows_of_exact_models_beside_other_software():
    assert f"exact up to {current_limits().exact_rows:,}, in cells beyond" in words_of(DOCS / "compare.rst")


def bytes_of_a_pair(n_rows):
    return round(float(solve.solve_bytes(n_rows, n_targets=1)) / n_rows**2)


@pytest.mark.parametrize("text", [MATHEMATICS, QUESTIONS, LIMITS], ids=["mathematics", "questions", "guide"])
def test_bytes_of_a_pair_of_rows(text):
    factorized = bytes_of_a_pair(solve.cholesky_rows(1))
    iterated = bytes_of_a_pair(current_limits().exact_rows)
    assert f"needs {factorized} bytes per pair of rows" in text
    assert f"{iterated} byte if it is solved by iterations" in text


@pytest.mark.parametrize("text", [MATHEMATICS, QUESTIONS], ids=["mathematics", "questions"])
def test_rows_that_are_factorized(text):
    few, many = solve.cholesky_rows(1), solve.cholesky_rows(1000)
    assert re.search(rf"\b{few:,}( rows)? with one target,? and (of more than )?{many:,} with many", text)


def test_gigabytes_of_the_largest_exact_model():
    gigabytes = float(solve.solve_bytes(current_limits().exact_rows, n_targets=1)) / 1e9
    assert f"of {EXACT_ROWS} takes {gigabytes:.1f} GB" in words_of(DOCS / "how_it_works.rst")


def test_report_says_the_bytes_that_a_fit_expects(rng, tmp_path):
    pytest.importorskip("matplotlib")
    X = rng.normal(size=(120, 2))
    model = binfeat.KernelMachineRegressor(**{**FIXED, "features": "exact"}).fit(X, X[:, 0])
    model.report(tmp_path / "model.html")
    expected = float(solve.solve_bytes(120, n_targets=1)) / 1e6
    text = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert f"{expected:,.1f} MB for 120 rows" in text


def test_one_description():
    assert binfeat.__doc__ == PROJECT["description"]


def test_one_version():
    number = PROJECT["version"]
    assert f"\nversion: {number}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## \[{re.escape(number)}\] - (.*)$", CHANGELOG, flags=re.MULTILINE)
    assert f"\ndate-released: {section}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert CHANGELOG.index("## [Unreleased]") < CHANGELOG.index(f"## [{number}]")


def test_pictures_of_the_readme_are_there():
    """Links are absolute, so that PyPI also shows them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    homes = ("https://raw.githubusercontent.com/binfeat/binfeat/main/", f"{PROJECT['urls']['Homepage']}/blob/main/")
    own = [link.removeprefix(home) for link in links for home in homes if link.startswith(home)]
    assert [name for name in own if not (ROOT / name).exists()] == []
    assert [link for link in links if not link.startswith("https://")] == []


def test_every_picture_of_the_suite_is_on_a_page():
    text = "\n".join(path.read_text(encoding="utf-8") for path in (*report.PAGES, ROOT / "perf" / "README.md"))
    assert {path.name for path in report.PICTURES.iterdir()} == set(re.findall(r"pictures/(\w+\.png)", text))


def rows_of_tables(path):
    """Return the cells of all rows of the Markdown tables of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def percent_lower(ratio):
    return round(100 * (1 - float(ratio)))


def standings(part, title=None):
    """Return the rows of a table of the benchmarks: the first table of a part, or the table with a title."""
    text = (DOCS / "standings.rst").read_text(encoding="utf-8").partition(f".. perf: {part}\n")[2]
    own = text if title is None else text.partition(f"<summary>{title}</summary>")[2]
    (header, *rows) = csv.reader(
        re.findall(r'^ +(?::header: )?(".*")$', own.split(".. csv-table::")[1], flags=re.MULTILINE),
        skipinitialspace=True,
    )
    return [dict(zip(header, row, strict=True)) for row in rows]


def beside(part, title):
    """Return our figures divided by each peer's, on a group of tables."""
    return {row["other model"]: row for row in standings(part, title)}


PEERS = {
    "LightGBM, 500 trees of 63 leaves": "lightgbm",
    "XGBoost, defaults": "xgboost",
    "CatBoost, defaults": "catboost",
}


def test_peers_of_the_readme_are_those_that_were_measured():
    ours = beside("tables:groups", "Real tables")
    shown = {row[0]: row[1:] for row in rows_of_tables(ROOT / "README.md") if row[0] in PEERS}
    assert shown.keys() == PEERS.keys()
    for name, peer in PEERS.items():
        own = ours[peer]
        counts = own["won-tied-lost"].rstrip("*").replace("-", ", ")
        errors = [f"{percent_lower(own[kind])} %" for kind in ("mean", "median")]
        assert shown[name] == [*errors, counts, f"{own['fit']} times", f"{own['predict']} times"]
    assert f"on {ours['lightgbm']['tables']} real tables with three splits each" in README
    assert f"include {len(ours) - len(PEERS)} other models" in README


def test_summary_of_the_benchmarks():
    page = " ".join((DOCS / "standings.rst").read_text(encoding="utf-8").partition("Protocol\n")[0].split())
    real = beside("tables:groups", "Real tables")
    losses = {(row["loss"], row["other model"]): row for row in standings("losses:losses")}
    mean, median = ({peer: percent_lower(own[kind]) for peer, own in real.items()} for kind in ("mean", "median"))
    wins, _, defeats = real["lightgbm"]["won-tied-lost"].rstrip("*").split("-")
    assert f"the error is {mean['lightgbm']} % lower in the geometric mean and {median['lightgbm']} % lower" in page
    assert f"lower on {wins} tables, higher on {defeats}. Compared with CatBoost it is {mean['catboost']} % and" in page
    for kind in ("drawn", "keel"):
        own = beside(f"tables.{kind}:groups", "Real tables")["catboost"]
        lower, (wins, _, defeats) = percent_lower(own["mean"]), own["won-tied-lost"].rstrip("*").split("-")
        assert f"- *{own['tables']} " in page
        assert f"the error is {lower} % lower in the geometric mean and {percent_lower(own['median'])} % lower" in page
        assert f"lower in the median: lower on {wins} tables, higher on {defeats}." in page
    assert f"is {real['lightgbm']['fit']} times the time of LightGBM" in page
    assert f"and {real['catboost']['fit']} times the time of CatBoost" in page
    for peer in ("LightGBM", "CatBoost"):
        assert f"{percent_lower(losses['log-loss', peer]['mean'])} % lower than {peer}'s" in page


def test_python_of_the_readme():
    assert f"binfeat needs Python {PROJECT['requires-python'].removeprefix('>=')} or later." in README


RELEASED, _ = record.newest(record.RELEASED)
KINDS = {  # of features, by their names in the README
    '`RandomBinning(gamma="learn", output="codes")`': "RandomBinning, learned",
    "`binfeat.transform`": "transform",
    "`RandomFourier`": "RandomFourier",
    "scikit-learn's `RBFSampler`": "RBFSampler",
    "scikit-learn's `Nystroem`": "Nystroem",
    "scikit-learn's `RandomTreesEmbedding`, depth 10": "RandomTreesEmbedding",
}


def test_features_of_the_readme_are_those_that_were_measured():
    figures = {row["what"]: row["ours"] for row in RELEASED["features"].content["rows"]}
    shown = {row[0]: row[1:] for row in rows_of_tables(ROOT / "README.md") if row[0] in KINDS}
    assert shown.keys() == KINDS.keys()
    for name, kind in KINDS.items():
        speed, memory, error = (
            figures[f"{kind}: {what}"] for what in (features.SPEED, features.MEMORY, features.ERROR)
        )
        assert shown[name] == [f"{round(speed, -3):,.0f}", f"{memory:.0f} MB", f"{error:.1f} %"]
    assert f"Its test error on the inputs themselves is {figures['the inputs: test error']:.1f} %" in README
    assert f"{features.N_ROWS:,} training rows, 54 standardized inputs" in README


MEASURED = [  # sentences of each part of the benchmarks, and their figures
    ("``fit_transform`` with 50 grids takes {} s.", "binning", "fit_transform / NumPy, integer dot", "ours"),
    ("It is {} times faster than NumPy code", "binning", "fit_transform / NumPy, integer dot", "measured"),
    ("and {} times faster than", "binning", "fit_transform / RandomTreesEmbedding.transform", "measured"),
    ("with 1 % nonzeros are hashed {} times faster", "binning", "CSR input / dense, hashing", "measured"),
    ("``transform`` is {} times faster than", "fourier", "float32, transform / RBFSampler.transform", "measured"),
    ("in float32, and {} times in float64", "fourier", "float64, transform / RBFSampler.transform", "measured"),
    ("binning features is {} times faster", "ridge", "default fit / RidgeClassifier(sparse_cg)", "measured"),
    ("with a vector are {} times faster", "ridge", "both products, 1 columns, float64 / SciPy", "measured"),
    ("a ridge model with seven targets takes {} times as long", "ridge", "7 classes / 1", "measured"),
    ("fits of kernel models take {} times as long", "tables", "fit / LightGBM's, geometric mean", "ours"),
]


@pytest.mark.parametrize(("sentence", "case", "what", "figure"), MEASURED)
def test_figures_in_sentences_are_those_of_the_records(sentence, case, what, figure):
    kept = RELEASED[case].content
    (row,) = (row for row in kept["rows"] if row["what"] == what)
    assert sentence.format(f"{row[figure]:.3g}") in words_of(DOCS / "measured.rst")
    minor, _, _ = PROJECT["version"].rpartition(".")
    assert kept["versions"]["binfeat"].startswith(f"{minor}.")
