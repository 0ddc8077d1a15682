"""
Watching a machine in service
=============================

Rows that are unlike those of `fit` get predictions like any others, and nobody notices until their targets are known.
The standard deviation of a prediction is known at once: it grows with the distance to the rows of `fit`, in units of
the length scales that the machine has learned, so that an input that hardly matters hardly counts.
"""

import matplotlib.pyplot as plt
import numpy as np

from binfeat import KernelMachineRegressor

rng = np.random.default_rng(0)


def day_of_rows(shift, n_rows=200):
    """Rows of a day, whose first input has moved."""
    X = rng.normal(size=(n_rows, 4))
    X[:, 0] += shift
    return X


def target(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


X = rng.normal(size=(1500, 4))
y = target(X) + 0.2 * rng.normal(size=1500)
machine = KernelMachineRegressor(on_unseen="ignore", random_state=0).fit(X[:1000], y[:1000])

# %%
# The reference
# -------------
# Rows that the machine has not seen, from the time of `fit`: one in a hundred of them is above the limit. And what is
# to be expected of errors, once targets come: those of the rows of `fit`, each left out in turn.

_, reference = machine.predict(X[1000:], return_std=True)
limit = np.quantile(reference, 0.99)
expected = np.sqrt(machine.held_out_error_[0]) * y[:1000].std()

# %%
# Thirty days
# -----------
# From the tenth day on the first input moves by a tenth of a deviation a day. The share of rows above the limit rises
# with the error, and needs no targets.

shifts = np.maximum(0, np.arange(30) - 9) / 10
shares, errors = [], []
for shift in shifts:
    rows = day_of_rows(shift)
    predicted, std = machine.predict(rows, return_std=True)
    shares.append((std > limit).mean())
    errors.append(np.sqrt(np.mean((predicted - target(rows) - 0.2 * rng.normal(size=len(rows))) ** 2)))
alarm = int(np.argmax(np.array(shares) > 0.05))
moved = day_of_rows(0.0)
moved[:, 3] += 1
_, std = machine.predict(moved, return_std=True)
print(f"an input that does not matter, moved by 1: {(std > limit).mean():.1%} of the rows are above the limit")
print(
    f"alarm on day {alarm}, at a shift of {shifts[alarm]:.1f}: error {errors[alarm]:.2f}, in the end {errors[-1]:.2f}; "
    f"expected {expected:.2f}"
)

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].bar(np.arange(30), shares, color="#1f5fa8")
axes[0].axhline(0.05, color="#c8452d", linewidth=1)
axes[0].set(xlabel="day", ylabel="share of rows above the limit", title="known at once")
axes[1].plot(errors, color="#1f5fa8", marker="o", markersize=4)
axes[1].axhline(expected, color="#c8452d", linewidth=1)
axes[1].set(xlabel="day", ylabel="error", ylim=(0, None), title="known when targets are")
plt.show()
