"""What kernel machines for numbers have beside predictions: standard deviations, samples and intervals."""

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from binfeat._common.frames import unmasked
from binfeat._common.validation import check_choice, check_integer, check_share, is_word, seed_of
from binfeat._engine.policy import blas_threads
from binfeat._machine.fitted.exact import ExactPosterior
from binfeat._machine.fitted.features import FeaturePosterior, NoiseOnly
from binfeat._machine.fitted.local import LocalPosterior
from binfeat._machine.fitted.many_rows import ManyRowsPosterior
from binfeat._machine.fitted.saved import check_regressor
from binfeat._machine.fitted.spread import Spread
from binfeat._machine.served_estimator import ServedMachineBase
from binfeat._machine.table.columns import RawTable
from binfeat._machine.table.findings import NoveltyPolicy, Report
from binfeat._machine.target.targets import Targets
from binfeat._machine.target.transforms import LogLink
from binfeat._rows.sources import is_source

_SCALES = 3  # numbers that length scales of more inputs count as, since few rows hold them together; measured
_FORMS = 3  # and that the choice of a kernel and its scaling counts as
_Known = ExactPosterior | ManyRowsPosterior | LocalPosterior | FeaturePosterior


class NumbersMachineBase(ServedMachineBase):
    """Base of kernel machines for numbers."""

    kernel: object
    gamma: ArrayLike
    alpha: float | str
    loss: str

    _check_state = staticmethod(check_regressor)

    def sample_y(
        self, X: RawTable, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0
    ) -> np.ndarray:
        """Draw functions from the Gaussian process whose mean is the prediction, and give their values for some rows.

        The samples have no noise, as those of scikit-learn's `GaussianProcessRegressor`. For random features they are
        sums, with normal weights, of the `n_posterior_samples`, and of what bins without training rows may add.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seed of the functions.

        Returns
        -------
        samples : ndarray of shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)

        Raises
        ------
        ValueError, MemoryError
            If X is a source of blocks, `loss` is a deviance, `fit` drew no samples of random features, or covariances
            do not fit in memory.
        """
        n_samples, rng = check_integer(n_samples, "n_samples", 1), np.random.default_rng(seed_of(random_state))
        if is_source(X):
            raise ValueError("X must be rows in memory, whose samples belong together; got a source of blocks.")
        with NoveltyPolicy(self) as note:
            rows, scores = self._rows_and_scores(X, note)
        with blas_threads(self.n_jobs):
            posterior = self._posterior_of_function()
            deviations = posterior.deviations(rows, scores.shape[1] * n_samples, rng)
        noise = np.sqrt(posterior.errors.noise)
        apart = deviations.reshape(*scores.shape, n_samples) * noise[:, np.newaxis]
        samples = [self._own_targets.decode(scores + apart[:, :, k]) for k in range(n_samples)]
        return np.stack(samples, axis=-1)

    def predict_quantiles(self, X: RawTable, quantiles: ArrayLike = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of new targets, whose distances follow the noise, and which never cross.

        A target is the prediction plus a residual, whose size is a function of the row: ``y = f(x) + s(x) r``. The
        logarithm of s is learned by kernel ridge regression of ``log(|y - f| + c)``, from rows that were held out or by
        leave-one-out predictions, and quantiles of r are those of these rows, conformal (Lei et al. 2018): the share
        of new targets below holds on average over rows like those of `fit`. Far from all rows of `fit` sizes are
        those of the average row, while intervals by ``method="deviations"`` widen.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        quantiles : array-like of shape (n_quantiles,), default=(0.1, 0.5, 0.9)
            Shares of new targets below, above 0 and below 1, in any order.

        Returns
        -------
        predictions : ndarray of shape (n_rows, n_quantiles) or (n_rows, n_targets, n_quantiles)
            In the order of `quantiles`. Each of several targets has its own; a transform of the targets is taken to
            increase.

        Raises
        ------
        ValueError
            If a share is out of range or more than the rows left out tell, `loss` is a deviance, or an old file has no
            sizes.
        """
        levels = np.array(
            [check_share(level, "quantiles") for level in np.atleast_1d(np.asarray(unmasked(quantiles))).tolist()]
        )
        if not levels.size:
            raise ValueError("quantiles must hold at least one share between 0 and 1, got none.")
        spread = self._spread_of_noise()
        offsets = self._widening(len(spread.residuals)) * spread.quantiles(levels)
        scores, sizes = np.split(self._columns_of(X, spread.sizes), 2, axis=1)
        return self._own_targets.stacked([scores + sizes * offset for offset in offsets])

    def predict_interval(
        self, X: RawTable, coverage: float = 0.9, method: Literal["auto", "quantiles", "deviations"] = "auto"
    ) -> np.ndarray:
        """Intervals that hold the given share of new targets, by split conformal prediction (Lei et al. 2018).

        The share holds on average over rows like those of `fit`, whatever the noise; it may differ from one region of
        the inputs to another, less so with "quantiles" where noise varies. Kernel, penalty and length scales that are
        chosen by the same rows make residuals too small, as up to seven degrees of freedom fewer would; intervals are
        wider by that. No theorem promises the share of few rows: on 320 drawn tables 90 % of 20, 30, 50 and 100 rows
        held 91, 90, 90 and 90 %, with standard errors below 0.5 points. Random features, and local machines with `cv`
        or `groups`, know errors of the rows held out alone: with 60 of them the share varies by several percent from
        fit to fit.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        coverage : float, default=0.9
            Share of new targets that the intervals hold, above 0 and below 1.
        method : {"auto", "quantiles", "deviations"}, default="auto"
            "quantiles" are those of `predict_quantiles`, with equal shares on both sides. By "deviations" an interval
            reaches to both sides of the prediction by a number of standard deviations, of prediction and constant noise
            together, which is just enough for the given share of the rows held out, or of all rows of an exact
            machine by leave-one-out predictions; without `n_posterior_samples`, machines of random features know
            only the noise. "auto" is "quantiles" if `fit` found that noise varies, as `summary` says, and rows are
            enough to tell them: an interval of 90 % takes 19 rows left out by quantiles, and 9 by deviations.

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            Lower and upper end. Each of several targets is covered by itself. Those by deviations, of a row alone and
            beside others, agree to a thousandth of their length; all others, and predictions, are bitwise the same.

        Raises
        ------
        ValueError, MemoryError
            If `coverage` is out of range or more than the held-out rows tell, `loss` is a deviance, or a kernel matrix
            exceeds the memory.
        """
        coverage = check_share(coverage, "coverage")
        check_choice(method, "method", ("auto", "quantiles", "deviations"))
        self._require_squares()
        spread, levels = self._fitted.spread, np.array([1 - coverage, 1 + coverage]) / 2
        if method == "quantiles" or (
            method == "auto" and spread is not None and spread.differ and spread.tells(levels)
        ):
            return self.predict_quantiles(X, levels)
        scores, variances = self._scores_and_variances(X)
        errors = self._fitted.posterior(self.n_jobs).errors
        half = self._widening(len(errors.scores)) * errors.reach(coverage) * np.sqrt(errors.noise * (1 + variances))
        return self._own_targets.bounds(scores - half, scores + half)

    def _widening(self, n_rows: int) -> float:
        """What residuals of rows left out are too small by, since kernel, penalty and length scales are chosen by them.

        It is that of so many degrees of freedom fewer.
        """
        chosen = self._of_fit("_n_chosen")
        return float(np.sqrt(n_rows / max(n_rows / 2, n_rows - chosen)))

    def _choices(self) -> dict[str, Any]:
        """The degrees of freedom that choices count as, which intervals need."""
        scales = min(_SCALES, self.n_features_in_) if is_word(self.gamma, "learn") else 0
        chosen = is_word(self.alpha, "auto") + _FORMS * is_word(self.kernel, "auto") + scales
        return {"_n_chosen": int(chosen)}

    def _spread_of_noise(self) -> Spread:
        """The sizes of residuals; ValueError for machines of older files."""
        self._require_squares()
        spread = self._fitted.spread
        if spread is None:
            raise ValueError("This machine is from a file of an older version, which has no quantiles: fit it again.")
        return spread

    def _require_squares(self) -> None:
        """ValueError where errors are not those of squares."""
        if isinstance(self._own_targets.transform, LogLink):
            raise ValueError("Deviations, samples, intervals and quantiles need loss='squared' or 'huber' in fit.")

    @property
    def _own_targets(self) -> Targets:
        return cast(Targets, self._fitted.targets)

    def _posterior_of_function(self) -> _Known:
        """What an exact machine knows, or a machine that has samples; ValueError for others."""
        self._require_squares()
        posterior = self._fitted.posterior(self.n_jobs)
        if isinstance(posterior, NoiseOnly):
            raise ValueError(
                f"Standard deviations and samples of a machine of features='{self._fitted.features}' need samples that "
                "`fit` draws: set n_posterior_samples, 32 say, and fit again."
            )
        return cast(_Known, posterior)

    def _with_std(self, X: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of y, and their standard deviations."""
        self._require_squares()
        scores, variances = self._scores_and_variances(X)
        noise = self._posterior_of_function().errors.noise
        return self._own_targets.decode(scores), self._own_targets.spreads(scores, np.sqrt(noise * variances))

    def _scores_and_variances(self, X: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of what is learned (n_rows, n_targets), and their variances (n_rows, 1) by that of noise."""
        both = self._columns_of(X, lambda rows, n_jobs: self._fitted.posterior(n_jobs).variances(rows))
        return both[:, :-1], both[:, -1:]

    def _columns_of(self, X: RawTable, more: Callable[[np.ndarray, int | None], np.ndarray]) -> np.ndarray:
        """Predictions of what is learned, and more about scaled rows beside them, also for a source of blocks."""

        def beside(part: RawTable, note: Report) -> np.ndarray:
            rows, scores = self._rows_and_scores(part, note)
            with blas_threads(self.n_jobs):
                return np.column_stack([scores, more(rows, self.n_jobs)])

        return self._of_table(X, beside)
