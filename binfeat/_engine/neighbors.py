"""The most similar rows of a row, by sums over the grids of shared bins."""

import numpy as np
from numba import prange

from binfeat._engine.policy import jit, parallel_jit

_ROWS_TOGETHER = 128  # rows with codes gathered at a time


@parallel_jit(work="codes")
def list_rows(codes, none, starts, order, places, begins, rows):
    """List the rows of each bin by their places: the first rows in `order` that the room of the bin holds.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32
    none : uint32; code for "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    order : (n_rows,) int64; all rows
    places : (n_rows,) int32; number that is written to `rows` for each row
    begins : (n_columns + 1,) int64; first place of each bin in `rows`; excluded bins have no places
    rows : (n_listed,) int32, written
    """
    for p in prange(codes.shape[0]):
        of_grid = slice(starts[p], starts[p + 1])
        next_one, ends = begins[of_grid].copy(), begins[starts[p] + 1 : starts[p + 1] + 1]
        for k in range(order.shape[0]):
            code = codes[p, order[k]]
            if code != none and next_one[code] < ends[code]:
                rows[next_one[code]] = places[order[k]]
                next_one[code] += 1


@jit
def _gather_codes(codes, visited, out):
    """Gather codes (n_grids, n_rows) of some rows as (n_visited, n_grids), one grid at a time, for the TLB."""
    for p in range(codes.shape[0]):
        for i in range(visited.shape[0]):
            out[i, p] = codes[p, visited[i]]


@jit
def _look_up(codes, none, starts, weights, begins, firsts, ends, gains):
    """Look up the range of rows of each bin of a row, and the weight of the bin.

    This is a separate loop, so that look-ups for one grid do not wait for the rows of another.
    """
    for p in range(codes.shape[0]):
        if codes[p] == none:
            firsts[p], ends[p] = 0, 0
        else:
            column = starts[p] + codes[p]
            firsts[p], ends[p], gains[p] = begins[column], begins[column + 1], weights[column]


@jit
def _add_similarities(firsts, ends, gains, rows, sums, met):
    """Add up the similarities of listed rows with a row; return the number of different rows, which are in `met`.

    Each row is written to `met`, and kept if it is new, without a branch, which would often be mispredicted.
    """
    n_met = 0
    for p in range(firsts.shape[0]):
        for k in range(firsts[p], ends[p]):
            other = rows[k]
            sum_so_far = sums[other]
            met[n_met] = other
            n_met += 1 if sum_so_far == 0 else 0
            sums[other] = sum_so_far + gains[p]
    return n_met


@jit
def _is_nearer(value, row, other_value, other_row):
    return value > other_value or (value == other_value and row < other_row)


@jit
def _keep_largest(sums, met, neighbors, similarities):
    """Write the largest sums in decreasing order, equal ones by increasing place, and reset all to 0."""
    neighbors[:] = 0
    similarities[:] = 0
    last = neighbors.shape[0] - 1
    for other in met:
        value = sums[other]
        sums[other] = 0
        if not _is_nearer(value, other, similarities[last], neighbors[last]):
            continue
        k = last
        while k > 0 and _is_nearer(value, other, similarities[k - 1], neighbors[k - 1]):
            neighbors[k], similarities[k] = neighbors[k - 1], similarities[k - 1]
            k -= 1
        neighbors[k], similarities[k] = other, value


@parallel_jit(work="codes")
def nearest(codes, none, starts, weights, begins, rows, visited, sums, met, neighbors, similarities):
    """Find the listed rows that are most similar to some rows: the largest sums of the weights of shared bins.

    Parameters
    ----------
    codes, none, starts, begins : as in `list_rows`
    weights : (n_columns,) float64; above 0 where rows of a bin are listed
    rows : (n_listed,) int32, as `list_rows` writes them
    visited : (n_visited,) int64; the rows to find neighbors for; faster if these rows are similar
    sums : (n_workers, n_rows) float64, scratch, 0 before and after
    met : (n_workers, n_rows + 1) int32, scratch
    neighbors : (n_visited, n_neighbors) int32, written in falling order of similarity
    similarities : (n_visited, n_neighbors) float64, written; 0 where there are no more neighbors
    """
    n_workers, n_visited, n_grids = sums.shape[0], visited.shape[0], codes.shape[0]
    for worker in prange(n_workers):
        of_worker, its_met = sums[worker], met[worker]
        its_codes = np.empty((_ROWS_TOGETHER, n_grids), codes.dtype)
        firsts, ends, gains = np.empty(n_grids, np.int64), np.empty(n_grids, np.int64), np.empty(n_grids)
        end = (worker + 1) * n_visited // n_workers
        for start in range(worker * n_visited // n_workers, end, _ROWS_TOGETHER):
            stop = min(start + _ROWS_TOGETHER, end)
            _gather_codes(codes, visited[start:stop], its_codes)
            for i in range(start, stop):
                _look_up(its_codes[i - start], none, starts, weights, begins, firsts, ends, gains)
                n_met = _add_similarities(firsts, ends, gains, rows, of_worker, its_met)
                _keep_largest(of_worker, its_met[:n_met], neighbors[i], similarities[i])
