"""Checks of a `RandomFourier` that is loaded from a file."""

from typing import Any

import numpy as np

from binfeat._common.saved_values import (
    FLOATS,
    LARGEST_SCALE,
    check_arrays,
    check_bounds,
    check_inputs,
    check_numbers_of,
    check_word,
)

_WEIGHTS = {"random_weights_": (FLOATS, "inputs", "frequencies")}
FASTFOOD = {
    "fastfood_signs_": (FLOATS, "blocks", "inputs"),
    "fastfood_order_": (np.int32, "blocks", "length"),
    "fastfood_normals_": (FLOATS, "blocks", "length"),
    "fastfood_norms_": (FLOATS, "frequencies"),
}
_SAMPLERS = "fastfood", "iid", "orthogonal", "qmc"


def check_fourier(state: dict[str, Any]) -> None:
    sizes = {"inputs": check_inputs(state)}
    check_arrays(state, {"gamma_": (np.float64, "inputs")}, sizes, most=LARGEST_SCALE)
    check_bounds(state, "gamma_", least=0.0)
    if check_word(state, "sampler_", _SAMPLERS) == "fastfood":
        _check_fastfood(state, sizes)
    else:
        check_arrays(state, _WEIGHTS, sizes, most=LARGEST_SCALE)
    if "random_offset_" in state:
        check_arrays(state, {"random_offset_": (FLOATS, "frequencies")}, sizes)
    n_features = sizes["frequencies"] * (1 if "random_offset_" in state else 2)
    check_numbers_of(state, _n_features_out=int)
    if state["_n_features_out"] != n_features or not n_features:
        raise ValueError(f"_n_features_out should be {n_features}, above 0, got {state['_n_features_out']!r}.")


def check_edited(state: dict[str, Any]) -> None:
    """Raise ValueError for frequencies and offsets, which users may edit, that do not match the inputs."""
    n_inputs, offset = state["n_features_in_"], state.get("random_offset_")
    if state["sampler_"] == "fastfood":
        _check_fastfood(state, {"inputs": n_inputs})
        n_frequencies = state["fastfood_norms_"].size
    else:
        shape = np.shape(state["random_weights_"])
        if len(shape) != 2 or shape[0] != n_inputs:
            raise ValueError(f"random_weights_ should have shape ({n_inputs}, n_frequencies), got {shape}.")
        n_frequencies = shape[1]
    if offset is not None and np.shape(offset) != (n_frequencies,):
        raise ValueError(f"random_offset_ should have shape ({n_frequencies},), got {np.shape(offset)}.")


def _check_fastfood(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Raise ValueError for inconsistent arrays of fastfood."""
    check_arrays(state, FASTFOOD, sizes, most=LARGEST_SCALE)
    order, length = state["fastfood_order_"], sizes["length"]
    if length & (length - 1) or length < sizes["inputs"] or (np.sort(order, axis=1) != np.arange(length)).any():
        raise ValueError(
            "Each row of fastfood_order_ should be a permutation of 0, ..., length - 1, where the length is a power of "
            "two and at least the number of inputs."
        )
    if sizes["frequencies"] > order.size:
        raise ValueError(f"fastfood_norms_ should have at most {order.size} elements, got {sizes['frequencies']}.")
    types = {state[name].dtype for name in FASTFOOD if name != "fastfood_order_"}
    if len(types) > 1:
        raise ValueError(f"arrays of fastfood should have one type of floats, got {sorted(map(str, types))}.")
