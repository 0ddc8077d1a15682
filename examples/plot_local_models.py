"""
Local models
============

The memory of an exact kernel model grows with the square of the number of rows. Kernels decay with distance, so a
prediction mainly depends on nearby rows. For more than 10,000 rows, kernel models are therefore *local* by default: a
k-d tree divides the rows into cells, and an exact model is fitted in each cell.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap

from binfeat import KernelMachineRegressor

BLUE, RED = "#1f5fa8", "#c8452d"
figure, axes = plt.subplots(1, 4, figsize=(16, 4.2), layout="constrained")
rng = np.random.default_rng(0)


def truth(X):
    """Return a sine with a frequency that rises towards the upper right."""
    return np.sin(12 * X[:, 0] ** 2 + 9 * X[:, 1] ** 2)


# sphinx_gallery_defer_figures


# %%
# Cells
# -----
# The tree splits rows at the median along the input with the largest spread, in units of its length scale, until each
# cell contains at most 150 rows. Cells are small where rows are dense.

X = rng.beta(2, 2, size=(4000, 2))
y = truth(X) + 0.3 * rng.normal(size=len(X))


def fitted(n_trees):
    options = {"cell_rows": 150, "n_trees": n_trees}
    return KernelMachineRegressor(features="local", solver_params=options, random_state=0).fit(X, y)


one, many = fitted(1), fitted(8)
ticks = np.linspace(0, 1, 300)
plane = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
cells = one.apply(plane)[:, 0]
shuffled = rng.permutation(cells.max() + 1)[cells].reshape(300, 300)
pale = ListedColormap(0.6 + 0.4 * colormaps["hsv"](np.linspace(0, 1, cells.max() + 1, endpoint=False)))
axes[0].imshow(shuffled, origin="lower", extent=(0, 1, 0, 1), cmap=pale, interpolation="nearest")
axes[0].scatter(*X[::4].T, s=1.5, color="0.25", linewidths=0)
axes[0].set_title(f"{cells.max() + 1} cells of {len(X):,} rows", loc="left", fontsize="medium")
# sphinx_gallery_defer_figures

# %%
# One tree, and the mean of eight
# -------------------------------
# Predictions of a single tree jump at the borders of cells. Other trees have other borders, so the mean of several
# trees is smoother and more accurate.

for ax, model, title in ((axes[1], one, "One tree"), (axes[2], many, "Mean of 8 trees")):
    predicted = model.predict(plane)
    error = np.sqrt(np.mean((predicted - truth(plane)) ** 2))
    surface = predicted.reshape(300, 300)
    ax.imshow(surface, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-1.3, vmax=1.3)
    ax.set_title(f"{title}: error {error:.3f}", loc="left", fontsize="medium")
    print(f"{title}: root mean squared error {error:.3f}")
# sphinx_gallery_defer_figures

# %%
# The number of trees
# -------------------
# Adding trees decreases the error, with diminishing gains. By default, trees are added while one more tree should
# decrease the squared leave-one-out error by at least 0.3 %, or less for weak signals, up to 8 trees.

X_new = rng.beta(2, 2, size=(20_000, 2))
y_new = truth(X_new) + 0.3 * rng.normal(size=len(X_new))
numbers, left_out = many.learning_curve_.T
models = [fitted(n_trees) for n_trees in (1, 2, 4, 8)]
new = [np.mean((model.predict(X_new) - y_new) ** 2) for model in models]
axes[3].plot(numbers, np.sqrt(left_out) * y.std(), marker="o", color=BLUE, label="leave-one-out error")
axes[3].plot([1, 2, 4, 8], np.sqrt(new), marker="s", linestyle=":", color=RED, label="20,000 new rows")
axes[3].axhline(0.3, color="0.6", linewidth=1)
axes[3].annotate("noise", (8, 0.3), xytext=(0, 4), textcoords="offset points", ha="right", color="0.4")
axes[3].set(xlabel="Trees", xticks=[1, 2, 4, 8])
axes[3].set_title("Root mean squared error", loc="left", fontsize="medium")
axes[3].legend(frameon=False)
axes[3].spines[["top", "right"]].set_visible(False)
for ax in axes[:3]:
    ax.set(xticks=[0, 1], yticks=[0, 1])

figure.savefig("local_models.png", dpi=90)
print("wrote", Path("local_models.png").resolve())
