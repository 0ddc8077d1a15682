"""Shapley values of predictions, exact for products of kernels and sampled for other functions."""

import functools
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import scipy.sparse
from scipy.optimize import nnls

from binfeat._common.arrays import quotients
from binfeat._common.frames import collected, is_frame
from binfeat._common.labels import AnyLabels
from binfeat._common.subsets import evenly_spaced
from binfeat._engine.shapley import mean_factors, product_interactions, product_values
from binfeat._threads import side_by_side
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import Laplacian, Matern
from binfeat.length_scales.matrices import Linear, has_cusp
from binfeat.models.fitted.cell_trees import rows_by_cell
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.table.columns import RawTable
from binfeat.models.table.targets import Targets

_RATES = 0.225 * 2.2 ** np.arange(24)  # candidate rates of Gaussian kernels
_SQUARES = np.append(0.0, np.exp(np.linspace(np.log(1e-5), np.log(1e3), 600)))  # squared distances for the comparison


@functools.cache
def _of_matern(kernel: Matern) -> tuple[np.ndarray, np.ndarray]:
    weights = np.where(_SQUARES == 0, 100.0, 1.0)  # the value at 0 must be 1
    values = kernel(np.sqrt(_SQUARES)[:, np.newaxis], np.zeros((1, 1)), gamma=1.0)[:, 0]
    rates = _RATES if has_cusp(kernel) else _RATES[:12]
    shares, _ = nnls(np.exp(-np.outer(_SQUARES, rates)) * weights[:, np.newaxis], values * weights, maxiter=100_000)
    kept = shares > 0
    return rates[kept], shares[kept] / shares.sum()


def gaussian_mixture(kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """Return rates and shares with ``k(s) = sum_q share_q exp(-rate_q s)`` at squared distances s.

    Matern's kernel is a mixture of Gaussians with a Gamma law of precisions (Rasmussen & Williams 2006, section 4.2.1).
    A few of these, from non-negative least squares, have errors below 3e-4 at all distances, and 1e-3 for nu 1/2,
    because its cusp at 0 needs narrow Gaussians.
    """
    return _of_matern(kernel) if isinstance(kernel, Matern) else (np.ones(1), np.ones(1))


# Shapley values of players (n_rows, n_players, n_targets), their base (n_rows, n_targets), the value without any known
# player, and standard errors of the values (0 without sampling), in units of scores.
Contributions = tuple[np.ndarray, np.ndarray, np.ndarray]


def background_of(fitted: Fitted) -> np.ndarray:
    """Return up to 100 stored scaled training rows; ValueError if the model stores none."""
    known = fitted.with_rows
    if known is None:
        raise ValueError("This model stores no training rows. Pass rows as background.")
    rows = known.support[:, evenly_spaced(known.n_rows, 100)]
    return np.ascontiguousarray(rows.T) * known.unit + known.center


def contributions(
    fitted: Fitted, X: np.ndarray, background: np.ndarray, n_permutations: int, seed: int, n_jobs: int | None
) -> Contributions:
    """Compute Shapley values of the columns of the user's table for the scores of scaled rows."""
    n_players = fitted.encoder.inputs.n_inputs
    if not is_closed(fitted):
        return _sampled(fitted, X, background, n_permutations, seed, n_jobs)
    values, base = _closed(fitted, X, background, (n_players,), n_jobs)
    sizes, left = np.abs(values), fitted.scores(X, n_jobs) - base - values.sum(axis=1)
    values += quotients(sizes, sizes.sum(axis=1, keepdims=True)) * left[:, np.newaxis]  # so that values add up
    return values, base, np.zeros(values.shape)


def interactions(
    fitted: Fitted, X: np.ndarray, background: np.ndarray, values: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Compute interactions of pairs of columns, (n_rows, n_players, n_players, n_targets), half on each side.

    The diagonal contains the remainder, so that rows add up to Shapley values. ValueError if kernels are not products.
    """
    if not is_closed(fitted):
        raise ValueError(
            "Interactions require features_ 'exact' or 'local', and linear_map_ None. Pass interactions=False."
        )
    n_players = values.shape[1]
    above, _ = _closed(fitted, X, background, (n_players, n_players), n_jobs)
    pairs = (above + above.transpose(0, 2, 1, 3)) / 2
    places = np.arange(n_players)
    pairs[:, places, places] = values - pairs.sum(axis=2)
    return pairs


def _closed(
    fitted: Fitted, X: np.ndarray, background: np.ndarray, players: tuple[int, ...], n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return values (n_rows, *players, n_targets) of players, or of pairs above the diagonal, and the base."""
    function, source = fitted.function, fitted.encoder.source
    assert isinstance(function, KernelFunction)
    n_targets = len(function.coef)
    values, base = np.zeros((len(X), *players, n_targets)), np.zeros((len(X), n_targets))
    if isinstance(function, LocalFunction):
        for cells in function.trees(X):
            for number, rows in rows_by_cell(cells):
                own = _of_exact(function.cell(number), X[rows], background, source, players, n_jobs)
                values[rows] += own[0] / function.n_trees
                base[rows] += (own[1] + function.cell_intercepts[number]) / function.n_trees
        base += _add_levels(function, X, background, source, values)
    else:
        values, own_base = _of_exact(function, X, background, source, players, n_jobs)
        base += own_base + fitted.intercept
    return values, base


def _add_levels(
    function: LocalFunction, X: np.ndarray, background: np.ndarray, source: np.ndarray, values: np.ndarray
) -> np.ndarray | float:
    """Add the effects of levels minus their background means, and return the sum of these means.

    Effects are additive, so pairs of players have none.
    """
    if function.levels is None:
        return 0.0
    means: list[np.ndarray] = []
    for (j, own), (_, others) in zip(function.effects_of(X), function.effects_of(background), strict=True):
        means.append(others.mean(axis=0))
        if values.ndim == 3:
            values[:, source[j]] += own - means[-1]
    return np.sum(means, axis=0)


def is_closed(fitted: Fitted) -> bool:
    """Return True if all kernels are sums of products over inputs."""
    return isinstance(fitted.function, KernelFunction) and fitted.function.linear_map is None


def _of_exact(
    function: ExactFunction,
    X: np.ndarray,
    background: np.ndarray,
    source: np.ndarray,
    players: tuple[int, ...],
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and base, summed over kernels; `source` contains the player of each input."""
    values, base = np.zeros((len(X), *players, len(function.coef))), np.zeros(len(function.coef))
    rows, others = (np.ascontiguousarray(function.standardizer.columns(part).T) for part in (X, background))
    for kernel, share, gamma in zip(function.kernels, function.shares, function.gammas):
        if isinstance(kernel, Linear):
            slopes = share * np.where(function.categorical, 0.0, gamma) * (function.coef @ function.support.T)
            mean = others.mean(axis=0, dtype=np.float64)
            for j, player in enumerate(source if len(players) == 1 else ()):  # linear kernels have no pair effects
                values[:, player] += (rows[:, j, np.newaxis] - mean[j]) * slopes[:, j]
            base += slopes @ mean
            continue
        rates, shares = gaussian_mixture(kernel)
        for rate, part in zip(rates, share * shares):
            typed = (gamma * rate).astype(np.float32), not isinstance(kernel, Laplacian)
            base += _add_products(function, rows, others, typed, part, source, values, n_jobs)
    return values, base


def _add_products(
    function: ExactFunction,
    rows: np.ndarray,
    others: np.ndarray,
    decays: tuple[np.ndarray, bool],
    share: float,
    players: np.ndarray,
    values: np.ndarray,
    n_jobs: int | None,
) -> np.ndarray:
    """Add the values of one product kernel times a share, and return its base."""
    n_players, terms = values.shape[1], (function.support, *decays, function.categorical, players)
    means = np.empty((n_players, function.n_rows), np.float32)
    mean_factors(others, *terms, means)
    nodes, weights = np.polynomial.legendre.leggauss(min(8, -(-n_players // 2)))  # more nodes change nothing in float32
    add_at = product_values if values.ndim == 3 else product_interactions
    along = ((nodes + 1) / 2).astype(np.float32), (weights / 2).astype(np.float32)
    coef = np.ascontiguousarray(share * function.coef)
    blocks = np.array_split(np.arange(len(rows)), max(1, len(rows) // 8))

    def add(block: np.ndarray) -> None:
        for i in block:
            add_at(rows[i], *terms, means, coef, *along, values[i])

    side_by_side(add, blocks, n_jobs)
    return coef @ means.prod(axis=0, dtype=np.float64)


def _sampled(
    fitted: Fitted, X: np.ndarray, background: np.ndarray, n_permutations: int, seed: int, n_jobs: int | None
) -> Contributions:
    """Return means over pairs of a permutation and its reverse, with background inputs drawn independently."""
    rng, players, n_players = np.random.default_rng(seed), fitted.encoder.source, fitted.encoder.inputs.n_inputs
    shape = len(X), n_players, fitted.intercept.size
    total, squares, base = np.zeros(shape), np.zeros(shape), np.zeros((len(X), shape[2]))
    for _ in range(n_permutations):
        drawn = rng.integers(len(background), size=(n_players, len(X)))
        start = np.stack([background[drawn[player], j] for j, player in enumerate(players)], axis=1)
        order = rng.permutation(n_players)
        walks = [_walk(fitted, X, start, players, way, n_jobs) for way in (order, order[::-1])]
        pair = (walks[0][0] + walks[1][0]) / 2
        total, squares, base = total + pair, squares + pair**2, base + walks[0][1]
    mean = total / n_permutations
    if n_permutations == 1:
        return mean, base, np.full(shape, np.nan)
    spread = np.maximum(squares / n_permutations - mean**2, 0.0) / (n_permutations - 1)
    return mean, base / n_permutations, np.sqrt(spread)


def _walk(
    fitted: Fitted, X: np.ndarray, start: np.ndarray, players: np.ndarray, order: np.ndarray, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return changes of scores as players get their values, (n_rows, n_players, n_targets), and initial scores."""
    rows, before = start.copy(), fitted.scores(start, n_jobs)
    first, values = before, np.zeros((len(X), len(order), before.shape[1]))
    for player in order:
        columns = players == player
        rows[:, columns] = X[:, columns]
        after = fitted.scores(rows, n_jobs)
        values[:, player], before = after - before, after
    return values, first


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of the predictions of a kernel model.

    The `shap` package plots ``shap.Explanation(v.values, v.base_values, v.data, feature_names=v.feature_names)``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_inputs) or (n_rows, n_inputs, n_outputs)
        Shapley values. The sum over inputs, plus `base_values`, is the explained prediction.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Mean prediction for background rows with independently drawn inputs.
    standard_errors : ndarray like values
        Standard errors of sampled values, NaN for a single permutation; 0 for exact values.
    data : ndarray of shape (n_rows, n_inputs)
        The explained rows.
    feature_names : list of str
    interactions : ndarray of shape (n_rows, n_inputs, n_inputs) or (n_rows, n_inputs, n_inputs, n_outputs), or None
        Interaction values, split evenly between both sides of the diagonal; the diagonal contains main effects. Rows of
        a matrix sum to `values`. None unless requested.
    """

    values: np.ndarray
    base_values: np.ndarray
    standard_errors: np.ndarray
    data: np.ndarray
    feature_names: list[str]
    interactions: np.ndarray | None = None


def in_units_of(targets: Targets | AnyLabels, found: Contributions) -> Contributions:
    """Convert predictions of numbers to the caller's units if possible; labels keep scores."""
    values, base, errors = found
    if not isinstance(targets, Targets):
        return found
    return values * targets.std, base * targets.std + targets.mean, errors * targets.std


def shown(
    targets: Targets | AnyLabels, found: Contributions, pairs: np.ndarray | None, X: RawTable, names: list[str]
) -> ShapleyValues:
    """Return Shapley values, and interactions if computed, without the axis of a single output."""
    values, base, errors = in_units_of(targets, found)
    if pairs is not None and isinstance(targets, Targets):
        pairs = pairs * targets.std
    if base.shape[1] == 1:
        values, base, errors = values[:, :, 0], base[:, 0], errors[:, :, 0]
        pairs = None if pairs is None else pairs[..., 0]
    data = _values_in(X)
    return ShapleyValues(values, base, errors, data, names or [f"x{j}" for j in range(data.shape[1])], pairs)


def _values_in(X: RawTable) -> np.ndarray:
    """Return the values of a table, (n_rows, n_inputs).

    They are objects if the table contains times and columns of another type, or Arrow dictionaries: in NumPy, missing
    values of a dictionary become a category.
    """
    if scipy.sparse.issparse(X):
        return X.toarray()
    X = collected(X)
    if not is_frame(X):
        return np.asarray(X)
    frame = nw.from_native(X, eager_only=True)
    types, is_arrow = set(frame.schema.values()), frame.implementation.is_pyarrow()
    listed = [own for own in types if (own.is_temporal() and len(types) > 1) or (is_arrow and own == nw.Categorical)]
    if not listed:
        return np.asarray(X)
    values = np.empty(frame.shape, dtype=object)
    for j, column in enumerate(frame.iter_columns()):
        values[:, j] = column.to_list() if column.dtype in listed else column.to_numpy()
    return values
