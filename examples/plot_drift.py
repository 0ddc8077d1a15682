"""
Monitoring a deployed model
===========================

If new rows differ from the training rows, predictions become worse, but the error is unknown until the targets arrive.
The standard deviation of a prediction is available at once. It grows with the distance to the training rows, in units
of the learned length scales, so changes in an irrelevant input have little effect on it.
"""

import matplotlib.pyplot as plt
import numpy as np

from binfeat import KernelMachineRegressor

rng = np.random.default_rng(0)


def day_of_rows(shift, n_rows=200):
    """Return the rows of a day, with a shifted first input."""
    X = rng.normal(size=(n_rows, 4))
    X[:, 0] += shift
    return X


def target(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


X = rng.normal(size=(1500, 4))
y = target(X) + 0.2 * rng.normal(size=1500)
model = KernelMachineRegressor(on_unseen="ignore", random_state=0).fit(X[:1000], y[:1000])

# %%
# The limit
# ---------
# The limit is the 99 % quantile of the standard deviations of 500 new rows with the distribution of the training rows.
# The expected error is the leave-one-out error of the training rows.

_, reference = model.predict(X[1000:], return_std=True)
limit = np.quantile(reference, 0.99)
expected = np.sqrt(model.held_out_error_[0]) * y[:1000].std()

# %%
# Thirty days
# -----------
# From day 10 on, the first input shifts by 0.1 standard deviations per day. The share of rows above the limit increases
# together with the error, and it is known without targets. The alarm is the first day on which more than 5 % of the
# rows are above the limit.

shifts = np.maximum(0, np.arange(30) - 9) / 10
shares, errors = [], []
for shift in shifts:
    rows = day_of_rows(shift)
    predicted, std = model.predict(rows, return_std=True)
    shares.append((std > limit).mean())
    errors.append(np.sqrt(np.mean((predicted - target(rows) - 0.2 * rng.normal(size=len(rows))) ** 2)))
alarm = int(np.argmax(np.array(shares) > 0.05))
moved = day_of_rows(0.0)
moved[:, 3] += 1
_, std = model.predict(moved, return_std=True)
print(f"irrelevant input shifted by 1: {(std > limit).mean():.1%} of the rows are above the limit")
print(
    f"alarm on day {alarm}, at a shift of {shifts[alarm]:.1f}: RMSE {errors[alarm]:.2f}, expected {expected:.2f}; "
    f"RMSE on the last day {errors[-1]:.2f}"
)

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].bar(np.arange(30), shares, color="#1f5fa8")
axes[0].axhline(0.05, color="#c8452d", linewidth=1)
axes[0].set(xlabel="day", ylabel="share of rows above the limit", title="available at once")
axes[1].plot(errors, color="#1f5fa8", marker="o", markersize=4)
axes[1].axhline(expected, color="#c8452d", linewidth=1)
axes[1].set(xlabel="day", ylabel="RMSE", ylim=(0, None), title="available when targets arrive")
plt.show()
