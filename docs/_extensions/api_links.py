"""Names of the public API in the prose of the guides link to their pages; measures do not."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

PLACES = ("rankspace", "rankspace.datasets", "rankspace.display", "rankspace.export")


def page_of(name: str, found: set[str]) -> str | None:
    """The page of a name, such as `tune` or `tune(...)`; None if it has none."""
    bare = name.partition("(")[0]
    pages = (f"generated/{place}.{bare}" for place in PLACES)
    return next((page for page in pages if page in found), None)


def link_names(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Make links of inline code; titles and what is a link already stay as they are."""
    if name.startswith(("generated/", "auto_examples/", "api")):
        return
    for literal in list(doctree.findall(nodes.literal)):
        inside = (nodes.reference, nodes.title)
        page = page_of(literal.astext(), app.env.found_docs)
        if page is None or isinstance(literal.parent, inside):
            continue
        link = make_refnode(app.builder, name, page, None, literal.deepcopy())
        literal.replace_self(link)


def unlink_measures(app: Sphinx, doctree: nodes.document) -> None:
    """Docutils takes names of measures, such as ndcg@10, for addresses of mail."""
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", unlink_measures)
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
