"""Length scales, shares of kernels and penalty, learned from rows that are as dense as all rows are.

The search before knew samples of the rows, which take wider kernels.
"""

from dataclasses import replace

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat._threads import side_by_side
from binfeat.length_scales.adam import Adam
from binfeat.length_scales.kernel_sum import KernelSum
from binfeat.length_scales.leave_one_out import LeaveOneOut, SingularKernelError, Weights, leave_one_out
from binfeat.length_scales.matrices import Frame
from binfeat.length_scales.search import MOST_ALPHA
from binfeat.models.kernel_algebra.sum_slopes import SumWithSlopes

_RATE, _LAST_PART = 0.15, 0.1  # rate of Adam, and its final share
_ALPHA_RATE = 2.0  # relative to the rate of the others
_PRIOR = 50.0  # strength of the prior on deviations of log gammas, in rows
_LEAST_WORTH = 0.05  # of a kernel that is kept

Cell = tuple[np.ndarray, np.ndarray, Weights]  # columns (n_inputs, n), targets (n, n_targets), weights


class CellSearch:
    """Adam on the logarithms of the gammas of all parts of a kernel, of their shares, and of the penalty.

    A step goes down the mean slope of the logarithms of the leave-one-out errors of some sets of rows. The gammas of a
    kernel have a factor in common, which moves next to them.
    """

    def __init__(
        self,
        kernel: KernelSum,
        frame: Frame,
        categorical: np.ndarray,
        *,
        n_rows: int,
        least_alpha: float,
        learns_gamma: bool,
        learns_alpha: bool,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        parts = kernel.parts
        self._start_kernel, self._frame, self._n_jobs, self._seed = kernel, frame, n_jobs, seed
        self._least_alpha, self._prior = least_alpha, 2 * _PRIOR / n_rows
        self._matrices, gammas = kernel.matrices(categorical, 1), kernel.gammas(frame)
        self._live = gammas > 0
        self._moves = learns_gamma & self._live
        self._learns_shares, self._learns_alpha = learns_gamma and len(parts) > 1, learns_alpha
        self._logs = np.log(np.where(self._live, gammas, 1.0))  # of gamma, (n_parts, n_inputs)
        self._start = self._logs.copy()
        self._log_shares = np.log([part.share for part in parts])
        self._log_alpha = float(np.log(kernel.alpha))
        shapes = self._logs.shape, (len(parts), 1), (len(parts),), ()
        self._of_gammas, self._of_factors, self._of_shares, self._of_alpha = map(Adam, shapes)
        self._lanes: list[tuple[SumWithSlopes, Scratch]] = []
        self.error = np.nan  # of the rows of the last step

    @property
    def alpha(self) -> float:
        return float(np.exp(self._log_alpha))

    @property
    def _gammas(self) -> np.ndarray:
        return np.exp(self._logs) * self._live

    @property
    def _shares(self) -> np.ndarray:
        shares = np.exp(self._log_shares)
        return shares / shares.sum()

    @property
    def kernel(self) -> KernelSum:
        """The kernel after the steps so far, of the parts that are worth their time."""
        known = self._start_kernel
        parts = [
            replace(part, base=gamma / self._frame.gamma(part.kernel, 1.0), factor=1.0, share=float(share))
            for part, gamma, share in zip(known.parts, self._gammas, self._shares, strict=True)
        ]
        main, worths = replace(known, parts=parts).main, self._worths
        kept = [part for part, own in zip(parts, worths, strict=True) if part is main or own >= _LEAST_WORTH]
        total = sum(part.share for part in kept)
        return replace(known, parts=[replace(part, share=part.share / total) for part in kept], alpha=self.alpha)

    @property
    def _worths(self) -> np.ndarray:
        """Return the share of each kernel in the differences of rows."""
        spreads = self._shares * np.sum([matrix.spreads for matrix, _ in self._lanes], axis=0)
        return spreads / spreads.sum() if self._lanes and spreads.sum() > 0 else self._shares

    def step(self, sets: list[Cell], progress: float, number: int) -> None:
        """A step by these sets of rows, when this share of the steps is done."""
        known = [own for own in self._left_out(sets, number) if own.error > 0]
        if not known:
            return
        self.error = float(np.mean([own.error for own in known]))
        rate = _RATE * (1 - (1 - _LAST_PART) * progress)
        slopes = np.mean([own.slopes / own.error for own in known], axis=0)
        by_gamma, by_share = slopes[: self._logs.size].reshape(self._logs.shape), slopes[self._logs.size :]
        by_gamma = np.where(self._moves, by_gamma + self._prior_slopes(), 0.0)
        factors = self._of_factors.step(by_gamma.sum(axis=1, keepdims=True))
        self._logs -= rate * (self._of_gammas.step(by_gamma) + factors * self._moves)
        if self._learns_shares:
            self._log_shares -= rate * self._of_shares.step(by_share - self._shares * by_share.sum())
        if self._learns_alpha:
            slope = float(np.mean([own.alpha_slope / own.error for own in known]))
            moved = self._log_alpha - _ALPHA_RATE * rate * float(self._of_alpha.step(slope))
            self._log_alpha = float(np.clip(moved, np.log(self._least_alpha), np.log(MOST_ALPHA)))

    def _left_out(self, sets: list[Cell], number: int) -> list[LeaveOneOut]:
        """Errors and slopes of each set, side by side."""
        while len(self._lanes) < len(sets):
            self._lanes.append((SumWithSlopes(self._matrices), Scratch()))
        parameters = np.append(self._gammas.ravel(), self._shares)

        def look(lane: int) -> LeaveOneOut | None:
            rng = np.random.default_rng([self._seed, number, lane])
            matrix, scratch = self._lanes[lane]
            try:
                return leave_one_out(matrix, *sets[lane], parameters, self.alpha, rng, scratch)
            except SingularKernelError:
                return None

        found = side_by_side(look, range(len(sets)), self._n_jobs)
        return [left_out for left_out in found if left_out is not None]

    def _prior_slopes(self) -> np.ndarray:
        moved = np.where(self._moves, self._logs - self._start, 0.0)
        means = moved.sum(axis=1, keepdims=True) / np.maximum(1, self._moves.sum(axis=1, keepdims=True))
        return self._prior * (moved - means)
