"""How a kernel machine sets itself up: each decision in turn, on held-out rows."""

import logging
import time

import numpy as np

from binfeat._grids import Grids
from binfeat._growth import Growth
from binfeat._scaling import Quantiles
from binfeat._solver.gram import gram_system
from binfeat._validation import check_gamma
from binfeat.fourier import RandomFourier
from binfeat.kernels import GammaPitch, Laplacian, binning_kernel
from binfeat.relevance import ALPHAS, NEAR, Sample, WidthSearch, exponent_shares, mean_distances, surely_less

_log = logging.getLogger("binfeat")
_clock = time.monotonic

_SAMPLE_ROWS = 40_000  # rows that widths are learned from
_LATE_ROWS = 100_000  # rows of the last rounds
_SAMPLE_OUT = 10_000
_ROW_GRIDS = 2_000_000  # of a sample: few rows need many grids to tell two widths apart
_SAMPLE_GRIDS = (50, 400)
_ROUNDS, _LATE_ROUNDS, _TRIAL_ROUNDS = 12, 4, 3
_FEW_GRIDS = 20  # enough to compare penalties and overall widths on all rows
_FACTORS = (1.0, 1.4, 2.0, 2.8)  # more rows take finer grids
_MOST_ENTRIES = 160_000_000  # rows times grids: half a minute on two cores
_ENOUGH = 0.01  # a doubling of the grids that gains less than this share of the error is the last
_TOL, _MAX_ITER = 1e-2, 200
_LEAST_ALPHA, _MOST_ALPHA = 1e-4, 1e4
_N_WAVES, _WAVES_BYTES = 1024, 2**30  # Fourier features, and how much they may take to be tried
_WAVE_FACTORS = (0.3, 0.6, 1.0)  # of their widths to those of the grids
_SEARCH_SHARE = 1 / 3  # of the time, for the widths


class Budget:
    """Seconds that are left; None is as many as it takes."""

    def __init__(self, seconds):
        self._start, self._seconds = _clock(), np.inf if seconds is None else seconds

    @property
    def used(self):
        return _clock() - self._start

    def allows(self, seconds, share=1.0):
        """Whether so many seconds more stay within a share of the budget."""
        return self.used + seconds <= share * self._seconds


class Decisions:
    """What was decided, with the held-out error that followed and the seconds since the start."""

    def __init__(self, budget):
        self._budget, self.rows = budget, []

    def note(self, what, choice, error):
        self.rows.append((what, str(choice), float(error), self._budget.used))
        _log.info("%s: %s, held-out error %.4g after %.1f s", what, choice, error, self._budget.used)

    def table(self):
        """Structured array with fields what, choice, error and seconds."""
        kinds = [("what", "U24"), ("choice", "U48"), ("error", np.float64), ("seconds", np.float64)]
        return np.array(self.rows, dtype=kinds)


def _mean_error(trial):
    """Mean of the held-out errors that a trial begins with."""
    return trial[0].mean()


class Training:
    """One fit of a kernel machine.

    Parameters
    ----------
    machine : KernelMachineRegressor or KernelMachineClassifier
        Read for its parameters only.
    X, Y, weights : ndarray of shape (n_rows, n_inputs), (n_rows, n_targets), and (n_rows, 1) or None
    train, held_out : ndarray of int
    judge_of : callable
        From numbers of held-out rows to a function from predictions for them to their errors.
    columns : Columns
        Which inputs are categorical, and which column of the table each comes from.
    seed : int
    monitor : callable
        Called between steps; False ends the fit.
    """

    def __init__(self, machine, X, Y, weights, train, held_out, judge_of, columns, seed, monitor):
        self._machine, self._judge_of, self._columns = machine, judge_of, columns
        self._categorical = columns.categorical
        self._seed, self._monitor, self._n_jobs = seed, monitor, machine.n_jobs
        self._train, self._held_out = train, held_out
        self._X, self._Y, self._weights = X, Y, weights
        self.budget = Budget(machine.max_seconds)
        self.decisions = Decisions(self.budget)
        self.quantiles = self.growth = self.held_out_predictions = self.waves = None
        self._bins_too = True
        self.width_errors, self.width_gammas = np.empty(0), np.empty((0, X.shape[1]))
        self.status = "converged"
        self.curve = []
        self._penalty_factors = (np.sqrt(10), 1 / np.sqrt(10)) if machine.alpha == "auto" else ()

    def run(self):
        """All decisions in turn."""
        self._choose_widths()
        if self.width_errors.size and self._bins_too and len(self._train) > 2 * _SAMPLE_ROWS:
            self._choose_factor()
        self._grow()
        self.decisions.note("grids", self.growth.n_grids, self.curve[-1][1])
        self.decisions.note("penalty", f"{self.alpha:.3g}", self.curve[-1][1])
        self.held_out_predictions = self.growth.held_out()
        if self._machine.refit and self.status != "stopped":
            self._refit()

    # Widths, pitch law and scaling, on a sample of the rows.

    def _sample(self, X, kernel, n_rows):
        n_rows = min(n_rows, len(self._train))
        train = self._train[:n_rows]
        out = self._held_out[:_SAMPLE_OUT]
        weights = None if self._weights is None else self._weights[train]
        n_grids = int(np.clip(_ROW_GRIDS // n_rows, *_SAMPLE_GRIDS))
        options = {"categorical": self._categorical, "kernel": kernel, "n_grids": n_grids, "seed": self._seed}
        judge = self._judge_of(out)
        return Sample(X[train], self._Y[train], weights, X[out], judge, **options, n_jobs=self._n_jobs)

    def _choose_widths(self):
        machine = self._machine
        kernel = GammaPitch(8.0) if machine.kernel == "auto" else binning_kernel(machine.kernel)
        if machine.scaling == "quantile":
            self.quantiles, self._X = self._ranks()
        if isinstance(machine.gamma, str) and machine.gamma == "learn":
            search, kernel = self._learn_widths(kernel)
        else:
            search = WidthSearch(self._sample(self._X, kernel, _SAMPLE_ROWS), self._seed)
            search.fits = [search.sample.fit(self._given_widths(), ALPHAS)]
        self.gamma, self.kernel, self.alpha = search.best.gamma, kernel, self._penalty_or(search.best.alpha)
        self._choose_features(search)

    def _learn_widths(self, kernel):
        search = self._search(self._X, kernel, _ROUNDS)
        if self._machine.scaling == "auto" and self.budget.allows(self.budget.used, _SEARCH_SHARE):
            search = self._try_quantiles(search, kernel)
        search = self._late_rounds(search, kernel)
        error = search.best.error
        if self._machine.kernel == "auto":
            kernel, error = self._try_laplacian(search, kernel)
        learned = search.learned()
        self.width_errors, self.width_gammas = learned.errors, learned.gammas
        self.decisions.note("widths", f"{len(search.fits) - 1} rounds", search.best.error)
        self.decisions.note("kernel", kernel, error)
        return search, kernel

    def _search(self, X, kernel, rounds, n_rows=None, start=None):
        search = WidthSearch(self._sample(X, kernel, n_rows or _SAMPLE_ROWS), self._seed, start, self._scaled)
        return search.run(rounds, self._may_search)

    def _may_search(self):
        return self._monitor() and self.budget.allows(0.0, _SEARCH_SHARE)

    @property
    def _scaled(self):
        return self._machine.scaling is not None

    @property
    def features(self):
        """What the machine is built on."""
        if self.waves is None:
            return "binning"
        return "hybrid" if self._bins_too else "fourier"

    @property
    def relevances(self):
        """Share of each input in the kernel's mean exponent."""
        rng = np.random.default_rng(self._seed)
        distance = mean_distances(self._X[self._train[:_SAMPLE_ROWS]], self._categorical, rng)
        return exponent_shares(self.gamma, distance)

    def _ranks(self):
        """Quantiles of the training rows, and the ranks of all rows."""
        quantiles = Quantiles.fit(self._X[self._train], self._categorical)
        return quantiles, quantiles.transform(self._X)

    def _try_quantiles(self, search, kernel):
        """A few rounds on ranks, and more of them where these do better than all rounds before."""
        quantiles, X = self._ranks()
        trial = self._search(X, kernel, _TRIAL_ROUNDS)
        better = surely_less(trial.best.errors, search.best.errors)
        self.decisions.note("scaling", "quantile" if better else "standard", (trial if better else search).best.error)
        if not better:
            return search
        self.quantiles, self._X = quantiles, X
        return self._search(X, kernel, _ROUNDS, start=trial.best)

    def _late_rounds(self, search, kernel):
        if len(self._train) <= _SAMPLE_ROWS or not self._may_search():
            return search
        return self._search(self._X, kernel, _LATE_ROUNDS, _LATE_ROWS, start=search.best)

    def _try_laplacian(self, search, kernel):
        other = search.sample.of_kernel(Laplacian())
        rival = other.fit(search.best.gamma, search.best.alpha * NEAR)
        better = surely_less(rival.errors, search.best.errors)
        return (Laplacian(), rival.error) if better else (kernel, search.best.error)

    def _choose_features(self, search):
        """Fourier features of the Gaussian kernel with the same widths: instead of bins, or beside them."""
        wanted = self._machine.features
        too_large = 8 * _N_WAVES * len(self._X) > _WAVES_BYTES
        if self._categorical.any() and wanted in ("fourier", "hybrid"):
            raise ValueError(f"features={wanted!r} needs numbers only, and X has categorical inputs; use 'binning'.")
        if wanted == "binning" or self._categorical.any() or (wanted == "auto" and too_large):
            return
        if not search.best.gamma.any():  # no input varies: a constant, of whatever features
            return
        best, choice = search.best.errors, "binning"
        trials = [self._try_waves(search, factor) for factor in _WAVE_FACTORS]
        errors, alpha, waves = min(trials, key=_mean_error)
        if wanted == "fourier" or (wanted == "auto" and surely_less(errors, best)):
            best, choice, self.waves, self.alpha = errors, "fourier", waves, self._penalty_or(alpha)
        if wanted != "fourier":
            errors, alpha = self._try_hybrid(search, waves)
            if wanted == "hybrid" or surely_less(errors, best):
                best, choice, self.waves, self.alpha = errors, "hybrid", waves, self._penalty_or(alpha)
        self._bins_too = choice != "fourier"
        self.decisions.note("features", choice, best.mean())

    def _try_waves(self, search, factor):
        """Held-out errors of the best penalty for Fourier features, that penalty, and the map."""
        sample = search.sample
        gamma = (factor * search.best.gamma) ** 2
        waves = RandomFourier(gamma=gamma, n_components=_N_WAVES, random_state=self._seed, n_jobs=self._n_jobs)
        system = gram_system(waves.fit_transform(sample.X), sample.Y, sample.weights, fit_intercept=True)
        out, trials = waves.transform(sample.X_out), []
        results = system.solve([np.full(sample.Y.shape[1], alpha) for alpha in ALPHAS])
        for alpha, result in zip(ALPHAS, results, strict=True):
            errors = sample.judge(out @ result.solution + system.intercept(result.solution))
            trials.append((errors, alpha, waves))
        return min(trials, key=_mean_error)

    def _try_hybrid(self, search, waves):
        sample, trials = search.sample, []
        growth = Growth(
            sample.X, sample.Y, sample.weights, sample.X_out, lambda n: search.best.grids[:n], waves, self._n_jobs
        )
        growth.grow(sample.n_grids)
        for alpha in search.best.alpha * np.array([1.0, np.sqrt(10), 10.0]):
            growth.solve(alpha, _TOL, _MAX_ITER)
            trials.append((sample.judge(growth.held_out()), alpha))
        return min(trials, key=_mean_error)

    def _penalty_or(self, alpha):
        return float(alpha) if self._machine.alpha == "auto" else float(self._machine.alpha)

    def _given_widths(self):
        """Widths that are not learned: one over inputs times standard deviation, or the caller's."""
        machine = self._machine
        if isinstance(machine.gamma, str):
            std = np.where(self._categorical, 1.0, self._X.std(axis=0) if self._scaled else self._X.std())
            return np.divide(1.0, std * std.size, out=np.zeros_like(std), where=std > 0)
        gamma = check_gamma(machine.gamma, machine.n_features_in_)
        return gamma[self._columns.source]

    # Overall width, on all training rows.

    def _choose_factor(self):
        """Scale the widths for more rows than the sample's, which take finer grids."""
        best = None
        for factor in _FACTORS:
            growth = self._new_growth(self.gamma * factor)
            growth.grow(_FEW_GRIDS)
            growth.solve(self.alpha, 3 * _TOL, _MAX_ITER)
            error = self._judge(growth.held_out()).mean()
            if best is not None and error >= best[0]:
                break
            best = error, factor
        self.gamma = self.gamma * best[1]
        self.decisions.note("widths of all rows", f"{best[1]:g} times the sample's gamma", best[0])

    @property
    def _judge(self):
        return self._judge_of(self._held_out)

    def _new_growth(self, gamma):
        weights = None if self._weights is None else self._weights[self._train]
        X, X_out = self._X[self._train], self._X[self._held_out]

        def draw(n_grids):
            return Grids.draw(self.kernel, gamma, n_grids, self._seed, self._categorical)

        return Growth(X, self._Y[self._train], weights, X_out, draw, self.waves, self._n_jobs)

    # Size.

    def _grow(self):
        """Add grids until that gains too little, or the budget ends."""
        self.growth = self._new_growth(self.gamma)
        if not self._bins_too:
            self.curve.append((0, self._try_penalties(self._solve_for(self.alpha))))
            return
        n_grids, most = self._first_and_most_grids()
        while True:
            start = self.budget.used
            self.growth.grow(n_grids)
            error = self._solve_for(self.alpha)
            seconds = self.budget.used - start
            error = self._try_penalties(error)
            self.curve.append((n_grids, error))
            _log.info("%d grids: held-out error %.4g", n_grids, error)
            if not self._monitor():
                self.status = "stopped"
                return
            wanted = self._grids_wanted(most)
            if wanted == n_grids:
                return
            # A batch costs as its grids do, and the refit about as much as the last batch.
            affordable = next((k for k in (wanted, 2 * n_grids) if self._can_afford(k, seconds)), None)
            if affordable is None:
                self.status = "budget"
                return
            n_grids = min(affordable, wanted)

    def _can_afford(self, n_grids, seconds):
        return self.budget.allows(2 * seconds * n_grids / self.growth.n_grids)

    def _grids_wanted(self, most):
        """Grids after which a doubling would gain too little, by the law error = a + b / grids of the last two."""
        now, error = self.curve[-1]
        if now == most or len(self.curve) < 2:
            return min(2 * now, most)
        before, earlier = self.curve[-2]
        slope = (earlier - error) / (1 / before - 1 / now)
        enough = _ENOUGH * abs(error)  # minus a score is often below zero
        if slope / (2 * now) <= enough:
            return now
        wanted = 2 ** np.ceil(np.log2(slope / max(2 * enough * now, np.finfo(float).tiny))) * now
        return int(min(np.clip(wanted, 2 * now, 4 * now), most))

    def _first_and_most_grids(self):
        machine = self._machine
        if machine.n_grids != "auto":
            return machine.n_grids, machine.n_grids
        first, largest = _SAMPLE_GRIDS
        most = min(machine.max_grids, max(largest, _MOST_ENTRIES // len(self._train)))
        if machine.max_bytes is not None:  # codes of 4 bytes, as much again while they grow
            most = int(np.clip(machine.max_bytes // (8 * len(self._X)), 1, most))
        return min(int(np.clip(_ROW_GRIDS // len(self._train), first, largest)), most), most

    def _try_penalties(self, error):
        """Solve with other penalties as long as the held-out error falls: more grids take lower ones."""
        tried = 0
        for factor in self._penalty_factors:
            tried = 0
            while _LEAST_ALPHA <= self.alpha * factor <= _MOST_ALPHA:
                kept, tried = self.growth.coefficients, tried + 1
                other = self._solve_for(self.alpha * factor)
                if other >= error:
                    self.growth.coefficients = kept
                    break
                error, self.alpha = other, self.alpha * factor
            if tried > 1:
                break
        self._penalty_factors = (1 / np.sqrt(10),) if self._penalty_factors and (tried > 1 or not self.curve) else ()
        return error

    def _solve_for(self, alpha):
        """Held-out error with this penalty."""
        self.growth.solve(alpha, _TOL, _MAX_ITER)
        return self._judge(self.growth.held_out()).mean()

    def _refit(self):
        """Take the held-out rows in."""
        weights = None if self._weights is None else self._weights[self._held_out]
        self.growth.add_held_out_rows(self._Y[self._held_out], weights)
        self.growth.solve(self.alpha, _TOL, _MAX_ITER)
