"""What a call may come to: an answer without warnings, or a refusal that names the culprit."""

import re
import warnings
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

FINE = r"Grids are too|n_features=[\d,]+ leaves|\d+% of the .* hashed columns|\d+% of the rows share"
DOUBTS = (
    r"\d+ rows are too few|have a single row|different floats|All rows of X are equal|copies of other rows|"
    r"max_seconds=.* was exceeded"
)

# What scikit-learn and NumPy say of tables, besides messages that name the argument.
OF_A_TABLE = re.compile(
    r"\bX\b|\by\b|Found array with|Expected 2D|Expected a 2-dim|could not convert|setting an array element|"
    r"Complex data not supported|sample_weight|float\(\) argument|must be real number|"
    r"[Ff]eature names|scalar|[Ss]parse|dtype|[Ii]nput|iterable|targets?\b|class|source of blocks|at least 2 rows"
)
# Parameters that scikit-learn reads, and how it calls them.
_ALSO = {
    "cv": "cv|fold|split|iter|index|indices",
    "scoring": "scor",
    "class_weight": "class",
    "random_state": "[Ss]eed|random",
    "n_grids": "grids",
    "n_features": "features|grids",
    "n_components": "components|frequencies",
}


@contextmanager
def nothing_but(*expected):
    """No warning but those that are documented."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=FINE)
        warnings.filterwarnings("ignore", message=f"(?s).*({DOUBTS})")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataConversionWarning)  # of a y that is a column
        for message in expected:
            warnings.filterwarnings("ignore", message=message)
        yield


def outcome(call, names=OF_A_TABLE, documented=()):
    """What a call gives, or None where it is refused in words that name the culprit."""
    with nothing_but(*documented):
        try:
            return call()
        except (TypeError, ValueError, MemoryError, OSError) as error:
            refusal = error
    if not re.search(names, str(refusal)):
        raise AssertionError("an error that names nothing") from refusal
    return None


def of_parameter(name):
    """What a refusal of a parameter may call it."""
    return f"{name}|{_ALSO.get(name, name)}"
