"""The data of the fit of a kernel model."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from binfeat._common.held_out import of_mean_one, squared_errors
from binfeat._common.labels import AnyLabels, LabelColumns, Labels
from binfeat._threads import threads_to_factorize
from binfeat.length_scales.leave_one_out import Root, Weights
from binfeat.models.kernel_algebra.loss import Loss, SquaredError, Squares
from binfeat.models.kernel_algebra.solve import coefficients, minimum_left_out
from binfeat.models.table.derived import columns_of_codes
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.targets import Targets, TargetTransform, as_columns, of_positive_weight

if TYPE_CHECKING:
    from binfeat.models.fitted.cell_trees import ScaledTable

Predict = Callable[[np.ndarray], np.ndarray]  # from encoded rows to predictions of the targets
WeightColumn = np.ndarray | None  # (n_rows, 1)
Losses = Callable[[np.ndarray], np.ndarray]  # from predictions (n_rows, n_targets) to losses, (n_rows,) or (1,)
Beyond = Callable[[np.ndarray, np.ndarray, WeightColumn], Squares]  # from encoded rows, y and weights of the caller

_NEGLIGIBLE = 1e-6  # share of the variance of the targets


def answers_of(targets: Targets | AnyLabels, y: np.ndarray) -> np.ndarray:
    """Return the given targets, (n_rows, n_targets): numbers, or labels as 1 and -1."""
    return targets.encode(y) if isinstance(targets, AnyLabels) else as_columns(y)


def n_targets_of(targets: Targets | AnyLabels, y: np.ndarray) -> int:
    if isinstance(targets, LabelColumns):
        return sum(own.n_targets for own in targets.columns)
    return targets.n_targets if isinstance(targets, Labels) and not targets.is_multilabel else y.size // len(y)


def rows_of(array: np.ndarray | None, rows: np.ndarray | slice) -> np.ndarray | None:
    """Return some rows of an array that may be missing, such as weights or groups."""
    return None if array is None else array[rows]


@dataclass(frozen=True, eq=False)
class Problem:
    """A table with targets, weights and a loss, training and validation rows, and the validation criterion.

    Kernels are learned with squared errors, and most kinds of models solve least squares. So `Y` and `weights` are the
    quadratic approximation of the loss near some scores, or initially the answers and weights of the caller.
    """

    table: np.ndarray  # (n_rows, n_inputs), float64: encoded, and scaled only in results of `of_all`
    y: np.ndarray  # the caller's targets, (n_rows,) or (n_rows, n_targets)
    targets: Targets | AnyLabels  # encodes y for the model, and decodes predictions for the caller
    own_weights: WeightColumn  # the caller's weights
    train: np.ndarray  # row numbers
    held_out: np.ndarray
    encoder: TableEncoder
    scoring: Callable[..., Losses] | None  # of rows, labels and targets; None to use the loss
    groups: np.ndarray | None  # (n_rows,): number of the group or fold of each row; these are never split
    related: np.ndarray | None = field(default=None, kw_only=True)  # groups that steps of searches leave out, not folds
    y_ends: np.ndarray | None = field(default=None, kw_only=True)  # `ends_of` y in all rows, if these are a sample
    loss: Loss = field(default=SquaredError(), kw_only=True)
    squares: Squares | None = field(default=None, kw_only=True)  # quadratic approximation of the loss
    beyond: Beyond | None = field(default=None, kw_only=True)  # the approximation for rows beyond the table

    @cached_property
    def answers(self) -> np.ndarray:
        return as_columns(self.y) if self.loss.has_link else self.targets.encode(self.y)

    @property
    def Y(self) -> np.ndarray:
        return self.answers if self.squares is None else self.squares[0]

    @property
    def weights(self) -> WeightColumn:
        return self.own_weights if self.squares is None else self.squares[1]

    @property
    def categorical(self) -> np.ndarray:
        return self.encoder.categorical

    @property
    def n_targets(self) -> int:
        return self.Y.shape[1]

    def at(self, scores: np.ndarray, predict: Predict | None = None) -> Self:
        """Return the problem with the quadratic approximation near scores, which `predict` computes for any rows."""
        rows = self.weighty(slice(None))
        loss = self.loss.scaled((self.answers - scores)[rows], counts_of(self, rows))
        beyond = None if predict is None else partial(_squares_beyond, predict, self.targets, loss)
        return replace(self, loss=loss, squares=loss.squares(self.answers, scores, self.own_weights), beyond=beyond)

    @property
    def uses_squared_errors(self) -> bool:
        """Return True if `losses` are squared errors."""
        return self.scoring is None and self.loss.is_squares

    @cached_property
    def negligible(self) -> float:
        """Mean squared error below which no gain is possible; minus infinity with another criterion."""
        return _NEGLIGIBLE * float(self.Y[self.train].var(axis=0).min()) if self.uses_squared_errors else -np.inf

    def losses(self, rows: np.ndarray) -> Losses:
        """Return the validation losses of predicted targets for some rows."""
        if self.uses_squared_errors:
            return squared_errors(self.Y[rows], rows_of(self.weights, rows))
        if self.scoring is None:
            Y, weights = self.answers[rows], of_mean_one(rows_of(self.own_weights, rows))
            return lambda scores: weights * self.loss(Y, scores)
        return _scored(self, rows, self.targets)

    def left_out(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        """Return leave-one-out predictions (n_rows, n_targets) of an exact model, from its kernel matrix."""
        with threads_to_factorize(len(rows)):
            return minimum_left_out(self.loss, K, alpha, *_minimized(self, rows), root, rows_of(self.groups, rows))

    def predicted(self, rows: np.ndarray, K: np.ndarray, alpha: float, root: Root) -> np.ndarray:
        """Return predictions (n_others, n_targets) for other rows, by an exact model of some rows.

        K contains kernel values of all pairs of both, with the rows of the model first.
        """
        n_rows = len(rows)
        with threads_to_factorize(n_rows):
            coef = coefficients(self.loss, K[:n_rows, :n_rows], alpha, *_minimized(self, rows), root)
            return (K[n_rows:, :n_rows] + np.float32(1.0)) @ coef

    def weighty(self, rows: np.ndarray | slice) -> np.ndarray | slice:
        """Return a mask of the rows with positive weight, or a slice if all have."""
        return slice(None) if self.weights is None else self.weights[rows, 0] > 0

    @cached_property
    def mean_weight(self) -> float:
        return 1.0 if self.weights is None else float(self.weights[self.train].mean())

    def relative_weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights (n_rows,) with mean 1 in the training rows."""
        return None if self.weights is None else self.weights[rows, 0] / self.mean_weight

    def of_all(
        self,
        table: "ScaledTable",
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
        train, squares = np.delete(np.arange(len(y)), held_out), (learned, weights)
        known = replace(self, table=cast(np.ndarray, table), y=y, own_weights=own_weights, squares=squares)
        return replace(known, train=train, held_out=held_out, beyond=None, groups=None, related=None)


def _scored(problem: Problem, rows: np.ndarray, targets: Targets | AnyLabels) -> Losses:
    """Return the negative score of predictions for some rows, without rows of weight 0."""
    some, scoring = problem.weighty(rows), cast(Callable[..., Losses], problem.scoring)
    losses = scoring(problem.table[rows[some]], problem.y[rows[some]], targets)
    return lambda predictions: losses(predictions[some])


def _minimized(problem: Problem, rows: np.ndarray) -> tuple[Weights, np.ndarray]:
    """Return weights (n_rows,) and targets for solving some rows, relative to the same mean weight."""
    if problem.loss.is_squares:
        return problem.relative_weights(rows), problem.Y[rows]
    own, mean = problem.own_weights, problem.mean_weight
    return np.full(len(rows), 1.0 / mean) if own is None else own[rows, 0] / mean, problem.answers[rows]


def _squares_beyond(
    predict: Predict, targets: Targets | AnyLabels, loss: Loss, table: np.ndarray, y: np.ndarray, weights: WeightColumn
) -> Squares:
    """Return the quadratic approximation for encoded rows, near predictions of a model of other rows."""
    return loss.squares(as_columns(y) if loss.has_link else targets.encode(y), predict(table), weights)


def without_scoring(problem: Problem) -> Problem:
    return problem if problem.scoring is None else replace(problem, scoring=None)


def counts_of(problem: Problem, rows: np.ndarray | slice) -> np.ndarray | None:
    """Return the caller's weights of some rows, (n_rows,), with mean 1 in the training rows; None if all are equal.

    Merged copies have the sum of their weights.
    Unlike `Problem.weights`, they contain no weights of outliers, so they are the weights of rows in error bars.
    """
    weights = problem.own_weights
    return None if weights is None or np.ptp(weights) == 0 else weights[rows, 0] / weights[problem.train].mean()


def weights_are_counts(problem: Problem) -> np.ndarray:
    """Return True (as an array) if weights count equal rows.

    They do if they are the caller's, they differ, and the loss does not change them.
    """
    is_changed = problem.loss.is_robust or problem.loss.has_link
    return np.array(counts_of(problem, problem.train) is not None and not is_changed)


def weighty_y(problem: Problem) -> np.ndarray:
    """Return targets of rows of positive weight, as columns, and the ends of all targets if the rows are a sample."""
    own = as_columns(of_positive_weight(problem.y, problem.own_weights)[0])
    return own if problem.y_ends is None else np.concatenate([own, problem.y_ends])


def relative_alpha(problem: Problem, alpha: float | None) -> float | None:
    """Return the user's penalty for weights with mean 1, or None."""
    return None if alpha is None else alpha / problem.mean_weight


def with_codes(problem: Problem) -> Problem:
    """Return the problem with numbers that are codes in the training rows also as categories."""
    encoder, train = problem.encoder, problem.train
    coded = columns_of_codes(problem.table, train, encoder.inputs.plain_numbers, problem.Y[train])
    if not coded:
        return problem
    encoder, table = encoder.with_codes(problem.table, coded)
    return replace(problem, encoder=encoder, table=table)


def with_medians_or_means(
    problem: Problem, targets: Targets, rows: np.ndarray, predictions: np.ndarray
) -> tuple[np.ndarray, Targets]:
    """Return losses in the units of y, and targets with medians or means as predictions, by the lower loss."""
    some = problem.weighty(rows)
    weights = counts_of(problem, rows[some])
    residuals = problem.loss.clipped(targets.encode(problem.y[rows[some]]) - predictions[some], weights)
    means = targets.of_means(residuals, weights)
    trials = [(_losses_of_y(problem, rows, predictions, own), own) for own in (targets, means)]
    return min(trials, key=lambda trial: trial[0].mean())


def _losses_of_y(problem: Problem, rows: np.ndarray, predictions: np.ndarray, targets: Targets) -> np.ndarray:
    if problem.scoring is not None:
        return _scored(problem, rows, targets)(predictions)
    transform = TargetTransform.fit("none", weighty_y(problem), problem.loss.is_robust)
    plain = Targets.of(transform, of_positive_weight(problem.y, problem.own_weights)[0])
    errors = squared_errors(plain.encode(problem.y[rows]), rows_of(problem.weights, rows))
    with np.errstate(over="ignore"):
        return errors(plain.encode(targets.decode(predictions)))
