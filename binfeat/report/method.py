"""The method `report` of the kernel models."""

from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike

if TYPE_CHECKING:
    from binfeat.models.served.estimator import ServedModelBase


class Reporting:
    """Base class of models with a report."""

    def report(self, path: str | PathLike, X: Any = None, y: ArrayLike | None = None) -> None:
        """Write an HTML report about the fitted model: selections, errors, effects of inputs, and limits.

        The page is self-contained: it needs no other file and no network. Matplotlib draws the plots.

        Parameters
        ----------
        path : str or path
            Output file.
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), default=None
            Test rows. If they are training rows, the report warns that errors are too low. With None, the report
            contains no test errors, effects of inputs, Shapley values or residuals.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets or labels of the test rows.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        ValueError
            If only one of X and y is given, if they do not match each other or the model, if X has fewer than 10 rows,
            or if X is given and the model predicts several labels per row.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "feature_coef_")
        try:
            from binfeat.report.page import write_page
        except ImportError as error:
            raise ImportError("A report needs Matplotlib. Install it: pip install 'binfeat[plot]'.") from error
        write_page(cast("ServedModelBase", self), path, X, y)
