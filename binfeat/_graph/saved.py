"""Checks of an estimator of graphs that is loaded from a file."""

import numpy as np

from binfeat._common.persistence import check_arrays, check_starts

_MEMBERS = {"weights": (np.float64, "bins"), "rows": (np.int32, "listed"), "values": (np.float64, "rows", "values")}


def check_graph(state):
    """Refuse an estimator of graphs whose lists of the rows of bins do not fit together."""
    members, sizes = state.get("_means", {}), dict[str, int]()
    if "rows" not in members:
        return
    check_arrays(members, _MEMBERS, sizes)
    check_starts(members, "begins", sizes["bins"], sizes["listed"])
    if members["rows"].min() < 0 or members["rows"].max() >= sizes["rows"]:
        raise ValueError(f"rows should be numbers from 0, below {sizes['rows']}.")
    if not (members["weights"][np.diff(members["begins"]) > 0] > 0).all():
        raise ValueError("weights should be above 0 where rows are listed.")
