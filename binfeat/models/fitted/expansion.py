"""Compiled sums of kernel values times coefficients, over all rows or a few, without storing kernel values."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from binfeat._common.subsets import slices
from binfeat._engine import expansions
from binfeat._threads import one_blas_thread, share_blocks
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelValues
from binfeat.length_scales.matrices import KernelMatrix, Linear, RadialMatrix, Standardizer

_KINDS: dict[Kernel, int] = {
    Laplacian(): expansions.LAPLACIAN,
    RBF(): expansions.GAUSSIAN,
    Matern(0.5): expansions.EXPONENTIAL,
    Matern(1.5): expansions.MATERN_ONCE,
    Matern(2.5): expansions.MATERN_TWICE,
}
_VALUES = 2**20  # kernel values between two checks for signals, some milliseconds
_LEAST_ROWS, _MOST_ROWS = 64, 4096  # rows of a block
_FEW = 16  # rows that are not sorted by cells
_MANY = 2**17  # rows per block of coordinates

# The coordinates of one kernel: relevant numeric inputs, their scales, and a linear map if there is one.
Placement = tuple[np.ndarray, np.ndarray, np.ndarray | None]


class Expansion:
    """Kernel expansion over the cells of each row, bitwise the same for one row and many, and for any threads.

    The coordinates of a cell's rows are adjacent in memory, with one copy per tree. Rows without a coefficient in a
    cell are omitted. Linear kernels become a linear function of the row.
    """

    def __init__(
        self,
        kernel: KernelValues,
        categorical: np.ndarray,
        standardizer: Standardizer,
        support: np.ndarray,  # (n_inputs, n_support)
        cells: list[tuple[np.ndarray, np.ndarray]],  # support rows and coefficients (n_targets, n_rows) of each cell
        intercepts: np.ndarray,  # (n_cells, n_targets)
    ) -> None:
        self._categorical, self._standardizer = np.flatnonzero(categorical), standardizer
        self._place(kernel, categorical)
        S, codes, linear = self._coordinates(support)
        counted = [(rows[coef.any(axis=0)], coef[:, coef.any(axis=0)]) for rows, coef in cells]
        sizes = [-(-len(rows) // expansions.SUMS) * expansions.SUMS for rows, _ in counted]
        starts, self._mean_size = np.cumsum([0, *sizes]), int(np.mean(sizes))
        slopes = np.zeros((len(cells), linear.shape[1], intercepts.shape[1]))
        if self._is_linear:
            weights = self._linear[:, np.newaxis]
            slopes[:] = [weights * (support[:, rows].astype(np.float64) @ coef.T) for rows, coef in counted]
        tables = [_side_by_side([values[rows].T for rows, _ in counted], starts) for values in (S, codes)]
        coefs = _side_by_side([coef for _, coef in counted], starts)
        self._cells = starts, *tables, coefs, slopes, intercepts

    @classmethod
    def of_one_cell(
        cls,
        kernel: KernelValues,
        categorical: np.ndarray,
        standardizer: Standardizer,
        support: np.ndarray,
        coef: np.ndarray,
    ) -> Self:
        """Return the expansion over all support rows (n_inputs, n), with coefficients (n_targets, n)."""
        return cls(
            kernel, categorical, standardizer, support, [(np.arange(coef.shape[1]), coef)], np.zeros((1, len(coef)))
        )

    def __call__(self, X: np.ndarray, n_jobs: int | None, cells: np.ndarray | None = None) -> np.ndarray:
        """Return sums over trees (n, n_targets) for rows (n, n_inputs), given their cells in all trees (n_trees, n)."""
        out, size = np.zeros((len(X), self._cells[-1].shape[1])), self._mean_size
        if cells is None:
            one = np.zeros((1, len(X)), np.int32)
            _share(lambda place: self._add(self._of(X[place]), one[:, place], out[place]), len(X), size, n_jobs)
            return out
        for place in slices(len(X), _MANY):
            known = self._of(X[place])
            if len(X) <= _FEW:
                self._add(known, cells, out)
                continue
            for of_tree in cells[:, place]:
                add = partial(self._add_sorted, known, of_tree, out[place], np.argsort(of_tree, kind="stable"))
                _share(add, len(of_tree), size, n_jobs)
        return out

    def _place(self, kernel: KernelValues, categorical: np.ndarray) -> None:
        """Determine the places of the coordinates of each kernel, padded with zeros, and the linear function."""
        self._linear = np.zeros(len(categorical))  # weights of the inputs in linear kernels
        parts, kinds, shares, jumps = [], [], [], []
        for matrix, share, gamma in zip(kernel.matrices, kernel.shares, kernel.gammas, strict=True):
            if isinstance(matrix.kernel, Linear):
                self._linear += np.where(categorical, 0.0, share * gamma)
                continue
            parts.append(placement_of(matrix, gamma, categorical))
            kinds.append(_KINDS[matrix.kernel])
            shares.append(share)
            jumps.append(gamma[categorical])
        sizes = [inputs.size if linear_map is None else linear_map.shape[1] for inputs, _, linear_map in parts]
        bounds = np.cumsum([0, *(-(-size // expansions.LANES) * expansions.LANES for size in sizes)])
        self._inputs, self._scales = np.zeros(bounds[-1], np.int64), np.zeros(bounds[-1])  # unmapped inputs
        self._mapped = list[tuple[slice, Placement]]()
        for (inputs, scales, linear_map), size, begin in zip(parts, sizes, bounds):
            place = slice(begin, begin + size)
            if linear_map is None:
                self._inputs[place], self._scales[place] = inputs, scales
            else:
                self._mapped.append((place, (inputs, scales, linear_map)))
        self._is_linear = bool(self._linear.any())
        self._kernel = np.array(kinds), np.array(shares, np.float64), bounds, np.array(jumps, np.float32)

    def _coordinates(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coordinates for the kernels, categories, and inputs of the linear function: arrays (n, ...).

        They belong to standardized columns, (n_inputs, n), and do not depend on the other columns.
        """
        rows = np.ascontiguousarray(columns.T, dtype=np.float64)
        coordinates = (rows.take(self._inputs, axis=1) * self._scales).astype(np.float32)
        for place, part in self._mapped:
            coordinates[:, place] = placed(rows, part)
        codes = np.ascontiguousarray(columns.take(self._categorical, axis=0).T)
        return coordinates, codes, rows if self._is_linear else rows[:, :0]

    def _of(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the coordinates of rows (n, n_inputs)."""
        return self._coordinates(self._standardizer.columns(X))

    def _add(self, known: tuple[np.ndarray, ...], cells: np.ndarray, out: np.ndarray) -> None:
        expansions.add_cells(*self._kernel, *known, cells, *self._cells, out)

    def _add_sorted(
        self, known: tuple[np.ndarray, ...], of_tree: np.ndarray, out: np.ndarray, order: np.ndarray, place: slice
    ) -> None:
        """Add values of one tree for some rows, sorted by cell."""
        own = order[place]
        values = out[own]
        self._add(tuple(table[own] for table in known), of_tree[np.newaxis, own], values)
        out[own] = values


def placement_of(matrix: KernelMatrix, gamma: np.ndarray, categorical: np.ndarray) -> Placement:
    scales = np.where(categorical, 0.0, gamma) ** (1 / matrix.kernel.power)
    inputs, linear_map = np.flatnonzero(scales), matrix.linear_map if isinstance(matrix, RadialMatrix) else None
    return inputs, scales[inputs], None if linear_map is None else np.ascontiguousarray(linear_map[inputs])


def placed(rows: np.ndarray, placement: Placement) -> np.ndarray:
    """Return the coordinates of rows (n_rows, n_inputs) for one kernel."""
    inputs, scales, linear_map = placement
    scaled = np.multiply(rows[:, inputs], scales, order="C")  # `map_rows` is compiled for one order
    if linear_map is None:
        return scaled
    mapped = np.empty((len(scaled), linear_map.shape[1]))
    expansions.map_rows(scaled, linear_map, mapped)
    return mapped


def _side_by_side(tables: list[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Pack tables with equal numbers of rows into one array, zero-padded to the start of the next table."""
    n_rows = len(tables[0])
    flat = np.zeros(n_rows * starts[-1], tables[0].dtype)
    for table, start, stop in zip(tables, starts, starts[1:], strict=False):
        flat[n_rows * start : n_rows * stop].reshape(n_rows, stop - start)[:, : table.shape[1]] = table
    return flat


def _share(add: Callable[[slice], None], n_rows: int, size: int, n_jobs: int | None) -> None:
    """Add the kernel expansion over rows of a model in blocks and threads."""
    step = min(max(_VALUES // max(1, size), _LEAST_ROWS), _MOST_ROWS)
    places = slices(n_rows, step)
    if len(places) == 1:
        add(places[0])
        return

    def fill(some: Iterable[slice]) -> None:
        for place in some:
            add(place)

    share_blocks(fill, places, n_rows * size, n_jobs)


ANCHORED_ROWS = 2000  # minimum rows of a model with anchors; predictions from fewer rows are fast
_SIZES = 256, 384, 512, 768, 1024
_MOST = 1 / 3  # share of the rows; more anchors save little time
_CHECKED = 512  # rows that are not anchors, for comparing the functions
_TOLERANCE = 0.02  # root mean squared difference, relative to the residuals of the model
_LARGEST = 10  # largest difference, relative to the tolerance
_HOPELESS = 16  # differences, relative to the tolerance, that more anchors do not reduce enough
_JITTER = 1e-5  # added to the diagonal; more than rounding of kernel values in float32


def few_anchors(
    kernel: KernelValues,
    categorical: np.ndarray,
    support: np.ndarray,
    coef: np.ndarray,
    residuals: np.ndarray,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return few rows of the support, the anchors, and coefficients that reproduce a function; None if these are many.

    The function is interpolated at the anchors: of all functions with coefficients for these rows only, the result is
    the nearest in the norm of the kernel. The errors at other training rows decide how many anchors suffice.

    Parameters
    ----------
    kernel : KernelValues
    categorical : (n_inputs,) bool
    support : (n_inputs, n_rows) float32
    coef : (n_targets, n_rows) float64
    residuals : (n_targets,) float64
        Root mean squares of the residuals.
    n_jobs : int or None

    Returns
    -------
    rows : (n_anchors,) int32, sorted
    coef : (n_targets, n_anchors) float64
    """
    n_inputs, n_rows = support.shape
    standardizer = Standardizer(np.zeros(n_inputs), np.ones(n_inputs))
    order = np.random.default_rng(0).permutation(n_rows)
    checked, others = support[:, order[:_CHECKED]], order[_CHECKED:]

    def values_of(rows: np.ndarray, own_coef: np.ndarray, at: np.ndarray) -> np.ndarray:
        expansion = Expansion.of_one_cell(kernel, categorical, standardizer, rows, own_coef)
        return expansion(np.ascontiguousarray(at.T, dtype=np.float64), n_jobs)

    expected, values = values_of(support, coef, checked), np.empty((0, len(coef)))
    for size in _SIZES:
        if size > min(_MOST * n_rows, len(others)):
            return None
        rows = np.ascontiguousarray(support[:, others[:size]])
        values = np.vstack([values, values_of(support, coef, rows[:, len(values) :])])
        own_coef = _interpolating(kernel, rows, values)
        if own_coef is None:
            return None
        errors = values_of(rows, own_coef, checked) - expected
        means, largest = np.sqrt((errors**2).mean(axis=0)), np.abs(errors).max(axis=0)
        allowed = _TOLERANCE * residuals
        if (means <= allowed).all() and (largest <= _LARGEST * allowed).all():
            places = np.argsort(others[:size])
            return others[places].astype(np.int32), np.ascontiguousarray(own_coef[:, places])
        if (means > _HOPELESS * allowed).any():
            return None
    return None


def _interpolating(kernel: KernelValues, rows: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """Return coefficients (n_targets, n) of rows (n_inputs, n) with values (n, n_targets), or None if singular."""
    with one_blas_thread():  # the order of sums depends on their number
        K = kernel(rows, rows).astype(np.float64)
        K[np.diag_indices(len(K))] += _JITTER
        try:
            return cho_solve(cho_factor(K, overwrite_a=True), values).T
        except LinAlgError:
            return None
