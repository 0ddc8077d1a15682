"""
Time series, and rows that belong together
==========================================

A machine makes its choices by rows that it leaves out. Where rows know of each other, as neighbouring days or visits of
one patient do, rows that are left out at random make it too sure of itself. ``cv`` and ``groups`` say which rows to
hold out instead.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from binfeat import KernelMachineRegressor

# %%
# A shop's sales
# --------------
# Four years of days: a trend, a week, a year, warm days, and a mood that lasts for some days. The last year is to be
# predicted, each day from what is known on the evening before, and from tomorrow's weather.

rng = np.random.default_rng(0)
days = pd.date_range("2022-01-01", periods=4 * 365)
year = 2 * np.pi * days.day_of_year / 365
warmth = 12 - 10 * np.cos(year) + rng.normal(0, 3, size=len(days))
mood = np.zeros(len(days))
for t in range(1, len(days)):
    mood[t] = 0.8 * mood[t - 1] + rng.normal(0, 2)
week = np.array([0, -4, -3, 0, 6, 14, -13])[days.day_of_week]
sales = 100 + 0.03 * np.arange(len(days)) + week + 8 * np.sin(year) + 0.5 * np.maximum(warmth - 15, 0) + mood
table = pd.DataFrame({"day": days, "weekday": pd.Categorical(days.day_name()), "warmth": warmth, "sales": sales})

# %%
# What was before is a matter of columns. A kernel machine far from all its rows predicts the mean, but for a linear
# part, if it has one, which ends one range beyond the known one: so the third table below has sales as differences
# from the mean of the week before.

table["yesterday"], table["a week ago"] = table["sales"].shift(1), table["sales"].shift(7)
table["level"] = table["sales"].shift(1).rolling(7).mean()
table["yesterday's rise"] = table["yesterday"] - table["level"]
known, later = table[7:-365], table[-365:]
last_year = np.arange(len(known)) >= len(known) - 365

tables = {
    "day and weather": (["day", "warmth"], 0.0),
    "and sales before": (["day", "warmth", "yesterday", "a week ago"], 0.0),
    "differences": (["weekday", "warmth", "yesterday's rise"], table["level"]),
}
print("root mean squared error     expected by: days left out   the last known year   and later")
for words, (columns, level) in tables.items():
    target = table["sales"] - level
    expected = []
    for cv in (None, [(np.flatnonzero(~last_year), np.flatnonzero(last_year))]):
        machine = KernelMachineRegressor(cv=cv, random_state=0).fit(known[columns], target[known.index])
        expected.append(np.sqrt(machine.held_out_error_[0]) * target[known.index].std())
    found = np.sqrt(np.mean((machine.predict(later[columns]) - target[later.index]) ** 2))
    print(f"{words:20} {expected[0]:35.1f} {expected[1]:21.1f} {found:11.1f}")

# %%
# Days that are left out one by one lie between days that are known, and say nothing of days to come. The last known
# year does: it shows that only the third table will do. ``cv`` takes pairs of rows to learn from and rows to hold out,
# of which the first is used; scikit-learn's ``TimeSeriesSplit`` begins with the *oldest* days, so name the rows
# yourself. Where the table is right, a machine that leaves out each row has more rows to choose by.

columns, level = tables["differences"]
final = KernelMachineRegressor(random_state=0).fit(known[columns], (table["sales"] - level)[known.index])
low, high = (final.predict_interval(later[columns]) + level[later.index].to_numpy()[:, None]).T
error = final.predict(later[columns]) + later["level"] - later["sales"]
print(f"error of the last year: {np.sqrt(np.mean(error**2)):.1f}")
print(f"days within their interval of 90 %: {np.mean((low < later['sales']) & (later['sales'] < high)):.0%}")
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
shown = slice(0, 63)
ax.vlines(later["day"][shown], low[shown], high[shown], color="C0", alpha=0.4, linewidth=5, label="interval of 90 %")
ax.plot(later["day"][shown], later["sales"][shown], "k.", markersize=4, label="sales")
ax.legend(frameon=False, ncols=2)

# %%
# Groups
# ------
# ``groups`` names rows that belong together; they are held out together. More than 1,500 rows with ``cv`` or ``groups``
# have random features, whose choices are made by the rows held out, or with ``kernel="rbf"`` a local machine;
# `summary` says so. Here each of 200 patients comes five times, and has a level that nothing in the table explains.

patients = np.repeat(np.arange(200), 5)
habits = rng.normal(size=(200, 2))[patients] + 0.02 * rng.normal(size=(1000, 2))
pressure = habits[:, 0] + rng.normal(size=200)[patients] + 0.2 * rng.normal(size=1000)
old = patients < 150
for words, groups in (("visits left out", None), ("patients held out", patients[old])):
    machine = KernelMachineRegressor(random_state=0).fit(habits[old], pressure[old], groups=groups)
    expected, found = machine.held_out_error_[0], np.mean((machine.predict(habits[~old]) - pressure[~old]) ** 2)
    print(f"{words}: {expected:.2f} of the variance expected, {found / pressure[old].var():.2f} for new patients")
