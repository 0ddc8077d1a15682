"""
Which estimator when
====================

Most tables want :class:`binfeat.KernelMachineRegressor` or :class:`binfeat.KernelMachineClassifier`: they take a raw
table and have nothing to tune. The parts that they are made of can be used alone, where the kernel and its length
scales are known, or a pipeline of your own is wanted.
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
# Three ways to the same table
# ----------------------------
# Random binning and random Fourier features with one gamma for all inputs, a ridge machine behind them; and a kernel
# machine, which finds out that five of the ten inputs say nothing.

machines = {
    "binning": make_pipeline(RandomBinning(gamma=0.5, n_grids=400, random_state=0), CGRidge(alpha=0.01)),
    "Fourier": make_pipeline(RandomFourier(gamma=0.5, n_components=800, random_state=0), CGRidge(alpha=0.01)),
    "kernel machine": KernelMachineRegressor(random_state=0),
}
scores = {name: machine.fit(X_train, y_train).score(X_test, y_test) for name, machine in machines.items()}
for name, score in scores.items():
    print(f"{name:15} {score:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
ax.barh(list(scores), [1 - score for score in scores.values()])
ax.set_xlabel("variance left unexplained")

# %%
# What else there is
# ------------------
# - :class:`binfeat.CGRidgeClassifier` for labels; with ``loss="squared_hinge"`` it is a support vector machine. Both
#   classifiers take any number of labels a row, as an indicator matrix.
# - :class:`binfeat.RandomFeatureUnion` puts two maps side by side: their kernels add up.
# - :func:`binfeat.learn_gamma` learns the length scales alone.
# - :func:`binfeat.transform` makes hashed binning features of a stream of rows, without ``fit``.
#
# All of them are scikit-learn estimators: pipelines, searches and ``clone`` work. :doc:`/compare` says when other
# software is the better choice.

print(np.round(machines["kernel machine"].feature_relevances_, 2))
