"""Shapley values of sums of products, with a factor per player and term, from a row or from the background."""

import numpy as np

from binfeat._engine.decays import decay
from binfeat._engine.policy import jit

_TILE = 256  # terms per tile; their factors stay in the first-level cache
_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(1e-30)


@jit
def _copy_columns(B, begin, n, out):
    """Copy n columns of B to the first columns of `out`."""
    for p in range(out.shape[0]):
        for i in range(n):
            out[p, i] = B[p, begin + i]


@jit
def _factors(x, S, gamma, squares, categorical, players, begin, end, out):
    """Compute the factors of a row for terms from begin to end: decays of the summed distances of each player."""
    n = end - begin
    out[:, :n] = _ZERO
    for j in range(S.shape[0]):
        own, value, rate = out[players[j]], x[j], gamma[j]
        if rate == _ZERO:
            continue
        for i in range(n):
            apart = abs(value - S[j, begin + i])
            if categorical[j]:
                apart = _ONE if apart > _ZERO else _ZERO
            elif squares:
                apart = apart * apart
            own[i] += rate * apart
    for p in range(out.shape[0]):
        for i in range(n):
            out[p, i] = decay(out[p, i])


@jit
def mean_factors(Z, S, gamma, squares, categorical, players, out):
    """Mean factors of background rows.

    Parameters
    ----------
    Z : (n_background, n_inputs) float32
    S : (n_inputs, n_terms) float32; rows of the kernel's sum
    gamma : (n_inputs,) float32
    squares : bool; distances are squares, not magnitudes. Categories have distances of 0 and 1 in any case
    categorical : (n_inputs,) bool
    players : (n_inputs,) int64; the player of each input
    out : (n_players, n_terms) float32, written
    """
    factors = np.empty((out.shape[0], _TILE), np.float32)
    for begin in range(0, S.shape[1], _TILE):
        end = min(begin + _TILE, S.shape[1])
        sums = np.zeros((out.shape[0], end - begin))
        for z in range(Z.shape[0]):
            _factors(Z[z], S, gamma, squares, categorical, players, begin, end, factors)
            for p in range(out.shape[0]):
                for i in range(end - begin):
                    sums[p, i] += factors[p, i]
        for p in range(out.shape[0]):
            for i in range(end - begin):
                out[p, begin + i] = sums[p, i] / Z.shape[0]


@jit
def _others(a, b, n, nodes, weights, product, out):
    """Integrate products of ``t a + (1 - t) b`` over all other players, for each player."""
    out[:, :n] = _ZERO
    for k in range(nodes.size):
        t, weight = nodes[k], weights[k]
        product[:n] = weight
        for p in range(a.shape[0]):
            for i in range(n):
                value = product[i] * (b[p, i] + t * (a[p, i] - b[p, i]))
                product[i] = value if value > _LEAST else _ZERO  # no subnormal number
        for p in range(a.shape[0]):
            for i in range(n):
                out[p, i] += product[i] / (b[p, i] + t * (a[p, i] - b[p, i]))


@jit
def product_values(x, S, gamma, squares, categorical, players, B, coef, nodes, weights, out):
    """Add the Shapley values of ``sum_i c_i prod_p k_p(x, s_i)`` at one row.

    The factor of a player is a for the row, and b, the mean factor of the background, without the player. By Owen's
    integral, the value of player p is ``sum_i c_i (a_ip - b_ip) int_0^1 prod_{q != p} (t a_iq + (1 - t) b_iq) dt``.

    Parameters
    ----------
    x : (n_inputs,) float32
    S, gamma, squares, categorical, players : the arguments of `mean_factors`
    B : (n_players, n_terms) float32; the output of `mean_factors`
    coef : (n_targets, n_terms) float64
    nodes, weights : (n_nodes,) float32; nodes and weights of a quadrature from 0 to 1
    out : (n_players, n_targets) float64, updated
    """
    n_players = B.shape[0]
    a, b = np.empty((n_players, _TILE), np.float32), np.empty((n_players, _TILE), np.float32)
    others, product = np.empty((n_players, _TILE), np.float32), np.empty(_TILE, np.float32)
    for begin in range(0, S.shape[1], _TILE):
        end = min(begin + _TILE, S.shape[1])
        n = end - begin
        _factors(x, S, gamma, squares, categorical, players, begin, end, a)
        _copy_columns(B, begin, n, b)
        _others(a, b, n, nodes, weights, product, others)
        for p in range(n_players):
            for k in range(coef.shape[0]):
                total = 0.0
                for i in range(n):
                    total += coef[k, begin + i] * (a[p, i] - b[p, i]) * others[p, i]
                out[p, k] += total


@jit
def _without_two(a, b, p, q, products, nodes, n, out):
    """Integrate products of all players except two, from the products of all players at each node."""
    out[:n] = _ZERO
    for k in range(nodes.size):
        t = nodes[k]
        for i in range(n):
            first, second = b[p, i] + t * (a[p, i] - b[p, i]), b[q, i] + t * (a[q, i] - b[q, i])
            out[i] += products[k, i] / first / second


@jit
def product_interactions(x, S, gamma, squares, categorical, players, B, coef, nodes, weights, out):
    """Add the Shapley interactions of pairs of players at one row.

    The interaction of players p and q is
    ``sum_i c_i (a_ip - b_ip) (a_iq - b_iq) int_0^1 prod_r (t a_ir + (1 - t) b_ir) dt``, with the product over all other
    players r. It is the second derivative of the sum along the diagonal (Owen 1972; Grabisch & Roubens 1999).

    Parameters
    ----------
    x, S, gamma, squares, categorical, players, B, coef, nodes, weights : the arguments of `product_values`
    out : (n_players, n_players, n_targets) float64, updated for players p < q
    """
    n_players = B.shape[0]
    a, b = np.empty((n_players, _TILE), np.float32), np.empty((n_players, _TILE), np.float32)
    products, others = np.empty((nodes.size, _TILE), np.float32), np.empty(_TILE, np.float32)
    for begin in range(0, S.shape[1], _TILE):
        end = min(begin + _TILE, S.shape[1])
        n = end - begin
        _factors(x, S, gamma, squares, categorical, players, begin, end, a)
        _copy_columns(B, begin, n, b)
        for k in range(nodes.size):
            products[k, :n] = weights[k]
            for p in range(n_players):
                for i in range(n):
                    value = products[k, i] * (b[p, i] + nodes[k] * (a[p, i] - b[p, i]))
                    products[k, i] = value if value > _LEAST else _ZERO  # no subnormal number
        for p in range(n_players):
            for q in range(p + 1, n_players):
                _without_two(a, b, p, q, products, nodes, n, others)
                for k in range(coef.shape[0]):
                    total = 0.0
                    for i in range(n):
                        total += coef[k, begin + i] * (a[p, i] - b[p, i]) * (a[q, i] - b[q, i]) * others[i]
                    out[p, q, k] += total
