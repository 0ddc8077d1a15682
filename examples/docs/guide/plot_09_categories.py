"""
Categories with many levels
===========================

Streets, products, authors: a column of hundreds of levels, most of them in few rows. A kernel machine takes it as it
is: where two rows differ in a category, the kernel is multiplied by ``exp(-gamma_j)``, with a ``gamma_j`` that is
learned. So rows of the same level count more for each other, but all rows count, and a level of few rows borrows from
the others.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from binfeat import KernelMachineRegressor

# %%
# Prices of houses in 600 streets, made up: some streets have dozens of houses, many have none or one.

rng = np.random.default_rng(0)
worth = rng.normal(size=600)
place = rng.choice(600, size=6000, p=rng.dirichlet(np.full(600, 0.6)))
size, age = rng.gamma(4, 25, 6000), rng.uniform(0, 80, 6000)
price = worth[place] + 2 * np.sqrt(size / 100) - np.abs(age - 40) / 40 + 0.3 * rng.normal(size=6000)
table = pd.DataFrame({"street": pd.Categorical([f"street {k}" for k in place]), "size": size, "age": age})
train, test = np.arange(6000) < 3000, np.arange(6000) >= 3000
houses = pd.Series(place[train]).value_counts().reindex(range(600), fill_value=0)
known = houses[houses > 0]
print(f"{len(known)} streets in training rows, half of them with {known.median():.0f} houses or fewer")

# %%
# As it is, or encoded
# --------------------
# The usual remedy replaces each level by the mean target of its rows, with a correction for few rows. It is there for
# machines that cannot do without. scikit-learn's HistGradientBoosting, for one, takes 255 levels of a category at most.


def encoded(regressor):
    encoder = make_column_transformer((TargetEncoder(), ["street"]), remainder="passthrough")
    return make_pipeline(encoder, regressor)


machines = {
    "kernel machine, column as it is": KernelMachineRegressor(random_state=0),
    "kernel machine, levels encoded": encoded(KernelMachineRegressor(random_state=0)),
    "boosted trees, levels encoded": encoded(HistGradientBoostingRegressor(random_state=0)),
}
for name, machine in machines.items():
    machine.fit(table[train], price[train])
    print(f"{name:32} {1 - machine.score(table[test], price[test]):.3f} of the variance left unexplained")
print(f"{'the noise alone':32} {0.3**2 / price[test].var():.3f}")

# %%
# What it knows of a street
# -------------------------
# Streets of many houses have their own level; that of a single house is drawn towards the mean, and a street without
# any gets the mean. A level that ``fit`` has not seen matches no other. That is no error, but worth a look: predictions
# there have larger deviations.

machine = machines["kernel machine, column as it is"]
same = pd.DataFrame({"street": [f"street {k}" for k in range(600)], "size": 100.0, "age": 40.0})
level, deviation = machine.predict(same, return_std=True)
for few, many in ((0, 0), (1, 2), (3, 10), (11, 10**6)):
    those = houses.between(few, many).to_numpy()
    error = np.sqrt(np.mean((level[those] - 2 - worth[those]) ** 2))
    print(f"{few:3} to {many:7} houses: off by {error:.2f}, standard deviation {deviation[those].mean():.2f}")

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
dots = ax.scatter(worth, level - 2, c=np.log10(1 + houses), s=12, cmap="viridis_r")
ax.plot([-3, 3], [-3, 3], color="0.7", linewidth=1, zorder=0)
ax.set(xlabel="what a street is worth", ylabel="what the machine says", xlim=(-3, 3), ylim=(-3, 3))
bar = figure.colorbar(dots, label="houses in training rows", ticks=np.log10([1, 2, 11, 101]))
bar.ax.set_yticklabels([0, 1, 10, 100])

# %%
# More to know
# ------------
# - Columns of strings or of pandas' categories are categories by themselves, unless all strings are numbers or dates:
#   these are read as such, with a warning. Numbers that are codes, as of streets, are found where the targets of
#   neighbouring numbers are unlike, and are categories beside numbers; ``summary()`` names them. Where you know better,
#   ``categorical_features=["street"]`` makes them categories alone.
# - A column with a different level in nearly every row, such as an id, tells nothing: it is named in a warning, and
#   ignored.
# - Give what is known of a level as columns of its own (the district, the distance to the station): levels that are
#   alike then know of each other, and new levels do not begin with nothing.
# - Machines of Fourier features take no categories; exact and local machines and grids do.
