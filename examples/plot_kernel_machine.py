"""
A kernel model without tuning
=============================

The table has 100 inputs, and the target (Friedman's first function plus noise) depends on five of them. With one length
scale for all inputs, distances between rows depend mostly on irrelevant inputs. `KernelMachineRegressor` learns one
length scale per input from the gradient of the leave-one-out error, and selects the kernel and the penalty. The example
compares it with a support vector machine and gradient boosting.
"""

from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from binfeat import KernelMachineRegressor, LearningCurveDisplay, RelevanceDisplay

X, y = make_friedman1(n_samples=4000, n_features=100, noise=0.5, random_state=0)
X_train, y_train, X_test = X[:2000], y[:2000], X[2000:]
y_test = make_friedman1(n_samples=4000, n_features=100, noise=0.0, random_state=0)[1][2000:]

# %%
# Three models
# ------------
# The error is the share of the variance of the noise-free target that the model does not explain.

models = {
    "one length scale (SVR)": make_pipeline(StandardScaler(), SVR(C=10.0)),
    "gradient boosting": HistGradientBoostingRegressor(random_state=0),
    "kernel model": KernelMachineRegressor(random_state=0),
}
for name, model in models.items():
    start = perf_counter()
    model.fit(X_train, y_train)
    seconds = perf_counter() - start
    print(f"{name:22} {1 - model.score(X_test, y_test):.4f} unexplained, {seconds:.1f} s")

# %%
# Decisions
# ---------
# For 2,000 rows the model is exact: it uses the full kernel matrix and no random features. Each step of the search for
# length scales computes the leave-one-out error on a random subset of 300 rows, and of 500 rows in the last steps.

model = models["kernel model"]
print(model.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
RelevanceDisplay.from_estimator(model, max_features=10, ax=left)
left.set_title("Relevance of the inputs")
LearningCurveDisplay.from_estimator(model, ax=right)
right.set_title("Leave-one-out error during the search")
figure.savefig("kernel_machine.png", dpi=110)
