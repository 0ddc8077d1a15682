"""Axes of displays, and checks that displays share."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat.models.classifier import KernelMachineClassifier
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.regressor import KernelMachineRegressor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

KernelModel: TypeAlias = KernelMachineRegressor | KernelMachineClassifier
OptionalAxes: TypeAlias = "Axes | None"


def canvas(display: object, ax: OptionalAxes, figsize: tuple[float, float]) -> "tuple[Figure | SubFigure, Axes]":
    """Return the figure and the axes to draw on, without upper and right spines."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            name = type(display).__name__
            raise ImportError(f"{name}.plot needs Matplotlib. Install it: pip install 'binfeat[plot]'.") from error
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure, ax


def require_model(estimator: object, attribute: str) -> None:
    """Raise TypeError for anything but a kernel model, NotFittedError for a model that is not fitted."""
    if not isinstance(estimator, KernelMachineBase):
        raise TypeError(
            "estimator must be a KernelMachineRegressor or KernelMachineClassifier (for a pipeline, pass its last "
            f"step); got {type(estimator).__name__}."
        )
    check_is_fitted(estimator, attribute)


def names_of(feature_names: ArrayLike | None, values: np.ndarray, what: str) -> list[str]:
    """Return one name per row of `values`; ValueError if the number of given names differs."""
    if feature_names is None:
        return [f"x{j}" for j in range(len(values))]
    names = [str(name) for name in np.atleast_1d(np.asarray(feature_names, dtype=object))]
    if len(names) != len(values):
        raise ValueError(f"feature_names must have one name per {what}, {len(values)}; got {len(names)}.")
    return names
