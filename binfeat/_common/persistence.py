"""Checks of a fitted estimator that is loaded from a file: its version, and that its arrays fit together."""

import functools
import re
from inspect import signature

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.derived import Derived

FLOATS = np.float32, np.float64
_FORMAT = 4  # number of the format of files; the first format had no number


@functools.cache
def _version():
    import binfeat

    return binfeat.__version__


def _order(version):
    """What versions are compared by: three numbers, and that a development build comes before its release.

    ValueError if it is no version.
    """
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?([^+]*)", version)
    if found is None:
        raise ValueError(f"{version!r} is no version")
    return *(int(number or 0) for number in found.groups()[:3]), ".dev" not in found[4]


class Persistent(BaseEstimator):
    """Base of estimators that refuse newer files, and arrays that kernels cannot read safely.

    A subclass that derives something from its attributes keeps it in `_derived`. A subclass whose attributes have
    changed since an older format has ``_migrate(state, file_format)``, which brings the state of such a file up to date
    in place; it is called before `_check_state`.
    """

    _check_state = staticmethod(lambda state: None)
    _migrate = staticmethod(lambda state, file_format: None)
    _derived: Derived

    def __getstate__(self):
        state = {**super().__getstate__(), "_binfeat_version": _version(), "_binfeat_format": _FORMAT}
        state.pop("_derived", None)
        return state

    def __setstate__(self, state):
        state, name = dict(state), type(self).__name__
        version, file_format = str(state.pop("_binfeat_version", "")), state.pop("_binfeat_format", 1)
        _refuse_newer(name, version, file_format)
        try:
            if file_format < _FORMAT:
                for parameter in signature(type(self)).parameters.values():
                    state.setdefault(parameter.name, parameter.default)  # which an older version did not have
                self._migrate(state, file_format)
            self._check_state(state)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"This {name} is damaged: {type(error).__name__}: {error}") from error
        super().__setstate__(state)
        self._derived = Derived()


def _refuse_newer(name, version, file_format):
    """Refuse a file of a newer version, or of a newer format, which builds of one version may differ in."""
    try:
        is_newer = _order(version) > _order(_version())
    except ValueError:
        raise ValueError(f"This {name} is damaged: it should name the version of binfeat that saved it.") from None
    if is_newer:
        raise ValueError(f"This {name} was saved by binfeat {version}, and this is {_version()}; update binfeat.")
    if not isinstance(file_format, int):
        raise ValueError(f"This {name} is damaged: its file format should be a number, got {file_format!r}.")
    if file_format > _FORMAT:
        raise ValueError(
            f"This {name} was saved in file format {file_format}, and this is binfeat {_version()}, which reads "
            f"formats up to {_FORMAT}; update binfeat."
        )


def check_arrays(arrays, layout, sizes, order="C"):
    """Refuse arrays of other types, shapes or memory orders ("C" or "C or Fortran") than the kernels expect.

    `layout` has, for each array that must be there, its type or types and what each axis counts. `sizes` has the
    lengths of axes by what they count; the lengths of axes that it lacks are added to it.
    """
    for name, (dtypes, *axes) in layout.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.ndim != len(axes):
            raise TypeError(f"{name} should be an array of {len(axes)} dimensions.")
        shape = tuple(sizes.setdefault(axis, n) for axis, n in zip(axes, array.shape, strict=True))
        in_order = array.flags.c_contiguous or (order != "C" and array.flags.f_contiguous)
        if array.shape != shape or not in_order or array.dtype not in np.atleast_1d(dtypes):
            raise ValueError(
                f"{name} should be of shape {shape} in {order} order, got {array.dtype} and {array.shape}."
            )


def check_starts(arrays, name, n_groups, n_items):
    """Refuse an array that does not hold the first item of each group, and at the end the number of items."""
    check_arrays(arrays, {name: (np.int64, "starts")}, {"starts": n_groups + 1})
    starts = arrays[name]
    if starts[0] != 0 or starts[-1] != n_items or (np.diff(starts) < 0).any():
        raise ValueError(f"{name} should rise from 0 to {n_items}.")
