"""Markdown files of the repository that lie outside this folder become pages of the site.

Links are written for whoever reads the repository (`../benchmarks/README.md`). Here they are turned
to the pages made of these files; links to any other file show its name.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
PAGES = DOCS / "repository"  # written anew by each build, and ignored by git
PATTERNS = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "experiments/*.md",
    "experiments/recipes/README.md",
    "experiments/results/*/*.md",
]
# The sidebar shows the results under the page of all experiments.
CONTENTS = {
    "repository/experiments": """
```{toctree}
:hidden:
:glob:

experiments/*
experiments/results/**
```
"""
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
OUTSIDE = re.compile(r"!?\[[^\]]*\]\(\.\./[^)\s]+\)")


def pages() -> dict[Path, str]:
    """The page of each Markdown file outside this folder."""
    sources = [path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]
    return {path: f"repository/{page_name(path)}" for path in sources}


def page_name(path: Path) -> str:
    """A README is the page of its folder."""
    name = path.relative_to(ROOT).with_suffix("")
    return str(name.parent if name.name == "README" else name)


def on_the_site(text: str, folder: Path, found: dict[Path, str]) -> str:
    """Text of a file in ``folder`` with links that work on the site."""

    def turned(match: re.Match[str]) -> str:
        image, label, link, anchor = match.groups(default="")
        target = Path(os.path.normpath(folder / link))
        if target in found:
            return f"[{label}](/{found[target]}.md{anchor})"
        if image:
            return f"![{label}](/{os.path.relpath(target, DOCS)})"
        if target.suffix == ".md" and target.is_relative_to(DOCS):
            return f"[{label}](/{target.relative_to(DOCS)}{anchor})"
        return label or f"`{target.name}`"

    return LINK.sub(turned, text)


def write_pages(app: Sphinx) -> None:
    """Write the pages; what has not changed is not touched, so that builds stay quick."""
    found = pages()
    for path, name in found.items():
        page = DOCS / f"{name}.md"
        text = on_the_site(path.read_text(encoding="utf-8"), path.parent, found)
        text += CONTENTS.get(name, "")
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")


def turn_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Links of the guides out of this folder."""
    page = DOCS / f"{name}.md"
    if page.exists() and PAGES not in page.parents:
        found = pages()
        source[0] = OUTSIDE.sub(
            lambda match: on_the_site(match[0], page.parent, found), source[0]
        )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", turn_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
