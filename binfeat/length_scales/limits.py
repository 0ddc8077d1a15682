"""Constants of the search for length scales, chosen by the measurements in perf/notes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchLimits:
    """Constants of the search for length scales, shared by kernel models and `learn_gamma`.

    Each step computes the leave-one-out error of an exact model of fresh rows of the table.
    """

    look_steps: int = 5  # steps between readings of the clock
    step_rows: int = 300  # for tables of up to 12,000 rows: more steps of fewer rows have lower errors in the same time
    most_step_rows: int = 1000  # maximum rows of a step
    fewest_step_rows: int = 150  # minimum rows of a step
    step_work: float = 3e7  # pairs of rows times inputs of a step
    row_share: float = 0.6  # share of few rows in a step, so that steps differ
    table_rows: int = 40  # rows of the table for each row of a step: many rows have kernels with short length scales
    late_step_rows: int = 500  # rows of the last steps
    late_table_rows: int = 8  # rows of the table for each row of the last steps
    many_rows: int = 150_000  # rows of a table above which there are more steps, and cells are split again
    most_times_steps: float = 2.5  # factor of the number of steps for very many rows
    rates: tuple[float, float] = (0.2, 0.01)  # longest steps of logarithms, at the start and at the end
    start_exponent: float = 0.3  # sum of gamma times mean distance at the start; all pairs of rows are informative
    start_rows: int = 1500  # rows that compare initial length scales
    seen_error: float = 0.95  # error relative to a constant's, below which the initial length scales are kept
    noisy_penalty: float = 8.0  # penalty of shorter length scales in the comparison, relative to the initial penalty
    shorter_error: float = 0.99  # error of shorter length scales, relative to the initial ones or to a constant
    distance_rows: int = 10_000  # rows for mean distances
    prior: float = 3.0  # weight of squared deviations of log gamma from their mean, in rows
    prior_inputs: int = 20  # inputs above which the prior is weaker, because few of many inputs are relevant
    compared_rows: int = 1000  # rows on which kernels are compared
    far_error: float = 1.12  # ratio of errors above which the worse kernel is dropped
    better_error: float = 0.97  # ratio of the errors of a radial kernel and the kernel of the grids to keep both
    unseen_rows: int = 1000  # rows for validation that no step uses, and at most a third of all rows
    least_gain: float = 2.0  # minimum gain of linear maps and single length scales, in paired standard errors
    map_rows: int = 500  # rows of a step for a linear map
    map_table_rows: int = 300  # rows of the smallest table for which a linear map is searched
    map_inputs: int = 200  # numeric inputs of a linear map
    map_rates: tuple[float, float] = (0.05, 0.003)  # longest steps of entries of the map, at the start and at the end
    wide_rows: int = 500  # rows that determine a common length scale of many inputs
    wide_std_rows: int = 10_000  # rows for standard deviations of many inputs


SEARCH = SearchLimits()
