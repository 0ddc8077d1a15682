"""Log-odds of classes, calibrated on scores of rows that a machine had not seen."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from binfeat._common.subsets import evenly_spaced, slices

SOFTNESS = 0.05  # of what is taken for a share of rows: the least that scores tell apart
_RIDGE = 20.0  # rows' worth of belief that all classes are alike
_MOST_ROWS = 20_000  # that a calibration is fitted to; of 26 classes half of them lose a tenth of the log-loss
_LEAST_SPREAD = 0.05  # of scores, by which the belief is measured: smaller ones are scaled only
_MAX_ITER, _ENOUGH = 100, 3e-5  # steps, and the part of the entropy of the labels that the last one gains
_BLOCK_ROWS = 250  # whose log-odds stay in the cache


class Uncalibrated:
    """Scores as log-odds, as they are."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return scores


UNCALIBRATED = Uncalibrated()


@dataclass(frozen=True, eq=False)
class Calibration:
    """Log-odds of the classes, (n_rows, n_classes), linear in their scores and in the logarithms of shares.

    Scores s, for targets -1 and 1, are linear in the expected share of rows of a class, ``p = (1 + s) / 2``. Its
    logarithm is right for rare classes, where scores are well known; scores themselves are where p is mostly noise. A
    matrix for each of both tells classes apart that are mistaken for each other (matrix scaling of Guo et al. 2017,
    of scores and, as in Kull et al. 2019, of logarithms).
    """

    coef: np.ndarray  # (2, n_classes, n_classes): of the scores, and of the logarithms
    intercept: np.ndarray  # (n_classes,)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        # No product by BLAS, which rounds few rows differently from many.
        return np.einsum("ij,kj->ik", _features(scores), np.hstack(list(self.coef))) + self.intercept

    @classmethod
    def of_factor(cls, factor: float, n_classes: int) -> "Calibration":
        """Scores times a factor."""
        return cls(np.stack([factor * np.eye(n_classes), np.zeros((n_classes, n_classes))]), np.zeros(n_classes))

    @classmethod
    def fitted(cls, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> "Calibration":
        """The calibration with the highest likelihood, less a ridge penalty on what tells classes apart.

        Scores are (n_rows, n_classes), labels (n_rows,) the numbers of the classes, weights (n_rows, 1) or None.
        Products are small: for callers one thread of BLAS is faster, far faster on busy cores, and always rounds alike.
        """
        from scipy.optimize import minimize  # late: slow to import

        rows = evenly_spaced(len(scores), _MOST_ROWS)
        likelihood = _Likelihood.of(scores[rows], labels[rows], None if weights is None else weights[rows])

        def loss_and_slopes(values: np.ndarray) -> tuple[float, np.ndarray]:
            loss, *slopes = likelihood(*coordinates.parameters(values))
            return loss, coordinates.slopes(*slopes)

        ends = {"maxiter": _MAX_ITER, "ftol": _ENOUGH * min(1.0, likelihood.entropy)}
        coordinates = _Coordinates.of(likelihood)
        start = coordinates.values(*likelihood.as_they_are)
        found = minimize(loss_and_slopes, start, jac=True, method="L-BFGS-B", options=ends)
        intercept, coef = coordinates.parameters(found.x)
        return cls(np.stack(np.hsplit(coef, 2)), intercept)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Mean logarithmic loss and penalty, with slopes, by an intercept (n_classes,) and coef (n_classes, 2 n_classes).

    Penalised is what two matrices, side by side in coef, have beside multiples of the identity: the nearest ones that
    are not negative, for a higher score never makes its class less likely, though rows left out may say so. One row
    more is counted whose label is none of the likely ones, so that few rows that are all right do not say that all are
    (after Platt 1999, section 2.2).
    """

    features: np.ndarray  # (n_rows, 2 n_classes)
    weights: np.ndarray  # (n_rows, 1), which sum to 1
    targets: np.ndarray  # (n_rows, n_classes): shares of the labels, times weights
    stiffness: np.ndarray  # (2 n_classes,): penalty on squares of the matrices

    @classmethod
    def of(cls, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> "_Likelihood":
        n_rows, n_classes = scores.shape
        features, wrong = _features(scores), 1 / (n_rows + 2)
        targets = np.full(scores.shape, wrong / (n_classes - 1))
        targets[np.arange(n_rows), labels] = 1 - wrong
        shares = np.full((n_rows, 1), 1 / n_rows) if weights is None else weights / weights.sum()
        spread = np.maximum(features.var(axis=0).reshape(2, n_classes).mean(axis=1), _LEAST_SPREAD**2)
        return cls(features, shares, shares * targets, np.repeat(_RIDGE / n_rows * spread, n_classes))

    @cached_property
    def shares(self) -> np.ndarray:
        """Of the classes in all rows."""
        return self.targets.sum(axis=0)

    @property
    def entropy(self) -> float:
        """Loss of shares that are the same for all rows."""
        return float(-(self.shares * np.log(np.maximum(self.shares, np.finfo(float).tiny))).sum())

    @property
    def as_they_are(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters of scores that are log-odds."""
        n_classes = self.shares.size
        return np.zeros(n_classes), np.eye(n_classes, 2 * n_classes)

    def __call__(self, intercept: np.ndarray, coef: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        beside = coef - np.hstack([max(0.0, np.trace(own) / len(own)) * np.eye(len(own)) for own in np.hsplit(coef, 2)])
        by_coef = self.stiffness * beside
        loss, by_intercept = float((by_coef * beside).sum()) / 2, np.zeros(len(coef))
        for rows in slices(len(self.features), _BLOCK_ROWS):
            odds = self.features[rows] @ coef.T + intercept
            odds -= odds.max(axis=1, keepdims=True)
            slopes = np.exp(odds)
            sums = slopes.sum(axis=1, keepdims=True)
            loss += float((self.weights[rows] * np.log(sums)).sum() - (self.targets[rows] * odds).sum())
            slopes *= self.weights[rows] / sums
            slopes -= self.targets[rows]
            by_coef += slopes.T @ self.features[rows]
            by_intercept += slopes.sum(axis=0)
        return loss, by_intercept, by_coef


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Coordinates of a calibration in which the loss has about the identity as its curvature: ten steps are enough.

    That of a class is about ``p (1 - p) X' X`` of its log-odds' features X, about their means (Boehning 1992 bounds it
    so). With L L' = that, values are coef times L.
    """

    means: np.ndarray  # (2 n_classes,), of the features
    root: np.ndarray  # L, (2 n_classes, 2 n_classes)
    inverse: np.ndarray
    of_intercept: float  # root of the curvature of intercepts

    @classmethod
    def of(cls, likelihood: _Likelihood) -> "_Coordinates":
        curvature = float((likelihood.shares * (1 - likelihood.shares)).mean())
        means = likelihood.weights[:, 0] @ likelihood.features
        X = likelihood.features - means
        root = np.linalg.cholesky(curvature * X.T @ (likelihood.weights * X) + np.diag(likelihood.stiffness))
        return cls(means, root, np.linalg.inv(root), np.sqrt(curvature))

    def values(self, intercept: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Of parameters."""
        return np.append(self.of_intercept * (intercept + coef @ self.means), coef @ self.root)

    def parameters(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Intercept and coef of values."""
        n_classes = len(self.root) // 2
        coef = values[n_classes:].reshape(n_classes, -1) @ self.inverse
        return values[:n_classes] / self.of_intercept - coef @ self.means, coef

    def slopes(self, by_intercept: np.ndarray, by_coef: np.ndarray) -> np.ndarray:
        """By values, from those by parameters."""
        by_coef = (by_coef - np.outer(by_intercept, self.means)) @ self.inverse.T
        return np.append(by_intercept / self.of_intercept, by_coef)


def _features(scores: np.ndarray) -> np.ndarray:
    """Scores, and logarithms of the shares that they stand for, smoothly kept above 0."""
    shares = (1 + scores) / (2 * SOFTNESS)
    positive = np.where(shares > -30.0, np.log(np.logaddexp(0.0, np.maximum(shares, -30.0))), shares)
    return np.hstack([scores, positive])
