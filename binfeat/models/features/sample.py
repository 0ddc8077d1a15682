"""Ridge machines on a sample of the rows, and how they do on rows held out."""

from dataclasses import dataclass

import numpy as np

from binfeat._rows.rows import LocalRows
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinTables, count_bins, find_codes
from binfeat.kernels.base import Kernel
from binfeat.linear.result import SolverOptions
from binfeat.linear.solve import solve_ridge
from binfeat.models.problem import Losses, Problem
from binfeat.models.run import Phase, Run

_OPTIONS = SolverOptions(tol=1e-2, max_iter=100, solver="cg")
_TRIAL_SHARE = 1 / 4  # of the seconds left, that a machine of a sample may take
_ENTRY_SECONDS = 1.5e-7  # of a row in a grid, from its bin to the solution


def first_grids(run: Run, n_rows: int) -> int:
    """Grids to begin with: the more, the fewer the rows; a few in any case, more only if the seconds left allow."""
    limits = run.limits
    wanted = np.clip(limits.row_grids // n_rows, *limits.sample_grids)
    in_time = _TRIAL_SHARE * run.clock.left_of(Phase.SOLUTION) / (_ENTRY_SECONDS * n_rows)
    return int(min(wanted, max(limits.few_grids, in_time)))


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A ridge machine on binning features, and how it does on held-out rows."""

    gamma: np.ndarray
    alpha: float
    grids: Grids
    losses: np.ndarray

    @property
    def error(self) -> float:
        return self.losses.mean()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from and rows held out, and the machines fitted to them."""

    X: np.ndarray  # (n_rows, n_inputs), float64: scaled
    Y: np.ndarray  # (n_rows, n_targets)
    weights: np.ndarray | None  # (n_rows, 1)
    X_out: np.ndarray  # (n_out, n_inputs)
    losses: Losses  # of predictions for the rows held out
    categorical: np.ndarray  # (n_inputs,) of bool
    kernel: Kernel
    n_grids: int
    seed: int
    n_jobs: int | None

    @classmethod
    def of(cls, problem: Problem, run: Run, X: np.ndarray, kernel: Kernel) -> "Sample":
        """Some training rows and some that are held out, of a scaled table."""
        limits, settings = run.limits, run.settings
        train, out = problem.train[: limits.sample_rows], problem.held_out[: limits.sample_out]
        return cls(
            X[train],
            problem.Y[train],
            problem.weights_of(train),
            X[out],
            problem.losses(out),
            categorical=problem.categorical,
            kernel=kernel,
            n_grids=first_grids(run, len(train)),
            seed=settings.seed,
            n_jobs=settings.n_jobs,
        )

    def fit(self, gamma: np.ndarray, alphas: np.ndarray) -> SampleFit:
        """The machine of these gammas with the best of some penalties on the held-out rows."""
        grids = Grids.draw(self.kernel, gamma, self.n_grids, self.seed, self.categorical)
        codes = CodeStore(len(self.X), self.n_grids)
        bins = count_bins(grids, [self.X], len(self.X), codes=codes, n_jobs=self.n_jobs)
        Z = BinMatrix._trusted(codes.array, bins.starts, np.dtype(np.float64), self.n_jobs)
        tables = BinTables(bins.keys, bins.starts, self.n_jobs)
        out_codes = find_codes(tables, grids, self.X_out, self.n_jobs, codes.array.dtype)
        out = BinMatrix._trusted(out_codes, bins.starts, Z.dtype, self.n_jobs)
        fits = []
        for alpha, result in zip(alphas, solve_ridge(LocalRows(Z, self.Y, self.weights), alphas, _OPTIONS)):
            losses = self.losses(out @ result.solution + result.intercept)
            fits.append(SampleFit(gamma, float(alpha), grids, losses))
        return min(fits, key=lambda fit: fit.error)
