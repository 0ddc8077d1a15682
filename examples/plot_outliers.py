"""
Density and outliers on a plane
===============================

:class:`binfeat.OutlierDetector` estimates a kernel density by counting rows in the bins of random grids. The left
picture shows its scores on a plane with 2,000 rows, and the rows that it flags as outliers. The right picture compares
its accuracy and its time with scikit-learn's detectors.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from binfeat import OutlierDetector

figure, (plane, peers) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")

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
plane.contourf(x, y, scores, levels=15, cmap="Blues")
outlier = detector.predict(X) == -1
plane.scatter(*X[~outlier].T, s=2, color="0.3")
plane.scatter(*X[outlier].T, s=16, color="#c44e52")
plane.set(title="Scores and outliers (red)", xticks=[], yticks=[])

# %%
# Compared with other detectors
# -----------------------------
# The outliers are 30 images of one digit among all images of the other nine digits. The AUC is the probability that an
# outlier has a higher outlier score than another row. Each digit is the rare digit once.

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
    peers.scatter(np.mean(seconds), np.mean(areas), s=50)
    peers.annotate(name, (np.mean(seconds), np.mean(areas)), textcoords="offset points", xytext=(8, 4))
    print(f"{name}: mean AUC {np.mean(areas):.3f}, {np.mean(seconds):.3f} s")
peers.set(xscale="log", xlabel="seconds of fit and score", ylabel="mean AUC of ten rare digits")
peers.margins(0.4)
plt.show()
