"""Checks of estimators of graphs that are loaded from files."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.saved_values import (
    LARGEST_SCALE,
    check_arrays,
    check_bounds,
    check_classes,
    check_inputs,
    check_keys,
    check_numbers_of,
    check_starts,
    is_plain,
)
from binfeat._common.validation import is_word

_MEMBERS = {"weights": (np.float64, "bins"), "rows": (np.int32, "listed"), "values": (np.float64, "rows", "values")}
_COLUMNS = {"columns": (np.float64, "columns", "values with a weight")}


def check_embedding(state: dict[str, Any]) -> None:
    sizes = _check_spectral(state)
    check_arrays(state, {"embedding_": (np.float64, "rows", "values")}, sizes, order="any")


def check_clusters(state: dict[str, Any]) -> None:
    sizes = _check_spectral(state)
    sizes["coordinates"] = sizes["values"] + 1
    check_arrays(state, {"cluster_centers_": (np.float64, "clusters", "coordinates")}, sizes, order="any")
    check_arrays(state, {"labels_": (np.int32, "rows")}, sizes)
    check_bounds(state, "labels_", least=0, most=sizes["clusters"] - 1)


def check_spread_labels(state: dict[str, Any]) -> None:
    sizes = _check_graph(state)
    if sizes["values"] != check_classes(state["classes_"]):
        raise ValueError(f"classes_ should be {sizes['values']} labels, got {len(state['classes_'])}.")
    layout = {"label_distributions_": (np.float64, "rows with copies", "values"), "_prior": (np.float64, "values")}
    check_arrays(state, layout, sizes, order="any")
    check_bounds(state, "label_distributions_", least=0.0)
    check_bounds(state, "_prior", least=0.0)
    if not state["_prior"].sum() > 0:
        raise ValueError("_prior should have a positive sum.")
    labels = state["transduction_"]
    if not is_plain(labels) or labels.shape != (sizes["rows with copies"],) or labels.dtype != state["classes_"].dtype:
        raise ValueError(f"transduction_ should be {sizes['rows with copies']} labels.")


def _check_spectral(state: dict[str, Any]) -> dict[str, int]:
    sizes = _check_graph(state)
    check_arrays(state, {"eigenvalues_": (np.float64, "found")}, sizes, order="any")
    if "eigengaps_" in state:
        check_arrays(state, {"eigengaps_": (np.float64, "gammas")}, sizes)
    return sizes


def _check_graph(state: dict[str, Any]) -> dict[str, int]:
    """Check the map and the means; return lengths of axes by name."""
    sizes = {"inputs": check_inputs(state)}
    check_numbers_of(state, n_iter_=int)
    if "gamma_" in state:
        check_arrays(state, {"gamma_": (np.float64, "inputs")}, sizes, most=LARGEST_SCALE)
    if "_typical" in state:
        check_arrays(state, {"_typical": (np.float64, "inputs")}, sizes)
    made, means = state["features_"], state["_means"]
    n_inputs = getattr(made, "n_features_in_", sizes["inputs"])  # a pipeline may not know it
    if not isinstance(made, BaseEstimator) or n_inputs != sizes["inputs"]:
        raise ValueError(f"features_ should be a map of {sizes['inputs']} inputs.")
    if type(means) is dict and "columns" in means:
        check_keys(means, _COLUMNS, (), "_means")
        check_arrays(means, _COLUMNS, sizes, order="any")
        sizes["values"] = sizes["values with a weight"] - 1
    else:
        check_keys(means, (*_MEMBERS, "begins"), (), "_means")
        check_arrays(means, _MEMBERS, sizes)
        check_starts(means, "begins", sizes["bins"], sizes["listed"])
        check_bounds(means, "rows", least=0, most=sizes["rows"] - 1)
        check_bounds(means, "weights", least=0.0)
        if not (means["weights"][np.diff(means["begins"]) > 0] > 0).all():
            raise ValueError("weights should be above 0 where rows are listed.")
        if not is_word(getattr(made, "output", "codes"), "codes"):
            raise ValueError("features_ should have the output 'codes'.")
        sizes["columns"] = sizes["bins"]
    offsets = vars(made).get("bin_offsets_")
    n_features = len(made.get_feature_names_out()) if offsets is None else offsets[-1]
    if n_features != sizes["columns"]:
        raise ValueError(f"features_ should have {sizes['columns']} features, got {n_features}.")
    return sizes
