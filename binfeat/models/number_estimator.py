"""Methods of kernel models for numbers: standard deviations, samples, quantiles and intervals."""

from collections.abc import Callable
from typing import Literal, cast

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.frames import unmasked
from binfeat._common.validation import check_choice, check_integer, check_share, is_word, seed_of
from binfeat._rows.sources import is_source
from binfeat._threads import blas_threads
from binfeat.models.fitted.features import FeaturePosterior
from binfeat.models.fitted.fitted import Posterior
from binfeat.models.fitted.saved import check_regressor
from binfeat.models.served.estimator import ServedModelBase
from binfeat.models.table.columns import RawTable
from binfeat.models.table.findings import NoveltyPolicy, Report
from binfeat.models.table.targets import LINK, Targets


class NumbersModelBase(ServedModelBase):
    """Base class of kernel models for numbers."""

    kernel: object
    gamma: ArrayLike
    alpha: float | str
    loss: str

    _check_state = staticmethod(check_regressor)

    def sample_y(
        self, X: RawTable, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0
    ) -> np.ndarray:
        """Draw functions from the Gaussian process with the prediction as its mean, and return their values for rows.

        Samples contain no noise, as in scikit-learn's `GaussianProcessRegressor`. For random features they are normal
        combinations of the posterior samples, plus the prior variation of bins without training rows.

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
            If X is a source of blocks, `loss` is a deviance, a model on random features has no posterior samples, or
            covariances do not fit in memory.
        """
        n_samples, rng = check_integer(n_samples, "n_samples", 1), np.random.default_rng(seed_of(random_state))
        if is_source(X):
            raise ValueError("sample_y requires rows in memory, because samples are joint; got a source of blocks.")
        with NoveltyPolicy(self) as note:
            rows, scores = self._rows_and_scores(X, note)
        with blas_threads(self.n_jobs):
            posterior = self._posterior_of_function()
            deviations = posterior.deviations(rows, scores.shape[1] * n_samples, rng, self.n_jobs)
        noise = np.sqrt(posterior.errors.noise)
        apart = deviations.reshape(*scores.shape, n_samples) * noise[:, np.newaxis]
        samples = [self._own_targets.decode(scores + apart[:, :, k]) for k in range(n_samples)]
        return np.stack(samples, axis=-1)

    def predict_quantiles(self, X: RawTable, quantiles: ArrayLike = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Predict quantiles of new targets. They follow the local noise level and never cross.

        A target is modeled as ``y = f(x) + s(x) r``. Kernel ridge regression of ``log(|y - f| + c)`` on leave-one-out
        or validation residuals estimates log s, and conformal ranks of the scaled residuals give the quantiles of r
        (Lei et al. 2018). Coverage holds on average over rows like the training rows. A row of weight 2 counts as two
        equal rows, so with inverse noise variances as weights, quantiles are too close for rows of low weight. Far from
        all training rows, s is the average noise level; intervals by ``method="deviations"`` widen there.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        quantiles : array-like of shape (n_quantiles,), default=(0.1, 0.5, 0.9)
            Levels above 0 and below 1, in any order.

        Returns
        -------
        predictions : ndarray of shape (n_rows, n_quantiles) or (n_rows, n_targets, n_quantiles)
            In the order of `quantiles`, separately for each target. A transformation of the targets is assumed to be
            increasing or decreasing everywhere.

        Raises
        ------
        ValueError
            If a level is out of range or too extreme for the number of residuals, `loss` is a deviance, `fit` was
            interrupted before it estimated quantiles, or a version without quantiles saved the model.
        """
        levels = np.array(
            [check_share(level, "quantiles") for level in np.atleast_1d(np.asarray(unmasked(quantiles))).tolist()]
        )
        if not levels.size:
            raise ValueError("quantiles must contain at least one level between 0 and 1, got none.")
        self._require_squares()
        noise_model = self._fitted.noise_model
        if noise_model is None:
            raise ValueError(
                "This model has no quantiles, because fit was interrupted or an older version saved it. Fit it again."
            )
        rising, falling, center = map(noise_model.quantiles, (levels, 1 - levels, np.array([0.5])))
        widening = self._widening(len(noise_model.residuals))
        offsets = center + widening * (np.where(self._own_targets.falls, falling, rising) - center)
        scores, sizes = np.split(self._columns_of(X, noise_model.sizes), 2, axis=1)
        return self._own_targets.stacked([scores + sizes * offset for offset in offsets])

    def predict_interval(
        self, X: RawTable, coverage: float = 0.9, method: Literal["auto", "quantiles", "deviations"] = "auto"
    ) -> np.ndarray:
        """Predict intervals that contain a given share of new targets, by split conformal prediction (Lei et al. 2018).

        The share holds on average over rows like the training rows, for any distribution of the noise. A row of weight
        2 counts as two equal rows, so with inverse noise variances as weights, intervals are too short for rows of low
        weight. The share can differ between regions of the inputs, less so with "quantiles" if the noise varies.
        Hyperparameters are selected with the same rows, so residuals are slightly too small; intervals are widened as
        for up to seven further degrees of freedom. There is no guarantee for few rows: on 320 synthetic tables, 90 %
        intervals of models with 20, 30, 50 and 100 rows contained 91, 90, 90 and 90 % of new targets, with standard
        errors below 0.5 points. Exact models with `groups` use residuals of predictions with the whole group left out.
        Models on random features, and local models with `cv` or `groups`, use residuals of the validation set only;
        with 60 rows in it, coverage varies by several percent between fits.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        coverage : float, default=0.9
            Share of new targets in the intervals, above 0 and below 1.
        method : {"auto", "quantiles", "deviations"}, default="auto"
            "quantiles": intervals between two quantiles of `predict_quantiles`, with equal shares outside on both
            sides. "deviations": symmetric intervals, in multiples of the standard deviation of prediction and constant
            noise together, calibrated on leave-one-out or validation residuals; models on random features without
            posterior samples use the noise only. "auto": "quantiles" if `fit` found that the noise varies (see
            `summary`) and there are enough residuals, else "deviations". A 90 % interval needs 19 residuals for
            "quantiles" and 9 for "deviations".

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            Lower and upper ends, separately for each target. Intervals by "deviations" depend on the other rows of X by
            at most a thousandth of their length; all other intervals, and predictions, are bitwise independent of them,
            except for rounding with Fourier features.

        Raises
        ------
        ValueError, MemoryError
            If `coverage` is out of range or too high for the number of residuals, `loss` is a deviance, or a kernel
            matrix does not fit in memory.
        """
        coverage = check_share(coverage, "coverage")
        check_choice(method, "method", ("auto", "quantiles", "deviations"))
        self._require_squares()
        noise_model, levels = self._fitted.noise_model, np.array([1 - coverage, 1 + coverage]) / 2
        if method == "quantiles" or (
            method == "auto" and noise_model is not None and noise_model.differ and noise_model.has_quantiles(levels)
        ):
            return self.predict_quantiles(X, levels)
        scores, variances = self._scores_and_variances(X)
        errors = self._fitted.posterior(self.n_jobs).errors
        half = self._widening(len(errors.scores)) * errors.reach(coverage) * np.sqrt(errors.noise * (1 + variances))
        return self._own_targets.bounds(scores - half, scores + half)

    def _widening(self, n_rows: int) -> float:
        """Return the factor of residuals that corrects for the selection of hyperparameters with the same rows."""
        chosen = (self._choices() | vars(self))["_n_chosen"]  # files of version 0.2.0 contain only parameters
        return float(np.sqrt(n_rows / max(n_rows / 2, n_rows - chosen)))

    def _choices(self) -> dict[str, int]:
        """Return the number of degrees of freedom of the selections, for widening intervals.

        Length scales count as at most 3, because the prior keeps them together; the kernel and its scaling count as 3.
        """
        scales = min(3, self.n_features_in_) if is_word(self.gamma, "learn") else 0
        chosen = is_word(self.alpha, "auto") + 3 * is_word(self.kernel, "auto") + scales
        return {"_n_chosen": int(chosen)}

    def _require_squares(self) -> None:
        """Raise a ValueError if `loss` is a deviance."""
        if self._own_targets.transform.name == LINK:
            raise ValueError("Standard deviations, samples, intervals and quantiles require loss='squared' or 'huber'.")

    @property
    def _own_targets(self) -> Targets:
        return cast(Targets, self._fitted.targets)

    def _posterior_of_function(self) -> Posterior:
        """Return the posterior of an exact model, or of a model with samples; ValueError for other models."""
        self._require_squares()
        posterior = self._fitted.posterior(self.n_jobs)
        if isinstance(posterior, FeaturePosterior) and posterior.samples is None:
            raise ValueError(
                f"Standard deviations and samples of a model with features='{self._fitted.features}' require posterior "
                "samples. Set solver_params={'n_posterior_samples': 32} and fit again."
            )
        return posterior

    def _with_std(self, X: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions of y and their standard deviations."""
        self._require_squares()
        scores, variances = self._scores_and_variances(X)
        noise = self._posterior_of_function().errors.noise
        return self._own_targets.decode(scores), self._own_targets.spreads(scores, np.sqrt(noise * variances))

    def _scores_and_variances(self, X: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions of transformed targets (n_rows, n_targets), and relative variances (n_rows, 1)."""
        both = self._columns_of(X, lambda rows, n_jobs: self._fitted.posterior(n_jobs).variances(rows, n_jobs))
        return both[:, :-1], both[:, -1:]

    def _columns_of(self, X: RawTable, more: Callable[[np.ndarray, int | None], np.ndarray]) -> np.ndarray:
        """Return predictions of transformed targets, and further columns from scaled rows; also for a source."""

        def beside(part: RawTable, note: Report) -> np.ndarray:
            rows, scores = self._rows_and_scores(part, note)
            with blas_threads(self.n_jobs):
                return np.column_stack([scores, more(rows, self.n_jobs)])

        return self._of_table(X, beside)
