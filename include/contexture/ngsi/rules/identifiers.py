"""The syntax of NGSIv2 identifiers: entity id and type, names and types of attributes and metadata."""

from __future__ import annotations

import re

from contexture.events.text_cache import remembered

MAXIMUM_LENGTH = 256
RESERVED_ATTRIBUTE_NAMES = frozenset(("id", "type", "geo:distance", "*"))

# ASCII 33 to 126 without `& ? / #` (they structure URLs) and without `< > " ' = ; ( )` (forbidden everywhere).
_SYNTAX = re.compile(r"[!$%*+,\-.0-9:@A-Z\[\\\]^_`a-z{|}~]{1,256}")
_ACCEPTED = re.compile(r"[!$%*+,\-.0-9:@A-Z\[\\\]^_`a-z{|}~]*")
_CACHED_NAMES = 8192

is_identifier = _SYNTAX.fullmatch
"""Truthy for a text that NGSIv2 accepts as an identifier."""


def syntax_problem(text: str) -> str | None:
    """What keeps a text from being an identifier, or None."""
    if is_identifier(text):
        return None
    if not text:
        return "is empty"
    if len(text) > MAXIMUM_LENGTH:
        return f"has {len(text)} characters; NGSIv2 accepts {MAXIMUM_LENGTH}"
    accepted = _ACCEPTED.match(text)
    return f"holds {text[accepted.end()]!a}, which NGSIv2 refuses" if accepted else None


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_LINKED_DATA_RESERVED = frozenset(("id", "type", "@context", "*"))
_TERM = re.compile(r"[^\W\d_]\w*")
# One instance of several has the name of the attribute, a colon, and its datasetId.
_INSTANCE = re.compile(rf"{_TERM.pattern}:{_URI.pattern}")


def uri_problem(text: str) -> str | None:
    """What keeps a text from being a URI (RFC 3986), which NGSI-LD asks of an entity's id; None if nothing does."""
    if _URI.fullmatch(text):
        return None
    return "is no URI, which NGSI-LD asks for"


@remembered(_CACHED_NAMES)
def linked_data_name_problem(name: str) -> str | None:
    """What keeps a text from being a type or an attribute in NGSI-LD (a term, or an IRI), or None."""
    if name in _LINKED_DATA_RESERVED:
        return "is reserved"
    is_name = _TERM.fullmatch(name) or _URI.fullmatch(name) or _INSTANCE.fullmatch(name)
    return None if is_name else "is neither a term nor an IRI"


@remembered(_CACHED_NAMES)
def linked_data_type_problem(name: str) -> str | None:
    """What keeps a text from being the type of an NGSI-LD entity, or several joined by commas; None if nothing does."""
    problem = linked_data_name_problem(name)
    if problem is None or not any(map(linked_data_name_problem, name.split(","))):
        return None
    return problem


@remembered(_CACHED_NAMES)
def name_problem(name: str) -> str | None:
    """What keeps a name from being an attribute's, or None."""
    return "is reserved" if name in RESERVED_ATTRIBUTE_NAMES else syntax_problem(name)


@remembered(_CACHED_NAMES)
def type_problem(name: str) -> str | None:
    """What keeps a text from being a type or the name of a metadata, or None."""
    return syntax_problem(name)
