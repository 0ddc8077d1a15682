"""
Reproducibility and limits
==========================

With an int ``random_state`` a fit gives the same machine again, bit by bit, for any number of threads, on one kind of
processor. Two things take that away: ``max_seconds``, which depends on the clock, and Python threads that fit kernel
machines side by side and share the threads of BLAS.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from binfeat import KernelMachineRegressor, kernels, transform

X, y = make_friedman1(n_samples=900, noise=1.0, random_state=0)
options = {"features": "binning", "max_grids": 100, "random_state": 0}
first, second = (KernelMachineRegressor(n_jobs=n_jobs, **options).fit(X[:600], y[:600]) for n_jobs in (1, 2))
print("same coefficients:", np.array_equal(first.feature_coef_, second.feature_coef_))

# %%
# Random features have a random error
# -----------------------------------
# Another seed draws other grids. How much that matters falls with the root of their number.

rng = np.random.default_rng(0)
pair = rng.normal(size=(2, 3))
exact = kernels.Laplacian()(pair, gamma=0.3)[0, 1]
numbers = (10, 100, 1000)
spread = []
for n_grids in numbers:
    found = [transform(pair, gamma=0.3, n_grids=n_grids, random_state=seed) for seed in range(60)]
    spread.append(np.std([(Z @ Z.T).toarray()[0, 1] for Z in found]))

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.loglog(numbers, spread, "o", label="60 seeds")
ax.loglog(numbers, np.sqrt(exact * (1 - exact) / np.array(numbers)), label="theory")
ax.set(xlabel="grids", ylabel="standard deviation of the kernel")
ax.legend(frameon=False)

# %%
# Limits
# ------
# - An exact machine takes 4 bytes for each pair of rows, or 1 byte where it is solved by iterations; binning takes 2 or
#   4 bytes for each row and grid.
# - Far from the training rows an exact machine, or one of grids, predicts the mean.
# - Targets that jump along many inputs at once suit trees better.
# - Numbers beyond 1e100, and infinity, are refused; missing values are taken.
# - Files of models: skops files are safe to load, and files of newer versions are refused.
