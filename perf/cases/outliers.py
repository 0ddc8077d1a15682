"""OutlierDetector compared with other detectors: AUC of known outliers, seconds of fits and scores, drift tests."""

from functools import partial

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from binfeat import OutlierDetector
from perf.data import MissingDataError
from perf.measure import interleave, stopwatch
from perf.outlier_tables import FIVE, OTHERS
from perf.peers import skipped
from perf.record import Row, failed
from perf.suite import guarded

OURS, FOREST = "ours", "IsolationForest"
QUICK_TABLES, QUICK_ROWS = 2, 500
MOST_ROWS_OF_SLOW = 20_000  # for peers that compare all pairs of rows
NEIGHBORS, N_TREES = 20, 200
SIZE, N_INPUTS = 1_000_000, 20
N_DRAWS, QUICK_DRAWS, N_OLD, N_NEW, LEVEL = 1_000, 5, 150, 100, 0.05


def run(quick):
    yield from guarded("tables", _tables, quick)
    yield from guarded("speed", _speed, 2_000 if quick else SIZE)
    yield from guarded("one row", _one_row, 2_000 if quick else 20_000)
    yield from guarded("drift", _drift, QUICK_DRAWS if quick else N_DRAWS)


def detectors(seed):
    """Return functions from rows to scores, higher for more abnormal rows."""
    return {
        OURS: lambda X: -OutlierDetector(random_state=seed).fit(X).score_samples(X),
        FOREST: lambda X: -IsolationForest(n_estimators=N_TREES, random_state=seed).fit(X).score_samples(X),
        f"LOF, {NEIGHBORS} neighbors": _local_factor,
        "11th neighbor": _neighbor,
        "SGDOneClassSVM on Nystroem": partial(_one_class, seed),
        "PyOD's ECOD": partial(_pyod, "ecod", "ECOD"),
        "PyOD's HBOS": partial(_pyod, "hbos", "HBOS"),
    }


def _local_factor(X):
    return -LocalOutlierFactor(NEIGHBORS).fit(_standardized(X)).negative_outlier_factor_


def _neighbor(X):
    return NearestNeighbors(n_neighbors=11).fit(_standardized(X)).kneighbors()[0][:, -1]


def _one_class(seed, X):
    svm = make_pipeline(StandardScaler(), Nystroem(gamma=1 / X.shape[1], random_state=seed), SGDOneClassSVM(nu=0.1))
    return -svm.fit(X).decision_function(X)


def _pyod(module, name, X):
    from importlib import import_module

    return getattr(import_module(f"pyod.models.{module}"), name)().fit(X).decision_scores_


def _standardized(X):
    if len(X) > MOST_ROWS_OF_SLOW:
        raise MissingDataError(f"too slow for more than {MOST_ROWS_OF_SLOW:,} rows")
    return StandardScaler().fit_transform(X)


def _tables(quick):
    """Yield AUC on each table, means over tables, and the difference to isolation forests with its standard error."""
    for title, tables in (("five tables", FIVE), ("others", OTHERS)):
        names = list(tables)[-QUICK_TABLES:] if quick else list(tables)
        found, rows = {}, []
        for name in names:
            try:
                found[name] = _areas(tables[name], quick, rows)
            except MissingDataError as error:
                yield Row(f"{name}: AUC", None, error=str(error))
        yield from rows
        for name, areas in found.items():
            for detector, area in areas.items():
                yield Row(f"{name}: AUC, {detector}", area, unit="")
        yield from _means(title, found)


def _areas(load, quick, rows):
    areas = {}
    for seed, table in enumerate(load()):
        some = slice(None, None, max(1, len(table.X) // QUICK_ROWS) if quick else 1)
        X, outlier = table.X[some], table.outlier[some]
        for name, scores in detectors(seed).items():
            try:
                area = roc_auc_score(outlier, scores(X))
            except ImportError:
                _note(rows, skipped(name))
            except MissingDataError:
                continue
            except Exception as error:
                _note(rows, failed(name, error))
            else:
                areas.setdefault(name, []).append(area)
    return {name: float(np.mean(own)) for name, own in areas.items()}


def _note(rows, row):
    if all(row.what != known.what for known in rows):
        rows.append(row)


def _means(title, found):
    if not found:
        return
    for detector in detectors(0):
        own = [areas[detector] for areas in found.values() if detector in areas]
        if len(own) == len(found):
            reach = (">=", 0.87) if detector == OURS and title == "five tables" else None
            yield Row(f"{title}: mean AUC, {detector}", float(np.mean(own)), reach=reach, unit="")
    differences = np.array([areas[OURS] - areas[FOREST] for areas in found.values()])
    reach = (">=", 0.04) if title == "others" else None
    yield Row(f"{title}: mean AUC minus {FOREST}'s", float(differences.mean()), reach=reach, unit="")
    if len(differences) > 1:
        error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
        yield Row(f"{title}: standard error of the difference", error, unit="")


def _speed(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, N_INPUTS))
    OutlierDetector(random_state=0).fit(X[:1000]).score_samples(X[:1000])
    calls = {name: partial(detectors(0)[name], X) for name in (OURS, FOREST)}
    times = interleave({name: stopwatch(call) for name, call in calls.items()}, 1)
    yield Row(f"fit and score, {n_rows:,} x {N_INPUTS} / {FOREST}", times[OURS], times[FOREST], ("<=", 0.5))


def _one_row(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, N_INPUTS))
    detector, many = OutlierDetector(random_state=0).fit(X), 1000

    def score():
        for row in X[:many, None]:
            detector.score_samples(row)

    times = interleave({OURS: stopwatch(score)}, 3)[OURS]
    yield Row("score of one row, microseconds", 1e6 * times.best / many, reach=("<=", 20), unit="us")


def _drift(n_draws):
    """Yield false alarms, and the power for a small shift of one of five inputs, compared with a classifier's test."""
    rng, alarms, found, found_by_classifier = np.random.default_rng(0), [], [], []
    for seed in range(n_draws):
        old, new = rng.normal(size=(N_OLD, 5)), rng.normal(size=(N_NEW, 5))
        detector = OutlierDetector(n_grids=8, random_state=seed).fit(old)
        alarms.append(detector.drift(new, random_state=seed).p_value <= LEVEL)
        if seed < n_draws // 10 + 1:
            shifted = new + np.array([0.5, 0, 0, 0, 0])
            found.append(detector.drift(shifted, random_state=seed).p_value <= LEVEL)
            found_by_classifier.append(_classifier_test(old, shifted) <= LEVEL)
    yield Row("drift: false alarms at level 5 %", 100 * float(np.mean(alarms)), reach=("<=", 6), unit="%")
    yield Row("drift: power, one of five inputs shifted by 0.5", 100 * float(np.mean(found)), unit="%")
    yield Row("drift: power of random forests' test", 100 * float(np.mean(found_by_classifier)), unit="%")


def _classifier_test(old, new):
    """Return the p-value of a classifier two-sample test: ranks of cross-validated probabilities."""
    is_new = np.arange(len(old) + len(new)) >= len(old)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    scores = cross_val_predict(forest, np.concatenate([old, new]), is_new, cv=3, method="predict_proba")[:, 1]
    return mannwhitneyu(scores[is_new], scores[~is_new], alternative="greater").pvalue
