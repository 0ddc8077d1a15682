"""
Few labels, many rows
=====================

Unlabeled rows are often cheap, and labels are expensive. `LabelSpreading` uses both: labels spread along a graph that
links each row to its nearest rows. The unlabeled rows show the extent of each class. Candidates for the nearest rows
are rows in the same cells of random grids, so the time is about linear in the number of rows.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.svm import SVC

from binfeat import LabelSpreading

BLUE, RED, GRAY = "#1f5fa8", "#c8452d", "0.75"
figure, (alone, spread, curve) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
# sphinx_gallery_defer_figures

# %%
# Three labels for each moon
# --------------------------
# The support vector machine is fitted to the six labeled rows. Label spreading uses all 1,000 rows.

X, moon = make_moons(1000, noise=0.08, random_state=0)
few = np.full(len(X), -1)
rng = np.random.default_rng(4)
for label in (0, 1):
    few[rng.choice(np.flatnonzero(moon == label), 3, replace=False)] = label
ticks = np.linspace(-1.6, 2.6, 200), np.linspace(-1.1, 1.6, 150)
mesh = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
models = {
    "support vector machine": (alone, SVC(gamma=2.0).fit(X[few >= 0], few[few >= 0])),
    "label spreading": (spread, LabelSpreading(0.99, random_state=0).fit(X, few)),
}
for name, (ax, model) in models.items():
    side = model.predict(mesh).reshape(150, 200)
    ax.contourf(*ticks, side, levels=[-0.5, 0.5, 1.5], colors=[BLUE, RED], alpha=0.15)
    ax.scatter(*X.T, s=3, c=np.array([BLUE, RED])[model.predict(X)], alpha=0.6)
    ax.scatter(*X[few >= 0].T, s=90, c=np.array([BLUE, RED])[few[few >= 0]], edgecolors="black", linewidths=1.5)
    ax.set(xticks=[], yticks=[], title=f"{name}: {(model.predict(X) == moon).mean():.0%} correct")
# sphinx_gallery_defer_figures

# %%
# Digits
# ------
# The curves show the accuracy on the unlabeled images for 2 to 20 labels per digit, as the mean of 5 random draws.

X, digit = load_digits(return_X_y=True)
numbers, shares = [2, 5, 10, 20], {"label spreading": [], "support vector machine": []}
for n_labels in numbers:
    found = []
    for draw in range(5):
        rng = np.random.default_rng(draw)
        rows = np.concatenate([rng.choice(np.flatnonzero(digit == k), n_labels, replace=False) for k in range(10)])
        few = np.full(len(X), -1)
        few[rows] = digit[rows]
        rest = few < 0
        ours = LabelSpreading(random_state=0).fit(X, few).transduction_
        theirs = SVC().fit(X[rows], digit[rows]).predict(X)
        found.append([(own == digit)[rest].mean() for own in (ours, theirs)])
    for own, value in zip(shares.values(), np.mean(found, axis=0), strict=True):
        own.append(value)
for (name, values), color in zip(shares.items(), (RED, BLUE), strict=True):
    curve.plot(numbers, values, "o-", color=color, label=name)
curve.set(xscale="log", xticks=numbers, xticklabels=numbers, xlabel="labels per digit", title="digits: accuracy")
curve.minorticks_off()
curve.spines[["top", "right"]].set_visible(False)
curve.grid(color=GRAY, lw=0.5)
curve.legend(frameon=False)

figure.savefig("few_labels.png", dpi=130)
print("wrote", Path("few_labels.png").resolve())
