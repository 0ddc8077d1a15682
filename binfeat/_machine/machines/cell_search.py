"""Length scales and penalty for cells of rows: as dense as rows are, where the search before knew a sample of them."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from binfeat._engine.policy import side_by_side
from binfeat._machine.fitted.kernel_function import Part, matrices_of
from binfeat._machine.kernel_algebra.leave_one_out import LeaveOneOut, SingularKernelError, Weights, leave_one_out
from binfeat._machine.kernel_algebra.matrices import Frame
from binfeat._machine.kernel_algebra.sum_slopes import SumWithSlopes
from binfeat._machine.search.adam import Adam
from binfeat._rows.rows import Scratch

_LEAST_ALPHA, _MOST_ALPHA = 1e-4, 1e3
_RATE, _LAST_PART = 0.15, 0.1  # of Adam, and what is left of it at the end

Cell = tuple[np.ndarray, np.ndarray, Weights]  # columns (n_inputs, n), targets (n, n_targets), weights


class CellSearch:
    """Adam on the logarithms of the gammas of all parts of a kernel, and of the penalty.

    A step goes down the mean slope of the logarithms of the leave-one-out errors of some cells.
    """

    def __init__(
        self,
        parts: list[Part],
        alpha: float,
        frame: Frame,
        categorical: np.ndarray,
        *,
        learns_gamma: bool = True,
        learns_alpha: bool = True,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self._parts, self._frame, self._n_jobs, self._seed = parts, frame, n_jobs, seed
        self._shares = [part.share for part in parts]
        self._matrices = matrices_of(parts, categorical, 1)
        gammas = np.array([frame.gamma(part.scales.kernel, part.gamma) for part in parts]).ravel()
        self._moves = np.append(learns_gamma & (gammas > 0), learns_alpha)
        self._theta = np.log(np.append(np.where(gammas > 0, gammas, 1.0), alpha))
        self._live, self._adam = gammas > 0, Adam(self._theta.shape)
        self._lanes: list[tuple[SumWithSlopes, Scratch]] = []

    @property
    def alpha(self) -> float:
        return float(np.exp(self._theta[-1]))

    @property
    def parts(self) -> list[Part]:
        """The parts of the kernel with the gammas after the steps so far."""
        gammas = self._gamma.reshape(len(self._parts), -1)
        parts = []
        for part, gamma in zip(self._parts, gammas, strict=True):
            own = gamma / self._frame.gamma(part.scales.kernel, 1.0)
            parts.append(replace(part, scales=replace(part.scales, gamma=own), factor=1.0))
        return parts

    @property
    def _gamma(self) -> np.ndarray:
        return np.exp(self._theta[:-1]) * self._live

    def step(self, cells: list[Cell], progress: float, number: int) -> None:
        """A step by these cells, when this share of the steps is done."""
        while len(self._lanes) < len(cells):
            self._lanes.append((SumWithSlopes(self._matrices, self._shares), Scratch()))
        found: dict[int, LeaveOneOut] = {}

        def look(lane: int) -> None:
            rng = np.random.default_rng([self._seed, number, lane])
            with suppress(SingularKernelError):
                matrix, scratch = self._lanes[lane]
                found[lane] = leave_one_out(matrix, *cells[lane], self._gamma, self.alpha, rng, scratch)

        side_by_side(look, range(len(cells)), self._n_jobs)
        slopes = [_log_slopes(found[lane]) for lane in sorted(found) if found[lane].error > 0]
        if slopes:
            rate = _RATE * (1 - (1 - _LAST_PART) * progress)
            self._theta -= rate * self._adam.step(np.where(self._moves, np.mean(slopes, axis=0), 0.0))
            if self._moves[-1]:
                self._theta[-1] = np.clip(self._theta[-1], np.log(_LEAST_ALPHA), np.log(_MOST_ALPHA))


def _log_slopes(left_out: LeaveOneOut) -> np.ndarray:
    return np.append(left_out.slopes, left_out.alpha_slope) / left_out.error
