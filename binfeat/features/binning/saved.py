"""Checks of a `RandomBinning` that is loaded from a file, and of its public attributes before they are used."""

from collections.abc import Container
from typing import Any

import numpy as np

from binfeat._common.saved_values import (
    LARGEST_SCALE,
    check_arrays,
    check_bounds,
    check_inputs,
    check_numbers_of,
    check_starts,
)
from binfeat.features.binning.hashed_columns import hashed_offsets

GRIDS = {
    "_scale": (np.float64, "grids", "inputs"),
    "_shift": (np.float64, "grids", "inputs"),
    "_keys": (np.uint64, "grids", "inputs"),
    "_nan_keys": (np.uint64, "grids", "inputs"),
}
_OF_INPUTS = {"gamma_": (np.float64, "inputs"), "_categorical": (np.bool_, "inputs")}
_BINS = {
    "_bin_keys": (np.uint64, "bins"),
    "bin_counts_": (np.int64, "bins"),
    "_rare_keys": (np.uint64, "rare bins"),
    "_rare_counts": (np.int64, "rare bins"),
}


def check_binning(state: dict[str, Any]) -> None:
    sizes = {"inputs": check_inputs(state)}
    check_grids(state, sizes)
    check_scales(state, sizes)
    check_numbers_of(state, _hashed=bool)
    if not state["_hashed"]:
        check_arrays(state, _BINS, sizes)
        check_bounds(state, "bin_counts_", "_rare_counts", least=0, most=2**53)
        check_starts(state, "_rare_starts", sizes["grids"], sizes["rare bins"])
        check_numbers_of(state, n_bins_=int, kappa_=float)
        if state["n_bins_"] != sizes["bins"]:
            raise ValueError(f"n_bins_ should be {sizes['bins']}, got {state['n_bins_']}.")
    check_offsets(state)


def check_grids(state: dict[str, Any], sizes: dict[str, int], fewest: int = 1, infinite: Container[str] = ()) -> None:
    check_arrays(state, GRIDS, sizes, infinite=infinite, most=LARGEST_SCALE)
    check_bounds(state, "_scale", least=0.0)
    check_bounds(state, "_shift", least=0.0, most=1.0)
    if sizes["grids"] < fewest:
        raise ValueError(f"there should be at least {fewest} grids, got {sizes['grids']}.")


def check_scales(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Check the inverse length scales of the inputs, and the mask of categorical inputs."""
    check_arrays(state, _OF_INPUTS, sizes, most=LARGEST_SCALE)
    check_bounds(state, "gamma_", least=0.0)


def check_offsets(state: dict[str, Any]) -> None:
    """Raise ValueError if `bin_offsets_`, which users may edit, is not the first column of each grid."""
    n_grids, offsets = len(state["_scale"]), state["bin_offsets_"]
    if not state["_hashed"]:
        check_starts(state, "bin_offsets_", n_grids, state["_bin_keys"].size)
        return
    check_starts(state, "bin_offsets_", n_grids, int(np.max(offsets, initial=0)))
    n_features = int(offsets[-1])
    is_hashed = n_features // n_grids >= 2 and np.array_equal(offsets, hashed_offsets(n_features, n_grids))
    if not is_hashed or offsets[-1] - offsets[-2] >= 2**32:
        raise ValueError(
            "bin_offsets_ should give each grid at least 2 columns, the same number for all grids except the last."
        )
