"""Random orders of rows, and a uniform sample of rows that arrive in parts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.random_words import ORDER, stream
from binfeat._common.subsets import numbered
from binfeat._rows.sources import joined

MOST_ROWS = 10_000


def orders_of(n_rows: int, seed: int, first: int = 0) -> np.ndarray:
    """Return random 64-bit orders of consecutive rows from `first`; they depend on the row number and the seed."""
    words = stream(seed, 0, ORDER)
    words.advance(first)
    return words.random_raw(n_rows)


def with_orders(blocks: Iterable[Any], seed: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Return blocks of rows with the orders of their rows."""
    return ((X, orders_of(X.shape[0], seed, rows.start)) for rows, X in numbered(blocks))


@dataclass(frozen=True)
class RowSample:
    """Up to 10,000 rows with the lowest orders.

    Merging the samples of parts of the rows, in any order, gives the sample of all rows.
    """

    orders: np.ndarray  # (n_kept,) uint64, ascending
    rows: Any  # (n_kept, n_inputs), float64 array or CSR

    @classmethod
    def of(cls, X: Any, seed: int, first: int = 0) -> "RowSample":
        """Sample consecutive rows from the number `first`."""
        return cls(orders_of(X.shape[0], seed, first), X)._lowest()

    def __add__(self, other: "RowSample") -> "RowSample":
        return RowSample(np.append(self.orders, other.orders), joined([self.rows, other.rows]))._lowest()

    def _lowest(self) -> "RowSample":
        sample = self.take(np.argsort(self.orders, kind="stable")[:MOST_ROWS])
        return RowSample(sample.orders, sample.rows.astype(np.float64))

    def lowest_of(self, orders: np.ndarray) -> "RowSample":
        """Keep the sampled rows with orders below the lowest order outside the sample.

        `orders` contains the orders of all rows. Rows that are added after others were removed would otherwise be
        sampled more often.
        """
        lowest = orders if orders.size <= self.orders.size else np.partition(orders, self.orders.size)
        lowest = np.sort(lowest[: self.orders.size])
        return self.take(slice(int((lowest == self.orders).cumprod().sum())))

    @classmethod
    def in_turn(cls, seed: int) -> Callable[[Any], "RowSample"]:
        """Return a function that samples consecutive blocks of rows."""
        first = 0

        def sample(X: Any) -> "RowSample":
            nonlocal first
            first += X.shape[0]
            return cls.of(X, seed, first - X.shape[0])

        return sample

    def take(self, kept: np.ndarray | slice) -> "RowSample":
        """Select some of the rows, by a mask or their places."""
        return RowSample(self.orders[kept], self.rows[kept])

    def arrays(self) -> dict[str, np.ndarray]:
        if sparse.issparse(self.rows):
            rows = {name: getattr(self.rows, name) for name in ("data", "indices", "indptr")}
        else:
            rows = {"rows": self.rows}
        return {"orders": self.orders, **rows}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_inputs: int) -> "RowSample":
        if "rows" in arrays:
            return cls(arrays["orders"], arrays["rows"])
        rows = arrays["data"], arrays["indices"], arrays["indptr"]
        return cls(arrays["orders"], sparse.csr_matrix(rows, shape=(arrays["orders"].size, n_inputs)))
