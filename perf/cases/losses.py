"""Losses that users are judged by: log-loss, AUC and Brier score, pinball loss, Poisson deviance, beside boosting."""

from time import perf_counter

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, mean_pinball_loss, mean_poisson_deviance, roc_auc_score

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf.cases.intervals import noisy
from perf.data import MissingDataError, seeded_split
from perf.peers import QUICK, skipped
from perf.record import Row
from perf.suite import guarded, names_among
from perf.tables import TABLES, counts
from perf.tables.splitting import is_regression
from perf.tables.standings import geometric_mean

NARROWING = ("only", "rows")
QUANTILES = (0.1, 0.5, 0.9)
_QUICK_TABLES, _QUICK_ROWS = ("diabetes", "breast_cancer", "made_counts"), 300
_MOST_ROWS = 50_000
_STOPPING_SHARE, _PATIENCE, _MOST_TREES, _RATE = 0.1, 50, 2000, 0.05
_LEAST_SHARE = 1e-7  # that a probability is taken for, so that one row does not decide
_LEAST_FIGURE = 1e-4  # that ratios are made of, so that a table without errors does not decide
REACH = {"log-loss": 0.75, "pinball loss": 0.97, "Poisson deviance": 0.97}
PEER = "LightGBM, stopped early"


def add_options(parser):
    """What narrows the case; such a run is not recorded."""
    group = parser.add_argument_group("options of losses")
    group.add_argument("--only", type=names_among({**TABLES, **counts.TABLES}), metavar="TABLE,...")
    group.add_argument("--rows", type=int, default=_MOST_ROWS, metavar="N", help="train on the first N rows at most")


def run(quick, only=None, rows=_MOST_ROWS):
    """Rows of every table, and of all tables together."""
    ratios = {}
    for name in _QUICK_TABLES if quick else only or {**TABLES, **counts.TABLES}:
        for row in guarded(name, _table, name, _QUICK_ROWS if quick else rows, quick, ratios):
            print(*row.cells, flush=True)
            yield row
    for what, own in ratios.items():
        reach = ("<=", REACH[what]) if what in REACH else None
        yield Row(f"{what} / {PEER}, geometric mean of {len(own)}", geometric_mean(own), reach=reach, unit="")
        yield Row(f"{what}, lower than {PEER}", 100 * np.mean(np.array(own) < 1), unit=f"% of {len(own)}")


def _table(name, most_rows, quick, ratios):
    """Rows of a table; adds its ratios to those of each figure."""
    is_count = name in counts.TABLES
    try:
        split = noisy((counts.TABLES if is_count else TABLES)[name](), most_rows)
    except MissingDataError as error:
        yield Row(f"{name}: skipped, {error}", None)
        return
    judge = _of_counts if is_count else _of_numbers if is_regression(split.y) else _of_classes
    try:
        figures, seconds = judge(split, QUICK if quick else {})
    except ImportError:
        yield skipped(PEER)
        return
    for what, (ours, theirs) in figures.items():
        ratios.setdefault(what, []).append(max(ours, _LEAST_FIGURE) / max(theirs, _LEAST_FIGURE))
        yield Row(f"{name}, {what}", ours, theirs, reach=("<=", 1), unit="")
    yield Row(f"{name}, fit", *seconds)


def _of_classes(split, options):
    machine, seconds = _timed(lambda: KernelMachineClassifier(**options, random_state=0).fit(split.X, split.y))
    peers, peer_seconds = _timed(lambda: [_boosted("LGBMClassifier", split)])
    shares, theirs = (each.predict_proba(split.X_test) for each in (machine, peers[0]))
    return {
        "log-loss": [_log_loss(machine.classes_, each, split.y_test) for each in (shares, theirs)],
        "1 - AUC": [1 - _auc(machine.classes_, each, split.y_test) for each in (shares, theirs)],
        "Brier score": [_brier(machine.classes_, each, split.y_test) for each in (shares, theirs)],
    }, (seconds, peer_seconds)


def _of_numbers(split, options):
    machine, seconds = _timed(lambda: KernelMachineRegressor(**options, random_state=0).fit(split.X, split.y))
    peers, peer_seconds = _timed(
        lambda: [_boosted("LGBMRegressor", split, objective="quantile", alpha=level) for level in QUANTILES]
    )
    ours, theirs = machine.predict_quantiles(split.X_test, QUANTILES).T, [peer.predict(split.X_test) for peer in peers]
    losses = [
        sum(mean_pinball_loss(split.y_test, own, alpha=level) for level, own in zip(QUANTILES, each))
        for each in (ours, theirs)
    ]
    return {"pinball loss": losses}, (seconds, peer_seconds)


def _of_counts(split, options):
    ours, seconds = _timed(
        lambda: KernelMachineRegressor(**options, loss="poisson", random_state=0).fit(split.X, split.y)
    )
    peer, peer_seconds = _timed(lambda: _boosted("LGBMRegressor", split, objective="poisson"))
    own, theirs = (mean_poisson_deviance(split.y_test, each.predict(split.X_test)) for each in (ours, peer))
    return {"Poisson deviance": [own, theirs]}, (seconds, peer_seconds)


def _timed(make):
    """What is made, and the seconds that it takes."""
    start = perf_counter()
    made = make()
    return made, perf_counter() - start


def _boosted(kind, split, **objective):
    """LightGBM at a rate of 0.05 until a tenth of the rows says that it is enough."""
    import lightgbm

    n_fit = round((1 - _STOPPING_SHARE) * len(split.y))
    inner = seeded_split(split.X, split.y, n_fit, 1)
    machine = getattr(lightgbm, kind)(
        n_estimators=_MOST_TREES, learning_rate=_RATE, n_jobs=2, random_state=0, verbose=-1, **objective
    )
    stop = lightgbm.early_stopping(_PATIENCE, verbose=False)
    return machine.fit(inner.X, inner.y, eval_set=[(inner.X_test, inner.y_test)], callbacks=[stop])


def _log_loss(classes, shares, y):
    known = np.clip(shares, _LEAST_SHARE, None)
    return log_loss(y, known / known.sum(axis=1, keepdims=True), labels=classes)


def _auc(classes, shares, y):
    if len(classes) == 2:
        return roc_auc_score(y == classes[1], shares[:, 1])
    present = [k for k, own in enumerate(classes) if 0 < np.mean(y == own) < 1]
    return np.mean([roc_auc_score(y == classes[k], shares[:, k]) for k in present])


def _brier(classes, shares, y):
    return (
        brier_score_loss(y, shares, labels=classes, scale_by_half=False)
        if len(classes) > 2
        else brier_score_loss(y == classes[1], shares[:, 1])
    )
