"""What kernel machines for numbers have beside predictions: standard deviations, samples and intervals."""

from typing import cast

import numpy as np

from binfeat._common.validation import check_integer, check_share, seed_of
from binfeat._engine.policy import blas_threads
from binfeat._machine.estimator import KernelMachineBase
from binfeat._machine.fitted.exact import ExactPosterior
from binfeat._machine.fitted.features import FeaturePosterior, NoiseOnly
from binfeat._machine.fitted.local import LocalPosterior
from binfeat._machine.table.columns import RawTable
from binfeat._machine.target.targets import Targets
from binfeat._rows.scored import by_block
from binfeat._rows.sources import is_source


class NumbersMachineBase(KernelMachineBase):
    """Base of kernel machines for numbers."""

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
            If X is a source of blocks, `fit` drew no samples of random features, or covariances do not fit in memory.
        """
        n_samples, rng = check_integer(n_samples, "n_samples", 1), np.random.default_rng(seed_of(random_state))
        if is_source(X):
            raise ValueError("X must be rows in memory, whose samples belong together; got a source of blocks.")
        rows, scores = self._rows_and_scores(X)
        with blas_threads(self.n_jobs):
            posterior = self._posterior_of_function()
            deviations = posterior.deviations(rows, scores.shape[1] * n_samples, rng)
        noise = np.sqrt(posterior.errors.noise)
        apart = deviations.reshape(*scores.shape, n_samples) * noise[:, np.newaxis]
        samples = [self._own_targets.decode(scores + apart[:, :, k]) for k in range(n_samples)]
        return np.stack(samples, axis=-1)

    def predict_interval(self, X: RawTable, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold the given share of new targets, by split conformal prediction (Lei et al. 2018).

        An interval reaches to both sides of the prediction by a number of standard deviations, of prediction and noise
        together, which is just enough for the given share of the rows held out, or of all rows of an exact machine by
        leave-one-out predictions. Without `n_posterior_samples`, machines of random features know only the noise: all
        intervals then have one width, before a transform of the targets is undone. The share holds on average over
        rows like those of `fit`, whatever the noise; it may differ from one region of the inputs to another.

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
        ValueError, MemoryError
            If `coverage` is out of range or more than the held-out rows tell, or a kernel matrix exceeds the memory.
        """
        coverage = check_share(coverage, "coverage")
        scores, variances = self._scores_and_variances(X)
        errors = self._fitted.posterior(self.n_jobs).errors
        half = errors.reach(coverage) * np.sqrt(errors.noise * (1 + variances))
        return self._own_targets.bounds(scores - half, scores + half)

    @property
    def _own_targets(self) -> Targets:
        return cast(Targets, self._fitted.targets)

    def _posterior_of_function(self) -> ExactPosterior | LocalPosterior | FeaturePosterior:
        """What an exact machine knows, or a machine that has samples; ValueError for others."""
        posterior = self._fitted.posterior(self.n_jobs)
        if isinstance(posterior, NoiseOnly):
            raise ValueError(
                f"Standard deviations and samples of a machine of features='{self._fitted.features}' need samples that "
                "`fit` draws: set n_posterior_samples, 32 say, and fit again."
            )
        return cast(ExactPosterior | LocalPosterior | FeaturePosterior, posterior)

    def _with_std(self, X: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of y, and their standard deviations."""
        scores, variances = self._scores_and_variances(X)
        noise = self._posterior_of_function().errors.noise
        return self._own_targets.decode(scores), self._own_targets.spreads(scores, np.sqrt(noise * variances))

    def _scores_and_variances(self, X: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of what is learned (n_rows, n_targets), and their variances (n_rows, 1) by that of noise."""
        both = by_block(X, self._beside)[0] if is_source(X) else self._beside(X)
        return both[:, :-1], both[:, -1:]

    def _beside(self, X: RawTable) -> np.ndarray:
        rows, scores = self._rows_and_scores(X)
        with blas_threads(self.n_jobs):
            variances = self._fitted.posterior(self.n_jobs).variances(rows)
        return np.column_stack([scores, variances])
