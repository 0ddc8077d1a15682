"""Tests use public names; the number of private imports is limited."""

import ast
from pathlib import Path

PUBLIC = {"binfeat", "binfeat.__main__", "binfeat.kernels", "binfeat.distributed"}  # also the command `binfeat`
MOST = 149  # import statements


def private_imports(path):
    """Yield the statements of a file that import private modules or names of binfeat."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            is_ours = (node.module or "").partition(".")[0] == "binfeat"
            is_private = node.module not in PUBLIC or any(alias.name.startswith("_") for alias in node.names)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] == "binfeat"]
            is_ours, is_private = bool(names), not PUBLIC.issuperset(names)
        else:
            continue
        if is_ours and is_private:
            yield f"{path.name}: {ast.unparse(node)}"


def test_few_statements_import_private_modules():
    found = [text for path in sorted(Path(__file__).parent.glob("*.py")) for text in private_imports(path)]
    assert len(found) <= MOST, "\n".join(found)


def test_private_imports_are_found(tmp_path):
    path = tmp_path / "test_some.py"
    path.write_text(
        "import binfeat\nimport numpy\nfrom binfeat import kernels\nfrom binfeat.distributed import CGRidge\n"
        "import binfeat._engine\nfrom binfeat import _threads\n\ndef test():\n    from binfeat.linear import cg, path\n"
    )
    assert len(list(private_imports(path))) == 3
