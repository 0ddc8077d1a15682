"""
Which estimator?
================

This page is for readers who see binfeat for the first time. Choose by your data:

- *A table of mixed columns*, up to about 100,000 rows: a kernel model, :class:`binfeat.KernelMachineRegressor` or
  :class:`binfeat.KernelMachineClassifier`. It accepts a raw data frame and needs no tuning.
- *More rows, sparse inputs, or your own pipeline*: :class:`binfeat.RandomBinning` features and a linear model, for
  example :class:`binfeat.CGRidge` or a linear model of scikit-learn.
- *A smooth target, or a model that needs dense features*: :class:`binfeat.RandomFourier` and a linear model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from binfeat import CGRidge, KernelMachineRegressor, RandomBinning, RandomFourier

X, y = make_friedman1(n_samples=1500, n_features=10, noise=0.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# Three models on the same table
# ------------------------------
# Only five of the ten inputs determine the target. The first two models are ridge regression on random features, with
# the same ``gamma`` for all inputs: the inverse length scale, which determines how fast the kernel decays along an
# input. The kernel model learns one gamma per input, so it ignores the five irrelevant inputs.

models = {
    "binning": make_pipeline(RandomBinning(gamma=0.5, n_grids=400, random_state=0), CGRidge(alpha=0.01)),
    "Fourier": make_pipeline(RandomFourier(gamma=0.5, n_components=800, random_state=0), CGRidge(alpha=0.01)),
    "kernel model": KernelMachineRegressor(random_state=0),
}
scores = {name: model.fit(X_train, y_train).score(X_test, y_test) for name, model in models.items()}
for name, score in scores.items():
    print(f"{name:15} R^2 {score:.3f}")
print("relevance of the inputs:", np.round(models["kernel model"].feature_relevances_, 2))

# %%
figure, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
ax.barh(list(scores), [1 - score for score in scores.values()])
ax.set_xlabel("share of the variance that is not explained, 1 - R^2")

# %%
# Other estimators
# ----------------
# - :class:`binfeat.CGRidgeClassifier` predicts classes. With ``loss="squared_hinge"`` it is a linear support vector
#   machine on the features.
# - :func:`binfeat.transform` computes binning features without ``fit``, for example for a stream of rows.
# - :func:`binfeat.learn_gamma` learns one gamma per input, for use in several feature maps.
# - :class:`binfeat.RandomFeatureUnion` concatenates the features of several maps, which adds their kernels.
# - :class:`binfeat.OutlierDetector` finds outliers and drift (a change of the distribution).
# - :class:`binfeat.SpectralClustering` finds clusters, and :class:`binfeat.LabelSpreading` classifies rows from few
#   labels.
#
# All classes are scikit-learn estimators: they work in pipelines and in parameter searches. Both classifiers accept
# several labels per row, as an indicator matrix.
#
# The next pages are :doc:`plot_14_features`, :doc:`plot_15_linear_models`, and :doc:`plot_03_decisions` for kernel
# models. :doc:`/compare` lists cases in which other software is the better choice.
