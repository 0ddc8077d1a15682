"""Outcomes of a call: a result without warnings, or an error that names the argument."""

import re
import warnings
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

FINE = r"Grids are too|n_features=[\d,]+ leaves|\d+% of the .* hashed columns|\d+% of the rows share"
DOUBTS = (
    r"\d+ rows are too few|have a single row|different floats|All rows of X are equal|copies of other rows|"
    r"max_seconds=.* was exceeded"
)

# Messages of scikit-learn and NumPy about tables that do not name the argument.
OF_A_TABLE = re.compile(
    r"\bX\b|\by\b|Found array with|Expected 2D|Expected a 2-dim|could not convert|setting an array element|"
    r"Complex data not supported|sample_weight|float\(\) argument|must be real number|"
    r"[Ff]eature names|scalar|[Ss]parse|dtype|[Ii]nput|iterable|targets?\b|class|source of blocks|at least 2 rows"
)
# Parameters that scikit-learn reads, and their names in its messages.
_ALSO = {
    "cv": "cv|fold|split|iter|index|indices",
    "scoring": "scor",
    "class_weight": "class",
    "random_state": "[Ss]eed|random",
    "n_grids": "grids",
    "n_features": "features|grids",
    "n_components": "components|frequencies",
    "input_share": "share",
}


@contextmanager
def nothing_but(*expected):
    """Allow only documented warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=FINE)
        warnings.filterwarnings("ignore", message=f"(?s).*({DOUBTS})")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataConversionWarning)  # y is a column
        for message in expected:
            warnings.filterwarnings("ignore", message=message)
        yield


def outcome(call, names=OF_A_TABLE, documented=()):
    """Return the result of a call, or None if an error names the argument."""
    with nothing_but(*documented):
        try:
            return call()
        except (TypeError, ValueError, MemoryError, OSError) as error:
            refusal = error
    if not re.search(names, str(refusal)):
        raise AssertionError("an error that names nothing") from refusal
    return None


def of_parameter(name):
    """Return the names that an error can use for a parameter."""
    return f"{name}|{_ALSO.get(name, name)}"
