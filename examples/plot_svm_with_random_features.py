"""
Support vector machine with random Fourier features
===================================================

The training time of a support vector machine with the Gaussian kernel is roughly quadratic in the number of rows. With
random Fourier features it is linear, because inner products of the features approximate the kernel.
`CGRidgeClassifier` with ``loss="squared_hinge"`` fits a linear support vector machine to the features.
"""

# %%
# The example fits both kinds of models to 1,000 to 40,000 rows of the same table, with the same gamma.
from time import perf_counter

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from binfeat import CGRidgeClassifier, RandomFourier

X, y = make_classification(
    44_000, n_features=12, n_informative=8, n_clusters_per_class=6, flip_y=0.01, class_sep=1.5, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, test_size=4_000, random_state=0)
GAMMA = 0.03
SIZES = [1_000, 2_000, 4_000, 8_000, 20_000, 40_000]


def models():
    """Yield the name and the model of the exact SVM and of two approximations."""
    yield "SVC", SVC(gamma=GAMMA, C=2.0)
    for n_components in (256, 1024):
        features = RandomFourier(gamma=GAMMA, n_components=n_components, random_state=0)
        model = CGRidgeClassifier(alpha=0.25, loss="squared_hinge")
        yield f"{n_components} random features", make_pipeline(features, model)


for _, model in models():
    model.fit(X[:100], y[:100])  # compile the kernels before the timing

seconds, errors = {}, {}
for name, model in models():
    for n in SIZES:
        start = perf_counter()
        model.fit(X[:n], y[:n])
        seconds.setdefault(name, []).append(perf_counter() - start)
        errors.setdefault(name, []).append(100 * (1 - model.score(X_test, y_test)))

# %%
# More features need more time, and their error is closer to the error of the exact model.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, own), color in zip(seconds.items(), ("0.45", "tab:orange", "tab:blue"), strict=True):
    left.loglog(SIZES, own, "o-", color=color, label=name)
    right.semilogx(SIZES, errors[name], "o-", color=color, label=name)
left.set(xlabel="training rows", ylabel="seconds to fit", title="Time")
right.set(xlabel="training rows", ylabel="test error, %", title="Error", ylim=(0, None))
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
