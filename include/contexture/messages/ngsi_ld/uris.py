"""The URIs that NGSI-LD wants where NGSIv2 has plain texts."""

from __future__ import annotations

import re
from urllib.parse import quote

_SCHEME = re.compile(r"^(?:urn|https?):", re.IGNORECASE)
# What RFC 3986 allows, percent signs of finished escapes included.
_LEGAL = "!#$%&'()*+,-./:;=?@_~[]"
_LEGAL_IN_NAME = "!$'()*+,-.:;=@_~"


def is_uri(text: str) -> bool:
    """Whether a text is taken as a URI: `urn:`, `http:` or `https:`. Ids like `Room:1` are names, not schemes."""
    return _SCHEME.match(text) is not None


def entity_uri(entity_id: str, entity_type: str) -> str:
    """The id of an entity as a URI: itself if it is one, else `urn:ngsi-ld:<type>:<id>`, percent-encoded.

    >>> entity_uri("car1", "car")
    'urn:ngsi-ld:car:car1'
    """
    if is_uri(entity_id):
        return quote(entity_id, safe=_LEGAL)
    return f"urn:ngsi-ld:{quote(entity_type, safe=_LEGAL_IN_NAME)}:{quote(entity_id, safe=_LEGAL_IN_NAME)}"
