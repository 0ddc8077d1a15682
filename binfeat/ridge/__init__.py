"""Linear models: `CGRidge` and `CGRidgeClassifier`."""

from binfeat.ridge.classifier import CGRidgeClassifier
from binfeat.ridge.regressor import CGRidge

__all__ = ["CGRidge", "CGRidgeClassifier"]
