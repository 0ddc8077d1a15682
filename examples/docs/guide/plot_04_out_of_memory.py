"""
Out of memory
=============

This page is for readers whose tables do not fit in memory. :func:`binfeat.blocks` creates a source of rows from files
(Parquet, Arrow, CSV), memory-mapped arrays, or a list of arrays. Pass the source to ``fit`` instead of X and y.
Estimators read it several times, one block of rows at a time. Bins and coefficients are the same as with all rows in
memory, for any block size.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from binfeat import CGRidge, KernelMachineRegressor, RandomBinning, RelevanceDisplay, blocks

rng = np.random.default_rng(0)
folder = tempfile.TemporaryDirectory()
for month in range(3):
    table = pd.DataFrame(rng.normal(size=(4000, 3)), columns=["a", "b", "c"])
    table["y"] = np.sin(2 * table["a"]) + table["b"] + 0.1 * rng.normal(size=4000)
    table.to_parquet(Path(folder.name) / f"{month}.parquet")

source = blocks(folder.name, target="y", block_rows=1000)
model = make_pipeline(RandomBinning(gamma=0.2, n_grids=100, random_state=0), CGRidge(alpha=0.1)).fit(source)
print(f"R^2 {model.score(table[['a', 'b', 'c']], table['y']):.3f}")

# %%
# Kernel models
# -------------
# A kernel model selects its hyperparameters on a random sample of up to 200,000 rows. Then it fits a *local model* to
# all rows: kernel ridge regression in each cell of a k-d tree. A local model stores the inputs of all rows as float32.
# For example, a fit to 10 million rows of 7 inputs used 4.2 GB. If the sample contains the whole table, as on this
# page, the model is the same as for rows in memory.

kernel_model = KernelMachineRegressor(random_state=0).fit(source)
print(f"kind of model: {kernel_model.features_}, R^2 {kernel_model.score(table[['a', 'b', 'c']], table['y']):.3f}")

# %%
# If the inputs do not fit in memory as float32, the model uses random binning features instead. ``features="binning"``
# selects them explicitly. Their codes, the bin numbers of all rows, need 2 or 4 bytes per row and grid. Codes larger
# than ``max_bytes`` are stored in an anonymous scratch file, which disappears when the process ends.

options = {"max_grids": 200}
grids = KernelMachineRegressor(features="binning", solver_params=options, max_bytes=10**8, random_state=0).fit(source)
print(grids.summary())

# %%
# The picture shows the relevance of each input. The third input is irrelevant.

figure, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
RelevanceDisplay.from_estimator(grids, ax=ax)

# %%
# Rows that arrive later
# ----------------------
# ``partial_fit`` of the ridge models adds rows. After each call the model is the same as after ``fit`` on all rows so
# far. The columns of the features must not change between calls: fit the feature map once, or use hashed columns
# (``n_features``). The ridge model stores the codes of all rows. For dense features, such as Fourier features, it
# stores only their Gram matrix if this needs at most an eighth of the computer's memory, and solves it exactly. The
# size of the Gram matrix does not depend on the number of rows.

hashed = RandomBinning(gamma=0.2, n_grids=100, n_features=2**16, output="codes", random_state=0)
online = CGRidge(alpha=0.1)
for month in range(3):
    rows = pd.read_parquet(Path(folder.name) / f"{month}.parquet")
    Z = hashed.partial_fit(rows[["a", "b", "c"]]).transform(rows[["a", "b", "c"]])
    online.partial_fit(Z, rows["y"])
    r2 = online.score(Z, rows["y"])
    print(f"{(month + 1) * len(rows)} rows: {online.n_iter_} iterations, R^2 {r2:.3f} on the last file")

# %%
# The command reads a folder in the same way: ``binfeat fit folder --target y --model model.skops``.

folder.cleanup()
