"""
On several computers
====================

This page is for readers with a Dask cluster, or with Dask collections on one computer. ``binfeat.distributed`` contains
the feature maps, the ridge models, the kernel models and the outlier detector for Dask arrays and data frames. Feature
maps and ridge models leave the rows on their workers: each iteration of a ridge model sends one vector to the workers
and receives one vector. Bins and columns are the same as for rows in memory, and coefficients are the same up to the
tolerance of the solver.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from binfeat.distributed import CGRidge, RandomBinning

X = da.random.default_rng(0).uniform(-3, 3, size=(10_000, 1), chunks=(2500, 1))
binning = RandomBinning(gamma=1.0, n_grids=200, output="codes", random_state=0)
model = make_pipeline(binning, CGRidge(alpha=0.1)).fit(X, da.sin(X[:, 0]))

x = np.linspace(-3, 3, 200)[:, np.newaxis]
print(f"largest error: {np.abs(model.predict(x) - np.sin(x[:, 0])).max():.3f}")

# %%
# By default Dask uses threads of the current process. To use a cluster:
#
# 1. Run ``dask scheduler`` on one computer. It prints its address, for example ``tcp://10.0.0.1:8786``.
# 2. Run ``dask worker tcp://10.0.0.1:8786 --nworkers 8 --nthreads 1`` on each other computer, in the same Python
#    environment.
# 3. Create ``distributed.Client("tcp://10.0.0.1:8786")`` before the lines above. They then run on the cluster.
#
# ``dask.dataframe.read_parquet`` reads tables from folders and object stores, such as ``"s3://bucket/folder"``.


figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(x, np.sin(x), color="0.7", linewidth=4, label="target")
ax.plot(x, model.predict(x), label="model fitted to four chunks")
ax.legend(frameon=False)

# %%
# Kernel models
# -------------
# :class:`binfeat.distributed.KernelMachineRegressor` needs no settings. It selects hyperparameters on a random sample
# of the rows. Then it fits one of two models to all rows:
#
# - *local*: kernel ridge regression in each cell of a k-d tree, if all inputs fit in the memory of this process as
#   float32. The workers solve the cells.
# - *binning*: ridge regression on random binning features, for larger tables. The rows stay on the workers.
#
# Predictions for a collection are lazy and have the chunks of the collection.
from binfeat.distributed import KernelMachineRegressor  # noqa: E402

regressor = KernelMachineRegressor(random_state=0).fit(X, da.sin(X[:, 0]))
print(regressor.predict(X))
print(regressor.summary())

# %%
# A local model reads the collection three times: for checks, for the sample, and for the cells. A model on binning
# features reads it more often. Persist the collection if the workers have enough memory. For binning features, the
# workers need 40 bytes per row, and 2 or 4 bytes per row and grid; the bytes per grid double while grids are added.
#
# If a worker is lost, Dask computes its results again. If the scheduler is lost, or if a task crashes several workers,
# ``fit`` raises an error that names the cause.
#
# The fitted model contains plain arrays. ``to_local`` returns a copy that needs no Dask to load or to predict:
local = regressor.to_local()
print(
    f"{type(local).__module__}.{type(local).__name__}",
    f"largest error {np.abs(local.predict(x) - np.sin(x[:, 0])).max():.3f}",
)
