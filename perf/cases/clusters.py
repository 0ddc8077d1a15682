"""SpectralClustering compared with k-means and scikit-learn: mutual information with classes, speed, 10^6 rows."""

import warnings
from functools import partial

import numpy as np
from sklearn import cluster
from sklearn.metrics import normalized_mutual_info_score

from binfeat import SpectralClustering
from perf.graphs import SHAPES, TABLES, curved, table
from perf.measure import interleave, stopwatch
from perf.record import Row
from perf.suite import guarded

OURS, RBF = "ours", "scikit-learn, rbf"
SEEDS = 3
REACH = {"pendigits": 0.70}  # mutual information with the digits
NEIGHBORS = 7
PEER_ROWS, QUICK_ROWS = 10_000, 400
SIZES, QUICK_SIZES = (100_000, 1_000_000), (1_000, 2_000)


def run(quick):
    warnings.filterwarnings("ignore", "Graph is not fully connected")  # graph of 7 neighbors
    for name, load in (TABLES | SHAPES).items():
        yield from guarded(name, _quality, name, load, quick)
    yield from guarded("speed", _speed, quick)
    yield from guarded("many rows", _growth, QUICK_SIZES if quick else SIZES)


def _models(X, n_clusters, seed):
    options = {"random_state": seed}
    graph = partial(cluster.SpectralClustering, n_clusters, **options)
    return {
        OURS: SpectralClustering(n_clusters, **options),
        RBF: graph(affinity="rbf", gamma=1 / (X.shape[1] * X.var())),
        f"scikit-learn, {NEIGHBORS} neighbors": graph(affinity="nearest_neighbors", n_neighbors=NEIGHBORS),
        "k-means": cluster.KMeans(n_clusters, n_init=10, **options),
    }


def _quality(name, load, quick):
    """Yield means over seeds of our grids, and over all runs of k-means."""
    X, y = table(load, QUICK_ROWS if quick else None)
    found = {}
    for seed in range(1 if quick else SEEDS):
        for model, made in _models(X, y.max() + 1, seed).items():
            found.setdefault(model, []).append(normalized_mutual_info_score(y, made.fit_predict(X)))
    means = {model: float(np.mean(own)) for model, own in found.items()}
    for model, value in means.items():
        reach = (">=", REACH[name]) if model == OURS and name in REACH else None
        yield Row(f"{name}: mutual information, {model}", value, reach=reach, unit="")
    yield Row(f"{name}: mutual information minus {RBF}", means[OURS] - means[RBF], reach=(">=", 0), unit="")


def _speed(quick):
    X, y = curved(QUICK_ROWS if quick else PEER_ROWS)
    models = _models(X, y.max() + 1, 0)
    times = interleave({name: stopwatch(partial(models[name].fit, X)) for name in models}, 1 if quick else 2)
    for name in list(times)[1:]:
        reach = (">=", 10) if name == RBF else None
        yield Row(f"fit, {len(X):,} rows / {name}", times[OURS], times[name], reach)


def _growth(sizes, draw=curved):
    X, y = draw(sizes[-1])
    n_clusters, times = y.max() + 1, {}
    SpectralClustering(n_clusters, random_state=0).fit(X[: sizes[0] // 10])
    for n in sizes:
        clusters = SpectralClustering(n_clusters, random_state=0)
        times[n] = stopwatch(partial(clusters.fit, X[:n]))()
        found = normalized_mutual_info_score(y[:n], clusters.labels_)
        yield Row(f"{n:,} x {X.shape[1]}: mutual information, {OURS}", found, unit="")
    few, many = sizes
    yield Row(f"{many:,} x {X.shape[1]}: fit", times[many], reach=("<=", 60))
    yield Row(f"fit, {many:,} rows / {many / few:g} times {few:,}", times[many], many / few * times[few], ("<=", 1.2))
