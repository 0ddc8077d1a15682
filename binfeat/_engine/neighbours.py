"""Rows that share bins with a row: the most similar ones, by sums over the grids."""

from numba import prange

from binfeat._engine.policy import driver, jit


@driver(work="codes")
def list_rows(codes, none, starts, order, begins, rows):
    """List the rows of each bin, the first ones in some order, as far as there is room.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32
    none : uint32; code for "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    order : (n_rows,) int64; all rows
    begins : (n_columns + 1,) int64; where the room of each bin begins in `rows`, none for bins that are left out
    rows : (n_listed,) int32, written
    """
    for p in prange(codes.shape[0]):
        of_grid = slice(starts[p], starts[p + 1])
        place, ends = begins[of_grid].copy(), begins[starts[p] + 1 : starts[p + 1] + 1]
        for k in range(order.shape[0]):
            code = codes[p, order[k]]
            if code != none and place[code] < ends[code]:
                rows[place[code]] = order[k]
                place[code] += 1


@jit
def _add_similarities(row, codes, none, starts, weights, begins, rows, sums, met):
    """Add up the similarities of listed rows with a row; returns how many it meets, each once in `met`."""
    n_met = 0
    for p in range(codes.shape[0]):
        if codes[p, row] == none:
            continue
        column = starts[p] + codes[p, row]
        for k in range(begins[column], begins[column + 1]):
            other = rows[k]
            if sums[other] == 0:
                met[n_met] = other
                n_met += 1
            sums[other] += weights[column]
    return n_met


@jit
def _is_nearer(value, row, other_value, other_row):
    return value > other_value or (value == other_value and row < other_row)


@jit
def _keep_largest(sums, met, neighbours, similarities):
    """Write the largest sums in falling order, equal ones by rising row, and set all to 0 again."""
    neighbours[:] = 0
    similarities[:] = 0
    last = neighbours.shape[0] - 1
    for other in met:
        value = sums[other]
        sums[other] = 0
        if not _is_nearer(value, other, similarities[last], neighbours[last]):
            continue
        k = last
        while k > 0 and _is_nearer(value, other, similarities[k - 1], neighbours[k - 1]):
            neighbours[k], similarities[k] = neighbours[k - 1], similarities[k - 1]
            k -= 1
        neighbours[k], similarities[k] = other, value


@driver(work="codes")
def nearest(codes, none, starts, weights, begins, rows, first_row, sums, met, neighbours, similarities):
    """Find the listed rows that are most similar to some rows: the largest sums of the weights of shared bins.

    Parameters
    ----------
    codes, none, starts, begins : as in `list_rows`
    weights : (n_columns,) float64; above 0 where rows of a bin are listed
    rows : (n_listed,) int32, as `list_rows` writes them
    first_row : int; of those whose neighbours are wanted
    sums : (n_workers, n_rows) float64, scratch, 0 before and after
    met : (n_workers, n_rows) int32, scratch
    neighbours : (n_wanted, n_neighbours) int32, written in falling order of similarity
    similarities : (n_wanted, n_neighbours) float64, written; 0 where there are no more neighbours
    """
    n_workers, n_wanted = sums.shape[0], neighbours.shape[0]
    for worker in prange(n_workers):
        of_worker, its_met = sums[worker], met[worker]
        for i in range(worker * n_wanted // n_workers, (worker + 1) * n_wanted // n_workers):
            row = first_row + i
            n_met = _add_similarities(row, codes, none, starts, weights, begins, rows, of_worker, its_met)
            _keep_largest(of_worker, its_met[:n_met], neighbours[i], similarities[i])
