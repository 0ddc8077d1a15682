"""What searches for length scales begin with: kernels, scaled inputs, rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from binfeat._common.arrays import quotients
from binfeat._common.subsets import every_nth
from binfeat._common.validation import check_gamma
from binfeat._kernels.base import Kernel
from binfeat._machine.kernel_algebra.matrices import is_radial
from binfeat._machine.problem import Problem
from binfeat._machine.search.length_scales import LengthScales, LengthScaleSearch
from binfeat._machine.search.plan import SearchPlan
from binfeat._machine.settings import Settings
from binfeat._machine.table.scalers import RANKED_ROWS, Arcsinh, InputScaler, scaler_of
from binfeat.kernels import Laplacian, Matern

_STEP_ROWS = 1000  # for each step, at least, rows are scaled
_FIRST_ALPHA = 0.3  # of kernels whose gammas are given


@dataclass(frozen=True, eq=False)
class Scaling:
    """A way to scale inputs, learned from the training rows, and the rows that searches see, scaled by it."""

    name: str
    scaler: InputScaler
    X: np.ndarray


@dataclass(frozen=True, eq=False)
class SearchSetup:
    """Makes searches for one problem."""

    problem: Problem
    settings: Settings
    plan: SearchPlan
    kinds: set[str]  # of kernels: "binning", "radial"

    @cached_property
    def rows(self) -> np.ndarray:
        """Numbers of the rows that searches see."""
        return self.problem.train[: self.plan.n_steps * max(_STEP_ROWS, self.plan.late_rows)]

    @cached_property
    def _ranked_rows(self) -> np.ndarray:
        """What scalers learn from."""
        return self.problem.table[every_nth(self.problem.train, RANKED_ROWS)]

    @property
    def kernels(self) -> list[Kernel]:
        """That of the grids, then a radial one, as far as they are wanted."""
        given = self.settings.kernel
        binning, radial = Laplacian() if given is None else given, given if is_radial(given) else Matern(1.5)
        return [kernel for kind, kernel in (("binning", binning), ("radial", radial)) if kind in self.kinds]

    @property
    def scalings(self) -> list[str]:
        """The scaling to begin with, and those to compare it with."""
        if self.settings.scaling is not None:
            return [self.settings.scaling]
        problem = self.problem
        if self.settings.may_take_ranks:
            return ["ranks" if problem.encoder.n_ranked else "standard"]
        long_tails = Arcsinh.fit(self._ranked_rows, problem.categorical).columns.size > 0
        return ["standard", "arcsinh", "quantile"] if long_tails else ["standard", "quantile"]

    def scaling(self, name: str) -> Scaling:
        return self.scaled_by(name, scaler_of(name).fit(self._ranked_rows, self.problem.categorical))

    def scaled_by(self, name: str, scaler: InputScaler) -> Scaling:
        return Scaling(name, scaler, scaler.transform(self.problem.table[self.rows]))

    def search(self, kernel: Kernel, scaling: Scaling) -> LengthScaleSearch:
        problem, settings, rows = self.problem, self.settings, self.rows
        table = scaling.X, problem.Y[rows], problem.relative_weights(rows), problem.categorical
        alpha, scaled, n_jobs = problem.relative_alpha(settings.alpha), settings.scaling != "none", settings.n_jobs
        return LengthScaleSearch(kernel, *table, settings.seed, alpha=alpha, scaled=scaled, n_jobs=n_jobs)

    def given(self, X: np.ndarray) -> list[LengthScales]:
        """The kernels with gammas that are not learned, for scaled rows X; radial ones have the same length scales."""
        gamma = self._given_gamma(X)
        return [LengthScales(kernel, gamma**kernel.power, _FIRST_ALPHA, np.nan, 0, 0) for kernel in self.kernels]

    def _given_gamma(self, X: np.ndarray) -> np.ndarray:
        """One over inputs times standard deviation, or the user's, for each input or for each column inside."""
        encoder, given = self.problem.encoder, self.settings.gamma
        if given is None:
            std = X.std() if self.settings.scaling == "none" else X.std(axis=0)
            std = np.where(self.problem.categorical, 1.0, std)
            return quotients(1.0, std * std.size)
        if np.shape(given) == encoder.source.shape:  # as `gamma_` of another machine has it
            return check_gamma(given, encoder.source.size)
        return check_gamma(given, encoder.medians.size)[encoder.source]
