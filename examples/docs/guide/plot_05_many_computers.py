"""
On many computers
=================

``binfeat.distributed`` has the maps, the ridge machines and the kernel machines on Dask arrays and data frames. Rows
stay where they are: in each iteration the solver sends one block of coefficients to the workers and gets one sum back.
Bins, columns and coefficients are those of the same rows in memory.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from binfeat.distributed import CGRidge, RandomBinning

X = da.random.default_rng(0).uniform(-3, 3, size=(10_000, 1), chunks=(2500, 1))
binning = RandomBinning(gamma=1.0, n_grids=200, output="codes", random_state=0)
machine = make_pipeline(binning, CGRidge(alpha=0.1)).fit(X, da.sin(X[:, 0]))

x = np.linspace(-3, 3, 200)[:, np.newaxis]
print(f"largest error: {np.abs(machine.predict(x) - np.sin(x[:, 0])).max():.3f}")

# %%
# By default Dask uses threads of the current process. On a cluster, one computer runs ``dask scheduler``, and each of
# the others ``dask worker tcp://10.0.0.1:8786 --nworkers 8 --nthreads 1`` with the address that the scheduler printed,
# in the same Python environment. With ``distributed.Client("tcp://10.0.0.1:8786")`` before them, the lines above run
# there. A table comes from ``dask.dataframe.read_parquet``, which reads folders and object stores:
# ``"s3://bucket/folder"``.


figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(x, np.sin(x), color="0.7", linewidth=4, label="target")
ax.plot(x, machine.predict(x), label="machine on four chunks")
ax.legend(frameon=False)

# %%
# Kernel machines
# ---------------
# :class:`binfeat.distributed.KernelMachineRegressor` needs no settings. What it decides on a sample is what a machine
# on one computer decides on the same rows. Then a local machine takes all rows, as far as their inputs fit in the
# memory of this process as float32: each cell is gathered on a worker, and solved there. Where they do not fit, grids
# take the rows where they are. Predictions of a collection are lazy and keep its chunks.
from binfeat.distributed import KernelMachineRegressor  # noqa: E402

regressor = KernelMachineRegressor(random_state=0).fit(X, da.sin(X[:, 0]))
print(regressor.predict(X))
print(regressor.summary())

# %%
# The collection is read three times for a local machine: to check it, for the sample, and for the cells. With grids it
# is read again whenever grids are added, and for each overall length scale that is tried: persist it where the workers
# have room. With grids a worker holds 40 bytes of each row, and 2 or 4 bytes for each grid, twice that while grids are
# added. A lost worker costs the time to make again what it held; a lost scheduler, or a task that ends several workers,
# ends the fit with an error that names it.
#
# The fitted machine holds plain arrays. This copy needs no Dask, neither to load nor to predict:
local = regressor.to_local()
print(type(local), np.abs(local.predict(x) - np.sin(x[:, 0])).max().round(3))
