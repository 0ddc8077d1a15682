"""Base of estimators that are loaded from files: versions, parameters, and checks of fitted attributes."""

import functools
import re
from collections.abc import Iterable
from importlib import metadata
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator

from binfeat._common.derived import Derived
from binfeat._common.saved_values import refuse_foreign

_FORMAT = 6  # number of the format of files; the first format had no number


@functools.cache
def _version() -> str:
    return metadata.version("binfeat")


def _order(version: str) -> tuple[int, ...]:
    """Return a sort key of a version: three numbers, and development builds before their release.

    ValueError if the text is not a version number.
    """
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?([^+]*)", version)
    if found is None:
        raise ValueError(f"{version!r} is not a version number")
    return *(int(number or 0) for number in found.groups()[:3]), ".dev" not in found[4]


class Unfinished:
    """Marks, as an attribute `_unfinished`, an estimator on its way to a worker in the middle of a fit.

    Such an estimator lacks attributes, so that its state is not checked. Files of skops cannot contain the mark,
    because its type is not trusted.
    """


class Persistent(BaseEstimator):
    """Base of estimators that refuse files of newer versions, and attributes that are unsafe to read.

    A subclass stores values derived from its attributes in `_derived`. ``_check_state(state)`` refuses the
    state of a fitted estimator with missing or inconsistent attributes. If attributes have changed since an older
    format, the subclass implements ``_migrate(state, file_format)``, which updates the state of an older
    file in place; it is called before `_check_state`.
    """

    _check_state = staticmethod(lambda state: None)
    _migrate = staticmethod(lambda state, file_format: None)
    _derived: Derived

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__(), "_binfeat_version": _version(), "_binfeat_format": _FORMAT}
        state.pop("_derived", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state, name = dict(state), type(self).__name__
        version, file_format = state.pop("_binfeat_version", ""), state.pop("_binfeat_format", 1)
        _refuse_newer(name, version, file_format)
        parameters = signature(type(self)).parameters
        try:
            if file_format < _FORMAT and parameters.keys() & state.keys():
                for parameter in parameters.values():
                    state.setdefault(parameter.name, parameter.default)  # missing in an older version
                self._migrate(state, file_format)
            if not isinstance(state.get("_unfinished"), Unfinished):
                refuse_foreign(state)
                self._check_content(state, parameters)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"This {name} is damaged: {type(error).__name__}: {error}") from error
        super().__setstate__(state)
        self._derived = Derived()

    def _check_content(self, state: dict[str, Any], parameters: Iterable[str]) -> None:
        missing = sorted(set(parameters) - set(state))
        if missing:
            raise ValueError(f"it lacks the parameters {missing}.")
        if "_kept" in state or any(name.endswith("_") and not name.startswith("_") for name in state):
            self._check_state(state)


def _refuse_newer(name: str, version: Any, file_format: Any) -> None:
    """Raise ValueError for files of a newer version or format; builds of one version may differ in the format."""
    try:
        is_newer = _order(version) > _order(_version())
    except (TypeError, ValueError):
        raise ValueError(f"This {name} is damaged: it should name the version of binfeat that saved it.") from None
    if is_newer:
        raise ValueError(f"This {name} was saved by binfeat {version}, and this is {_version()}; update binfeat.")
    if type(file_format) is not int or file_format < 1:
        raise ValueError(f"This {name} is damaged: its file format should be a number from 1, got {file_format!r}.")
    if file_format > _FORMAT:
        raise ValueError(
            f"This {name} was saved in file format {file_format}, and this is binfeat {_version()}, which reads "
            f"formats up to {_FORMAT}; update binfeat."
        )
