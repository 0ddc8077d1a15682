"""
Reproducibility and limits
==========================

This page is for readers who need equal results in every run, or who want to know the limits before they start. With an
int ``random_state``, a fit returns bitwise the same model for any number of threads, on the same processor model. There
are two exceptions: fits with ``max_seconds`` depend on the speed of the computer, and the last digits can change if
several Python threads fit kernel models at the same time.
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
# Another seed draws other grids. The standard deviation over seeds falls with the square root of the number of grids.

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
# - *Extrapolation.* Far from the training rows, exact models and models on binning features predict the mean of y.
# - *Steps.* If the target has steps in many inputs at once, tree ensembles are usually more accurate.
# - *Several targets.* They share one kernel and its length scales. If they depend on different inputs, fit one model
#   per target, for example with ``sklearn.multioutput.MultiOutputRegressor``.
# - *Values.* Infinite values and numbers beyond 1e100 raise an error. Missing values are accepted.
# - *Files.* Loading a skops file of a model cannot run code. Files of newer versions raise an error.
