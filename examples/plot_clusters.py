"""
Clusters of any shape
=====================

K-means separates clusters by straight lines, so it cannot separate a ring from a ring inside it. Spectral clustering
splits the graph of similar rows where few edges are cut. `SpectralClustering` computes similarities from random grids:
two rows are similar if they share a cell (a bin) in many grids, and bins with few rows count more. It stores no matrix
of all pairs of rows, so its time is linear in the number of rows. It also assigns new rows to clusters.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import normalized_mutual_info_score

from binfeat import SpectralClustering, SpectralEmbedding

COLORS = plt.get_cmap("tab10").colors
figure = plt.figure(figsize=(11, 6.4), layout="constrained")
panels = figure.subplot_mosaic([["k-means, moons", "moons", "digits"], ["k-means, rings", "rings", "digits"]],
                               width_ratios=[1, 1, 1.9])  # fmt: skip
# sphinx_gallery_defer_figures

# %%
# Moons and rings
# ---------------
# The first column of the picture shows k-means, the second column spectral clustering with its defaults. The number in
# each title is the normalized mutual information of the clusters and the true shapes: 1 is a perfect result.

shapes = {
    "moons": make_moons(2000, noise=0.06, random_state=0),
    "rings": make_circles(2000, factor=0.5, noise=0.06, random_state=0),
}
for name, (X, shape) in shapes.items():
    for title, model in (
        (f"k-means, {name}", KMeans(2, n_init=10, random_state=0)),
        (name, SpectralClustering(2, random_state=0)),
    ):
        labels = model.fit_predict(X)
        ax = panels[title]
        ax.scatter(*X.T, s=2, c=np.array(COLORS)[labels])
        kind = "k-means" if "k-means" in title else "spectral"
        ax.set_title(f"{kind}: {normalized_mutual_info_score(shape, labels):.2f}")
        ax.set(xticks=[], yticks=[], aspect="equal")
# sphinx_gallery_defer_figures

# %%
# Digits
# ------
# The large panel shows the first two spectral coordinates of 1,797 images of digits, with one color per digit. They are
# computed without labels: `fit` uses half of the images, and `transform` computes the coordinates of all images.

X, digit = load_digits(return_X_y=True)
half = np.random.default_rng(0).permutation(len(X))[: len(X) // 2]
embedding = SpectralEmbedding(2, random_state=0).fit(X[half])
places = embedding.transform(X)
ax = panels["digits"]
new = np.ones(len(X), dtype=bool)
new[half] = False
for value in range(10):
    own = digit == value
    ax.scatter(*places[own].T, s=8, color=COLORS[value], alpha=0.5, lw=0)
    shown = np.flatnonzero(own & new)[:9]
    for row in shown:
        ax.text(*places[row], str(value), color=COLORS[value], weight="bold", ha="center", va="center", size=11)
ax.set(xticks=[], yticks=[], xlabel="first coordinate", ylabel="second coordinate")
scores = {
    name: normalized_mutual_info_score(digit, model.fit_predict(X))
    for name, model in (
        ("k-means", KMeans(10, n_init=10, random_state=0)),
        ("spectral", SpectralClustering(10, random_state=0)),
    )
}
ax.set_title(f"digits; ten clusters: k-means {scores['k-means']:.2f}, spectral {scores['spectral']:.2f}")

figure.savefig("clusters.png", dpi=130)
print("wrote", Path("clusters.png").resolve())
