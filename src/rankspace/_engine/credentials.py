"""Credentials in addresses of servers: hidden before anything is shown, logged or raised."""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "***"
# The user and password of a URL end at the last @, as a careless password may hold one too.
_USER = re.compile(r"(?<=://)[^\s'\"]*(?=@)")
# In the query of a URL, or in the keywords of a connection string; a quoted one may be cut short.
_KEYWORD = re.compile(
    r"(\w*(?:password|passwd|pwd|secret|token|api[-_]?key)\w*\s*=\s*)"
    r"('(?:[^'\\]|\\.)*'|'.*|[^\s&'\"]+)",
    re.IGNORECASE,
)


def hide_credentials(text: str, address: str | None = None) -> str:
    """Hide credentials in a text, also those of an address that the text has only parts of.

    Parameters
    ----------
    text : str
        What is to be shown, such as an address or an error message.
    address : str, optional
        An address whose credentials must not be in the text in any form.

    Returns
    -------
    str

    Examples
    --------
    >>> from rankspace._engine.credentials import hide_credentials
    >>> hide_credentials("no answer from postgresql://me:secret@localhost/search")
    'no answer from postgresql://***@localhost/search'
    >>> hide_credentials("bad port: 'secret'", "postgresql://me:secret@localhost/search")
    "bad port: '***'"
    """
    if address is not None:
        text = text.replace(address, hide_credentials(address))
        for secret in sorted(_secrets(address), key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
    return _KEYWORD.sub(rf"\1{HIDDEN}", _USER.sub(HIDDEN, text))


def _secrets(address: str) -> set[str]:
    """Passwords and keys of an address, verbatim, decoded, and in parts."""
    found = [value.strip("'") for _, value in _KEYWORD.findall(address)]
    # Greedy and across spaces: a malformed address is taken apart in unforeseen ways.
    user = re.search(r"://(.*)@", address, re.DOTALL)
    if user:
        found.append(user[1].partition(":")[2])
    parts = [part for value in found for part in re.split(r"[/?#@:\s]+", value)]
    return {form for value in found + parts for form in (value, unquote(value)) if form}
