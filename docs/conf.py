"""How the guide is built."""

import rankspace

project = "rankspace"
author = "The rankspace developers"
copyright = "2026, The rankspace developers"
version = release = rankspace.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py.md5"]
html_theme = "pydata_sphinx_theme"
html_show_sourcelink = False
templates_path = ["_templates"]

autosummary_generate = True
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
numpydoc_validation_checks = {"PR02"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,
}
