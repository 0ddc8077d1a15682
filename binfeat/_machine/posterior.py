"""How far predictions may be off: the Gaussian process whose mean a kernel machine is.

Targets are what the machine learns, standardised. With noise of variance s2 for a row of mean weight, weights of
features have the prior variance ``s2 / alpha``, so that all variances here are multiples of s2. What s2 is, residuals
of rows that a machine had not seen tell: ``E[r^2] = s2 (u + 1)``, with u the variance of the prediction.
"""

import numpy as np

from binfeat._common.memory import require_memory
from binfeat._engine.policy import threads_to_factorise
from binfeat._machine.leave_one_out import inverse_root


class HeldOutErrors:
    """Residuals of rows that a machine had not seen, by their expected size.

    Parameters
    ----------
    residuals : ndarray of shape (n_rows, n_targets)
    variances : ndarray of shape (n_rows,)
        Of the predictions, as multiples of the noise.

    Attributes
    ----------
    noise : ndarray of shape (n_targets,)
        s2.
    scores : ndarray of shape (n_rows, n_targets)
        Absolute residuals in standard deviations, sorted.
    """

    def __init__(self, residuals, variances):
        scaled = np.abs(residuals) / np.sqrt(1 + variances)[:, np.newaxis]
        self.noise = np.maximum((scaled**2).mean(axis=0), np.finfo(float).tiny)
        self.scores = np.sort(scaled / np.sqrt(self.noise), axis=0)


class ExactPosterior:
    """Of an exact machine, in closed form (Rasmussen & Williams 2006, eq. 2.26 and 5.12).

    Parameters
    ----------
    function : ExactFunction
    n_jobs : int or None

    Attributes
    ----------
    errors : HeldOutErrors
        Of leave-one-out predictions for all rows of the machine.
    """

    def __init__(self, function, n_jobs):
        self._function, self._n_jobs = function, n_jobs
        n_rows = function.support.shape[1]
        require_memory(8 * n_rows**2, "the standard deviations of an exact machine", "Use predict alone.")
        K = function.kernel(function.support, function.support, n_jobs)
        with threads_to_factorise(n_rows):
            self._root, self._alpha = inverse_root(K, float(function.alpha), function.weights)
        g = np.einsum("ij,ij->i", self._root, self._root, dtype=np.float64)
        variances = 1 / (self._alpha * g) - 1 / function.weights
        self.errors = HeldOutErrors((function.coef / g).T, np.maximum(variances, 0.0))

    def variances(self, X):
        """Of the predictions for rows (n_rows, n_inputs), as multiples of the noise."""
        out = np.empty(len(X))
        for place, rows in self._function.blocks(X):
            known = self._known(rows)
            out[place] = self._function.kernel_diagonal(rows) + 1 - np.einsum("ij,ij->j", known, known, dtype=float)
        return np.maximum(out, 0.0) / self._alpha

    def deviations(self, X, n_samples, rng):
        """Samples of what the prediction is off by, of variance 1 times the noise, (n_rows, n_samples)."""
        n_rows = len(X)
        require_memory(32 * n_rows**2, "samples at so many rows", "Give sample_y fewer rows at a time.")
        rows = self._function.frame.columns(X)
        known = self._known(rows).astype(np.float64)
        covariance = self._function.kernel(rows, rows, self._n_jobs) + 1.0 - known.T @ known
        with threads_to_factorise(n_rows):
            values, vectors = np.linalg.eigh(covariance / self._alpha)
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((n_rows, n_samples))

    def _known(self, rows):
        """What the machine's rows say of others, (n_machine_rows, n_rows): squares that the prior variance loses."""
        return self._root.T @ (self._function.kernel(self._function.support, rows, self._n_jobs) + np.float32(1.0))
