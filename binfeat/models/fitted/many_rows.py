"""Error bars of exact models of many rows, without a factor of the full kernel matrix."""

import numpy as np

from binfeat._common.subsets import evenly_spaced, slices
from binfeat._threads import side_by_side
from binfeat.length_scales.leave_one_out import left_out_variances
from binfeat.models.fitted.cell_trees import cells_of_columns, rows_by_cell
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.score_function import HeldOutErrors, normal_samples
from binfeat.models.kernel_algebra.inverse_diagonal import CellInverse, rows_of_cell

_LANDMARKS = 400
_ROWS = 1024  # rows of a cell per block of variances


class ManyRowsPosterior:
    """Error bars of an exact model of many rows: rows of different cells are coupled only by landmarks.

    These are partially independent conditionals (Snelson & Ghahramani 2007): a row's variance is exact except for what
    rows of other cells add beyond the landmarks, so variances tend to be too large. Leave-one-out residuals
    are divided by the same deviations, so intervals have the requested coverage.
    """

    def __init__(self, function: KernelFunction, n_jobs: int | None) -> None:
        self._function, self._alpha, self._n_jobs = function, float(function.alpha), n_jobs
        n_rows = function.support.shape[1]
        self._tree, cells = cells_of_columns(function.support, function.scales, rows_of_cell(n_rows))
        known = [(np.ascontiguousarray(function.support[:, rows]), function.weights[rows]) for rows in cells]
        landmarks = np.ascontiguousarray(function.support[:, evenly_spaced(n_rows, _LANDMARKS)])
        self._inverse = CellInverse(function.kernel(1), known, landmarks, self._alpha, n_jobs)
        g, rows = np.concatenate(self._inverse.diagonals()), np.concatenate(cells)
        variances = left_out_variances(g, self._alpha, function.weights[rows])
        self.errors = HeldOutErrors.of((function.coef[:, rows] / g).T, variances)

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Return variances of predictions for rows (n_rows, n_inputs), in units of the noise variance."""
        columns, out = self._function.frame.columns(X), np.empty(len(X))

        def fill(group: tuple[int, np.ndarray]) -> None:
            number, rows = group
            own = np.ascontiguousarray(columns[:, rows])
            told, shared, F = self._inverse.unknown(own, number)
            more, *less = (np.einsum("ij,ij->j", part, part, dtype=np.float64) for part in (shared, told, F.T))
            out[rows] = np.maximum(self._function.kernel_diagonal(own) + 1.0 - sum(less), 0.0) + more

        groups = ((number, rows[some]) for number, rows in self._groups(columns) for some in slices(len(rows), _ROWS))
        side_by_side(fill, groups, self._n_jobs)
        return out / self._alpha

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return samples of the prediction error, (n_rows, n_samples), for unit noise variance."""
        columns, out = self._function.frame.columns(X), np.empty((len(X), n_samples))
        common = rng.standard_normal((self._inverse.n_features, n_samples))
        for number, rows in self._groups(columns):
            own = np.ascontiguousarray(columns[:, rows])
            told, shared, F = self._inverse.unknown(own, number)
            covariance = self._function.kernel(1)(own, own) + 1.0 - F @ F.T - told.T @ told
            out[rows] = normal_samples(covariance.astype(np.float64), n_samples, rng) + shared.T @ common
        return out / np.sqrt(self._alpha)

    def _groups(self, columns: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return rows_by_cell(self._tree(columns.T.astype(np.float64))[0])
