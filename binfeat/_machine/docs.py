"""Texts that the docstrings of the two kernel machines share."""

TEXTS = {
    "choices": """\
features : {"auto", "binning", "fourier", "hybrid"}, default="auto"
    Random binning, random Fourier features of the Gaussian kernel with the same length scales, or both. "auto"
    takes what has the lowest held-out error; Fourier features are tried where they need at most 1 GB.
kernel : "auto", str or object of `binfeat.kernels`, default="auto"
    Kernel of the binning features, one with a pitch law. "auto" starts with ``Skip(GammaPitch(8), 0.2)``, or with
    ``GammaPitch(inf)`` for more than 40,000 rows, and takes another of `GammaPitch`, `Laplacian` and `Skip` if its
    held-out error is lower.
gamma : "learn", "scale", float or array-like of shape (n_inputs,), default="learn"
    Inverse length scale of each input. "learn" learns one per input (ARD) from the slopes of fitted machines, as
    `learn_gamma` does; "scale" is ``1 / (n_inputs * std)``. An array may also have the shape of `gamma_`.
alpha : "auto" or float, default="auto"
    Ridge penalty; "auto" is chosen on held-out rows.
n_grids : "auto" or int, default="auto"
    Number of grids; "auto" adds grids until doubling them lowers the held-out error by less than 1 %.
scaling : {"auto", "standard", "arcsinh", "quantile", None}, default="auto"
    How inputs are scaled before length scales are learned: "standard" gives every input the same part in the
    kernel, "arcsinh" shortens the tails of inputs that reach further than ten interquartile ranges, "quantile"
    replaces values by their ranks in the training rows, None starts with one gamma for all inputs. "auto" compares
    the first three on held-out rows.
categorical_features : "from_dtype", None or array-like of bool, int or str, default="from_dtype"
    Inputs whose values are categories; "from_dtype" takes the columns of a data frame that hold categories or
    strings. Where two rows differ in such an input, the kernel is multiplied by ``exp(-gamma_j)``.""",
    "effort": """\
max_grids : int, default=1600
    Largest number of grids for ``n_grids="auto"``. Above 100,000 rows it is lower, down to 400.
max_seconds : float, default=None
    Soft time limit of `fit` in seconds; at most a third is spent on length scales. Adding grids and refitting are
    started only if they are expected to end in time. None is no limit.
max_bytes : int, default=None
    Memory limit for the codes of the rows. For a source of blocks it is the limit for codes, bins and vectors of
    rows together, and codes that need more than half of what the vectors leave are kept in a scratch file; None is
    then half of the machine's memory.
cv : int, splitter or iterable, default=None
    How rows are held out for the choices, as in `sklearn.model_selection.check_cv`; only the first split is used.
    None holds out one random part.
validation_fraction : float, default=0.1
    Share of the rows in that random part.
scoring : str or callable, default=None
    Score on the held-out rows that the choices maximise, as in `sklearn.metrics.get_scorer`, without weights; None
    minimises the mean squared error, weighted by `sample_weight`.
refit : bool, default=True
    Whether the final coefficients are fitted to all rows, including those held out.
$n_jobs
random_state : int, RandomState instance or None, default=None
    Seed of the grids, of the rows held out and of the samples.""",
    "attributes": """\
gamma_ : ndarray
    Inverse length scale of each column inside the machine: the inputs, then a 0/1 column for each input that had
    missing values.
feature_relevances_ : ndarray of shape (n_inputs,)
    Share of each input in the kernel's mean exponent; they sum to 1.
features_, kernel_, scaling_ : str
    The choices; "none" is no scaling.
alpha_ : float
n_grids_ : int
width_errors_, width_gammas_ : ndarray of shape (n_rounds + 1,) and (n_rounds + 1, n_columns)
    Held-out error and inverse length scales before the first and after each round of the search, with the scaling
    that was chosen. Later rounds may use another kernel or more rows.
learning_curve_ : ndarray of shape (n_batches, 2)
    Number of grids and held-out error each time that grids were added.
decisions_ : ndarray of shape (n_decisions,), structured
    For each decision its name, the choice, the held-out error after it, and the seconds since the start; see
    `summary`.
status_ : {"converged", "budget", "stopped", "interrupted"}
    Why the fit ended: by itself, at `max_grids`, `max_seconds` or `max_bytes`, by a callback, or by Ctrl-C.
coef_ : ndarray of shape (n_targets, n_features)
intercept_ : ndarray of shape (n_targets,)""",
    "notes": """\
Notes
-----
A missing number is replaced by the training median, and a 0/1 column marks where numbers were missing. A missing
category is a category. A category that `fit` has not seen matches no other.

References
----------
A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
backpropagation-free machine learning models", Science 383, 2024 (recursive feature machines).""",
    "X": """\
X : array, sparse matrix or data frame of shape (n_rows, n_inputs)""",
    "sample_weight": """\
sample_weight : float or array-like of shape (n_rows,), default=None
    Non-negative, not all zero.""",
    "rest_of_fit": """\
$sample_weight
$groups

$self

Raises
------
ValueError
    If a parameter, a target or a weight is out of range, X or y holds infinity or numbers beyond 1e100, lengths
    differ, or labels are of fewer than two classes.""",
}
