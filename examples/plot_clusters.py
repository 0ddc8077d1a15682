"""
Clusters of any shape
=====================

K-means cuts space by straight lines, so it cannot find a ring around another one. Spectral clustering looks for groups
of rows that few similarities cross. Here the similarities are those of random grids: two rows are similar if they often
share a bin of few rows. No matrix of rows times rows is made, so the time is linear in the rows, and new rows get
labels too.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import normalized_mutual_info_score

from binfeat import SpectralClustering, SpectralEmbedding

COLOURS = plt.get_cmap("tab10").colors
figure = plt.figure(figsize=(11, 6.4), layout="constrained")
panels = figure.subplot_mosaic([["k-means, moons", "moons", "digits"], ["k-means, rings", "rings", "digits"]],
                               width_ratios=[1, 1, 1.9])  # fmt: skip

# %%
# Moons and rings
# ---------------
# Left k-means, beside it spectral clustering with its defaults. The number is the normalised mutual information of the
# clusters and the shapes: 1 if they are the same.

shapes = {
    "moons": make_moons(2000, noise=0.06, random_state=0),
    "rings": make_circles(2000, factor=0.5, noise=0.06, random_state=0),
}
for name, (X, shape) in shapes.items():
    for title, machine in (
        (f"k-means, {name}", KMeans(2, n_init=10, random_state=0)),
        (name, SpectralClustering(2, random_state=0)),
    ):
        labels = machine.fit_predict(X)
        ax = panels[title]
        ax.scatter(*X.T, s=2, c=np.array(COLOURS)[labels])
        kind = "k-means" if "k-means" in title else "spectral"
        ax.set_title(f"{kind}: {normalized_mutual_info_score(shape, labels):.2f}")
        ax.set(xticks=[], yticks=[], aspect="equal")

# %%
# Digits
# ------
# The first two spectral coordinates of 1,797 images of digits, found without labels. Half of the images are used to
# fit; the coordinates of the others come from `transform`. Colours are the digits.

X, digit = load_digits(return_X_y=True)
half = np.random.default_rng(0).permutation(len(X))[: len(X) // 2]
embedding = SpectralEmbedding(2, random_state=0).fit(X[half])
places = embedding.transform(X)
ax = panels["digits"]
new = np.ones(len(X), dtype=bool)
new[half] = False
for value in range(10):
    own = digit == value
    ax.scatter(*places[own].T, s=8, color=COLOURS[value], alpha=0.5, lw=0)
    shown = np.flatnonzero(own & new)[:9]
    for row in shown:
        ax.text(*places[row], str(value), color=COLOURS[value], weight="bold", ha="center", va="center", size=11)
ax.set(xticks=[], yticks=[], xlabel="first coordinate", ylabel="second coordinate")
scores = {
    name: normalized_mutual_info_score(digit, machine.fit_predict(X))
    for name, machine in (
        ("k-means", KMeans(10, n_init=10, random_state=0)),
        ("spectral", SpectralClustering(10, random_state=0)),
    )
}
ax.set_title(f"digits; ten clusters: k-means {scores['k-means']:.2f}, spectral {scores['spectral']:.2f}")

figure.savefig("clusters.png", dpi=130)
print("wrote", Path("clusters.png").resolve())
