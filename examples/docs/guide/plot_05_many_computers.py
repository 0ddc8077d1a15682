"""
On several computers
====================

This page is for readers with a Dask cluster, or with Dask collections on one computer. ``binfeat.distributed`` contains
the maps, the ridge models and the kernel models for Dask arrays and data frames. Rows stay on their workers. Each
iteration of the solver sends the coefficients to the workers, and receives one array of the same size. Bins, columns
and coefficients are the same as for rows in memory.
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
# By default Dask uses threads of the current process. To use a cluster, run ``dask scheduler`` on one computer, and
# ``dask worker tcp://10.0.0.1:8786 --nworkers 8 --nthreads 1`` on each of the others, with the address that the
# scheduler printed and the same Python environment. Create ``distributed.Client("tcp://10.0.0.1:8786")`` before the
# lines above, and they run on the cluster. ``dask.dataframe.read_parquet`` reads tables from folders and object stores,
# such as ``"s3://bucket/folder"``.


figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(x, np.sin(x), color="0.7", linewidth=4, label="target")
ax.plot(x, model.predict(x), label="model fitted to four chunks")
ax.legend(frameon=False)

# %%
# Kernel models
# -------------
# :class:`binfeat.distributed.KernelMachineRegressor` needs no settings. It selects hyperparameters on a sample of the
# rows. If all inputs fit as float32 in the memory of this process, it fits a local model: each cell of the k-d tree is
# sent to a worker and solved there. Otherwise it fits a model on random binning features, and the rows stay on their
# workers. Predictions for a collection are lazy and keep its chunks.
from binfeat.distributed import KernelMachineRegressor  # noqa: E402

regressor = KernelMachineRegressor(random_state=0).fit(X, da.sin(X[:, 0]))
print(regressor.predict(X))
print(regressor.summary())

# %%
# A local model reads the collection three times: for checks, for the sample, and for the cells. A model on binning
# features reads it more often. If the workers have enough memory, call ``X = X.persist()`` first. For binning features
# a worker needs 40 bytes per row, and 2 or 4 bytes per row and grid (twice that while grids are added). If a worker is
# lost, other workers repeat its tasks. If the scheduler is lost, or a task crashes several workers, ``fit`` raises an
# error that names the cause.
#
# The fitted model contains plain arrays. ``to_local`` returns a copy that needs no Dask to load or to predict:
local = regressor.to_local()
print(type(local), np.abs(local.predict(x) - np.sin(x[:, 0])).max().round(3))
