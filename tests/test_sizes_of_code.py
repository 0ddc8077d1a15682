"""Files and classes stay small enough to read."""

import ast
from pathlib import Path

import binfeat

_PACKAGE = Path(binfeat.__file__).parent
_MOST_METHODS = 15


def test_no_class_has_more_than_fifteen_methods():
    large = [
        f"{path.relative_to(_PACKAGE)}: {node.name} has {n_methods}"
        for path in sorted(_PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and (n_methods := sum(isinstance(own, ast.FunctionDef) for own in node.body)) > _MOST_METHODS
    ]
    assert not large
