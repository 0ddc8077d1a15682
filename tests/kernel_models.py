"""Shared code of tests of kernel models."""

import numpy as np

# All hyperparameters are given, so a fit takes milliseconds.
FIXED = {
    "features": "binning",
    "kernel": "laplacian",
    "gamma": 0.5,
    "alpha": 0.1,
    "solver_params": {"n_grids": 20},
    "random_state": 0,
}
# Grids are added.
GROWING = {"gamma": "scale", "features": "binning", "solver_params": {"max_grids": 160}, "random_state": 0}
# Length scales are learned, with bins only.
BINS = {"features": "binning", "random_state": 0}


def state(model):
    """Return all fitted attributes except times."""
    kept = {k: v for k, v in vars(model).items() if (k.endswith("_") or k.startswith("_")) and k != "decisions_"}
    for name in ("_skl_callbacks", "_derived"):
        kept.pop(name, None)
    return {**kept, "decisions": model.decisions_[["what", "choice", "error"]].tolist()}


def assert_same_state(one, other):
    one, other = state(one), state(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_equal(other[name], value, err_msg=name)


def decisions(model):
    """Return the decisions of the fit."""
    return model.decisions_[["what", "choice"]].tolist()


def moments(y, weights=None):
    """Return the weighted mean and standard deviation of targets."""
    mean = np.average(y, weights=weights)
    return mean, np.sqrt(np.average((y - mean) ** 2, weights=weights))


def with_options(given, **options):
    """Parameters of a kernel model with other `solver_params`; None leaves an option to the model."""
    both = {**given.get("solver_params", {}), **options}
    return {**given, "solver_params": {name: value for name, value in both.items() if value is not None}}
