"""Log-odds of classes, calibrated on scores of rows that a machine had not seen."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from binfeat._common.subsets import evenly_spaced

_SOFTNESS = 0.05  # of what is taken for a share of rows: the least that scores tell apart
_RIDGE = 10.0  # rows' worth of belief that all classes are alike
_MOST_ROWS = 20_000  # that a calibration is fitted to; of 26 classes half of them lose a tenth of the log-loss
_LEAST_SPREAD = 0.05  # of scores, by which the belief is measured: smaller ones are scaled only
_MAX_ITER, _ENOUGH = 100, 1e-5  # steps, and the part of the entropy of the labels that the last one gains


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
        """
        from scipy.optimize import minimize  # late: slow to import

        rows = evenly_spaced(len(scores), _MOST_ROWS)
        likelihood = _Likelihood.of(scores[rows], labels[rows], None if weights is None else weights[rows])
        ends = {"maxiter": _MAX_ITER, "ftol": _ENOUGH * min(1.0, likelihood.entropy)}
        options = {"jac": True, "method": "L-BFGS-B", "bounds": likelihood.bounds, "options": ends}
        factors, intercept, beside = likelihood.split(minimize(likelihood, likelihood.start, **options).x)
        return cls(np.stack(np.hsplit(_joined(factors, beside), 2)), intercept)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Mean logarithmic loss and penalty, with gradient, by two factors, an intercept, and two matrices beside them.

    One row more is counted whose label is none of the likely ones, so that few rows that are all right do not say that
    all are (after Platt 1999, section 2.2).
    """

    features: np.ndarray  # (n_rows, 2 n_classes)
    targets: np.ndarray  # (n_rows, n_classes): shares of the labels
    weights: np.ndarray  # (n_rows, 1), which sum to 1
    stiffness: np.ndarray  # (2 n_classes,): penalty on squares of the matrices

    @classmethod
    def of(cls, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> "_Likelihood":
        n_rows, n_classes = scores.shape
        features, wrong = _features(scores), 1 / (n_rows + 2)
        targets = np.full(scores.shape, wrong / (n_classes - 1))
        targets[np.arange(n_rows), labels] = 1 - wrong
        shares = np.full((n_rows, 1), 1 / n_rows) if weights is None else weights / weights.sum()
        spread = np.maximum(features.var(axis=0).reshape(2, n_classes).mean(axis=1), _LEAST_SPREAD**2)
        return cls(features, targets, shares, np.repeat(_RIDGE / n_rows * spread, n_classes))

    @property
    def n_classes(self) -> int:
        return self.targets.shape[1]

    @property
    def entropy(self) -> float:
        """Loss of shares that are the same for all rows."""
        shares = (self.weights * self.targets).sum(axis=0)
        return float(-(shares * np.log(np.maximum(shares, np.finfo(float).tiny))).sum())

    @property
    def start(self) -> np.ndarray:
        """Parameters of scores as they are."""
        start = np.zeros(2 + self.n_classes * (1 + 2 * self.n_classes))
        start[0] = 1.0
        return start

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of the parameters: a higher score never makes its class less likely, though rows left out may say so."""
        return [(0.0, np.inf)] * 2 + [(-np.inf, np.inf)] * (self.start.size - 2)

    def split(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Factors (2,), intercept (n_classes,), matrices beside the factors, side by side (n_classes, 2 n_classes)."""
        factors, intercept, beside = np.split(parameters, [2, 2 + self.n_classes])
        return factors, intercept, beside.reshape(self.n_classes, -1)

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        factors, intercept, beside = self.split(parameters)
        logs = log_softmax(self.features @ _joined(factors, beside).T + intercept, axis=1)
        stiff = self.stiffness * beside
        loss = -float((self.weights * self.targets * logs).sum()) + float((stiff * beside).sum()) / 2
        slopes = self.weights * (np.exp(logs) - self.targets)
        by_coef = slopes.T @ self.features
        by_factors = [np.trace(own) for own in np.hsplit(by_coef, 2)]
        return loss, np.concatenate([by_factors, slopes.sum(axis=0), (by_coef + stiff).ravel()])


def _joined(factors: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """Multiples of the identity plus matrices beside them, side by side (n_classes, 2 n_classes)."""
    return np.kron(factors, np.eye(len(beside))) + beside


def _features(scores: np.ndarray) -> np.ndarray:
    """Scores, and logarithms of the shares that they stand for, smoothly kept above 0."""
    shares = (1 + scores) / (2 * _SOFTNESS)
    positive = np.where(shares > -30.0, np.log(np.logaddexp(0.0, np.maximum(shares, -30.0))), shares)
    return np.hstack([scores, positive])
