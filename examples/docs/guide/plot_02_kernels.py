"""
Kernels and length scales
=========================

A kernel says how alike two rows are, from 1 for equal rows to 0 for rows that have nothing to do with each other. A
length scale says how far along an input that takes. Estimators take its inverse, ``gamma``: one number, or one per
input; 0 ignores the input.
"""

import matplotlib.pyplot as plt
import numpy as np

from binfeat import RandomBinning, RandomFourier, kernels, learn_gamma

D = np.linspace(0, 4, 200)[:, np.newaxis]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for kernel in (kernels.Laplacian(), kernels.GammaPitch(8), kernels.Hat(), kernels.Matern(1.5), kernels.RBF()):
    ax.plot(D, kernel(D, np.zeros((1, 1)), gamma=0.5), label=repr(kernel))
ax.set(xlabel="difference of two rows", ylabel="kernel, gamma 0.5")
ax.legend(frameon=False)

# %%
# Features are estimates of a kernel
# ----------------------------------
# The inner product of two rows' features estimates the kernel. Its error falls with the root of their number: ten times
# the precision takes a hundred times the grids. The Laplacian and other convex kernels have binning features, the
# Gaussian and Matern kernels have Fourier features.

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
for n_grids in (100, 10_000):
    Z = RandomBinning(kernel="laplacian", gamma=0.3, n_grids=n_grids, random_state=0).fit_transform(X)
    error = (Z @ Z.T).toarray() - kernels.Laplacian()(X, X, gamma=0.3)
    print(f"{n_grids:6} grids: root mean squared error {np.sqrt(np.mean(error**2)):.4f}")
Z = RandomFourier(kernel="rbf", gamma=0.3, n_components=2000, random_state=0).fit_transform(X)
error = Z @ Z.T - kernels.RBF()(X, X, gamma=0.3)
print(f"  2000 waves: root mean squared error {np.sqrt(np.mean(error**2)):.4f}")

# %%
# One length scale per input
# --------------------------
# :func:`binfeat.learn_gamma` learns them by the gradient of a leave-one-out error. Here the first input bends twice as
# often as the second, and the third says nothing.

y = np.sin(4 * X[:, 0]) + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=len(X))
learned = learn_gamma(X, y, kernel="rbf", random_state=0)
print(np.round(learned.gamma, 3))
