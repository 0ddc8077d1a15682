"""Selection of the number of grids, the penalty and the precision by the validation error."""

import logging
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from binfeat.linear.posterior import RidgePosterior
from binfeat.models.machines.growth import Growth, RidgeModel
from binfeat.models.machines.limits import FEATURES
from binfeat.models.problem import Problem
from binfeat.models.run import Phase, Run

_log = logging.getLogger("binfeat")

_DECADES = 10.0 ** np.arange(3)
_WORK = "the most work of a fit with grids"
_UP, _DOWN = np.sqrt(10), 1 / np.sqrt(10)


class Sizing:
    """Grow a ridge model until the gain is too small, or the budget of seconds or work is exhausted.

    Work is counted in products of a row's bins, of one grid, with coefficients, in all iterations of all solves.
    """

    model: RidgeModel  # the best so far, once `curve` is not empty

    def __init__(self, growth: Growth, problem: Problem, run: Run, alpha: float) -> None:
        self.growth, self.alpha, self._run = growth, alpha, run
        self._losses, self._negligible = problem.losses(problem.held_out), problem.negligible
        self._tunes_alpha, self._refits = run.settings.alpha is None, run.settings.refits
        self._work_left: float = run.limits.work_of_a_row + run.limits.work // growth.rows.n_rows
        self._alpha_falls = True  # whether a lower penalty did better after the grids before
        self._tol, self.status = FEATURES.tol, "converged"  # or "budget" or "stopped"
        self.curve: list[tuple[int, float]] = []  # number of grids and validation error after each batch
        self.posterior: RidgePosterior | None = None  # for noise of variance 1 of a row of mean weight
        self.variances: np.ndarray | float = 0.0  # of the validation predictions, in units of the noise variance
        self._grid_seconds = self._solve_seconds = 0.0  # of one more grid, and of the last solve

    @property
    def error(self) -> float:
        return self.curve[-1][1]

    def run_without_grids(self) -> None:
        """Solve for Fourier features."""
        self._add_to_curve()
        self._tune((_UP, _DOWN))
        self._stopped()

    def run(self, n_grids: int, most: int | None = None) -> None:
        """Grow from the first number of grids to at most another; None is no further."""
        while True:
            self._add_grids(n_grids)
            if self._stopped() or most is None:
                return
            wanted = _grids_wanted(self.curve, self._negligible)
            if wanted == n_grids:
                return
            limits = {"max_bytes" if most < self._run.settings.max_grids else "max_grids": most, **self._affordable()}
            limit = min(limits, key=limits.__getitem__)
            n_grids = min(wanted, limits[limit])
            if n_grids < FEATURES.least_step * self.growth.n_grids:
                self.status = "budget"
                self._run.note("limit", limit, self.error)
                return

    def learn_posterior(self, n_samples: int, mean_weight: float, seed: int) -> None:
        """Draw samples of the coefficients, for standard deviations of predictions."""
        rng = np.random.default_rng([seed, n_samples])
        posterior, variances = self.growth.posterior(self.alpha, n_samples, FEATURES.max_iter, rng)
        self.posterior, self.variances = posterior.times(mean_weight), mean_weight * variances

    def refit(self, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Add the validation rows, given their targets and weights; validation predictions stay."""
        self.growth.add_held_out_rows(Y, weights)
        self.model = replace(self._solved(self.alpha, self._tol), predictions=self.model.predictions)

    def _solved(self, alpha: float, tol: float) -> RidgeModel:
        start = self._run.clock.used
        model = self.growth.solve(alpha, tol, FEATURES.max_iter)
        self._solve_seconds = self._run.clock.used - start
        self._work_left -= self.growth.n_iter * self.growth.n_grids
        return model

    def _add_to_curve(self) -> None:
        model = self._solved(self.alpha, self._tol)
        self.model, error = model, self._losses(model.predictions).mean()
        self.curve.append((self.growth.n_grids, error))

    def _add_grids(self, n_grids: int) -> None:
        start, before = self._run.clock.used, self.growth.n_grids
        self.growth.grow(n_grids)
        self._grid_seconds = (self._run.clock.used - start) / (n_grids - before)
        self._add_to_curve()
        if len(self.curve) == 1:
            self._tune((_UP, _DOWN))
            self._try_fine_solution()
        elif self._alpha_falls:  # more grids take a lower penalty
            alpha = self.alpha
            self._tune((_DOWN,))
            self._alpha_falls = self.alpha < alpha
        _log.info("%d grids: validation error %.4g", *self.curve[-1])

    def _stopped(self) -> bool:
        if not self._run.step():
            self.status = "stopped"
        return self.status == "stopped"

    def _tune(self, factors: Iterable[float]) -> None:
        """Solve with other penalties while the validation error falls."""
        for factor in factors if self._tunes_alpha else ():
            tried = 0
            while FEATURES.least_alpha <= self.alpha * factor <= FEATURES.most_alpha and self._may_try():
                tried += 1
                if not self._gains_by(self.alpha * factor, self._tol):
                    break
            if tried > 1:
                break

    def _try_fine_solution(self) -> None:
        """A solver that ends early shrinks as a penalty does; where rows are few, see which of the two does better."""
        if self.growth.rows.n_rows > FEATURES.precise_rows:
            return
        for alpha in self.alpha * (_DECADES if self._tunes_alpha else _DECADES[:1]):
            least, tol = FEATURES.precise_gain if self._tol == FEATURES.tol else 0.0, FEATURES.precise_tol
            if not self._may_try() or (not self._gains_by(alpha, tol, least) and self._tol == tol):
                break
        if self._tol == FEATURES.precise_tol:
            self._tune((_UP, _DOWN))

    def _gains_by(self, alpha: float, tol: float, least: float = 0.0) -> bool:
        """Try another penalty or tolerance; keep it if the validation error falls by a minimum share."""
        n_grids, before = self.curve[-1]
        model = self._solved(alpha, tol)
        error = self._losses(model.predictions).mean()
        gains = error < before - least * abs(before)
        if gains:
            self.model, self.alpha, self._tol, self.curve[-1] = model, alpha, tol, (n_grids, error)
        return bool(gains)

    def _may_try(self) -> bool:
        """Return True if another solve may help, and there is time for it."""
        seconds = (1 + FEATURES.refit_solves * self._refits) * self._solve_seconds
        return self.error > self._negligible and self._run.may_continue(Phase.SOLUTION, seconds)

    def _affordable(self) -> dict[str, int]:
        """Grids in all that can be solved for and refitted with the work left, and in the seconds left."""
        growth, left, refit = self.growth, self._run.clock.left_of(Phase.SOLUTION), FEATURES.refit_solves * self._refits
        by_work = int(self._work_left / ((1 + refit) * growth.n_iter))
        if np.isinf(left):
            return {_WORK: by_work}
        grid, solve = self._grid_seconds, (2 + refit) * self._solve_seconds / growth.n_grids
        return {_WORK: by_work, "max_seconds": int((left + grid * growth.n_grids) / max(grid + solve, 1e-9))}


def _grids_wanted(curve: list[tuple[int, float]], negligible: float) -> int:
    """Grids after which a doubling would gain too little, by the law error = a + b / grids of the last two."""
    now, error = curve[-1]
    if len(curve) < 2:
        return 2 * now
    before, earlier = curve[-2]
    slope = (earlier - error) / (1 / before - 1 / now)
    enough = max(FEATURES.enough_gain * abs(error), negligible)  # minus a score is often below zero
    if slope / (2 * now) <= enough:
        return now
    wanted = 2 ** np.ceil(np.log2(slope / max(2 * enough * now, np.finfo(float).tiny))) * now
    return int(np.clip(wanted, 2 * now, 4 * now))
