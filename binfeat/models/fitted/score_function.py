"""Interface of all fitted models: functions that return scores, and their error bars.

Targets are what the model learns, standardised. With noise of variance s2 for a row of mean weight, weights of
features have the prior variance ``s2 / alpha``, so that all variances here are multiples of s2. What s2 is, residuals
of leave-one-out residuals estimate it: ``E[r^2] = s2 (u + 1)``, with the variance u of the prediction.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat._threads import threads_to_factorise
from binfeat.linear.posterior import RidgePosterior

BLOCK_BYTES = 2**26  # of codes, hashes or features at a time


@dataclass(frozen=True, eq=False)
class HeldOutErrors(ArrayRecord):
    """Leave-one-out or validation residuals, divided by their expected size."""

    noise: np.ndarray  # (n_targets,): s2
    scores: np.ndarray  # (n_rows, n_targets): absolute residuals in standard deviations, sorted

    @classmethod
    def of(cls, residuals: np.ndarray, variances: np.ndarray) -> "HeldOutErrors":
        """Standardize residuals (n_rows, n_targets), given variances (n_rows,) in units of the noise variance."""
        scaled = np.abs(residuals) / np.sqrt(1 + np.reshape(variances, (-1, 1)))
        noise = np.maximum((scaled**2).mean(axis=0), np.finfo(float).tiny)
        return cls(noise, np.sort(scaled / np.sqrt(noise), axis=0))

    def reach(self, coverage: float) -> np.ndarray:
        """For each target the standard deviations that this share of new rows does not exceed."""
        n_rows = len(self.scores)
        place = int(np.ceil(coverage * (n_rows + 1)))
        if place > n_rows:
            raise ValueError(
                f"coverage must be at most {n_rows / (n_rows + 1):.3g} with {n_rows} validation rows, got {coverage:g}."
                " Fit to more rows, or, with random features, use a larger validation set."
            )
        return self.scores[place - 1]


def normal_samples(covariance: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return samples (n_rows, n_samples) with mean 0 and a given covariance, semidefinite up to rounding."""
    with threads_to_factorise(len(covariance)):
        values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((len(covariance), n_samples))


class Posterior(Protocol):
    """Error bars of predictions."""

    errors: HeldOutErrors

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Return variances of predictions for rows (n_rows, n_inputs), in units of the noise variance."""


class ScoreFunction(ABC):
    """The function of a model without its intercept."""

    @property
    def n_grids(self) -> int:
        return 0

    @property
    def n_fourier(self) -> int:
        """Fourier features."""
        return 0

    @property
    def n_trees(self) -> int:
        return 0

    @abstractmethod
    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        """Summands of the values, (n_rows, n_targets) each."""

    def scores(self, X: np.ndarray, intercept: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values plus intercept, (n_rows, n_targets), for X of shape (n_rows, n_inputs), float64 in C order."""
        scores = np.empty((len(X), intercept.size))
        scores[:] = intercept
        for term in self._terms(X, n_jobs):
            scores += term
        return scores

    @abstractmethod
    def posterior(self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None) -> Posterior:
        """Return error bars, from samples of the coefficients and validation errors if needed."""
