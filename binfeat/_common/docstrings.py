"""Docstrings whose common text is written once."""

import inspect
import re
from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

from binfeat._common.availability import unavailable_if

_Class = TypeVar("_Class", bound=type)
_PLACEHOLDER = re.compile(r"^([ \t]*)\$(\w+)$\n?", re.MULTILINE)
_unfilled: dict[object, str | None] = {}  # docstrings of methods as they are written

# Texts of several estimators.
TEXTS = {
    "X": """\
X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows""",
    "rows": """\
X : {array-like, sparse matrix} of shape (n_rows, n_inputs)""",
    "y": """\
y : None
    Ignored.""",
    "n_jobs": """\
n_jobs : int, default=None
    Number of threads; None is Numba's current setting, which is all threads at first. With 1, BLAS has one thread too
    if the caller is the main thread.""",
    "inputs": """\
n_features_in_ : int
    Number of inputs.
feature_names_in_ : ndarray of shape (n_inputs,)
    Names of the inputs, when X has string column names.""",
    "groups": """\
groups : array-like of shape (n_rows,), default=None
    Group of each row; a group is held out as a whole.""",
    "predict": """\
Predict targets.

Parameters
----------
$X

Returns
-------
y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    $on_dask""",
    "predict_labels": """\
Predict labels.

Parameters
----------
$X

Returns
-------
y : ndarray of shape (n_rows,) or (n_rows, n_labels)
    An indicator matrix of 0 and 1, of two dimensions, if `fit` was given such a matrix.
    $on_dask""",
    "decision_function": """\
Predictions of the targets, 1 for a class and -1 for the others.

Parameters
----------
$X

Returns
-------
scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
    With two classes one score, above 0 for ``classes_[1]``. For an indicator matrix a score for each label, above 0 if
    the row has the label.
    $on_dask""",
    "names": """\
Parameters
----------
input_features : array-like of str, default=None
    Only checked against the names seen in `fit`.

Returns
-------
names : ndarray of shape (n_columns,), object""",
    "on_dask": "",
}


def filled(texts: dict[str, str] | None = None, like: type | None = None) -> Callable[[_Class], _Class]:
    """Decorate a class whose docstring, or a method's, has placeholders: lines such as ``$alpha``.

    `texts` has a text for each placeholder, in addition to `TEXTS`; it is indented as the placeholder is, and an empty
    text removes the line. ValueError, at import, if a placeholder has no text. ``$self`` and ``$display`` are the
    section of what is returned, where that is of the decorated class.

    `like` is a decorated class with the same parameters, attributes and methods. ``$Parameters`` and ``$Attributes``
    are the sections of its docstring; a method without a docstring takes that of the same method, filled with `texts`.
    """
    known = TEXTS | (texts or {})
    if like is not None:
        known |= {title: section(like, title) for title in ("Parameters", "Attributes")}

    def decorate(cls):
        own = known | {name: f"Returns\n-------\n{name} : {cls.__name__}" for name in ("self", "display")}
        cls.__doc__ = _fill(cls.__doc__, own, cls)
        for name, method in vars(cls).items():
            method = method.__func__ if isinstance(method, classmethod) else method
            method = method.method if isinstance(method, unavailable_if) else method
            if inspect.isfunction(method):
                model = method if method.__doc__ or like is None else getattr(like, name, method)
                _unfilled[method] = _unfilled.get(model, model.__doc__)
                method.__doc__ = _fill(_unfilled[method], own, method)
        return cls

    return decorate


def section(cls, title):
    """The text of a section of a class's docstring; none where Python leaves docstrings out (``python -OO``)."""
    if cls.__doc__ is None:
        return ""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.cleandoc(cls.__doc__), flags=re.MULTILINE)
    return f"{title}\n{'-' * len(title)}\n{parts[parts.index(title) + 1].rstrip()}"


def _fill(docstring, texts, owner):
    def text_of(placeholder):
        spaces, name = placeholder.groups()
        if name not in texts:
            raise ValueError(f"The docstring of {owner.__qualname__} has ${name}, for which there is no text.")
        return indent(_fill(texts[name], texts, owner), spaces) + "\n" if texts[name] else ""

    return docstring and _PLACEHOLDER.sub(text_of, docstring)
