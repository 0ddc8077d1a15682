"""
Kernels and length scales
=========================

This page is for readers who choose a kernel themselves. A kernel measures the similarity of two rows, from 1 for equal
rows down to 0 for distant rows. The length scale of an input is the distance over which the kernel decays along this
input: for the Laplacian kernel, to ``exp(-1) = 0.37``. Estimators have a parameter ``gamma``, the inverse length scale:
one number for all inputs, or one number per input. A gamma of 0 ignores the input.
"""

import matplotlib.pyplot as plt
import numpy as np

from binfeat import RandomBinning, RandomFourier, kernels, learn_gamma

D = np.linspace(0, 4, 200)[:, np.newaxis]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for kernel in (kernels.Laplacian(), kernels.GammaPitch(8), kernels.Hat(), kernels.Matern(1.5), kernels.RBF()):
    ax.plot(D, kernel(D, np.zeros((1, 1)), gamma=0.5), label=repr(kernel))
ax.set(xlabel="difference of two rows with one input", ylabel="kernel value, gamma 0.5")
ax.legend(frameon=False)

# %%
# Use a kernel with a kink at 0, such as the Laplacian, for targets with steps. Use a smooth kernel, such as the
# Gaussian (``RBF``) or ``Matern``, for smooth targets. ``GammaPitch(8)`` is between the Laplacian and ``Hat``. In
# ``RBF`` and ``Matern``, gamma multiplies squared distances, as in scikit-learn.
#
# Features estimate a kernel
# --------------------------
# The inner product of the features of two rows estimates their kernel value. For random binning the error is
# proportional to ``1 / sqrt(n_grids)``, where ``n_grids`` is the number of random grids: 100 times as many grids reduce
# it to a tenth. The kernel determines the kind of features:
# :class:`binfeat.RandomBinning` computes features of the Laplacian and of other convex kernels,
# :class:`binfeat.RandomFourier` of the Gaussian and Matern kernels.

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
# :func:`binfeat.learn_gamma` learns one length scale per input: it minimizes the leave-one-out error of kernel ridge
# regression by gradient steps. In this example the target varies twice as fast along the first input as along the
# second input. The third input is irrelevant. For ``RBF``, half the length scale is four times the gamma.

y = np.sin(3 * X[:, 0]) + np.sin(1.5 * X[:, 1]) + 0.1 * rng.normal(size=len(X))
learned = learn_gamma(X, y, kernel="rbf", random_state=0)
print("gamma:", np.round(learned.gamma, 3))

# %%
# Pass the result as ``gamma`` to a feature map, or set ``gamma="learn"`` to learn it in ``fit``. A table on the page
# :doc:`/how_it_works` lists all kernels.
