"""Settings of a kernel model, parsed from its parameters, and the figures that limit a fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict, cast

from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.held_out import scorer_of
from binfeat._common.validation import check_choice, check_flag, check_integer, check_real, is_word, seed_of
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import any_kernel, binning_kernel, exact_kernel, is_exact
from binfeat.length_scales.matrices import is_radial
from binfeat.models.kernel_algebra.loss import SQUARES
from binfeat.models.table.findings import POLICIES


@dataclass(frozen=True)
class Mechanisms:
    """Mechanisms of a default fit. `python -m perf ablation` switches each of them off, and nothing else does."""

    linear_maps: bool = True
    ranks: bool = True
    codes: bool = True
    rbf: bool = True  # as the radial kernel, if it does better than Matern's
    shorter_starts: bool = True
    second_kernel: bool = True
    target_transforms: bool = True
    fine_tuning: bool = True
    averages: bool = True  # of trees
    tree_choice: bool = True  # of the number of trees
    duplicates: bool = True
    global_part: bool = True  # effects of levels that all cells of a local model share
    wide_scales: bool = True  # for single inputs of many
    calibration_matrix: bool = True  # of probabilities
    noise_model: bool = True  # of sizes of residuals


@dataclass(frozen=True)
class Limits:
    """Sizes of samples, models and trials of a kernel model."""

    exact_rows: int = 10_000  # rows of an exact model; local models of more rows are faster and nearly as accurate
    exact_work: float = 2e10  # pairs of rows times inputs of an exact model
    wide_work: float = 1e12  # pairs of rows times inputs if inputs are many; kernels are then products of matrices
    cell_rows: int = 1500  # rows of a cell of a local model
    hurried_seconds: float = 1.0  # seconds of a fit after Ctrl-C
    hurried_rows: int = 3000  # rows that any time limit keeps, and training rows after Ctrl-C
    hurried_out: int = 1000  # validation rows after Ctrl-C
    n_steps: int = 60  # steps of a search for length scales
    sample_rows: int = 40_000  # training rows on which kinds of features are compared
    sample_out: int = 10_000  # validation rows of a sample
    row_grids: int = 2_000_000  # rows times grids of a sample: with few rows, two kernels differ on many grids only
    sample_grids: tuple[int, int] = (50, 400)  # minimum and maximum of grids in a sample; also at the start of growth
    few_grids: int = 20  # grids that suffice to compare penalties and overall factors on all rows
    work_of_a_row: int = 20_000  # grids times iterations of all solves: half a minute for 400,000 rows on two cores
    work: int = 500_000_000  # rows times grids times iterations of all solves
    n_fourier: int = 1024  # random Fourier features at the start
    fourier_bytes: int = 2**30  # bytes of Fourier features that are compared with grids
    fourier_products: float = 2e11  # multiplications of the Gram matrix of more Fourier features
    mechanisms: Mechanisms = field(default_factory=Mechanisms)


# Options of single representations, see `solver_params`; regressors also have "n_posterior_samples".
SOLVER_OPTIONS = "n_trees", "cell_rows", "n_grids", "max_grids"


class _SolverOptions(TypedDict, total=False):
    n_trees: int
    cell_rows: int
    n_grids: int
    max_grids: int
    n_posterior_samples: int


@dataclass(frozen=True, eq=False)
class Settings:
    """Parameters of a kernel model. None leaves a decision to the fit, or sets no limit."""

    features: str | None  # "exact", "local", "binning" or "fourier"
    kernel: Kernel | None  # with a pitch law, or supported by exact models
    learns_gamma: bool
    gamma: ArrayLike | None  # if not learned; None is one over the number of inputs times their standard deviations
    alpha: float | None
    categorical_features: ArrayLike | str | None
    max_seconds: float | None
    max_bytes: int | None
    has_cv: bool  # True if the user selects validation rows
    scorer: Callable[..., float] | None  # None is the squared error
    refits: bool
    warm_start: bool
    verbose: int
    n_jobs: int | None
    seed: int
    chooses_transform: bool = False  # of the targets
    loss: str = "squared"
    n_grids: int | None = None
    max_grids: int = 1600
    n_trees: int | None = None
    cell_rows: int | None = None
    n_posterior_samples: int | None = None

    @property
    def names_features(self) -> bool:
        """Return True if parameters select the features, or require grids."""
        has_kernel = self.kernel is None or is_exact(self.kernel)
        return self.features is not None or self.n_grids is not None or not has_kernel

    @property
    def may_judge_by_folds(self) -> bool:
        """Return True if all folds of `cv` can be used, which requires squared errors and all rows."""
        return self.has_cv and self.refits and self.loss in SQUARES

    @property
    def may_take_ranks(self) -> bool:
        """Return True if ranks can be added as columns, which requires learned length scales."""
        return self.learns_gamma and self.features in (None, "exact", "local")

    @classmethod
    def of(cls, machine: BaseEstimator) -> "Settings":
        """Return the settings of the common parameters; ValueError or TypeError names an invalid one."""
        given = machine.get_params(deep=False)
        for name, words in (("gamma", ("learn", "scale")), ("alpha", ("auto",))):
            if isinstance(given[name], str) and given[name] not in words:
                known = " or ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be {known}, or a number, got {given[name]!r}.")
        check_choice(given["features"], "features", ("auto", "local", "binning", "fourier", "exact"))
        check_choice(given["on_unseen"], "on_unseen", POLICIES)
        for name in ("refit", "warm_start"):
            check_flag(given[name], name)
        options = _solver_options(given["solver_params"], machine._solver_options)
        return cls(
            verbose=check_integer(given["verbose"], "verbose", 0),
            features=None if given["features"] == "auto" else given["features"],
            kernel=_kernel(given["kernel"], given["features"], options.get("n_grids")),
            learns_gamma=is_word(given["gamma"], "learn"),
            gamma=None if isinstance(given["gamma"], str) else given["gamma"],
            alpha=None if is_word(given["alpha"], "auto") else check_real(given["alpha"], "alpha", 0.0),
            **options,
            categorical_features=given["categorical_features"],
            max_seconds=None if given["max_seconds"] is None else check_real(given["max_seconds"], "max_seconds", 0.0),
            max_bytes=None if given["max_bytes"] is None else check_integer(given["max_bytes"], "max_bytes", 1),
            has_cv=given["cv"] is not None,
            scorer=None if given["scoring"] is None else scorer_of(machine),
            refits=given["refit"],
            warm_start=given["warm_start"],
            n_jobs=given["n_jobs"],
            seed=seed_of(given["random_state"]),
        )


def _solver_options(given: object, known: tuple[str, ...]) -> _SolverOptions:
    """The options of `solver_params` that are set; ValueError or TypeError names an option that is not valid."""
    expected = f"solver_params must be None or a dict with keys among {', '.join(map(repr, known))}"
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{expected}, got {given!r}.")
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ValueError(f"{expected}; got the unknown key {unknown[0]!r}.")
    options = {
        name: check_integer(value, f"solver_params[{name!r}]", 2 if name == "cell_rows" else 1)
        for name, value in given.items()
    }
    return cast(_SolverOptions, options)


def _kernel(kernel: object, features: str, n_grids: int | None) -> Kernel | None:
    """The kernel that is asked for, of those that the features have."""
    if is_word(kernel, "auto"):
        return None
    asked = f"features={features!r}"
    if features == "auto" and n_grids is None:
        return any_kernel(kernel, asked)
    if features in ("exact", "local"):
        return exact_kernel(kernel, asked)
    if features == "fourier" and is_radial(known := any_kernel(kernel, asked)):
        return known
    return binning_kernel(kernel, instead="features='exact', 'local' or 'fourier'")
