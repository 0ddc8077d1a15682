"""
How a machine sets itself up
============================

A kernel machine decides in this order, each time by the error on rows that it has not seen: held-out rows, or
leave-one-out predictions where the machine is exact or local.

1. *Length scales*: by steps along the gradient of the leave-one-out error
   of exact machines of a few hundred rows.
2. *Features*: none (an exact machine) up to 10,000 rows, or with more rows cells of exact machines (a local machine);
   where these are ruled out, random binning or Fourier features.
3. *Kernel*, a sum of up to three, and *penalty*; with more than 1,500 rows also the length scales once more, by rows
   as dense as the whole table, since more rows call for shorter ones.
4. *Trees* of cells, as many as each lower the squared error by 0.3 %; or *grids*, doubled until that lowers it by less
   than 2 %.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from binfeat import KernelMachineClassifier, KernelMachineRegressor, RelevanceDisplay

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
# How much each input counts
# --------------------------

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
# ``n_grids``. ``max_seconds`` limits the time, ``scoring`` names what choices are made by.
#
# Rows that count more, and rows that belong together
# ---------------------------------------------------
# ``sample_weight`` says how much each row counts, ``class_weight`` how much each class does: "balanced" lets the few
# who are ill count as much as all others together. Rows that are repeated to the same end do no harm: a row
# and its copies are one row with their weight, so that no copy tells a choice what was held out. ``groups`` in ``fit``
# names rows that belong together, such as several visits of one patient. They are held out together, so that no choice
# is made by rows whose neighbours were learned. With groups, up to 1,500 rows have an exact machine, which is judged
# without the whole group of a row; more rows have a machine of features, or, with a radial ``kernel``, a local one
# whose penalty held-out groups choose.

rng = np.random.default_rng(0)
patients = np.repeat(np.arange(300), 4)
habits = rng.normal(size=(300, 3))
visits = habits[patients] + 0.05 * rng.normal(size=(1200, 3))
ill = (habits[:, 0] + 0.7 * rng.normal(size=300) > 1.2)[patients]
known = patients < 200

options = {"features": "binning", "max_grids": 100, "random_state": 0}
for class_weight in (None, "balanced"):
    doctor = KernelMachineClassifier(class_weight=class_weight, **options)
    doctor.fit(visits[known], ill[known], groups=patients[known])
    found = doctor.predict(visits[~known])[ill[~known]].mean()
    print(f"class_weight={class_weight}: finds {found:.0%} of the visits of new patients who are ill")

apart = KernelMachineClassifier(**options).fit(visits[known], ill[known])
together = KernelMachineClassifier(**options).fit(visits[known], ill[known], groups=patients[known])
print(f"held-out error: {together.held_out_error_[0]:.2f} with groups, {apart.held_out_error_[0]:.2f} without, and of")
print(f"new patients it is {4 * np.mean((ill[~known] - apart.predict_proba(visits[~known])[:, 1]) ** 2):.2f}.")

# %%
# Measurements of known precision are an example of ``sample_weight``: each is weighted by one over its variance.

places = rng.uniform(-3, 3, size=(600, 1))
deviation = rng.choice([0.1, 1.5], size=600)
measured = np.sin(2 * places[:, 0]) + deviation * rng.normal(size=600)
spots = np.linspace(-3, 3, 200)[:, None]
for words, weight in (("alike", None), ("by their precision", deviation**-2.0)):
    weighed = KernelMachineRegressor(random_state=0).fit(places, measured, sample_weight=weight)
    error = np.sqrt(np.mean((weighed.predict(spots) - np.sin(2 * spots[:, 0])) ** 2))
    print(f"measurements weighed {words}: error {error:.3f}")

# %%
# A fit that goes on
# ------------------
# With ``warm_start=True`` a second ``fit``, of more rows or with a larger ``max_grids``, keeps scaling, length scales
# and kernel: only the penalty is chosen again, grids are added, and the coefficients are solved for. The first line of
# ``summary()`` says so, or why all was searched anew.

machine.set_params(warm_start=True).fit(X, y)
print(machine.summary())
