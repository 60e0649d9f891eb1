"""Trees of SDMX-ML, as lxml gives them: bounded by the size of what is converted, without entities and network."""

from __future__ import annotations

from typing import Any

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
ENGLISH = "en"
"""What a text in SDMX-ML is in when it doesn't say so."""


def tree(message: bytes) -> Any:
    """The root element of a message, without comments and processing instructions.

    Raises:
        SyntaxError: it is no well-formed XML, or has a DOCTYPE.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_comments=True, remove_pis=True
    )
    return etree.fromstring(message, parser)


def text_of(root: Any) -> bytes:
    """A tree as a document in UTF-8."""
    from lxml import etree

    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8"))


def unicode_of(root: Any) -> str:
    """A tree as text, without a declaration."""
    from lxml import etree

    return str(etree.tostring(root, encoding="unicode"))


def local(name: str) -> str:
    """The name of an element or attribute without its namespace."""
    return name.rpartition("}")[2]


def namespace(name: str) -> str:
    """Its namespace; empty where it has none."""
    return name.rpartition("}")[0].removeprefix("{")
