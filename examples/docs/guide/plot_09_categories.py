"""
Categories with many levels
===========================

This page is for readers with columns such as streets, products or authors: hundreds of levels, most of them in few
rows. A kernel model uses such a column without encoding. If two rows differ in the category, their kernel value is
multiplied by ``exp(-gamma_j)``, and ``gamma_j`` is learned. So rows of the same level have more influence on a
prediction, but all rows contribute. A level with few rows borrows information from other levels.
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
# The table is synthetic: prices of houses in 600 streets. Each street has an effect on the price. Some streets have
# dozens of houses, and many streets have none or one.

rng = np.random.default_rng(0)
worth = rng.normal(size=600)
place = rng.choice(600, size=6000, p=rng.dirichlet(np.full(600, 0.6)))
size, age = rng.gamma(4, 25, 6000), rng.uniform(0, 80, 6000)
price = worth[place] + 2 * np.sqrt(size / 100) - np.abs(age - 40) / 40 + 0.3 * rng.normal(size=6000)
table = pd.DataFrame({"street": pd.Categorical([f"street {k}" for k in place]), "size": size, "age": age})
train, test = np.arange(6000) < 3000, np.arange(6000) >= 3000
houses = pd.Series(place[train]).value_counts().reindex(range(600), fill_value=0)
known = houses[houses > 0]
print(f"{len(known)} streets in training rows, half of them with at most {known.median():.0f} houses")

# %%
# With or without encoding
# ------------------------
# Target encoding replaces each level by the mean target of its rows, shrunk for levels with few rows. Models that
# accept few levels need it. For example, scikit-learn's HistGradientBoosting accepts at most 255 levels.


def encoded(regressor):
    encoder = make_column_transformer((TargetEncoder(), ["street"]), remainder="passthrough")
    return make_pipeline(encoder, regressor)


models = {
    "kernel model, raw column": KernelMachineRegressor(on_unseen="ignore", random_state=0),
    "kernel model, target encoding": encoded(KernelMachineRegressor(random_state=0)),
    "boosted trees, target encoding": encoded(HistGradientBoostingRegressor(random_state=0)),
}
for name, model in models.items():
    model.fit(table[train], price[train])
    print(f"{name:32} {1 - model.score(table[test], price[test]):.3f} of the variance unexplained")
print(f"{'noise':32} {0.3**2 / price[test].var():.3f}")

# %%
# Predictions for streets
# -----------------------
# The predicted effect of a street with many houses is close to its true effect. The effect of a street with one house
# is shrunk towards 0, and a street without training rows has the effect 0. Predictions for such streets have larger
# standard deviations. By default, `predict` warns about new streets. They are expected here, so the model has
# ``on_unseen="ignore"``.

model = models["kernel model, raw column"]
same = pd.DataFrame({"street": [f"street {k}" for k in range(600)], "size": 100.0, "age": 40.0})
level, deviation = model.predict(same, return_std=True)
for few, many in ((0, 0), (1, 2), (3, 10), (11, 10**6)):
    selected = houses.between(few, many).to_numpy()
    error = np.sqrt(np.mean((level[selected] - 2 - worth[selected]) ** 2))
    print(f"{few:3} to {many:7} houses: RMSE {error:.2f}, standard deviation {deviation[selected].mean():.2f}")

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
dots = ax.scatter(worth, level - 2, c=np.log10(1 + houses), s=12, cmap="viridis_r")
ax.plot([-3, 3], [-3, 3], color="0.7", linewidth=1, zorder=0)
ax.set(xlabel="true effect of a street", ylabel="predicted effect", xlim=(-3, 3), ylim=(-3, 3))
bar = figure.colorbar(dots, label="houses in training rows", ticks=np.log10([1, 2, 11, 101]))
bar.ax.set_yticklabels([0, 1, 10, 100])

# %%
# Details
# -------
# - Columns of strings, and categorical columns of pandas, are categories without further settings. Strings that are all
#   numbers or all dates are converted, with a warning. Integer codes, such as district numbers, are detected if
#   neighboring codes have unrelated targets. The model then uses them both as numbers and as categories, and
#   ``summary()`` lists them. Pass ``categorical_features=["street"]`` to override the detection.
# - A column with a different level in nearly every row, such as an id, is ignored with a warning.
# - Add known properties of a level as columns, for example the district or the distance to the station. Similar levels
#   then share information, and new levels are predicted from their properties.
# - Exact models, local models and models on binning features accept categories. Models on Fourier features do not.
