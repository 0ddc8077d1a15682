"""
Out of memory
=============

This page is for readers whose tables do not fit in memory. :func:`binfeat.blocks` returns a *source*: an object that
reads files (Parquet, Arrow, CSV), memmaps or a list of arrays in blocks of rows. Pass the source to ``fit`` instead of
X and y. Estimators read it several times. Bins and coefficients are the same as with all rows in memory, for any block
size.
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
# A kernel model selects its hyperparameters on a sample of up to 200,000 rows. Then a local model is fitted to all
# rows. It stores all inputs in float32, and ``fit`` needs twice that memory: 1.6 GB for 10 million rows of 20 inputs.
# If the sample contains the whole table, as on this page, the model is the same as for rows in memory.

local = KernelMachineRegressor(random_state=0).fit(source)
print(local.features_, f"R^2 {local.score(table[['a', 'b', 'c']], table['y']):.3f}")

# %%
# If the inputs do not fit in memory, the model uses random binning features. ``features="binning"`` selects them
# explicitly. Their codes (the bin of each row in each grid) need 2 or 4 bytes per row and grid. Codes that exceed
# ``max_bytes`` are kept in a temporary file, which is deleted when the process ends.

options = {"max_grids": 200}
grids = KernelMachineRegressor(features="binning", solver_params=options, max_bytes=10**8, random_state=0).fit(source)
print(grids.summary())

# %%
# The relevance of each input; the third is irrelevant:

figure, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
RelevanceDisplay.from_estimator(grids, ax=ax)

# %%
# Rows that arrive later
# ----------------------
# ``partial_fit`` of the ridge models updates the model with more rows. After each call the model is the same as after
# ``fit`` on all rows so far. The bins must not change between calls: fit the map once, or use hashed columns
# (``n_features``). Codes of all rows are kept, 2 or 4 bytes per row and grid. For dense arrays, such as Fourier
# features, only the Gram matrix is kept, if it fits in an eighth of the computer's memory. Its size does not depend on
# the number of rows.

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
