"""
Labels in an order
==================

Grades, stages and stars are labels in an order, which a classifier does not know of. A regressor does, when it is given
their numbers: it learns one function, and thresholds on that function tell the chances to be above each grade.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from binfeat import KernelMachineClassifier, KernelMachineRegressor

# %%
# Seven grades, 300 rows
# ----------------------
# A grade is where a curve with noise falls among six thresholds; the outer grades are rare.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3300, 3))
quality = 2.5 * np.sin(2 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + 0.5 * rng.logistic(size=len(X))
grade = np.digitize(quality, [-3.0, -2.0, -1.0, 0.5, 1.5, 3.0])
X_train, grade_train, X_test, grade_test = X[:300], grade[:300], X[300:], grade[300:]

# %%
# A function and its thresholds
# -----------------------------
# Each threshold is a logistic curve of predictions for rows that were left out of the fit.

regressor = KernelMachineRegressor(target_transform=None, random_state=0)
left_out = cross_val_predict(regressor, X_train, grade_train.astype(float), cv=5)[:, np.newaxis]
regressor.fit(X_train, grade_train.astype(float))
curves = [LogisticRegression(C=10).fit(left_out, grade_train > k) for k in range(grade_train.max())]
classifier = KernelMachineClassifier(random_state=0).fit(X_train, grade_train)


def chances_above(rows):
    """Chances of rows to be above each grade but the last, (n_rows, n_grades - 1), in both ways."""
    values = regressor.predict(rows)[:, np.newaxis]
    by_thresholds = np.column_stack([curve.predict_proba(values)[:, 1] for curve in curves])
    by_labels = 1 - np.cumsum(classifier.predict_proba(rows), axis=1)[:, :-1]
    return {"thresholds": -np.sort(-by_thresholds, axis=1), "labels without order": by_labels}


# %%
# How much better
# ---------------
# The ranked probability score sums squares of what the chances are off by: 0.39 for those that the grades were drawn
# with. The grade in the middle of the chances is the one to say where a near miss is better than a far one.

is_above = grade_test[:, np.newaxis] > np.arange(grade_train.max())
for name, chances in chances_above(X_test).items():
    score = ((chances - is_above) ** 2).sum(axis=1).mean()
    middle = (chances > 0.5).sum(axis=1)
    print(f"{name}: ranked probability score {score:.3f}, grades off by {np.abs(middle - grade_test).mean():.3f}")

# %%
# Chances along an input
# ----------------------
# Bands are the chances of the grades, from the lowest at the top to the highest.

line = np.column_stack([np.linspace(-1, 1, 200), np.full(200, 0.5), np.full(200, 0.5)])
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, chances) in zip(axes, chances_above(line).items()):
    edges = np.column_stack([np.ones(200), chances, np.zeros(200)])
    for k in range(edges.shape[1] - 1):
        colour = plt.colormaps["viridis"](k / (edges.shape[1] - 2))
        ax.fill_between(line[:, 0], edges[:, k + 1], edges[:, k], color=colour, lw=0, label=f"grade {k}")
    ax.set(title=name, xlabel="first input", xlim=(-1, 1), ylim=(0, 1))
axes[0].set_ylabel("chance")
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)

figure.savefig("ordinal_labels.png", dpi=130)
print("wrote", Path("ordinal_labels.png").resolve())
