"""The choice of scaling, length scales and pitch law, on a sample of the rows."""

import numpy as np

from binfeat._common.validation import check_gamma
from binfeat._machine.input_scalers import SCALERS, Arcsinh
from binfeat._machine.length_scales import ALPHAS, NEAR, LengthScaleSearch, exponent_shares, mean_distances
from binfeat.kernels import GammaPitch, Laplacian, Skip, binning_kernel

_ROUNDS, _LATE_ROUNDS, _TRIAL_ROUNDS = 12, 4, 3
# The first for the search, the others tried after it. Few rows tell little of how many inputs interact.
_KERNELS = GammaPitch(np.inf), GammaPitch(8.0), Skip(GammaPitch(8.0), 0.2)
_FEW_ROWS_KERNELS = Skip(GammaPitch(8.0), 0.2), Skip(Laplacian(), 0.2), GammaPitch(8.0), Laplacian()
_SEARCH_SHARE = 1 / 3  # of the time


class KernelChoice:
    """How inputs are scaled, and the kernel of the binning features with a gamma for each input.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    scaling : {"standard", "arcsinh", "quantile", "none"}
    scaler : input scaler or None
    X : ndarray of shape (n_rows, n_inputs)
        The scaled table.
    search : LengthScaleSearch
        The last one; its best fit has gamma and penalty.
    hurried : bool
        Whether a limit of time cut the search short.
    errors, gammas : ndarray of shape (n_rounds + 1,) and (n_rounds + 1, n_inputs)
        History of the rounds under the scaling that was chosen; empty where nothing was searched.
    """

    def __init__(self, problem):
        self._problem, self._limits = problem, problem.limits
        self.hurried, self._rounds = False, []
        self.errors, self.gammas = np.empty(0), np.empty((0, problem.table.shape[1]))

    def run(self):
        """Choose, as far as the caller has not."""
        machine = self._problem.machine
        kernel = self._kernels()[0] if machine.kernel == "auto" else binning_kernel(machine.kernel)
        first, *others = self._scalings()
        self._take(first, *self._scaled_by(first))
        if isinstance(machine.gamma, str) and machine.gamma == "learn":
            self.search = self._learn(kernel, others)
        else:
            self.search = self._new_search(self.X, kernel)
            self.search.fits = [self.search.sample.fit(self._given_gamma(), self._problem.penalties(ALPHAS))]
        return self

    @property
    def best(self):
        return self.search.best

    @property
    def kernel(self):
        return self.search.sample.kernel

    def may_search(self):
        """Whether callbacks and the time for searches allow one more step."""
        in_time = self._problem.budget.allows(0.0, _SEARCH_SHARE)
        self.hurried |= not in_time
        return self._problem.goes_on() and in_time

    def relevances(self, gamma):
        """Share of each input in the kernel's mean exponent."""
        rng, rows = np.random.default_rng(self._problem.seed), self._problem.train[: self._limits.sample_rows]
        return exponent_shares(gamma, mean_distances(self.X[rows], self._problem.categorical, rng))

    def _learn(self, kernel, scalings):
        decisions = self._problem.decisions
        search = self._search_scaled(kernel, scalings)
        if scalings:
            decisions.note("scaling", self.scaling, search.best.error)
        search = self._late_rounds(search, kernel)
        if self._problem.machine.kernel == "auto":
            search = self._try_kernels(search)
            decisions.note("kernel", search.sample.kernel, search.best.error)
        self._keep_rounds(search)
        self.errors, self.gammas = (np.array(each) for each in zip(*self._rounds, strict=True))
        decisions.note("length scales", f"{len(self._rounds) - 1} rounds", search.best.error)
        return search

    def _keep_rounds(self, search):
        self._rounds += [(fit.error, fit.gamma) for fit in search.fits]

    def _search_scaled(self, kernel, others):
        """Rounds under the scaling at hand, or under another that does better."""
        search = self._search(self.X, kernel, _TRIAL_ROUNDS if "arcsinh" in others else _ROUNDS)
        budget = self._problem.budget
        for scaling in others:
            before = search
            if budget.allows(budget.used / 2, _SEARCH_SHARE):
                search = self._try_scaling(scaling, before, kernel)
            if search is not before or scaling == "arcsinh":
                search = self._go_on(search, kernel, _ROUNDS, search.best)
        return search

    def _go_on(self, search, kernel, rounds, start, n_rows=None):
        """More rounds, with another kernel or more rows perhaps."""
        self._keep_rounds(search)
        return self._search(self.X, kernel, rounds, n_rows, start)

    def _new_search(self, X, kernel, n_rows=None, start=None):
        problem = self._problem
        sample = problem.sample(X, kernel, n_rows or self._limits.sample_rows)
        return LengthScaleSearch(sample, problem.seed, start, problem.machine.scaling is not None, problem.penalties)

    def _search(self, X, kernel, rounds, n_rows=None, start=None):
        return self._new_search(X, kernel, n_rows, start).run(rounds, self.may_search)

    def _scalings(self):
        """What to begin with, and what to compare it with."""
        scaling = self._problem.machine.scaling
        if scaling != "auto":
            return [str(scaling).lower()]
        long_tails = Arcsinh.fit(self._problem.table[self._problem.train], self._problem.categorical).columns.size > 0
        return ["standard", "arcsinh", "quantile"] if long_tails else ["standard", "quantile"]

    def _scaled_by(self, scaling):
        """What maps the table, learned from the training rows, and the table mapped."""
        table = self._problem.table
        if scaling not in SCALERS:
            return None, table
        scaler = SCALERS[scaling].fit(table[self._problem.train], self._problem.categorical)
        return scaler, scaler.transform(table)

    def _take(self, scaling, scaler, X):
        self.scaling, self.scaler, self.X, self._rounds = scaling, scaler, X, []

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
        if len(self._problem.train) <= self._limits.sample_rows or not self.may_search():
            return search
        return self._go_on(search, kernel, _LATE_ROUNDS, search.best, self._limits.late_rows)

    def _kernels(self):
        """That of the search, and those that are tried after it."""
        return _KERNELS if len(self._problem.train) > self._limits.sample_rows else _FEW_ROWS_KERNELS

    def _try_kernels(self, search):
        """Other kernels with the same length scales, and more rounds with the best where it does better."""
        best, sample = search.best, search.sample
        for kernel in self._kernels()[1:]:
            if self.may_search():
                other = search.sample.of_kernel(kernel)
                rival = other.fit(search.best.gamma, self._problem.penalties(search.best.alpha * NEAR))
                if rival.gains_on(best):
                    best, sample = rival, other
        if sample is search.sample:
            return search
        return self._go_on(search, sample.kernel, _TRIAL_ROUNDS, best, len(sample.X))

    def _given_gamma(self):
        """Gammas that are not learned: one over inputs times standard deviation, or the caller's."""
        machine, X = self._problem.machine, self.X
        if isinstance(machine.gamma, str):
            std = np.where(self._problem.categorical, 1.0, X.std() if machine.scaling is None else X.std(axis=0))
            return np.divide(1.0, std * std.size, out=np.zeros_like(std), where=std > 0)
        source = self._problem.encoder.source
        if np.shape(machine.gamma) == source.shape:  # as `gamma_` of another machine has it
            return check_gamma(machine.gamma, source.size)
        return check_gamma(machine.gamma, machine.n_features_in_)[source]
