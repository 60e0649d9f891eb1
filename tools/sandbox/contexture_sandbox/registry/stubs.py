"""Stubs: an artefact's identity and names without its content."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from typing import Any

import orjson
from lxml import etree

from contexture.sources.sdmx import Artefact, Format, split

_KEPT_MEMBERS = frozenset(
    {"id", "agencyID", "agencyId", "version", "urn", "links", "name", "names", "description", "descriptions"}
)
_KEPT_ELEMENTS = frozenset({"Name", "Description"})


def stub(artefact: Artefact) -> Artefact:
    """The artefact with its identity, names and descriptions alone, said to be defined elsewhere."""
    return _stub(artefact.message(), artefact)


@lru_cache(1024)
def _stub(whole: bytes, artefact: Artefact) -> Artefact:
    content = _json_stub(artefact.content) if artefact.format.is_json else _xml_stub(whole)
    return replace(artefact, content=content)


@lru_cache(1024)
def fusion_stub(artefact: Artefact) -> Artefact:
    """The stub in Fusion-JSON, whatever format the artefact was submitted in."""
    identity = {"id": artefact.id, "agencyId": artefact.agency, "version": artefact.version, "urn": artefact.urn}
    written = {**identity, "names": [{"locale": "en", "value": artefact.id}], "isExternalReference": True}
    message = orjson.dumps({"meta": {"id": "STUB", "test": False}, artefact.kind: [written]})
    return next(split(BytesIO(message), Format.FUSION_JSON.media_type))


def _json_stub(content: bytes) -> bytes:
    members: dict[str, Any] = orjson.loads(content)
    kept = {name: value for name, value in members.items() if name in _KEPT_MEMBERS}
    return orjson.dumps({**kept, "isExternalReference": True})


def _xml_stub(whole: bytes) -> bytes:
    element = artefact_element(whole)
    for child in list(element):
        if not isinstance(child.tag, str) or etree.QName(child).localname not in _KEPT_ELEMENTS:
            element.remove(child)
    element.text = None
    element.set("isExternalReference", "true")
    return serialised(element)


def artefact_element(whole: bytes) -> Any:
    """The element of the artefact in a message that holds it alone."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    structures = etree.fromstring(whole, parser)[-1]
    return next(child for child in structures[0] if isinstance(child.tag, str))


def serialised(element: Any) -> bytes:
    """An element as it can stand where its namespaces are declared, or anywhere else."""
    element.tail = None
    return bytes(etree.tostring(element, encoding="utf-8"))


def whole_again(artefact: Artefact, content: bytes) -> Artefact:
    """An artefact of other content in the same envelope."""
    changed = replace(artefact, content=content)
    return next(split(BytesIO(changed.message()), artefact.media_type))
