r"""
Linear models on features
=========================

This page is for readers who train a linear model on random features: :class:`binfeat.CGRidge` for numbers and
:class:`binfeat.CGRidgeClassifier` for classes. Both accept CSR, dense arrays, a ``BinMatrix`` (*codes*, the number of
each row's bin in each grid), the output of a ``RandomFeatureUnion`` (several feature maps side by side), and any SciPy
``LinearOperator``. The rows can be in memory, in files or on Dask.
:doc:`plot_14_features` describes the features.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import skops.io
from sklearn.datasets import load_digits, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning, load

X, y = make_friedman1(n_samples=3000, n_features=5, noise=0.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
binning = RandomBinning(n_grids=200, output="codes", random_state=0)
Z_train, Z_test = binning.fit_transform(X_train), binning.transform(X_test)

# %%
# The objective
# -------------
# ``CGRidge`` minimizes
#
# .. math:: \sum_i v_i (y_i - w'z_i - b)^2 + \alpha |w|^2
#
# over the coefficients w and the intercept b, for features :math:`z_i`, targets :math:`y_i` and sample weights
# :math:`v_i`. The objective and the meaning of ``alpha`` are the same as in scikit-learn's ``Ridge``. The intercept is
# not penalized. Sparse features stay sparse.

model = CGRidge(alpha=0.1).fit(Z_train, y_train)
reference = Ridge(alpha=0.1, solver="lsqr", tol=1e-8).fit(Z_train.tocsr(), y_train)
for name, own, Z in (("CGRidge", model, Z_test), ("Ridge", reference, Z_test.tocsr())):
    print(f"{name:8} R^2 {own.score(Z, y_test):.4f}")

# %%
# The solver
# ----------
# The rows of the matrix Z are the features :math:`z_i`. Conjugate gradients solve the normal equations ``(Z'Z + alpha
# I) w = Z'y`` with products of Z and its transpose. Neither a matrix of all pairs of rows nor a matrix of all pairs of
# features is computed. All targets share each product, so seven targets take about four times as long as one target.
#
# If the features are dense and few, the solver computes their Gram matrix ``Z'Z`` and solves exactly in one step. The
# attribute ``solver_`` is then "gram".
#
# Results on a ``BinMatrix`` are bitwise the same for any number of threads.
#
# When the solver stops
# ---------------------
# The default, ``tol=None``, stops when the last four iterations together decreased the objective by at most 0.04 %. On
# 29 tables with four penalties each, test errors were then within 1 % of the errors of the converged solution.
#
# A number is a tolerance for the residual of the normal equations, relative to the right-hand side. Use ``tol=1e-6`` if
# you need nearly exact coefficients, for example to interpret them. The relative error of the coefficients is at most
# about ``tol`` times the largest eigenvalue of Z'Z divided by ``alpha``. For small penalties, use ``tol=1e-10`` and a
# larger ``max_iter``.

exact = CGRidge(alpha=0.1, tol=1e-8, max_iter=1000).fit(Z_train, y_train).coef_
for tol in (None, 1e-2, 1e-6):
    own = CGRidge(alpha=0.1, tol=tol, max_iter=1000).fit(Z_train, y_train)
    error = np.sqrt(np.mean((own.predict(Z_test) - y_test) ** 2))
    distance = np.linalg.norm(own.coef_ - exact) / np.linalg.norm(exact)
    print(f"tol={tol}: {own.n_iter_} iterations, RMSE {error:.4f}, relative error of the coefficients {distance:.1e}")

# %%
# Do not use a loose tolerance as regularization: its effect on the test error is unpredictable. Select ``alpha``
# instead.
#
# ``status_`` contains the reason why the solver stopped. If the reason is "max_iter", a ``ConvergenceWarning`` appears,
# and the model has the coefficients of the last iteration. Then increase ``max_iter`` or ``alpha``, because a small
# ``alpha`` needs more iterations. ``early_stopping=True`` stops when the score on a validation set has not improved for
# five iterations.
#
# Choose alpha
# ------------
# ``alphas=`` fits a path of penalties, from the largest to the smallest. Each solution starts from the previous
# solutions, so 20 penalties take about twice as long as the smallest penalty alone. The model is then fitted to all
# rows with the penalty that has the best validation score. By default, the validation set is a random tenth of the
# rows. ``cv`` accepts any splitter of scikit-learn, and ``groups`` in ``fit`` keeps related rows in the same split.

path = CGRidge(alphas=np.geomspace(0.001, 100, 16), cv=3).fit(Z_train, y_train)
print(f"alpha_ {path.alpha_:.3g}, R^2 {path.score(Z_test, y_test):.4f}")

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.semilogx(path.alphas_, path.path_scores_.T, color="0.7")
ax.semilogx(path.alphas_, path.path_scores_.mean(axis=0), label="mean of three splits")
ax.axvline(path.alpha_, color="C1", linestyle="--", label="alpha_")
ax.set(xlabel="alpha", ylabel="validation R^2")
ax.legend(frameon=False)

# %%
# Classes and probabilities
# -------------------------
# ``CGRidgeClassifier`` fits one target per class: 1 for the rows of the class and -1 for all other rows. Two classes
# share one target. The predicted class is the class with the largest score. If y is an indicator matrix, each row can
# have several labels. ``class_weight`` and ``sample_weight`` work as in scikit-learn. ``loss="squared_hinge"`` fits a
# linear support vector machine.
#
# Scores of a ridge model are not probabilities. With ``probability=True``, ``fit`` calibrates the scores on validation
# rows, and ``predict_proba`` is available. The calibration needs one more solve per split.

digits = train_test_split(*load_digits(return_X_y=True), random_state=0)
pixels_train, pixels_test, labels_train, labels_test = digits
on_pixels = RandomBinning(gamma=0.01, output="codes", random_state=0)
classifier = make_pipeline(on_pixels, CGRidgeClassifier(alpha=0.1, probability=True, random_state=0))
classifier.fit(pixels_train, labels_train)
probabilities = classifier.predict_proba(pixels_test)
print(f"accuracy {classifier.score(pixels_test, labels_test):.3f}, log-loss {log_loss(labels_test, probabilities):.3f}")

# %%
# Error bars
# ----------
# A ridge prediction is the posterior mean of a Bayesian linear model. ``predict(Z, return_std=True)`` returns the
# posterior standard deviation, if ``fit`` drew posterior samples: set ``n_posterior_samples``. A sample takes as long
# as one more target, or as 4 to 8 targets if ``alpha`` is small. With 32 samples, the relative error of a standard
# deviation is about 1/8. The standard deviation does not include the noise of y. For new observations, add
# ``noise_variance_`` to its square, as below.
#
# Pass codes, not CSR. Codes mark the bins without a training row, so the standard deviation grows far from the training
# rows. In CSR these bins have no entry, and the standard deviation far from the training rows is too small.

bayes = CGRidge(alpha=0.1, n_posterior_samples=32, random_state=0).fit(Z_train, y_train)
prediction, deviation = bayes.predict(Z_test, return_std=True)
total = np.sqrt(deviation**2 + bayes.noise_variance_)
print(f"noise: estimated standard deviation {np.sqrt(bayes.noise_variance_):.2f}, true 0.5")
print(f"test rows within two standard deviations: {np.mean(np.abs(y_test - prediction) < 2 * total):.0%}")
far = bayes.predict(binning.transform(X_test[:3] + 10), return_std=True)[1]
print(f"standard deviation: {deviation.mean():.2f} on average, {far.mean():.2f} far from the training rows")

# %%
# Rows that arrive later
# ----------------------
# ``partial_fit`` adds rows, and the result is the model of all rows so far. The columns must stay the same, so use
# hashed columns or a fitted map. The model stores the codes of all rows.

hashed = RandomBinning(gamma=0.5, n_grids=200, n_features=2**16, output="codes", random_state=0).fit(X_train)
online = CGRidge(alpha=0.1)
for part in np.array_split(np.arange(len(X_train)), 3):
    online.partial_fit(hashed.transform(X_train[part]), y_train[part])
    print(f"R^2 {online.score(hashed.transform(X_test), y_test):.3f}")

# %%
# Files
# -----
# skops saves an estimator in a file that cannot run code when it is loaded. Coefficients of columns without a training
# row are 0, and the file does not contain them. Predictions of the loaded model are bitwise the same.

wide = RandomBinning(gamma=0.5, n_grids=200, n_features=2**20, output="codes", random_state=0).fit(X_train)
saved = CGRidge(alpha=0.1).fit(wide.transform(X_train), y_train)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.skops"
    skops.io.dump(saved, file)
    print(f"{saved.coef_.nbytes / 1e6:.1f} MB of coefficients, {file.stat().st_size / 1e6:.2f} MB in the file")
    loaded = load(file)
    Z = wide.transform(X_test)
    print("equal predictions:", np.array_equal(loaded.predict(Z), saved.predict(Z)))

# %%
# :doc:`plot_04_out_of_memory` fits these models to rows in files, and :doc:`plot_05_many_computers` to Dask
# collections. A kernel model selects the kernel, gamma and alpha for you: :doc:`plot_03_decisions`.
