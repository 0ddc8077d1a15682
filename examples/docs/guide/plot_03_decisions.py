"""
How a kernel model selects its hyperparameters
==============================================

This page is for readers who want to understand or override the decisions of a kernel model in ``fit``. Each decision
minimizes an error on rows that were not used for training: the leave-one-out error of exact and local models, or the
error on a validation set. The decisions are made in this order:

1. *Length scales*, one per input, by gradient descent on the leave-one-out error of exact models of a few hundred rows.
2. *Representation*: an exact model with the full kernel matrix for up to 10,000 rows; a local model, which has one
   exact model per cell of a k-d tree, for more rows, or if additive effects of category levels reduce the error;
   random binning or Fourier features if neither is possible.
3. *Kernel* (one kernel or a sum of two) and *penalty*, together with the length scales. These are learned again on more
   rows, or on rows that are as dense as the table, because denser rows allow shorter length scales.
4. *Number of trees* of a local model: it is estimated after the first tree, so that one more tree would cut the squared
   error by less than 0.3 %, or less for weak signals. *Number of grids* of binning features: it is doubled until this
   cuts the error by less than 2 %.
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
model = KernelMachineRegressor(random_state=0).fit(X_train, y_train)

# %%
# The summary
# -----------
# Each line is one decision: the choice, the error after it, and the seconds since the start. The error is the mean
# squared error of targets that are scaled to variance 1, so 0.5 means that half of the variance is unexplained.

print(model.summary())
print("status:", model.status_, "| validation error and its standard error:", model.held_out_error_.round(3))

# %%
# Relevance of the inputs
# -----------------------
# The relevance of an input measures how fast predictions vary along it, not how important the input is.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
RelevanceDisplay.from_estimator(model, ax=ax)

# %%
# The report
# ----------
# The report is one HTML file with errors, their likely causes, effects of inputs, and residuals. It works offline.

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "model.html"
    model.report(page, X_test, y_test)
    print(f"{page.stat().st_size / 1000:.0f} kB")

# %%
# Every automatic choice can be overridden by a parameter: ``features``, ``kernel``, ``gamma``, ``alpha``, and the
# options in ``solver_params``. ``max_seconds`` limits the time, and ``scoring`` sets the score that hyperparameter
# selection maximizes.
#
# Weights and groups
# ------------------
# ``sample_weight`` contains one weight per row, and ``class_weight`` one weight per class. ``class_weight="balanced"``
# gives all classes the same total weight. Use them instead of oversampling. Copies are usually recognized and merged
# into one row with their total weight, and a warning appears if some remain, which can leak into the validation set.
#
# ``groups`` in ``fit`` marks related rows, such as several visits of one patient. All rows of a group are in the same
# split. With groups and up to 1,500 rows the model is exact, and its error is a leave-one-group-out error. With more
# rows the model uses random features and validates on whole groups. With a radial kernel (a function of the distance,
# such as ``kernel="rbf"``), it is a local model.

rng = np.random.default_rng(0)
patients = np.repeat(np.arange(300), 4)
habits = rng.normal(size=(300, 3))
visits = habits[patients] + 0.05 * rng.normal(size=(1200, 3))
ill = (habits[:, 0] + 0.7 * rng.normal(size=300) > 1.2)[patients]
known = patients < 200

options = {"features": "binning", "solver_params": {"max_grids": 100}, "random_state": 0}
for class_weight in (None, "balanced"):
    weighted = KernelMachineClassifier(class_weight=class_weight, **options)
    weighted.fit(visits[known], ill[known], groups=patients[known])
    found = weighted.predict(visits[~known])[ill[~known]].mean()
    print(f"class_weight={class_weight}: recall {found:.0%} for visits of new patients")

no_groups = KernelMachineClassifier(**options).fit(visits[known], ill[known])
with_groups = KernelMachineClassifier(**options).fit(visits[known], ill[known], groups=patients[known])
new_error = 4 * np.mean((ill[~known] - no_groups.predict_proba(visits[~known])[:, 1]) ** 2)
print(f"validation error with groups: {with_groups.held_out_error_[0]:.2f}")
print(f"validation error without groups: {no_groups.held_out_error_[0]:.2f}, error for new patients: {new_error:.2f}")

# %%
# Without groups the validation error is too low, because other visits of the same patients are training rows.
#
# If the noise variance of each measurement is known, pass its inverse as ``sample_weight``.

places = rng.uniform(-3, 3, size=(600, 1))
deviation = rng.choice([0.1, 1.5], size=600)
measured = np.sin(2 * places[:, 0]) + deviation * rng.normal(size=600)
spots = np.linspace(-3, 3, 200)[:, None]
for name, weight in (("equal weights", None), ("weights by precision", deviation**-2.0)):
    weighted = KernelMachineRegressor(random_state=0).fit(places, measured, sample_weight=weight)
    error = np.sqrt(np.mean((weighted.predict(spots) - np.sin(2 * spots[:, 0])) ** 2))
    print(f"{name}: RMSE {error:.3f}")

# %%
# Warm start
# ----------
# With ``warm_start=True`` a second ``fit``, on more rows or with a larger "max_grids", keeps the length scales and the
# kernel. Only the penalty, the number of grids and the coefficients are updated. The first line of ``summary()``
# confirms the warm start, or gives the reason for a full search.

model.set_params(warm_start=True).fit(X, y)
print(model.summary())
