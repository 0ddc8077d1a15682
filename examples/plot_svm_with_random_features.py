"""
The support vector machine with random Fourier features
=======================================================

A support vector machine with the Gaussian kernel costs about the square of the rows. The same machine on random
Fourier features is linear in them: `CGRidgeClassifier` with ``loss="squared_hinge"`` is the L2 support vector
machine in the primal, and the inner products of `RandomFourier` approximate the kernel.
"""

# %%
# Both machines on more and more rows of the same problem, with the same gamma.
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


def machines():
    """The exact machine and two with random features."""
    yield "SVC", SVC(gamma=GAMMA, C=2.0)
    for n_components in (256, 1024):
        features = RandomFourier(gamma=GAMMA, n_components=n_components, random_state=0)
        machine = CGRidgeClassifier(alpha=0.25, loss="squared_hinge")
        yield f"{n_components} random features", make_pipeline(features, machine)


for _, machine in machines():
    machine.fit(X[:100], y[:100])  # compiles the kernels, so that no time below has that in it

seconds, errors = {}, {}
for name, machine in machines():
    for n in SIZES:
        start = perf_counter()
        machine.fit(X[:n], y[:n])
        seconds.setdefault(name, []).append(perf_counter() - start)
        errors.setdefault(name, []).append(100 * (1 - machine.score(X_test, y_test)))

# %%
# The time of the machine with random features grows with the rows, the exact machine's with their square. Its error
# falls with the number of features towards the exact one's.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, own), colour in zip(seconds.items(), ("0.45", "tab:orange", "tab:blue"), strict=True):
    left.loglog(SIZES, own, "o-", color=colour, label=name)
    right.semilogx(SIZES, errors[name], "o-", color=colour, label=name)
left.set(xlabel="training rows", ylabel="seconds to fit", title="Time")
right.set(xlabel="training rows", ylabel="test error, %", title="Error", ylim=(0, None))
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
