"""Log-odds of classes, calibrated on leave-one-out or validation scores."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from binfeat._common.subsets import slices
from binfeat._threads import one_blas_thread

SOFTNESS = 0.05  # smoothing of expected shares near 0: the resolution of scores
_RIDGE = 20.0  # strength, in rows, of the prior that all classes have the same calibration
_MOST_ROWS = 20_000  # maximum of rows in a calibration; with 26 classes, half as many increase the log-loss by a tenth
_LEAST_SPREAD = 0.05  # minimum of the scores' spread in the scale of the prior
_MAX_ITER, _ENOUGH = 100, 3e-5  # steps, and minimum gain of a step as a share of the labels' entropy
_BLOCK_ROWS = 250  # rows per block, so that log-odds stay in the cache


@dataclass(frozen=True, eq=False)
class Calibration:
    """Log-odds of the classes, (n_rows, n_classes), as linear functions of scores and of logarithms of shares.

    A score s, for targets -1 and 1, estimates the share of the class, ``p = (1 + s) / 2``. The
    logarithm of p suits rare classes with precise scores; the score itself is better if p is mostly noise. One
    matrix for each of the two separates classes that are often confused (matrix scaling of Guo et al. 2017,
    of scores and, as in Kull et al. 2019, of logarithms).
    """

    coef: np.ndarray  # (2, n_classes, n_classes): for scores and for logarithms
    intercept: np.ndarray  # (n_classes,)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        # BLAS would round few rows differently from many rows.
        return np.einsum("ij,kj->ik", _features(scores), np.hstack(list(self.coef))) + self.intercept

    @classmethod
    def of_factor(cls, factor: float, n_classes: int) -> "Calibration":
        """Multiply scores by a factor."""
        return cls(np.stack([factor * np.eye(n_classes), np.zeros((n_classes, n_classes))]), np.zeros(n_classes))

    @classmethod
    def fitted(
        cls, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, has_matrix: bool = True
    ) -> "Calibration":
        """Return the calibration with the highest penalized likelihood; the penalty acts on differences of classes.

        Log-odds that would decrease with the scores are constant instead. They decrease if the scores hardly depend on
        the inputs: the leave-one-out score of a row is then lower only because its own label is missing. They are also
        constant if other rows, with other mean scores, would probably have a higher loss than a constant. This happens
        if nearly equal scores of few rows get large factors by chance.

        Scores are (n_rows, n_classes), labels (n_rows,) the numbers of the classes, weights (n_rows, 1) or None.
        """
        from scipy.optimize import minimize  # late: slow to import

        rows = np.sort(np.random.default_rng(0).permutation(len(scores))[:_MOST_ROWS])
        likelihood = _Likelihood.of(scores[rows], labels[rows], None if weights is None else weights[rows])

        def loss_and_slopes(values: np.ndarray) -> tuple[float, np.ndarray]:
            loss, *slopes = likelihood(*coordinates.parameters(values))
            return loss, coordinates.slopes(*slopes)

        n_classes = likelihood.shares.size
        with one_blas_thread():  # faster for small products, which are always rounded equally
            ends = {"maxiter": _MAX_ITER, "ftol": _ENOUGH * min(1.0, likelihood.entropy)}
            coordinates = _Coordinates.of(likelihood) if has_matrix else _Factors(n_classes)
            start = coordinates.values(np.zeros(n_classes), np.eye(n_classes, 2 * n_classes))  # scores are log-odds
            found = minimize(loss_and_slopes, start, jac=True, method="L-BFGS-B", options=ends)
            intercept, coef = coordinates.parameters(found.x)
            if not (likelihood.increases(coef) and likelihood.is_reliable(intercept, coef)):
                intercept, coef = np.log(likelihood.shares), np.zeros(coef.shape)
        return cls(np.stack(np.hsplit(coef, 2)), intercept)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Mean log-loss plus penalty, and gradients, for an intercept (n_classes,) and coef (n_classes, 2 n_classes).

    The penalty is the distance of the two matrices in coef from the nearest non-negative multiples of the identity,
    because a higher score must not lower the probability of its class. One additional row
    with a wrong label is counted, so that probabilities stay below 1 if all labels of few rows are correct
    (after Platt 1999, section 2.2).
    """

    features: np.ndarray  # (n_rows, 2 n_classes)
    weights: np.ndarray  # (n_rows, 1), with sum 1
    targets: np.ndarray  # (n_rows, n_classes): shares of the labels, times weights
    stiffness: np.ndarray  # (2 n_classes,): penalty on squared entries of the matrices

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
        return self.targets.sum(axis=0)

    @property
    def entropy(self) -> float:
        return float(-(self.shares * np.log(np.maximum(self.shares, np.finfo(float).tiny))).sum())

    def increases(self, coef: np.ndarray) -> bool:
        """Return True if log-odds increase with the scores, by the sum of the covariances over classes."""
        means = self.weights[:, 0] @ self.features
        odds = (self.features - means) @ (coef - coef.mean(axis=0)).T  # log-odds are relative to their mean
        return bool((self.weights * self.features[:, : len(coef)] * odds).sum() > 0)

    def is_reliable(self, intercept: np.ndarray, coef: np.ndarray) -> bool:
        """Return True if the loss stays below the loss of the shares if mean scores change by their standard error."""
        n_classes, variances = len(coef), self.shares * (1 - self.shares)
        errors = 2 * np.sqrt(variances * (self.weights**2).sum())
        scores = self.features[:, :n_classes]
        changes = np.diff(_features(np.stack([scores.mean(axis=0) + step for step in (0.0, 1e-4)])), axis=0) / 1e-4
        slopes = (coef * changes) @ np.vstack([np.eye(n_classes)] * 2)
        gain = self.entropy - self(intercept, coef)[0]
        if 0.5 * variances @ (slopes**2 @ errors**2) < 0.5 * gain:  # by the curvature of the loss
            return True
        shifts = (errors / max(1, n_classes - 1))[:, np.newaxis] * (n_classes * np.eye(n_classes) - 1)
        changed = [replace(self, features=_features(scores + shift)) for shift in np.vstack([shifts, -shifts])]
        return bool(np.mean([own(intercept, coef)[0] for own in changed]) < self.entropy)

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
    """Coordinates in which the curvature of the loss is about the identity, so that ten steps are enough.

    The curvature for a class is about ``p (1 - p) X' X`` with centered features X of its log-odds (bound of Boehning
    1992). With the Cholesky factor L of it, values are coef times L.
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
        return np.append(self.of_intercept * (intercept + coef @ self.means), coef @ self.root)

    def parameters(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_classes = len(self.root) // 2
        coef = values[n_classes:].reshape(n_classes, -1) @ self.inverse
        return values[:n_classes] / self.of_intercept - coef @ self.means, coef

    def slopes(self, by_intercept: np.ndarray, by_coef: np.ndarray) -> np.ndarray:
        """Convert gradients by parameters to gradients by values."""
        by_coef = (by_coef - np.outer(by_intercept, self.means)) @ self.inverse.T
        return np.append(by_intercept / self.of_intercept, by_coef)


@dataclass(frozen=True)
class _Factors:
    """Coordinates if scores and logarithms have one factor each."""

    n_classes: int

    def values(self, intercept: np.ndarray, coef: np.ndarray) -> np.ndarray:
        return np.append(intercept, [np.trace(own) / self.n_classes for own in np.hsplit(coef, 2)])

    def parameters(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return values[:-2], np.hstack([factor * np.eye(self.n_classes) for factor in values[-2:]])

    def slopes(self, by_intercept: np.ndarray, by_coef: np.ndarray) -> np.ndarray:
        return np.append(by_intercept, [np.trace(own) for own in np.hsplit(by_coef, 2)])


def _features(scores: np.ndarray) -> np.ndarray:
    """Return scores, and logarithms of the shares that they estimate, smoothly bounded away from 0."""
    shares = (1 + scores) / (2 * SOFTNESS)
    positive = np.where(shares > -30.0, np.log(np.logaddexp(0.0, np.maximum(shares, -30.0))), shares)
    return np.hstack([scores, positive])
