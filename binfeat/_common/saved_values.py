"""Checks of saved models: they may contain only consistent plain arrays, numbers and strings."""

from collections.abc import Container, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

State: TypeAlias = dict[str, Any]  # attributes of an estimator by name

FLOATS = np.float32, np.float64
INTEGERS = np.int32, np.int64
LARGEST = 1e100  # magnitude of finite numbers: products of three of them are finite
LARGEST_SCALE = float(np.finfo(np.float64).max)  # of inverse length scales: inputs can have any unit
_POSITIONS = {"pos": 624, "buffer_pos": 4}  # maximum positions in the buffers of NumPy's generators
_SCALARS = str, bytes, int, float, bool, type(None), np.generic


def is_plain(array: object) -> bool:
    """Return True for plain arrays in memory or files; `min` and `max` of other subclasses may skip entries."""
    return type(array) in (np.ndarray, np.memmap)


def check_arrays(
    arrays: Mapping[str, Any],
    layout: Mapping[str, tuple],
    sizes: dict[str, int],
    order: str = "C",
    infinite: Container[str] = (),
    most: float = LARGEST,
) -> None:
    """Raise TypeError or ValueError for arrays with unexpected dtype, shape or memory order.

    `order` is "C", "C or Fortran" or "any". `layout` contains, for each required array, its dtypes and the names of its
    axes. `sizes` contains the lengths of axes by name; missing lengths are added to it. The magnitude of numbers must
    be at most `most`, except that arrays named in `infinite` may contain NaN and infinity.
    """
    for name, (dtypes, *axes) in layout.items():
        array = arrays[name]
        if not is_plain(array) or array.ndim != len(axes):
            raise TypeError(f"{name} should be an array of {len(axes)} dimensions.")
        shape = tuple(sizes.setdefault(axis, n) for axis, n in zip(axes, array.shape, strict=True))
        is_known = array.dtype.kind == "U" if dtypes is str else array.dtype in np.atleast_1d(dtypes)
        if array.shape != shape or not is_known or not _is_in_order(array, order):
            raise ValueError(
                f"{name} should be of shape {shape} in {order} order, got {array.dtype} and {array.shape}."
            )
        if array.dtype.kind == "f" and array.size:
            largest = max(abs(float(array.min())), abs(float(array.max())))
            if name in infinite:
                largest = float(np.abs(array).max(initial=0.0, where=np.isfinite(array)))
            if not largest <= most:
                raise ValueError(f"{name} should hold finite numbers, got {largest}.")


def _is_in_order(array: np.ndarray, order: str) -> bool:
    return order == "any" or array.flags.c_contiguous or (order != "C" and array.flags.f_contiguous)


def check_starts(arrays: Mapping[str, Any], name: str, n_groups: int, n_items: int) -> None:
    """Raise ValueError unless an array contains the first item of each group, followed by the number of items."""
    check_arrays(arrays, {name: (np.int64, "starts")}, {"starts": n_groups + 1})
    starts = arrays[name]
    if starts[0] != 0 or starts[-1] != n_items or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"{name} should increase from 0 to {n_items}.")


def check_bounds(
    arrays: Mapping[str, Any], *names: str, least: float = -np.inf, most: float = np.inf, above: float = -np.inf
) -> None:
    """Raise ValueError for arrays with NaN or numbers outside `least` to `most`, or not above `above`."""
    for name in names:
        array = arrays[name]
        if array.size and not (array.min() >= least and array.max() <= most and array.min() > above):
            bound = f"above {above}" if above > -np.inf else f"from {least} to {most}"
            raise ValueError(f"{name} should be {bound}, got {array.min()} to {array.max()}.")


def check_increasing(values: np.ndarray, starts: np.ndarray, name: str) -> None:
    """Raise ValueError unless values increase within groups, which begin at `starts`."""
    falls = np.flatnonzero(~(values[1:] > values[:-1])) + 1
    if not np.isin(falls, starts).all():
        raise ValueError(f"{name} should increase.")


def check_numbers_of(state: dict, **kinds: type) -> None:
    """Raise TypeError for attributes of the wrong type; `int` and `float` must be finite and non-negative."""
    for name, kind in kinds.items():
        value = state[name]
        if kind is bool:
            fits = isinstance(value, bool | np.bool_)
        elif kind is str:
            fits = type(value) is str
        else:
            is_number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool | np.bool_)
            fits = is_number and 0 <= value <= (2**62 if kind is int else LARGEST)
        if not fits:
            raise TypeError(f"{name} should be a value of type {kind.__name__} in its range, got {value!r}.")


def check_word(state: dict, name: str, words: Iterable[str]) -> str:
    """Return a string attribute after checking that it is one of `words`."""
    words = list(words)
    if type(state[name]) is not str or state[name] not in words:
        raise ValueError(f"{name} should be one of {words}, got {state[name]!r}.")
    return state[name]


def check_keys(record: object, names: Iterable[str], optional: Iterable[str], what: str) -> None:
    """Raise TypeError unless a record is a dict, and ValueError unless it has these names."""
    if type(record) is not dict:
        raise TypeError(f"{what} should be a dict, got {type(record).__name__}.")
    missing, foreign = set(names) - set(record), set(record) - set(names) - set(optional)
    if missing or foreign:
        raise ValueError(f"{what} lacks {sorted(missing)}, and has the unknown keys {sorted(map(str, foreign))}.")


def check_inputs(state: dict) -> int:
    """Return the number of inputs of a fitted estimator, and check the number of names, if any."""
    check_numbers_of(state, n_features_in_=int)
    n_inputs = state["n_features_in_"]
    if n_inputs < 1:
        raise ValueError("n_features_in_ should be at least 1, got 0.")
    if "feature_names_in_" in state:
        names = state["feature_names_in_"]
        is_listed = is_plain(names) and names.dtype.kind in "OU" and names.shape == (n_inputs,)
        if not is_listed or not all(isinstance(name, str) for name in names.tolist()):
            raise ValueError(f"feature_names_in_ should be {n_inputs} strings.")
    return n_inputs


def check_classes(classes: Any, fewest: int = 2) -> int:
    """Return the number of classes, which must be a sorted one-dimensional array."""
    if not is_plain(classes) or classes.ndim != 1 or classes.dtype.kind not in "biufUSO" or len(classes) < fewest:
        raise ValueError(f"classes_ should be an array of at least {fewest} labels.")
    if not all(bool(first < second) for first, second in zip(classes.tolist(), classes.tolist()[1:])):
        raise ValueError("classes_ should be sorted labels.")
    return len(classes)


def refuse_foreign(value: Any) -> None:
    """Raise TypeError or ValueError for unsafe values anywhere in a state.

    Unsafe are sparse matrices, because readers do not check indices; masked arrays and other subclasses; object arrays
    except labels and names; random generators with a position outside of their buffer; compiled objects of
    scikit-learn.
    """
    _Walk().visit(value, "")


class _Walk:
    def __init__(self) -> None:
        self._seen: set[int] = set()

    def visit(self, value: Any, where: str) -> None:
        if id(value) in self._seen or isinstance(value, _SCALARS):
            return
        self._seen.add(id(value))
        if isinstance(value, np.ndarray):
            self._check_array(value, where)
        elif sparse.issparse(value):
            raise TypeError(f"{where} should not be a sparse matrix.")
        elif isinstance(value, np.random.RandomState | np.random.Generator | np.random.BitGenerator):
            self._check_generator(value, where)
        elif isinstance(value, dict):
            for name, own in value.items():
                self.visit(own, f"{where}.{name}" if where else str(name))
        elif isinstance(value, list | tuple | set):
            for own in value:
                self.visit(own, where)
        elif isinstance(value, BaseEstimator) or type(value).__module__.startswith("sklearn."):
            self._check_object(value, where)

    def _check_array(self, array: np.ndarray, where: str) -> None:
        if not is_plain(array):
            raise TypeError(f"{where} should be a plain array, got {type(array).__name__}.")
        if array.dtype.hasobject and not all(isinstance(own, _SCALARS) for own in array.ravel().tolist()):
            raise TypeError(f"{where} should be an array of numbers or strings.")

    def _check_generator(self, generator: Any, where: str) -> None:
        if isinstance(generator, np.random.RandomState):
            state = generator.get_state(legacy=False)
        else:
            state = getattr(generator, "bit_generator", generator).state
        places = {**state, **(state["state"] if isinstance(state["state"], dict) else {})}
        for name, last in _POSITIONS.items():
            if not 0 <= places.get(name, 0) <= last:
                raise ValueError(f"{where} is a random generator with {name}={places[name]}, at most {last} are valid.")

    def _check_object(self, value: Any, where: str) -> None:
        if type(value).__module__.startswith("sklearn.") and not hasattr(value, "__dict__"):
            raise TypeError(f"{where} should not hold a {type(value).__name__}.")
        for name, own in vars(value).items():
            self.visit(own, f"{where}.{name}")
