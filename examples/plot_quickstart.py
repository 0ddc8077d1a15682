"""
Features, a linear model on them, and a kernel model
====================================================

binfeat has three storeys. `transform` and `RandomBinning` turn a table into sparse features whose inner products
estimate a kernel (Rahimi & Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007). A linear model on the
features has nearly the accuracy of a kernel method. `KernelMachineClassifier` and `KernelMachineRegressor` choose
everything themselves.

This example shows the features, times them, and compares the three storeys on two data sets that ship with
scikit-learn.
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
# of its bin. The first call compiles the kernels; the second one shows their speed.

X = np.random.default_rng(0).normal(size=(20_000, 10))
binfeat.transform(X[:1000])
start = perf_counter()
Z = binfeat.transform(X)
seconds = perf_counter() - start
start = perf_counter()
RBFSampler(n_components=256, random_state=0).fit_transform(X)
print(f"Z = binfeat.transform(X) of {X.shape[0]:,} rows and {X.shape[1]} inputs")
print(f"  shape {Z.shape}, {Z.nnz:,} non-zeros, {256 * 20_000 / seconds / 1e6:.0f} million entries per second")
print(f"  {20_000 / seconds:,.0f} rows per second; RBFSampler(256): {20_000 / (perf_counter() - start):,.0f}")

# %%
# Three storeys on two data sets
# ------------------------------
# A third of the rows is the test set, three times. The error is the share of wrong labels, or the share of the
# target's variance that the model does not explain. Seconds are the median time of a fit.

SPLITS = range(3)
ALPHAS = np.logspace(-2, 2, 5)


def models(classify):
    """A linear model, and one model per storey, by name."""
    ridge = (CGRidgeClassifier if classify else CGRidge)(alphas=ALPHAS, cv=5)
    linear = (RidgeClassifierCV if classify else RidgeCV)(np.logspace(-2, 3, 11))
    learned = RandomBinning(gamma="learn", output="codes", random_state=0)
    features = FunctionTransformer(binfeat.transform, accept_sparse=True, kw_args={"n_features": 2**16})
    return {
        "linear model": make_pipeline(StandardScaler(), linear),
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
# On digits each storey has a lower error than the one before. On diabetes there is little to gain over a linear model:
# most of what it leaves unexplained is noise.
#
# The picture
# -----------
# From left to right: one random grid over the plane, with a color for each bin; the sparse matrix of 30 points in four
# grids; estimates of the kernel by 256 grids, with twice their standard error; and the test errors from above.

RED, BLUE, GREY = "#c8452d", "#1f5fa8", "#a39c91"
points = np.random.default_rng(5).normal(size=(30, 2))
ticks = np.linspace(-3, 3, 240)
mesh = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
binning = RandomBinning(gamma=0.7, n_grids=4, random_state=2, output="codes").fit(points)
cells = RandomBinning(gamma=0.7, n_grids=4, random_state=2, output="codes").fit(mesh)
figure, (grid_ax, matrix_ax, kernel_ax, error_ax) = plt.subplots(
    1, 4, figsize=(14, 3.9), width_ratios=(1, 1.1, 1.1, 1.4), layout="constrained"
)
bins = cells.encode(mesh).codes[0].reshape(240, 240)
palette = plt.get_cmap("tab20")(np.arange(bins.max() + 1) % 20)
grid_ax.imshow(palette[bins], origin="lower", extent=(-3, 3, -3, 3), alpha=0.4, aspect="auto")
grid_ax.scatter(*points.T, s=16, c=palette[cells.encode(points).codes[0]], edgecolors="0.2", linewidths=0.6)
grid_ax.set(xticks=[], yticks=[], title="A random grid divides the inputs")

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
kernel_ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="exact kernel", ylabel="inner product of rows of Z")
kernel_ax.set_title("Z Z' estimates the kernel")

names = list(models(True))
colors = dict(zip(names, (GREY, "#8fbde0", BLUE, RED), strict=True))
for row, table in enumerate(("diabetes", "digits")):
    for place, name in zip((0.3, 0.1, -0.1, -0.3), names, strict=True):
        share = errors[table, name] / errors[table, "linear model"]
        label = name if row == 0 else None
        error_ax.barh(row + place, 100 * share, height=0.17, color=colors[name], label=label)
        error_ax.annotate(f" {errors[table, name]:.1%}", (100 * share, row + place), va="center", fontsize=8)
error_ax.set_yticks((0, 1), ("diabetes", "digits"))
error_ax.set(xlim=(0, 125), ylim=(-0.5, 2.35), xlabel="test error, % of the linear model's")
error_ax.set_title("Models on the features")
error_ax.legend(frameon=False, fontsize=8, loc="upper left")
for ax in (kernel_ax, error_ax):
    ax.spines[["top", "right"]].set_visible(False)

figure.savefig("quickstart.png", dpi=140)
print("\nwrote", Path("quickstart.png").resolve())
