"""How the documentation is built: without a network, and with every warning an error."""

import os
import sys
from pathlib import Path

import rankspace
from rankspace._engine.project import DOCUMENTATION

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "rankspace"
author = "The rankspace developers"
copyright = "2026, The rankspace developers"
version = release = rankspace.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_links",
    "mathml",
    "repository_pages",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py.md5"]
exclude_patterns += ["sg_execution_times.rst", "auto_examples/sg_execution_times.rst"]
templates_path = ["_templates"]

# Links into other projects need their inventories, which are downloaded: name a folder that holds
# numpy.inv, scipy.inv and sklearn.inv to have them.
inventories = os.environ.get("RANKSPACE_INVENTORIES")
if inventories:
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable/", f"{inventories}/numpy.inv"),
        "scipy": ("https://docs.scipy.org/doc/scipy/", f"{inventories}/scipy.inv"),
        "sklearn": ("https://scikit-learn.org/stable/", f"{inventories}/sklearn.inv"),
    }

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "rankspace"
html_baseurl = DOCUMENTATION
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["rankspace.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_sidebars = {"index": [], "**": ["full-sidebar"]}
html_theme_options = {
    "logo": {"text": "rankspace"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}

autosummary_generate = True
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
numpydoc_validation_checks = {"PR02"}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
copybutton_line_continuation_character = "\\"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "within_subsection_order": "gallery_order.place",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,
}
