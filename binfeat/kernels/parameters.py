"""Parameters of kernel objects inside estimators: ``kernel__shape`` in searches and `set_params`."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from binfeat.kernels.base import Kernel


class WithKernel(BaseEstimator):
    """Base of estimators with a parameter `kernel`; parameters of the kernel are ``kernel__name``.

    Kernels are immutable, so setting a parameter creates a new kernel.
    """

    kernel: object

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator and, if `deep`, of a kernel object as ``kernel__name``.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        params : dict
        """
        return super().get_params(deep=deep) | (_nested(self.kernel, "kernel") if deep else {})

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, then those of its kernel object, as ``kernel__name``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : estimator
        """
        own = {name: value for name, value in params.items() if not name.startswith("kernel__")}
        super().set_params(**own)
        for name in sorted(params.keys() - own.keys(), key=len):  # outer kernels first
            self.kernel = _replaced(self.kernel, name.split("__")[1:], params[name])
        return self


def _names(kernel: object) -> list[str]:
    return [field.name for field in fields(kernel)] if isinstance(kernel, Kernel) and is_dataclass(kernel) else []


def _nested(kernel: object, prefix: str) -> dict[str, Any]:
    """Return the parameters of a kernel, and of kernels inside it, by their long names."""
    found: dict[str, Any] = {}
    for name in _names(kernel):
        value, long_name = getattr(kernel, name), f"{prefix}__{name}"
        found |= {long_name: value} | _nested(value, long_name)
    return found


def _replaced(kernel: Any, path: Sequence[str], value: object) -> Any:
    """Return the kernel with a new value of the parameter at the end of the path."""
    name, *inside = path
    if name not in _names(kernel):
        raise ValueError(f"kernel has no parameter {name!r} to set: it is {kernel!r}.")
    return replace(kernel, **{name: _replaced(getattr(kernel, name), inside, value) if inside else value})
