"""KernelMachineClassifier on Forest Cover: error in LightGBM's time, and without a limit; 7 classes."""

from sklearn.ensemble import HistGradientBoostingClassifier

from binfeat import KernelMachineClassifier
from perf import plots
from perf.data import Split, forest_cover
from perf.peers import QUICK, lightgbm, skipped, trial
from perf.record import Row
from perf.suite import guarded

QUICK_ROWS = 5_000
WARM_UP_ROWS = 2_000
CURVE = ((500, 255, 0.1, 2.3), (1500, 255, 0.15, 2.1), (1000, 1023, 0.1, 2.0))  # trees, leaves, rate, our goal
QUICK_CURVE = ((50, 31, 0.1, 2.3),)


def pictures(record):
    """Draw the error against the seconds of the fit."""
    return {"model.png": plots.curves(record["rows"], "seconds of the fit", "test error (%)")}


def run(quick):
    split = _forest_cover(QUICK_ROWS if quick else None)
    two = Split(split.X, split.y == 2, split.X_test, split.y_test == 2)
    trial(KernelMachineClassifier(**QUICK, random_state=0), two.quick(WARM_UP_ROWS))
    for point in QUICK_CURVE if quick else CURVE:
        yield from guarded(f"LightGBM {point[0]} x {point[1]}", _against_time, two, *point)
    yield from guarded("defaults", _defaults, two, quick)
    yield from guarded("7 classes", _seven_classes, split, quick)


def _forest_cover(n_rows):
    """Return the first 90 % of the rows for training, the last 10 % for testing."""
    X, y = (part[:n_rows] for part in forest_cover())
    n = int(0.9 * len(X))
    return Split(X[:n], y[:n], X[n:], y[n:])


def _against_time(split, n_trees, n_leaves, rate, reach):
    """Yield a point of LightGBM's curve of error against time, and ours in the same time."""
    name = f"LightGBM {n_trees} x {n_leaves}"
    peer = lightgbm(n_trees, n_leaves, rate)
    if peer is None:
        yield skipped(name)
        return
    theirs = trial(peer, split)
    ours = trial(KernelMachineClassifier(max_seconds=theirs.seconds, random_state=0), split)
    at = {"panel": "Forest Cover, class 2 against the rest"}
    own, other = ({**at, "series": who, "x": done.seconds} for who, done in (("binfeat", ours), ("LightGBM", theirs)))
    yield Row(f"error in the time of {name}", ours.error, reach=("<=", reach), unit="%", at=own)
    yield Row(f"error of {name}", theirs.error, unit="%", at=other)
    yield Row(f"fit in the time of {name}", ours.seconds, theirs.seconds, ("<=", 1))


def _defaults(split, quick):
    n_trees = 20 if quick else 500
    boosting = HistGradientBoostingClassifier(
        max_iter=n_trees, max_leaf_nodes=255, early_stopping=False, random_state=0
    )
    ours, theirs = trial(_model(quick), split), trial(boosting, split)
    yield Row(f"defaults, error / HistGradientBoosting {n_trees} x 255", ours.error, theirs.error, unit="%")
    yield Row(f"defaults, fit / HistGradientBoosting {n_trees} x 255", ours.seconds, theirs.seconds)
    yield Row("defaults, grids", ours.model.n_grids_, unit="")


def _model(quick):
    return KernelMachineClassifier(**(QUICK if quick else {}), random_state=0)


def _seven_classes(split, quick):
    ours = trial(_model(quick), split)
    yield Row("7 classes, error", ours.error, reach=("<=", 4.0), unit="%")
    name = "LightGBM 20 x 31" if quick else "LightGBM 200 x 255"
    peer = lightgbm(20, 31) if quick else lightgbm(200, 255)
    if peer is None:
        yield skipped(name)
        return
    theirs = trial(peer, split)
    yield Row(f"7 classes, error / {name}", ours.error, theirs.error, unit="%")
    yield Row(f"7 classes, fit / {name}", ours.seconds, theirs.seconds)
