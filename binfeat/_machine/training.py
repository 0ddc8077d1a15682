"""How a kernel machine sets itself up: each decision in turn, on held-out rows."""

from dataclasses import dataclass

import numpy as np

from binfeat._binning.grids import Grids
from binfeat._common.validation import check_gamma
from binfeat._linear.gram import gram_system
from binfeat._machine.budget import Budget, Decisions
from binfeat._machine.growth import Growth
from binfeat._machine.input_scalers import SCALERS, Arcsinh
from binfeat._machine.sizing import Sizing
from binfeat.fourier import RandomFourier
from binfeat.kernels import GammaPitch, Laplacian, Skip, binning_kernel
from binfeat.relevance import ALPHAS, NEAR, Sample, WidthSearch, exponent_shares, mean_distances, surely_less

_SAMPLE_ROWS = 40_000  # rows that widths are learned from
_LATE_ROWS = 100_000  # rows of the last rounds
_SAMPLE_OUT = 10_000
_ROW_GRIDS = 2_000_000  # of a sample: few rows need many grids to tell two widths apart
_SAMPLE_GRIDS = (50, 400)
_ROUNDS, _LATE_ROUNDS, _TRIAL_ROUNDS = 12, 4, 3
# The first for the search, the others tried after it. Few rows tell little of how many inputs interact.
_KERNELS = GammaPitch(np.inf), GammaPitch(8.0), Skip(GammaPitch(8.0), 0.2)
_FEW_ROWS_KERNELS = Skip(GammaPitch(8.0), 0.2), Skip(Laplacian(), 0.2), GammaPitch(8.0), Laplacian()
_FEW_GRIDS = 20  # enough to compare penalties and overall widths on all rows
_FACTORS = (1.0, 1.4, 2.0, 2.8)  # more rows take finer grids
_MOST_ENTRIES = 160_000_000  # rows times grids: half a minute on two cores
_TOL, _MAX_ITER = 1e-2, 200
_N_WAVES, _WAVES_BYTES = 1024, 2**30  # Fourier features, and how much they may take to be tried
_WAVE_FACTORS = (0.3, 0.6, 1.0)  # of their widths to those of the grids
_SEARCH_SHARE = 1 / 3  # of the time, for the widths


@dataclass(frozen=True)
class _Trial:
    """Features that were tried on the sample: their map, the best penalty, and the held-out errors with it."""

    features: str
    errors: np.ndarray
    alpha: float
    waves: RandomFourier | None

    @property
    def error(self):
        return self.errors.mean()


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

    _may_mix = True  # bins and waves

    def __init__(self, machine, X, Y, weights, train, held_out, judge_of, columns, seed, monitor):
        self._machine, self._judge_of, self._columns = machine, judge_of, columns
        self._categorical = columns.categorical
        self._seed, self._monitor, self._n_jobs = seed, monitor, machine.n_jobs
        self._train, self._held_out = train, held_out
        self._table, self._X, self._Y, self._weights = X, X, Y, weights
        self.budget = Budget(machine.max_seconds)
        self.decisions = Decisions(self.budget)
        self.scaler = self.sizing = self.held_out_predictions = self.waves = None
        self.scaling, self.features = (
            "standard" if machine.scaling == "auto" else str(machine.scaling).lower(),
            "binning",
        )
        self.width_errors, self.width_gammas = np.empty(0), np.empty((0, X.shape[1]))
        self._hurried, self._rounds = False, []

    def run(self):
        """All decisions in turn."""
        self._choose_widths()
        if self.width_errors.size and self._bins_too and len(self._train) > 2 * _SAMPLE_ROWS:
            self._choose_factor()
        self._size()
        if self._machine.refit and self.status != "stopped":
            weights = None if self._weights is None else self._weights[self._held_out]
            self.sizing.refit(self._Y[self._held_out], weights)

    @property
    def status(self):
        """How the fit ended, as far as it is known."""
        ended = self.sizing.status
        return "budget" if ended == "converged" and self._hurried else ended

    @property
    def relevances(self):
        """Share of each input in the kernel's mean exponent."""
        rng = np.random.default_rng(self._seed)
        distance = mean_distances(self._X[self._train[:_SAMPLE_ROWS]], self._categorical, rng)
        return exponent_shares(self.gamma, distance)

    # Scaling, widths, and pitch law, on a sample of the rows.

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
        kernel = self._kernels()[0] if machine.kernel == "auto" else binning_kernel(machine.kernel)
        first, *others = self._scalings()
        self._take(first, *self._scaled_by(first))
        if isinstance(machine.gamma, str) and machine.gamma == "learn":
            search = self._learn_widths(kernel, others)
        else:
            search = WidthSearch(self._sample(self._X, kernel, _SAMPLE_ROWS), self._seed)
            search.fits = [search.sample.fit(self._given_widths(), self._penalties(ALPHAS))]
        self.gamma, self.kernel, self.alpha = search.best.gamma, search.sample.kernel, search.best.alpha
        self._choose_features(search)

    def _learn_widths(self, kernel, scalings):
        search = self._search_scaled(kernel, scalings)
        if scalings:
            self.decisions.note("scaling", self.scaling, search.best.error)
        search = self._late_rounds(search, kernel)
        if self._machine.kernel == "auto":
            search = self._try_kernels(search)
            self.decisions.note("kernel", search.sample.kernel, search.best.error)
        self._keep_rounds(search)
        self.width_errors, self.width_gammas = (np.array(each) for each in zip(*self._rounds, strict=True))
        self.decisions.note("widths", f"{len(self._rounds) - 1} rounds", search.best.error)
        return search

    def _keep_rounds(self, search):
        self._rounds += [(fit.error, fit.gamma) for fit in search.fits]

    def _search_scaled(self, kernel, others):
        """Rounds under the scaling at hand, or under another that does better."""
        search = self._search(self._X, kernel, _TRIAL_ROUNDS if "arcsinh" in others else _ROUNDS)
        for scaling in others:
            before = search
            if self.budget.allows(self.budget.used / 2, _SEARCH_SHARE):
                search = self._try_scaling(scaling, before, kernel)
            if search is not before or scaling == "arcsinh":
                search = self._go_on(search, kernel, _ROUNDS, search.best)
        return search

    def _go_on(self, search, kernel, rounds, start, n_rows=None):
        """More rounds, with another kernel or more rows perhaps."""
        self._keep_rounds(search)
        return self._search(self._X, kernel, rounds, n_rows, start)

    def _search(self, X, kernel, rounds, n_rows=None, start=None):
        sample = self._sample(X, kernel, n_rows or _SAMPLE_ROWS)
        search = WidthSearch(sample, self._seed, start, self._machine.scaling is not None, self._penalties)
        return search.run(rounds, self._may_search)

    def _may_search(self):
        in_time = self.budget.allows(0.0, _SEARCH_SHARE)
        self._hurried |= not in_time
        return self._monitor() and in_time

    def _penalties(self, alphas):
        """These, or the caller's."""
        return alphas if self._machine.alpha == "auto" else np.array([float(self._machine.alpha)])

    def _scalings(self):
        """What to begin with, and what to compare it with."""
        if self._machine.scaling != "auto":
            return [self.scaling]
        long_tails = Arcsinh.fit(self._X[self._train], self._categorical).columns.size > 0
        return ["standard", "arcsinh", "quantile"] if long_tails else ["standard", "quantile"]

    def _scaled_by(self, scaling):
        """What maps the table, learned from the training rows, and the table mapped."""
        if scaling not in SCALERS:
            return None, self._table
        scaler = SCALERS[scaling].fit(self._table[self._train], self._categorical)
        return scaler, scaler.transform(self._table)

    def _take(self, scaling, scaler, X):
        self.scaling, self.scaler, self._X, self._rounds = scaling, scaler, X, []

    def _try_scaling(self, scaling, search, kernel):
        """A few rounds, taken where they do better than the rounds before: surely better where those were more."""
        scaler, X = self._scaled_by(scaling)
        trial = self._search(X, kernel, _TRIAL_ROUNDS)
        as_many = scaling == "arcsinh"
        better = trial.best.error < search.best.error if as_many else trial.best.gains_on(search.best)
        if not better:
            return search
        self._take(scaling, scaler, X)
        return trial

    def _late_rounds(self, search, kernel):
        if len(self._train) <= _SAMPLE_ROWS or not self._may_search():
            return search
        return self._go_on(search, kernel, _LATE_ROUNDS, search.best, _LATE_ROWS)

    def _kernels(self):
        """That of the search, and those that are tried after it."""
        return _KERNELS if len(self._train) > _SAMPLE_ROWS else _FEW_ROWS_KERNELS

    def _try_kernels(self, search):
        """Other kernels with the same widths, and more rounds with the best of them where it does better."""
        best, sample = search.best, search.sample
        for kernel in self._kernels()[1:]:
            if self._may_search():
                other = search.sample.of_kernel(kernel)
                rival = other.fit(search.best.gamma, self._penalties(search.best.alpha * NEAR))
                if rival.gains_on(best):
                    best, sample = rival, other
        if sample is search.sample:
            return search
        return self._go_on(search, sample.kernel, _TRIAL_ROUNDS, best, len(sample.X))

    def _given_widths(self):
        """Widths that are not learned: one over inputs times standard deviation, or the caller's."""
        machine = self._machine
        if isinstance(machine.gamma, str):
            std = np.where(self._categorical, 1.0, self._X.std() if machine.scaling is None else self._X.std(axis=0))
            return np.divide(1.0, std * std.size, out=np.zeros_like(std), where=std > 0)
        source = self._columns.source
        if np.shape(machine.gamma) == source.shape:  # as `gamma_` of another machine has it
            return check_gamma(machine.gamma, source.size)
        return check_gamma(machine.gamma, machine.n_features_in_)[source]

    # Kind of features, on the same sample.

    @property
    def _bins_too(self):
        return self.features != "fourier"

    def _choose_features(self, search):
        """Fourier features of the Gaussian kernel with the same widths: instead of bins, or beside them."""
        wanted = self._machine.features
        if self._categorical.any() and wanted in ("fourier", "hybrid"):
            raise ValueError(f"features={wanted!r} needs numbers only, and X has categorical inputs; use 'binning'.")
        # Where no input varies there is a constant, of whatever features.
        if wanted == "binning" or not search.best.gamma.any() or (wanted == "auto" and not self._may_try_waves()):
            return
        best = _Trial("binning", search.best.errors, search.best.alpha, None)
        fourier = min((self._try_waves(search, factor) for factor in _WAVE_FACTORS), key=_mean_error)
        trials = [fourier] if wanted != "hybrid" else []
        if wanted != "fourier" and self._may_mix:
            trials.append(self._try_hybrid(search, fourier.waves))
        for trial in trials:
            if wanted != "auto" or surely_less(trial.errors, best.errors):
                best = trial
        self.features, self.waves, self.alpha = best.features, best.waves, best.alpha
        self.decisions.note("features", best.features, best.error)

    def _may_try_waves(self):
        small = 8 * _N_WAVES * len(self._X) <= _WAVES_BYTES
        return small and not self._categorical.any() and self._may_search()

    def _try_waves(self, search, factor):
        sample = search.sample
        gamma = (factor * search.best.gamma) ** 2
        waves = RandomFourier(gamma=gamma, n_components=_N_WAVES, random_state=self._seed, n_jobs=self._n_jobs)
        system = gram_system(waves.fit_transform(sample.X), sample.Y, sample.weights, fit_intercept=True)
        out, trials, alphas = waves.transform(sample.X_out), [], self._penalties(ALPHAS)
        results = system.solve([np.full(sample.Y.shape[1], alpha) for alpha in alphas])
        for alpha, result in zip(alphas, results, strict=True):
            errors = sample.judge(out @ result.solution + system.intercept(result.solution))
            trials.append(_Trial("fourier", errors, float(alpha), waves))
        return min(trials, key=_mean_error)

    def _try_hybrid(self, search, waves):
        sample, trials = search.sample, []
        growth = Growth(
            sample.X, sample.Y, sample.weights, sample.X_out, lambda n: search.best.grids[:n], waves, self._n_jobs
        )
        growth.grow(sample.n_grids)
        for alpha in self._penalties(search.best.alpha * np.array([1.0, np.sqrt(10), 10.0])):
            growth.solve(alpha, _TOL, _MAX_ITER)
            trials.append(_Trial("hybrid", sample.judge(growth.held_out()), float(alpha), waves))
        return min(trials, key=_mean_error)

    # Overall width and size, on all training rows.

    def _choose_factor(self):
        """Scale the widths for more rows than the sample's, which take finer grids."""
        best = None
        for factor in self._factors():
            growth = self._new_growth(self.gamma * factor)
            growth.grow(_FEW_GRIDS)
            growth.solve(self.alpha, 3 * _TOL, _MAX_ITER)
            error = self._judge(growth.held_out()).mean()
            if best is not None and error >= best[0]:
                break
            best = error, factor
        self.gamma = self.gamma * best[1]
        self.decisions.note("widths of all rows", f"{best[1]:g} times the sample's gamma", best[0])

    def _factors(self):
        return _FACTORS

    @property
    def _judge(self):
        return self._judge_of(self._held_out)

    def _new_growth(self, gamma):
        weights = None if self._weights is None else self._weights[self._train]
        X, X_out = self._X[self._train], self._X[self._held_out]

        def draw(n_grids):
            return Grids.draw(self.kernel, gamma, n_grids, self._seed, self._categorical)

        return Growth(X, self._Y[self._train], weights, X_out, draw, self.waves, self._n_jobs)

    def _size(self):
        machine = self._machine
        options = machine.alpha == "auto", self.budget, self._monitor, machine.refit
        self.sizing = Sizing(self._new_growth(self.gamma), self._judge, self.alpha, *options)
        if self._bins_too:
            self.sizing.run(*self._first_and_most_grids())
        else:
            self.sizing.run_without_grids()
        self.alpha = self.sizing.alpha
        self.decisions.note("grids", self.sizing.growth.n_grids, self.sizing.error)
        self.decisions.note("penalty", f"{self.alpha:.3g}", self.sizing.error)
        self.held_out_predictions = self.sizing.growth.held_out()

    def _first_and_most_grids(self):
        machine = self._machine
        if machine.n_grids != "auto":
            return machine.n_grids, None
        first, largest = _SAMPLE_GRIDS
        most = min(machine.max_grids, max(largest, _MOST_ENTRIES // len(self._train)))
        if machine.max_bytes is not None:  # codes of 4 bytes, as much again while they grow
            most = int(np.clip(machine.max_bytes // (8 * len(self._X)), 1, most))
        return min(int(np.clip(_ROW_GRIDS // len(self._train), first, largest)), most), most


def _mean_error(trial):
    return trial.error
