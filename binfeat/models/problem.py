"""The data of the fit of a kernel model."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Self, cast

import numpy as np

from binfeat._common.held_out import Scoring, SquaredErrors, even_folds, of_mean_one
from binfeat._common.labels import AnyLabels, LabelColumns, Labels
from binfeat._threads import one_blas_thread, threads_to_factorise
from binfeat.length_scales.cholesky import times_square
from binfeat.length_scales.leave_one_out import Root, residuals, solver_by
from binfeat.models.kernel_algebra.bounded import BoundedLoss, left_out, minimise
from binfeat.models.kernel_algebra.reweighted import at_minimum
from binfeat.models.table.codes import columns_of_codes
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.target.deviance import Deviance
from binfeat.models.target.huber import weights_by, winsorised
from binfeat.models.target.targets import Targets, as_columns
from binfeat.models.target.transforms import LogLink, NoTransform

Predict = Callable[[np.ndarray], np.ndarray]  # from encoded rows to predictions of the targets
WeightColumn = np.ndarray | None  # (n_rows, 1)
Losses = Callable[[np.ndarray], np.ndarray]  # from predictions (n_rows, n_targets) to losses, (n_rows,) or (1,)

# Quadratic approximation of a loss: maps y, the caller's weights and predictions of the targets to working targets,
# targets (n_rows, n_targets) and weights (n_rows, 1).
Reweighting = Callable[[np.ndarray, WeightColumn, np.ndarray], tuple[np.ndarray, np.ndarray]]

_NEGLIGIBLE = 1e-6  # share of the variance of the targets
_STEPS = 20  # to the minimum of a loss, about
_FEW_EVENTS, _FOLDS = 100, 5


@dataclass(frozen=True, eq=False)
class HuberWeights:
    """Return Huber weights, which are lower for rows with large leave-one-out residuals."""

    targets: Targets | AnyLabels
    deviations: np.ndarray  # (n_targets,), of residuals

    def __call__(self, y: np.ndarray, weights: np.ndarray | None, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Y = self.targets.encode(y)
        own = weights_by(Y - scores, self.deviations)
        return Y, own if weights is None else weights * own


@dataclass(frozen=True, eq=False)
class WorkingSquares:
    """Return the quadratic approximation of a deviance near log means, with curvatures times weights."""

    targets: Targets
    deviance: Deviance

    def __call__(self, y: np.ndarray, weights: np.ndarray | None, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        steps, curvatures = self.deviance.step(as_columns(y), self.means(scores))
        own = curvatures.mean(axis=1, keepdims=True)
        return scores + steps / self.targets.std, own if weights is None else weights * own

    def means(self, scores: np.ndarray) -> np.ndarray:
        return np.exp(scores * self.targets.std + self.targets.mean)


@dataclass(frozen=True, eq=False)
class Beyond:
    """Return working targets of rows beyond the table, from predictions of a model of some rows."""

    predict: Predict
    reweigh: Reweighting

    def __call__(self, table: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights of encoded rows."""
        return self.reweigh(y, weights, self.predict(table))


def answers_of(targets: Targets | AnyLabels, y: np.ndarray) -> np.ndarray:
    """Return the given targets, (n_rows, n_targets): numbers, or labels as 1 and -1."""
    return targets.encode(y) if isinstance(targets, AnyLabels) else as_columns(y)


def n_targets_of(targets: Targets | AnyLabels, y: np.ndarray) -> int:
    """The number of columns of `answers_of`."""
    if isinstance(targets, LabelColumns):
        return sum(own.n_targets for own in targets.columns)
    return targets.n_targets if isinstance(targets, Labels) and not targets.is_multilabel else y.size // len(y)


@dataclass(frozen=True, eq=False)
class Problem:
    """A table with targets and weights, training and validation rows, and the validation criterion."""

    table: np.ndarray  # (n_rows, n_inputs), float64: encoded, and scaled only in what `of_all` makes
    y: np.ndarray  # of the caller, (n_rows,) or (n_rows, n_targets)
    targets: Targets | AnyLabels  # encodes y for the model, and decodes predictions for the caller
    weights: np.ndarray | None  # (n_rows, 1)
    train: np.ndarray  # numbers of rows
    held_out: np.ndarray
    encoder: TableEncoder
    scoring: Scoring | None  # None is the squared error
    groups: np.ndarray | None  # (n_rows,): number of the group of each row; groups are never split
    beyond: Beyond | None = field(default=None, kw_only=True)  # of a table of some rows, unless targets are y's alone

    @cached_property
    def Y(self) -> np.ndarray:
        """Return the targets of the model, (n_rows, n_targets)."""
        return self.targets.encode(self.y)

    @property
    def categorical(self) -> np.ndarray:
        return self.encoder.categorical

    def with_codes(self) -> "Problem":
        """The problem with numbers that are codes, by the training rows, as categories, too."""
        encoder = self.encoder
        numbers = encoder.inputs.plain_numbers
        coded = columns_of_codes(self.table, self.train, numbers, self.Y[self.train])
        if not coded:
            return self
        encoder, table = encoder.with_codes(self.table, coded)
        return replace(self, encoder=encoder, table=table)

    @cached_property
    def negligible(self) -> float:
        """Mean squared error, of any rows, below which nothing is left to gain; 0 if others than squares judge."""
        return _NEGLIGIBLE * float(self.Y[self.train].var(axis=0).min()) if self.is_judged_by_squares else 0.0

    def losses(self, rows: np.ndarray) -> Losses:
        """Return the validation losses of predicted targets for some rows."""
        if self.scoring is None:
            return self.own_losses(rows)
        scored = self.scoring.losses(self.table[rows], self.y[rows], self.targets)
        if not isinstance(self.targets, AnyLabels):
            return scored

        def calibrated(predictions: np.ndarray) -> np.ndarray:
            with one_blas_thread():
                return scored(predictions)

        return calibrated

    @property
    def is_judged_by_squares(self) -> bool:
        """Return True if `losses` are squared errors."""
        return self.scoring is None

    def losses_of_wide(self, rows: np.ndarray) -> Losses:
        """Return log-losses for many inputs, because squared errors would select penalties that are bad for labels.

        They are computed from calibrated probabilities.
        """
        labels, y, weights = self.targets, self.y[rows], self.weights_of(rows)
        if not isinstance(labels, Labels) or labels.is_multilabel or not self.is_judged_by_squares:
            return self.losses(rows)

        def log_losses(predictions: np.ndarray) -> np.ndarray:
            with one_blas_thread():
                calibrated = labels.calibrated(predictions, y, weights)
            return of_mean_one(weights) * calibrated.log_losses(predictions, y)

        return log_losses

    def own_losses(self, rows: np.ndarray) -> Losses:
        """The same without the user's score."""
        return SquaredErrors(self.Y[rows], self.weights_of(rows))

    def _losses_of_y(self, rows: np.ndarray, predictions: np.ndarray, targets: Targets) -> np.ndarray:
        """Return losses in the units of y for predicted targets of some rows."""
        if self.scoring is not None:
            return self.scoring.losses(self.table[rows], self.y[rows], targets)(predictions)
        plain = Targets.of(NoTransform(), self.y)
        errors = SquaredErrors(plain.encode(self.y[rows]), self.weights_of(rows))
        with np.errstate(over="ignore"):
            return errors(plain.encode(targets.decode(predictions)))

    def better(
        self, targets: Targets, rows: np.ndarray, predictions: np.ndarray, is_robust: bool
    ) -> tuple[np.ndarray, Targets]:
        """Return losses in the units of y, and targets with medians or means as predictions, by the lower loss."""
        residuals = targets.encode(self.y[rows]) - predictions
        means = targets.of_means(winsorised(residuals) if is_robust else residuals)
        trials = [(self._losses_of_y(rows, predictions, each), each) for each in (targets, means)]
        return min(trials, key=lambda trial: trial[0].mean())

    def left_out(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        """Return leave-one-out predictions (n_rows, n_targets) of an exact model, from its kernel matrix.

        Rows of a group are excluded together.
        """
        with threads_to_factorise(len(rows)):
            return self._left_out(rows, K, alpha, root)

    def _left_out(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        Y = self.Y[rows]
        own = self.relative_weights(rows), Y.astype(np.float32)
        return Y - residuals(K, alpha, *own, root, self.groups_of(rows))

    def predicted(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        """Return predictions (n_others, n_targets) for other rows, by an exact model of some rows.

        K contains kernel values of all pairs of both, with the rows of the model first.
        """
        n_rows = len(rows)
        with threads_to_factorise(n_rows):
            coef = self._coef(rows, K[:n_rows, :n_rows], alpha, root)
            return (K[n_rows:, :n_rows] + np.float32(1.0)) @ coef

    def _coef(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        """Return coefficients (n_rows, n_targets) of an exact model of some rows."""
        solve, _ = solver_by(root, K)(alpha, self.relative_weights(rows))
        return solve(self.Y[rows])

    def groups_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Numbers of the groups of rows, if there are any."""
        return None if self.groups is None else self.groups[rows]

    def weights_of(self, rows: np.ndarray | slice) -> np.ndarray | None:
        return None if self.weights is None else self.weights[rows]

    def weighty(self, rows: np.ndarray | slice) -> np.ndarray | slice:
        """Return a mask of the rows with positive weight, or a slice if all have."""
        return slice(None) if self.weights is None else self.weights[rows, 0] > 0

    @cached_property
    def mean_weight(self) -> float:
        """Return the training rows."""
        return 1.0 if self.weights is None else float(self.weights[self.train].mean())

    def relative_alpha(self, alpha: float | None) -> float | None:
        """A penalty that the user gives, or None, for weights of mean 1."""
        return None if alpha is None else alpha / self.mean_weight

    def relative_weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights (n_rows,) of mean 1 in the training rows."""
        return None if self.weights is None else self.weights[rows, 0] / self.mean_weight

    def of_all(
        self,
        table: Any,
        numbers: np.ndarray,
        y: np.ndarray,
        learned: np.ndarray,
        weights: WeightColumn,
        own_weights: WeightColumn,
    ) -> Self:
        """Return the problem of all rows, given the numbers of the rows of this problem.

        `table` has their scaled inputs, and is indexed as an array; `learned` is their Y, and `own_weights` are y's.
        All rows except validation rows are training rows.
        """
        held_out = numbers[self.held_out]
        known = {"table": table, "y": y, "weights": weights, **self._learned(learned, own_weights)}
        train = np.delete(np.arange(len(y)), held_out)
        return replace(self, **known, train=train, held_out=held_out, beyond=None, groups=None)

    def _learned(self, Y: np.ndarray, own_weights: WeightColumn) -> dict[str, Any]:
        """Return the fields that define the targets of the model, in addition to y and weights."""
        return {}

    @property
    def is_grouped(self) -> bool:
        return self.groups is not None

    @property
    def n_targets(self) -> int:
        return self.Y.shape[1]

    @property
    def n_solves(self) -> int:
        """Right-hand sides that a kernel matrix is solved for."""
        return self.n_targets


@dataclass(frozen=True, eq=False)
class MarginProblem(Problem):
    """Labels with a loss other than squares; kernels are selected with squares."""

    loss: BoundedLoss

    @classmethod
    def of(cls, problem: Problem, loss: BoundedLoss) -> Self:
        return cls(**_fields_of(problem), loss=loss)

    @property
    def n_solves(self) -> int:
        return _STEPS * self.n_targets

    @property
    def is_judged_by_squares(self) -> bool:
        return False

    @cached_property
    def of_squares(self) -> Problem:
        return Problem(**_fields_of(self))

    def own_losses(self, rows: np.ndarray) -> Losses:
        weights = of_mean_one(self.weights_of(rows))
        return lambda scores: weights * self.loss(self.Y[rows], scores)

    def _left_out(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        Y, weights = self.Y[rows], self.relative_weights(rows)
        found, alpha = minimise(self.loss, solver_by(root, K), alpha, weights, Y)
        return left_out(self.loss, K, alpha, weights, Y, found.scores, root, self.groups_of(rows))

    def _coef(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        return minimise(self.loss, solver_by(root, K), alpha, self.relative_weights(rows), self.Y[rows])[0].coef


@dataclass(frozen=True, eq=False)
class WorkingProblem(Problem):
    """Quadratic approximation of a deviance near log means: iteratively reweighted least squares.

    With the means ``m = exp(f)``, targets are ``f + step``, weights are curvatures times those of the caller, and
    predictions are judged by the deviance itself. Scores are standardised as the first targets are, of the mean of y.
    """

    targets: Targets
    responses: np.ndarray  # (n_rows, n_targets)
    own_weights: np.ndarray | None  # of the caller
    deviance: Deviance

    @classmethod
    def of(cls, problem: Problem, deviance: Deviance) -> Self:
        """The problem near the weighted mean of the targets."""
        Y, flat = as_columns(problem.y), problem.y.ndim == 1
        weights = None if problem.weights is None else problem.weights[:, 0]
        means = np.average(Y, axis=0, weights=weights)
        steps, _ = deviance.step(Y, means)
        std = np.sqrt(np.average(steps**2, axis=0, weights=weights))
        known = _fields_of(problem)
        known["targets"] = Targets.of_moments(LogLink(), np.log(means), std, flat)
        start = cls(**known, responses=np.zeros(Y.shape), own_weights=problem.weights, deviance=deviance)
        return start.at(start.responses)

    def at(self, scores: np.ndarray, predict: Predict | None = None) -> Self:
        """The same problem near these predictions, (n_rows, n_targets), which `predict` makes of any rows."""
        responses, weights = self.squares(self.y, self.own_weights, scores)
        beyond = None if predict is None else Beyond(predict, self.squares)
        return replace(self, responses=responses, weights=weights, beyond=beyond)

    def _learned(self, Y: np.ndarray, own_weights: WeightColumn) -> dict[str, Any]:
        return {"responses": Y, "own_weights": own_weights}

    @property
    def squares(self) -> WorkingSquares:
        return WorkingSquares(self.targets, self.deviance)

    @property
    def is_judged_by_squares(self) -> bool:
        return False

    def _left_out(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        """At the minimum of their own penalised deviance.

        If few rows have positive targets, one of them may contribute nearly all of the local curvature, and the
        minimum without it is far away. Folds are then excluded instead of rows, each with a model of the others.
        """
        groups, is_event = self.groups_of(rows), as_columns(self.y)[rows] > 0
        if is_event.sum(axis=0).min() >= _FEW_EVENTS:
            alpha, weights, Y = self._at_minimum(rows, K, alpha)
            return Y - residuals(K, alpha, weights, Y, root, groups)
        folds, out = even_folds(is_event.any(axis=1), groups, _FOLDS), np.empty((len(rows), self.n_targets))
        for fold in np.unique(folds):
            own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            both = np.append(others, own)
            out[own] = self.predicted(rows[others], K[np.ix_(both, both)], alpha, root)
        return out

    def _coef(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        alpha, weights, Y = self._at_minimum(rows, K, alpha)
        B, _ = root(K, alpha, weights)
        return times_square(B, Y)

    def _at_minimum(self, rows: np.ndarray, K: np.ndarray, alpha: float) -> tuple[float, np.ndarray, np.ndarray]:
        squares = self.Y[rows], cast(np.ndarray, self.weights)[rows]
        return at_minimum(K, alpha * self.mean_weight, squares, partial(self.squares, self.y[rows], self._own_of(rows)))

    def _own_of(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.own_weights is None else self.own_weights[rows]

    @cached_property
    def Y(self) -> np.ndarray:
        return self.responses

    def own_losses(self, rows: np.ndarray) -> Losses:
        weights = of_mean_one(self._own_of(rows))

        def deviances(scores: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                own = self.deviance(as_columns(self.y)[rows], self.squares.means(scores)).mean(axis=1)
            return weights * np.where(np.isfinite(own), own, np.inf)

        return deviances


def _fields_of(problem: Problem) -> dict[str, Any]:
    """Fields of all problems."""
    return {field.name: getattr(problem, field.name) for field in fields(Problem)}
