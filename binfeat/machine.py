"""Kernel machines that set themselves up: `KernelMachineRegressor` and `KernelMachineClassifier`."""

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.callback import with_callbacks

from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.held_out import probabilities
from binfeat._common.labels import check_labels, labels_of, one_against_rest, require_two, weights_by_class
from binfeat._common.validation import check_moderate, checked_array
from binfeat._machine.base import KernelMachineBase

__all__ = ["KernelMachineClassifier", "KernelMachineRegressor"]


class KernelMachineRegressor(MultiOutputMixin, RegressorMixin, KernelMachineBase):
    """Kernel ridge regression on random features that sets itself up: a raw table in, predictions out.

    Minimises ``sum_i v_i |y_i - f(x_i)|^2 + alpha |w|^2`` with ``f(x) = w @ z(x) + b``, targets standardised, over the
    random features z of a kernel ``prod_j k(gamma_j |x_j - y_j|)``. It learns one gamma per input, and
    chooses scaling, pitch law, kind of features, alpha and the number of grids, each on held-out rows.

    Parameters
    ----------
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
        A mismatch multiplies the kernel by ``exp(-gamma_j)``.
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
    n_jobs : int, default=None
        Threads; None is Numba's current setting, which starts as all of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids, of the rows held out and of the samples.

    Attributes
    ----------
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
    intercept_ : ndarray of shape (n_targets,)
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_inputs,)
        Names of the inputs, when X has string column names.

    See Also
    --------
    learn_gamma : The widths alone.
    RandomBinning, RandomFourier, CGRidge : The parts.

    Notes
    -----
    Missing numbers become the training median, with a 0/1 column that says where; that of categories is a
    category. A category that `fit` has not seen matches nothing.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models", Science 383, 2024 (recursive feature machines).

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import KernelMachineRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(600, 4))
    >>> y = np.sin(3 * X[:, 0]) + (X[:, 1] > 0)
    >>> machine = KernelMachineRegressor(max_grids=100, random_state=0).fit(X[:400], y[:400])
    >>> bool(machine.score(X[400:], y[400:]) > 0.9)
    True
    """

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
            Numbers and categories; NaN is a missing value. Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            None for a source, which brings targets and weights.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows that are held out together.

        Returns
        -------
        self : KernelMachineRegressor

        Raises
        ------
        ValueError
            If a parameter, a target or a weight is out of range, X or y holds infinity or numbers beyond 1e100,
            or lengths differ.
        """
        X, y, sample_weight = self._read(X, y, sample_weight)
        y = checked_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        check_moderate(y, "y")
        Y = y.reshape(len(y), -1)
        mean, std = Y.mean(axis=0), Y.std(axis=0)
        std = np.where(std > 0, std, 1.0)

        def finish(predictions):
            own = predictions * std + mean
            return own[:, 0] if y.ndim == 1 else own

        own = {"_target_mean": mean, "_target_std": std, "_one_target": y.ndim == 1}
        self._fit(X, y, (Y - mean) / std, sample_weight, groups, finish, own)
        return self

    def predict(self, X):
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        """
        scores = self._scores(X)
        scores *= self._target_std
        scores += self._target_mean
        return scores[:, 0] if self._one_target else scores


class KernelMachineClassifier(ClassifierMixin, KernelMachineBase):
    """Kernel ridge classification on random features that sets itself up: a raw table in, labels out.

    Each class is a target of `KernelMachineRegressor`, 1 for its rows and -1 for the others, and the largest
    prediction wins; two classes have one target between them. Probabilities are the softmax of the predictions,
    sharpened on held-out rows.

    Parameters
    ----------
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
        A mismatch multiplies the kernel by ``exp(-gamma_j)``.
    class_weight : dict or "balanced", default=None
        Weights of the classes, as in `sklearn.utils.class_weight.compute_class_weight`.
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
    n_jobs : int, default=None
        Threads; None is Numba's current setting, which starts as all of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids, of the rows held out and of the samples.

    Attributes
    ----------
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
    intercept_ : ndarray of shape (n_targets,)
    classes_ : ndarray of shape (n_classes,)
    sharpness_ : float
        Multiple of the predictions whose softmax are the probabilities.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_inputs,)
        Names of the inputs, when X has string column names.

    See Also
    --------
    learn_gamma : The widths alone.
    RandomBinning, RandomFourier, CGRidgeClassifier : The parts.

    Notes
    -----
    Missing numbers become the training median, with a 0/1 column that says where; that of categories is a
    category. A category that `fit` has not seen matches nothing.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models", Science 383, 2024 (recursive feature machines).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from binfeat import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelMachineClassifier(max_grids=100, random_state=0).fit(X[::2], y[::2])
    >>> bool(machine.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        features="auto",
        kernel="auto",
        gamma="learn",
        alpha="auto",
        n_grids="auto",
        scaling="auto",
        categorical_features="from_dtype",
        class_weight=None,
        max_grids=1600,
        max_seconds=None,
        max_bytes=None,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        refit=True,
        n_jobs=None,
        random_state=None,
    ):
        super().__init__(
            features=features,
            kernel=kernel,
            gamma=gamma,
            alpha=alpha,
            n_grids=n_grids,
            scaling=scaling,
            categorical_features=categorical_features,
            max_grids=max_grids,
            max_seconds=max_seconds,
            max_bytes=max_bytes,
            cv=cv,
            validation_fraction=validation_fraction,
            scoring=scoring,
            refit=refit,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.class_weight = class_weight

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
            Numbers and categories; NaN is a missing value. Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,), default=None
            Labels, numbers or strings, of at least two classes. None for a source, which brings targets and weights.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows that are held out together.

        Returns
        -------
        self : KernelMachineClassifier

        Raises
        ------
        ValueError
            If a parameter or a weight is out of range, X holds infinity or numbers beyond 1e100, lengths differ,
            or y has fewer than two classes.
        """
        X, y, sample_weight = self._read(X, y, sample_weight)
        y = check_labels(y)
        classes, labels = np.unique(y, return_inverse=True)
        require_two(classes)
        weights = weights_by_class(sample_weight, self.class_weight, y)

        def finish(scores):
            return labels_of(classes, scores)

        own = {"classes_": classes}
        Y = one_against_rest(labels, classes.size)
        self._fit(X, y, Y, None if weights is None else weights.ravel(), groups, finish, own, labels)
        return self

    def decision_function(self, X):
        """Predictions of the targets, 1 for a class and -1 for the others.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes one score, above 0 for ``classes_[1]``.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        scores = self._scores(X)
        return labels_of(self.classes_, scores)

    def predict_proba(self, X):
        """Class probabilities, calibrated on the held-out rows by one temperature (Guo et al. 2017).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        p : ndarray of shape (n_rows, n_classes)
        """
        return probabilities(self._scores(X), self.sharpness_)
