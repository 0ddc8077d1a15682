"""Slow, obvious reference implementations in plain Python, with loops over rows, grids and inputs.

They share no code with the package.
"""

import math
from collections import Counter
from itertools import accumulate, combinations, pairwise

import numpy as np
from scipy import integrate, optimize, stats

BORDER = 2**51 - 1
MASK = 2**64 - 1

QUANTILES = {
    "laplacian": stats.gamma(2).ppf,
    "hat": lambda u: np.ones_like(u),
    "gamma_pitch_8": stats.gamma(8, scale=2 / 8).ppf,
    "half_skipped": lambda u: np.where(u < 0.5, stats.gamma(2).ppf(np.minimum(2 * u, 0.5 if u >= 0.5 else 1)), np.inf),
}


SPECTRA = {"rbf": stats.norm.ppf, "laplacian": stats.cauchy.ppf, "cauchy": stats.laplace.ppf}


def words(seed, grid, purpose, count):
    return np.random.PCG64(np.random.SeedSequence([seed, grid, purpose])).random_raw(count)


def round_to_32_bits(x):
    if x == 0:
        return 0.0
    exponent = math.frexp(x)[1]
    return math.ldexp(round(math.ldexp(x, 32 - exponent)), exponent - 32)


def grid(law, gamma, seed, p, categorical=()):
    """Return (scale, shift, key, key of NaN) of each input in grid p."""
    d = len(gamma)
    u = [((int(w) >> 11) + 0.5) / 2**53 for w in words(seed, p, 0, d)]
    shifts = [(int(w) >> 32) / 2**32 for w in words(seed, p, 1, d)]
    keys = [int(w) for w in words(seed, p, 2, 2 * d)]
    out = []
    for j in range(d):
        scale = round_to_32_bits(float(gamma[j] / QUANTILES[law](np.array(u[j])))) if gamma[j] > 0 else 0.0
        if j in categorical:
            scale, shifts[j] = (0.0 if u[j] < math.exp(-gamma[j]) else 1.0), 0.0
        out.append((scale, shifts[j], keys[j] | 1, keys[d + j]))
    return out


def cell(x, scale, shift):
    """Return the cell index, "ignored" if the grid skips the input, or "missing"."""
    if scale == 0:
        return "ignored"
    if math.isnan(x):
        return "missing"
    position = x * scale - shift
    if abs(position) > BORDER:
        return int(math.copysign(BORDER, position))
    return max(-BORDER, min(BORDER, math.ceil(position)))


def cells(X, law, gamma, n_grids, seed, categorical=()):
    """Return the tuple of cells of each row, for each grid."""
    out = []
    for p in range(n_grids):
        parameters = grid(law, gamma, seed, p, categorical)
        out.append([tuple(cell(float(x), *q[:2]) for x, q in zip(row, parameters, strict=True)) for row in X])
    return out


def finish(h):
    h = ((h ^ (h >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    h = ((h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return h ^ (h >> 33)


def hashed(row_cells, parameters):
    total = 0
    for c, (_, _, key, nan_key) in zip(row_cells, parameters, strict=True):
        if c == "missing":
            total += nan_key
        elif c != "ignored":
            total += key * c
    return finish(total & MASK)


def codes(X, law, gamma, n_grids, seed, categorical=(), min_count=1):
    """Return codes (None for no bin) and bins per grid, by decreasing counts, then by increasing hashes."""
    all_codes, sizes = [], []
    for p, rows in enumerate(cells(X, law, gamma, n_grids, seed, categorical)):
        parameters = grid(law, gamma, seed, p, categorical)
        counts = Counter(rows)
        ranked = sorted(counts, key=lambda c: (-counts[c], hashed(c, parameters)))
        kept = {c: code for code, c in enumerate(ranked) if counts[c] >= min_count}
        all_codes.append([kept.get(c) for c in rows])
        sizes.append(len(kept))
    return all_codes, sizes


def dense_features(all_codes, sizes):
    """Return the matrix Z, entry by entry."""
    n_grids, n_rows = len(all_codes), len(all_codes[0])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    Z = np.zeros((n_rows, offsets[-1]))
    for p in range(n_grids):
        for i in range(n_rows):
            if all_codes[p][i] is not None:
                Z[i, offsets[p] + all_codes[p][i]] = 1 / math.sqrt(n_grids)
    return Z


def products(all_codes, sizes, W, V):
    """Return ``Z @ W`` and ``Z.T @ V`` for entries 1 / sqrt(n_grids), summed exactly in the order of grids and rows."""
    value = 1 / np.sqrt(len(all_codes))
    forward, backward, first = np.zeros((len(V), W.shape[1])), [], 0
    for grid_codes, size in zip(all_codes, sizes, strict=True):
        places = np.minimum(grid_codes, size)  # an additional index for "no bin"
        forward += np.vstack([W[first : first + size], np.zeros(W.shape[1])])[places]
        sums = np.zeros((size + 1, V.shape[1]))
        for place, row in zip(places, V, strict=True):
            sums[place] += row
        backward.append(sums[:size])
        first += size
    return value * forward, value * np.concatenate(backward)


def merged_lone_columns(Z):
    """Return the columns of Z, with all columns of a single row merged into one column of the same norm."""
    lone = {}
    columns = []
    for column in Z.T:
        (rows,) = np.nonzero(column)
        if len(rows) == 1:
            lone.setdefault(rows[0], []).append(column)
        else:
            columns.append(column)
    return np.transpose(columns + [np.sqrt(np.sum(np.square(own), axis=0)) for own in lone.values()])


def ridge(Z, Y, alpha, sample_weight=None, fit_intercept=True):
    """Return coefficients (n_targets, n_features) and intercepts by dense least squares without Cholesky factors."""
    n, d = Z.shape
    Y = Y.reshape(n, -1)
    root = np.sqrt(np.ones(n) if sample_weight is None else sample_weight)[:, None]
    A = np.hstack([Z, np.ones((n, 1))]) if fit_intercept else Z
    coefs, intercepts = [], []
    for k, penalty in enumerate(np.broadcast_to(alpha, Y.shape[1])):
        rows = np.hstack([np.sqrt(penalty) * np.eye(d), np.zeros((d, A.shape[1] - d))])
        w = np.linalg.lstsq(np.vstack([root * A, rows]), np.concatenate([root[:, 0] * Y[:, k], np.zeros(d)]))[0]
        coefs.append(w[:d])
        intercepts.append(w[d] if fit_intercept else 0.0)
    return np.array(coefs), np.array(intercepts)


def fastfood_frequencies(signs, order, normals, norms):
    """Return the rows of ``S H G P H B`` from the matrices, (n_frequencies, n_inputs)."""
    n_blocks, length = order.shape
    H = np.array([[(-1) ** (i & j).bit_count() for j in range(length)] for i in range(length)])
    rows = []
    for b in range(n_blocks):
        B = np.vstack([np.diag(signs[b]), np.zeros((length - len(signs[b]), len(signs[b])))])
        P = np.array([[float(order[b, i] == j) for j in range(length)] for i in range(length)])
        rows.append(H @ np.diag(normals[b]) @ P @ H @ B)
    return norms[:, None] * np.vstack(rows)[: len(norms)]


def same_partition(a, b):
    """Return True if two labelings are the same partition of the rows."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def frequencies(law, seed, n_frequencies, n_inputs):
    """Return independent frequencies of a product law at scale 1, row by row from one stream of words."""
    u = [((int(w) >> 11) + 0.5) / 2**53 for w in words(seed, 0, 3, n_frequencies * n_inputs)]
    return SPECTRA[law](np.array(u)).reshape(n_frequencies, n_inputs)


def matern(s, nu):
    """Return the Matern kernel at scaled squared distance s, as a mixture of Gaussians with Gamma(nu) precision."""
    law = stats.gamma(nu, scale=1 / nu)
    below = [law.ppf(10.0**-p) for p in (1, 3, 6, 9, 12)]
    above = [law.isf(10.0**-p) for p in (1, 3, 6, 9, 12)]
    edges = [0.0, *below[::-1], *above]
    parts = [
        integrate.quad(lambda g: math.exp(-s / g) * law.pdf(g) if g > 0 else 0.0, a, b, epsabs=1e-13, epsrel=1e-12)[0]
        for a, b in pairwise(edges)
        if a < b
    ]
    return sum(parts)


def oscillating_integral(w):
    """Return ``integral from 0 to w of (1 - cos t) / (pi t^2)``, lobe by lobe."""
    edges = [*np.arange(0, w, 2 * math.pi), w]
    pieces = [
        integrate.quad(lambda t: 2 * (math.sin(t / 2) / t) ** 2 / math.pi if t else 0.5 / math.pi, a, b)[0]
        for a, b in pairwise(edges)
    ]
    return math.fsum(pieces)


def ranks(training, n_quantiles):
    """Map one column to ranks: mid-ranks at some training values, linear interpolation between them."""
    values = sorted(float(x) for x in training)
    n = len(values)
    picked = sorted({values[round(k * (n - 1) / (n_quantiles - 1))] for k in range(n_quantiles)})
    points = [(v, (sum(x < v for x in values) + sum(x <= v for x in values)) / (2 * n)) for v in picked]

    def mapping(x):
        if x <= points[0][0]:
            return points[0][1]
        for (a, low), (b, high) in pairwise(points):
            if a <= x <= b:
                return low + (high - low) * (x - a) / (b - a)
        return points[-1][1]

    return mapping


def kernel_matrix(A, B, gamma, profile, *, categorical=(), radial=False):
    """Return kernel values of all pairs of rows, pair by pair.

    A product kernel is a profile of ``gamma_j |a_j - b_j|``; a categorical input multiplies it by ``exp(-gamma_j)`` if
    the values differ. A radial kernel is a profile of ``sum_j gamma_j (a_j - b_j)^2``; a categorical input adds gamma_j
    if the values differ.
    """
    K = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        for k, b in enumerate(B):
            square, product = 0.0, 1.0
            for j in range(len(gamma)):
                mismatch = float(a[j] != b[j])
                square += gamma[j] * (mismatch if j in categorical else (a[j] - b[j]) ** 2)
                factor = math.exp(-gamma[j] * mismatch) if j in categorical else profile(gamma[j] * abs(a[j] - b[j]))
                product *= 1.0 if radial else float(factor)
            K[i, k] = profile(square) if radial else product
    return K


def kernel_ridge(K, Y, alpha, weights=None):
    """Return coefficients of kernel ridge regression with a kernel of ones as intercept."""
    v = np.ones(len(K)) if weights is None else weights
    return np.linalg.solve(K + 1.0 + np.diag(alpha / v), Y)


def left_out_residuals(K, Y, alpha, weights=None):
    """Return the residual of each row for the model fitted to all other rows."""
    out = np.empty(Y.shape)
    for i in range(len(K)):
        others = np.arange(len(K)) != i
        coef = kernel_ridge(K[np.ix_(others, others)], Y[others], alpha, None if weights is None else weights[others])
        out[i] = Y[i] - (K[i, others] + 1.0) @ coef
    return out


def calibration_loss(scores, labels, weights, factors, intercept, beside):
    """Return the mean log-loss of calibrated scores, with one additional wrong row, and the ridge penalty."""
    n, k = scores.shape
    total, norm, logs = 0.0, 0.0, np.log(0.05 * np.log1p(np.exp((1 + scores) / 2 / 0.05)))
    for i in range(n):
        odds = np.array(intercept, float)
        for rows, factor, matrix in zip((scores, logs - np.log(0.05)), factors, beside):
            odds += factor * rows[i] + matrix @ rows[i]
        losses = np.log(np.exp(odds).sum()) - odds
        wrong = 1 / (n + 2)
        own = sum((1 - wrong if c == labels[i] else wrong / (k - 1)) * losses[c] for c in range(k))
        total, norm = total + weights[i] * own, norm + weights[i]
    penalty = sum(
        max(np.var(rows, axis=0).mean(), 0.05**2) * (matrix**2).sum() for rows, matrix in zip((scores, logs), beside)
    )
    return total / norm + 20 / n * penalty / 2


def left_out_error(K, Y, alpha, weights=None):
    """Return the weighted mean square of leave-one-out residuals."""
    v = np.ones(len(K)) if weights is None else weights
    return float(np.mean(v[:, None] * left_out_residuals(K, Y, alpha, weights) ** 2))


def left_out_slopes(kernel, X, Y, gamma, alpha, weights=None, step=1e-4):
    """Return central differences of the error for logarithms of positive gammas and of alpha; kernel(X, gamma)."""
    theta = np.append(gamma, alpha)
    out = np.zeros(theta.size)
    for j in np.flatnonzero(theta):
        ends = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[j] *= math.exp(sign * step)
            ends.append(left_out_error(kernel(X, moved[:-1]), Y, moved[-1], weights))
        out[j] = (ends[0] - ends[1]) / (2 * step)
    return out


def slopes_by_entries(function, values, step=1e-4):
    """Return central differences of a function of an array, for each of its entries."""
    out = np.zeros(values.shape)
    for place in np.ndindex(values.shape):
        ends = []
        for sign in (1.0, -1.0):
            moved = values.copy()
            moved[place] += sign * step
            ends.append(function(moved))
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out


def rotated(X, gamma, rotation, categorical=()):
    """Return rotated rows of scaled numbers, followed by their categories."""
    numbers = [j for j in range(len(gamma)) if j not in categorical]
    out = []
    for x in X:
        mapped = [sum(math.sqrt(gamma[j]) * x[j] * rotation[j][k] for j in numbers) for k in range(len(rotation[0]))]
        out.append(mapped + [x[j] for j in sorted(categorical)])
    return np.array(out)


def huber_weights(residuals, own):
    """Return the weight of each row: 1 within 1.345 robust standard deviations, 1.345 / distance beyond.

    Medians count rows by their own weights.
    """
    n_targets = residuals.shape[1]
    deviations = [1.4826 * weighted_middle([abs(r) for r in residuals[:, t]], own) for t in range(n_targets)]
    weights = []
    for row in residuals:
        size = math.sqrt(sum((row[t] / deviations[t]) ** 2 for t in range(n_targets)) / n_targets)
        weights.append(1.0 if size <= 1.345 else 1.345 / size)
    return weights


def weighted_middle(values, weights):
    """Return the value at which the sum of weights reaches half of the total."""
    order = sorted(range(len(values)), key=values.__getitem__)
    totals = accumulate(weights[i] for i in order)
    return next(values[i] for i, total in zip(order, totals) if total >= sum(weights) / 2)


def similarities(all_codes):
    """Return similarities of all pairs of rows; each grid divides 1 / n_grids among the other rows of a bin."""
    n_grids, n_rows = len(all_codes), len(all_codes[0])
    W = np.zeros((n_rows, n_rows))
    for codes_of_grid in all_codes:
        sizes = Counter(codes_of_grid)
        for i, a in enumerate(codes_of_grid):
            for j, b in enumerate(codes_of_grid):
                if i != j and a is not None and a == b:
                    W[i, j] += 1 / (sizes[a] - 1) / n_grids
    return W


def nearest_only(W, n_neighbors):
    """Keep the largest similarities of each row, first rows among equal ones; halve them if only one row keeps it."""
    kept = np.zeros_like(W)
    for i, row in enumerate(W):
        for j in sorted(range(len(W)), key=lambda j: (-row[j], j))[:n_neighbors]:
            kept[i, j] += row[j] / 2
            kept[j, i] += row[j] / 2
    return kept


def nearest_by_distance(W, X, gamma, categorical, n_candidates=31, n_nearest=7, equal=True):
    """Return links of each row to its copies and nearest other rows: 1, or 1/2 if only one row has the link.

    If not `equal`, they are W or the halves of W.

    Both are among the rows with the largest similarities W (first rows among equal ones).
    """
    links = np.zeros_like(W)
    for i, row in enumerate(W):
        candidates = [j for j in sorted(range(len(W)), key=lambda j: (-row[j], j))[:n_candidates] if row[j] > 0]
        far = {j: squared_distance(X[i], X[j], gamma, categorical) for j in candidates}
        others = sorted((j for j in candidates if far[j] > 0), key=far.get)
        for j in [*(j for j in candidates if far[j] == 0), *others[:n_nearest]]:
            weight = 1 if equal else row[j]
            links[i, j] += weight / 2
            links[j, i] += weight / 2
    return links


def squared_distance(a, b, gamma, categorical):
    """Return the sum of squares of ``gamma_j (a_j - b_j)``; categories differ by 1."""
    total = 0.0
    for x, y, own, is_category in zip(a, b, gamma, categorical):
        total += own**2 * (x != y if is_category else (x - y) ** 2)
    return total


def similarities_of_new_rows(all_codes, new_codes):
    """Return similarities of new rows to old rows, (n_new, n_old), without bins of one old row."""
    W = np.zeros((len(new_codes[0]), len(all_codes[0])))
    for old, new in zip(all_codes, new_codes, strict=True):
        sizes = Counter(old)
        for i, a in enumerate(new):
            for j, b in enumerate(old):
                if a is not None and a == b and sizes[b] > 1:
                    W[i, j] += 1 / (sizes[b] - 1) / len(all_codes)
    return W


def means_of_largest(W, values, n_largest):
    """Return means of values (n_old, k), weighted by the largest similarities W (n_new, n_old); 0 without any."""
    means = np.zeros((len(W), values.shape[1]))
    for i, row in enumerate(W):
        chosen = sorted(range(len(row)), key=lambda j: (-row[j], j))[:n_largest]
        if row[chosen].sum() > 0:
            means[i] = sum(row[j] * values[j] for j in chosen) / row[chosen].sum()
    return means


def normalized(W):
    """Return ``D^-1/2 W D^-1/2`` with the row sums D; rows without neighbors are 0."""
    roots = np.array([1 / math.sqrt(d) if d > 0 else 0.0 for d in W.sum(axis=1)])
    return roots[:, None] * W * roots


def spectral_coordinates(W, n_components):
    """Return the leading eigenvalues except the first, and their vectors times ``D^-1/2 sqrt(sum D)``."""
    degrees = W.sum(axis=1)
    values, vectors = np.linalg.eigh(normalized(W))
    chosen = np.argsort(-values)[1 : n_components + 1]
    return values[chosen], vectors[:, chosen] * np.sqrt(degrees.sum() / degrees)[:, None]


def label_spreading(W, Y, alpha, clamped=()):
    """Return scores F = alpha S F + Y; clamped rows keep their Y."""
    A = np.eye(len(W)) - alpha * normalized(W)
    for i in clamped:
        A[i] = np.eye(len(W))[i]
    return np.linalg.solve(A, Y)


def posterior(K, across, own, alpha, weights=None):
    """Return covariances of predictions for new rows, relative to the noise, conditioned on noisy old rows.

    K are kernel values of the old rows (n, n), `across` of new and old ones (m, n), `own` of the new ones (m, m). The
    intercept is a kernel of ones.
    """
    v = np.ones(len(K)) if weights is None else weights
    prior = (K + 1.0) / alpha
    return (own + 1.0) / alpha - (across + 1.0) / alpha @ np.linalg.solve(
        prior + np.diag(1 / v), (across + 1.0).T / alpha
    )


def left_out_variances(K, alpha, weights=None):
    """Return the variance of each row's prediction by the model of all other rows, relative to the noise."""
    out = np.empty(len(K))
    for i in range(len(K)):
        others = np.arange(len(K)) != i
        known = None if weights is None else weights[others]
        out[i] = posterior(K[np.ix_(others, others)], K[[i]][:, others], K[[i]][:, [i]], alpha, known)[0, 0]
    return out


def ridge_posterior(Z, y, new, alpha, weights=None, fit_intercept=True):
    """Return the noise, and relative variances of predictions for new rows; the prior of the intercept is flat."""
    n = len(Z)
    v = np.ones(n) if weights is None else weights
    if fit_intercept:
        Z, new = (np.hstack([rows, np.ones((len(rows), 1))]) for rows in (Z, new))
    penalty = np.full(Z.shape[1], float(alpha))
    if fit_intercept:
        penalty[-1] = 0.0
    inverse = np.linalg.inv((Z.T * v) @ Z + np.diag(penalty))
    residuals = y - Z @ inverse @ (Z.T @ (v * y))
    freedom = np.count_nonzero(v) - np.trace(Z @ inverse @ (Z.T * v))
    return np.sum(v * residuals**2) / freedom, np.einsum("ij,jk,ik->i", new, inverse, new)


def cell_of(row, splits, root):
    """Return the number of a row's cell in a tree of splits (input, place, first child, second child)."""
    node = root
    while node >= 0:
        j, place, first, second = splits[node]
        node = second if row[j] > place else first
    return -1 - node


def local_model(X, Y, new, kernel, alpha, trees, weights=None):
    """Return the mean over trees of exact models of the rows in a new row's cell, and leave-one-out residuals.

    A tree is a pair of splits and root, as in `cell_of`.
    """
    weights = np.ones(len(X)) if weights is None else weights
    predictions, residuals = np.zeros((len(new), Y.shape[1])), np.zeros(Y.shape)
    for splits, root in trees:
        own, others = (np.array([cell_of(row, splits, root) for row in rows]) for rows in (X, new))
        for cell in np.unique(own):
            rows, at = own == cell, others == cell
            K = kernel(X[rows], X[rows])
            coef = kernel_ridge(K, Y[rows], alpha, weights[rows])
            predictions[at] += (kernel(new[at], X[rows]) + 1.0) @ coef / len(trees)
            residuals[rows] += left_out_residuals(K, Y[rows], alpha, weights[rows]) / len(trees)
    return predictions, residuals


def local_model_with_levels(X, Y, new, kernel, alpha, trees, levels, new_levels, variances, weights=None):
    """Return `local_model` with effects of levels shared by all cells, and variances of the first tree.

    It uses dense matrices of all rows for each tree. `levels` and `new_levels` are (n_rows, n_categories). Rows of the
    same level share its prior variance, in all cells. Later trees use the effects of the first tree, and effects have
    the same share in the diagonal of the inverse as there. Variances of predictions are relative to the noise.
    """
    weights = np.ones(len(X)) if weights is None else weights
    predictions, residuals, deviations = np.zeros((len(new), Y.shape[1])), np.zeros(Y.shape), None

    def shared(one, other):
        return sum(v * (one[:, [g]] == other[:, g]) for g, v in enumerate(variances))

    for splits, root in trees:
        own, others = (np.array([cell_of(row, splits, root) for row in rows]) for rows in (X, new))
        K = (own[:, np.newaxis] == own) * (kernel(X, X) + 1.0)
        k = (others[:, np.newaxis] == own) * (kernel(new, X) + 1.0)
        inverse = np.linalg.inv(K + np.diag(alpha / weights))
        if deviations is None:
            both = k + shared(new_levels, levels)
            G = np.linalg.inv(K + shared(levels, levels) + np.diag(alpha / weights))
            effects, new_effects = (shared(rows, levels) @ G @ Y for rows in (levels, new_levels))
            left = np.diag(G) / np.diag(inverse)
            prior = 2.0 + sum(variances)
            deviations = (prior - np.einsum("ij,jk,ik->i", both, G, both)) / alpha
        coef = inverse @ (Y - effects)
        predictions += (k @ coef + new_effects) / len(trees)
        residuals += coef / (left * np.diag(inverse))[:, np.newaxis] / len(trees)
    return predictions, residuals, deviations


def conformal_quantile(residuals, level):
    """Return a conformal quantile: P(next residual below it) is at most `level` up to 1/2, and at least beyond."""
    ordered, n = sorted(residuals), len(residuals)
    if level < 0.5:
        return max(value for rank, value in enumerate(ordered, 1) if rank <= level * (n + 1))
    return min(value for rank, value in enumerate(ordered, 1) if rank >= level * (n + 1))


def weighted_quantile(residuals, weights, level):
    """Return a quantile that is conformal among the effective number of rows, with rows counted by their weights."""
    n = sum(weights) ** 2 / sum(weights**2)
    share = 0.5 + (level - 0.5) * (n + 1) / n
    share = np.clip(share, 0.5 / len(weights), 1 - 0.5 / len(weights))
    ordered = sorted(zip(residuals, weights))
    totals = [sum(weight for _, weight in ordered[: rank + 1]) / sum(weights) for rank in range(len(ordered))]
    return next(value for (value, _), total in zip(ordered, totals) if total >= share)


def laplacian_expansion(support, gamma, coef, rows):
    """Return ``sum_i c_i exp(-sum_j gamma_j |x_j - s_ij|)`` for each row; support has shape (n_inputs, n_support)."""
    kernel = [[np.exp(-sum(gamma * np.abs(row - other))) for other in support.T] for row in rows]
    return np.array(kernel) @ coef


def penalized_deviance(K, y, weights, power, offset, alpha):
    """Return f = offset + g, log means that minimize ``sum_i v_i d(y_i, exp(f_i)) + alpha g' (K + 1)^-1 g``."""

    def objective(c):
        f = offset + (K + 1) @ c
        means = np.exp(f)
        if power == 1:
            deviances = 2 * (np.where(y > 0, y * (np.log(np.where(y > 0, y, 1)) - f), 0) - y + means)
        elif power == 2:
            deviances = 2 * (f - np.log(y) + y / means - 1)
        else:
            own = y ** (2 - power) / ((1 - power) * (2 - power))
            deviances = 2 * (own - y * means ** (1 - power) / (1 - power) + means ** (2 - power) / (2 - power))
        slopes = 2 * weights * (means - y) * means ** (1 - power)
        penalty = (K + 1) @ c
        return weights @ deviances + alpha * c @ penalty, (K + 1) @ (slopes + 2 * alpha * c)

    found = optimize.minimize(
        objective, np.zeros(len(y)), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    )
    return offset + (K + 1) @ found.x


def penalized_margins(K, Y, weights, alpha, kind):
    """Return scores f = (K + 1) c that minimize ``sum_i v_i l_i + alpha f' (K + 1)^-1 f / 2``, by a general solver.

    l is ``log(1 + exp(-2 y f)) / 2`` summed over targets, the cross entropy of the softmax, or half the squared hinge.
    """
    root = np.linalg.cholesky(np.asarray(K, float) + 1 + 1e-10 * np.eye(len(K)))

    def objective(values):
        u = values.reshape(Y.shape)
        f = root @ u
        if kind == "LogLoss":
            halves, slopes = np.log1p(np.exp(-2 * Y * f)) / 2, -Y / (1 + np.exp(2 * Y * f))
        elif kind == "SoftmaxLoss":
            p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
            halves, slopes = np.where(Y > 0, -np.log(p), 0), p - (Y > 0)
        else:
            halves, slopes = np.maximum(0, 1 - Y * f) ** 2 / 2, -Y * np.maximum(0, 1 - Y * f)
        total = (weights[:, None] * halves).sum() + alpha / 2 * (u**2).sum()
        return total, (root.T @ (weights[:, None] * slopes) + alpha * u).ravel()

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    found = optimize.minimize(objective, np.zeros(Y.size), jac=True, method="L-BFGS-B", options=options)
    return root @ found.x.reshape(Y.shape)


def shapley_values(value, n_players):
    """Return the Shapley values of a game, a function of a set of players: means over all orders, by all sets."""
    out = []
    for player in range(n_players):
        others, total = [other for other in range(n_players) if other != player], 0.0
        for size in range(n_players):
            weight = math.factorial(size) * math.factorial(n_players - size - 1) / math.factorial(n_players)
            for some in combinations(others, size):
                total = total + weight * (value({*some, player}) - value(set(some)))
        out.append(total)
    return np.array(out)


def shapley_interactions(value, n_players):
    """Return interactions of pairs of players of a game: the gain of both minus the gains of each, over all sets."""
    out = np.zeros((n_players, n_players))
    for p, q in combinations(range(n_players), 2):
        others = [other for other in range(n_players) if other not in (p, q)]
        for size in range(n_players - 1):
            weight = math.factorial(size) * math.factorial(n_players - size - 2) / math.factorial(n_players - 1)
            for some in map(set, combinations(others, size)):
                beyond = value(some | {p, q}) - value(some | {p}) - value(some | {q}) + value(some)
                out[p, q] += weight * beyond
    return out + out.T


def product_game(x, support, coef, background, factor):
    """Return ``sum_i c_i prod_j a_ij`` with the row's factors for players in the set, and mean factors for others."""
    own = np.array([[factor(j, x[j], s[j]) for j in range(len(x))] for s in support])
    mean = np.array([[np.mean([factor(j, z[j], s[j]) for z in background]) for j in range(len(x))] for s in support])

    def value(some):
        return sum(
            c * math.prod(own[i, j] if j in some else mean[i, j] for j in range(len(x))) for i, c in enumerate(coef)
        )

    return value


def are_codes(values, scores, sure, share):
    """Return True for codes: compare mean squared steps between mean scores with chance, and with all means."""
    levels = sorted(set(values))
    rows = {level: [k for k, value in enumerate(values) if value == level] for level in levels}
    between = chance = jumps = 0.0
    for column in scores.T:
        means = {level: sum(column[k] for k in rows[level]) / len(rows[level]) for level in levels}
        between += sum(len(rows[level]) * means[level] ** 2 for level in levels) / (len(levels) - 1)
        left = sum((column[k] - means[level]) ** 2 for level in levels for k in rows[level])
        chance += left / (len(values) - len(levels))
        jumps += sum(
            (means[b] - means[a]) ** 2 / (1 / len(rows[a]) + 1 / len(rows[b])) for a, b in pairwise(levels)
        ) / (len(levels) - 1)
    return jumps - chance > max(sure * (2 / len(levels)) ** 0.5 * chance, share * (between - chance))


def shared_bins(rows, training, law, gammas, n_grids, seed, categorical=()):
    """Return the training rows in the row's bin for each grid and row; grid p uses gamma ``p % len(gammas)``."""
    out = []
    for p in range(n_grids):
        parameters = grid(law, gammas[p % len(gammas)], seed, p, categorical)

        def bin_of(row, parameters=parameters):
            return tuple(cell(float(x), *q[:2]) for x, q in zip(row, parameters, strict=True))

        bins = [bin_of(row) for row in training]
        out.append([{i for i, own in enumerate(bins) if own == bin_of(row)} for row in rows])
    return out


def outlier_scores(rows, training, *arguments, **options):
    """Return the mean of log(1 + training rows in the row's bin), without a row equal to it, minus log n."""
    total = [0.0] * len(rows)
    shared = shared_bins(rows, training, *arguments, **options)
    for i, row in enumerate(rows):
        is_known = any(np.array_equal(row, other, equal_nan=True) for other in training)
        for of_grid in shared:
            total[i] += math.log(1 + len(of_grid[i]) - is_known)
    return np.array(total) / len(shared) - math.log(len(training))


def densities(*arguments, n_levels, n_training, **options):
    """Return the mean share of training rows in a row's bins, and its standard error for grids drawn in levels."""
    shares = np.array([[len(own) / n_training for own in of_grid] for of_grid in shared_bins(*arguments, **options)])
    levels = [shares[k::n_levels] for k in range(n_levels)]
    errors = [level.var(axis=0, ddof=1) / len(level) for level in levels]
    return np.mean([level.mean(axis=0) for level in levels], axis=0), np.sqrt(sum(errors)) / n_levels


def squared_mmd(first, second, kernel):
    """Return the unbiased squared maximum mean discrepancy of two samples."""

    def mean(A, B, same):
        pairs = [kernel(a, b) for i, a in enumerate(A) for j, b in enumerate(B) if not (same and i == j)]
        return sum(pairs) / len(pairs)

    return mean(first, first, True) + mean(second, second, True) - 2 * mean(first, second, False)


def clipped_codes(x, seed):
    """Clip at most 3 values of one input that are far from the others, and make its mean squared distance 9 times."""
    some = x[np.random.default_rng(seed).permutation(len(x))[:10_000]]
    distances = [abs(a - b) for a, b in pairwise(some)]
    middle, most = np.median(some), 10 * np.median([distance for distance in distances if distance > 0])
    far, near = ([value for value in some if (abs(value - middle) > most) == is_far] for is_far in (True, False))
    if not 1 <= len(set(far)) <= 3 or min(abs(v - middle) for v in far) < 3 * max(abs(v - middle) for v in near):
        return x
    if sum(distance**2 for distance in distances) < 9 * sum(min(distance, most) ** 2 for distance in distances):
        return x
    return np.array([min(max(value, middle - most), middle + most) for value in x])
