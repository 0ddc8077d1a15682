"""Texts that the docstrings of the two ridge machines share."""

TEXTS = {
    "parameters": """\
alpha : float or array-like of shape (n_targets,), default=1.0
    Penalty, at least 0; one for each target if an array.
alphas : array-like of shape (n_alphas,), default=None
    Penalties to choose from by the mean score on held-out rows; the machine is then fitted to all rows
    with the best one, and `alpha` has no say.
fit_intercept : bool, default=True
    Whether to fit an intercept, which is not penalised. Features are centred implicitly: sparse ones stay
    sparse.
tol : float, default=1e-2
    The solver stops when the residual of the normal equations is at most `tol` times their right-hand side,
    both in the norm of the inverse diagonal.
max_iter : int, default=200
    Most iterations of a solve.
cv : int, splitter or iterable, default=None
    How rows are held out for `alphas` and `early_stopping`, as in `sklearn.model_selection.check_cv`; an
    iterable gives pairs of training and held-out rows. None holds out one random part.
validation_fraction : float, default=0.1
    Size of that part.
scoring : str or callable, default=None
    Score on the held-out rows, as in `sklearn.metrics.get_scorer`; None is R^2 of numbers, accuracy of labels.
early_stopping : bool, default=False
    Whether to stop the solve once 5 iterations have not raised the score on held-out rows, and to keep the
    best iterate. It is fitted to the other rows alone.
warm_start : bool, default=False
    Whether `fit` starts from the coefficients of the last one.
random_state : int, RandomState instance or None, default=None
    Seed of the random part that is held out.""",
    "attributes": """\
alpha_ : float or ndarray of shape (n_targets,)
    The penalty used.
alphas_ : ndarray of shape (n_alphas,)
    Penalties tried; only with `alphas`.
path_scores_ : ndarray of shape (n_splits, n_alphas)
    Held-out score of each in each split; only with `alphas`.
n_iter_ : int
    Iterations made by the last solve, at least 1.
status_ : {"converged", "max_iter", "breakdown", "early_stopped", "stopped", "interrupted"}
    Why the solver stopped; "stopped" is a callback's wish.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, when X has string column names.""",
    "warns": """\
ConvergenceWarning
    If the solver stopped before `tol`; the coefficients are those of its last iterate.""",
    "X": """\
X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)""",
    "sample_weight": """\
sample_weight : float or array-like of shape (n_rows,), default=None
    Non-negative, not all zero. A weight of 2 is a row that stands there twice.""",
}
