"""A uniform sample of rows that arrive in parts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.random_words import ORDER, stream
from binfeat._rows.sources import joined

MOST_ROWS = 10_000


@dataclass(frozen=True)
class RowSample:
    """At most 10,000 rows, those with the lowest random keys; the key of a row depends on its number and the seed only.

    Samples of parts of the rows, merged in any order, are the sample of all rows.
    """

    keys: np.ndarray  # (n_kept,) uint64
    numbers: np.ndarray  # (n_kept,) int64, ascending
    rows: Any  # (n_kept, n_inputs), float64 array or CSR

    @classmethod
    def of(cls, X: Any, seed: int, first: int = 0) -> "RowSample":
        """Sample of rows whose numbers begin with `first`."""
        words = stream(seed, 0, ORDER)
        words.advance(first)
        keys = words.random_raw(X.shape[0])
        kept = _lowest(keys)
        return cls(keys[kept], first + kept, X[kept].astype(np.float64))

    def __add__(self, other: "RowSample") -> "RowSample":
        """Sample of the rows of both."""
        keys, numbers = np.append(self.keys, other.keys), np.append(self.numbers, other.numbers)
        kept = _lowest(keys)
        kept = kept[np.argsort(numbers[kept])]
        return RowSample(keys[kept], numbers[kept], joined([self.rows, other.rows])[kept])

    @classmethod
    def in_turn(cls, seed: int) -> Callable[[Any], "RowSample"]:
        """A function that makes the sample of each block of rows, one after the other."""
        first = 0

        def sample(X):
            nonlocal first
            first += X.shape[0]
            return cls.of(X, seed, first - X.shape[0])

        return sample

    def take(self, kept: np.ndarray) -> "RowSample":
        """Some of the rows, by a mask or their places."""
        return RowSample(self.keys[kept], self.numbers[kept], self.rows[kept])

    def arrays(self) -> dict[str, np.ndarray]:
        """The sample as arrays by name, for `from_arrays`."""
        if sparse.issparse(self.rows):
            rows = {name: getattr(self.rows, name) for name in ("data", "indices", "indptr")}
        else:
            rows = {"rows": self.rows}
        return {"keys": self.keys, "numbers": self.numbers, **rows}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_inputs: int) -> "RowSample":
        """The sample that arrays describe."""
        if "rows" in arrays:
            return cls(arrays["keys"], arrays["numbers"], arrays["rows"])
        rows = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(arrays["keys"].size, n_inputs)
        )
        return cls(arrays["keys"], arrays["numbers"], rows)


def _lowest(keys):
    """Ascending places of the lowest keys."""
    return np.sort(np.argsort(keys, kind="stable")[:MOST_ROWS])
