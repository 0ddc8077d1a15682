"""
Ordinal labels
==============

Grades, stages and stars are ordered labels. A classifier ignores their order. This example uses the order: it fits a
regressor to the numbers of the labels. Then it fits one logistic curve per threshold, which converts the prediction of
the regressor into the probability of exceeding the threshold.
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
# The grade is the number of thresholds (of six) that a noisy function of the inputs exceeds. The lowest and the highest
# grades are rare.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3300, 3))
quality = 2.5 * np.sin(2 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + 0.5 * rng.logistic(size=len(X))
grade = np.digitize(quality, [-3.0, -2.0, -1.0, 0.5, 1.5, 3.0])
X_train, grade_train, X_test, grade_test = X[:300], grade[:300], X[300:], grade[300:]

# %%
# One function and six thresholds
# -------------------------------
# Each logistic curve is fitted to cross-validated predictions, so that overfitting does not bias the probabilities.

regressor = KernelMachineRegressor(target_transform=None, random_state=0)
validated = cross_val_predict(regressor, X_train, grade_train.astype(float), cv=5)[:, np.newaxis]
regressor.fit(X_train, grade_train.astype(float))
curves = [LogisticRegression(C=10).fit(validated, grade_train > k) for k in range(grade_train.max())]
classifier = KernelMachineClassifier(random_state=0).fit(X_train, grade_train)


def probabilities_above(rows):
    """Return the probabilities of exceeding each grade, (n_rows, n_grades - 1), for both models."""
    values = regressor.predict(rows)[:, np.newaxis]
    by_thresholds = np.column_stack([curve.predict_proba(values)[:, 1] for curve in curves])
    by_labels = 1 - np.cumsum(classifier.predict_proba(rows), axis=1)[:, :-1]
    return {"thresholds": -np.sort(-by_thresholds, axis=1), "labels without order": by_labels}


# %%
# Scores
# ------
# The ranked probability score is the sum of squared errors of these probabilities; lower is better, and the true
# probabilities have a score of 0.39. The predicted grade is the median, which minimizes the mean absolute error.

is_above = grade_test[:, np.newaxis] > np.arange(grade_train.max())
for name, probabilities in probabilities_above(X_test).items():
    score = ((probabilities - is_above) ** 2).sum(axis=1).mean()
    middle = (probabilities > 0.5).sum(axis=1)
    print(f"{name}: ranked probability score {score:.3f}, mean absolute error {np.abs(middle - grade_test).mean():.3f}")

# %%
# Probabilities along an input
# ----------------------------
# Each band is the probability of one grade, with the lowest grade at the top.

line = np.column_stack([np.linspace(-1, 1, 200), np.full(200, 0.5), np.full(200, 0.5)])
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, probabilities) in zip(axes, probabilities_above(line).items()):
    edges = np.column_stack([np.ones(200), probabilities, np.zeros(200)])
    for k in range(edges.shape[1] - 1):
        color = plt.colormaps["viridis"](k / (edges.shape[1] - 2))
        ax.fill_between(line[:, 0], edges[:, k + 1], edges[:, k], color=color, lw=0, label=f"grade {k}")
    ax.set(title=name, xlabel="first input", xlim=(-1, 1), ylim=(0, 1))
axes[0].set_ylabel("probability")
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)

figure.savefig("ordinal_labels.png", dpi=130)
print("wrote", Path("ordinal_labels.png").resolve())
