"""What the user asks of a kernel machine: parameters, checked and parsed once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from binfeat._common.held_out import scorer_of
from binfeat._common.validation import check_choice, check_flag, check_integer, check_real, is_word, seed_of
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import any_kernel, binning_kernel, exact_kernel, is_exact
from binfeat.models.kernel_algebra.bounded import BOUNDED_LOSSES
from binfeat.models.kernel_algebra.matrices import is_radial
from binfeat.models.table.findings import POLICIES
from binfeat.models.target.deviance import DEVIANCES

_RADIAL = "features='exact', 'local' or 'fourier'"


@dataclass(frozen=True, eq=False)
class Settings:
    """Parameters of a kernel machine. None leaves a choice to the fit, or sets no limit."""

    features: str | None  # "exact", "local", "binning" or "fourier"
    kernel: Kernel | None  # with a pitch law, or one that exact machines take
    learns_gamma: bool
    gamma: ArrayLike | None  # if not learned; None is one over the number of inputs times their standard deviations
    alpha: float | None
    n_grids: int | None
    n_trees: int | None
    cell_rows: int | None
    categorical_features: ArrayLike | str | None
    max_grids: int
    max_seconds: float | None
    max_bytes: int | None
    has_cv: bool  # whether the user says which rows are held out
    scorer: Callable[..., float] | None  # None is the squared error
    refits: bool
    warm_start: bool
    verbose: int
    n_jobs: int | None
    seed: int
    chooses_transform: bool = False  # of the targets
    loss: str = "squared"
    n_posterior_samples: int | None = None

    @property
    def is_robust(self) -> bool:
        """Whether rows far from what other rows say get little weight."""
        return self.loss == "huber"

    @property
    def names_features(self) -> bool:
        """Whether the user names the features, or asks for what grids alone have."""
        has_kernel = self.kernel is None or is_exact(self.kernel)
        return self.features is not None or self.n_grids is not None or not has_kernel

    @property
    def may_judge_by_folds(self) -> bool:
        """Whether `cv` may leave out all rows in turn: blocks of an inverse know of squares, and of all rows."""
        return self.has_cv and self.refits and self.loss not in (*DEVIANCES, *BOUNDED_LOSSES)

    @property
    def may_take_ranks(self) -> bool:
        """Whether numbers may enter by their ranks, too: only kernels that learn what each is worth can have both."""
        return self.learns_gamma and self.features in (None, "exact", "local")

    @classmethod
    def of(cls, machine: BaseEstimator) -> "Settings":
        """Those of parameters that all kernel machines have; ValueError or TypeError names what is not valid."""
        given = machine.get_params(deep=False)
        numbers = "alpha", "n_grids", "n_trees", "cell_rows"
        for name, words in (("gamma", ("learn", "scale")), *((name, ("auto",)) for name in numbers)):
            if isinstance(given[name], str) and given[name] not in words:
                known = " or ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be {known}, or a number, got {given[name]!r}.")
        check_choice(given["features"], "features", ("auto", "local", "binning", "fourier", "exact"))
        check_choice(given["on_unseen"], "on_unseen", POLICIES)
        for name in ("refit", "warm_start"):
            check_flag(given[name], name)

        def chosen(name: str, check: Callable[..., Any], least: float) -> Any:
            return None if is_word(given[name], "auto") else check(given[name], name, least)

        return cls(
            verbose=check_integer(given["verbose"], "verbose", 0),
            features=None if given["features"] == "auto" else given["features"],
            kernel=_kernel(given["kernel"], given["features"], given["n_grids"]),
            learns_gamma=is_word(given["gamma"], "learn"),
            gamma=None if isinstance(given["gamma"], str) else given["gamma"],
            alpha=chosen("alpha", check_real, 0.0),
            n_grids=chosen("n_grids", check_integer, 1),
            n_trees=chosen("n_trees", check_integer, 1),
            cell_rows=chosen("cell_rows", check_integer, 2),
            categorical_features=given["categorical_features"],
            max_grids=check_integer(given["max_grids"], "max_grids", 1),
            max_seconds=None if given["max_seconds"] is None else check_real(given["max_seconds"], "max_seconds", 0.0),
            max_bytes=None if given["max_bytes"] is None else check_integer(given["max_bytes"], "max_bytes", 1),
            has_cv=given["cv"] is not None,
            scorer=None if given["scoring"] is None else scorer_of(machine),
            refits=given["refit"],
            warm_start=given["warm_start"],
            n_jobs=given["n_jobs"],
            seed=seed_of(given["random_state"]),
        )


def _kernel(kernel: object, features: str, n_grids: object) -> Kernel | None:
    """The kernel that is asked for, of those that the features have."""
    if is_word(kernel, "auto"):
        return None
    asked = f"features={features!r}"
    if features == "auto" and is_word(n_grids, "auto"):
        return any_kernel(kernel, asked)
    if features in ("exact", "local"):
        return exact_kernel(kernel, asked)
    if features == "fourier" and is_radial(known := any_kernel(kernel, asked)):
        return known
    return binning_kernel(kernel, instead=_RADIAL)
