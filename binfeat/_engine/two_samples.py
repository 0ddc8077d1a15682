"""Distances of two samples in the space of binning features, for many assignments of rows to the samples."""

from numba import prange

from binfeat._engine.policy import parallel_jit


@parallel_jit(work="codes")
def squared_distances(codes, totals, starts, is_first, counts, out):
    """Unbiased squared distance of the mean features of two samples, in each grid and for each assignment of rows.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32; each below the grid's number of bins
    totals : (n_bins,) int64; rows of each bin
    starts : (n_grids + 1,) int64; first bin of each grid
    is_first : (n_assignments, n_rows) bool; whether a row is in the first sample
    counts : (n_bins,) int64, scratch
    out : (n_assignments, n_grids) float64, written
    """
    n_rows = codes.shape[1]
    for p in prange(codes.shape[0]):
        own = counts[starts[p] : starts[p + 1]]
        every = totals[starts[p] : starts[p + 1]]
        for a in range(is_first.shape[0]):
            own[:] = 0
            m = 0
            for i in range(n_rows):
                own[codes[p, i]] += is_first[a, i]
                m += is_first[a, i]
            within_first, within_second, between = 0, 0, 0
            for b in range(own.shape[0]):
                first, second = own[b], every[b] - own[b]
                within_first += first * (first - 1)
                within_second += second * (second - 1)
                between += first * second
            n = n_rows - m
            out[a, p] = within_first / (m * (m - 1)) + within_second / (n * (n - 1)) - 2 * between / (m * n)
