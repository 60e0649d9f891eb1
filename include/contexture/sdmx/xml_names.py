"""Names of elements as the parser gives them, and the short ones that content is compared by."""

from __future__ import annotations

import re

XSI_TYPE = "http://www.w3.org/2001/XMLSchema-instance type"
_SDMX = re.compile(r"https?://www\.sdmx\.org/resources/sdmxml/schemas/(?=v\d)", re.IGNORECASE)


def parted(name: str) -> tuple[str, str]:
    """Namespace and local name; the parser has a space between them."""
    namespace, _, local = name.rpartition(" ")
    return namespace, local


def shortened(name: str) -> str:
    """The name without the part of its namespace that all of SDMX-ML has in common."""
    return _SDMX.sub("", name, count=1)


def is_foreign(name: str) -> bool:
    """Whether an element is of another vocabulary, such as a text in XHTML: white space in it may be content."""
    return " " in name and not _SDMX.match(name)
