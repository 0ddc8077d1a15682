"""Prediction intervals on all regression tables: coverage, and length compared with LightGBM's quantiles."""

import numpy as np

from binfeat import KernelMachineRegressor
from perf.data import MissingDataError, seeded_split
from perf.peers import QUICK, lightgbm, skipped
from perf.record import Row
from perf.suite import guarded, names_among
from perf.tables import TABLES
from perf.tables.splitting import DrawnTable, is_regression
from perf.tables.standings import geometric_mean

LONG = True
NARROWING = ("only", "rows", "features")
COVERAGES, LENGTH_AT = (0.5, 0.8, 0.9, 0.95), 0.9
N_SAMPLES = 32
PEER = "MAPIE on LightGBM"
_QUICK_TABLES, _QUICK_ROWS = ("diabetes",), 300
_MOST_TEST_ROWS = 5_000  # more test rows make the standard errors of coverages smaller
_CALIBRATION_SHARE, _TEST_SHARE = 0.2, 0.25
_N_TREES, _N_LEAVES = 200, 31
_AWAY, _LENGTH = " missed by", ", length at 90 %"  # last parts of the names of rows


def add_options(parser):
    """Add options that narrow the case; such a run is not recorded."""
    group = parser.add_argument_group("options of intervals")
    group.add_argument("--only", type=names_among(TABLES), metavar="TABLE,...", help="these tables only")
    group.add_argument("--rows", type=int, metavar="N", help="train on at most the first N rows of each table")
    group.add_argument("--features", help="features of our models (default: auto)")


def run(quick, only=None, rows=None, features=None, of_part=guarded):
    """Yield rows of each regression table, and of all tables together."""
    found = []
    for name in _QUICK_TABLES if quick else only or TABLES:
        for row in of_part(name, _table, name, _QUICK_ROWS if quick else rows, features, quick):
            found.append(row)
            yield row
    if ratios := [row.ours / row.reference for row in found if row.what.endswith(_LENGTH)]:
        yield Row(f"length at 90 % / {PEER}, geometric mean", geometric_mean(ratios), reach=("<=", 1), unit="")
    if beyond := [row.ours for row in found if row.what.endswith(_AWAY)]:
        share, unit = 100 * np.mean(np.array(beyond) <= 2), f"% of {len(beyond)}"
        yield Row("shares of rows inside within two standard errors", share, reach=(">=", 90), unit=unit)
        yield Row("coverage, root mean square in standard errors", np.sqrt(np.mean(np.square(beyond))), unit="s.e.")


def _table(name, most_rows, features, quick):
    """Yield the rows of a table."""
    try:
        split = noisy(TABLES[name](), most_rows)
    except MissingDataError as error:
        yield Row(f"{name}: skipped, {error}", None)
        return
    if not is_regression(split.y):
        return
    options = {"features": features or "auto", **(QUICK if quick else {})}
    options["solver_params"] = {**options.get("solver_params", {}), "n_posterior_samples": N_SAMPLES}
    model = KernelMachineRegressor(**options, random_state=0).fit(split.X, split.y)
    n = len(split.y_test)
    for coverage in COVERAGES:
        inside, length = _evaluated(model.predict_interval(split.X_test, coverage), split.y_test)
        away = abs(inside - coverage) / np.sqrt(coverage * (1 - coverage) / n)
        yield Row(f"{name}, rows inside of {coverage:.0%}", 100 * inside, unit="%")
        yield Row(f"{name}, {coverage:.0%}{_AWAY}", away, unit="s.e.")
        if coverage == LENGTH_AT:
            peer = _peer(split)
            if peer is None:
                yield skipped(PEER)
                continue
            held, theirs = _evaluated(peer, split.y_test)
            yield Row(f"{name}{_LENGTH}", length, theirs, unit="")
            yield Row(f"{name}, rows inside of 90 %, {PEER}", 100 * held, unit="%")


def noisy(table, most_rows):
    """Return a split with noisy test targets. Synthetic tables have exact ones, so their training rows are split."""
    split = table.split(0)
    if isinstance(table, DrawnTable):
        split = seeded_split(split.X, split.y, round((1 - _TEST_SHARE) * len(split.y)), 0)
    return split.first(most_rows, _MOST_TEST_ROWS)


def _evaluated(intervals, y):
    """Return the share of targets inside, and the mean length."""
    low, high = intervals.T
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))


def _peer(split):
    """Conformalized quantile regression (Romano et al. 2019) by LightGBM; None without MAPIE or LightGBM."""
    try:
        from mapie.regression import ConformalizedQuantileRegressor
    except ImportError:
        return None
    if lightgbm(1, 2, regression=True) is None:
        return None
    (X, categories), (X_test, _) = map(_numbers, (split.X, split.X_test))
    n_fit = round((1 - _CALIBRATION_SHARE) * len(split.y))
    rest = (1 - LENGTH_AT) / 2
    models = []
    for quantile in (rest, 1 - rest, 0.5):
        model = lightgbm(_N_TREES, _N_LEAVES, regression=True).set_params(objective="quantile", alpha=quantile)
        models.append(model.fit(X[:n_fit], split.y[:n_fit], categorical_feature=categories))
    conformal = ConformalizedQuantileRegressor(models, confidence_level=LENGTH_AT, prefit=True)
    conformal.conformalize(X[n_fit:], split.y[n_fit:])
    return conformal.predict_interval(X_test)[1][:, :, 0]


def _numbers(X):
    """Return rows as an array for MAPIE, with codes for categories, and the columns of categories."""
    if not hasattr(X, "dtypes"):
        return X, []
    categories = [j for j, dtype in enumerate(X.dtypes) if dtype == "category"]
    columns = [X.iloc[:, j].cat.codes if j in categories else X.iloc[:, j] for j in range(X.shape[1])]
    return np.column_stack([column.to_numpy(float) for column in columns]), categories
