"""
Kernel ridge without the kernel matrix
======================================

Random binning turns a table into sparse binary features whose inner products approximate a Laplacian kernel
(Rahimi & Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007). A ridge machine on these features
approximates kernel ridge, at a cost that grows with rows times grids instead of with the square of the rows and more.

This example trains such machines on two real tables that ship with scikit-learn, beside a linear machine and beside
the exact kernel machine that they approximate.
"""

from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning, kernels

N_GRIDS = (8, 32, 128, 512, 2048)
SEEDS = range(3)

# %%
# The machines
# ------------
# Ours is a pipeline: inputs scaled to [0, 1], binned, and a ridge on the bins. The compact codes of
# ``output="codes"`` go from one step to the next without a CSR matrix in between.


def binning_machine(ridge):
    binning = RandomBinning(n_grids=128, output="codes", random_state=0)
    return Pipeline([("scale", MinMaxScaler()), ("bins", binning), ("ridge", ridge)])


# %%
# The exact counterpart is scikit-learn's kernel ridge. It has no classifier, so here is one that treats labels as
# ours does: each class is a target, 1 for its rows and -1 for the others, and the largest prediction wins.


class KernelRidgeClassifier(ClassifierMixin, KernelRidge):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return super().fit(X, np.where(y[:, None] == self.classes_, 1.0, -1.0))

    def predict(self, X):
        return self.classes_[super().predict(X).argmax(axis=1)]


# %%
# The comparison
# --------------
# Gamma and alpha are chosen by cross-validation on the training rows, with 128 grids, and kept for every number of
# grids and for the exact machine; the linear machine chooses its own alpha. Test rows serve for the errors alone:
# one minus the score, that is the share of digits misread, or of the variance of the target left unexplained.


def search(machine, X, y):
    grid = {"bins__gamma": np.array([2.0, 4.0, 8.0]) / X.shape[1], "ridge__alpha": [0.1, 1.0, 10.0]}
    return GridSearchCV(machine, grid, cv=KFold(3, shuffle=True, random_state=0)).fit(X, y)


def measure(machines, X_train, X_test, y_train, y_test):
    """Test errors of some machines, and the shortest time that one took to fit."""
    errors, seconds = [], []
    for machine in machines:
        start = perf_counter()
        machine.fit(X_train, y_train)
        seconds.append(perf_counter() - start)
        errors.append(1 - machine.score(X_test, y_test))
    return errors, min(seconds)


def compare(name, X, y, machine, linear, exact):
    """Print one table; return the tuned machine, the training inputs, and the errors in the order of the table."""
    data = train_test_split(X, y, test_size=0.3, random_state=0)
    X_train, X_test, y_train, _ = data
    best = search(machine, X_train, y_train).best_estimator_
    gamma, alpha = best["bins"].gamma, best["ridge"].alpha
    exact = make_pipeline(MinMaxScaler(), exact(gamma, alpha))
    print(f"{name}: {len(X_train)} + {len(X_test)} rows, {X.shape[1]} inputs; gamma {gamma:.3g}, alpha {alpha:.3g}")
    print(f"  {'machine':<22}{'test error':>10}{'fit (s)':>10}{'occupied bins':>16}{'per grid':>10}")
    table = []
    for label, one in (("linear ridge", linear), ("exact kernel ridge", exact)):
        errors, seconds = measure([clone(one) for _ in SEEDS], *data)
        print(f"  {label:<22}{np.mean(errors):>10.4f}{seconds:>10.3f}")
        table.append(errors)
    for n_grids in N_GRIDS:
        machines = [clone(best).set_params(bins__n_grids=n_grids, bins__random_state=seed) for seed in SEEDS]
        errors, seconds = measure(machines, *data)
        bins = machines[0]["bins"]
        row = f"{np.mean(errors):>10.4f}{seconds:>10.3f}{bins.n_bins_:>16,}{bins.kappa_:>10.1f}"
        print(f"  {f'binning, {n_grids} grids':<22}{row}")
        table.append(errors)
    print()
    return best, X_train, table


# %%
# Digits: 64 pixels, ten classes
# ------------------------------
# Here a kernel pays: the exact machine makes a seventh of the linear one's errors, and a few hundred grids come close
# to it. On a thousand rows it is also fast; its matrix has a number for every pair of rows.

digits, X_digits, digits_errors = compare(
    "digits",
    *load_digits(return_X_y=True),
    machine=binning_machine(CGRidgeClassifier()),
    linear=make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-2, 3, 11))),
    exact=lambda gamma, alpha: KernelRidgeClassifier(kernel="laplacian", gamma=gamma, alpha=alpha),
)

# %%
# Diabetes: 10 inputs, progression after a year
# ---------------------------------------------
# Here it does not: 309 noisy rows hold little that a linear function misses, and the linear machine is the best.
# The exact machine predicts targets without their mean, since it has no intercept.

compare(
    "diabetes",
    *load_diabetes(return_X_y=True, scaled=False),
    machine=binning_machine(CGRidge()),
    linear=make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 11))),
    exact=lambda gamma, alpha: TransformedTargetRegressor(
        KernelRidge(kernel="laplacian", gamma=gamma, alpha=alpha), transformer=StandardScaler(with_std=False)
    ),
)

# %%
# The kernel itself
# -----------------
# Two rows share a bin of one grid with probability k, so the mean over P grids has the variance k (1 - k) / P. This
# is the line in the right half of the picture; nothing about it is fitted.

X_digits = digits["scale"].transform(X_digits)
left, right = X_digits[:300], X_digits[300:600]
gamma = digits["bins"].gamma
k = kernels.Laplacian()(left, right, gamma=gamma)


def kernel_error(n_grids, seed):
    binning = RandomBinning(gamma=gamma, n_grids=n_grids, random_state=seed)
    estimate = (binning.fit_transform(left) @ binning.transform(right).T).toarray()
    return np.sqrt(np.mean((estimate - k) ** 2))


kernel_errors = [[kernel_error(n_grids, seed) for seed in SEEDS] for n_grids in N_GRIDS]

# %%
# The picture
# -----------

BLUE, RED, GREY = "#1f5fa8", "#c8452d", "#5f6368"
linear_error, exact_error, *binning_errors = (100 * np.array(errors) for errors in digits_errors)
low, middle, high = (summary(binning_errors, axis=1) for summary in (np.min, np.mean, np.max))
figure, (ax, kernel_ax) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")

ax.fill_between(N_GRIDS, low, high, color=BLUE, alpha=0.15, lw=0)
ax.plot(N_GRIDS, middle, "o-", color=BLUE, label="binning and CG ridge, 3 seeds")
ax.axhline(linear_error[0], color=GREY, ls="--", label="linear ridge")
ax.axhline(exact_error[0], color=RED, ls="-.", label="exact kernel ridge")
ax.set(yscale="log", ylim=(0.7, 40), ylabel="test error (%)", title="The machine: digits misread")
ax.set_yticks([1, 2, 5, 10, 20], [1, 2, 5, 10, 20])

theory = np.sqrt(np.mean(k * (1 - k)) / N_GRIDS)
kernel_ax.plot(N_GRIDS, kernel_errors, "o", color=BLUE, alpha=0.6, label=["binning, 3 seeds", None, None])
kernel_ax.plot(N_GRIDS, theory, color=RED, label=r"expected, $\sqrt{\mathrm{mean}\ k\,(1 - k)\;/\;P}$")
kernel_ax.set(yscale="log", ylabel="root mean square error", title="The kernel: 90,000 pairs of digits")
kernel_ax.set_yticks([0.01, 0.02, 0.05, 0.1], [0.01, 0.02, 0.05, 0.1])

for one in (ax, kernel_ax):
    one.set_xscale("log", base=2)
    one.set_xticks(N_GRIDS, N_GRIDS)
    one.minorticks_off()
    one.set_xlabel("number of grids P")
    one.grid(color="0.9", lw=0.8)
    one.spines[["top", "right"]].set_visible(False)
    one.legend(loc="upper right", framealpha=1, edgecolor="none")

figure.savefig("quickstart.png", dpi=140)
print("wrote", Path("quickstart.png").resolve())
