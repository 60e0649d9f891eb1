"""Names of elements as the parser gives them, and the short ones that content is compared by."""

from __future__ import annotations

import re

XML_LANG = "http://www.w3.org/XML/1998/namespace lang"
XSI_TYPE = "http://www.w3.org/2001/XMLSchema-instance type"
_SDMX = re.compile(r"https?://www\.sdmx\.org/resources/sdmxml/schemas/(?=v\d)", re.IGNORECASE)


def parted(name: str) -> tuple[str, str]:
    """Namespace and local name; the parser has a space between them."""
    namespace, _, local = name.rpartition(" ")
    return namespace, local


class ShortNames(dict[str, str]):
    """By full name: the name without the part of the namespace that all of SDMX-ML has in common.

    Attributes:
        foreign: full names that are not of SDMX-ML, so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.foreign: set[str] = set()

    def __missing__(self, name: str) -> str:
        short = _SDMX.sub("", name, count=1)
        if short == name and " " in name:
            self.foreign.add(name)
        self[name] = short
        return short
