"""The choice of scaling and length scales, by leave-one-out errors of exact machines on few rows."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from binfeat._common.validation import check_gamma
from binfeat._engine.policy import one_blas_thread, side_by_side
from binfeat._machine.kernel_algebra.matrices import is_radial
from binfeat._machine.search.length_scales import LengthScales, LengthScaleSearch, exponent_shares, mean_distances
from binfeat._machine.search.linear_maps import LinearMapSearch
from binfeat._machine.search.plan import CHUNK, MOST_ROWS, SearchPlan, n_chunks
from binfeat._machine.search.warps import FEWEST_ROWS, WarpSearch
from binfeat._machine.table.scalers import SCALERS, Arcsinh, Warped
from binfeat.kernels import RBF, Laplacian, Matern, binning_kernel

_FAR = 1.12  # times the better kernel's leave-one-out error, beyond which another one is given up
_BETTER = 0.97  # times the error of the grids' kernel, which one for Fourier features has to be below
_COMMON_ROWS = 1000  # on which kernels are compared
_MORE, _MUCH = 2, 0.9  # times the late rows, on which inputs are revived; share of the error, below which it was much
_GAIN = 0.97  # share of the first scaling's error that another one has to be below
_JUDGED = 2 / 3  # steps for a warp or a rotation, by those for length scales
_SEARCH_SHARE = 1 / 3  # of the time
_FIRST_ALPHA = 0.3  # of kernels whose gammas are given


def _kind(scales):
    """The kind of the kernel of a search, or of what it found."""
    return "radial" if is_radial(scales.kernel) else "binning"


def _with_one_radial(found):
    """Searches, or what they found, with the better one of radial kernels only."""
    radial = sorted((scales for scales in found if _kind(scales) == "radial"), key=_error)
    return [*(scales for scales in found if _kind(scales) != "radial"), *radial[:1]]


def _or_inf(error):
    """An error that may be unknown, NaN."""
    return np.inf if np.isnan(error) else error


def _error(scales):
    return scales.error


class KernelChoice:
    """How inputs are scaled, and a gamma for each input: of the kernel of the grids, and of radial kernels.

    Parameters
    ----------
    problem : Problem
    kinds : set of {"binning", "radial"}
        Kernels to try.
    needed : set of {"binning", "radial"}
        Kernels that are kept, even if the other one does far better.

    Attributes
    ----------
    scaling : {"standard", "arcsinh", "quantile", "warped", "none"}
    scaler : input scaler or None
    X : ndarray of shape (n_rows, n_inputs)
        The scaled table.
    found : list of LengthScales
        The kernel of the grids, if it was kept, then the better radial one. Their errors are of the same rows.
    hurried : bool
        Whether a limit of time cut the search short.
    """

    def __init__(self, problem, kinds, needed):
        self._problem, self._kinds, self._needed, self._limits = problem, kinds, needed, problem.limits
        self._plan = SearchPlan.of(problem.limits.n_steps, len(problem.train))
        self._trials: dict[str, Any] = {}  # of each scaling, until the best is taken
        self._searches: list[LengthScaleSearch] = []  # of each kernel, with the best scaling
        self.found: list[LengthScales] = []
        self.hurried, self._wanted = False, True

    def run(self):
        """Choose, as far as the caller has not."""
        first, *others = self._scalings()
        if self.learns:
            name = "scaling and length scales" if others else "length scales"
            try:
                with one_blas_thread():
                    self._search_all(name, first, others)
            finally:
                if self.found:
                    self._note()
        else:
            self._take(first, self._scaler(first))
            self.found = self._given()

    def settle(self, problem):
        """After Ctrl-C: take what was found so far, for a problem of fewer rows; False if that is nothing."""
        self._problem = problem
        if not self.found and any(search.errors for *_, search in self._trials.values()):
            self._take_best()
        if not self.found and any(search.errors for search in self._searches):
            found = [one.scales for one in self._searches if one.errors or _kind(one) in self._needed]
            self.found = _with_one_radial(found)
            self._note()
        return bool(self.found)

    @property
    def learns(self):
        """Whether length scales are to be learned."""
        gamma = self._problem.machine.gamma
        return isinstance(gamma, str) and gamma == "learn"

    @property
    def _may_warp(self):
        """Whether scaling is open, and there are rows and a kernel for a warp."""
        is_open = self._problem.machine.scaling == "auto" and "binning" in self._kinds
        return is_open and len(self._problem.train) >= FEWEST_ROWS

    @property
    def n_stages(self):
        """Stages that callbacks see, at most."""
        return self.learns * (1 + self._may_warp)

    @property
    def binning(self):
        """The kernel of the grids with its gammas."""
        return self.found[0]

    @property
    def radial(self):
        return [scales for scales in self.found if _kind(scales) == "radial"]

    @property
    def learned(self):
        """Whether length scales were learned."""
        return bool(self._searches)

    def history(self, scales):
        """Errors, and gammas, of the steps that led to one of those found; empty where nothing was searched."""
        for search in self._searches:
            if search.kernel == scales.kernel and search.gammas:
                n_whole = len(search.gammas)  # Ctrl-C may come between the two
                return np.array(search.errors[:n_whole]), np.array(search.gammas)
        return np.empty(0), np.empty((0, self.X.shape[1]))

    def may_search(self):
        """Whether callbacks and the time for searches allow one more trial, and it may gain something."""
        in_time = self._in_time()
        return self._problem.goes_on() and in_time and not self.is_perfect

    def _may_step(self):
        """Whether callbacks wanted more at the last look, the time allows it, and it may gain something."""
        return self._wanted and not self.is_perfect and self._in_time()

    @property
    def is_perfect(self):
        """Whether a kernel leaves so little error that nothing is left to gain."""
        searches = [*self._searches, *(search for *_, search in self._trials.values())]
        return any(search.error < self._problem.negligible for search in searches)

    def _in_time(self):
        in_time = self._problem.budget.allows(0.0, _SEARCH_SHARE)
        self.hurried |= not in_time
        return in_time

    def relevances(self, gamma, power):
        """Share of each input in the kernel's mean exponent."""
        rng, rows = np.random.default_rng(self._problem.seed), self._problem.train[: self._limits.sample_rows]
        return exponent_shares(gamma, mean_distances(self.X[rows], self._problem.categorical, rng, power))

    def _kernels(self):
        kernel = self._problem.machine.kernel
        binning = [Laplacian() if kernel == "auto" else binning_kernel(kernel)] if "binning" in self._kinds else []
        return [*binning, *([Matern(1.5)] if "radial" in self._kinds else [])]

    def _search_all(self, name, first, others):
        """Search for scaling and length scales, then for a warp and a rotation, and again with what is warped."""
        with self._problem.stage(name, self._n_looks()):
            self._learn(first, others)
            warp, rotation = self._warp(), self._rotation()
            paying = self._paying(warp, rotation)
        if warp in paying and self._may_step():
            with self._problem.stage("warped inputs", self._plan.n_looks(0, bool(self._needed))):
                if self._search_warped(warp):
                    rotation = self._rotation()
                    paying = self._paying(rotation)
        if rotation in paying:
            self._rotate(rotation)

    def _learn(self, first, others):
        """The first search."""
        plan = self._plan
        self._some = self._problem.train[: plan.n_steps * max(_COMMON_ROWS, plan.late_rows)]
        self._trials = {scaling: self._trial(self._scaler(scaling)) for scaling in (first, *others)}
        self._step([search for *_, search in self._trials.values()], plan.trial, plan.rows)
        self._take_best()
        self.found = self._race()

    def _race(self):
        """Run the searches to their end, but for those that fall behind; what is found, compared."""
        plan, late_rows = self._plan, self._plan.late_rows
        if self._needed:
            self._step(self._searches, 2 * plan.trial, plan.rows)
            self._drop_not_better()
        self._step(self._searches, plan.early, plan.rows)
        self._drop_worse()
        if self._may_step() and self._revived(_MORE * late_rows):
            late_rows = max(late_rows, min(MOST_ROWS, _MORE * late_rows))
        radial = [search for search in self._searches if _kind(search) == "radial"]
        self._searches += [search.of_kernel(RBF(), plan.early) for search in radial]
        self._step(self._searches, plan.race, late_rows)
        self._searches = _with_one_radial(self._searches)
        self._step(self._searches, plan.n_steps, late_rows)
        return self._compared()

    def _trial(self, scaler):
        """A scaler, rows that it has scaled, and a search with them for the first kernel."""
        X = self._scaled(scaler, self._some)
        return scaler, X, self._search(self._kernels()[0], X)

    def _take_best(self):
        """The scaling that did best in its trial, and a search with it for each kernel."""
        first, *others = self._trials
        errors = {scaling: search.error for scaling, (*_, search) in self._trials.items()}
        best = min(errors, key=lambda scaling: _or_inf(errors[scaling]) / (1.0 if scaling == first else _GAIN))
        scaler, X, search = self._trials[best]
        self._take(best, scaler)
        if others:
            self._problem.decisions.note("scaling", best, errors[best])
        self._searches = [search, *(self._search(kernel, X) for kernel in self._kernels()[1:])]
        self._trials = {}

    def _note(self):
        best = min(self.found, key=_error)
        self._problem.decisions.note("length scales", f"{best.kernel!r}, {best.n_steps} steps", best.error)

    def _search(self, kernel, X):
        problem = self._problem
        weights = problem.weights_of(self._some)
        alpha = None if problem.machine.alpha == "auto" else float(problem.machine.alpha) / problem.mean_weight
        options = {"alpha": alpha, "scaled": problem.machine.scaling is not None, "n_jobs": problem.n_jobs}
        Y, weights = problem.Y[self._some], None if weights is None else weights[:, 0] / problem.mean_weight
        return LengthScaleSearch(kernel, X, Y, weights, problem.categorical, problem.seed, **options)

    def _step(self, searches, last, n_rows):
        """Run several searches to a step, side by side in threads, while there is time."""
        done = min(search.n_done for search in searches)
        for until in (*range(done + CHUNK, last, CHUNK), last):
            if done and not self._may_step():
                break
            done, n_steps = until, self._plan.n_steps
            progress = self._problem.budget.gone(_SEARCH_SHARE)
            run = partial(LengthScaleSearch.run, n_steps=n_steps, most_rows=n_rows, until=until, progress=progress)
            side_by_side(run, searches, self._problem.n_jobs)
            self._wanted = self._problem.goes_on()

    def _n_looks(self):
        """How often it is asked whether to go on with the first search, if nothing ends it."""
        trial = self._plan.trial
        return n_chunks(0, trial) + self._plan.n_looks(0 if len(self._kernels()) > 1 else trial, bool(self._needed))

    def _drop_not_better(self):
        """Give up what is not needed and does not do better than what is."""
        enough = _BETTER * min(search.error for search in self._searches if _kind(search) in self._needed)
        self._searches = [one for one in self._searches if _kind(one) in self._needed or one.error < enough]

    def _drop_worse(self):
        """Give up a kernel whose error is far above the other one's."""
        far = _FAR * min(search.error for search in self._searches)
        self._searches = [one for one in self._searches if _kind(one) in self._needed or not one.error > far]

    def _revived(self, n_rows):
        """Whether inputs that seemed idle do much for the error on so many rows."""
        ratios: list[float] = []
        side_by_side(lambda search: ratios.append(search.revive(n_rows)), self._searches, self._problem.n_jobs)
        return min(ratios) < _MUCH

    def _compared(self):
        """What was found, with errors of the same rows."""
        errors: dict[LengthScaleSearch, float] = {}

        def compare(search):
            errors[search] = search.error_on(_COMMON_ROWS)

        side_by_side(compare, self._searches, self._problem.n_jobs)
        return [replace(search.scales, error=errors[search]) for search in self._searches]

    def _warp(self):
        """A search for a monotone map of each input, or None."""
        first, problem = self._searches[0], self._problem
        far = self.found[0].error > _FAR * min(map(_error, self.found))
        suits = self._may_warp and not far and WarpSearch.suits(first, problem.categorical)
        return WarpSearch(first, problem.seed) if suits and self._may_step() else None

    def _rotation(self):
        """A search for a rotation of the inputs of the radial kernel, or None."""
        far = _FAR * min(map(_error, self.found))
        for scales in self.radial:
            (search,) = (one for one in self._searches if one.kernel == scales.kernel)
            suits = scales.error <= far and LinearMapSearch.suits(search, self._problem.categorical)
            if suits and self._may_step():
                return LinearMapSearch(search, self._problem.seed)
        return None

    def _paying(self, *searches):
        """Those searches, done side by side, that rows which none of their steps has seen gain by."""
        paying = set()

        def run(search):
            search.run(int(_JUDGED * self._plan.n_steps), self._may_step)
            if search.pays():
                paying.add(search)

        side_by_side(run, [search for search in searches if search is not None], self._problem.n_jobs)
        return paying

    def _search_warped(self, warp):
        """Search again with warped inputs; whether that finds what is better, and is taken."""
        problem, scale = self._problem, np.array if self.scaler is None else self.scaler.transform
        scaler = Warped.by(lambda rows: warp(scale(rows)), problem.table[problem.train], problem.categorical)
        X, searches = self._scaled(scaler, self._some), self._searches
        self._searches = [self._search(kernel, X) for kernel in self._kernels()]
        found = self._race()
        error = min(map(_error, found))
        if error >= min(map(_error, self.found)):
            self._searches = searches
            return False
        self._take("warped", scaler)
        self.found = found
        problem.decisions.note("scaling", "warped", error)
        return True

    def _rotate(self, rotation):
        """Take a rotation of the radial kernel."""
        self._problem.decisions.note("rotation", "of all inputs", rotation.error)
        self.found = [rotation.scales if _kind(scales) == "radial" else scales for scales in self.found]

    def _scalings(self):
        """What to begin with, and what to compare it with."""
        scaling = self._problem.machine.scaling
        if scaling != "auto":
            return [str(scaling).lower()]
        long_tails = Arcsinh.fit(self._problem.table[self._problem.train], self._problem.categorical).columns.size > 0
        return ["standard", "arcsinh", "quantile"] if long_tails else ["standard", "quantile"]

    def _scaler(self, scaling):
        """What maps the table, learned from the training rows, or None."""
        if scaling not in SCALERS:
            return None
        return SCALERS[scaling].fit(self._problem.table[self._problem.train], self._problem.categorical)

    def _scaled(self, scaler, rows):
        table = self._problem.table[rows]
        return table if scaler is None else scaler.transform(table)

    def _take(self, scaling, scaler):
        self.scaling, self.scaler, self.X = scaling, scaler, self._scaled(scaler, slice(None))

    def _given(self):
        """The kernels with gammas that are not learned; radial ones have the same length scales."""
        gamma = self._given_gamma()
        return [LengthScales(kernel, gamma**kernel.power, _FIRST_ALPHA, np.nan, 0, 0) for kernel in self._kernels()]

    def _given_gamma(self):
        """One over inputs times standard deviation, or the caller's."""
        machine, X = self._problem.machine, self.X
        if isinstance(machine.gamma, str):
            std = np.where(self._problem.categorical, 1.0, X.std() if machine.scaling is None else X.std(axis=0))
            return np.divide(1.0, std * std.size, out=np.zeros_like(std), where=std > 0)
        source = self._problem.encoder.source
        if np.shape(machine.gamma) == source.shape:  # as `gamma_` of another machine has it
            return check_gamma(machine.gamma, source.size)
        return check_gamma(machine.gamma, machine.n_features_in_)[source]
