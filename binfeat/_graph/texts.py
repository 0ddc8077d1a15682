"""Texts that the docstrings of the estimators of graphs share."""

GRAPH_TEXTS = {
    "map": """\
features : transformer, default=None
    Feature map of this package, which is cloned; None is ``RandomBinning(n_grids=256, min_count=2)``.
gamma : "scale", None, float or array-like of shape (n_inputs,), default="scale"
    Inverse length scale of the inputs, one for all or one for each. "scale" makes grids so fine that the bin of a
    row has 3 rows, by the geometric mean over rows and grids (the square root of the number of rows if there are
    fewer than 9; of more than 10,000 rows, a sample is used). For features that are not bins, "scale" is the
    "scale" of `features`. None leaves the gamma of `features` as it is.""",
    "eigenvectors": """\
gammas : sequence, default=None
    Several values to try for `gamma`. The value with the widest eigengap is taken: the difference of the last
    eigenvalue used and the next one.
tol : float, default=1e-3
    Largest residual norm of an eigenvector. The eigenvalues are at most 1.
max_iter : int, default=200
    Maximum number of products with a block of vectors.""",
    "threads_and_seed": """\
n_jobs : int, default=None
    Number of threads; None is Numba's current setting, which is all threads at first.
random_state : int, RandomState instance or None, default=None
    Seed of the grids, of the samples and of the first vectors.""",
    "eigenvalues": """\
eigenvalues_ : ndarray of shape (n_found,)
    Largest eigenvalues of the normalised similarities in falling order, without the first, which is 1 and has a
    constant vector; one more than there are coordinates.
eigengaps_ : ndarray of shape (n_gammas,)
    Eigengap with each value of `gammas`. Only if `gammas` are given.
n_iter_ : int
    Number of products with a block of vectors. With bins and 4,000 rows or more, the first block comes from the
    eigenvectors of a quarter of the rows, 50,000 at most, whose products are not counted.""",
    "fitted_map": """\
gamma_ : ndarray of shape (n_inputs,)
    Inverse length scale of each input.
features_ : transformer
    The fitted map.""",
    "few_neighbours": """\
UserWarning
    If more than a tenth of the rows share no bin with another row.""",
    "not_exact": """\
$few_neighbours
ConvergenceWarning
    If residuals are above `tol` after `max_iter` products.""",
}
