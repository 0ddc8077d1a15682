"""Ridge models on a sample of the rows, and their validation errors."""

from dataclasses import dataclass, replace

import numpy as np

from binfeat._rows.rows import ProcessRows
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinTables, count_bins, find_codes
from binfeat.length_scales.kernel_sum import KernelSum, Trial
from binfeat.linear.result import SolverOptions
from binfeat.linear.solve import solve_ridge
from binfeat.models.problem import Losses, Problem
from binfeat.models.run import Phase, Run

_OPTIONS = SolverOptions(tol=1e-2, max_iter=100, solver="cg")
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
    """Training and validation rows, and the models fitted to them."""

    X: np.ndarray  # (n_rows, n_inputs), float64: scaled
    Y: np.ndarray  # (n_rows, n_targets)
    weights: np.ndarray | None  # (n_rows, 1)
    X_out: np.ndarray  # (n_out, n_inputs)
    losses: Losses  # of predictions for validation rows
    categorical: np.ndarray  # (n_inputs,) of bool
    n_grids: int
    seed: int
    n_jobs: int | None

    @classmethod
    def of(cls, problem: Problem, run: Run, X: np.ndarray) -> "Sample":
        """Select some training and validation rows of a scaled table."""
        limits, settings = run.limits, run.settings
        train, out = problem.train[: limits.sample_rows], problem.held_out[: limits.sample_out]
        return cls(
            X[train],
            problem.Y[train],
            problem.weights_of(train),
            X[out],
            problem.losses(out),
            categorical=problem.categorical,
            n_grids=first_grids(run, len(train)),
            seed=settings.seed,
            n_jobs=settings.n_jobs,
        )

    def fit(self, kernel: KernelSum, alphas: np.ndarray) -> Trial:
        """The kernel with the best of some penalties on the validation rows."""
        grids = Grids.draw(kernel.main.kernel, kernel.main.gamma, self.n_grids, self.seed, self.categorical)
        codes = CodeStore(len(self.X), self.n_grids)
        bins = count_bins(grids, [self.X], len(self.X), codes=codes, n_jobs=self.n_jobs)
        Z = BinMatrix._trusted(codes.array, bins.starts, np.dtype(np.float64), self.n_jobs)
        tables = BinTables(bins.keys, bins.starts, self.n_jobs)
        out_codes = find_codes(tables, grids, self.X_out, self.n_jobs, codes.array.dtype)
        out = BinMatrix._trusted(out_codes, bins.starts, Z.dtype, self.n_jobs)
        fits = []
        for alpha, result in zip(alphas, solve_ridge(ProcessRows(Z, self.Y, self.weights), alphas, _OPTIONS)):
            losses = self.losses(out @ result.solution + result.intercept)
            fits.append(Trial(replace(kernel, alpha=float(alpha)), losses.mean(), losses=losses))
        return min(fits, key=lambda fit: fit.error)
