"""Figures that limit or tune the kinds of kernel models; measured in perf/notes."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SizeLimits:
    """Memory and seconds that models of a number of rows are expected to need."""

    pair_seconds: float = 8e-9  # seconds of a pair of rows in an exact solution
    input_seconds: float = 3e-10  # seconds of an input of a pair of rows
    wide_input_seconds: float = 2e-11  # the same for many inputs, where all kernels are products of matrices
    loss_steps: int = 20  # steps to the minimum of a loss, about
    choice_pair_bytes: int = 9  # bytes of a pair of rows that choices are made by: matrices side by side
    most_trees: int = 8  # trees of a local model
    tree_rows: int = 1_600_000  # rows of all trees together
    cell_pair_bytes: int = 32  # bytes of a pair of rows in a cell: matrices side by side
    timed_first_rows: int = 64  # rows of the call that loads compiled kernels before a cell is timed
    timed_rows: int = 1500  # rows of the timed cell, at most
    timed_inputs: int = 100  # inputs of the timed cell, at most
    tree_share: float = 0.7  # share of the remaining time for a tree
    larger_trees: int = 3  # trees of larger cells that there has to be time for
    number_bytes: int = 4  # bytes of the place of a row in a tree
    vector_bytes: int = 40  # bytes of a row in lists and vectors that all trees share: numbers, counts, variances
    target_bytes: int = 16  # bytes of a target of a row in a tree: a coefficient and a residual
    code_bytes: int = 4  # bytes of a code while grids are added
    bin_bytes: int = 64  # bytes of the key, the diagonal, the mean and the preconditioner of a bin
    targets_together: int = 2  # targets that products take together
    ample_bytes: int = 2**31  # bytes of bins above which precision and targets at a time only cost memory
    more_bytes: int = 300 * 10**6  # bytes of copies of the table, samples and hashes in addition to `max_bytes`
    table_copies: int = 3  # copies of a table in float64; measured
    wide_table_copies: int = 7  # the same for a table with more than `wide_columns` columns
    wide_columns: int = 1333
    float32_rows: int = 2**22  # rows up to which sums of bins in float32 are more precise than solutions
    probe_grids: int = 4  # grids in which bins are counted to foresee their number
    trial_share: float = 1 / 4  # share of the remaining seconds for the first model of grids
    entry_seconds: float = 1.5e-7  # seconds of a row in a grid, from its bin to the solution


@dataclass(frozen=True)
class TuningLimits:
    """Figures of the choice of kernel and penalty of exact and local models."""

    rounds: int = 2  # rounds of penalty and overall factor, because finer kernels have other penalties
    factor: float = 1.5  # ratio of two overall factors
    penalty_factor: float = np.sqrt(10.0)  # ratio of two penalties; NumPy's type keeps products with float32 in float64
    parallel_rows: int = 400  # rows from which a trial takes longer than the start of threads
    group_penalties: tuple[float, ...] = (0.1, 1.0, 10.0)  # initial; nearly equal single rows have far smaller ones
    shares: tuple[float, ...] = (0.75, 0.5)  # shares of the better kernel in a sum of two
    start_share: float = 0.75  # share of the better kernel at the start of a search in cells
    start_penalty: float = 0.2  # penalty at the start of a search in cells, over the penalty of a sample of rows
    longer: float = 0.3  # gamma of a second kernel of the same kind, over the gamma of the first
    fewest_cell_rows: int = 150  # rows of a cell that is learned from
    step_cells: int = 2  # cells of a step
    looks: int = 6  # looks at the clock during a search
    scored_cells: int = 8  # cells that choose the penalty of losses other than squares
    rate: float = 0.15  # longest steps of logarithms at the start
    last_rate: float = 0.1  # share of the rate at the end
    alpha_rate: float = 2.0  # rate of the penalty, over the rate of length scales
    prior: float = 50.0  # weight of squared deviations of log gamma from their mean, in rows
    least_worth: float = 0.05  # share of a kernel that is kept in the differences of rows


@dataclass(frozen=True)
class LocalLimits:
    """Figures of trees of cells, and of effects of levels that all cells share."""

    spread_rows: int = 1000  # rows for the spread of inputs in a node
    disorder: float = 0.5  # random part of the splits of all trees except the first
    landmarks: int = 200  # rows that couple cells in the diagonal of an inverse
    gain: float = 0.003  # share of the error that one more tree has to remove
    least_gain: float = 0.01  # least gain of a tree, in units of the negligible error
    few_cells: int = 8  # cells of the second tree that determine the number of trees
    least_alpha: float = 1e-5
    errors: int = 10_000  # residuals that are kept
    level_trees: int = 6  # seconds of a tree with effects of levels, at most, over the seconds of a plain tree
    level_cost: int = 4  # gain of one more tree with effects of levels, over `gain`
    kept_bytes: int = 2**28  # bytes of the matrices V of cells; cells beyond are factorised again
    most_columns: int = 4000  # levels with an effect: their equations take p^3 operations and p^2 numbers
    fewest_levels: int = 20  # levels of some category; with fewer, every cell has enough rows of each level
    level_pair_bytes: int = 40  # bytes of a pair of levels: equations, matrix, inverse and parts of cells
    level_share: int = 4  # memory of a fit over the memory of the equations of levels
    tried_columns: int = 1000  # levels that choose variances and penalty
    tried_rows: int = 20_000  # rows that choose variances and penalty
    tried_cell_rows: int = 750  # rows of a cell that chooses variances and penalty
    start_variance: float = 0.3
    variance_factors: tuple[float, ...] = (1.0, 10.0)  # a kernel that fits badly makes likely variances too small
    level_worth: float = 0.01  # share of the leave-one-out error that effects have to remove at first


@dataclass(frozen=True)
class FeatureLimits:
    """Figures of models of random features: the number of features, penalties and tolerances."""

    enough_gain: float = 0.02  # share of the error that a doubling of the grids has to remove
    least_step: float = 1.25  # ratio of numbers of grids that is worth another solution
    precise_rows: int = 40_000  # rows up to which a more precise solution is tried; with more it takes too long
    tol: float = 1e-2
    precise_tol: float = 1e-3
    trial_tol: float = 3e-2  # tolerance that is enough to compare overall factors
    max_iter: int = 200
    least_alpha: float = 1e-4
    most_alpha: float = 1e4
    refit_solves: float = 1.5  # solutions that a refit takes as long as, with the codes of the rows that it adds
    precise_gain: float = 0.03  # share of the error for which more precise solutions are worth their time
    sample_factor: float = 2.0  # ratio of overall factors of gamma that are tried on a sample
    factors: tuple[float, ...] = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6)  # of gamma, on all rows: more rows support finer grids
    enough_error: float = 0.98  # ratio of the errors of twice as many Fourier features and of these that continues


SIZES, TUNING, LOCAL, FEATURES = SizeLimits(), TuningLimits(), LocalLimits(), FeatureLimits()
