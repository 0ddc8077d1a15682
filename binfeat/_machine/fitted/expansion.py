"""Values of a function of kernel values, in compiled calls that never write the kernel's values."""

from collections.abc import Iterable

import numpy as np

from binfeat._engine import expansions
from binfeat._engine.full_expansions import SUMS, add_full_expansions, map_rows
from binfeat._engine.policy import share_blocks
from binfeat._kernels.base import Kernel
from binfeat._machine.kernel_algebra.matrices import Frame, KernelMatrix, Linear, MappedRadialMatrix
from binfeat._machine.kernel_algebra.packed import pieces
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat.kernels import RBF, Laplacian, Matern

_KINDS: dict[type, int] = {
    Laplacian: expansions.LAPLACIAN,
    RBF: expansions.GAUSSIAN,
    Linear: expansions.LINEAR,
}
_MATERN = {1.5: expansions.MATERN_ONCE, 2.5: expansions.MATERN_TWICE}
_VALUES = 2**20  # of a kernel between two looks at signals, some milliseconds
_LEAST_ROWS, _MOST_ROWS = 64, 4096  # of a block

Places = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # starts, rows, coef, intercepts of `add_expansions`


class Coordinates:
    """What rows are to a sum of kernels in the engine.

    What a row is does not depend on the rows beside it, to the last bit.
    """

    def __init__(self, kernel: KernelSum, categorical: np.ndarray) -> None:
        self._categorical = categorical
        self.parts = [Part(*both, categorical) for both in zip(kernel.matrices, kernel.gammas, strict=True)]
        kinds = np.array([_kind(matrix.kernel) for matrix in kernel.matrices], np.int64)
        jumps = np.array([gamma[categorical] for gamma in kernel.gammas], np.float32)
        sizes = [-(-part.size // expansions.LANES) * expansions.LANES for part in self.parts]
        self._bounds = np.cumsum([0, *sizes])
        self.kernel = kinds, np.asarray(kernel.shares, np.float64), self._bounds, jumps

    def of(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates, those of each kernel filled up with zeros, and categories, of columns (n_inputs, n): rows."""
        rows = np.ascontiguousarray(X.T, dtype=np.float64)
        coordinates = np.zeros((len(rows), self._bounds[-1]), np.float32)
        for part, begin in zip(self.parts, self._bounds):
            coordinates[:, begin : begin + part.size] = part.of(rows)
        return coordinates, np.ascontiguousarray(X[self._categorical].T)


class Part:
    """The coordinates of one kernel: inputs that are numbers and count, scaled, and mapped if there is a map."""

    def __init__(self, matrix: KernelMatrix, gamma: np.ndarray, categorical: np.ndarray) -> None:
        scales = np.where(categorical, 0.0, gamma) ** (1 / matrix.kernel.power)
        self.inputs = np.flatnonzero(scales)
        self.scales = scales[self.inputs]
        self.linear_map = None
        if isinstance(matrix, MappedRadialMatrix):
            self.linear_map = np.ascontiguousarray(matrix.linear_map[self.inputs])
        self.size = self.inputs.size if self.linear_map is None else self.linear_map.shape[1]

    def of(self, rows: np.ndarray) -> np.ndarray:
        scaled = rows[:, self.inputs] * self.scales
        if self.linear_map is None:
            return scaled
        mapped = np.empty((len(scaled), self.size))
        map_rows(scaled, self.linear_map, mapped)
        return mapped


class Expansion:
    """What the rows of a row's cells say of it, for a few rows, as `add_expansions` takes it.

    Beside the compiled loop a call takes some tens of microseconds: one cell after the other is faster for many rows.
    """

    def __init__(self, kernel: KernelSum, categorical: np.ndarray, support: np.ndarray, places: Places) -> None:
        self._coordinates, self._places = Coordinates(kernel, categorical), places
        self._S, self._codes = self._coordinates.of(support)

    def __call__(self, X: np.ndarray, cells: np.ndarray, out: np.ndarray) -> None:
        """Add values for columns (n_inputs, n), whose cells in each tree are known, to an array (n, n_targets)."""
        Q, codes = self._coordinates.of(X)
        expansions.add_expansions(*self._coordinates.kernel, Q, self._S, codes, self._codes, cells, *self._places, out)


class FullExpansion:
    """What all rows of a machine say of others: the same for one row and many, and for any number of threads.

    A linear kernel's part is a linear function of a row. Rows of the machine without a coefficient are left out.
    """

    def __init__(
        self, kernel: KernelSum, categorical: np.ndarray, support: np.ndarray, coef: np.ndarray, frame: Frame
    ) -> None:
        self._frame, counts = frame, coef.any(axis=0)
        support, coef = support[:, counts], coef[:, counts]
        self._is_linear = any(isinstance(matrix.kernel, Linear) for matrix in kernel.matrices)
        self._slopes, curved = np.zeros((len(support), len(coef))), []
        for matrix, share, gamma in zip(kernel.matrices, kernel.shares, kernel.gammas, strict=True):
            if isinstance(matrix.kernel, Linear):
                slopes = np.where(categorical, 0.0, share * gamma)
                self._slopes += slopes[:, np.newaxis] * (support.astype(np.float64) @ coef.T)
            else:
                curved.append((matrix, share, gamma))
        matrices, shares, gammas = map(list, zip(*curved, strict=True))
        self._coordinates = Coordinates(KernelSum(matrices, shares, gammas), categorical)
        more = -coef.shape[1] % SUMS
        S, codes = self._coordinates.of(np.pad(support, ((0, 0), (0, more))))
        self._S, self._codes = np.ascontiguousarray(S.T), np.ascontiguousarray(codes.T)
        self._coef = np.ascontiguousarray(np.pad(coef, ((0, 0), (0, more))))

    def __call__(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Values (n, n_targets) of rows (n, n_inputs), float64."""
        out = np.zeros((len(X), len(self._coef)))
        step = int(np.clip(_VALUES // max(1, self._S.shape[1]), _LEAST_ROWS, _MOST_ROWS))

        def fill(places: Iterable[slice]) -> None:
            for place in places:
                self._add(X[place], out[place])

        places = pieces(len(X), step)
        if len(places) == 1:
            fill(places)
        else:
            share_blocks(fill, places, len(X) * self._S.shape[1], n_jobs)
        return out

    def _add(self, X: np.ndarray, out: np.ndarray) -> None:
        columns = self._frame.columns(X)
        Q, codes = self._coordinates.of(columns)
        add_full_expansions(*self._coordinates.kernel, Q, self._S, codes, self._codes, self._coef, out)
        if self._is_linear:
            linear = np.empty_like(out)
            map_rows(np.ascontiguousarray(columns.T, dtype=np.float64), self._slopes, linear)
            out += linear


def _kind(kernel: Kernel) -> int:
    """What stands for a kernel in the engine."""
    return _MATERN[kernel.nu] if isinstance(kernel, Matern) else _KINDS[type(kernel)]
