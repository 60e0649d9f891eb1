"""Joining structure messages: the artefacts of several in one, their own bytes unchanged.

It is the way back of splitting. The message has the prolog, the start tags and the header of the first one, and the
artefacts by container, those of one container in the order in which they came. It is in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

from contexture.errors import ConfigurationError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.splitting.artefact import Artefact, FrameParts
from contexture.sources.sdmx.splitting.encodings import detect, utf8
from contexture.sources.sdmx.splitting.xml_envelope import START_TAG

# The schemas of 2.1 and before want containers in this order; those of 3.0 and 3.1 take any.
_ORDER_2_0 = (
    "OrganisationSchemes Dataflows Metadataflows CategorySchemes CodeLists HierarchicalCodelists Concepts "
    "MetadataStructureDefinitions KeyFamilies StructureSets ReportingTaxonomies Processes"
)
_ORDER_2_1 = (
    "OrganisationSchemes Dataflows Metadataflows CategorySchemes Categorisations Codelists HierarchicalCodelists "
    "Concepts MetadataStructures DataStructures StructureSets ReportingTaxonomies Processes Constraints "
    "ProvisionAgreements CustomTypes VtlMappings NamePersonalisations Rulesets Transformations UserDefinedOperators"
)
_ORDERS: Mapping[Format, tuple[str, ...]] = {
    Format.SDMX_ML_1_0: ("Agencies", "CodeLists", "Concepts", "KeyFamilies"),
    Format.SDMX_ML_2_0: tuple(_ORDER_2_0.split()),
    Format.SDMX_ML_2_1: tuple(_ORDER_2_1.split()),
}
_BOM = b"\xef\xbb\xbf"
_NAME = re.compile(rb"<[^\s/>]+")
_DECLARED = re.compile(rb"\sxmlns(?::([^\s=]+))?\s*=")
_ENCODING = re.compile(rb"^(\s*<\?xml[^>]*?\bencoding\s*=\s*)(?:\"[^\"]*\"|'[^']*')")
_SEPARATOR = b","

Prefixes = Mapping[str, str]


class MessageJoiner:
    """Builds one structure message of artefacts that are added one by one.

    Attributes:
        format: of the message; None as long as nothing was added.
        size: bytes of the message so far.
    """

    def __init__(self) -> None:
        self.format: Format | None = None
        self.size = 0
        self._head: FrameParts | None = None
        self._start = b""
        self._scope: dict[str, str] = {}
        self._containers: dict[str, _Container] = {}

    def add(self, artefact: Artefact) -> None:
        """Adds an artefact behind the others of its container.

        Raises:
            ConfigurationError: it has another format than the others.
            StructureMessageError: it comes from a message whose frame is not its own.
        """
        parts = artefact.envelope.parts
        if parts is None:
            raise StructureMessageError(
                "the structure comes from a registry interface message, whose frame cannot hold others",
                next_step="split the message, and join the messages of its artefacts",
            )
        if self._head is None:
            self._begin(artefact, parts)
        elif artefact.format is not self.format:
            raise ConfigurationError(
                f"structures of one message have two formats, {self.format} and {artefact.format}",
                next_step="set source.media_type to a format that the registry writes for all of them, or use "
                "message.bundle: artefact",
            )
        container = self._containers.get(parts.container)
        if container is None:
            container = self._containers[parts.container] = self._opened(parts)
            self.size += len(container.opening) + len(container.closing)
        text = self._text(artefact, parts, container)
        container.texts.append(text)
        self.size += len(text) + 1

    def message(self) -> bytes:
        """Returns the message.

        Raises:
            StructureMessageError: nothing was added.
        """
        if self._head is None:
            raise StructureMessageError("a message without structures was to be built", next_step="report this")
        return b"".join(self._pieces(self._head))

    def _pieces(self, head: FrameParts) -> Iterator[bytes]:
        yield self._start
        for number, container in enumerate(self._in_order()):
            yield _SEPARATOR if number and self._is_json else b""
            yield container.opening
            yield (_SEPARATOR if self._is_json else b"").join(container.texts)
            yield container.closing
        yield head.tail

    @property
    def _is_json(self) -> bool:
        return self.format is not None and self.format.is_json

    def _in_order(self) -> list[_Container]:
        order = _ORDERS.get(self.format, ()) if self.format is not None else ()
        place = {name: number for number, name in enumerate(order)}
        # What is in no container, or in one that the model lacks, comes last, in the order in which it was added.
        names = sorted(self._containers, key=lambda name: place.get(name, len(order)))
        return [self._containers[name] for name in names]

    def _begin(self, artefact: Artefact, parts: FrameParts) -> None:
        self.format, self._head = artefact.format, parts
        is_utf8 = detect(artefact.envelope.before).is_utf8
        self._start = parts.head if is_utf8 else _ENCODING.sub(rb'\1"UTF-8"', parts.head, count=1)
        own = _declared(parts.opening)
        self._scope = {prefix: name for prefix, name in parts.prefixes.items() if prefix not in own}
        self.size += len(self._start) + len(parts.tail)

    def _opened(self, parts: FrameParts) -> _Container:
        if self._is_json or not parts.opening:
            return _Container(parts.opening, parts.closing, self._scope)
        opening = _declare(parts.opening, parts.prefixes, self._scope)
        return _Container(opening, parts.closing, {**self._scope, **parts.prefixes})

    def _text(self, artefact: Artefact, parts: FrameParts, container: _Container) -> bytes:
        before = artefact.envelope.before
        content = utf8(artefact.content, before)
        if self._is_json:
            return content
        comments = utf8(before, before).removeprefix(_BOM)[len(parts.head) + len(parts.opening) :]
        return comments + _declare(content, parts.prefixes, container.scope)


class _Container:
    """The artefacts of one container, and the namespaces that are declared around them."""

    def __init__(self, opening: bytes, closing: bytes, scope: Prefixes) -> None:
        self.opening = opening
        self.closing = closing
        self.scope = scope
        self.texts: list[bytes] = []


def _declared(tag: bytes) -> set[str]:
    """Returns the prefixes that a start tag declares itself."""
    return {(prefix or b"").decode() for prefix in _DECLARED.findall(tag)}


def _declare(element: bytes, wanted: Prefixes, scope: Prefixes) -> bytes:
    """Returns an element whose start tag declares what it was written with, where that is not in scope already."""
    lacking = {prefix: name for prefix, name in wanted.items() if prefix != "xml" and scope.get(prefix) != name}
    if scope.get("") and not wanted.get(""):
        lacking[""] = ""
    name, tag = _NAME.match(element), START_TAG.match(element)
    if not lacking or name is None or tag is None:
        return element
    own = _declared(tag[0])
    added = "".join(
        f" xmlns{':' if prefix else ''}{prefix}={quoteattr(namespace)}"
        for prefix, namespace in lacking.items()
        if prefix not in own and (namespace or not prefix)
    )
    return element[: name.end()] + added.encode() + element[name.end() :]
