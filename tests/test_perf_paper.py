"""The paper's Table 1 in perf: figures, data sets, choices on validation rows."""

import argparse

import numpy as np
import pytest
from hard import hard
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import Bunch

pytest.importorskip("perf", reason="perf is in the checkout only")

from binfeat import kernels
from perf import choice, exact, fetch, paper, suite, tasks
from perf.cases import table1
from perf.data import MissingDataError, Split
from perf.measure import Times
from perf.record import Row

METHODS = (choice.FOURIER, choice.ONE_GAMMA)


@pytest.fixture(autouse=True)
def folder_of_data(monkeypatch):
    monkeypatch.setenv("BINFEAT_DATA", "a folder that no test here reads")


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, (400, 3))
    return X, np.sin(4 * X[:, 0])


def split_of(X, y, n=300):
    return Split(X[:n], y[:n], X[n:], y[n:])


def test_rows_keep_their_coordinates():
    at = {"panel": "P", "x": 50, "series": "learned"}
    assert Row("a", 1.0, at=at).as_dict()["at"] == at
    assert Row("a", 1.0).as_dict()["at"] is None


def test_table_1_has_every_data_set_of_ours():
    assert list(paper.TABLE_1) == list(tasks.LOADERS)
    assert all(name in paper.TABLE_1 for name, _ in table1.ERRORS)
    assert paper.TABLE_1["Forest Cover"].binning == paper.Published(2.2, 1500, 50)


def test_mean_exponent(rng):
    X = rng.uniform(size=(3000, 2))
    np.testing.assert_allclose(choice.mean_exponent(X, 1), 2 / 3, rtol=0.05)
    np.testing.assert_allclose(choice.mean_exponent(X, 2), 2 / 6, rtol=0.1)
    assert choice.mean_exponent(sparse.csr_array(X), 1) == choice.mean_exponent(X, 1)


@pytest.mark.parametrize(
    "candidates", [choice.fourier, choice.one_gamma, choice.learned_binning, *hard(choice.learned_fourier)]
)
def test_candidates_are_models_of_either_kind(candidates, table):
    X, y = table
    regressor, classifier = (next(iter(candidates(X, target, 20))).fit(X, target) for target in (y, y > 0))
    assert regressor.score(X, y) > 0
    assert classifier.score(X, y > 0) > 0.5


def test_sparse_flags_are_not_scaled(rng):
    X, y = sparse.random(200, 10, density=0.3, format="csr", rng=rng), rng.integers(2, size=200) > 0
    found = list(choice.one_gamma(X, y, 5))
    assert len(found) == len(choice.BINNING_KERNELS) * len(choice.EXPONENTS)
    assert choice.describe(found[0].set_params(ridge__alpha=0.5)).startswith("no scaling, Laplacian(), gamma")
    assert found[0].fit(X, y).predict(X).shape == (200,)


def test_the_best_model_is_that_of_the_held_out_rows(table):
    X, y = table
    ours = [choice.model("passthrough", choice._binning(kernels.Laplacian(), g, 60), True) for g in (1e-4, 2, 1e4)]
    best, score = choice.best_of(ours, X, y, [100.0, 0.1])
    assert best["features"].gamma == 2
    assert best["ridge"].alpha == 0.1
    assert 0.5 < score < 1


def test_a_choice_is_refined_and_of_full_size(table, monkeypatch):
    monkeypatch.setattr(choice, "FOURIER_COMPONENTS", 10)
    best = choice.FOURIER.choose(*table, 40, step=5)
    assert best["features"].n_components == 80
    assert best["ridge"].fit(*table).solver_ == "gram"
    coarse = [one["features"].gamma for one in choice.fourier(*table, 40)][::5]
    assert min(abs(best["features"].gamma / (factor * g) - 1) for g in coarse for factor in choice.FACTORS) < 1e-9


def test_a_choice_sees_so_many_rows(table, monkeypatch):
    X, y = table
    seen = []

    def first_of(models, X, y, alphas):
        seen.append(len(y))
        return next(iter(models)).set_params(ridge__alpha=1.0), 1.0

    monkeypatch.setattr(choice, "best_of", first_of)
    choice.Method("some", "binning", choice.one_gamma, choice.BINNING_ALPHAS, (100, None)).choose(X, y, 5)
    assert seen == [100, 400]


def test_finer_widths_multiply_learned_ones():
    learned = choice.model(StandardScaler(), choice._binning(kernels.Laplacian(), np.array([1.0, 2.0]), 5), True)
    finer = [one["features"].gamma for one in choice.finer(learned)]
    np.testing.assert_allclose(finer, np.outer(choice.FACTORS, [1.0, 2.0]))
    assert "learned length scales" in choice.describe(learned)


def test_waves_are_computed_where_memory_is_short(table, monkeypatch):
    X, y = table
    model = choice.model(MinMaxScaler(), choice.StreamableFourier(n_components=20, random_state=0), True)
    held = clone(model).fit(X, y).predict(X)
    monkeypatch.setattr(choice, "memory_limit", lambda: 1)
    np.testing.assert_allclose(clone(model).fit(X, y).predict(X), held, rtol=1e-6)


@pytest.mark.parametrize("regression", [True, *hard(False)])
def test_exact_models(regression, table):
    X, y = (part[:150] for part in table)
    y = y if regression else y > 0
    names = []
    for name, model, grid, _ in exact.models(StandardScaler(), StandardScaler().fit_transform(X), regression):
        best = exact.chosen(model, {key: values[-2:] for key, values in grid.items()}, X, y)
        names.append(name)
        assert best.fit(X, y).score(X, y) > 0.5
    assert names == (["SVR", "KernelRidge"] if regression else ["SVC", "LinearSVC"]) + ["Nystroem + ridge"]


@pytest.mark.hard
def test_table_1_of_a_small_task(table):
    X, y = (part[:160] for part in table)
    task = tasks.Task("CPU", [split_of(X, y, 120), split_of(X[::-1], y[::-1], 120)], "some rows")
    rows = list(table1.of_task(task, step=10, methods=METHODS))
    by_name = {row.what: row for row in rows}
    assert rows[0].what == "CPU: some rows"
    assert by_name["CPU, Fourier + LS, D = 300, error"].reach == ("<=", 3.6)
    assert by_name["CPU, Binning + LS, one gamma, P = 350, training / the paper's in 2007"].reach == (">=", 100)
    assert by_name["CPU, ASVM in the paper, error"].cells[1:3] == ("", "11 %")
    assert "CPU, KernelRidge, 120 of 120 rows, error" in by_name


def test_tables_of_the_page_of_table_1():
    rows = []
    for name, published in paper.TABLE_1.items():
        for method in table1.METHODS:
            own = getattr(published, method.column)
            what = f"{name}, {method.name}, {'D' if method.column == 'fourier' else 'P'} = {own.size}"
            rows.append(Row(f"{what}, error / the paper's", 2.5, own.error, unit="%"))
            if name == "CPU":
                rows.append(Row(f"{what}, error, standard deviation over splits or draws", 0.125, unit="points"))
            rows.append(Row(f"{what}, training / the paper's in 2007", Times((0.5, 0.5)), float(own.seconds)))
    rows += [Row("CPU, SVR, 6,500 of 6,500 rows, error", 3.0, unit="%")]
    rows += [
        Row("CPU, SVR, 6,500 of 6,500 rows, training", Times((4.0,))),
        Row("CPU, CVM in the paper, error", None, 5.5),
    ]
    parts = table1.parts({"rows": [row.as_dict() for row in rows]})
    lines = parts["methods"].splitlines()
    assert len(lines) == 2 + len(paper.TABLE_1)
    assert lines[2].startswith(
        "| CPU | 2.5 % (± 0.125 points), 0.5 s (1.00), 40x | 2.5 % (± 0.125 points), 0.5 s (1.00), 40x |"
    )
    assert lines[2].endswith(
        "| 3.6 %, 20 s | " + 2 * "2.5 % (± 0.125 points), 0.5 s (1.00), 360x | " + "5.3 %, 180 s |"
    )
    assert lines[3].startswith("| Census | 2.5 %, 0.5 s (1.00), 72x |")
    assert parts["others"].splitlines()[2:] == ["| CPU | SVR | 6,500 of 6,500 rows | 3 % | 4 s |"]


@pytest.mark.hard
def test_table_1_of_one_column(table):
    X, y = (part[:160] for part in table)
    loaders = {"CPU": lambda: tasks.Task("CPU", [split_of(X, y, 120)] * 2, "some rows")}
    rows = table1.run(True, only=["CPU"], column="fourier", loaders=loaders, methods=METHODS, quick_rows=80)
    names = [row.what for row in rows]
    assert "CPU, Fourier + LS, D = 300, error" in names
    assert not any("Binning" in name or "KernelRidge" in name for name in names)
    with pytest.raises(argparse.ArgumentTypeError, match="unknown: GPU; there are: CPU"):
        suite.names_among(loaders)("CPU,GPU")


def test_a_data_set_that_fails_leaves_the_others(table):
    def absent():
        raise MissingDataError("cpu_act.csv.gz is not bundled; set BINFEAT_DATA.")

    def broken(X, y, size):
        raise ValueError("no more")

    loaders = {"CPU": absent, "Adult": lambda: tasks.Task("Adult", [split_of(*table)], "figure")}
    methods = [choice.Method("broken", "fourier", broken, choice.FOURIER_ALPHAS)]
    skipped, figure, failed = table1.run(True, loaders=loaders, methods=methods, quick_rows=80)
    assert (skipped.what, skipped.error) == ("CPU", "cpu_act.csv.gz is not bundled; set BINFEAT_DATA.")
    assert (figure.what, failed.what) == ("Adult: figure", "Adult")
    assert "no more" in failed.error


def test_tasks_of_numbers(rng):
    task = tasks.cpu(Bunch(cpu_act=lambda: (rng.normal(size=(7_000, 3)), rng.normal(size=7_000))))
    assert (len(task.splits), len(task.splits[0].y), task.is_regression) == (tasks.N_SPLITS, 6_500, True)
    assert "500 rows to test" in task.deviation
    assert len(task.quick(50).splits[0].y) == 50
    source = Bunch(forest_cover=lambda: (rng.integers(9, size=(100, 4)), np.arange(100) % 7 + 1))
    split = tasks.forest_cover(source).splits[0]
    assert (split.X.shape, split.y_test.tolist()) == ((90, 4), [k % 7 == 1 for k in range(90, 100)])


def test_sparse_rows_of_adult_suit_every_model(rng):
    X = sparse.random(20, 4, density=0.5, format="csr", rng=rng)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y = np.arange(20) % 2 * 2 - 1
    split = tasks.adult(Bunch(adult_a9a=lambda: Split(X, y, X, y))).splits[0]
    assert (split.X.indices.dtype, split.X.indptr.dtype, split.y.dtype) == (np.int32, np.int32, bool)
    np.testing.assert_array_equal(split.X_test.toarray(), X.toarray())


def test_connections_are_coded_as_numbers():
    pd = pytest.importorskip("pandas")

    def frame(protocols):
        return pd.DataFrame({"c0": [1, 2, 3], "c1": pd.Categorical(protocols)})

    attacks = np.array([True, False, True])
    split = Split(frame(["tcp", "udp", "tcp"]), attacks, frame(["udp", "other", "tcp"]), attacks)
    coded = tasks.kddcup99(Bunch(kddcup99=lambda: split)).splits[0]
    np.testing.assert_array_equal(coded.X, [[1, 1, 0], [2, 0, 1], [3, 1, 0]])
    np.testing.assert_array_equal(coded.X_test, [[1, 0, 1], [2, 0, 0], [3, 1, 0]])


def test_tables_are_fetched_without_a_folder(monkeypatch, rng):
    monkeypatch.delenv("BINFEAT_DATA")
    tables = {
        "cpu_act": Bunch(data=rng.normal(size=(7_000, 3)), target=np.arange(7_000)),
        "house_16H": Bunch(data=np.zeros((19_000, 2)), target=np.arange(19_000), feature_names=["a", "b"]),
        "house_8L": Bunch(data=np.ones((19_000, 2)), target=np.arange(19_000), feature_names=["b", "c"]),
        "a9a": Bunch(data=sparse.csr_matrix(np.ones((32_600, 1))), target=np.where(np.arange(32_600) % 2, "1", "-1")),
    }
    monkeypatch.setattr(fetch, "fetch_openml", lambda name, version, as_frame: tables[name])
    assert len(tasks.cpu().splits[0].y_test) == 500
    np.testing.assert_array_equal(tasks.census().splits[0].X[0], [0, 0, 1])
    adult = tasks.adult().splits[0]
    assert (adult.X.shape, adult.y[:2].tolist(), len(adult.y_test)) == ((32_561, 1), [False, True], 39)


def test_connections_are_fetched(monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.delenv("BINFEAT_DATA")
    frame = pd.DataFrame({"duration": [1, 2] * 10, "protocol_type": [b"tcp", b"udp"] * 10}, dtype=object)
    for name in ("service", "flag"):
        frame[name] = b"a"
    target = pd.Series([b"normal.", b"smurf."] * 10)
    monkeypatch.setattr(fetch, "fetch_kddcup99", lambda percent10, as_frame: Bunch(data=frame, target=target))
    task = tasks.kddcup99()
    split = task.splits[0]
    assert (split.X.shape, split.X_test.shape) == ((18, 5), (2, 5))
    np.testing.assert_array_equal(split.y, split.X[:, 0] == 2)
    assert "5 of its 127 inputs; 2 rows to test" in task.deviation


def test_what_cannot_be_fetched_says_so(monkeypatch):
    def offline(**options):
        raise OSError("no network")

    monkeypatch.setattr(fetch, "fetch_openml", offline)
    with pytest.raises(MissingDataError, match=r"cpu_act could not be fetched by scikit-learn; set BINFEAT_DATA .* no"):
        fetch.cpu_act()
