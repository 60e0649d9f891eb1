"""Items of a structure, such as codes and concepts: which ids stand twice in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.parsers import expat

import orjson

from contexture.events import parse_json
from contexture.sdmx.artefact import Artefact
from contexture.sdmx.encodings import utf8
from contexture.sdmx.formats import Format

_OLD = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})

# What has an id beside items: remarks, people, and names of what stands elsewhere.
_OTHER_ELEMENTS = frozenset({"Annotation", "Contact", "Ref"})
_OTHER_MEMBERS = frozenset({"annotations", "contacts", "links"})


def repeated_ids(artefact: Artefact) -> list[str]:
    """Ids that two items of one kind have in one place, each once for every time too often; in the order they stand in.

    Constraints have none: they name the components of others.
    """
    if artefact.kind.endswith("Constraint"):
        return []
    content = utf8(artefact.content, artefact.envelope.before)
    if artefact.format.is_json:
        return _in_json(content)
    return _Elements(by_value=artefact.format in _OLD).repeated(content)


class _Elements:
    """Reads one element; no tree is built, for a code list may have a million codes."""

    def __init__(self, *, by_value: bool) -> None:
        self._by_value = by_value
        self._repeated: list[str] = []
        # One set for each open element with items in it.
        self._open: list[set[tuple[str, str]] | None] = [None]

    def repeated(self, content: bytes) -> list[str]:
        # Names keep their prefixes: those that are declared around the artefact are unknown here.
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.Parse(content, True)
        return self._repeated

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        identifier = attributes.get("id")
        if identifier is None and self._by_value and name.endswith("Code"):
            # SDMX-ML 1.0 and 2.0 have ids of codes there.
            identifier = attributes.get("value")
        if identifier is not None and name.rpartition(":")[2] not in _OTHER_ELEMENTS:
            self._note((name, identifier))
        self._open.append(None)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _note(self, item: tuple[str, str]) -> None:
        seen = self._open[-1]
        if seen is None:
            self._open[-1] = {item}
        elif item in seen:
            self._repeated.append(item[1])
        else:
            seen.add(item)


def _in_json(content: bytes) -> list[str]:
    repeated: list[str] = []
    unread: list[Any] = [_parsed(content)]
    while unread:
        value = unread.pop()
        if isinstance(value, list):
            repeated += _repeated([each["id"] for each in value if isinstance(each, dict) and "id" in each])
            members = value
        else:
            members = [member for name, member in value.items() if name not in _OTHER_MEMBERS]
        # Last in, first out: so that what stands first is read first.
        unread += [member for member in reversed(members) if isinstance(member, dict | list)]
    return repeated


def _parsed(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        # A number that no double holds is one all the same.
        return parse_json(content)


def _repeated(identifiers: list[Any]) -> list[str]:
    texts = [each for each in identifiers if isinstance(each, str)]
    if len(set(texts)) == len(texts):
        return []
    seen: set[str] = set()
    return [text for text in texts if text in seen or seen.add(text)]  # type: ignore[func-returns-value]
