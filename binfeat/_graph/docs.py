"""Texts that the docstrings of the estimators of graphs share."""

TEXTS = {
    "features": """\
features : transformer, default=None
    A map of this package, which is cloned; None is ``RandomBinning(n_grids=256, min_count=2)``.""",
    "gamma": """\
gamma : "scale", None, float or array-like of shape (n_inputs,), default="scale"
    Inverse length scale of each input, one for all or one each. "scale" makes grids as fine as the rows are dense: a
    row's bin has 3 rows, by the geometric mean over rows and grids (the square root of their number if there are fewer
    than 9; of more than 10,000 rows, a sample of these). For features that are no bins it is their own "scale". None
    leaves that of `features`.""",
    "features_": """\
features_ : transformer
    The fitted map.""",
    "gamma_": """\
gamma_ : ndarray of shape (n_inputs,)
    Inverse length scale of each input.""",
    "random_state": """\
random_state : int, RandomState instance or None, default=None
    Seed of the grids, of the samples and of the first vectors.""",
    "similarity": """\
The graph is that of the features: a row goes to a random grid, and there to a random other row of its bin. So the
similarity of two rows is ``W_ij = 1/P sum_p [i and j share the bin b of grid p] / (n_b - 1)`` for P grids and bins of
n_b rows, as in a hypergraph whose edges are the bins (Zhou, Huang & Schoelkopf 2006): where rows are dense,
neighbours are near, and where they are sparse, they are farther away.

Of the similarities, the 15 largest of each row are kept, and ``(W + W') / 2`` of what is left is the graph. The time is
linear in the rows: in a bin of more than 16 rows, the others meet only 16 of them. Of features that are no bins,
``W = Z Z'`` is all kept, in products with the features.""",
}
