"""The display of kernel errors: exact kernel values of pairs of rows, and quantiles of the errors of a map."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.sparse_tables import check_sparse
from binfeat._common.subsets import equal_groups
from binfeat._common.validation import check_integer, check_numbers, check_real, checked_array, seed_of
from binfeat._rows.sampled import take_rows
from binfeat.features.binning.random_binning import RandomBinning
from binfeat.features.fourier.random_fourier import RandomFourier
from binfeat.features.union import RandomFeatureUnion
from binfeat.kernels.lookup import binning_kernel, fourier_kernel
from binfeat.plots.canvas import OptionalAxes, canvas

_ROWS = 600  # 180,000 pairs
_BANDS = 20  # intervals of the exact value, with error quantiles for each


@dataclass(eq=False, repr=False)
class KernelErrorDisplay:
    """Plot of the errors of inner products of random features against exact kernel values.

    A dot is a pair of rows. The shaded band contains 90 % of the pairs with similar exact values, and the line is their
    mean error. The mean error is not exactly zero, because all pairs share one random map. Products of a binning map
    are multiples of ``1 / n_grids``, so the dots form stripes.

    Parameters
    ----------
    exact, approximate : array-like of shape (n_pairs,)
        Exact kernel values, and inner products of the features.
    n_grids : int, default=None
        Number of grids of a binning map, for the caption.

    Attributes
    ----------
    rms_error_ : float
        Root of the mean squared error.
    ax_, figure_ : matplotlib Axes and Figure
    points_ : matplotlib PathCollection
    band_ : matplotlib collection
        Band of 90 % of the pairs.
    line_ : matplotlib Line2D
        Line of the mean error.

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

    exact: ArrayLike
    approximate: ArrayLike
    _: KW_ONLY
    n_grids: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        *,
        kernel: Callable[..., np.ndarray] | None = None,
        gamma: ArrayLike | None = None,
        n_pairs: int = 2000,
        random_state: int | np.random.RandomState | None = None,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the errors of a fitted map for pairs of rows with evenly spread exact values; return the display.

        Parameters
        ----------
        estimator : RandomBinning, RandomFourier, RandomFeatureUnion or another transformer
            Fitted map.
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
            Rows to draw pairs from; at most 600 are used. For binning use training rows, because bins without training
            rows have no column.
        kernel : callable, default=None
            ``kernel(X, gamma=gamma)`` returns exact values, as objects of `binfeat.kernels` do. None is the kernel of
            the map; for a union, the weighted sum of the kernels.
        gamma : float or array-like of shape (n_inputs,), default=None
            Gamma of `kernel`; None is `gamma_` of the map.
        n_pairs : int, default=2000
            Maximum number of pairs.
        random_state : int, RandomState instance or None, default=None
            Seed of the selection of rows and pairs.
        ax : as in `plot`

        Returns
        -------
        display : KernelErrorDisplay

        Raises
        ------
        TypeError, ValueError
            If `estimator` is not a map, its kernel is unknown and `kernel` is None, `gamma` is given without `kernel`
            or is missing, or `X` has fewer than 2 rows or contains NaN.
        """
        if not hasattr(estimator, "transform"):
            raise TypeError(f"estimator must be a map, with a method transform; got {type(estimator).__name__}.")
        check_is_fitted(estimator)
        check_integer(n_pairs, "n_pairs", 1)
        check_sparse(X)
        X = X.tocsr() if sparse.issparse(X) else X
        checks = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "ensure_min_samples": 2, "input_name": "X"}
        checked = checked_array(X, accept_sparse="csr", **checks)
        rng = np.random.default_rng(seed_of(random_state))
        chosen = rng.permutation(checked.shape[0])[:_ROWS]
        dense = checked[chosen].toarray() if sparse.issparse(checked) else checked[chosen]
        if np.isnan(dense).any():
            raise ValueError("X contains NaN, and kernels have no exact value for missing values. Remove these rows.")
        Z = estimator.transform(take_rows(X, chosen))
        first, second = np.triu_indices(len(dense), k=1)
        exact = _exact_kernel(estimator, dense, kernel, gamma)[first, second]
        chosen = _spread_out(exact, n_pairs, rng)
        Z = Z.tocsr() if hasattr(Z, "tocsr") else sparse.csr_array(Z)
        products = Z[first[chosen]].multiply(Z[second[chosen]]).sum(axis=1)
        n_grids = len(estimator.bin_offsets_) - 1 if isinstance(estimator, RandomBinning) else None
        return cls(exact[chosen], np.asarray(products, dtype=np.float64).ravel(), n_grids=n_grids).plot(ax)

    def plot(self, ax: OptionalAxes = None, **scatter_kwargs: Any) -> Self:
        """Draw the errors against the exact values, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **scatter_kwargs : dict
            Passed to `Axes.scatter`.

        Returns
        -------
        display : KernelErrorDisplay

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
        color = np.asarray(self.points_.get_facecolor())[0, :3]
        centers, low, mean, high = _quantile_bands(exact, error)
        self.band_ = self.ax_.fill_between(
            centers, low, high, color=color, alpha=0.16, linewidth=0, zorder=0.5, label="90 % of pairs"
        )
        (self.line_,) = self.ax_.plot(centers, mean, color=color * 0.6, linewidth=2, label="mean error")
        self.ax_.axhline(0.0, color="0.25", linewidth=0.8, zorder=0.6)
        widest = 1.1 * np.abs(error).max()
        limits = (-widest, widest) if widest > 0 else (-1e-3, 1e-3)
        self.ax_.set(xlabel="Exact kernel value", ylabel="Approximate minus exact", ylim=limits)
        self.ax_.set_title(f"Root mean squared error {self.rms_error_:.2g}", loc="left", fontsize="medium")
        self.ax_.legend(loc="lower left", frameon=False, ncols=2, fontsize="small")
        if self.n_grids is not None:
            stripes = f"stripes: products are multiples of 1 / {check_integer(self.n_grids, 'n_grids', 1):,}"
            place: dict[str, Any] = {"ha": "right", "va": "top", "transform": self.ax_.transAxes}
            self.ax_.text(1.0, 0.99, stripes, color="0.35", fontsize="small", **place)
        return self


def _exact_kernel(
    estimator: BaseEstimator, X: np.ndarray, kernel: Callable[..., np.ndarray] | None, gamma: ArrayLike | None
) -> np.ndarray:
    if kernel is not None:
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {kernel!r}.")
        if gamma is None and not hasattr(estimator, "gamma_"):
            raise ValueError("gamma must be given with kernel, because the map has no gamma_.")
        return kernel(X, gamma=estimator.gamma_ if gamma is None else gamma)
    if gamma is not None:
        raise ValueError("gamma requires kernel: pass both, or neither to use the kernel and gamma of the map.")
    if isinstance(estimator, RandomFeatureUnion):
        parts = [_exact_kernel(part, X, None, None) for _, part in estimator.transformers_]
        weights = np.ones(len(parts)) if estimator.weights is None else estimator.weights
        return np.sum([check_real(w, "weights", 0.0) * part for w, part in zip(weights, parts, strict=True)], axis=0)
    if isinstance(estimator, RandomFourier):
        return _of_fourier(estimator, X)
    if isinstance(estimator, RandomBinning):
        return _of_binning(estimator, X)
    raise TypeError(f"The kernel of {type(estimator).__name__} is unknown; pass kernel.")


def _of_fourier(fourier: RandomFourier, X: np.ndarray) -> np.ndarray:
    """Compute the kernel of the rows, after scaling and the rotation if there is one."""
    kernel = fourier_kernel(fourier.kernel)
    if fourier.rotation is None:
        return kernel(X, gamma=fourier.gamma_)
    return kernel((X * fourier.gamma_ ** (1 / kernel.power)) @ np.asarray(fourier.rotation), gamma=1.0)


def _of_binning(binning: RandomBinning, X: np.ndarray) -> np.ndarray:
    """Compute the product of the kernels of numeric and categorical inputs."""
    categorical = binning._categorical
    K = binning_kernel(binning.kernel)(X[:, ~categorical], gamma=binning.gamma_[~categorical])
    for j in np.flatnonzero(categorical):
        K *= np.exp(-binning.gamma_[j] * (X[:, j, None] != X[:, j]))
    return K


def _spread_out(exact: np.ndarray, n_pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Select pairs with evenly spread exact values: if possible, the same number from each interval."""
    if exact.size <= n_pairs:
        return np.arange(exact.size)
    order = rng.permutation(exact.size)
    interval = np.digitize(exact[order], np.linspace(exact.min(), exact.max(), _BANDS + 1)[1:-1])
    by_interval = np.argsort(interval, kind="stable")
    sizes = np.bincount(interval, minlength=_BANDS)
    place = np.empty(exact.size, np.intp)  # position of each pair in its interval
    place[by_interval] = np.arange(exact.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort(place, kind="stable")[:n_pairs]]


def _quantile_bands(exact: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean exact value, and the 5 % quantile, mean and 95 % quantile of errors, in bands of equal counts."""
    parts = equal_groups(exact, _BANDS, 25)
    centers, means = np.transpose([(exact[part].mean(), error[part].mean()) for part in parts])
    low, high = np.transpose([np.quantile(error[part], (0.05, 0.95)) for part in parts])
    return centers, low, means, high
