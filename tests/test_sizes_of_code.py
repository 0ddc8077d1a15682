"""Files and classes stay small enough to read."""

import ast
from pathlib import Path

import binfeat

_PACKAGE = Path(binfeat.__file__).parent
_MOST_LINES, _MOST_METHODS = 400, 15


def _files():
    return {path.relative_to(_PACKAGE): path.read_text(encoding="utf-8") for path in _PACKAGE.rglob("*.py")}


def test_no_file_is_longer_than_400_lines():
    assert not [str(path) for path, text in _files().items() if text.count("\n") > _MOST_LINES]


def test_no_class_has_more_than_15_methods():
    large = {
        node.name
        for text in _files().values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and sum(isinstance(own, ast.FunctionDef) for own in node.body) > _MOST_METHODS
    }
    assert not large
