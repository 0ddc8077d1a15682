"""Exact models: functions of kernel values."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from binfeat._common.derived import made_once
from binfeat._common.memory import require_memory
from binfeat._common.subsets import slices
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.length_scales.leave_one_out import left_out_variances, precise_inverse_root, squared_row_norms
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.expansion import FullExpansion
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.many_rows import ManyRowsPosterior
from binfeat.models.fitted.score_function import HeldOutErrors, normal_samples

MOST_IN_CLOSED_FORM = 4000  # rows; the factor needs 64 MB and half a second (16,000 rows: 1 GB and 20 s)
_ROWS = 512  # rows per block of variances


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactFunction(KernelFunction):
    """A function of all rows of `fit`, with a coefficient for each."""

    def __call__(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64."""
        return self._expansion(X, n_jobs)

    @made_once
    def _expansion(self) -> FullExpansion:
        return FullExpansion(self.kernel(1), self.categorical, self.support, self.coef, self.frame)

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> "ExactPosterior | ManyRowsPosterior":
        if self.n_rows <= MOST_IN_CLOSED_FORM:
            return ExactPosterior(self, n_jobs, errors)
        return ManyRowsPosterior(self, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        yield self(X, n_jobs)


class ExactPosterior:
    """Error bars of an exact model in closed form (Rasmussen & Williams 2006, eq. 2.26 and 5.12).

    Errors are those of validation rows, if they are given, or those of each row without it.
    """

    def __init__(self, function: ExactFunction, n_jobs: int | None, errors: HeldOutErrors | None = None) -> None:
        self._function, self._n_jobs = function, n_jobs
        n_rows = function.support.shape[1]
        require_memory(8 * n_rows**2, "the standard deviations of an exact machine", "Use predict alone.")
        with one_blas_thread():
            K = function.kernel(n_jobs)(function.support, function.support)
            self._root, self._alpha = precise_inverse_root(K, float(function.alpha), function.weights, n_jobs)
        self.errors = self._left_out() if errors is None else errors

    def _left_out(self) -> HeldOutErrors:
        function, g = self._function, squared_row_norms(self._root)
        return HeldOutErrors.of((function.coef / g).T, left_out_variances(g, self._alpha, function.weights))

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Return variances of predictions for rows (n_rows, n_inputs), in units of the noise variance."""
        out = np.empty(len(X))

        def fill(place: slice) -> None:
            rows = self._function.frame.columns(X[place])
            known = self._known(rows)
            out[place] = self._function.kernel_diagonal(rows) + 1 - np.einsum("ij,ij->j", known, known, dtype=float)

        side_by_side(fill, slices(len(X), _ROWS), self._n_jobs)
        return np.maximum(out, 0.0) / self._alpha

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return samples of the prediction error, (n_rows, n_samples), for unit noise variance."""
        require_memory(32 * len(X) ** 2, "samples at so many rows", "Give sample_y fewer rows at a time.")
        rows = self._function.frame.columns(X)
        known = self._known(rows).astype(np.float64)
        covariance = self._function.kernel(self._n_jobs)(rows, rows) + 1.0 - known.T @ known
        return normal_samples(covariance / self._alpha, n_samples, rng)

    def solved(self, X: np.ndarray) -> np.ndarray:
        """``(K + 1 1' + alpha / v)^-1 (k + 1)``, (n_machine_rows, n_rows), for rows (n_rows, n_inputs)."""
        return self._root @ self._known(self._function.frame.columns(X))

    def _known(self, rows: np.ndarray) -> np.ndarray:
        """Return the reduction of the prior variance by each training row, as squares (n_machine_rows, n_rows)."""
        return self._root.T @ (self._function.kernel(self._n_jobs)(self._function.support, rows) + np.float32(1.0))
