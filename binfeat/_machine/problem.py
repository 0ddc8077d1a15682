"""What a fit of a kernel machine learns from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from binfeat._common.held_out import Scoring, SquaredErrors
from binfeat._common.labels import Labels
from binfeat._machine.table.encoder import TableEncoder
from binfeat._machine.target.targets import Targets
from binfeat._machine.target.transforms import NoTransform

Losses = Callable[[np.ndarray], np.ndarray]  # from predictions (n_rows, n_targets) to losses, (n_rows,) or (1,)

_NEGLIGIBLE = 1e-6  # share of the variance of the targets


@dataclass(frozen=True, eq=False)
class Problem:
    """A table with targets and weights, of which some rows are held out; and by what predictions are judged."""

    table: np.ndarray  # (n_rows, n_inputs), float64: encoded, not scaled
    y: np.ndarray  # of the caller, (n_rows,) or (n_rows, n_targets)
    targets: Targets | Labels  # y as the machine learns it, and predictions as the caller knows them
    weights: np.ndarray | None  # (n_rows, 1)
    train: np.ndarray  # numbers of rows
    held_out: np.ndarray
    encoder: TableEncoder
    scoring: Scoring | None  # None is the squared error
    is_grouped: bool  # whether rows stand in groups, which are held out as a whole

    @cached_property
    def Y(self) -> np.ndarray:
        """What is learned, (n_rows, n_targets)."""
        return self.targets.encode(self.y)

    @property
    def categorical(self) -> np.ndarray:
        return self.encoder.categorical

    @cached_property
    def negligible(self) -> float:
        """Mean squared error, of any rows, below which nothing is left to gain; 0 if another score is wanted."""
        return 0.0 if self.scoring is not None else _NEGLIGIBLE * float(self.Y[self.train].var(axis=0).min())

    def losses(self, rows: np.ndarray) -> Losses:
        """How predictions of the targets for some rows are judged."""
        if self.scoring is not None:
            return self.scoring.losses(self.table[rows], self.y[rows], self.targets)
        return SquaredErrors(self.Y[rows], self.weights_of(rows))

    def _losses_of_y(self, rows: np.ndarray, predictions: np.ndarray, targets: Targets) -> np.ndarray:
        """Losses in the units of y, of predictions for some rows of targets that stand for y."""
        if self.scoring is not None:
            return self.scoring.losses(self.table[rows], self.y[rows], targets)(predictions)
        plain = Targets.of(NoTransform(), self.y)
        errors = SquaredErrors(plain.encode(self.y[rows]), self.weights_of(rows))
        with np.errstate(over="ignore"):
            return errors(plain.encode(targets.decode(predictions)))

    def better(
        self, targets: Targets, rows: np.ndarray, predictions: np.ndarray, is_robust: bool
    ) -> tuple[np.ndarray, Targets]:
        """Losses in the units of y, and targets whose predictions are medians or means, whichever loses less."""
        return targets.better(self.y[rows], predictions, partial(self._losses_of_y, rows, predictions), is_robust)

    def weights_of(self, rows: np.ndarray | slice) -> np.ndarray | None:
        return None if self.weights is None else self.weights[rows]

    @cached_property
    def mean_weight(self) -> float:
        """Of the training rows."""
        return 1.0 if self.weights is None else float(self.weights[self.train].mean())

    def relative_weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights (n_rows,) of mean 1 in the training rows."""
        return None if self.weights is None else self.weights[rows, 0] / self.mean_weight

    @property
    def n_targets(self) -> int:
        return self.Y.shape[1]
