r"""
Linear models on features
=========================

This page is for readers who train a linear model on random features: :class:`binfeat.CGRidge` for numbers and
:class:`binfeat.CGRidgeClassifier` for classes. Both accept CSR, dense arrays, ``BinMatrix`` codes, a
``RandomFeatureUnion``, and any SciPy ``LinearOperator``, in memory, in files or on Dask. :doc:`plot_14_features`
describes the features.
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

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning

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
# :math:`v_i`. It is the objective of scikit-learn's ``Ridge``, and ``alpha`` has the same meaning. The intercept is not
# penalized. Features are centred implicitly, so sparse features stay sparse.

model = CGRidge(alpha=0.1).fit(Z_train, y_train)
reference = Ridge(alpha=0.1, solver="lsqr", tol=1e-8).fit(Z_train.tocsr(), y_train)
for name, own, Z in (("CGRidge", model, Z_test), ("Ridge", reference, Z_test.tocsr())):
    print(f"{name:8} R^2 {own.score(Z, y_test):.4f}")

# %%
# The solver
# ----------
# Conjugate gradients solve the normal equations ``(Z'Z + alpha) w = Z'y``. Only products with Z and its transpose are
# needed, so neither a matrix of all pairs of rows nor of all pairs of features is formed. The preconditioner is the
# diagonal of the matrix. All targets share each product: seven classes take four to five times as long as one class.
#
# There is one exception. If the features are dense and few, the solver forms their Gram matrix and solves exactly in
# one step. ``solver_`` is then "gram".
#
# Results on a ``BinMatrix`` are bitwise the same for any number of threads.
#
# When the solver stops
# ---------------------
# The default, ``tol=None``, stops when the last four iterations together lowered the objective by at most 0.04 % of its
# current value. Each iteration lowers the objective by the squared length of its step, measured in the norm that bounds
# the change of predictions for the training rows. Therefore the last decreases estimate how much can still be gained.
# On 29 tables with four penalties each, errors for new rows were within 1 % of the errors of the converged solution.
#
# A number is a tolerance for the residual of the normal equations, relative to the right-hand side. Use ``tol=1e-6`` if
# you need nearly exact coefficients, for example to interpret them.

exact = CGRidge(alpha=0.1, tol=1e-8, max_iter=1000).fit(Z_train, y_train).coef_
for tol in (None, 1e-2, 1e-6):
    own = CGRidge(alpha=0.1, tol=tol, max_iter=1000).fit(Z_train, y_train)
    error = np.sqrt(np.mean((own.predict(Z_test) - y_test) ** 2))
    distance = np.linalg.norm(own.coef_ - exact) / np.linalg.norm(exact)
    print(f"tol={tol}: {own.n_iter_} iterations, RMSE {error:.4f}, relative error of the coefficients {distance:.1e}")

# %%
# A loose tolerance acts like additional regularization of unknown size. The error for new rows can be lower or higher
# than the error of ridge regression, so tune ``alpha`` instead.
#
# ``status_`` contains the reason why the solver stopped. If it is "max_iter", a ``ConvergenceWarning`` is issued and
# the coefficients of the last iteration are kept. ``early_stopping=True`` stops instead when the score on a validation
# set has not improved for five iterations. A small ``alpha`` needs more iterations than a large one.
#
# Choose alpha
# ------------
# ``alphas=`` fits a path of penalties, from the largest to the smallest, and each solution starts from the previous
# ones. So 20 penalties take about twice as long as the smallest one alone. The penalty with the best validation score
# is used, and the model is fitted again to all rows. The validation set is one random tenth of the rows; ``cv`` accepts
# any splitter of scikit-learn, and ``groups`` in ``fit`` keeps related rows in the same split.

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
# ``CGRidgeClassifier`` fits one target per class, 1 for the class and -1 for all others; two classes share one target.
# The predicted class has the largest score. An indicator matrix as y is a multilabel problem. ``class_weight`` and
# ``sample_weight`` work as in scikit-learn, and ``loss="squared_hinge"`` turns the model into a linear support vector
# machine.
#
# Scores of a ridge model are not probabilities. With ``probability=True``, ``fit`` calibrates the scores on validation
# rows, at the cost of one more solve per split, and ``predict_proba`` is available.

digits = train_test_split(*load_digits(return_X_y=True), random_state=0)
pixels_train, pixels_test, labels_train, labels_test = digits
on_pixels = RandomBinning(gamma=0.01, output="codes", random_state=0)
classifier = make_pipeline(on_pixels, CGRidgeClassifier(alpha=0.1, probability=True, random_state=0))
classifier.fit(pixels_train, labels_train)
probabilities = classifier.predict_proba(pixels_test)
print(f"{classifier.score(pixels_test, labels_test):.3f} correct, log-loss {log_loss(labels_test, probabilities):.3f}")

# %%
# Error bars
# ----------
# Ridge regression is the mean of a Bayesian linear model with the prior ``w ~ N(0, s2 / alpha)``, where s2 is the noise
# variance. ``n_posterior_samples`` draws samples of the posterior, and ``predict(Z, return_std=True)`` returns their
# standard deviation. Each sample is solved like one more target. With 32 samples a standard deviation has a relative
# error of about one eighth. The standard deviation does not include the noise; add ``noise_variance_`` for new
# observations.
#
# Pass codes instead of CSR. In codes, a bin without a training row is marked, and its coefficient has the variance of
# the prior, so the standard deviation grows far from the training rows. In CSR the bin has no entry.

bayes = CGRidge(alpha=0.1, n_posterior_samples=32, random_state=0).fit(Z_train, y_train)
prediction, deviation = bayes.predict(Z_test, return_std=True)
total = np.sqrt(deviation**2 + bayes.noise_variance_)
print(f"noise: estimated standard deviation {np.sqrt(bayes.noise_variance_):.2f}, true 0.5")
print(f"within two standard deviations: {np.mean(np.abs(y_test - prediction) < 2 * total):.0%}")
far = bayes.predict(binning.transform(X_test[:3] + 10), return_std=True)[1]
print(f"standard deviation: {deviation.mean():.2f} on average, {far.mean():.2f} far from the training rows")

# %%
# Rows that arrive later
# ----------------------
# ``partial_fit`` updates the model with more rows, and the result is the model of all rows so far. The bins must stay
# the same, so use hashed columns or a map that is already fitted. Codes of all rows are kept with the model.

hashed = RandomBinning(gamma=0.5, n_grids=200, n_features=2**16, output="codes", random_state=0).fit(X_train)
online = CGRidge(alpha=0.1)
for part in np.array_split(np.arange(len(X_train)), 3):
    online.partial_fit(hashed.transform(X_train[part]), y_train[part])
    print(f"R^2 {online.score(hashed.transform(X_test), y_test):.3f}")

# %%
# Files
# -----
# skops saves the map and the model in a file that cannot run code. Coefficients of columns without a training row are 0
# and are not stored: a model on 2\ :sup:`20` hashed columns has a hundredth of the bytes if 0.7 % of the columns are
# used. Predictions of a loaded model are bitwise the same.

wide = RandomBinning(gamma=0.5, n_grids=200, n_features=2**20, output="codes", random_state=0).fit(X_train)
saved = CGRidge(alpha=0.1).fit(wide.transform(X_train), y_train)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.skops"
    skops.io.dump(saved, file)
    print(f"{saved.coef_.nbytes / 1e6:.1f} MB of coefficients, {file.stat().st_size / 1e6:.2f} MB in the file")
    loaded = skops.io.load(file, trusted=["binfeat.CGRidge"])
    Z = wide.transform(X_test)
    print("equal predictions:", np.array_equal(loaded.predict(Z), saved.predict(Z)))

# %%
# Rows in files are on the page :doc:`plot_04_out_of_memory`, and Dask is on the page :doc:`plot_05_many_computers`. If
# you do not want to choose a kernel, gamma and alpha, use a kernel model: :doc:`plot_03_decisions`.
