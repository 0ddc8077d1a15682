"""
Prediction intervals
====================

The prediction of a kernel model is the posterior mean of a Gaussian process. Its posterior standard deviation is large
where training rows are rare. `predict_interval` calibrates these standard deviations on leave-one-out errors. The
intervals therefore have the requested coverage on average, for any distribution of the noise.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from binfeat import IntervalDisplay, KernelMachineRegressor

BLUE, RED, GRAY = "#1f5fa8", "#c8452d", "0.45"
figure, (curve, bars, shares) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained", width_ratios=(4, 3, 3))
# sphinx_gallery_defer_figures

# %%
# Regions without rows
# --------------------
# The table has no rows in the middle and beyond both ends. The band is the 90 % interval for new rows, including their
# noise. The thin lines are samples from the posterior of the Gaussian process.

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-4, -1, 100), rng.uniform(1.2, 4, 60)])
y = np.sin(2 * x) + x / 3 + 0.2 * rng.normal(size=x.size)
model = KernelMachineRegressor(random_state=0).fit(x[:, None], y)
ticks = np.linspace(-5.5, 5.5, 400)
low, high = model.predict_interval(ticks[:, None]).T
curve.fill_between(ticks, low, high, color=BLUE, alpha=0.18, linewidth=0, label="90 % of new rows")
curve.plot(ticks, model.sample_y(ticks[:, None], 12, random_state=1), color=BLUE, alpha=0.35, linewidth=0.7)
curve.plot(ticks, model.predict(ticks[:, None]), color=BLUE, linewidth=2.2, label="prediction")
curve.plot(ticks, np.sin(2 * ticks) + ticks / 3, color="black", linestyle=":", label="truth")
curve.scatter(x, y, s=9, color=RED, linewidths=0, zorder=3, label="rows")
curve.set(xlabel="x", ylabel="y", ylim=(-4, 4.5), xlim=(-5.5, 5.5))
curve.set_title("90 % interval and samples", loc="left", fontsize="medium")
curve.legend(frameon=False, fontsize="small", ncols=2, loc="upper left")
curve.spines[["top", "right"]].set_visible(False)
# sphinx_gallery_defer_figures

# %%
# Patients
# --------
# The second picture shows intervals for the progression of diabetes within one year, for 100 patients of the test set.

X_train, X_test, y_train, y_test = train_test_split(*load_diabetes(return_X_y=True), test_size=0.5, random_state=1)
model = KernelMachineRegressor(random_state=0).fit(X_train, y_train)
IntervalDisplay.from_estimator(model, X_test, y_test, max_rows=100, ax=bars)
bars.set(xlabel="Predicted progression", ylabel="Progression")
# sphinx_gallery_defer_figures

# %%
# Coverage
# --------
# The target is Friedman's function with heavy-tailed noise. Intervals from normal quantiles of the same standard
# deviations are too wide for small coverages. The coverage of `predict_interval` is close to the requested one.

X, truth = make_friedman1(3000, noise=0.0, random_state=0)
y = truth + rng.standard_t(2, size=len(truth))
model = KernelMachineRegressor(random_state=0).fit(X[:1000], y[:1000])
asked = np.linspace(0.1, 0.98, 23)
held, by_normal = [], []
predicted, std = model.predict(X[1000:], return_std=True)
noise = np.sqrt(np.mean((y[:1000] - model.predict(X[:1000])) ** 2))
for coverage in asked:
    low, high = model.predict_interval(X[1000:], coverage).T
    held.append(np.mean((low <= y[1000:]) & (y[1000:] <= high)))
    reach = norm.ppf((1 + coverage) / 2) * np.hypot(std, noise)
    by_normal.append(np.mean(np.abs(y[1000:] - predicted) <= reach))
shares.plot([0, 1], [0, 1], color="0.8", linewidth=1)
shares.plot(asked, by_normal, color=GRAY, linewidth=1.8, label="normal quantiles")
shares.plot(asked, held, color=BLUE, linewidth=2.2, label="predict_interval")
shares.set(xlabel="Requested coverage", ylabel="Share of 2,000 new rows inside", xlim=(0, 1), ylim=(0, 1))
shares.set_title("Coverage", loc="left", fontsize="medium")
shares.legend(frameon=False, fontsize="small", loc="lower right")
shares.spines[["top", "right"]].set_visible(False)

figure.savefig("intervals.png", dpi=110)
print("wrote", Path("intervals.png").resolve())
