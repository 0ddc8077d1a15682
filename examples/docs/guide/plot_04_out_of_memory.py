"""
Out of memory
=============

Rows that do not fit in memory are read in blocks, several times. :func:`binfeat.blocks` makes a source of files
(Parquet, Arrow, CSV), memmaps, or a list of arrays. Bins and coefficients are the same as with all rows in memory, for
any size of blocks.
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
machine = make_pipeline(RandomBinning(gamma=0.2, n_grids=100, random_state=0), CGRidge(alpha=0.1)).fit(source)
print(f"{machine.score(table[['a', 'b', 'c']], table['y']):.3f}")

# %%
# Kernel machines
# ---------------
# They choose their settings on a sample of up to 200,000 rows. Then local machines take all rows: a machine has the
# inputs of its rows, 4 bytes for each, and a fit takes twice that. So 10 million rows of 20 inputs, which take 1.6 GB
# in float64, need about 3 GB. A table whose sample is all of it, such as this one, has the machine of rows in memory.

local = KernelMachineRegressor(random_state=0).fit(source)
print(local.features_, f"{local.score(table[['a', 'b', 'c']], table['y']):.3f}")

# %%
# Rows that do not fit take grids, which grow on all rows; ``features="binning"`` asks for them. ``max_bytes`` limits
# the memory of codes; what exceeds it is in a scratch file, which has no name and is gone when the process ends.

learned = KernelMachineRegressor(features="binning", max_grids=200, max_bytes=10**8, random_state=0).fit(source)
print(learned.summary())

# %%
# How much each input counts; the third says nothing:

figure, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
RelevanceDisplay.from_estimator(learned, ax=ax)

# %%
# Rows that come later
# --------------------
# ``partial_fit`` of the ridge machines takes rows as they come. After each call the machine is the one that ``fit``
# would make of all rows so far. Bins must not move between the calls: fit the map once, or give it hashed columns by
# ``n_features``. Codes of the rows are kept, 2 or 4 bytes for each row and grid. Of arrays, such as Fourier features,
# only the Gram matrix is kept where it takes at most an eighth of the computer's memory: it does not grow with rows.

hashed = RandomBinning(gamma=0.2, n_grids=100, n_features=2**16, output="codes", random_state=0)
online = CGRidge(alpha=0.1)
for month in range(3):
    rows = pd.read_parquet(Path(folder.name) / f"{month}.parquet")
    Z = hashed.partial_fit(rows[["a", "b", "c"]]).transform(rows[["a", "b", "c"]])
    online.partial_fit(Z, rows["y"])
    print(
        f"{(month + 1) * len(rows)} rows: {online.n_iter_} iterations, R^2 of the last {online.score(Z, rows['y']):.3f}"
    )

# %%
# The command reads a folder in the same way: ``binfeat fit folder --target y``.

folder.cleanup()
