"""
Features, linear models and kernel models
=========================================

binfeat has three parts. `transform` and `RandomBinning` compute sparse features: the inner product of the features of
two rows estimates a kernel (Rahimi & Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007). `CGRidge`
and `CGRidgeClassifier` are linear models for these features. `KernelMachineRegressor` and `KernelMachineClassifier`
accept raw tables and select all hyperparameters.

This example times the features and compares the three parts on two data sets that ship with scikit-learn.
"""

from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import binfeat
from binfeat import (
    CGRidge,
    CGRidgeClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    RandomBinning,
)

# %%
# Features
# --------
# Each of 256 random grids divides the input space into bins. A row of Z has one non-zero entry per grid, in the column
# of its bin. The first call compiles the code, so the second call is timed.

X = np.random.default_rng(0).normal(size=(20_000, 10))
binfeat.transform(X[:1000])
start = perf_counter()
Z = binfeat.transform(X)
seconds = perf_counter() - start
start = perf_counter()
RBFSampler(n_components=256, random_state=0).fit_transform(X)
seconds_rbf = perf_counter() - start
print(f"X: {X.shape[0]:,} rows, {X.shape[1]} inputs")
print(f"Z = binfeat.transform(X): {Z.shape[1]:,} columns, {Z.nnz // Z.shape[0]} non-zeros per row")
print(f"  binfeat.transform, 256 grids: {len(X) / seconds:>10,.0f} rows per second")
print(f"  RBFSampler, 256 components:   {len(X) / seconds_rbf:>10,.0f} rows per second")

# %%
# Four models on two data sets
# ----------------------------
# The test error is the mean of three random splits with a third of the rows as the test set. For digits it is the share
# of wrong labels. For diabetes it is ``1 - R^2``, the share of the target's variance that the model does not explain.
# Seconds are the median time of ``fit``.

SPLITS = range(3)
ALPHAS = np.logspace(-2, 2, 5)


def models(classify):
    """Return a linear model on the inputs, two linear models on features, and a kernel model, by name."""
    ridge = (CGRidgeClassifier if classify else CGRidge)(alphas=ALPHAS, cv=5)
    linear = (RidgeClassifierCV if classify else RidgeCV)(np.logspace(-2, 3, 11))
    learned = RandomBinning(gamma="learn", output="codes", random_state=0)
    features = FunctionTransformer(binfeat.transform, accept_sparse=True, kw_args={"n_features": 2**16})
    return {
        "linear model on the inputs": make_pipeline(StandardScaler(), linear),
        "transform + CGRidge": make_pipeline(StandardScaler(), features, clone(ridge)),
        'RandomBinning(gamma="learn") + CGRidge': make_pipeline(learned, clone(ridge)),
        "kernel model": (KernelMachineClassifier if classify else KernelMachineRegressor)(random_state=0),
    }


errors = {}
for table, load in {"digits": load_digits, "diabetes": load_diabetes}.items():
    X, y = load(return_X_y=True)
    classify = load is load_digits
    print(f"\n{table + f', {X.shape[0]} rows of {X.shape[1]} inputs':<42}{'test error':>10}{'seconds':>9}")
    for name, model in models(classify).items():
        found, seconds = [], []
        for seed in SPLITS:
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=1 / 3, random_state=seed, stratify=y if classify else None
            )
            start = perf_counter()
            fitted = clone(model).fit(X_train, y_train)
            seconds.append(perf_counter() - start)
            found.append(1 - fitted.score(X_test, y_test))
        errors[table, name] = np.mean(found)
        print(f"  {name:<40}{np.mean(found):>10.1%}{np.median(seconds):>9.1f}")

# %%
# On digits each model has a lower error than the model above it. On diabetes no model is better than the linear model,
# so the simplest one is the best choice.
#
# The picture
# -----------
# Top left: one random grid over the plane, with one color per bin. Top right: the sparse matrix Z of 30 points and four
# grids. Bottom left: 256 grids estimate the kernel; the band is twice the standard error. Bottom right: the test errors
# of the table above.

RED, BLUE, GRAY = "#c8452d", "#1f5fa8", "#a39c91"
points = np.random.default_rng(5).normal(size=(30, 2))
ticks = np.linspace(-3, 3, 240)
mesh = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
binning = RandomBinning(gamma=0.7, n_grids=4, random_state=2, output="codes").fit(points)
cells = RandomBinning(gamma=0.7, n_grids=4, random_state=2, output="codes").fit(mesh)
figure, ((grid_ax, matrix_ax), (kernel_ax, error_ax)) = plt.subplots(2, 2, figsize=(9, 7.2), layout="constrained")
bins = cells.encode(mesh).codes[0].reshape(240, 240)
palette = plt.get_cmap("tab20")(np.arange(bins.max() + 1) % 20)
grid_ax.imshow(palette[bins], origin="lower", extent=(-3, 3, -3, 3), alpha=0.4, aspect="auto")
grid_ax.scatter(*points.T, s=16, c=palette[cells.encode(points).codes[0]], edgecolors="0.2", linewidths=0.6)
grid_ax.set(xticks=[], yticks=[], title="A random grid divides the plane into bins")

Z = binning.transform(points).tocsr()
matrix_ax.spy(Z, markersize=3.5, color=BLUE, aspect="auto")
for first in binning.bin_offsets_[1:-1]:
    matrix_ax.axvline(first - 0.5, color="0.6", linewidth=0.8)
matrix_ax.set(xticks=[], yticks=[], ylabel="30 points", xlabel="bins of four grids", title="Each bin is a column of Z")

pairs = np.triu_indices(200, 1)
sample = np.random.default_rng(1).normal(size=(200, 2))
Z = binfeat.transform(sample, gamma=0.7)
exact, estimate = laplacian_kernel(sample, gamma=0.7)[pairs], (Z @ Z.T).toarray()[pairs]
k = np.linspace(0, 1, 200)
width = 2 * np.sqrt(k * (1 - k) / 256)
kernel_ax.plot(exact[::8], estimate[::8], ".", markersize=2.5, color=BLUE, alpha=0.5)
kernel_ax.fill_between(k, k - width, k + width, color=RED, alpha=0.2, linewidth=0)
kernel_ax.plot(k, k, color=RED, linewidth=1)
kernel_ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="exact kernel of two points", ylabel="inner product of two rows of Z")
kernel_ax.set_title("Inner products estimate the kernel")

names = list(models(True))
colors = dict(zip(names, (GRAY, "#8fbde0", BLUE, RED), strict=True))
for row, table in enumerate(("diabetes", "digits")):
    for place, name in zip((0.3, 0.1, -0.1, -0.3), names, strict=True):
        share = errors[table, name] / errors[table, "linear model on the inputs"]
        label = name if row == 0 else None
        error_ax.barh(row + place, 100 * share, height=0.17, color=colors[name], label=label)
        error_ax.annotate(f" {errors[table, name]:.1%}", (100 * share, row + place), va="center", fontsize=8)
error_ax.set_yticks((0, 1), ("diabetes", "digits"))
error_ax.set(xlim=(0, 125), ylim=(-0.5, 2.35), xlabel="test error in % of the error of the linear model")
error_ax.set_title("Test errors of the models")
error_ax.legend(frameon=False, fontsize=8, loc="upper left")
for ax in (kernel_ax, error_ax):
    ax.spines[["top", "right"]].set_visible(False)

figure.savefig("quickstart.png", dpi=140)
print("\nwrote", Path("quickstart.png").resolve())
