"""
Reproducibility and limits
==========================

This page is for readers who need equal results in every run, or who want to know the limits before they start. With an
int ``random_state``, a fit returns bitwise the same model for any number of threads, on one kind of processor. There
are two exceptions: ``max_seconds``, which depends on the clock, and Python threads that fit kernel models at the same
time and share the threads of BLAS.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from binfeat import KernelMachineRegressor, kernels, transform

X, y = make_friedman1(n_samples=900, noise=1.0, random_state=0)
options = {"features": "binning", "solver_params": {"max_grids": 100}, "random_state": 0}
first, second = (KernelMachineRegressor(n_jobs=n_jobs, **options).fit(X[:600], y[:600]) for n_jobs in (1, 2))
print("same coefficients:", np.array_equal(first.feature_coef_, second.feature_coef_))

# %%
# Random features have a random error
# -----------------------------------
# Another seed draws other grids. The standard deviation over seeds falls with the root of the number of grids.

rng = np.random.default_rng(0)
pair = rng.normal(size=(2, 3))
exact = kernels.Laplacian()(pair, gamma=0.3)[0, 1]
numbers = (10, 100, 1000)
deviations = []
for n_grids in numbers:
    maps = [transform(pair, gamma=0.3, n_grids=n_grids, random_state=seed) for seed in range(60)]
    deviations.append(np.std([(Z @ Z.T).toarray()[0, 1] for Z in maps]))

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.loglog(numbers, deviations, "o", label="60 seeds")
ax.loglog(numbers, np.sqrt(exact * (1 - exact) / np.array(numbers)), label="theory")
ax.set(xlabel="number of grids", ylabel="standard deviation of the kernel")
ax.legend(frameon=False)

# %%
# Limits
# ------
# - *Memory.* An exact model needs 4 bytes per pair of rows, or 1 byte if it is solved by iterations. Random
#   binning needs 2 or 4 bytes per row and grid.
# - *Extrapolation.* Far from the training rows, exact models and models of grids predict the mean.
# - *Steps.* Targets that jump along many inputs at once suit trees better.
# - *Values.* Infinite values and numbers beyond 1e100 are errors. Missing values are accepted.
# - *Files.* skops files of models are safe to load. Files of newer versions are refused with an error.
