"""Standard deviations, samples and intervals of a kernel machine's predictions."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.validation import check_integer, check_share, seed_of
from binfeat._engine.policy import blas_threads
from binfeat._linear.posterior import RidgePosterior
from binfeat._machine.fitted.uncertainty import HeldOutErrors
from binfeat._machine.target.targets import Targets
from binfeat._rows.scored import by_block
from binfeat._rows.sources import is_source


class ErrorBars:
    """Mixin of a kernel machine for numbers."""

    features_: Any
    _exact: Any
    _posterior: Any
    _held_out: Any
    _scores: Any
    _predictor_of_fit: Any
    n_jobs: Any
    predict: Any

    def _keep(self, problem, fit, status):
        super()._keep(problem, fit, status)  # type: ignore[misc]
        self._posterior, self._held_out = {}, {}
        if fit.exact is None:
            (rows, predictions), growth = fit.judged(), fit.sizing.growth
            weights, residuals = problem.weights_of(rows), problem.Y[rows] - predictions
            count = slice(None) if weights is None else weights[:, 0] > 0
            errors = HeldOutErrors.of(residuals[count], np.broadcast_to(growth.variances_out, len(rows))[count])
            self._posterior = {} if growth.posterior is None else growth.posterior.arrays()
            self._held_out = errors.arrays()

    def _error_parts(self):
        samples = RidgePosterior.from_arrays(self._posterior) if self._posterior else None
        return samples, HeldOutErrors.from_arrays(self._held_out) if self._held_out else None

    def _require_samples(self):
        """Refuse what only an exact machine knows, or one that has samples."""
        if not (self._exact or self._posterior):
            raise ValueError(
                f"Standard deviations and samples of a machine of features='{self.features_}' need samples that `fit` "
                "draws: set n_posterior_samples, 32 say, and fit again."
            )

    def sample_y(self, X: Any, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0) -> np.ndarray:
        """Draw functions from the Gaussian process whose mean is the prediction, and give their values for some rows.

        The samples have no noise, as those of scikit-learn's `GaussianProcessRegressor`. For a machine of random
        features they are sums, with normal weights, of the `n_posterior_samples` that `fit` drew, and of what bins
        without training rows may add.

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
        ValueError
            If X is a source of blocks, `n_samples` is below 1, or a machine of random features has no samples.
        MemoryError
            If an exact machine is given so many rows that their covariances do not fit in memory.
        """
        n_samples, rng = check_integer(n_samples, "n_samples", 1), np.random.default_rng(seed_of(random_state))
        if is_source(X):
            raise ValueError("X must be rows in memory, whose samples belong together; got a source of blocks.")
        scores = self._scores(X)
        self._require_samples()
        predictor, targets = self._predictor_of_fit(), Targets.of_machine(self)
        with blas_threads(self.n_jobs):
            posterior = predictor.posterior(self.n_jobs)
            n_targets = scores.shape[1]
            deviations = posterior.deviations(predictor.rows(self, X), n_targets * n_samples, rng)
        noise = np.sqrt(posterior.errors.noise)
        apart = deviations.reshape(len(scores), n_targets, n_samples) * noise[:, np.newaxis]
        samples = [targets.decode(scores + apart[:, :, k]) for k in range(n_samples)]
        return np.stack(samples, axis=-1)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold the given share of new targets, by split conformal prediction (Lei et al. 2018).

        An interval reaches to both sides of the prediction by a number of standard deviations, which is just enough
        for the given share of the rows that the machine had not seen: rows held out, or all rows of an exact machine by
        leave-one-out predictions. The standard deviation is that of prediction and noise together. Without
        `n_posterior_samples`, machines of random features know only the noise: all intervals then have one width,
        before a transform of the targets is undone. The share holds on average over rows like those of `fit`, whatever
        the noise; it may differ from one region of the inputs to another.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        coverage : float, default=0.9
            Share of new targets that the intervals hold, above 0 and below 1.

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            Lower and upper end. Each of several targets is covered by itself.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1, or is more than the few rows held out can tell.
        MemoryError
            If the factor of an exact machine's kernel matrix does not fit in memory.
        """
        check_is_fitted(self, "feature_coef_")
        coverage = check_share(coverage, "coverage")
        scores, variances = self._scores_and_variances(X)
        errors = self._predictor_of_fit().posterior(self.n_jobs).errors
        half = _reach(errors.scores, coverage) * np.sqrt(errors.noise * (1 + variances))
        return Targets.of_machine(self).bounds(scores - half, scores + half)

    def _with_std(self, X):
        """Predictions of y, and their standard deviations."""
        scores, variances = self._scores_and_variances(X)
        self._require_samples()
        noise, targets = self._predictor_of_fit().posterior(self.n_jobs).errors.noise, Targets.of_machine(self)
        return targets.decode(scores), targets.spreads(scores, np.sqrt(noise * variances))

    def _scores_and_variances(self, X):
        """Predictions of what is learned (n_rows, n_targets), and their variances (n_rows, 1) by that of noise."""
        both = by_block(X, self._beside)[0] if is_source(X) else self._beside(X)
        return both[:, :-1], both[:, -1:]

    def _beside(self, X):
        scores, predictor = self._scores(X), self._predictor_of_fit()
        with blas_threads(self.n_jobs):
            variances = predictor.posterior(self.n_jobs).variances(predictor.rows(self, X))
        return np.column_stack([scores, variances])


def _reach(scores, coverage):
    """For each target the score that this share of new rows does not exceed."""
    place = int(np.ceil(coverage * (len(scores) + 1)))
    if place > len(scores):
        raise ValueError(
            f"coverage must be at most {len(scores) / (len(scores) + 1):.3g} where {len(scores)} rows were held out; "
            f"got {coverage:g}. Give fit more rows, or a larger validation_fraction."
        )
    return scores[place - 1]
