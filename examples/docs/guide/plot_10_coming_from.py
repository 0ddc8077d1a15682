"""
Coming from LightGBM, GPyTorch or scikit-learn
==============================================

What you know by another name, and what you need no more. Code of this page runs without the other packages.
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
#    * - there
#      - here
#    * - ``n_estimators``, ``learning_rate``, ``num_leaves``, ``min_child_samples``, ...
#      - nothing: length scales, kernel and penalty are chosen in ``fit``
#    * - ``early_stopping`` on an ``eval_set``
#      - leave-one-out predictions; ``cv=[(train_rows, held_out_rows)]`` names rows of your own
#    * - a search of settings for an hour
#      - ``max_seconds`` bounds a single ``fit``
#    * - ``categorical_feature``
#      - columns of strings or categories of a data frame, and numbers that the targets show to be codes;
#        ``categorical_features`` names others
#    * - ``objective="quantile"``, a fit for each ``alpha``
#      - ``predict_quantiles(X, [0.1, 0.5, 0.9])`` after one fit
#    * - ``objective="poisson"``, ``"gamma"``, ``"tweedie"``, ``"huber"``
#      - ``loss=``; exposures are ``sample_weight``, with rates as targets
#    * - ``is_unbalance``, ``scale_pos_weight``, ``CalibratedClassifierCV`` behind it
#      - ``class_weight="balanced"``; probabilities are calibrated
#    * - ``metric``
#      - ``scoring``, by which choices are then made
#    * - ``feature_importances_``; ``pred_contrib=True``, ``shap.TreeExplainer``
#      - ``feature_importances_``; ``shapley_values(X)``, which ``shap`` draws
#    * - ``init_model``, ``lightgbm.dask``, ``save_model``
#      - ``warm_start=True``, ``binfeat.distributed``, ``skops.io.dump``
#    * - ``monotone_constraints``, ranking, graphics cards
#      - no
#
# Trees jump and are constant beyond their rows; kernel machines are continuous and return to the mean.
# Where targets jump along many inputs at once, keep the trees.

machine = KernelMachineRegressor(random_state=0).fit(X_train, y_train)
print(machine.predict_quantiles(X_test[:2], [0.1, 0.5, 0.9]).round())
print(dict(zip(machine.feature_names_in_.tolist(), machine.feature_importances_.round(2).tolist())))

# %%
# GPyTorch, GPy, scikit-learn's Gaussian process
# ----------------------------------------------
# An exact machine *is* the mean of a Gaussian process, of standardised targets, with a kernel plus 1. ``alpha`` is the
# variance of the noise, and ``gamma`` an inverse length scale, so that the Gaussian kernel is ``exp(-sum_j (gamma_j
# D_j)^2)``: their ``lengthscale`` is ``1 / (sqrt(2) gamma_j)``.

scaled_train, scaled_test = (StandardScaler().fit(X_train).transform(X) for X in (X_train, X_test))
options = {"features": "exact", "kernel": "rbf", "gamma": 0.15, "alpha": 0.6}
ours = KernelMachineRegressor(**options, target_transform=None).fit(scaled_train, y_train)
theirs = GaussianProcessRegressor(
    RBF(1 / (np.sqrt(2) * 0.15)) + ConstantKernel(1.0), alpha=0.6, optimizer=None, normalize_y=True
).fit(scaled_train, y_train)
print("means differ by at most", np.abs(ours.predict(scaled_test) - theirs.predict(scaled_test)).max().round(3))

# %%
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - there
#      - here
#    * - ``ScaleKernel(MaternKernel(1.5, ard_num_dims=d))``
#      - the default, or a sum with the Laplacian; ``kernel="rbf"``, ``Matern(2.5)``, ``Laplacian()``
#    * - marginal likelihood by Adam, a loop of your own
#      - leave-one-out error by Adam, in ``fit``, on a few hundred rows a step
#    * - ``lengthscale``, ``outputscale``, ``noise``
#      - ``gamma_``, 1, ``alpha_`` (both of standardised targets; ``gamma_`` of scaled inputs)
#    * - ``model(x).mean``, ``.stddev``
#      - ``predict(X, return_std=True)``
#    * - ``likelihood(model(x)).confidence_region()``
#      - ``predict_interval(X, coverage=0.95)``, which holds its share without a normal law
#    * - ``model(x).rsample()``
#      - ``sample_y(X, n_samples)``
#    * - ``InducingPointKernel``, ``SVGP``
#      - nothing: beyond 10,000 rows machines are local
#    * - classification by a variational approximation
#      - ``KernelMachineClassifier``: least squares, calibrated by leave-one-out predictions
#    * - kernels of your own, trends plus periods, multitask, graphics cards
#      - no: keep GPyTorch

mean, deviation = machine.predict(X_test, return_std=True)
order = np.argsort(mean)
figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
low, high = machine.predict_interval(X_test, coverage=0.9)[order].T
ax.fill_between(np.arange(len(order)), low, high, color="C0", alpha=0.2, linewidth=0, label="90 % of new patients")
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
#    * - there
#      - here
#    * - ``make_pipeline(SimpleImputer(), OneHotEncoder(), StandardScaler(), SVR())``
#      - ``KernelMachineRegressor()`` on the table as it is
#    * - ``GridSearchCV(SVR(), {"C": ..., "gamma": ...})``
#      - nothing; to search all the same, ``alpha`` and ``gamma`` are parameters
#    * - ``KernelRidge(kernel="laplacian", gamma=g, alpha=a)``
#      - ``KernelMachineRegressor(features="exact", kernel="laplacian", gamma=g, alpha=a)``
#    * - ``SVR(epsilon=...)`` against gross errors
#      - ``loss="huber"``
#    * - ``SVC(probability=True)``
#      - ``KernelMachineClassifier().predict_proba``
#    * - ``RBFSampler`` or ``Nystroem``, then ``RidgeCV``
#      - ``RandomFourier`` or ``RandomBinning``, then ``CGRidge(alphas=...)``; or ``features="fourier"``
#    * - ``MLPRegressor``, ``HistGradientBoostingRegressor`` in a pipeline
#      - the same place: these are scikit-learn estimators

gamma = 0.1
ridge = KernelRidge(kernel="laplacian", gamma=gamma, alpha=0.6).fit(scaled_train, y_train - y_train.mean())
same = KernelMachineRegressor(features="exact", kernel="laplacian", gamma=gamma, alpha=0.6)
same.set_params(target_transform=None).fit(scaled_train, y_train)
apart = np.abs(ridge.predict(scaled_test) + y_train.mean() - same.predict(scaled_test)).max()
print(
    f"KernelRidge, which has no intercept, and ours: {apart:.1f} apart at most, of a deviation of {y_train.std():.0f}"
)
for words, one, rows in (("one gamma", same, scaled_test), ("learned", machine, X_test)):
    print(f"{words:9} {1 - one.score(rows, y_test):.3f} of the variance left unexplained")
