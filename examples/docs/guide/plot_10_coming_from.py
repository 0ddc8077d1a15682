"""
Coming from LightGBM, GPyTorch or scikit-learn
==============================================

This page is for users of other libraries. It lists the equivalents of their parameters. The code runs without the other
libraries.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from binfeat import KernelMachineRegressor

X_train, X_test, y_train, y_test = train_test_split(*load_diabetes(return_X_y=True, as_frame=True), random_state=0)

# %%
# LightGBM, XGBoost, CatBoost
# ---------------------------
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - other library
#      - binfeat
#    * - ``n_estimators``, ``learning_rate``, ``num_leaves``, ``min_child_samples``, ...
#      - not needed: length scales, kernel and penalty are selected in ``fit``
#    * - ``early_stopping`` on an ``eval_set``
#      - leave-one-out errors; ``cv=[(train_rows, validation_rows)]`` sets your own validation rows
#    * - an hour of hyperparameter search
#      - a single ``fit``; ``max_seconds`` limits its time
#    * - ``categorical_feature``
#      - automatic for strings and categories of a data frame, and for numeric codes;
#        ``categorical_features`` overrides the detection
#    * - ``objective="quantile"``, one fit per ``alpha``
#      - ``predict_quantiles(X, [0.1, 0.5, 0.9])`` after one fit
#    * - ``objective="poisson"``, ``"gamma"``, ``"tweedie"``, ``"huber"``
#      - ``loss=``; for exposures, pass rates as targets and exposures as ``sample_weight``
#    * - ``is_unbalance``, ``scale_pos_weight``, ``CalibratedClassifierCV``
#      - ``class_weight="balanced"``; probabilities are calibrated
#    * - ``metric``
#      - ``scoring``, which hyperparameter selection then maximizes
#    * - ``feature_importances_``; ``pred_contrib=True``, ``shap.TreeExplainer``
#      - ``feature_importances_``; ``shapley_values(X)``, compatible with the plots of ``shap``
#    * - ``init_model``, ``lightgbm.dask``, ``save_model``
#      - ``warm_start=True``, ``binfeat.distributed``, ``skops.io.dump``
#    * - ``monotone_constraints``, ranking, GPUs
#      - not available
#
# Predictions of trees are piecewise constant. Predictions of exact models are continuous, and return to the mean far
# from the training rows. If the target has steps in many inputs at once, keep the trees.

model = KernelMachineRegressor(random_state=0).fit(X_train, y_train)
print(model.predict_quantiles(X_test[:2], [0.1, 0.5, 0.9]).round())
print(dict(zip(model.feature_names_in_.tolist(), model.feature_importances_.round(2).tolist())))

# %%
# GPyTorch, GPy, scikit-learn's Gaussian process
# ----------------------------------------------
# The prediction of an exact model is the posterior mean of a Gaussian process for standardized targets. The kernel of
# the process is the given kernel plus 1 (for the intercept), and ``alpha`` is its noise variance. The Gaussian kernel
# is ``exp(-sum_j gamma_j D_j^2)``, so the ``lengthscale`` of other libraries is ``1 / sqrt(2 gamma_j)``.

scaled_train, scaled_test = (StandardScaler().fit(X_train).transform(X) for X in (X_train, X_test))
options = {"features": "exact", "kernel": "rbf", "gamma": 0.0225, "alpha": 0.6}
ours = KernelMachineRegressor(**options, target_transform=None).fit(scaled_train, y_train)
theirs = GaussianProcessRegressor(
    RBF(1 / np.sqrt(2 * 0.0225)) + ConstantKernel(1.0), alpha=0.6, optimizer=None, normalize_y=True
).fit(scaled_train, y_train)
print(
    "largest difference of the predictions:",
    np.abs(ours.predict(scaled_test) - theirs.predict(scaled_test)).max().round(3),
)

# %%
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - other library
#      - binfeat
#    * - ``ScaleKernel(MaternKernel(1.5, ard_num_dims=d))``
#      - ``kernel="auto"`` (the default) selects Laplacian, ``Matern(1.5)``, Gaussian, or a sum of two;
#        ``kernel="rbf"``, ``Matern(2.5)`` or ``Laplacian()`` sets it
#    * - marginal likelihood, maximized by Adam in your own loop
#      - leave-one-out error, minimized by Adam in ``fit``, on a few hundred rows per step
#    * - ``lengthscale``, ``outputscale``, ``noise``
#      - ``gamma_`` (for scaled inputs), 1, ``alpha_`` (for standardized targets)
#    * - ``model(x).mean``, ``.stddev``
#      - ``predict(X, return_std=True)``
#    * - ``likelihood(model(x)).confidence_region()``
#      - ``predict_interval(X, coverage=0.95)``, without the assumption of a normal distribution
#    * - ``model(x).rsample()``
#      - ``sample_y(X, n_samples)``
#    * - ``InducingPointKernel``, ``SVGP``
#      - not needed: with more than 10,000 rows the model is local
#    * - classification by a variational approximation
#      - ``KernelMachineClassifier``: least squares, calibrated on leave-one-out predictions
#    * - custom kernels, trends plus periods, multitask, GPUs
#      - not available: keep GPyTorch

mean, deviation = model.predict(X_test, return_std=True)
order = np.argsort(mean)
figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
low, high = model.predict_interval(X_test, coverage=0.9)[order].T
ax.fill_between(np.arange(len(order)), low, high, color="C0", alpha=0.2, linewidth=0, label="90 % interval")
ax.plot(mean[order], label="prediction")
ax.plot(y_test.to_numpy()[order], "k.", markersize=3)
ax.legend(frameon=False)

# %%
# scikit-learn: SVR, KernelRidge, Nystroem
# ----------------------------------------
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - other library
#      - binfeat
#    * - ``make_pipeline(SimpleImputer(), OneHotEncoder(), StandardScaler(), SVR())``
#      - ``KernelMachineRegressor()`` on the raw table
#    * - ``GridSearchCV(SVR(), {"C": ..., "gamma": ...})``
#      - not needed; ``alpha`` and ``gamma`` are parameters if you want to search
#    * - ``KernelRidge(kernel="laplacian", gamma=g, alpha=a)``
#      - ``KernelMachineRegressor(features="exact", kernel="laplacian", gamma=g, alpha=a)``
#    * - ``SVR(epsilon=...)`` against outliers in y
#      - ``loss="huber"``
#    * - ``SVC(probability=True)``
#      - ``KernelMachineClassifier().predict_proba``
#    * - ``RBFSampler`` or ``Nystroem``, then ``RidgeCV``
#      - ``RandomFourier`` or ``RandomBinning``, then ``CGRidge(alphas=...)``; or ``features="fourier"``
#    * - ``MLPRegressor``, ``HistGradientBoostingRegressor`` in a pipeline
#      - ``KernelMachineRegressor`` in the same pipeline

gamma = 0.1
ridge = KernelRidge(kernel="laplacian", gamma=gamma, alpha=0.6).fit(scaled_train, y_train - y_train.mean())
same = KernelMachineRegressor(features="exact", kernel="laplacian", gamma=gamma, alpha=0.6)
same.set_params(target_transform=None).fit(scaled_train, y_train)
difference = np.abs(ridge.predict(scaled_test) + y_train.mean() - same.predict(scaled_test)).max()
print(f"KernelRidge has no intercept: largest difference {difference:.1f}, standard deviation of y {y_train.std():.0f}")
for name, fitted, rows in (("one gamma", same, scaled_test), ("learned", model, X_test)):
    print(f"{name:9} {1 - fitted.score(rows, y_test):.3f} of the variance unexplained")
