"""Splitting SDMX-ML: one pass of a streaming parser, and the bytes between its positions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from contexture.sdmx import references, xml_content, xml_layout
from contexture.sdmx.artefact import Artefact, Envelope, Identity, named, version_of
from contexture.sdmx.encodings import Utf8Source
from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.findings import Finding
from contexture.sdmx.formats import Format
from contexture.sdmx.kinds import kind_of_element
from contexture.sdmx.limits import Limits
from contexture.sdmx.xml_envelope import START_TAG, Level, around
from contexture.sdmx.xml_layout import Role, Root
from contexture.sdmx.xml_names import ShortNames, parted

_CHUNK_BYTES = 1 << 18
Attributes = dict[str, str]


class XmlReader:
    """Reads one message of SDMX-ML.

    Attributes:
        format: of the message, once its root was seen.
        findings: what was found outside of artefacts, so far.
    """

    def __init__(self, source: Utf8Source, limits: Limits) -> None:
        self.format: Format | None = None
        self.findings: list[Finding] = []
        self._source = source
        self._limits = limits
        self._bytes = bytearray()
        self._base = 0
        self._kept_from: int | None = 0
        self._in_artefact = False
        self._levels: list[Level] = []
        self._root: Root
        self._prolog = b""
        self._header = b""
        self._envelope: Envelope | None = None
        self._comments = b""
        self._prefixes: dict[str, list[str]] = {}
        self._names = ShortNames()
        self._done: deque[Artefact] = deque()
        self._parser = self._new_parser()

    def artefacts(self) -> Iterator[Artefact]:
        """The artefacts, each when the parser has seen its end.

        Raises:
            StructureMessageError: it is not well-formed, has a DOCTYPE, or is no structure message.
            LimitExceededError: it is larger or deeper than it may be.
        """
        while chunk := self._source.read(_CHUNK_BYTES):
            self._bytes += chunk
            self._parse(chunk, final=False)
            while self._done:
                yield self._done.popleft()
            self._forget()
        self._parse(b"", final=True)
        while self._done:
            yield self._done.popleft()

    def _parse(self, chunk: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            raise StructureMessageError(
                f"the XML is broken at line {error.lineno}, column {error.offset + 1}: {expat.ErrorString(error.code)}",
                next_step="read it again; what a broken message leaves out is not absent",
            ) from None

    def _new_parser(self) -> Any:
        parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartNamespaceDeclHandler = self._declare
        parser.EndNamespaceDeclHandler = self._forget_prefix
        self._install(parser)
        return parser

    def _install(self, parser: Any) -> None:
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = self._comment

    # What the parser calls between artefacts.

    def _refuse_doctype(self, *_: object) -> None:
        raise StructureMessageError(
            "the message has a DOCTYPE, which could declare entities",
            next_step="look at what the registry answered: SDMX-ML has no DOCTYPE, pages for people have",
        )

    def _declare(self, prefix: str | None, namespace: str | None) -> None:
        self._prefixes.setdefault(prefix or "", []).append(namespace or "")

    def _forget_prefix(self, prefix: str | None) -> None:
        self._prefixes[prefix or ""].pop()

    def _start(self, name: str, attributes: Attributes) -> None:
        position = self._parser.CurrentByteIndex
        if not self._levels:
            self._begin_message(name, position)
            return
        local = parted(name)[1]
        role = xml_layout.role(self._levels[-1].role, local, attributes)
        if role is Role.ARTEFACT:
            self._begin_artefact(name, attributes, position)
        elif role in {Role.HEADER, Role.NOTICE, Role.OUTSIDE}:
            self._begin_aside(role, local, attributes, position)
        else:
            self._push(role, name, position)

    def _end(self, _: str) -> None:
        self._levels.pop()
        self._envelope, self._comments = None, b""

    def _text(self, text: str) -> None:
        if not text.isspace():
            self._report("outside", "text between structures", self._parser.CurrentByteIndex)

    def _comment(self, _: str) -> None:
        # What is said before a structure goes with it.
        if self._levels and self._levels[-1].role in {Role.STRUCTURES, Role.CONTAINER}:
            start = self._parser.CurrentByteIndex - self._base
            self._comments += self._bytes[start : self._bytes.index(b"-->", start) + 3]
            self._limits.check_envelope(len(self._comments))

    def _begin_message(self, name: str, position: int) -> None:
        self._root = xml_layout.root(name)
        self.format = self._root.format
        self._prolog = bytes(self._bytes[: position - self._base])
        self._kept_from = None
        self._push(self._root.role, name, position)

    def _push(self, role: Role, name: str, position: int) -> None:
        tag = START_TAG.match(self._bytes, position - self._base)
        prefixes = {prefix: stack[-1] for prefix, stack in self._prefixes.items() if stack}
        self._levels.append(Level(role, name, tag[0] if tag else b"", prefixes))
        self._envelope, self._comments = None, b""

    # An artefact, from its start to its end.

    def _begin_artefact(self, name: str, attributes: Attributes, position: int) -> None:
        local = parted(name)[1]
        identity = Identity(
            kind=kind_of_element(local) or local,
            agency=attributes.get("agencyID") or attributes.get("agency"),
            id=attributes.get("id"),
            version=attributes.get("version"),
            declared_urn=attributes.get("urn"),
        )
        gathered = references.of_format(self._root.format, identity.kind, identity.agency)
        self._kept_from, self._in_artefact = position, True
        handlers = xml_content.collect(
            attributes,
            name,
            names=self._names,
            expand=self._expand,
            references=gathered,
            limits=self._limits,
            done=lambda content: self._end_artefact(identity, gathered, content),
        )
        self._hand_over(handlers.start, handlers.end, handlers.text)

    def _end_artefact(self, identity: Identity, gathered: references.References, content: xml_content.Content) -> None:
        start, end = self._span(empty=content.empty)
        raw = bytes(self._bytes[start:end])
        self._limits.check_artefact(len(raw))
        offset = self._base + start
        urn, findings = named(identity, offset)
        artefact = Artefact(
            urn=urn,
            declared_urn=identity.declared_urn,
            kind=identity.kind,
            agency=identity.agency,
            id=identity.id,
            version=version_of(identity),
            references=gathered.but(urn, identity.declared_urn),
            content_hash=content.content_hash,
            content=self._source.encoding.encoded(raw),
            format=self._root.format,
            envelope=self._around(),
            findings=findings,
            offset=offset,
        )
        self._done.append(artefact)
        self._kept_from, self._in_artefact, self._comments = None, False, b""
        self._install(self._parser)

    def _around(self) -> Envelope:
        encoding = self._source.encoding
        if self._envelope is None:
            self._envelope = around(self._root, self._prolog, self._header, self._levels, encoding)
        if not self._comments:
            return self._envelope
        return Envelope(self._envelope.before + encoding.encoded(self._comments), self._envelope.after)

    def _expand(self, qualified: str) -> str:
        prefix, _, local = qualified.strip().rpartition(":")
        stack = self._prefixes.get(prefix)
        return self._names[f"{stack[-1]} {local}"] if stack and stack[-1] else local

    # A header, or what is no structure.

    def _begin_aside(self, role: Role, local: str, attributes: Attributes, position: int) -> None:
        self._kept_from = position
        depth, nothing = 1, True

        def start(_: str, __: Attributes) -> None:
            nonlocal depth, nothing
            depth += 1
            nothing = False
            if depth > self._limits.depth:
                raise self._limits.too_deep()

        def end(_: str) -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                self._end_aside(role, local, attributes, empty=nothing)

        def text(_: str) -> None:
            nonlocal nothing
            nothing = False

        self._hand_over(start, end, text)

    def _end_aside(self, role: Role, local: str, attributes: Attributes, *, empty: bool) -> None:
        start, end = self._span(empty=empty)
        if role is Role.HEADER:
            self._header = bytes(self._bytes[start:end])
        elif role is Role.NOTICE:
            status = attributes.get("status", "")[:40]
            self._report("notice", f"the sender adds a {local} {status}".rstrip(), self._base + start)
        else:
            self._report("outside", f"{local[:80]} is no structure, and in no artefact", self._base + start)
        self._kept_from = None
        self._install(self._parser)

    # Bytes.

    def _hand_over(self, start: Any, end: Any, text: Any) -> None:
        self._parser.StartElementHandler = start
        self._parser.EndElementHandler = end
        self._parser.CharacterDataHandler = text
        self._parser.CommentHandler = None

    def _span(self, *, empty: bool) -> tuple[int, int]:
        """Where the kept element stands in the bytes at hand; the parser is at its end."""
        start = (self._kept_from or 0) - self._base
        at = self._parser.CurrentByteIndex - self._base
        # Behind `<a/>` the parser is behind it already; before `</a>` it is before.
        if empty and self._bytes[at - 2 : at] == b"/>":
            return start, at
        return start, self._bytes.index(b">", at) + 1

    def _forget(self) -> None:
        position = self._kept_from
        if position is None:
            position = max(self._parser.CurrentByteIndex, self._base)
        del self._bytes[: position - self._base]
        self._base = position
        if self._in_artefact:
            self._limits.check_artefact(len(self._bytes))
        else:
            self._limits.check_envelope(len(self._bytes))

    def _report(self, code: Any, message: str, offset: int) -> None:
        self.findings.append(Finding(code, message, offset))
