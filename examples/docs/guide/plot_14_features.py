"""
Sparse random features
======================

This page is for readers who want kernel features for a linear model of their own. Random binning maps each row of a
numeric table to a sparse row of features. The inner product of two sparse rows estimates the kernel value of the two
table rows, so a linear model on the features approximates a kernel method. Its cost grows linearly with the number of
rows.
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
# A *grid* divides the input space into cells. For every input it has a random cell width, the *pitch*, and a random
# shift. Two rows x and y fall into the same cell of a random grid with probability ``k(x, y)``, where k is the kernel
# that determines the distribution of the pitches. Each cell is one column of the feature matrix Z. A row has one
# non-zero entry per grid, ``1 / sqrt(n_grids)``, in the column of its cell. So the inner product of two rows of Z is
# the share of grids in which the rows share a cell: an unbiased estimate of ``k(x, y)``.
#
# :func:`binfeat.transform` computes these features in one call, without ``fit``.

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
# The default kernel is the Laplacian, ``exp(-sum_j gamma_j |x_j - y_j|)``. Other choices are "hat" and the classes in
# `binfeat.kernels`; :doc:`plot_02_kernels` compares them. The Gaussian kernel has no binning features, because no
# distribution of pitches yields it. Use :class:`binfeat.RandomFourier` for the Gaussian kernel.
#
# ``gamma`` is the inverse length scale: a larger value means smaller cells. Pass one number, one number per input, or
# one of these defaults:
#
# - ``None`` (only `transform`): ``1 / n_inputs`` for every input, as in scikit-learn. It suits inputs of unit variance,
#   so scale the inputs first.
# - ``"scale"`` (the default of :class:`binfeat.RandomBinning`): ``1 / (n_inputs * std_j)`` for input j. It needs no
#   scaled inputs.
# - ``"learn"``: one length scale per input, learned from the targets by the leave-one-out error of kernel ridge
#   regression, and one common factor, chosen by the validation error of ridge regression on the features. It needs
#   ``fit(X, y)``, and it is the most accurate option if some inputs are irrelevant.

X_friedman, y_friedman = make_friedman1(n_samples=1500, n_features=10, noise=0.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X_friedman, y_friedman, random_state=0)
for gamma in ("scale", "learn"):
    binning = RandomBinning(gamma=gamma, n_grids=400, output="codes", random_state=0)
    model = make_pipeline(binning, CGRidge(alpha=0.01)).fit(X_train, y_train)
    print(f"gamma={gamma!r}: R^2 {model.score(X_test, y_test):.3f}, gamma_ {np.round(binning.gamma_, 2)}")

# %%
# Only the first five inputs of this table are informative, and ``"learn"`` gives them the largest values of gamma. To
# learn length scales once and use them in several maps, call :func:`binfeat.learn_gamma` and pass its result as
# ``gamma``.
#
# Number of grids
# ---------------
# Each grid is one independent sample of the event "x and y share a cell". The standard error of a kernel estimate is
# therefore ``sqrt(k (1 - k) / n_grids)``. Half the error needs four times the grids. ``RandomBinning.min_grids``
# returns the smallest number of grids for a given standard error.

for standard_error in (0.1, 0.05, 0.01):
    print(f"standard error {standard_error}: {RandomBinning.min_grids(standard_error)} grids")

# %%
# With an int ``random_state``, grid p is the same for any ``n_grids``. So features of 512 grids contain the grids of
# 256.
#
# Missing values and categories
# -----------------------------
# A missing value (NaN) matches other missing values and nothing else. ``categorical_features`` selects inputs that
# contain categories: two different categories of input j multiply the kernel by ``exp(-gamma_j)``. Categorical columns
# of data frames can contain labels of any kind.
#
# The hash, and two kinds of columns
# ----------------------------------
# A cell is identified by a 64-bit hash of its indices. The hash is a sum of one keyed term per input, followed by a
# mixing step; the keys are random and belong to the grid. Zeros contribute nothing to the sum, so sparse rows cost as
# much as their non-zero entries. Two different cells of one grid have equal hashes with probability about
# :math:`2^{-64}`. Among m cells, the expected number of collisions is about :math:`m^2 / 2^{65}`, which is 0.00000003
# for a million cells. Anyone who knows the seed can construct rows that collide, so use a secret ``random_state`` if
# rows come from untrusted users.
#
# *Fitted columns* (``RandomBinning()``, ``n_features=None``) create one column for each cell that contains a training
# row, an *occupied bin*. Different bins never share a column, so the estimate is unbiased. New rows in other cells have
# no entry in that grid.
#
# *Hashed columns* (``n_features=`` an int, and `transform`) reserve ``n_features // n_grids`` columns per grid and
# reduce the hash to one of them. They need no training rows, and equal arguments give equal columns in every process
# and on every computer. The price is a bias: two different bins of a grid share a column with probability
# ``n_grids / n_features``, which adds ``(1 - k) * n_grids / n_features`` to the expected estimate. With 256 grids and
# the default 2\ :sup:`20` columns this bias is at most 0.00024, far below the standard error of up to 0.031. If
# ``n_features < 2 * n_grids ** 1.5``, the largest bias exceeds the largest standard error, and a warning recommends
# more columns.

new_rows = np.vstack([X[:1], X[1:2] + 0.5, X[2:3] + 100])
fitted = RandomBinning(gamma=0.25, random_state=0).fit(X)
hashed = RandomBinning(gamma=0.25, n_features=2**16, random_state=0).fit(X)
print(f"{fitted.n_bins_:,} occupied bins, {fitted.kappa_:.0f} per grid")
print("non-zeros per row: fitted", fitted.transform(new_rows).getnnz(axis=1), "hashed", end=" ")
print(hashed.transform(new_rows).getnnz(axis=1))
print("share of grids without a training row in the bin:", fitted.unseen_shares(new_rows).round(2))

# %%
# The third row is far from all training rows, and its fitted features are empty: a linear model predicts its intercept.
# `RandomBinning.unseen_shares` detects such rows, and `transform` warns if a batch mostly contains such rows.
#
# CSR or codes
# ------------
# The default output is a SciPy CSR matrix with one entry per row and grid. An entry has 12 bytes: a value in float64
# and a column number in int32 (8 bytes for float32 inputs). All values are equal, and entry p of a row belongs to grid
# p. So the bin number within the grid is enough. ``output="codes"`` returns a :class:`binfeat.BinMatrix` of these
# numbers: 2 bytes per entry if no grid has more than 65,535 columns, else 4.

codes = RandomBinning(gamma=0.25, output="codes", random_state=0).fit_transform(X)
csr = codes.tocsr()
n_bytes = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
print(f"CSR: {n_bytes / csr.nnz:.1f} bytes per entry. Codes: {codes.nbytes / csr.nnz:.1f} bytes per entry.")
w = rng.normal(size=codes.shape[1])
print("equal products:", np.allclose(codes @ w, csr @ w))

# %%
# A ``BinMatrix`` is a SciPy ``LinearOperator``, so `scipy.sparse.linalg.lsqr` or ``svds`` accept it. ``CGRidge`` and
# ``CGRidgeClassifier`` accept both forms and are faster on codes. Scikit-learn's linear models need CSR.
#
# With the linear models of scikit-learn
# --------------------------------------
# The features have no scale to choose: every row has length 1 (fitted columns: at most 1). Any sparse linear model
# works; strengthen its regularization if there are more features than rows.

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
# A column of Z is a box in input space, and its coefficient is the contribution of that box to the prediction.
# `RandomBinning.bin_bounds` returns the lower and upper bounds of the box. Here the target is 1 in a rectangle and 0
# elsewhere. The boxes with the largest coefficients lie mostly in the rectangle.

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
# Features generalize only if rows share bins. If most bins contain a single row, no row is informative about another
# one. If nearly all rows share their bins, the features are nearly constant. A warning reports either case, with
# kappa, the mean number of occupied bins per grid.

for gamma in (50.0, 1e-6):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        binfeat.transform(X, gamma=gamma)
    print(caught[0].message)

# %%
# A common cause is a column in other units, such as grams next to kilometres. Scale the inputs, or use
# ``gamma="scale"`` or ``"learn"``. Many irrelevant inputs with the same gamma have the same effect; ``"learn"`` sets
# their gamma to nearly 0.
#
# When other features win
# -----------------------
# The error of random binning falls only with the root of the number of grids. scikit-learn's ``Nystroem`` adapts its
# components to the data, and with few components its kernel error is several times lower:

for n_inputs in (2, 4):
    rows, gamma = X[:, :n_inputs], 1 / n_inputs
    exact = laplacian_kernel(rows[:300], gamma=gamma)
    dense = Nystroem("laplacian", gamma=gamma, n_components=128, random_state=0).fit(rows).transform(rows[:300])
    sparse = binfeat.transform(rows[:300], gamma=gamma, n_grids=128)
    for name, estimate in (("Nystroem", dense @ dense.T), ("binning", (sparse @ sparse.T).toarray())):
        print(f"{n_inputs} inputs, {name:9} {np.sqrt(np.mean((estimate - exact) ** 2)):.3f} root mean squared error")

# %%
# Both have 128 components or grids. The advantage of ``Nystroem`` is larger for fewer inputs and smoother kernels.
#
# - Use ``Nystroem`` if some hundred features must do, and if a dense matrix of rows times components fits in memory.
# - Use :class:`binfeat.RandomFourier` for smooth targets, for the Gaussian or Matern kernel, or if the model needs
#   dense features. See :doc:`plot_02_kernels`.
# - Use random binning for many rows, sparse inputs, streams, targets with steps, and linear models that are fast on
#   sparse matrices.
#
# :doc:`plot_15_linear_models` describes the ridge models that train on these features. Features of files and of Dask
# collections are on the pages :doc:`plot_04_out_of_memory` and :doc:`plot_05_many_computers`.
