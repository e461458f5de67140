"""The project's address: one variable, empty as long as the project has none."""

# Where the documentation is read, without a slash at the end.
DOCUMENTATION = ""


def page_of(name: str) -> str:
    """Address of the documentation of a public name; empty if there is no address.

    Examples
    --------
    >>> from rankspace._engine.project import page_of
    >>> page_of("MLR")
    ''
    """
    return DOCUMENTATION and f"{DOCUMENTATION}/generated/rankspace.{name}.html"
