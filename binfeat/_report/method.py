"""The method `report` of the kernel machines."""

from os import PathLike
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted


class Reporting:
    """Base of machines that have a report."""

    def report(self, path: str | PathLike, X: Any = None, y: ArrayLike | None = None) -> None:
        """Write one HTML page about the fitted machine: decisions, errors, effects of inputs, limits.

        The page needs no other file and no network. Pictures are drawn by Matplotlib.

        Parameters
        ----------
        path : str or path
            File to write.
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), default=None
            Rows that the machine has not seen; of rows of `fit` the page says that errors are too low. With None the
            page has no test error, no effects of inputs and no residuals.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets or labels of the rows.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        ValueError
            If only one of X and y is given, they do not fit together or with the machine, or have fewer than 10 rows.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "feature_coef_")
        try:
            from binfeat._report.page import write_page
        except ImportError as error:
            raise ImportError("A report needs Matplotlib. Install it: pip install 'binfeat[plot]'.") from error
        write_page(self, path, X, y)
