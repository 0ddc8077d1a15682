"""Ridge models on a sample of the rows, and their validation errors."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from binfeat._rows.products import Features
from binfeat._rows.rows import LocalRows
from binfeat.linear.result import SolverOptions
from binfeat.linear.solve import solve_ridge
from binfeat.models.kernel_algebra.kernel_sum import KernelSum, Trial
from binfeat.models.problem import Losses, Problem
from binfeat.models.run import Phase, Run

_TRIAL_SHARE = 1 / 4  # share of the remaining seconds for a model of a sample
_ENTRY_SECONDS = 1.5e-7  # of a row in a grid, from its bin to the solution


def first_grids(run: Run, n_rows: int) -> int:
    """Grids to begin with: the more, the fewer the rows; a few in any case, more only if the seconds left allow."""
    limits = run.limits
    wanted = np.clip(limits.row_grids // n_rows, *limits.sample_grids)
    in_time = _TRIAL_SHARE * run.clock.left_of(Phase.SOLUTION) / (_ENTRY_SECONDS * n_rows)
    return int(min(wanted, max(limits.few_grids, in_time)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Training and validation rows, and the models fitted to their features."""

    X: np.ndarray  # (n_rows, n_inputs), float64: scaled
    Y: np.ndarray  # (n_rows, n_targets)
    weights: np.ndarray | None  # (n_rows, 1)
    X_out: np.ndarray  # (n_out, n_inputs)
    losses: Losses  # of predictions for validation rows

    @classmethod
    def of(cls, problem: Problem, run: Run, X: np.ndarray) -> "Sample":
        """Select some training and validation rows of a scaled table."""
        train, out = problem.train[: run.limits.sample_rows], problem.held_out[: run.limits.sample_out]
        return cls(X[train], problem.Y[train], problem.weights_of(train), X[out], problem.losses(out))

    def fit(self, kernel: KernelSum, alphas: np.ndarray, Z: Any, Z_out: Features, options: SolverOptions) -> Trial:
        """Return the kernel with the best of some penalties, given features of training and validation rows."""
        fits = []
        for alpha, result in zip(alphas, solve_ridge(LocalRows(Z, self.Y, self.weights), alphas, options)):
            losses = self.losses(np.asarray(Z_out @ result.solution) + result.intercept)
            fits.append(Trial(replace(kernel, alpha=float(alpha)), losses.mean(), losses=losses))
        return min(fits, key=lambda fit: fit.error)
