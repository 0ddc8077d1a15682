"""What the kernel machines are compared with, and one fit of either."""

import os
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.base import is_classifier

from perf.record import Row


@dataclass(frozen=True)
class Trial:
    """A machine fitted once: seconds of the fit, and predictions for the test rows."""

    machine: object
    seconds: float
    predictions: np.ndarray
    split: object

    @property
    def error(self):
        """In percent: of wrong labels, or relative RMS."""
        if is_classifier(self.machine):
            return 100 * float(np.mean(self.predictions != self.split.y_test))
        return relative_rms(self.predictions, self.split.y_test)


def trial(machine, split):
    """Fit a machine to the training rows and predict the test rows."""
    start = perf_counter()
    machine.fit(split.X, split.y)
    seconds = perf_counter() - start
    return Trial(machine, seconds, machine.predict(split.X_test), split)


def relative_rms(predictions, y):
    """Norm of the errors over the norm of the ground truth, in percent: the paper's measure."""
    return 100 * float(np.linalg.norm(predictions - y) / np.linalg.norm(y))


def lightgbm(n_trees, n_leaves, rate=0.1, regression=False):
    """A LightGBM machine on all cores; None where it is not installed."""
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor
    except ImportError:
        return None
    kind = LGBMRegressor if regression else LGBMClassifier
    options = {"n_jobs": os.cpu_count(), "random_state": 0, "verbose": -1}
    return kind(n_estimators=n_trees, num_leaves=n_leaves, learning_rate=rate, **options)


def skipped(name):
    """The row of a peer that is not installed."""
    return Row(f"{name}: not installed, skipped", None)
