"""
Which estimator?
================

This page is for readers who see binfeat for the first time. Use :class:`binfeat.KernelMachineRegressor` or
:class:`binfeat.KernelMachineClassifier` for a table of mixed columns: both accept a raw data frame and need no tuning.
Use the features and the linear models if you want to build your own pipeline, or if you know the kernel and its length
scales.
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
# The first two models are ridge regression on random binning and on random Fourier features, with one gamma for all
# inputs. The third is a kernel model, which learns that five of the ten inputs are irrelevant.

models = {
    "binning": make_pipeline(RandomBinning(gamma=0.5, n_grids=400, random_state=0), CGRidge(alpha=0.01)),
    "Fourier": make_pipeline(RandomFourier(gamma=0.5, n_components=800, random_state=0), CGRidge(alpha=0.01)),
    "kernel model": KernelMachineRegressor(random_state=0),
}
scores = {name: model.fit(X_train, y_train).score(X_test, y_test) for name, model in models.items()}
for name, score in scores.items():
    print(f"{name:15} R^2 {score:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
ax.barh(list(scores), [1 - score for score in scores.values()])
ax.set_xlabel("unexplained share of the variance")

# %%
# Other estimators
# ----------------
# - :class:`binfeat.CGRidgeClassifier` predicts classes; with ``loss="squared_hinge"`` it is a support vector machine.
#   Both classifiers accept several labels per row, as an indicator matrix.
# - :class:`binfeat.RandomFeatureUnion` concatenates two maps, so that their kernels are added.
# - :func:`binfeat.learn_gamma` only learns the length scales. ``gamma="learn"`` does the same inside a map.
# - :func:`binfeat.transform` computes hashed binning features without ``fit``, for example for a stream of rows.
# - :class:`binfeat.OutlierDetector` finds outliers and drift; :class:`binfeat.SpectralClustering` and
#   :class:`binfeat.LabelSpreading` use the graph of similar rows.
#
# All classes are scikit-learn estimators, so pipelines, grid searches and ``clone`` work. Read next
# :doc:`plot_14_features` for features, :doc:`plot_15_linear_models` for linear models, or :doc:`plot_03_decisions` for
# kernel models. :doc:`/compare` lists cases in which other software is the better choice.

print(np.round(models["kernel model"].feature_relevances_, 2))
