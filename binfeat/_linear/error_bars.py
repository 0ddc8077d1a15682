"""Standard deviations of a ridge machine's predictions: what a fit learns for them, and what follows for new rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.validation import check_integer, seed_of
from binfeat._linear.posterior import RidgePosterior, noise_variance, ridge_posterior
from binfeat._linear.result import Result, SolverOptions
from binfeat._rows.products import Features
from binfeat._rows.rows import LocalRows, Rows


@dataclass(frozen=True)
class ErrorBars:
    """The posterior of a machine's coefficients for noise of variance 1, and the variance of the noise."""

    posterior: RidgePosterior
    noise: np.ndarray  # one variance, or one for each target

    @classmethod
    def learned(
        cls, rows: LocalRows, alpha: float, n_samples: int, options: SolverOptions, seed: object, fit: Result
    ) -> Self:
        """From the posterior of a fit with this penalty, and from the residuals of the rows."""
        if not alpha:
            raise ValueError("n_posterior_samples needs an alpha above 0, and 0 was the best of alphas; leave it out.")
        rng = np.random.default_rng([seed_of(seed), n_samples])
        posterior = ridge_posterior(rows, alpha, n_samples, options, rng)
        return cls(posterior, noise_variance(rows, posterior, fit.solution, fit.intercept))

    def of_predictions(self, Z: Features) -> np.ndarray:
        """Standard deviations of the predictions for rows Z, of shape (n_rows,) or (n_rows, n_targets)."""
        return np.sqrt(np.multiply.outer(self.posterior.variances(Z), self.noise))


def check_samples(n_posterior_samples: int | None, rows: Rows) -> int:
    """The number of samples, 0 for none; refused where there can be none."""
    if n_posterior_samples is None:
        return 0
    n_samples = check_integer(n_posterior_samples, "n_posterior_samples", 1)
    if not isinstance(rows, LocalRows):
        raise ValueError("n_posterior_samples needs rows in memory or a source of blocks; set it to None on Dask.")
    return n_samples
