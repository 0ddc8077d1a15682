"""Random Fourier features: `RandomFourier`."""

from collections.abc import Callable
from math import ceil
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.gamma_scale import Moments, gamma_of_inputs
from binfeat._common.memory import require_memory
from binfeat._common.operators import FeatureMap
from binfeat._common.persistence import Persistent
from binfeat._common.random_words import PHASES, stream, uniforms
from binfeat._common.validation import (
    CheckedRows,
    canonical,
    check_choice,
    check_integer,
    check_share,
    check_weights,
    checked_rows,
    flat,
    float_dtype,
    is_word,
    seed_of,
)
from binfeat._rows.lazy import LazyFeatures
from binfeat._rows.sampled import rows_of_summary, summary_for_gamma
from binfeat._rows.sources import SourceSummary, is_source
from binfeat._rows.streamed import StreamedFeatures
from binfeat._threads import thread_count
from binfeat.features.fourier.fastfood import Fastfood
from binfeat.features.fourier.features import OVERFLOW, FourierMap
from binfeat.features.fourier.frequencies import checked_rotation, frequencies_of_inputs, rank_of, resolve_sampler
from binfeat.features.fourier.saved import FASTFOOD, check_edited, check_fourier
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import fourier_kernel
from binfeat.kernels.parameters import WithKernel

_ARRAY_CHECKS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class RandomFourier(WithKernel, Persistent, ClassNamePrefixFeaturesOutMixin, FeatureMap):
    """Dense random Fourier features. Their inner products approximate a kernel.

    A kernel ``k(x - y)`` with ``k(0) = 1`` is the mean of ``cos(w @ (x - y))`` over random frequencies w. Their
    distribution, the *spectral law*, is determined by the kernel (Bochner's theorem). With frequencies
    ``w_1, ..., w_D`` drawn from this law, the features of a row x are

    - ``phase="pair"``: ``sqrt(1/D) [cos(w_1 @ x), ..., cos(w_D @ x), sin(w_1 @ x), ..., sin(w_D @ x)]`` with
      ``D = n_components / 2`` (Algorithm 1 of the paper, section 3);
    - ``phase="offset"``: ``sqrt(2/D) [cos(w_1 @ x + b_1), ..., cos(w_D @ x + b_D)]`` with
      ``D = n_components`` and b uniform on ``[0, 2 pi)``; the map of scikit-learn's `RBFSampler`.

    In both cases the inner product ``z(x) @ z(y)`` is an unbiased estimate of ``k(x - y)``.

    Parameters
    ----------
    kernel : str or object of `binfeat.kernels`, default="rbf"
        Kernel: "rbf", "laplacian", "cauchy", "hat", or an object of class `RBF`, `Laplacian`, `Cauchy`, `Hat`, `Matern`
        or `Spectral`.
    gamma : "scale", "learn", float, array-like of shape (n_inputs,) or LearnedGamma, default="scale"
        Inverse length scale, one for all inputs or one per input; 0 ignores an input. For `RBF` and `Matern`, gamma
        multiplies squared distances. "scale" is ``1 / (n_inputs * std_j)``, for `RBF` and `Matern`
        ``1 / (n_inputs * std_j^2)``, where std_j is the standard deviation of input j, or 1 if it is constant. "learn"
        learns one length scale per input from y, like `learn_gamma`, and then one common factor by the validation error
        of ridge regression on the features. With "scale" and "learn", inputs need no scaling.
    rotation : array-like of shape (n_inputs, rank), default=None
        Linear map of the scaled inputs, for example `linear_map_` of a kernel model. The kernel is evaluated at
        ``(s * x) @ rotation`` with gamma 1, where s is `gamma`, or its square root for `RBF` and `Matern`. None is the
        identity. Not available with fastfood.
    n_components : int, default=512
        Number of features; even for ``phase="pair"``.
    sampler : {"auto", "iid", "orthogonal", "qmc", "fastfood"}, default="auto"
        Method of drawing frequencies. "auto" is "orthogonal" for `RBF` and `Matern`, and "iid" for other kernels.
        "qmc" is more accurate for few inputs, "fastfood" is faster for hundreds of inputs; see Notes.
    phase : {"pair", "offset"}, default="pair"
        "pair": a cosine and a sine for each frequency. "offset": a cosine with a random offset for each frequency.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads. 1 also limits BLAS to one thread.
    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies.

    Attributes
    ----------
    gamma_ : ndarray of shape (n_inputs,)
        Inverse length scale of each input, as in `gamma`.
    sampler_ : str
        The sampler used.
    random_weights_ : ndarray of shape (n_inputs, n_frequencies), of the type of X
        The frequencies, one in each column. Not with fastfood.
    random_offset_ : ndarray of shape (n_components,), of the type of X
        The phases b. Only for ``phase="offset"``.
    fastfood_signs_, fastfood_order_, fastfood_normals_, fastfood_norms_ : ndarrays
        Random signs times the factor of each input (n_blocks, n_inputs), permutations and normals
        (n_blocks, length), and norms (n_frequencies,). Only with fastfood.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_inputs,)
        Number of inputs, and their names, when X has string column names.

    See Also
    --------
    binfeat.RandomBinning : Sparse features of kernels that are products over inputs.
    binfeat.CGRidge : Ridge regression on the features.

    Notes
    -----
    Samplers. Numbers in brackets are the RMS error of kernel estimates divided by the RMS error with "iid", for kernel
    values between 0.15 and 0.9 and for 64 to 1,024 frequencies.

    - "iid": independent frequencies, for every kernel.
    - "orthogonal": blocks of orthogonal directions (Yu et al. 2016), for `RBF` (0.55 to 0.65 with 4 or more inputs) and
      `Matern` (0.8 for nu = 1.5).
    - "qmc": quasi-random points (Avron et al. 2016), for every kernel except `Spectral`. The best sampler for few
      inputs and many frequencies (`RBF`: 0.05 to 0.2 with 2 inputs, 0.3 to 0.6 with 10), and for `Laplacian`, `Cauchy`
      and `Hat` (`Laplacian`: 0.6 to 0.8 with 10 inputs).
    - "fastfood": products of Hadamard and diagonal matrices (Le et al. 2013), for `RBF` and `Matern` with hundreds of
      inputs (1 to 1.4). The time per row is proportional to ``n_components log(n_inputs)``: 8 times as fast as the
      other samplers with 1,024 inputs.

    The last digits of a row's features can depend on the other rows of X, because of rounding in BLAS products.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007, section 3
    and Algorithm 1.

    F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice and S. Kumar, "Orthogonal Random Features",
    NIPS 2016.

    Q. Le, T. Sarlos and A. Smola, "Fastfood: Approximating Kernel Expansions in Loglinear Time", ICML 2013.

    H. Avron, V. Sindhwani, J. Yang and M. W. Mahoney, "Quasi-Monte Carlo Feature Maps for Shift-Invariant
    Kernels", JMLR 17, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import RandomFourier
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> Z = RandomFourier(gamma=0.5, n_components=1000, random_state=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - rbf_kernel(X, gamma=0.5)).mean() < 0.03)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    gamma_: np.ndarray
    sampler_: str
    random_weights_: np.ndarray
    random_offset_: np.ndarray
    fastfood_signs_: np.ndarray
    fastfood_order_: np.ndarray
    fastfood_normals_: np.ndarray
    fastfood_norms_: np.ndarray

    _check_state = staticmethod(check_fourier)

    def __init__(
        self,
        *,
        kernel: str | Kernel = "rbf",
        gamma: str | float | ArrayLike = "scale",
        rotation: ArrayLike | None = None,
        n_components: int = 512,
        sampler: str = "auto",
        phase: str = "pair",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.rotation = rotation
        self.n_components = n_components
        self.sampler = sampler
        self.phase = phase
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
            Its values are used for ``gamma="scale"`` and "learn" only.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets, used by ``gamma="learn"`` only, and None for a source. Floats are numbers; strings, booleans, and
            integers with few different values are classes.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Weights of the rows, used by ``gamma="scale"`` and "learn".

        Returns
        -------
        self : RandomFourier

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, the kernel has no spectral law, the sampler cannot draw from it,
            `rotation` is not finite or does not have a row for each input, `X` is not a table of finite numbers, or
            frequencies overflow.
        MemoryError
            If the frequencies would need more memory than the computer has.
        """
        self._check_parameters()
        if is_source(X):
            summary = summary_for_gamma(self, X, y, sample_weight)
            dtype = float_dtype(summary.dtype)
            self._draw(dtype, self._chosen_gamma(dtype, summary.sum, rows_of_summary, summary))
        else:
            X = self._check(X, reset=True)
            weights = check_weights(sample_weight, X.shape[0])
            moments = Moments.of(X, flat(weights)) if is_word(self.gamma, "scale") else None
            self._draw(X.dtype, self._chosen_gamma(X.dtype, moments, lambda *rows: rows, X, y, sample_weight))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Fit and transform the same rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y, sample_weight : array-like, default=None
            As in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_components), or LinearOperator
            As `transform` returns it.
        """
        return self.fit(X, y, sample_weight).transform(X)

    def _chosen_gamma(
        self, dtype: np.dtype, moments: Moments | None, rows_of: Callable[..., tuple], *source: Any
    ) -> np.ndarray:
        """Gamma of each input: given, from moments, or learned from the rows, targets and weights of a source."""
        none = np.zeros(self.n_features_in_, dtype=bool)
        if not is_word(self.gamma, "learn"):
            return gamma_of_inputs(self.gamma, moments, none, power=fourier_kernel(self.kernel).power)
        from binfeat.features.learn_gamma.for_features import gamma_for_features  # late: few maps learn

        X, y, sample_weight = rows_of(*source)
        seed = seed_of(self.random_state)

        def features_of_parts(gamma: np.ndarray, X: CheckedRows, X_new: CheckedRows) -> tuple[np.ndarray, np.ndarray]:
            trial = clone(self).set_params(random_state=seed)
            trial.n_features_in_ = self.n_features_in_
            trial._draw(dtype, gamma)
            return trial._map(X), trial._map(X_new)

        parts = (X, y, sample_weight, none, seed)
        return gamma_for_features(self.kernel, *parts, features_of_parts, self.n_jobs)

    def _checked_law(self) -> tuple[Kernel, str, int, np.ndarray | None]:
        """Return kernel, sampler, number of frequencies and rotation after checks that depend on the number of inputs.

        Called before the other rows of a source are read, and before a search for gamma.
        """
        kernel, n_inputs = fourier_kernel(self.kernel), self.n_features_in_
        n_frequencies = self.n_components if self.phase == "offset" else self.n_components // 2
        rotation = checked_rotation(self.rotation, n_inputs)
        rank = rank_of(rotation, n_inputs)
        sampler, width = resolve_sampler(self.sampler, kernel, rank), max(n_inputs, rank)
        # Fastfood: three diagonals, a permutation and three spares. Else frequencies as drawn, scaled, and transposed.
        require_memory(
            52 * (n_frequencies + 2 * width) if sampler == "fastfood" else 24 * n_frequencies * width,
            f"drawing {n_frequencies} frequencies of {width} inputs",
            "Use fewer components, or sampler='fastfood' if the kernel allows it.",
        )
        return kernel, sampler, n_frequencies, rotation

    @np.errstate(over="ignore", invalid="ignore")  # an overflow raises an error below
    def _draw(self, dtype: np.dtype, gamma: np.ndarray) -> None:
        kernel, sampler, n_frequencies, rotation = self._checked_law()
        seed, scale = seed_of(self.random_state), kernel.frequency_scale(gamma)
        if sampler == "fastfood":
            fastfood = Fastfood.draw(kernel, scale, n_frequencies, seed).astype(dtype)
            drawn = dict(zip(FASTFOOD, fastfood.arrays, strict=True))
        else:
            frequencies = frequencies_of_inputs(kernel, sampler, n_frequencies, scale, seed, rotation)
            drawn = {"random_weights_": frequencies.astype(dtype, copy=False)}
        if not all(np.isfinite(array).all() for array in drawn.values()):
            raise ValueError(OVERFLOW.format("The frequencies", dtype))
        if self.phase == "offset":
            phases = 2 * np.pi * uniforms(stream(seed, 0, PHASES).random_raw(n_frequencies))
            drawn["random_offset_"] = phases.astype(dtype)
        for name in {"random_weights_", "random_offset_", *FASTFOOD}.difference(drawn):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.__dict__ |= drawn
        self.gamma_, self.sampler_, self._n_features_out = gamma, sampler, int(self.n_components)

    def transform(self, X: Any) -> np.ndarray | Any:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        Z : ndarray of shape (n_rows, n_components)
            float32 for float32 `X`, else float64. For a source, a `LinearOperator` that reads the source again for
            every product.

        Raises
        ------
        ValueError
            If `X` is not a table of finite numbers, or its values are so large that products overflow.
        MemoryError
            If the result would need more memory than the computer has.
        """
        check_is_fitted(self)
        if is_source(X):
            summary = SourceSummary.of_fitted(X, self._check)
            return StreamedFeatures.of(summary, self._map, self._n_features_out, dense=True)
        return self._map(self._check(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = is_word(self.gamma, "learn")
        return tags

    def _check(self, X: Any, reset: bool = False) -> CheckedRows:
        X = canonical(checked_rows(self, X, reset=reset, **_ARRAY_CHECKS))
        if reset:
            self._checked_law()
        return X

    def encode(self, X: Any) -> LazyFeatures:
        """Return an operator that recomputes the features of X for each product, one block of rows at a time.

        Train `CGRidge` on it if the features do not fit in memory.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
            The operator refers to X without a copy.

        Returns
        -------
        Z : LinearOperator of shape (n_rows, n_components)
            With `take`, row indexing, `gram_diagonal` and `toarray`.
        """
        check_is_fitted(self)
        return LazyFeatures(self._map, self._check(X), self._n_features_out)

    @staticmethod
    def min_components(standard_error: float) -> int:
        """Return the smallest number of features for estimates of a kernel value with at most this standard error.

        Parameters
        ----------
        standard_error : float
            Between 0 and 1, for independent frequencies and ``phase="pair"``; other samplers have smaller errors.

        Returns
        -------
        n_components : int
            Even. A pair of features contributes ``cos(w @ (x - y))``, with a variance of at most 1.

        Examples
        --------
        >>> from binfeat import RandomFourier
        >>> RandomFourier.min_components(0.05)
        800
        """
        return 2 * max(1, ceil((1 - 1e-12) / check_share(standard_error, "standard_error") ** 2))

    @property
    def _map(self) -> FourierMap:
        check_edited(self.__dict__)
        is_fast = self.sampler_ == "fastfood"
        frequencies = Fastfood(*(getattr(self, name) for name in FASTFOOD)) if is_fast else self.random_weights_
        return FourierMap(frequencies, getattr(self, "random_offset_", None), self.n_jobs)

    def _check_parameters(self) -> None:
        resolve_sampler(self.sampler, fourier_kernel(self.kernel), 1)  # `_checked_law` knows the number of inputs
        for name, word in (("sampler", "fastfood"), ("gamma", "learn")):
            if self.rotation is not None and is_word(getattr(self, name), word):
                raise ValueError(
                    f"{name}={word!r} does not support rotation. Use another {name}, or rotate X and set rotation=None."
                )
        check_choice(self.phase, "phase", ("pair", "offset"))
        thread_count(self.n_jobs)
        n_components = check_integer(self.n_components, "n_components", 1)
        if self.phase == "pair" and n_components % 2:
            raise ValueError(
                f"n_components must be even with phase='pair', a cosine and a sine for each frequency; "
                f"got {n_components}. Use {n_components + 1}, or phase='offset'."
            )
