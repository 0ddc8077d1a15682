"""
Density and outliers on a plane
===============================

:class:`binfeat.OutlierDetector` estimates a kernel density by counting rows in the bins of random grids. The left
picture shows the scores on a plane with 2,000 rows, and the rows that are flagged as outliers. The right picture
compares the accuracy and the speed with scikit-learn's detectors, on images of digits with one rare digit.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from binfeat import OutlierDetector

figure, (plane, peers) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
# sphinx_gallery_defer_figures

# %%
# Density
# -------
# Dark regions have a high density. More grids than the default of 64 make the picture smoother.

rng = np.random.default_rng(0)
X, _ = make_moons(1950, noise=0.08, random_state=0)
X = np.concatenate([X, rng.uniform((-1.7, -1.2), (2.7, 1.7), size=(50, 2))])
detector = OutlierDetector(n_grids=400, contamination=0.025, random_state=0).fit(X)
x, y = np.meshgrid(np.linspace(-1.8, 2.8, 150), np.linspace(-1.3, 1.8, 100))
scores = detector.score_samples(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
shades = plane.contourf(x, y, scores, levels=15, cmap="Blues")
outlier = detector.predict(X) == -1
plane.scatter(*X[~outlier].T, s=2, color="0.3")
plane.scatter(*X[outlier].T, s=16, color="#c44e52")
plane.set(title="Scores and outliers (red)", xticks=[], yticks=[])
figure.colorbar(shades, ax=plane, label="score: mean log share of the rows")
# sphinx_gallery_defer_figures

# %%
# Compared with other detectors
# -----------------------------
# The outliers are 30 images of one digit among all images of the other nine digits. The AUC is the probability that an
# outlier has a higher outlier score (``-score_samples``) than another row. Each digit is the rare digit once.

images, digit = load_digits(return_X_y=True)
detectors = {
    "OutlierDetector": lambda X: -OutlierDetector(random_state=0).fit(X).score_samples(X),
    "IsolationForest": lambda X: -IsolationForest(random_state=0).fit(X).score_samples(X),
    "LocalOutlierFactor": lambda X: -LocalOutlierFactor().fit(X).negative_outlier_factor_,
}
detectors["OutlierDetector"](images)  # compile before the timing
for name, score in detectors.items():
    areas, seconds = [], []
    for label in range(10):
        rare = np.flatnonzero(digit == label)[30:]
        kept = np.delete(np.arange(len(digit)), rare)
        start = perf_counter()
        found = score(images[kept])
        seconds.append(perf_counter() - start)
        areas.append(roc_auc_score(digit[kept] == label, found))
    point = np.mean(seconds), np.mean(areas)
    peers.scatter(*point, s=60)
    peers.annotate(name, point, textcoords="offset points", xytext=(0, 9), ha="center")
    print(f"{name}: mean AUC {np.mean(areas):.3f}, {np.mean(seconds):.3f} s")
peers.set(title="Rare digits", xscale="log", xlabel="seconds of fit and score", ylabel="mean AUC of the outliers")
low, high = (limit * factor for limit, factor in zip(peers.get_xlim(), (1 / 2, 2)))
ticks = [tick for tick in (0.01, 0.03, 0.1, 0.3, 1, 3, 10) if low <= tick <= high]
peers.set_xlim(low, high)
peers.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
peers.set_xticks([], minor=True)
peers.margins(y=0.2)
peers.spines[["top", "right"]].set_visible(False)
plt.show()
