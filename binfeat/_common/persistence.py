"""Checks of a fitted estimator that is loaded from a file: its version, and that its arrays fit together."""

import functools
import re
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

_FLOATS = np.float32, np.float64


@functools.cache
def _version():
    import binfeat

    return binfeat.__version__


def _numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


class Derived:
    """What is made of an estimator's attributes when it is first needed. It is left out of files and copies."""

    def __init__(self):
        self._made = None, None

    def get(self, source, make):
        """What ``make()`` gives, made again when the source is another object than before."""
        made = self._made
        if made[0] is not source:
            made = self._made = source, make()
        return made[1]


class Persistent(BaseEstimator):
    """Base of estimators that refuse files of newer versions, and arrays that kernels cannot read safely.

    Those that derive something from their attributes have it in `_derived`.
    """

    _check_state = staticmethod(lambda state: None)
    _derived: Derived

    def __getstate__(self):
        state = {**super().__getstate__(), "_binfeat_version": _version()}
        state.pop("_derived", None)
        return state

    def __setstate__(self, state):
        state = dict(state)
        version, name = str(state.pop("_binfeat_version", 0)), type(self).__name__
        if _numbers(version) > _numbers(_version()):
            raise ValueError(f"This {name} was saved by binfeat {version}, and this is {_version()}; update binfeat.")
        try:
            self._check_state(state)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"This {name} is damaged: {type(error).__name__}: {error}") from error
        super().__setstate__(state)
        self._derived = Derived()


def _check_arrays(arrays, layout, sizes):
    """Refuse arrays of other types or shapes than the kernels expect.

    `layout` has, for each array that must be there, its type or types and what each axis counts; `sizes` has the
    lengths of the axes, to which unknown ones are added.
    """
    for name, (dtypes, *axes) in layout.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.ndim != len(axes):
            raise TypeError(f"{name} should be an array of {len(axes)} dimensions.")
        shape = tuple(sizes.setdefault(axis, n) for axis, n in zip(axes, array.shape, strict=True))
        if array.shape != shape or not array.flags.c_contiguous or array.dtype not in np.atleast_1d(dtypes):
            raise ValueError(f"{name} should be of shape {shape} in C order, got {array.dtype} and {array.shape}.")


def _check_starts(arrays, name, n_groups, n_items):
    """Refuse an array that does not hold the first item of each group, and at the end the number of items."""
    _check_arrays(arrays, {name: (np.int64, "starts")}, {"starts": n_groups + 1})
    starts = arrays[name]
    if starts[0] != 0 or starts[-1] != n_items or (np.diff(starts) < 0).any():
        raise ValueError(f"{name} should rise from 0 to {n_items}.")


_GRIDS = {
    "_scale": (np.float64, "grids", "inputs"),
    "_shift": (np.float64, "grids", "inputs"),
    "_keys": (np.uint64, "grids", "inputs"),
    "_nan_keys": (np.uint64, "grids", "inputs"),
}
_BINS = {
    "_bin_keys": (np.uint64, "bins"),
    "bin_counts_": (np.int64, "bins"),
    "_rare_keys": (np.uint64, "rare bins"),
    "_rare_counts": (np.int64, "rare bins"),
}
_WEIGHTS = {"random_weights_": (_FLOATS, "inputs", "frequencies")}
_FASTFOOD = {
    "fastfood_signs_": (_FLOATS, "blocks", "inputs"),
    "fastfood_order_": (np.int32, "blocks", "length"),
    "fastfood_normals_": (_FLOATS, "blocks", "length"),
    "fastfood_norms_": (_FLOATS, "frequencies"),
}
_COLUMNS = {"categorical": (np.bool_, "inputs"), "source": (np.int64, "inputs"), "medians": (np.float64, "columns")}
_QUANTILES = {"columns": (np.int64, "mapped"), "knots": (np.float64, "knots"), "ranks": (np.float64, "knots")}

_EXACT = {
    "nus": (np.float64, "kernels"),
    "shares": (np.float64, "kernels"),
    "gammas": (np.float64, "kernels", "inputs"),
    "categorical": (np.bool_, "inputs"),
    "support": (np.float32, "inputs", "support"),
    "center": (np.float64, "inputs"),
    "unit": (np.float64, "inputs"),
    "alpha": (np.float64,),
    "weights": (np.float64, "support"),
}
_TARGETS = {
    "_target_mean": (np.float64, "targets"),
    "_target_std": (np.float64, "targets"),
    "_target_shifts": (np.float64, "shifts", "targets"),
}
_POSTERIOR = {
    "alpha": (np.float64,),
    "coef": (np.float32, "roots", "features"),
    "intercept": (np.float64, "roots"),
}
_HELD_OUT = {"noise": (np.float64, "targets"), "scores": (np.float64, "judged", "targets")}
_TRANSFORMS = {"center": (np.float64, "targets"), "unit": (np.float64, "targets")}


def check_binning(state):
    """Refuse a `RandomBinning` whose arrays do not fit together."""
    if "_scale" not in state:
        return
    sizes = {"inputs": state["n_features_in_"]}
    _check_arrays(state, _GRIDS, sizes)
    if "bin_offsets_" not in state:  # it is sent to a worker during a fit
        return
    if not state["_hashed"]:
        _check_arrays(state, _BINS, sizes)
        _check_starts(state, "_rare_starts", sizes["grids"], sizes["rare bins"])
    last = int(state["bin_offsets_"][-1]) if state["_hashed"] else sizes["bins"]
    _check_starts(state, "bin_offsets_", sizes["grids"], last)
    if state["_hashed"] and not 1 < state["bin_offsets_"][1] < 2**32:
        raise ValueError("bin_offsets_ should give each grid at least 2 columns.")


_KEPT = {"Y": (np.float64, "rows", "targets")}
_KEPT_SUMS = {
    "matrix": (np.float64, "features", "features"),
    "right": (np.float64, "features", "targets"),
    "means": (np.float64, "features"),
    "target_means": (np.float64, "targets"),
}
_INTEGERS = np.int32, np.int64
_KEPT_CSR = {"data": (_FLOATS, "entries"), "indices": (_INTEGERS, "entries"), "indptr": (_INTEGERS, "starts")}


def check_ridge(state):
    """Refuse a ridge machine whose rows of earlier calls of `partial_fit` do not fit together."""
    kept, sizes = state.get("_kept"), {}
    if kept is None:
        return
    sizes = {"features": state["n_features_in_"], "targets": np.atleast_2d(state["coef_"]).shape[0]}
    if "matrix" in kept:
        _check_arrays(kept, _KEPT_SUMS, sizes)
        return
    _check_arrays(kept, _KEPT, sizes)
    _check_arrays(kept, {"weights": (np.float64, "rows", "one")} if "weights" in kept else {}, sizes | {"one": 1})
    if "codes" in kept:
        _check_arrays(kept, {"codes": ((np.uint16, np.uint32), "grids", "rows")}, sizes)
        _check_starts(kept, "offsets", sizes["grids"], sizes["features"])
    elif "indptr" in kept:
        _check_arrays(kept, _KEPT_CSR, sizes | {"starts": sizes["rows"] + 1})
    else:
        _check_arrays(kept, {"Z": (_FLOATS, "rows", "features")}, sizes)


def check_fourier(state):
    """Refuse a `RandomFourier` whose arrays do not fit together."""
    if "sampler_" not in state:
        return
    sizes = {"inputs": state["n_features_in_"]}
    if state["sampler_"] == "fastfood":
        _check_arrays(state, _FASTFOOD, sizes)
        order, length = state["fastfood_order_"], sizes["length"]
        if length & (length - 1) or length < sizes["inputs"] or (np.sort(order, axis=1) != np.arange(length)).any():
            raise ValueError("fastfood_order_ should hold permutations of a power of two of numbers.")
        if sizes["frequencies"] > order.size:
            raise ValueError(f"fastfood_norms_ should be at most {order.size}.")
    else:
        _check_arrays(state, _WEIGHTS, sizes)
    if "random_offset_" in state:
        _check_arrays(state, {"random_offset_": (_FLOATS, "frequencies")}, sizes)
    n_features = sizes["frequencies"] * (1 if "random_offset_" in state else 2)
    if state["_n_features_out"] != n_features:
        raise ValueError(f"_n_features_out should be {n_features}, got {state['_n_features_out']!r}.")


_MEMBERS = {"weights": (np.float64, "bins"), "rows": (np.int32, "listed"), "values": (np.float64, "rows", "values")}


def check_graph(state):
    """Refuse an estimator of graphs whose lists of the rows of bins do not fit together."""
    members, sizes = state.get("_means", {}), dict[str, int]()
    if "rows" not in members:
        return
    _check_arrays(members, _MEMBERS, sizes)
    _check_starts(members, "begins", sizes["bins"], sizes["listed"])
    if members["rows"].min() < 0 or members["rows"].max() >= sizes["rows"]:
        raise ValueError(f"rows should be numbers from 0, below {sizes['rows']}.")
    if not (members["weights"][np.diff(members["begins"]) > 0] > 0).all():
        raise ValueError("weights should be above 0 where rows are listed.")


def check_machine(state):
    """Refuse a kernel machine whose arrays do not fit together."""
    if "_exact" not in state:
        return
    sizes = {"columns": state["n_features_in_"]}
    columns, scaler = state["_columns"], state["_scaler"]
    _check_arrays(columns, _COLUMNS, sizes)
    if columns["times"].shape != (sizes["columns"],):
        raise ValueError(f"times should have {sizes['columns']} strings.")
    if sizes["inputs"] < sizes["columns"] or not np.isin(columns["source"], range(sizes["columns"])).all():
        raise ValueError("source should name columns, all of them.")
    if state["_exact"]:
        _check_arrays(state["_exact"], _EXACT, sizes)
        _check_rotation(state["_exact"].get("rotation"), sizes)
        sizes["features"] = sizes["support"]
    else:
        sizes["features"] = _check_features(state, sizes)
    _check_arrays(state, {"feature_coef_": (np.float64, "targets", "features")}, sizes)
    _check_rotation(state.get("_rotation"), sizes)
    for name, layout in (("_posterior", _POSTERIOR), ("_held_out", _HELD_OUT)):
        if state.get(name):
            _check_arrays(state[name], layout, sizes)
    if "_target_shifts" in state:
        _check_arrays(state, _TARGETS, sizes)
        if not sizes["shifts"]:
            raise ValueError("_target_shifts should have at least one row.")
        transform = state["_target_transform"]
        _check_arrays(transform, {name: _TRANSFORMS[name] for name in transform}, sizes)
    if "knots" in scaler:
        _check_arrays(scaler, _QUANTILES, sizes)
        _check_starts(scaler, "starts", sizes["mapped"], sizes["knots"])
        if (np.diff(scaler["starts"]) < 2).any() or not np.isin(scaler["columns"], range(sizes["inputs"])).all():
            raise ValueError("the scaler should have two knots for each of some inputs.")


def _check_rotation(rotation, sizes):
    """Refuse a rotation that does not suit the inputs; older files have none."""
    if rotation is not None and rotation.size:
        _check_arrays({"rotation": rotation}, {"rotation": (np.float64, "inputs", "rank")}, dict(sizes))


def _check_features(state, sizes):
    """The number of bins and Fourier features of a machine, whose arrays fit together."""
    _check_arrays(state, {**_GRIDS, "_bin_keys": (np.uint64, "bins")}, sizes)
    _check_starts(state, "_bin_starts", sizes["grids"], sizes["bins"])
    n_frequencies = state["_frequencies"].shape[1]
    if n_frequencies:
        _check_arrays(state, {"_frequencies": (np.float64, "inputs", "frequencies")}, sizes)
    return sizes["bins"] + 2 * n_frequencies


class ArrayRecord:
    """Base of a dataclass of arrays that is kept by their names."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def arrays(self):
        """All that was learned, as arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays):
        """The same object again from its `arrays()`."""
        return cls(**arrays)
