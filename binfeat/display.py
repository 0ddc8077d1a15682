"""Pictures of fitted machines and maps, in scikit-learn's Display convention."""

import warnings

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from binfeat._common.docstrings import filled
from binfeat._common.drawing import draw_relevances
from binfeat._common.validation import callers_level, check_integer, check_numbers, checked_array, seed_of
from binfeat._display.canvas import AX, canvas, scale_errors, scale_x
from binfeat._display.checks import OF_INPUTS, given_or_seen, names_of, require_machine
from binfeat._display.curves import curve_of, draw_points, draw_steps, label_x, places_behind
from binfeat._display.intervals import IntervalDisplay
from binfeat._display.kernel_errors import exact_kernel, quantile_bands, spread_out
from binfeat._display.linear_maps import LinearMapDisplay
from binfeat._rows.sampled import take_rows
from binfeat.binning import RandomBinning

__all__ = ["IntervalDisplay", "KernelErrorDisplay", "LearningCurveDisplay", "LinearMapDisplay", "RelevanceDisplay"]

_ROWS = 600  # they make 180,000 pairs


def __getattr__(name):
    if name != "RotationDisplay":
        raise AttributeError(f"module 'binfeat.display' has no attribute {name!r}")
    message = "RotationDisplay has the name LinearMapDisplay now. The old name will be removed."
    warnings.warn(message, FutureWarning, stacklevel=callers_level())
    return LinearMapDisplay


@filled(OF_INPUTS)
class RelevanceDisplay:
    """Bars of the relevance of each input: its share in the mean exponent of the kernel with learned length scales.

    Parameters
    ----------
    relevances : array-like of shape (n_inputs,)
        Non-negative.
    feature_names : array-like of str of shape (n_inputs,), default=None
        None is x0, x1, ...

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer

    See Also
    --------
    learn_gamma : Finds the relevances of inputs.
    LinearMapDisplay : The directions of a machine with a linear map.

    Examples
    --------
    >>> from binfeat import RelevanceDisplay
    >>> from matplotlib.figure import Figure
    >>> display = RelevanceDisplay([0.1, 0.7, 0.2], feature_names=["age", "height", "weight"])
    >>> [label.get_text() for label in display.plot(Figure().subplots()).ax_.get_yticklabels()]
    ['height', 'weight', 'age']
    """

    def __init__(self, relevances, feature_names=None):
        self.relevances = relevances
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, machine, *, feature_names=None, max_features=20, ax=None):
        """Draw the relevances of a fitted kernel machine.

        Parameters
        ----------
        $machine
        max_features : int, default=20
            Maximum number of bars; the other inputs share one more.
        $ax

        $display

        Raises
        ------
        TypeError
            If it is not a kernel machine.
        """
        require_machine(machine, "feature_relevances_")
        names = given_or_seen(feature_names, machine)
        return cls(machine.feature_relevances_, names).plot(ax, max_features=max_features)

    def plot(self, ax=None, *, max_features=20, **bar_kwargs):
        """Draw the bars, the largest on top.

        Parameters
        ----------
        $ax
        max_features : int, default=20
            Maximum number of bars; the other inputs share one more.
        **bar_kwargs : dict
            Passed to `Axes.barh`.

        $display

        Raises
        ------
        ValueError
            If there are not as many names as relevances, one is negative or not finite, they have no single dimension,
            or `max_features` is below 1.
        """
        relevances = check_numbers(self.relevances, "relevances")
        if not (np.isfinite(relevances).all() and (relevances >= 0).all()):
            raise ValueError(f"relevances must be finite and non-negative, got {self.relevances!r}.")
        if relevances.ndim != 1:
            raise ValueError(f"relevances must have one dimension, got shape {relevances.shape}.")
        names = names_of(self.feature_names, relevances, "relevance")
        most = check_integer(max_features, "max_features", 1)
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.4, 1.0 + 0.28 * max(4, min(len(names), most + 1))))
        self.bars_ = draw_relevances(self.ax_, relevances, names, most, **bar_kwargs)
        return self


@filled(AX)
class LearningCurveDisplay:
    """Held-out error against grids, rows or iterations, behind the steps of the search that came before.

    Parameters
    ----------
    x : array-like of shape (n_points,)
    error : array-like of shape (n_points,) or (n_points, n_folds)
        Of several folds, the mean is drawn, with a band of one standard error above and below.
    x_name : str, default="Grids"
    error_name : str, default="Held-out error"
    x_labels : array-like of str of shape (n_points,), default=None
        Words in place of x, at even distances.
    steps : array-like of shape (n_steps,), default=None
        Error before each step of a search. The points stand behind it, at even distances.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        Of the points.
    steps_ : matplotlib Line2D or None
        Of the search.
    band_ : matplotlib collection or None
        Between one standard error above and below.

    Examples
    --------
    >>> from binfeat import LearningCurveDisplay
    >>> from matplotlib.figure import Figure
    >>> display = LearningCurveDisplay([1000, 4000, 16000], [0.21, 0.12, 0.08], x_name="Rows")
    >>> display.plot(Figure().subplots()).ax_.get_xscale()
    'log'
    """

    def __init__(self, x, error, *, x_name="Grids", error_name="Held-out error", x_labels=None, steps=None):
        self.x = x
        self.error = error
        self.x_name = x_name
        self.error_name = error_name
        self.x_labels = x_labels
        self.steps = steps

    @classmethod
    def from_estimator(cls, machine, *, ax=None, **line_kwargs):
        """Draw how the error of a fitted kernel machine fell.

        First come the leave-one-out errors before each step of the search for length scales, then the held-out errors
        with each number of grids; of an exact machine, or one of Fourier features, the error in the end. If nothing
        was searched and grids were added once, the errors after each decision are drawn. With `scoring` the search,
        which is always judged by squared errors, is left out if grids were added more than once, and else drawn alone.

        Parameters
        ----------
        machine : KernelMachineRegressor or KernelMachineClassifier
        $ax
        **line_kwargs : dict
            Passed to `Axes.plot`.

        $display

        Raises
        ------
        TypeError
            If it is not a kernel machine.
        """
        require_machine(machine, "learning_curve_")
        return cls(**curve_of(machine)).plot(ax, **line_kwargs)

    def plot(self, ax=None, **line_kwargs):
        """Draw the curve; an axis whose values span a factor of 8 or more is logarithmic.

        Parameters
        ----------
        $ax
        **line_kwargs : dict
            Passed to `Axes.plot`, for the points.

        $display

        Raises
        ------
        ValueError
            If `x`, `error` and `x_labels` differ in length, or `steps` does not have one dimension.
        """
        x, error, steps = self._checked()
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.0, 4.0))
        places = x if self.x_labels is None and not len(steps) else places_behind(len(steps), len(x))
        self.steps_ = draw_steps(self.ax_, steps) if len(steps) else None
        self.line_, self.band_ = draw_points(self.ax_, places, error, **line_kwargs)
        if places is x:
            scale_x(self.ax_, x)
        else:
            labels = [f"{value:,g}" for value in x] if self.x_labels is None else list(self.x_labels)
            label_x(self.ax_, len(steps), places, labels)
        if len(steps):
            scale_errors(self.ax_, np.append(error.ravel(), steps))
        self.ax_.grid(axis="y", color="0.92")
        self.ax_.set_axisbelow(True)
        self.ax_.set(xlabel=self.x_name, ylabel=self.error_name)
        return self

    def _checked(self):
        """x, errors and steps as arrays."""
        x, error = check_numbers(self.x, "x"), check_numbers(self.error, "error")
        steps = check_numbers([] if self.steps is None else self.steps, "steps")
        if x.ndim != 1 or error.ndim not in (1, 2) or len(x) != len(error):
            raise ValueError(f"x and error must have one row per point; got shapes {x.shape} and {error.shape}.")
        if self.x_labels is not None and len(self.x_labels) != len(x):
            raise ValueError(f"x_labels must have one word per point, {len(x)}; got {len(self.x_labels)}.")
        if steps.ndim != 1:
            raise ValueError(f"steps must have one error per step; got shape {steps.shape}.")
        return x, error, steps


@filled(AX)
class KernelErrorDisplay:
    """Errors of the inner products of random features, against the exact kernel values.

    Each dot is a pair of rows. The shaded band holds 90 % of the pairs near each exact value, and the line in it is
    their mean error. All pairs share one map, so the mean differs from zero by chance, too. Products of a binning map
    are shares of its grids, multiples of ``1 / n_grids``: the dots lie on stripes, and a caption says so.

    Parameters
    ----------
    exact, approximate : array-like of shape (n_pairs,)
    n_grids : int, default=None
        Of a binning map, for the caption.

    Attributes
    ----------
    rms_error_ : float
        Root of the mean squared error.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib PathCollection
    band_ : matplotlib collection
    line_ : matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import KernelErrorDisplay, RandomBinning
    >>> from matplotlib.figure import Figure
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> binning = RandomBinning(gamma=0.3, n_grids=100, random_state=0).fit(X)
    >>> display = KernelErrorDisplay.from_estimator(binning, X, random_state=0, ax=Figure().subplots())
    >>> display.rms_error_ < 0.05
    True
    """

    def __init__(self, exact, approximate, *, n_grids=None):
        self.exact = exact
        self.approximate = approximate
        self.n_grids = n_grids

    @classmethod
    def from_estimator(cls, estimator, X, *, kernel=None, gamma=None, n_pairs=2000, random_state=None, ax=None):
        """Draw the errors of a fitted map, for pairs of different rows whose exact values are spread out.

        Parameters
        ----------
        estimator : RandomBinning, RandomFourier, RandomFeatureUnion or another transformer
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
            Rows to take pairs from, of which at most 600 are used. For binning they should be rows of `fit`: other bins
            have no column.
        kernel : callable, default=None
            ``kernel(X, gamma=gamma)`` gives exact values, as objects of `binfeat.kernels` do. None is the kernel of the
            map, for a union the weighted sum.
        gamma : float or array-like of shape (n_inputs,), default=None
            Gamma of `kernel`; None is `gamma_` of the map.
        n_pairs : int, default=2000
            Maximum number of pairs.
        random_state : int, RandomState instance or None, default=None
        $ax

        $display

        Raises
        ------
        TypeError, ValueError
            If it is not a map, its kernel is not known and `kernel` is None, `gamma` is given without `kernel` or is
            missing, or `X` has fewer than 2 rows or holds NaN.
        """
        if not hasattr(estimator, "transform"):
            raise TypeError(f"estimator must be a map, with a method transform; got {type(estimator).__name__}.")
        check_is_fitted(estimator)
        check_integer(n_pairs, "n_pairs", 1)
        X = X.tocsr() if sparse.issparse(X) else X
        checks = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "ensure_min_samples": 2, "input_name": "X"}
        checked = checked_array(X, accept_sparse="csr", **checks)
        rng = np.random.default_rng(seed_of(random_state))
        chosen = rng.permutation(checked.shape[0])[:_ROWS]
        dense = checked[chosen].toarray() if sparse.issparse(checked) else checked[chosen]
        if np.isnan(dense).any():
            raise ValueError("X holds NaN, for which kernels have no exact value; remove those rows.")
        Z = estimator.transform(take_rows(X, chosen))
        first, second = np.triu_indices(len(dense), k=1)
        exact = exact_kernel(estimator, dense, kernel, gamma)[first, second]
        chosen = spread_out(exact, n_pairs, rng)
        Z = Z.tocsr() if hasattr(Z, "tocsr") else sparse.csr_array(Z)
        products = Z[first[chosen]].multiply(Z[second[chosen]]).sum(axis=1)
        n_grids = len(estimator.bin_offsets_) - 1 if isinstance(estimator, RandomBinning) else None
        return cls(exact[chosen], np.asarray(products, dtype=np.float64).ravel(), n_grids=n_grids).plot(ax)

    def plot(self, ax=None, **scatter_kwargs):
        """Draw the errors against the exact values.

        Parameters
        ----------
        $ax
        **scatter_kwargs : dict
            Passed to `Axes.scatter`.

        $display

        Raises
        ------
        ValueError
            If `exact` and `approximate` differ in length or are empty.
        """
        exact, approximate = check_numbers(self.exact, "exact"), check_numbers(self.approximate, "approximate")
        if exact.ndim != 1 or exact.shape != approximate.shape or not exact.size:
            raise ValueError(
                f"exact and approximate must have one value per pair; got shapes {exact.shape} and {approximate.shape}."
            )
        error = approximate - exact
        self.rms_error_ = float(np.sqrt(np.mean(error**2)))
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.4, 4.4))
        style = {"s": 9, "alpha": 0.35, "linewidths": 0, "rasterized": exact.size > 5000, **scatter_kwargs}
        self.points_ = self.ax_.scatter(exact, error, **style)
        colour = self.points_.get_facecolor()[0, :3]
        centres, low, mean, high = quantile_bands(exact, error)
        self.band_ = self.ax_.fill_between(
            centres, low, high, color=colour, alpha=0.16, linewidth=0, zorder=0.5, label="90 % of pairs"
        )
        (self.line_,) = self.ax_.plot(centres, mean, color=colour * 0.6, linewidth=2, label="mean error")
        self.ax_.axhline(0.0, color="0.25", linewidth=0.8, zorder=0.6)
        widest = 1.1 * np.abs(error).max()
        self.ax_.set(
            xlabel="Exact kernel value",
            ylabel="Approximate minus exact",
            ylim=(-widest, widest) if widest > 0 else (-1e-3, 1e-3),
        )
        self.ax_.set_title(f"Root mean squared error {self.rms_error_:.2g}", loc="left", fontsize="medium")
        self.ax_.legend(loc="lower left", frameon=False, ncols=2, fontsize="small")
        if self.n_grids is not None:
            stripes = f"stripes: products are multiples of 1 / {check_integer(self.n_grids, 'n_grids', 1):,}"
            place = {"ha": "right", "va": "top", "transform": self.ax_.transAxes}
            self.ax_.text(1.0, 0.99, stripes, color="0.35", fontsize="small", **place)
        return self
