"""Common losses: log-loss, AUC, Brier score, calibration error, pinball loss, Poisson deviance."""

import re
from operator import itemgetter
from time import perf_counter

import numpy as np
from sklearn.metrics import brier_score_loss, mean_pinball_loss, mean_poisson_deviance

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf.cases.intervals import noisy
from perf.data import MissingDataError
from perf.peers import QUICK, skipped
from perf.record import Row
from perf.suite import guarded, names_among
from perf.tables import TABLES, counts, loss_peers
from perf.tables.scores import auc_of, log_loss_of
from perf.tables.splitting import is_regression
from perf.tables.standings import geometric_mean
from perf.text_tables import csv_table

LONG = True
NARROWING = ("only", "rows", "loss")
QUANTILES = (0.1, 0.5, 0.9)
_QUICK_TABLES, _QUICK_ROWS = ("diabetes", "breast_cancer", "made_exposures"), 300
_MOST_ROWS = 50_000
_LEAST_FIGURE = 1e-4  # least loss in a ratio, so that a table without errors does not dominate the mean
_SLOWER = ", fit / of squares"  # last part of the names of rows with seconds relative to the squared loss
_BINS = 15  # bins of confidence with equally many rows
REACH = {
    ("log-loss", "LightGBM"): 0.75,
    ("log-loss", "CatBoost"): 0.85,
    ("1 - AUC", "CatBoost"): 0.95,
    ("pinball loss", "LightGBM"): 0.97,
    ("Poisson deviance", "LightGBM"): 0.97,
    ("seconds of a fit", "squares"): 4,
}


def parts(content):
    """Return the tables of the page: each loss compared with each peer, and tables with losses on no other page."""
    ratios = _ratios(map(Row.from_dict, content["rows"]))
    return {"losses": _by_loss(ratios), "tables": _by_table(ratios)}


def _ratios(rows):
    """Return our loss divided by a peer's, by loss and peer, then by table."""
    found = {}
    for row in rows:
        if row.unit == "" and row.reference is not None:
            name, what, peer = re.fullmatch("(.*?), (.*) / (.*)", row.what).groups()
            found.setdefault((what, peer), {})[name] = _ratio(row.ours, row.reference)
    return found


def _by_loss(ratios):
    header = "loss", "other model", "tables", "mean", "median", "lower on", "higher by 2 % or more on"
    lines = []
    for (what, peer), own in ratios.items():
        worse = [f"{name} ({ratio:.2f})" for name, ratio in sorted(own.items(), key=itemgetter(1)) if ratio >= 1.02]
        mean, median = geometric_mean(list(own.values())), np.median(list(own.values()))
        lower = sum(ratio < 1 for ratio in own.values())
        lines.append((what, peer, len(own), f"{mean:.2f}", f"{median:.2f}", lower, ", ".join(reversed(worse))))
    return csv_table(header, lines)


def _by_table(ratios):
    lines = {}
    for (what, peer), own in ratios.items():
        for name, ratio in own.items() if what in ("pinball loss", "Poisson deviance") else ():
            lines.setdefault((name, what), {})[peer] = f"{ratio:.3f}"
    peers = list(dict.fromkeys(peer for own in lines.values() for peer in own))
    cells = [(*of, *(own.get(peer, "") for peer in peers)) for of, own in lines.items()]
    return csv_table(("table", "loss", *peers), cells)


def _ratio(ours, theirs):
    return max(ours, _LEAST_FIGURE) / max(theirs, _LEAST_FIGURE)


def add_options(parser):
    """Add options that narrow the case; such a run is not recorded."""
    group = parser.add_argument_group("options of losses")
    group.add_argument("--only", type=names_among({**TABLES, **counts.TABLES}), metavar="TABLE,...")
    group.add_argument("--rows", type=int, metavar="N", help="train on at most the first N rows")
    group.add_argument("--loss", help="loss of our classifiers (default: squared)")


def run(quick, only=None, rows=None, loss=None, of_part=guarded):
    """Yield rows of each table, and of all tables together."""
    found, most_rows = [], _QUICK_ROWS if quick else rows or _MOST_ROWS
    for name in _QUICK_TABLES if quick else only or {**TABLES, **counts.TABLES}:
        for row in of_part(name, _table, name, most_rows, quick, loss or "squared"):
            found.append(row)
            yield row
    ratios = {of: list(own.values()) for of, own in _ratios(found).items()}
    if slower := [row.ours / row.reference for row in found if row.what.endswith(_SLOWER)]:
        ratios["seconds of a fit", "squares"] = slower
    for (what, peer), own in sorted(ratios.items()):
        reach = ("<=", REACH[what, peer]) if (what, peer) in REACH else None
        yield Row(f"{what} / {peer}, geometric mean of {len(own)}", geometric_mean(own), reach=reach, unit="")
        yield Row(f"{what} / {peer}, median", float(np.median(own)), unit="")
        yield Row(f"{what}, lower than {peer}", 100 * np.mean(np.array(own) < 1), unit=f"% of {len(own)}")


def _table(name, most_rows, quick, loss):
    """Yield the rows of a table."""
    is_count = name in counts.TABLES
    try:
        split = noisy((counts.TABLES if is_count else TABLES)[name](), most_rows)
    except MissingDataError as error:
        yield Row(f"{name}: skipped, {error}", None)
        return
    options = {**(QUICK if quick else {}), "random_state": 0}
    if is_count:
        options["loss"] = "poisson"
        ours, peers, evaluate = _counts, loss_peers.of_counts(split), _of_counts
    elif is_regression(split.y):
        ours, peers, evaluate = _quantiles, loss_peers.of_quantiles(split, QUANTILES), _of_numbers
    else:
        options["loss"] = loss
        ours, peers, evaluate = _probabilities, loss_peers.of_classes(split), _of_classes
    found, seconds = _timed(ours(split, options))
    figures = evaluate(split, found)
    if options.get("loss", "squared") != "squared":
        _, of_squares = _timed(ours(split, options | {"loss": "squared"}))
        yield Row(f"{name}{_SLOWER}", seconds, of_squares)
    for peer, fit in peers.items():
        try:
            theirs, peer_seconds = _timed(fit)
        except ImportError:
            yield skipped(peer)
            continue
        for what, figure in evaluate(split, theirs).items():
            yield Row(f"{name}, {what} / {peer}", figures[what], figure, unit="")
        yield Row(f"{name}, fit / {peer}", seconds, peer_seconds)


def _probabilities(split, options):
    return lambda: KernelMachineClassifier(**options).fit(split.X, split.y).predict_proba(split.X_test)


def _quantiles(split, options):
    return lambda: KernelMachineRegressor(**options).fit(split.X, split.y).predict_quantiles(split.X_test, QUANTILES).T


def _counts(split, options):
    model = KernelMachineRegressor(**options)
    return lambda: model.fit(split.X, split.y, sample_weight=split.weights).predict(split.X_test)


def _of_classes(split, shares):
    classes = np.unique(split.y)
    return {
        "log-loss": log_loss_of(classes, shares, split.y_test),
        "1 - AUC": 1 - auc_of(classes, shares, split.y_test),
        "Brier score": _brier(classes, shares, split.y_test),
        "calibration error": calibration_error(classes, shares, split.y_test),
    }


def _of_numbers(split, quantiles):
    pairs = zip(QUANTILES, quantiles, strict=True)
    return {"pinball loss": sum(mean_pinball_loss(split.y_test, own, alpha=level) for level, own in pairs)}


def _of_counts(split, means):
    return {"Poisson deviance": mean_poisson_deviance(split.y_test, means, sample_weight=split.weights_test)}


def _timed(make):
    """Return the result of a call, and its seconds."""
    start = perf_counter()
    made = make()
    return made, perf_counter() - start


def _brier(classes, shares, y):
    return (
        brier_score_loss(y, shares, labels=classes, scale_by_half=False)
        if len(classes) > 2
        else brier_score_loss(y == classes[1], shares[:, 1])
    )


def calibration_error(classes, shares, y):
    """Return the expected calibration error of predicted labels (Guo et al. 2017), in bins with equally many rows."""
    said = shares.argmax(axis=1)
    confidence, is_right = shares[np.arange(len(y)), said], classes[said] == y
    parts = np.array_split(np.argsort(confidence, kind="stable"), min(_BINS, len(y)))
    return sum(len(rows) / len(y) * abs(confidence[rows].mean() - is_right[rows].mean()) for rows in parts)
