"""
On many machines
================

``binfeat.distributed`` has the maps and the ridge machines on Dask arrays and data frames. Rows stay where they are:
in each iteration the solver sends one block of coefficients to the workers and gets one sum back. Bins, columns and
coefficients are those of the same rows in memory.
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
# Here Dask has the threads of this process; with ``dask.distributed.Client("tcp://...")`` before it, the same lines
# run on a cluster. Nothing else changes.


figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(x, np.sin(x), color="0.7", linewidth=4, label="target")
ax.plot(x, machine.predict(x), label="machine on four chunks")
ax.legend(frameon=False)

# %%
# Kernel machines are not distributed. :class:`binfeat.distributed.learn_gamma <binfeat.distributed.learn_gamma>` learns
# length scales for the maps; a kernel machine on one machine takes a source of blocks, see
# :doc:`plot_4_out_of_memory`.
