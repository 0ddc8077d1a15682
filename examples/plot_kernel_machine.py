"""
A kernel machine that sets itself up
====================================

A table with a hundred inputs, of which five matter, and not alike: Friedman's first target, with noise. A kernel with
one length scale for all inputs sees mostly noise here. `KernelMachineRegressor` learns one per input by the gradient of
a leave-one-out error, and chooses the rest (kernel, kind of features, penalty) itself. Boosted trees with
their defaults stand beside it.
"""

from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from binfeat import KernelMachineRegressor, LearningCurveDisplay, RelevanceDisplay

X, y = make_friedman1(n_samples=6000, n_features=100, noise=0.5, random_state=0)
X_train, y_train, X_test = X[:4000], y[:4000], X[4000:]
y_test = make_friedman1(n_samples=6000, n_features=100, noise=0.0, random_state=0)[1][4000:]

# %%
# Three machines
# --------------
# The share of the noiseless target's variance that is left unexplained.

machines = {
    "one length scale (SVR)": make_pipeline(StandardScaler(), SVR(C=10.0)),
    "boosted trees": HistGradientBoostingRegressor(random_state=0),
    "kernel machine": KernelMachineRegressor(random_state=0),
}
for name, machine in machines.items():
    start = perf_counter()
    machine.fit(X_train, y_train)
    seconds = perf_counter() - start
    print(f"{name:22} {1 - machine.score(X_test, y_test):.4f} unexplained, {seconds:.1f} s")

# %%
# What it decided
# ---------------
# With so few rows the machine is exact: it has the whole kernel matrix and no random features. Each step of the search
# for length scales takes 300 rows, the last ones 500, and measures the leave-one-out error on them.

machine = machines["kernel machine"]
print(machine.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
RelevanceDisplay.from_estimator(machine, max_features=10, ax=left)
left.set_title("What each input counts")
LearningCurveDisplay.from_estimator(machine, ax=right)
right.set_title("How the error fell")
figure.savefig("kernel_machine.png", dpi=110)
