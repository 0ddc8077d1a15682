"""
Panels, groups and high-cardinality categories
==============================================

This page is for tables with several rows per person, firm, machine or district. Such a category has many levels with
few rows each, and each level adds a constant to the target. In statistics, these constants are called random effects or
random intercepts, and linear mixed models estimate them. A kernel model estimates them together with a smooth function
of the other inputs.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from binfeat import KernelMachineRegressor

# %%
# A panel
# -------
# The table is synthetic: 16,000 visits of 2,000 people in 60 clinics. People and clinics have additive effects, and
# dose and age have smooth effects. The standard deviation of the noise is 0.5. A quarter of the rows are test rows.

rng = np.random.default_rng(0)
n_rows, n_people, n_clinics = 16_000, 2_000, 60
people, clinics = rng.integers(n_people, size=n_rows), rng.integers(n_clinics, size=n_rows)
dose, age = rng.uniform(-1, 1, n_rows), rng.uniform(-1, 1, n_rows)
of_people, of_clinics = rng.normal(size=n_people), 0.5 * rng.normal(size=n_clinics)
exact = of_people[people] + of_clinics[clinics] + np.sin(3 * dose) + dose * age
y = exact + 0.5 * rng.normal(size=n_rows)
X = pd.DataFrame(
    {
        "person": pd.Categorical([f"person {k}" for k in people]),
        "clinic": pd.Categorical([f"clinic {k}" for k in clinics]),
        "dose": dose,
        "age": age,
    }
)
train, test = np.arange(n_rows) < 12_000, np.arange(n_rows) >= 12_000

# %%
# One model for levels and functions
# ----------------------------------
# With more than 10,000 rows, the model is local: one kernel matrix per cell of a k-d tree. A cell contains only some
# rows of a person, so a single cell cannot estimate the effect of the person well. Effects of levels are therefore
# estimated from all cells, in the same linear system as the coefficients of the first tree. They are used if they
# reduce the leave-one-out error. The line "categories" of the summary then contains their share of the prior variance.

model = KernelMachineRegressor(random_state=0, on_unseen="ignore").fit(X[train], y[train])
print(model.summary())


def error(predictions):
    return np.sqrt(np.mean((predictions - exact[test]) ** 2)) / exact[test].std()


means = pd.Series(y[train]).groupby(people[train]).mean().reindex(people[test]).fillna(y[train].mean())
print(f"kernel model                 {error(model.predict(X[test])):.3f} of the standard deviation")
print(f"mean of each person          {error(means.to_numpy()):.3f}")

# %%
# Levels with few rows, and new levels
# ------------------------------------
# The effect of a level is shrunk towards 0, more for a level with two rows than for a level with twenty. A level
# without training rows has the effect 0, and predictions for it have larger standard deviations.

same = pd.DataFrame({"person": [f"person {k}" for k in range(n_people)] + ["new"], "clinic": "clinic 0", "dose": 0.0})
same["age"] = 0.0
level, deviation = model.predict(same, return_std=True)
print(f"standard deviation: {deviation[:-1].mean():.2f} for known people, {deviation[-1]:.2f} for a new person")

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(of_people, level[:-1] - level[:-1].mean(), s=8)
ax.plot([-3, 3], [-3, 3], color="0.7", linewidth=1, zorder=0)
ax.set(xlabel="true effect of a person", ylabel="estimated effect")

# %%
# Compared with mixed models and boosting
# ---------------------------------------
# The table shows test errors in percent of the standard deviation of the targets. The first four panels are synthetic,
# with five numeric inputs, noise of standard deviation 0.5, and test targets without noise; "slopes" means that each
# level has its own slope of one input. The last two are real: ratings of 1,100 lecturers by 1,000 students
# (``InstEval`` of the R package lme4), and mathematics scores of pupils in 160 schools (``Hsb82`` of mlmRev). GPBoost
# combines 150 boosted trees of depth 6 with random intercepts. MixedLM of statsmodels has linear effects and random
# intercepts of one category. LightGBM and CatBoost treat levels as categories. All other settings are defaults.
#
# ===========================  ============  ========  =======  =======  ========  ========
# panel                        rows to fit   binfeat   GPBoost  MixedLM  CatBoost  LightGBM
# ===========================  ============  ========  =======  =======  ========  ========
# 3,000 levels                 16,800        **18.2**  20.2     60.5     41.3      77.2
# 400, 60 and 2,000 levels     14,000        **14.1**  15.2              38.8      56.1
# 500 levels                   3,500         **18.8**  28.1     58.2     39.0      83.9
# 300 levels, slopes           4,200         **19.9**  41.5     64.4     40.7      34.0
# 1,000 students               19,746        **90.2**  91.1              92.3      93.9
# 160 schools                  5,748         **86.0**  90.3     86.6     88.8      101
# ===========================  ============  ========  =======  =======  ========  ========
#
# On two cores, fits took 2.2 to 7.4 seconds with binfeat, 0.14 to 89 with GPBoost (longest with several categories),
# 2.7 to 11 with CatBoost, and 0.6 to 2.9 with LightGBM. ``python -m perf panels`` repeats the comparison
# (2026-11-28, AMD EPYC of family 23, one draw or split of each panel).

# %%
# What is estimated
# -----------------
# - The model is ``f(x) = f_c(x) + sum_g w_g[level_g(x)]``: the kernel function of the row's cell c, plus one weight per
#   level of each category g. All weights of a category have the same prior variance. The variances and the ridge
#   penalty minimize leave-one-out errors of at most 10,000 rows. So the model is a linear mixed model with random
#   intercepts and a Gaussian process. It has no random slopes.
# - The categories are categorical and string columns, and numbers that are detected as codes. With more than 10,000
#   rows, at least one of them must have 20 levels. Only the 4,000 most frequent levels have effects, or fewer if
#   ``max_bytes`` requires it.
# - Categories with 20 levels or more are either in the kernel as well, which then includes interactions of levels and
#   numbers, or only have effects. The leave-one-out error decides.
# - Standard deviations, intervals, samples, importances, Shapley values, saved files, ONNX models, weights, several
#   targets, classifiers with the squared loss, rows from files, Dask collections, and warm starts include the effects.
#   On Dask, a model with effects is solved in the client process.
# - With up to 10,000 rows, effects are used if they reduce the leave-one-out error of the exact model by 2 %. Then
#   ``features_`` is "local". Up to 4,000 rows, such a model has a single cell. ``features="exact"`` excludes effects.
# - Effects are not available for losses other than "squared" and "huber", with `groups` or `cv`, and for random
#   features.
# - To predict new people, pass ``groups=X["person"]`` to `fit`, so that the validation error is the error for new
#   people. See :doc:`plot_07_time_and_groups`. For categories as ordinary inputs, see :doc:`plot_09_categories`.
