"""
Random binning features
=======================

This page is for readers who want kernel features for a linear model of their own. A kernel k measures the similarity of
two rows x and y of a table, from 0 to 1. Random binning maps each row to a sparse vector of features, and the inner
product of two vectors estimates ``k(x, y)``. So a linear model on the features approximates a kernel method, and its
cost grows linearly with the number of rows.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits, make_friedman1
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import binfeat
from binfeat import CGRidge, RandomBinning

# %%
# What random binning is
# ----------------------
# A *grid* divides the input space into cells. For every input (column of X), a grid has a random cell width, the
# *pitch*, and a random shift. The kernel k determines the distribution of the pitches, so that x and y are in the same
# cell of a random grid with probability ``k(x, y)``.
#
# Each cell is one column of the feature matrix Z. A row has one non-zero entry per grid, ``1 / sqrt(n_grids)``, in the
# column of its cell. The inner product of two rows of Z is therefore the share of grids in which x and y are in the
# same cell. It is an unbiased estimate of ``k(x, y)``.
#
# :func:`binfeat.transform` computes these features in one call, without ``fit``. The example compares the inner
# products with the exact kernel.

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 4))
Z = binfeat.transform(X)
print(f"{type(Z).__name__} of shape {Z.shape}, {Z.nnz:,} non-zeros, {Z.nnz / len(X):.0f} per row")
exact = laplacian_kernel(X[:300], gamma=1 / 4)
error = (Z[:300] @ Z[:300].T).toarray() - exact
print(f"root mean squared error of the kernel: {np.sqrt(np.mean(error**2)):.4f}")

# %%
# Kernel and gamma
# ----------------
# The default kernel is the Laplacian, ``exp(-sum_j gamma_j |x_j - y_j|)``. Other choices are "hat" and some classes of
# `binfeat.kernels`; :doc:`plot_02_kernels` compares them. No distribution of pitches corresponds to the Gaussian
# kernel, so use :class:`binfeat.RandomFourier` for it.
#
# ``gamma`` is the inverse length scale: the larger gamma, the smaller the cells. Pass one number for all inputs, one
# number per input, or one of these values:
#
# - ``None`` (`transform` only, the default): ``1 / n_inputs`` for every input, as in scikit-learn. Scale the inputs to
#   unit variance first.
# - ``"scale"`` (the default of :class:`binfeat.RandomBinning`): ``1 / (n_inputs * std_j)``, where ``std_j`` is the
#   standard deviation of input j. The inputs need no scaling.
# - ``"learn"`` (not in `transform`): one gamma per input, learned from the targets in ``fit(X, y)``. The
#   inputs need no scaling. Use it if some inputs may be irrelevant, or if accuracy matters most.
#
# In this example only the first five inputs are informative. ``"learn"`` finds them: it sets the gamma of the
# irrelevant inputs to nearly 0.

X_friedman, y_friedman = make_friedman1(n_samples=1500, n_features=10, noise=0.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X_friedman, y_friedman, random_state=0)
for gamma in ("scale", "learn"):
    binning = RandomBinning(gamma=gamma, n_grids=400, output="codes", random_state=0)
    model = make_pipeline(binning, CGRidge(alpha=0.01)).fit(X_train, y_train)
    print(f"gamma={gamma!r}: R^2 {model.score(X_test, y_test):.3f}, gamma_ {np.round(binning.gamma_, 2)}")

# %%
# ``"learn"`` minimizes the leave-one-out error of kernel ridge regression. It then selects a common factor for all
# gammas by the validation error of ridge regression on the features. To learn length scales once for several feature
# maps, call :func:`binfeat.learn_gamma` and pass its result as ``gamma``.
#
# Number of grids
# ---------------
# The standard error of a kernel estimate is ``sqrt(k (1 - k) / n_grids)``: four times as many grids halve it. Time and
# memory are proportional to the number of grids. Start with the default of 256, and increase ``n_grids`` while the
# validation error decreases. ``RandomBinning.min_grids`` returns the smallest number of grids for a standard error.

for standard_error in (0.1, 0.05, 0.01):
    print(f"standard error {standard_error}: {RandomBinning.min_grids(standard_error)} grids")

# %%
# With an int ``random_state``, the first 256 of 512 grids are the same as with ``n_grids=256``. Therefore
# ``RandomBinning(warm_start=True)`` can add grids to a fitted map: after ``set_params(n_grids=512)``, ``fit`` keeps the
# first 256 grids and computes the others only.
#
# Missing values and categories
# -----------------------------
# A missing value (NaN) matches other missing values and nothing else. ``categorical_features`` selects inputs that
# contain categories. If two rows have different categories in input j, their kernel value is multiplied by
# ``exp(-gamma_j)``. Categorical columns of data frames can contain labels of any kind.
#
# Fitted or hashed columns
# ------------------------
# *Fitted columns* are the default of :class:`binfeat.RandomBinning`. Each cell that contains a training row, an
# *occupied bin*, is one column. Different bins never share a column. A new row in a cell without a training row has no
# entry for this grid.
#
# *Hashed columns* are the columns of `transform`, and of :class:`binfeat.RandomBinning` with an int ``n_features``.
# Each grid has ``n_features // n_grids`` columns, and a hash of the cell selects one of them. They need no training
# rows, and are the same in every process and on every computer. Use them for streams.
#
# Two different bins of a grid share a hashed column with probability ``n_grids / n_features``. With the defaults, 256
# grids and 2\ :sup:`20` columns, this adds at most 0.00024 to a kernel estimate, far less than its standard error of up
# to 0.031. A warning appears if a grid has fewer than ``2 * sqrt(n_grids)`` columns, because the bias can then exceed
# the largest standard error. The default seed of `transform` is public, so an attacker can construct different rows
# that share columns. Use a secret ``random_state`` for rows from untrusted users.

new_rows = np.vstack([X[:1], X[1:2] + 0.5, X[2:3] + 100])
fitted = RandomBinning(gamma=0.25, random_state=0).fit(X)
hashed = RandomBinning(gamma=0.25, n_features=2**16, random_state=0).fit(X)
print(f"{fitted.n_bins_:,} occupied bins, {fitted.kappa_:.0f} per grid")
print("non-zeros per row: fitted", fitted.transform(new_rows).getnnz(axis=1), "hashed", end=" ")
print(hashed.transform(new_rows).getnnz(axis=1))
print("share of grids without a training row in the bin:", fitted.unseen_shares(new_rows).round(2))

# %%
# The third row is far from all training rows. Its fitted features are empty, so a linear model predicts its intercept.
# `RandomBinning.unseen_shares` detects rows far from the training rows, and ``transform`` of a fitted map warns if most
# rows of a batch are far.
#
# CSR or codes
# ------------
# The default output is a SciPy CSR matrix with 12 bytes per entry (8 for float32 inputs): a value and a column number.
# All values are equal, so it is enough to store the number of the row's bin in each grid. ``output="codes"`` returns a
# :class:`binfeat.BinMatrix` of these numbers, with 2 bytes per entry if no grid has more than 65,535 columns, else 4.

codes = RandomBinning(gamma=0.25, output="codes", random_state=0).fit_transform(X)
csr = codes.tocsr()
n_bytes = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
print(f"CSR: {n_bytes / csr.nnz:.1f} bytes per entry. Codes: {codes.nbytes / csr.nnz:.1f} bytes per entry.")
w = rng.normal(size=codes.shape[1])
print("equal products:", np.allclose(codes @ w, csr @ w))

# %%
# Use codes with ``CGRidge`` and ``CGRidgeClassifier``, which accept both forms and are faster on codes. A ``BinMatrix``
# is a SciPy ``LinearOperator``, so `scipy.sparse.linalg.lsqr` and ``svds`` also accept it. scikit-learn's models need
# CSR.
#
# With the linear models of scikit-learn
# --------------------------------------
# All linear models that accept sparse matrices work. The features need no scaling, because each row has length 1 (at
# most 1 with fitted columns).

digits = train_test_split(*load_digits(return_X_y=True), random_state=0)
pixels_train, pixels_test, labels_train, labels_test = digits
on_pixels = LogisticRegression(max_iter=1000).fit(pixels_train / 16, labels_train)
on_bins = make_pipeline(RandomBinning(gamma=0.01, random_state=0), LogisticRegression(C=100, max_iter=1000))
on_bins.fit(pixels_train, labels_train)
print(f"logistic regression on pixels: {on_pixels.score(pixels_test / 16, labels_test):.3f}")
print(f"logistic regression on bins:   {on_bins.score(pixels_test, labels_test):.3f}")

# %%
# Read the coefficients
# ---------------------
# A column of Z is a box in input space, and its coefficient is the contribution of the box to predictions.
# `RandomBinning.bin_bounds` returns the bounds of the box. In this example the target is 1 in a rectangle (red points)
# and 0 elsewhere. The 25 boxes with the largest coefficients are mostly inside the rectangle.

plane = rng.uniform(-2, 2, size=(2000, 2))
in_rectangle = (np.abs(plane[:, 0] - 0.5) < 0.7) & (np.abs(plane[:, 1]) < 0.4)
binning = RandomBinning(gamma=1.0, n_grids=100, random_state=0)
model = CGRidge(alpha=0.1).fit(binning.fit_transform(plane), in_rectangle.astype(float))

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(*plane.T, c=in_rectangle, s=4, cmap="coolwarm")
for column in np.argsort(model.coef_)[-25:]:
    lower, upper = binning.bin_bounds(plane, column)
    ax.add_patch(Rectangle(lower, *(upper - lower), fill=False, edgecolor="k", linewidth=0.6))
ax.set(xlim=(-2, 2), ylim=(-2, 2), xlabel="first input", ylabel="second input")
lower, upper = binning.bin_bounds(plane, int(np.argmax(model.coef_)))
print("bounds of the largest coefficient:", lower.round(2), upper.round(2))

# %%
# Grids that are too fine or too coarse
# -------------------------------------
# Features generalize only if rows share bins. If most bins contain a single row, the features of different rows are
# unrelated. If nearly all rows are in the same bins, the features are nearly constant. A warning reports both cases,
# with the number kappa: the mean number of occupied bins per grid.

for gamma in (50.0, 1e-6):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        binfeat.transform(X, gamma=gamma)
    print(caught[0].message)

# %%
# There are two common causes. If the inputs have different units, such as grams and kilometers, scale them, or use
# ``gamma="scale"`` or ``"learn"``. If many inputs are irrelevant, use ``"learn"``.
#
# When other features are better
# ------------------------------
# scikit-learn's ``Nystroem`` adapts its components to the data. With few components its kernel error is several times
# lower than the error of random binning. In this example, both methods have 128 components or grids.

for n_inputs in (2, 4):
    rows, gamma = X[:, :n_inputs], 1 / n_inputs
    exact = laplacian_kernel(rows[:300], gamma=gamma)
    dense = Nystroem("laplacian", gamma=gamma, n_components=128, random_state=0).fit(rows).transform(rows[:300])
    sparse = binfeat.transform(rows[:300], gamma=gamma, n_grids=128)
    for name, estimate in (("Nystroem", dense @ dense.T), ("binning", (sparse @ sparse.T).toarray())):
        print(f"{n_inputs} inputs, {name:9} {np.sqrt(np.mean((estimate - exact) ** 2)):.3f} root mean squared error")

# %%
# The advantage of ``Nystroem`` is larger for fewer inputs and for smoother kernels.
#
# - Use ``Nystroem`` for a few hundred dense features.
# - Use :class:`binfeat.RandomFourier` for smooth targets, for the Gaussian or Matern kernel, or if the model needs
#   dense features. See :doc:`plot_02_kernels`.
# - Use random binning for many rows, sparse inputs, streams, targets with steps, and linear models that are fast on
#   sparse matrices.
#
# The next page, :doc:`plot_15_linear_models`, describes the ridge models for these features.
# :doc:`plot_04_out_of_memory` and :doc:`plot_05_many_computers` compute features of files and of Dask collections.
