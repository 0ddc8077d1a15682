"""Shapley values of predictions: in closed form for products of kernels, by sampled permutations for all else."""

from dataclasses import dataclass

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._engine.policy import side_by_side
from binfeat._engine.shapley import mean_factors, product_values
from binfeat._machine.explained.mixtures import gaussian_mixture
from binfeat._machine.fitted.cell_trees import rows_by_cell
from binfeat._machine.fitted.exact import ExactFunction
from binfeat._machine.fitted.fitted import Fitted
from binfeat._machine.fitted.kernel_function import KernelFunction
from binfeat._machine.fitted.local import LocalFunction
from binfeat._machine.kernel_algebra.matrices import Linear
from binfeat.kernels import Laplacian

_MOST_BACKGROUND = 100  # rows that are taken where none are given
_MOST_NODES = 8  # of a quadrature along t: more change nothing in float32


@dataclass(frozen=True, eq=False)
class Contributions:
    """Of players to scores, in the units of these."""

    values: np.ndarray  # (n_rows, n_players, n_targets)
    base: np.ndarray  # (n_rows, n_targets): what no player's value is known of
    errors: np.ndarray  # (n_rows, n_players, n_targets): standard errors, 0 where nothing is sampled


def background_of(fitted: Fitted) -> np.ndarray:
    """Some scaled rows of `fit` that the machine has kept; ValueError if there are none."""
    known = fitted.function if isinstance(fitted.function, KernelFunction) else fitted.spread
    if known is None:
        raise ValueError("This machine keeps no rows of fit: give some as background.")
    rows = known.support[:, evenly_spaced(known.n_rows, _MOST_BACKGROUND)]
    return np.ascontiguousarray(rows.T) * known.unit + known.center


def contributions(
    fitted: Fitted, X: np.ndarray, background: np.ndarray, n_permutations: int, seed: int, n_jobs: int | None
) -> Contributions:
    """Of the columns of the user's table to the scores of scaled rows."""
    function, players = fitted.function, fitted.encoder.source
    if not (isinstance(function, KernelFunction) and _is_closed(function)):
        return _sampled(fitted, X, background, n_permutations, seed, n_jobs)
    n_players, n_targets = fitted.encoder.medians.size, len(function.coef)
    values, base = np.zeros((len(X), n_players, n_targets)), np.zeros((len(X), n_targets))
    if isinstance(function, LocalFunction):
        for cells in function.trees(X):
            for number, rows in rows_by_cell(cells):
                own = _of_exact(function.cell(number), X[rows], background, players, n_players, n_jobs)
                values[rows] += own[0] / function.n_trees
                base[rows] += (own[1] + function.cell_intercepts[number]) / function.n_trees
    else:
        assert isinstance(function, ExactFunction)
        values, own_base = _of_exact(function, X, background, players, n_players, n_jobs)
        base += own_base + fitted.intercept
    values = _adding_up(values, fitted.scores(X, n_jobs) - base)
    return Contributions(values, base, np.zeros(values.shape))


def _is_closed(function: KernelFunction) -> bool:
    """Whether every kernel is a sum of products over inputs."""
    return function.linear_map is None


def _of_exact(
    function: ExactFunction,
    X: np.ndarray,
    background: np.ndarray,
    players: np.ndarray,
    n_players: int,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Values and base of a sum of kernels: each kernel's add up."""
    values, base = np.zeros((len(X), n_players, len(function.coef))), np.zeros(len(function.coef))
    rows, others = (np.ascontiguousarray(function.frame.columns(part).T) for part in (X, background))
    for kernel, share, gamma in zip(function.kernels, function.shares, function.gammas):
        if isinstance(kernel, Linear):
            slopes = share * np.where(function.categorical, 0.0, gamma) * (function.coef @ function.support.T)
            mean = others.mean(axis=0, dtype=np.float64)
            for j, player in enumerate(players):
                values[:, player] += (rows[:, j, np.newaxis] - mean[j]) * slopes[:, j]
            base += slopes @ mean
            continue
        rates, shares = (np.ones(1), np.ones(1)) if isinstance(kernel, Laplacian) else gaussian_mixture(kernel)
        for rate, part in zip(rates, share * shares):
            typed = (gamma * rate).astype(np.float32), not isinstance(kernel, Laplacian)
            base += _add_products(function, rows, others, typed, part, players, values, n_jobs)
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
    """Add the values of one product kernel times a share, and give its base."""
    n_players, terms = values.shape[1], (function.support, *decays, function.categorical, players)
    means = np.empty((n_players, function.n_rows), np.float32)
    mean_factors(others, *terms, means)
    nodes, weights = np.polynomial.legendre.leggauss(min(_MOST_NODES, -(-n_players // 2)))
    along = ((nodes + 1) / 2).astype(np.float32), (weights / 2).astype(np.float32)
    coef = np.ascontiguousarray(share * function.coef)
    blocks = np.array_split(np.arange(len(rows)), max(1, len(rows) // 8))

    def add(block: np.ndarray) -> None:
        for i in block:
            product_values(rows[i], *terms, means, coef, *along, values[i])

    side_by_side(add, blocks, n_jobs)
    return coef @ means.prod(axis=0, dtype=np.float64)


def _adding_up(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Values that add up to what is wanted, (n_rows, n_targets), by small changes in proportion to their sizes."""
    sizes = np.abs(values)
    totals = sizes.sum(axis=1, keepdims=True)
    shares = np.divide(sizes, totals, out=np.zeros_like(sizes), where=totals > 0)
    return values + shares * (wanted - values.sum(axis=1))[:, np.newaxis]


def _sampled(
    fitted: Fitted, X: np.ndarray, background: np.ndarray, n_permutations: int, seed: int, n_jobs: int | None
) -> Contributions:
    """Means over pairs of a permutation and its reverse, each from a background whose inputs are drawn one by one."""
    rng, players, n_players = np.random.default_rng(seed), fitted.encoder.source, fitted.encoder.medians.size
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
    spread = np.maximum(squares / n_permutations - mean**2, 0.0) / max(1, n_permutations - 1)
    return Contributions(mean, base / n_permutations, np.sqrt(spread))


def _walk(
    fitted: Fitted, X: np.ndarray, start: np.ndarray, players: np.ndarray, order: np.ndarray, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """What each player's own value changes, one after the other, (n_rows, n_players, n_targets); and scores before."""
    rows, before = start.copy(), fitted.scores(start, n_jobs)
    first, values = before, np.zeros((len(X), len(order), before.shape[1]))
    for player in order:
        columns = players == player
        rows[:, columns] = X[:, columns]
        after = fitted.scores(rows, n_jobs)
        values[:, player], before = after - before, after
    return values, first
