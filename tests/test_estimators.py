"""scikit-learn's own checks, on default and other parameters."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning, kernels

ESTIMATORS = [
    RandomBinning(),
    RandomBinning(gamma=0.1, n_grids=10),
    RandomBinning(kernel=kernels.GammaPitch(8), gamma=0.1, n_features=200, n_grids=7, n_jobs=1),
    RandomBinning(kernel="hat", gamma=0.05, min_count=2, n_jobs=2),
    CGRidge(),
    CGRidge(alpha=0.1, fit_intercept=False, tol=1e-10),
    CGRidgeClassifier(),
    CGRidgeClassifier(alpha=10, loss="squared_hinge", tol=1e-10, max_iter=5000),
    CGRidgeClassifier(alphas=[0.1, 1.0], cv=2, tol=1e-10, max_iter=5000),
    CGRidge(alphas=[0.1, 1.0], cv=2, tol=1e-10),
]


# A few rows of the checks' data seldom share a bin, which is not what is checked.
@pytest.mark.filterwarnings("ignore:The grids are too fine")
@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)
