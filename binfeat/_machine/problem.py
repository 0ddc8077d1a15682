"""What a fit of a kernel machine is given, for all of its choices."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from binfeat._common.held_out import Loss, SquaredErrors
from binfeat._common.progress import Progress, Silent
from binfeat._machine.limits import Limits
from binfeat._machine.machines.sample import Sample
from binfeat._machine.run import Budget, Decisions
from binfeat._machine.table.encoder import TableEncoder

_TRIAL_SHARE = 1 / 4  # of the seconds left, that a machine of a sample may take
_ENTRY_SECONDS = 1.5e-7  # of a row in a grid, from its bin to the solution
_NEGLIGIBLE = 1e-6  # share of the variance of the targets
_HURRIED_ROWS, _HURRIED_OUT, _HURRIED_SECONDS = 3000, 1000, 1.0  # after Ctrl-C


@dataclass(frozen=True, eq=False)
class Problem:
    """A table to learn from, and how choices are judged."""

    machine: Any  # the estimator, read for its parameters only
    table: np.ndarray  # (n_rows, n_inputs), float64: encoded, not scaled
    y: np.ndarray  # of the caller, (n_rows,) or (n_rows, n_targets)
    targets: Any  # Targets or Labels: y as the machine learns it, and predictions as the caller knows them
    weights: np.ndarray | None  # (n_rows, 1)
    train: np.ndarray  # numbers of rows
    held_out: np.ndarray
    encoder: TableEncoder
    seed: int
    grouped: bool  # whether rows stand in groups, which are held out as a whole
    progress: Progress | Silent
    limits: Limits
    budget: Budget
    decisions: Decisions
    earlier: Any = None  # the `Earlier` fit to go on from

    @cached_property
    def Y(self):
        """What is learned, (n_rows, n_targets)."""
        return self.targets.encode(self.y)

    @cached_property
    def negligible(self):
        """Mean squared error, of any rows, below which nothing is left to gain; 0 if another score is wanted."""
        return 0.0 if self.machine.scoring is not None else _NEGLIGIBLE * float(self.Y[self.train].var(axis=0).min())

    @property
    def categorical(self):
        return self.encoder.categorical

    @property
    def n_jobs(self):
        return self.machine.n_jobs

    def loss_of(self, rows):
        """Of some rows, a function from predictions for them to their losses."""
        if self.machine.scoring is not None:
            return self.scored(rows, self.targets)
        return SquaredErrors(self.Y[rows], self.weights_of(rows))

    def scored(self, rows, targets):
        """Minus the machine's `scoring`, of predictions of these targets."""
        return Loss(self.machine, self.table[rows], self.y[rows], targets)

    @property
    def is_robust(self):
        """Whether rows far from what other rows say get little weight."""
        return getattr(self.machine, "loss", "squared") == "huber"

    @property
    def n_posterior_samples(self):
        """Samples that say how far predictions may be off, or None."""
        return getattr(self.machine, "n_posterior_samples", None)

    @property
    def loss(self):
        """Of all held-out rows."""
        return self.loss_of(self.held_out)

    def stage(self, name, n_steps=None):
        """A part of the fit that callbacks see, of so many steps if that is known."""
        left = self.budget.left
        return self.progress.stage(name if np.isinf(left) else f"{name}, {max(0, left):.0f} s left", n_steps)

    def goes_on(self):
        """Say that a step is done; whether callbacks let the fit go on."""
        return self.progress.step()

    def hurried(self):
        """A problem of fewer rows, to be solved in about a second."""
        train, held_out = self.train[:_HURRIED_ROWS], self.held_out[:_HURRIED_OUT]
        return replace(
            self, train=train, held_out=held_out, progress=Silent(goes_on=False), budget=Budget(_HURRIED_SECONDS)
        )

    def weights_of(self, rows):
        """Weights of some rows, or None."""
        return None if self.weights is None else self.weights[rows]

    @cached_property
    def mean_weight(self):
        """Of the training rows."""
        return 1.0 if self.weights is None else float(self.weights[self.train].mean())

    def penalties(self, alphas):
        """These, or the caller's."""
        return alphas if self.machine.alpha == "auto" else np.array([float(self.machine.alpha)])

    def first_grids(self, n_rows):
        """Grids to begin with: the more, the fewer the rows; a few in any case, more only if the seconds left allow."""
        wanted = np.clip(self.limits.row_grids // n_rows, *self.limits.sample_grids)
        in_time = _TRIAL_SHARE * self.budget.left / (_ENTRY_SECONDS * n_rows)
        return int(min(wanted, max(self.limits.few_grids, in_time)))

    def sample(self, X, kernel, n_rows):
        """Some training rows and some that are held out, of a scaled table."""
        train, out = self.train[: min(n_rows, len(self.train))], self.held_out[: self.limits.sample_out]
        return Sample(
            X[train],
            self.Y[train],
            self.weights_of(train),
            X[out],
            self.loss_of(out),
            categorical=self.categorical,
            kernel=kernel,
            n_grids=self.first_grids(len(train)),
            seed=self.seed,
            n_jobs=self.n_jobs,
        )
