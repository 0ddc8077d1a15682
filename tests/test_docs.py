"""Sources of the documentation: all public names are listed, and links lead to existing pages."""

import re
from pathlib import Path

import pytest

import binfeat
import binfeat.distributed
from binfeat import kernels

DOCS = Path(__file__).parents[1] / "examples" / "docs"
GUIDE = sorted((DOCS / "guide").glob("plot_*.py"))
PAGES = [*sorted(DOCS.glob("*.rst")), *GUIDE]
SCRIPTS = [*sorted(DOCS.parent.glob("plot_*.py")), *GUIDE]


def listed(home):
    """Return the names of a module in the reference."""
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    parts = re.split(r"^\.\. module:: (\S+)$", text, flags=re.MULTILINE)
    return {
        name
        for own, part in zip(parts[1::2], parts[2::2])
        if own == home
        for name in re.findall(r"^(?:   |\.\. data:: )(\w+)$", part, flags=re.MULTILINE)
    }


@pytest.mark.parametrize("home", [binfeat, kernels, binfeat.distributed], ids=lambda home: home.__name__)
def test_reference_has_every_public_name(home):
    assert listed(home.__name__) == set(home.__all__) - {"__version__", "kernels"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_name_what_is_there(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r":(?:class|func):`(?:[^`<]*<)?(binfeat[\w.]*)>?`", text):
        home = binfeat.distributed if ".distributed." in target else binfeat
        assert hasattr(home, target.rpartition(".")[2]), target
    for target in re.findall(r":doc:`(?:[^`<]*<)?/?([\w/]+)>?`", text):
        name = target.rpartition("/")[2]
        places = DOCS / f"{name}.rst", DOCS / "guide" / f"{name}.py", DOCS.parent / f"{name}.py"
        assert name == "index" or any(place.exists() for place in places), target


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_pages_of_the_guide_run_code(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("# %%") >= 1
    compile(text, str(page), "exec")


def code_cells(path):
    """Return the parts of a script between comments that Sphinx-Gallery renders as text."""
    return re.split(r"^# %%.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_figures_are_shown_when_they_are_complete(path):
    """Sphinx-Gallery shows a figure at the end of its cell, unless a comment defers it."""
    cells = code_cells(path)
    for start, cell in enumerate(cells):
        targets = re.findall(r"^(.+?) = plt\.(?:subplots|figure)\(", cell, flags=re.MULTILINE)
        names = {name for target in targets for name in re.findall(r"\w+", target)}
        later = [k for k, own in enumerate(cells[start + 1 :], start + 1) if names & set(re.findall(r"\b\w+\b", own))]
        last = max((k for k in later if not re.search(r" = plt\.(?:subplots|figure)\(", cells[k])), default=start)
        for own in cells[start:last]:
            assert "# sphinx_gallery_defer_figures" in own
