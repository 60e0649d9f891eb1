"""RFC 3986: which texts are URI references, and which are absolute URIs.

The patterns have one way to read any text, so a hostile one costs no more than its length.
"""

from __future__ import annotations

import re

_ESCAPED = r"%[0-9A-Fa-f]{2}"
_PLAIN = r"A-Za-z0-9\-._~!$&'()*+,;="
_PATH = rf"(?:[{_PLAIN}:@/]|{_ESCAPED})*"
_QUERY = rf"(?:[{_PLAIN}:@/?]|{_ESCAPED})*"
_HOST = rf"(?:\[[A-Fa-f0-9vV{_PLAIN}:]+\]|(?:[{_PLAIN}]|{_ESCAPED})*)"
_AUTHORITY = rf"(?:(?:[{_PLAIN}:]|{_ESCAPED})*@)?{_HOST}(?::[0-9]*)?"
# A path behind an authority is empty or begins with a slash; without one it must not look like one.
_HIERARCHY = rf"(?://{_AUTHORITY}(?:/{_PATH})?|(?!//){_PATH})"
_SCHEME = r"[A-Za-z][A-Za-z0-9+\-.]*:"
_NO_SCHEME = r"(?![^/?#]*:)"

_ABSOLUTE = re.compile(rf"{_SCHEME}{_HIERARCHY}(?:\?{_QUERY})?")
_REFERENCE = re.compile(rf"(?:{_SCHEME}|{_NO_SCHEME}){_HIERARCHY}(?:\?{_QUERY})?(?:#{_QUERY})?")


def is_uri_reference(text: str) -> bool:
    """Whether a text is a URI reference (4.1), absolute or relative; the empty one is."""
    return _REFERENCE.fullmatch(text) is not None


def is_absolute_uri(text: str) -> bool:
    """Whether a text is an absolute URI (4.3): it has a scheme, and no fragment."""
    return _ABSOLUTE.fullmatch(text) is not None
