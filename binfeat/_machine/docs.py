"""Texts that the docstrings of the two kernel machines share."""

TEXTS = {
    "choices": """\
features : {"auto", "binning", "fourier", "hybrid"}, default="auto"
    Random binning, random Fourier features of the Gaussian kernel with the same widths, or both. "auto" takes
    what held-out rows say; Fourier features are tried where they take at most 1 GB.
kernel : "auto", str or object of `binfeat.kernels`, default="auto"
    Kernel of the binning features, one with a pitch law. "auto" is ``Skip(GammaPitch(8), 0.2)``, of more than
    40,000 rows ``GammaPitch(inf)``, or another of `GammaPitch`, `Laplacian` and `Skip` if held-out rows say so.
gamma : "learn", "scale", float or array-like of shape (n_inputs,), default="learn"
    Widths. "learn" finds one for each input from the slopes of fitted machines, as `learn_gamma` does;
    "scale" is one over the inputs' number times their standard deviation. An array may also have the shape of
    `gamma_`.
alpha : "auto" or float, default="auto"
    Ridge penalty; "auto" is chosen on held-out rows.
n_grids : "auto" or int, default="auto"
    Number of grids; "auto" adds grids until the held-out error gains less than 1 % by a doubling.
scaling : {"auto", "standard", "arcsinh", "quantile", None}, default="auto"
    What widths start from: "standard" gives every input the same part in the kernel, "arcsinh" draws in the
    tails of inputs that reach further than ten interquartile ranges, "quantile" replaces values by their ranks in
    the training rows, None starts with one gamma for all. "auto" compares the first three.
categorical_features : "from_dtype", None or array-like of bool, int or str, default="from_dtype"
    Inputs whose values are categories; "from_dtype" are the columns of a frame that hold categories or strings.
    A mismatch multiplies the kernel by ``exp(-gamma_j)``.""",
    "effort": """\
max_grids : int, default=1600
    Most grids that "auto" takes; of more than 100,000 rows it takes fewer, down to 400.
max_seconds : float, default=None
    Seconds that `fit` aims at; a third of them go to the widths at most. The last batch of grids and the
    refit are begun only if they are expected to fit in. None is as many as it takes.
max_bytes : int, default=None
    Bytes that the codes of the rows may take. With a source of blocks, memory for codes, bins and vectors of rows
    together; codes beyond half of what vectors leave are in a scratch file. None is then half of the machine's.
cv : int, splitter or iterable, default=None
    How rows are held out to choose by, as in `sklearn.model_selection.check_cv`; the first split counts. None
    holds out one random part.
validation_fraction : float, default=0.1
    Size of that part.
scoring : str or callable, default=None
    Score that choices go by, as in `sklearn.metrics.get_scorer`, of all held-out rows alike; None is the mean
    squared error, weighted by `sample_weight`.
refit : bool, default=True
    Whether the held-out rows are taken in at the end.
$n_jobs
random_state : int, RandomState instance or None, default=None
    Seed of the grids, of the rows held out and of the samples.""",
    "attributes": """\
gamma_ : ndarray
    Width of each column inside the machine: the inputs, then a flag for each that had missing values.
feature_relevances_ : ndarray of shape (n_inputs,)
    Share of each input in the kernel's mean exponent; they sum to 1.
features_, kernel_, scaling_ : str
    What was chosen; "none" for no scaling.
alpha_ : float
n_grids_ : int
width_errors_, width_gammas_ : ndarray of shape (n_rounds + 1,) and (n_rounds + 1, n_columns)
    Held-out error and widths after each round of the search under the scaling that was chosen. Later rounds may
    have another kernel, or more rows.
learning_curve_ : ndarray of shape (n_batches, 2)
    Number of grids and held-out error after each batch of them.
decisions_ : ndarray of shape (n_decisions,), structured
    What was decided, the choice, the held-out error after it, the seconds since the start; see `summary`.
status_ : {"converged", "budget", "stopped", "interrupted"}
    Whether the fit ended by itself, by `max_grids`, `max_seconds` or `max_bytes`, by a callback, or by Ctrl-C.
coef_ : ndarray of shape (n_targets, n_features)
intercept_ : ndarray of shape (n_targets,)""",
    "notes": """\
Missing numbers become the training median, with a 0/1 column that says where; that of categories is a
category. A category that `fit` has not seen matches nothing.""",
    "references": """\
A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
backpropagation-free machine learning models", Science 383, 2024 (recursive feature machines).""",
    "X": """\
X : array, sparse matrix or data frame of shape (n_rows, n_inputs)""",
    "sample_weight": """\
sample_weight : float or array-like of shape (n_rows,), default=None
    Non-negative, not all zero.""",
}
