"""Texts that the docstrings of the two ridge machines share."""

TEXTS = {
    "parameters": """\
alpha : float or array-like of shape (n_targets,), default=1.0
    Ridge penalty, at least 0; an array has one for each target.
alphas : array-like of shape (n_alphas,), default=None
    Penalties of which the one with the best mean score on held-out rows is taken; the machine is then fitted to all
    rows with it. `alpha` is ignored.
fit_intercept : bool, default=True
    Whether to fit an intercept, which is not penalised. Sparse features stay sparse: centring is implicit.
tol : float, default=1e-2
    The solver stops when the norm of the residual of the normal equations is at most `tol` times that of their
    right-hand side. The norm is that of the inverse diagonal.
max_iter : int, default=200
    Maximum number of iterations.
cv : int, splitter or iterable, default=None
    How rows are held out for `alphas` and `early_stopping`, as in `sklearn.model_selection.check_cv`; an
    iterable gives pairs of training and held-out rows. None holds out one random part.
validation_fraction : float, default=0.1
    Share of the rows in that random part.
scoring : str or callable, default=None
    Score on the held-out rows, as in `sklearn.metrics.get_scorer`; None is R^2 for numbers and accuracy for labels.
early_stopping : bool, default=False
    Whether to stop when the score on held-out rows has not improved for 5 iterations, and to keep the iterate with
    the best score. The held-out rows are not used to fit.
warm_start : bool, default=False
    Whether `fit` starts from the coefficients of the previous fit.
random_state : int, RandomState instance or None, default=None
    Seed for the choice of the held-out rows.""",
    "attributes": """\
alpha_ : float or ndarray of shape (n_targets,)
    The penalty used.
alphas_ : ndarray of shape (n_alphas,)
    Penalties tried; only with `alphas`.
path_scores_ : ndarray of shape (n_splits, n_alphas)
    Held-out score of each penalty in each split; only with `alphas`.
n_iter_ : int
    Number of iterations of the last solve, at least 1.
status_ : {"converged", "max_iter", "breakdown", "early_stopped", "stopped", "interrupted"}
    Why the solver stopped; "stopped" is by a callback.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, when X has string column names.""",
    "solver": """\
The solver used: conjugate gradients, or the Gram matrix of dense features where these are few and that is
expected to be faster. The Gram matrix gives the exact solution in one iteration.""",
    "warns": """\
Warns
-----
ConvergenceWarning
    If the solver stopped before it reached `tol`; the coefficients are those of its last iterate.""",
    "X": """\
X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)""",
    "X_in_memory": """\
X : ndarray, sparse matrix or BinMatrix of shape (n_rows, n_features)
    Of the same kind in all calls. Bins must not change between them: fit `RandomBinning` once, or set its
    `n_features`.""",
    "partial_fit": """\
The coefficients are those of `fit` on all rows so far, up to `tol`. The solver starts from the last ones, and takes
about half of the iterations of a fit or less.

Rows are kept, copied, with the machine and in its files: codes of binning features take 2 or 4 bytes for each grid, CSR
12 or more for each entry. Each iteration visits all rows. Of an array whose Gram matrix takes at most an eighth of the
machine's memory, only that is kept once there are more rows than features: 8 bytes for each pair of features, for any
number of rows, and each call then solves exactly. Parameters may change between calls. `fit` forgets these rows and
keeps none: after it, the next call begins anew, with a warning.""",
    "rest_of_partial_fit": """\
$sample_weight

$self

Raises
------
TypeError, ValueError
    If X is of another kind or of other bins than before, or no array, sparse matrix or codes; or as `fit` does.
AttributeError
    If `alphas` or `early_stopping` is set: there is no `partial_fit`, as they hold rows out.""",
    "sample_weight": """\
sample_weight : float or array-like of shape (n_rows,), default=None
    Non-negative, not all zero. A row of weight 2 counts as two rows.""",
    "rest_of_fit": """\
$sample_weight
$groups

$self

Raises
------
ValueError
    If a parameter, a target or a weight is out of range, lengths differ, sums of products overflow, or labels are of
    fewer than two classes.""",
}
