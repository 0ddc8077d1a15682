"""Shared code of tests of estimators on graphs of rows."""

import copy
import pickle

import numpy as np


def assert_simple_attributes(made, X, method):
    """Attributes except the map are arrays, numbers and strings, and copies of the estimator have the same results."""
    fitted = {k: v for k, v in vars(made).items() if k not in made.get_params() and not k.startswith("_sk")}
    fitted.pop("features_")
    fitted.update(fitted.pop("_means"))
    assert all(isinstance(v, np.ndarray | np.number | int | float | str) for v in fitted.values())
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        np.testing.assert_array_equal(getattr(other, method)(X), getattr(made, method)(X))
