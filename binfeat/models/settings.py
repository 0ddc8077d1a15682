"""Settings of a kernel model, from its parameters, and constants that limit a fit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.held_out import scorer_of
from binfeat._common.validation import check_choice, check_flag, check_integer, check_real, is_word, seed_of
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import any_kernel, binning_kernel, exact_kernel, is_exact, radial_kernel
from binfeat.models.table.findings import POLICIES


@dataclass(frozen=True)
class Mechanisms:
    """Mechanisms of a default fit. Only `python -m perf ablation` switches them off."""

    linear_maps: bool = True
    ranks: bool = True
    codes: bool = True
    rbf: bool = True  # as the radial kernel, if it is better than Matern's
    shorter_starts: bool = True
    second_kernel: bool = True
    target_transforms: bool = True
    fine_tuning: bool = True
    resplitting: bool = True  # split the cells for learning a kernel again, by the current kernel
    averages: bool = True  # averages of trees
    tree_choice: bool = True  # choice of the number of trees
    duplicates: bool = True
    global_part: bool = True  # effects of levels shared by all cells of a local model
    wide_scales: bool = True  # length scales of single inputs among many
    calibration_matrix: bool = True  # calibration by matrices
    noise_model: bool = True  # model of the sizes of residuals


@dataclass(frozen=True)
class Limits:
    """Sizes of samples, models and trials of a kernel model."""

    exact_rows: int = 10_000  # rows of an exact model; local models of more rows are faster and nearly as accurate
    exact_work: float = 2e10  # pairs of rows times inputs of an exact model
    high_dimensional_work: float = 1e12  # pairs of rows times inputs if inputs are many: kernels by matrix products
    cell_rows: int = 1500  # rows of a cell of a local model
    finish_seconds: float = 1.0  # seconds of a fit after Ctrl-C
    hurried_rows: int = 3000  # rows that any time limit keeps, and training rows after Ctrl-C
    hurried_out: int = 1000  # validation rows after Ctrl-C
    n_steps: int = 60  # steps of a search for length scales
    sample_rows: int = 40_000  # training rows on which kinds of features are compared
    sample_out: int = 10_000  # validation rows of a sample
    row_grids: int = 2_000_000  # rows times grids of a sample; few rows need many grids to compare kernels
    sample_grids: tuple[int, int] = (50, 400)  # minimum and maximum of grids in a sample; also at the start of growth
    few_grids: int = 20  # grids for comparing penalties and overall factors on all rows
    work_of_a_row: int = 20_000  # grids times iterations of all solves: half a minute for 400,000 rows on two cores
    work: int = 500_000_000  # rows times grids times iterations of all solves
    n_fourier: int = 1024  # random Fourier features at the start
    fourier_bytes: int = 2**30  # bytes of Fourier features that are compared with grids
    fourier_products: float = 2e11  # multiplications of the Gram matrix of more Fourier features
    mechanisms: Mechanisms = field(default_factory=Mechanisms)


# Options of single representations, see `solver_params`; regressors also have "n_posterior_samples".
SOLVER_OPTIONS = "n_trees", "cell_rows", "n_grids", "max_grids"


@dataclass(frozen=True, eq=False)
class Settings:
    """Parameters of a kernel model. None leaves a decision to the fit, or sets no limit."""

    features: str | None  # "exact", "local", "binning" or "fourier"
    kernel: Kernel | None  # with a pitch law, or supported by exact models
    learns_gamma: bool
    gamma: ArrayLike | None  # if not learned; None is 1 / (n_columns * std)
    alpha: float | None
    categorical_features: ArrayLike | str | None
    max_seconds: float | None
    max_bytes: int | None
    has_cv: bool  # True if the user selects validation rows
    scorer: Callable[..., float] | None  # None to minimize the loss
    refits: bool
    warm_start: bool
    verbose: int
    n_jobs: int | None
    seed: int
    chooses_transform: bool = False  # True to select the transform of the targets
    loss: str = "squared"
    n_grids: int | None = None
    max_grids: int = 1600
    n_trees: int | None = None
    cell_rows: int | None = None
    n_posterior_samples: int | None = None

    @property
    def names_features(self) -> bool:
        has_kernel = self.kernel is None or is_exact(self.kernel)
        return self.features is not None or self.n_grids is not None or not has_kernel

    @property
    def may_take_ranks(self) -> bool:
        """Return True if ranks can be added as columns, which requires learned length scales."""
        return self.learns_gamma and self.features in (None, "exact", "local")

    @classmethod
    def of(cls, model: BaseEstimator) -> "Settings":
        given = model.get_params(deep=False)
        for name, words in (("gamma", ("learn", "scale")), ("alpha", ("auto",))):
            if isinstance(given[name], str) and given[name] not in words:
                known = " or ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be {known}, or a number, got {given[name]!r}.")
        check_choice(given["features"], "features", ("auto", "local", "binning", "fourier", "exact"))
        check_choice(given["on_unseen"], "on_unseen", POLICIES)
        for name in ("refit", "warm_start"):
            check_flag(given[name], name)
        if isinstance(given["cv"], Iterator):
            raise TypeError("cv must not be a generator, which can be read only once. Pass list(cv).")
        options = _solver_options(given["solver_params"], model._solver_options)
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
            scorer=None if given["scoring"] is None else scorer_of(model),
            refits=given["refit"],
            warm_start=given["warm_start"],
            n_jobs=given["n_jobs"],
            seed=seed_of(given["random_state"]),
        )


def _solver_options(given: object, known: tuple[str, ...]) -> dict[str, Any]:
    expected = f"solver_params must be None or a dict with keys among {', '.join(map(repr, known))}"
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{expected}, got {given!r}.")
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ValueError(f"{expected}; got the unknown key {unknown[0]!r}.")
    return {
        name: check_integer(value, f"solver_params[{name!r}]", 2 if name == "cell_rows" else 1)
        for name, value in given.items()
    }


def _kernel(kernel: object, features: str, n_grids: int | None) -> Kernel | None:
    """Return the requested kernel, if the features support it."""
    if is_word(kernel, "auto"):
        return None
    asked = f"features={features!r}"
    if features == "auto" and n_grids is None:
        return any_kernel(kernel, asked)
    if features in ("exact", "local"):
        return exact_kernel(kernel, asked)
    if features == "fourier":
        return radial_kernel(kernel, asked)
    return binning_kernel(kernel, instead="features='exact', 'local' or 'fourier'")


@dataclass(frozen=True)
class SizeLimits:
    """Expected memory and time of models, by their number of rows."""

    pair_seconds: float = 8e-9  # seconds per pair of rows in an exact solution
    input_seconds: float = 3e-10  # seconds per input of a pair of rows
    high_dimensional_input_seconds: float = 2e-11  # the same for many inputs, with kernels by matrix products
    loss_steps: int = 20  # approximate steps to the minimum of a loss
    choice_pair_bytes: int = 9  # bytes per pair of rows in choices, for several matrices
    most_trees: int = 8  # maximum of trees of a local model
    tree_rows: int = 1_600_000  # rows of all trees together
    cell_pair_bytes: int = 32  # bytes per pair of rows in a cell, for several matrices
    timed_first_rows: int = 64  # rows of a call that loads compiled kernels before the timing of a cell
    timed_rows: int = 1500  # maximum rows of the timed cell
    timed_inputs: int = 100  # maximum inputs of the timed cell
    tree_share: float = 0.7  # share of the remaining time for a tree
    larger_trees: int = 3  # required time for larger cells, in trees
    number_bytes: int = 4  # bytes of the place of a row in a tree
    vector_bytes: int = 40  # bytes of a row in lists and vectors that all trees share: numbers, counts, variances
    target_bytes: int = 16  # bytes of a target of a row in a tree: a coefficient and a residual
    code_bytes: int = 4  # bytes of a code while grids are added
    bin_bytes: int = 64  # bytes of the key, the diagonal, the mean and the preconditioner of a bin
    targets_together: int = 2  # least number of targets in a product
    ample_bytes: int = 2**31  # bytes of bins up to which float64 and all targets together are used
    more_bytes: int = 300 * 10**6  # bytes of copies of the table, samples and hashes in addition to `max_bytes`
    table_copies: int = 3  # copies of a table in float64; measured
    wide_table_copies: int = 7  # the same for a table with more than `wide_columns` columns
    wide_columns: int = 1333
    float32_rows: int = 2**22  # rows up to which sums of bins in float32 are more precise than solutions
    probe_grids: int = 4  # grids for estimating the number of bins
    trial_share: float = 1 / 4  # share of the remaining seconds for the first model of grids
    entry_seconds: float = 1.5e-7  # seconds of a row in a grid, from its bin to the solution


SIZES = SizeLimits()
PENALTY_FACTOR: float = np.sqrt(10.0)  # ratio of two penalties; NumPy's type keeps products with float32 in float64
