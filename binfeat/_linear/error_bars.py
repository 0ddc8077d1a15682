"""Standard deviations of a ridge machine's predictions."""

from typing import Any

import numpy as np

from binfeat._common.validation import check_integer, seed_of
from binfeat._linear.posterior import RidgePosterior, noise_variance, ridge_posterior
from binfeat._rows.rows import LocalRows


class RidgeErrorBars:
    """Mixin to the left of `CGRidgeBase`, for a machine whose targets are numbers."""

    _check_alpha: Any
    _check_design: Any
    _options: Any
    alpha: Any
    alpha_: Any
    alphas: Any
    coef_: Any
    intercept_: Any
    n_posterior_samples: Any
    noise_variance_: Any
    random_state: Any
    status_: Any
    _posterior: Any

    def _fit_linear(self, X, rows, y, groups=None, *, flat=False):
        n_samples = self._checked_samples(rows)
        self._forget_errors()
        super()._fit_linear(X, rows, y, groups, flat=flat)  # type: ignore[misc]
        if n_samples and self.status_ != "stopped":
            try:
                self._learn_errors(rows, n_samples, flat)
            except KeyboardInterrupt:
                self.status_ = "interrupted"
                raise

    def _fit_more(self, Z, Y, weights, first, flat=False):
        self._forget_errors()
        super()._fit_more(Z, Y, weights, first, flat)  # type: ignore[misc]

    def _forget_errors(self):
        self.__dict__.pop("_posterior", None)
        self.__dict__.pop("noise_variance_", None)

    def _checked_samples(self, rows):
        """The number of samples, 0 for none; refused where there can be none."""
        if self.n_posterior_samples is None:
            return 0
        n_samples = check_integer(self.n_posterior_samples, "n_posterior_samples", 1)
        if not isinstance(rows, LocalRows):
            raise ValueError("n_posterior_samples needs rows in memory or a source of blocks; set it to None on Dask.")
        if self.alphas is None and (np.unique(self._check_alpha(rows.n_targets)).size > 1 or not np.all(self.alpha)):
            raise ValueError(f"n_posterior_samples needs one alpha above 0 for all targets; got {self.alpha!r}.")
        return n_samples

    def _learn_errors(self, rows, n_samples, flat):
        alpha, options = float(np.max(self.alpha_)), self._options()
        if not alpha:
            raise ValueError("n_posterior_samples needs an alpha above 0, and 0 was the best of alphas; leave it out.")
        rng = np.random.default_rng([seed_of(self.random_state), n_samples])
        posterior = ridge_posterior(rows, alpha, n_samples, options, rng)
        coef, intercept = np.atleast_2d(self.coef_).T, np.atleast_1d(self.intercept_)
        noise = noise_variance(rows, posterior, coef, intercept)
        self._posterior, self.noise_variance_ = posterior.arrays(), noise[0] if flat else noise

    def _std(self, X):
        """Standard deviations of the predictions, like these."""
        if not hasattr(self, "_posterior"):
            raise ValueError(
                "return_std=True needs samples of the posterior, which fit draws: set n_posterior_samples, 32 say, and "
                "fit again."
            )
        variances = RidgePosterior.from_arrays(self._posterior).variances(self._check_design(X))
        return np.sqrt(np.multiply.outer(variances, self.noise_variance_)).astype(self.coef_.dtype)
