"""
Time series and grouped rows
============================

This page is for readers whose rows are not independent: days of a time series, or visits of one patient. A random
validation set then contains rows similar to training rows, and the validation error is too low. Pass ``cv`` to validate
on the most recent rows, or ``groups`` to keep related rows in the same split.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from binfeat import KernelMachineRegressor

# %%
# Sales of a shop
# ---------------
# The table is synthetic: four years of days with a trend, a weekly and a yearly pattern, an effect of warm days, and an
# autocorrelated disturbance. The task is to predict each day of the last year from the data of the days before, and
# from the weather of the day.

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
# Earlier sales are added as columns. A kernel model predicts the mean far from all training rows, so it cannot
# extrapolate a trend. In the third table below, today's and yesterday's sales are therefore differences from the mean
# of the previous week.

table["yesterday"], table["a week ago"] = table["sales"].shift(1), table["sales"].shift(7)
table["level"] = table["sales"].shift(1).rolling(7).mean()
table["yesterday's rise"] = table["yesterday"] - table["level"]
known, later = table[7:-365], table[-365:]
last_year = np.arange(len(known)) >= len(known) - 365
by_date = [(np.flatnonzero(~last_year), np.flatnonzero(last_year))]

tables = {
    "day and weather": (["day", "warmth"], 0.0),
    "and earlier sales": (["day", "warmth", "yesterday", "a week ago"], 0.0),
    "differences": (["weekday", "warmth", "yesterday's rise"], table["level"]),
}
print("RMSE                   leave-one-out   validation on the last known year   next year")
for name, (columns, level) in tables.items():
    target = table["sales"] - level
    estimates = []
    for cv in (None, by_date):
        model = KernelMachineRegressor(cv=cv, random_state=0).fit(known[columns], target[known.index])
        estimates.append(np.sqrt(model.held_out_error_[0]) * target[known.index].std())
    error = np.sqrt(np.mean((model.predict(later[columns]) - target[later.index]) ** 2))
    print(f"{name:20} {estimates[0]:15.1f} {estimates[1]:35.1f} {error:11.1f}")

# %%
# The leave-one-out error is misleading here: a day is predicted from the days before and after it. Validation on the
# last known year shows that only the third table is useful. Pass the row numbers yourself, as above. Of
# ``TimeSeriesSplit`` only the first split would be used, which validates on *old* days. Once you have chosen the
# columns, fit without ``cv``, so that hyperparameters are selected on all rows.

columns, level = tables["differences"]
final = KernelMachineRegressor(random_state=0).fit(known[columns], (table["sales"] - level)[known.index])
low, high = (final.predict_interval(later[columns]) + level[later.index].to_numpy()[:, None]).T
error = final.predict(later[columns]) + later["level"] - later["sales"]
print(f"RMSE in the last year: {np.sqrt(np.mean(error**2)):.1f}")
print(f"days within their 90 % interval: {np.mean((low < later['sales']) & (later['sales'] < high)):.0%}")
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
shown = slice(0, 63)
ax.vlines(later["day"][shown], low[shown], high[shown], color="C0", alpha=0.4, linewidth=5, label="90 % interval")
ax.plot(later["day"][shown], later["sales"][shown], "k.", markersize=4, label="sales")
ax.legend(frameon=False, ncols=2)

# %%
# Groups
# ------
# ``groups`` contains the group of each row, and a group is never split. With ``cv`` or ``groups`` and more than 1,500
# rows, the model uses random features, or is a local model if ``kernel="rbf"``. In this example each of 200 patients
# has five visits, and a mean blood pressure that no column explains.

patients = np.repeat(np.arange(200), 5)
habits = rng.normal(size=(200, 2))[patients] + 0.02 * rng.normal(size=(1000, 2))
pressure = habits[:, 0] + rng.normal(size=200)[patients] + 0.2 * rng.normal(size=1000)
old = patients < 150
for name, groups in (("without groups", None), ("with groups", patients[old])):
    model = KernelMachineRegressor(random_state=0).fit(habits[old], pressure[old], groups=groups)
    expected, error = model.held_out_error_[0], np.mean((model.predict(habits[~old]) - pressure[~old]) ** 2)
    print(
        f"{name}: validation error {expected:.2f} of the variance, {error / pressure[old].var():.2f} for new patients"
    )
