"""
Kernels and length scales
=========================

This page is for readers who choose a kernel themselves. A kernel measures the similarity of two rows, from 1 for equal
rows down to 0 for distant rows. The length scale of an input is the distance along that input at which the kernel has
decayed. Estimators accept the inverse length scale, ``gamma``: one number, or one per input; 0 ignores the input.
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
# Kernels with a kink at 0, such as the Laplacian, suit targets with steps. Smooth kernels, such as the Gaussian ("RBF")
# and the Matern kernel, suit smooth targets. For these two, gamma multiplies squared distances, as in scikit-learn.
#
# Features are estimates of a kernel
# ----------------------------------
# The inner product of the features of two rows estimates their kernel value. The error falls with the root of the
# number of features, so a tenth of the error needs a hundred times the grids. The Laplacian and other convex kernels
# have binning features. The Gaussian and Matern kernels have Fourier features.

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
for n_grids in (100, 10_000):
    Z = RandomBinning(kernel="laplacian", gamma=0.3, n_grids=n_grids, random_state=0).fit_transform(X)
    error = (Z @ Z.T).toarray() - kernels.Laplacian()(X, X, gamma=0.3)
    print(f"{n_grids:6} grids: root mean squared error {np.sqrt(np.mean(error**2)):.4f}")
Z = RandomFourier(kernel="rbf", gamma=0.3, n_components=2000, random_state=0).fit_transform(X)
error = Z @ Z.T - kernels.RBF()(X, X, gamma=0.3)
print(f"  2000 Fourier features: root mean squared error {np.sqrt(np.mean(error**2)):.4f}")

# %%
# One length scale per input
# --------------------------
# :func:`binfeat.learn_gamma` learns one length scale per input by the gradient of a leave-one-out error. In this
# example the target varies twice as fast along the first input as along the second, and the third is irrelevant.

y = np.sin(3 * X[:, 0]) + np.sin(1.5 * X[:, 1]) + 0.1 * rng.normal(size=len(X))
learned = learn_gamma(X, y, kernel="rbf", random_state=0)
print(np.round(learned.gamma, 3))

# %%
# Pass the result as ``gamma`` to `RandomFourier`, or set ``gamma="learn"`` to learn it in ``fit``. The table of all
# kernels is on the page :doc:`/how_it_works`.
