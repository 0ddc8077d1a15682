"""Docstrings whose common text is written once."""

import inspect
import re
from textwrap import indent

_PLACEHOLDER = re.compile(r"^([ \t]*)\$(\w+)$\n?", re.MULTILINE)
_unfilled: dict[object, str | None] = {}  # docstrings of methods as they are written

# Texts of several estimators.
TEXTS = {
    "X": """\
X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows""",
    "y": """\
y : None
    Ignored.""",
    "n_jobs": """\
n_jobs : int, default=None
    Number of threads; None is Numba's current setting, which is all threads at first.""",
    "inputs": """\
n_features_in_ : int
    Number of inputs.
feature_names_in_ : ndarray of shape (n_inputs,)
    Names of the inputs, when X has string column names.""",
    "groups": """\
groups : array-like of shape (n_rows,), default=None
    Group of each row; a group is held out as a whole.""",
    "on_dask": "",
}


def filled(texts=None, like=None):
    """Decorate a class whose docstring, or a method's, has placeholders: lines such as ``$alpha``.

    Parameters
    ----------
    texts : dict of str to str, default=None
        Text for each placeholder, in addition to `TEXTS`. It is indented as the placeholder is; an empty text
        removes the line.
    like : class, default=None
        A decorated class with the same parameters, attributes and methods. ``$parameters`` and ``$attributes`` are
        the sections of its docstring; a method without a docstring takes that of the same method, filled with `texts`.

    Raises
    ------
    ValueError
        At import, if a placeholder has no text.
    """
    known = TEXTS | (texts or {})
    if like is not None:
        known |= {title: section(like, title.capitalize()) for title in ("parameters", "attributes")}

    def decorate(cls):
        cls.__doc__ = _fill(cls.__doc__, known, cls)
        for name, method in vars(cls).items():
            if inspect.isfunction(method):
                model = method if method.__doc__ or like is None else getattr(like, name, method)
                _unfilled[method] = _unfilled.get(model, model.__doc__)
                method.__doc__ = _fill(_unfilled[method], known, method)
        return cls

    return decorate


def section(cls, title):
    """The text of a section of a class's docstring; none where Python leaves docstrings out (``python -OO``)."""
    if cls.__doc__ is None:
        return ""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.cleandoc(cls.__doc__), flags=re.MULTILINE)
    return parts[parts.index(title) + 1].rstrip()


def _fill(docstring, texts, owner):
    def text_of(placeholder):
        spaces, name = placeholder.groups()
        if name not in texts:
            raise ValueError(f"The docstring of {owner.__qualname__} has ${name}, for which there is no text.")
        return indent(_fill(texts[name], texts, owner), spaces) + "\n" if texts[name] else ""

    return docstring and _PLACEHOLDER.sub(text_of, docstring)
