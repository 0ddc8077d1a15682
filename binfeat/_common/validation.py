"""Checks of parameters shared by several estimators."""

import numbers
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from binfeat._common.array_types import ArrayLike, DTypeLike
from binfeat._common.calendar import times_in
from binfeat._common.frames import collected, is_frame, is_source, unmasked, without_long_integers
from binfeat._common.sparse_tables import check_sparse
from binfeat._common.words import naming_words

T = TypeVar("T")
CheckedRows: TypeAlias = Any  # rows that passed the checks: an array or CSR of shape (n_rows, n_inputs)

_MODERATE = 1e100
WIDEST = 1e30  # largest ratio of two numbers; sums of products stay finite in float32
_LONG = 10**40  # larger integers are abbreviated in messages
_OF_POWERS = {1: ("distances", "laplacian"), 2: ("squared distances", "rbf")}  # and a kernel of this power
INFINITE = "Input X contains infinity or a value too large for dtype('float64')."


def checked_array(X: Any, **checks: Any) -> CheckedRows:
    """Call scikit-learn's `check_array` without NumPy's warnings about infinite sums; masked values become NaN.

    TypeError for dates and durations, unless the array keeps its dtype (``dtype=None``). A damaged sparse matrix is
    refused before scikit-learn or SciPy read it.
    """
    X = without_long_integers(collected(X))
    check_sparse(X, checks.get("input_name", "X"))
    with np.errstate(over="ignore", invalid="ignore"), naming_words(X, checks.get("input_name", "X")):
        _refuse_times(X, **checks)
        return check_array(X, **checks)


def _refuse_times(
    X: Any, *, input_name: str = "X", dtype: Any = "numeric", skip_check_array: bool = False, **_: Any
) -> None:
    """Raise TypeError for dates and durations: NumPy converts them to numbers in any unit, and NaT to -2^63."""
    if dtype is None or skip_check_array:
        return
    for where, times in times_in(X):
        name = input_name if where is None else f"Column {where!r} of {input_name}"
        raise TypeError(
            f"{name} contains {times}, but must contain numbers. Convert them, for example to days, or use a kernel "
            "model, which accepts data frames with dates and durations."
        )


def checked_targets(y: Any) -> np.ndarray:
    """Return targets in float64, (n_rows,) or (n_rows, n_targets); ValueError for dates and huge numbers."""
    y = without_long_integers(y)
    for _, times in times_in(y):
        remedy = "Divide it" if times == "durations" else "Subtract a date, and divide"
        raise ValueError(f"y must contain numbers, not {times}. {remedy} by np.timedelta64(1, 'D').")
    y = checked_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    check_moderate(y, "y")
    return y


@contextmanager
def naming_column(X: Any) -> Iterator[None]:
    """Prefix the message of an error with the name of the data frame's column that caused it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        name = _column_at_fault(X, error) if is_frame(X) else None
        if name is None or f"olumn {name!r} of X" in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"column {name!r} of X: {error}") from error


def _column_at_fault(X: Any, error: Exception) -> str | None:
    """Return the name of the first column that raises the same error by itself, or None."""
    frame = nw.from_native(X, eager_only=True)
    for name in frame.columns:
        column = frame.get_column(name).to_frame().to_native()  # `select` refuses integers as names
        for finite in (True, "allow-nan"):
            try:
                checked_array(column, dtype="float64", ensure_all_finite=finite, input_name="X")
            except (TypeError, ValueError) as own:
                if str(own).split("\n")[0] == str(error).split("\n")[0]:  # further lines are scikit-learn's advice
                    return name
    return None


def checked_rows(estimator: BaseEstimator, X: Any, /, **checks: Any) -> CheckedRows:
    """Call scikit-learn's `validate_data` without NumPy's warnings about infinite sums.

    It stores or checks the number and names of inputs. TypeError for a source of blocks, and for dates and durations,
    as in `checked_array`. A damaged sparse matrix is refused before scikit-learn or SciPy read it.
    """
    if is_source(X):
        raise TypeError("X must be rows in memory, and is a source of blocks. Call the method for each block.")
    X = without_long_integers(collected(X))
    check_sparse(X)
    try:
        with np.errstate(over="ignore", invalid="ignore"), naming_column(X), naming_words(X, "X"):
            _refuse_times(X, **checks)
            return validate_data(estimator, X, **checks)
    except LookupError as error:
        raise ValueError(f"X must be a table of rows and inputs, got {type(X).__name__}.") from error


def canonical(X: CheckedRows) -> CheckedRows:
    """Return CSR with sorted indices and without duplicates; the caller's matrix is unchanged."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def float_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the dtype of computations and features: float32 for float32, otherwise float64."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def check_moderate(values: np.ndarray, name: str) -> None:
    """Raise ValueError for numbers beyond 1e100, because sums of squares might overflow. NaN is ignored."""
    largest = max(abs(float(end.reduce(values, axis=None, initial=0))) for end in (np.fmax, np.fmin))
    if largest > _MODERATE:
        raise ValueError(
            f"{name} must be at most {_MODERATE} in magnitude, got {largest:.2g}; divide it by a constant."
        )


def check_integer(value: object, name: str, minimum: int, maximum: float = np.inf) -> int:
    """Return an integer within bounds; TypeError if it is not an integer, ValueError if it is out of range."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer of at least {minimum}, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {in_digits(value)}.")
    if not value <= maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {in_digits(value)}.")
    return int(value)


def check_real(value: object, name: str, minimum: float) -> float:
    """Return a finite number of at least `minimum` as a float; TypeError or ValueError for others."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number of at least {minimum}, got {value!r}.")
    number = np.inf
    with suppress(OverflowError):
        number = float(value)
    if not minimum <= number < np.inf:
        raise ValueError(f"{name} must be finite and at least {minimum}, got {in_digits(value)}.")
    return number


def in_digits(value: object) -> str:
    """Format a number for an error message; large integers, which Python may refuse to print, are abbreviated."""
    if isinstance(value, int) and abs(value) >= _LONG:
        return f"an integer of {value.bit_length():,} bits"
    return str(value)


def check_numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Return numbers as an array of float64 of any shape; TypeError for anything else."""
    with suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(unmasked(without_long_integers(values)))
        if array.dtype.kind not in "cmM":
            return array.astype(np.float64, copy=False)
    raise TypeError(f"{name} must be numbers, got {values!r}.")


def check_flag(value: object, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def is_word(value: object, word: str) -> bool:
    """Return True if a parameter, which may be an array, equals a string."""
    return isinstance(value, str) and value == word


def check_choice(value: T, name: str, choices: Collection[str | None]) -> T:
    """Return a string or None that is one of `choices`; ValueError for others."""
    if (value is None or isinstance(value, str)) and value in choices:
        return value
    *others, last = map(repr, choices)
    raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}.")


def require_y(who: str, y: ArrayLike | None) -> ArrayLike:
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None. For a source, pass y to blocks().")
    return y


def check_float_type(dtype: object) -> np.dtype:
    """Return float32 or float64 as a `numpy.dtype`; ValueError for other types."""
    for known in (np.dtype(np.float32), np.dtype(np.float64)):
        if dtype is known.type or (isinstance(dtype, np.dtype) and dtype == known) or str(dtype) == known.name:
            return known
    raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")


def check_share(value: object, name: str) -> float:
    """Return a number above 0 and below 1; TypeError if it is not a number, ValueError if it is out of range."""
    share = check_real(value, name, minimum=0.0)
    if not 0 < share < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {share}.")
    return share


def check_weights(sample_weight: ArrayLike | None, n_rows: int, some: bool = True) -> np.ndarray | None:
    """Return sample weights as float64 (n_rows, 1), or None; all may be zero only with ``some=False``.

    TypeError if they are not numbers; ValueError if they are negative, not finite, all zero, or not one per row.
    """
    if sample_weight is None:
        return None
    weights = check_numbers(sample_weight, "sample_weight")
    if weights.shape not in ((), (n_rows,)):
        raise ValueError(f"sample_weight must have one value per row, shape ({n_rows},); got shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and non-negative.")
    if some and not (weights > 0).any():
        raise ValueError("sample_weight is zero for every row; at least one row must have a positive weight.")
    weights = np.array(np.broadcast_to(weights, n_rows)).reshape(-1, 1)
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError("sample_weight must have a finite sum; divide all weights by the largest.")
    return weights


def names_of_inputs(estimator: BaseEstimator) -> list[str]:
    """Return the column names of `fit`, or x0, x1, ... if it had none."""
    return list(getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)]))


def check_comparable(weights: np.ndarray | None) -> None:
    """Refuse weights whose ratios are beyond the range of float32 with a ValueError; 0 and None are accepted."""
    used = np.empty(0) if weights is None else weights[weights > 0]
    if used.size and used.max() / WIDEST > used.min():
        raise ValueError(
            f"sample_weight must differ by at most a factor of {WIDEST}, but ranges from {used.min():.2g} to "
            f"{used.max():.2g}. Set negligible weights to 0, or reduce the largest weights."
        )


def check_penalty(alpha: float | None, mean_weight: float) -> None:
    """Refuse a penalty whose ratio to the weights is beyond the range of float32 with a ValueError."""
    if alpha is not None and alpha / WIDEST > mean_weight:
        raise ValueError(
            f"alpha must be at most {WIDEST} times the mean weight of a row, got {alpha:.6g} and a mean weight of "
            f"{mean_weight:.2g}. Decrease alpha."
        )


def check_row_weights(sample_weight: ArrayLike, n_rows: int) -> np.ndarray:
    """Return weights as float64 of shape (n_rows,); ValueError for other lengths."""
    weights = check_numbers(sample_weight, "sample_weight")
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one value per row, shape ({n_rows},); got shape {weights.shape}.")
    return weights


def flat(weights: np.ndarray | None) -> np.ndarray | None:
    """Return weights (n_rows,) from weights (n_rows, 1), or None."""
    return None if weights is None else weights[:, 0]


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Return a non-negative integer seed for any `random_state`; an integer is returned unchanged."""
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except TypeError as error:  # some versions of scikit-learn cannot print a tuple
        raise ValueError(f"{random_state!r} cannot be used to seed a numpy.random.RandomState instance") from error


def check_gamma(
    gamma: Any, n_inputs: int, power: int | None, some: bool = True, words: Iterable[str] = ()
) -> np.ndarray:
    """Return one non-negative gamma per input, as an array; all may be zero only with ``some=False``.

    TypeError, which names the `words` that the caller also accepts, if it is not a number or a sequence of numbers;
    ValueError if it has the wrong length or a value out of range, or was learned for another `power` of distances
    (None accepts both).
    """
    if hasattr(gamma, "relevances"):  # a LearnedGamma
        if power is not None and gamma.power not in (None, power):
            (learned, _), (needed, example) = _OF_POWERS[gamma.power], _OF_POWERS[power]
            raise ValueError(
                f"gamma was learned for a kernel of {learned}, but must be for a kernel of {needed}. "
                f"Pass the kernel to learn_gamma, for example learn_gamma(..., kernel={example!r})."
            )
        gamma = gamma.gamma
    try:
        values = np.asarray(unmasked(gamma), dtype=np.float64)
    except OverflowError:
        raise ValueError("gamma must be finite; it contains an integer beyond the range of floats, 1.8e308.") from None
    except (TypeError, ValueError):
        values = None
    if values is None or gamma is None or isinstance(gamma, str | bytes) or np.iscomplexobj(gamma):
        *others, last = ["a number", "one number per input", *map(repr, words)]
        raise TypeError(f"gamma must be {', '.join(others)}{',' * bool(words)} or {last}; got {gamma!r}.")
    if values.ndim > 1 or (values.ndim == 1 and values.shape != (n_inputs,)):
        raise ValueError(
            f"gamma must be a number or have one value per input, {n_inputs} of them; got shape {values.shape}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"gamma must be finite and non-negative, got {gamma!r}.")
    if some and not (values > 0).any():
        raise ValueError("gamma must be positive for at least one input; 0 ignores an input, and all are 0.")
    return np.array(np.broadcast_to(values, n_inputs))


def check_categorical(categorical_features: Any, estimator: BaseEstimator) -> np.ndarray:
    """Return a mask of the categorical inputs, from a mask, positions or names; ValueError for unknown inputs."""
    n_inputs = estimator.n_features_in_
    mask = np.zeros(n_inputs, dtype=bool)
    chosen = np.atleast_1d(np.asarray([] if categorical_features is None else unmasked(categorical_features)))
    if chosen.dtype.kind == "b" and chosen.shape == (n_inputs,):
        return chosen.copy()
    if chosen.dtype.kind in "UO" and all(isinstance(name, str) for name in chosen.tolist()):
        names = list(getattr(estimator, "feature_names_in_", []))
        unknown = [name for name in chosen.tolist() if name not in names]
        if unknown:
            raise ValueError(f"categorical_features has {unknown}, which are not column names of X; these are {names}.")
        chosen = np.array([names.index(name) for name in chosen], dtype=int)
    if chosen.size and (chosen.dtype.kind not in "iu" or chosen.min() < -n_inputs or chosen.max() >= n_inputs):
        raise ValueError(
            f"categorical_features must be a mask of length {n_inputs}, positions below {n_inputs}, or names; "
            f"got {categorical_features!r}."
        )
    mask[chosen.astype(int)] = True
    return mask


class InputNames(BaseEstimator):
    """Stores number and names of the inputs that `checked_rows` finds, for functions without an estimator."""


def check_input_names(estimator: BaseEstimator, input_features: Any) -> None:
    """Refuse names of inputs that differ from the names seen in `fit`, or in their number, with a ValueError."""
    if input_features is None:
        return
    if len(input_features) != estimator.n_features_in_:
        raise ValueError(
            f"input_features should have length equal to number of features ({estimator.n_features_in_}), "
            f"got {len(input_features)}"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and not np.array_equal(names, np.asarray(input_features, dtype=object)):
        raise ValueError("input_features is not equal to feature_names_in_")
