"""Settings of the documentation: ``python -m sphinx -W --keep-going examples/docs build/docs``."""

import shutil
from importlib.metadata import version as version_of
from pathlib import Path

import matplotlib

matplotlib.use("agg")

HERE = Path(__file__).parent
SCRIPTS = HERE / "_examples"  # copies, because examples write their pictures into their own folder

shutil.rmtree(SCRIPTS, ignore_errors=True)
SCRIPTS.mkdir()
for script in HERE.parent.glob("plot_*.py"):
    shutil.copy2(script, SCRIPTS)
shutil.copy2(HERE / "gallery.txt", SCRIPTS / "GALLERY_HEADER.rst")

project = "binfeat"
author = copyright = "The binfeat developers"
release = version = version_of("binfeat")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_examples", "guide", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!binfeat\.).*")]  # names of other packages, and words in type lines

autosummary_generate = True
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"

html_theme = "pydata_sphinx_theme"
html_title = f"binfeat {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["binfeat.css"]
html_theme_options = {"show_prev_next": True, "secondary_sidebar_items": ["page-toc"], "footer_start": ["copyright"]}
html_sidebars = {"index": [], "compare": []}

sphinx_gallery_conf = {
    "examples_dirs": ["_examples", "guide"],
    "gallery_dirs": ["gallery", "user_guide"],
    "filename_pattern": "/plot_",
    "parallel": True,  # as many scripts at a time as `sphinx -j` allows
    "within_subsection_order": "FileNameSortKey",
    "default_thumb_file": str(HERE.parent / "quickstart.png"),
    "download_all_examples": False,
    "capture_repr": (),  # examples print their results
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "doc_module": ("binfeat",),
}


def of_others(app, what, name, member, skip, options):
    """Return True for members that a class inherits from scikit-learn, so that autodoc skips them."""
    home = getattr(getattr(member, "fget", member), "__module__", None) or "binfeat"
    return True if not home.startswith("binfeat") else None


def setup(app):
    app.connect("autodoc-skip-member", of_others)
