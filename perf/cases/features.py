"""Several kinds of features of Forest Cover for the same linear model: speed, memory, and test error."""

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import binfeat
from binfeat import CGRidgeClassifier, RandomBinning, RandomFourier
from perf.data import forest_cover_for, seeded_split
from perf.measure import bytes_of, interleave, stopwatch
from perf.record import Row

N_ROWS, QUICK_ROWS = 40_000, 5_000  # for training, and as many for testing
N_SPLITS = 5  # each with its own rows and random features
N_FEATURES = 256  # grids, components or trees
SPEED, MEMORY, ERROR = "rows a second", "memory", "test error"


def kinds(seed):
    """Return transformers by the names of their rows."""
    seeded = {"random_state": seed}
    components = {"n_components": N_FEATURES, **seeded}
    learned = RandomBinning(gamma="learn", n_grids=N_FEATURES, output="codes", **seeded)
    return {
        "RandomBinning, learned": learned,
        "transform": FunctionTransformer(binfeat.transform, kw_args={"n_grids": N_FEATURES, **seeded}),
        "RandomFourier": RandomFourier(**components),
        "RBFSampler": RBFSampler(gamma="scale", **components),
        "Nystroem": Nystroem(gamma=None, **components),
        "RandomTreesEmbedding": RandomTreesEmbedding(N_FEATURES, max_depth=10, n_jobs=2, **seeded),
    }


def run(quick):
    n_rows = QUICK_ROWS if quick else N_ROWS
    X, _, labels, row = forest_cover_for(2 * n_rows if quick else None)
    yield row
    splits = [_split(X, labels == 2, n_rows, seed) for seed in range(2 if quick else N_SPLITS)]
    yield from _errors("the inputs", [_error(split.X, split.X_test, split) for split in splits])
    fitted = [{name: kind.fit(own.X, own.y) for name, kind in kinds(seed).items()} for seed, own in enumerate(splits)]
    first = splits[0].X
    timers = {name: stopwatch(partial(kind.transform, first)) for name, kind in fitted[0].items()}
    times = interleave(timers, 2 if quick else 5)
    for name, kind in fitted[0].items():
        yield Row(f"{name}: {SPEED}", len(first) / times[name].best, unit="")
        yield Row(f"{name}: {MEMORY}", bytes_of(kind.transform(first)) / 1e6, unit="MB")
        yield from _errors(name, [_error_of(own[name], split) for own, split in zip(fitted, splits, strict=True)])


def _split(X, y, n_rows, seed):
    """Return training rows and as many test rows, standardized."""
    split = seeded_split(X, y, n_rows, seed).first(None, n_rows)
    scaler = StandardScaler().fit(split.X)
    return replace(split, X=scaler.transform(split.X), X_test=scaler.transform(split.X_test))


def _error_of(kind, split):
    return _error(kind.transform(split.X), kind.transform(split.X_test), split)


def _error(Z, Z_test, split):
    model = CGRidgeClassifier(random_state=0).fit(Z, split.y)
    return 100 * float(np.mean(model.predict(Z_test) != split.y_test))


def _errors(name, errors):
    yield Row(f"{name}: {ERROR}", float(np.mean(errors)), unit="%")
    yield Row(f"{name}: standard deviation over splits", float(np.std(errors, ddof=1)), unit="points")
