"""
How a machine sets itself up
============================

A kernel machine decides in this order, each time by the error on rows that it has not seen: held-out rows, or
leave-one-out predictions where the machine is exact.

1. *Scaling* of the inputs, and *length scales*: by steps along the gradient of the leave-one-out error of exact
   machines of a few hundred rows.
2. *Features*: none (an exact machine) up to 20,000 rows; else random binning, Fourier features, or both.
3. *Kernel*, and an overall factor of the length scales, as more rows take shorter ones.
4. *Grids*: doubled until that lowers the error by less than 1 %.
5. *Penalty*.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from binfeat import KernelMachineRegressor, RelevanceDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
machine = KernelMachineRegressor(random_state=0).fit(X_train, y_train)

# %%
# The summary
# -----------
# A line for each decision: the choice, the error after it, and the seconds since the start. The error is the mean
# squared error of targets of variance 1: an error of 0.5 leaves half of the variance unexplained.

print(machine.summary())
print("ended:", machine.status_, "| held-out error, and its standard error:", machine.held_out_error_.round(3))

# %%
# What each input counts
# ----------------------

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
RelevanceDisplay.from_estimator(machine, ax=ax)

# %%
# The report
# ----------
# One page for people: errors, what limits them, effects of inputs, residuals. It needs no network.

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "machine.html"
    machine.report(page, X_test, y_test)
    print(f"{page.stat().st_size / 1000:.0f} kB")

# %%
# Any choice can be taken out of the machine's hands by a parameter: ``features``, ``kernel``, ``gamma``, ``alpha``,
# ``n_grids``, ``scaling``. ``max_seconds`` limits the time, ``scoring`` names what choices are made by, and ``groups``
# in ``fit`` keeps rows together that belong together.
