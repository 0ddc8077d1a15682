"""Checks of a `RandomFourier` that is loaded from a file."""

import numpy as np

from binfeat._common.persistence import FLOATS, check_arrays

_WEIGHTS = {"random_weights_": (FLOATS, "inputs", "frequencies")}
FASTFOOD = {
    "fastfood_signs_": (FLOATS, "blocks", "inputs"),
    "fastfood_order_": (np.int32, "blocks", "length"),
    "fastfood_normals_": (FLOATS, "blocks", "length"),
    "fastfood_norms_": (FLOATS, "frequencies"),
}


def check_fourier(state):
    """Refuse a `RandomFourier` whose arrays do not fit together."""
    if "sampler_" not in state:
        return
    sizes = {"inputs": state["n_features_in_"]}
    if state["sampler_"] == "fastfood":
        check_arrays(state, FASTFOOD, sizes)
        order, length = state["fastfood_order_"], sizes["length"]
        if length & (length - 1) or length < sizes["inputs"] or (np.sort(order, axis=1) != np.arange(length)).any():
            raise ValueError("fastfood_order_ should hold permutations of a power of two of numbers.")
        if sizes["frequencies"] > order.size:
            raise ValueError(f"fastfood_norms_ should be at most {order.size}.")
    else:
        check_arrays(state, _WEIGHTS, sizes)
    if "random_offset_" in state:
        check_arrays(state, {"random_offset_": (FLOATS, "frequencies")}, sizes)
    n_features = sizes["frequencies"] * (1 if "random_offset_" in state else 2)
    if state["_n_features_out"] != n_features:
        raise ValueError(f"_n_features_out should be {n_features}, got {state['_n_features_out']!r}.")
