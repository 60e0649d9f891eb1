"""Splitting SDMX-ML: one pass of a streaming parser, and the bytes between its positions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.parsers import expat

from contexture.sources.sdmx.errors import FindingCode, Limits, SplitWarning, StructureMessageError, note
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.splitting import xml_envelope
from contexture.sources.sdmx.splitting.artefact import Artefact, MessageFrame
from contexture.sources.sdmx.splitting.encodings import Utf8Source
from contexture.sources.sdmx.splitting.identity import Body, Identity, artefact_of, of_format
from contexture.sources.sdmx.splitting.xml_content import (
    Attributes,
    ContentCollector,
    End,
    Install,
    Start,
    Surroundings,
    Text,
    parted,
    shortened,
)
from contexture.sources.sdmx.splitting.xml_envelope import START_TAG, Level, Role, Root, build_message_frame
from contexture.sources.sdmx.urn import kind_of_element


def skip_element(install: Install, limits: Limits, done: Callable[[bool], None]) -> None:
    """Skips the element that just began; calls `done` at its end, with whether it is empty.

    Raises:
        LimitExceededError: by the parser, when it is too deep.
    """
    depth, empty = 1, True

    def start(_: str, __: Attributes) -> None:
        nonlocal depth, empty
        depth += 1
        empty = False
        if depth > limits.depth:
            raise limits.too_deep()

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1
        if not depth:
            done(empty)

    def text(_: str) -> None:
        nonlocal empty
        empty = False

    install(start, end, text)


class ByteWindow:
    """A piece of the message that moves on with the parser, without losing what `keep` marked."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes = bytearray()
        self._base = 0
        self._kept_from: int | None = 0
        self._in_artefact = False

    def add(self, chunk: bytes) -> None:
        """The next bytes of the message."""
        self._bytes += chunk

    def keep(self, position: int, *, artefact: bool) -> None:
        """Keeps all from this position on, until it is released."""
        self._kept_from, self._in_artefact = position, artefact

    def release(self) -> None:
        """Nothing of what went by is needed any more."""
        self._kept_from, self._in_artefact = None, False

    def move(self, position: int) -> None:
        """The parser got so far; lets go what no one needs.

        Raises:
            LimitExceededError: more is needed than may be.
        """
        start = max(position if self._kept_from is None else self._kept_from, self._base)
        del self._bytes[: start - self._base]
        self._base = start
        if self._in_artefact:
            self._limits.check_artefact(len(self._bytes))
        else:
            self._limits.check_envelope(len(self._bytes))

    def before(self, position: int) -> bytes:
        """Returns all that is at hand up to a position."""
        return bytes(self._bytes[: position - self._base])

    def start_tag(self, position: int) -> bytes:
        found = START_TAG.match(self._bytes, position - self._base)
        return found[0] if found else b""

    def comment(self, position: int) -> bytes:
        start = position - self._base
        return bytes(self._bytes[start : self._bytes.index(b"-->", start) + 3])

    def element(self, end: int, *, empty: bool) -> bytes:
        """Returns the element from where bytes are kept, at its end.

        Args:
            end: where the parser is: before `</a>`, but behind `<a/>`.
            empty: whether nothing is in it; it may be of either form then.
        """
        start, at = (self._kept_from or 0) - self._base, end - self._base
        if not (empty and self._bytes[at - 2 : at] == b"/>"):
            at = self._bytes.index(b">", at) + 1
        return bytes(self._bytes[start:at])


_CHUNK_BYTES = 1 << 17
_LARGEST_CHUNK_BYTES = 1 << 24


class XmlReader:
    """Reads one message of SDMX-ML.

    Attributes:
        format: of the message, once its root was seen.
        findings: what was found outside of artefacts, so far.
    """

    def __init__(self, source: Utf8Source, limits: Limits) -> None:
        self.format: Format | None = None
        self.findings: list[SplitWarning] = []
        self._source = source
        self._limits = limits
        self._window = ByteWindow(limits)
        self._root: Root
        self._levels: list[Level] = []
        self._prolog = self._header = self._comments = b""
        self._envelope: MessageFrame | None = None
        self._prefixes: dict[str, list[str]] = {}
        self._surroundings = Surroundings(self._install, {}, self._expand, limits)
        self._collector: ContentCollector | None = None
        self._done: deque[Artefact] = deque()
        self._parser = self._new_parser()

    def artefacts(self) -> Iterator[Artefact]:
        """Yields the artefacts, each when the parser has seen its end.

        Raises:
            StructureMessageError: it is not well-formed, has a DOCTYPE, or is no structure message.
            LimitExceededError: it is larger or deeper than it may be.
        """
        size, position = _CHUNK_BYTES, 0
        while chunk := self._source.read(size):
            self._window.add(chunk)
            yield from self._parsed(chunk)
            if self._collector:
                self._collector.flush()
            before, position = position, self._parser.CurrentByteIndex
            self._window.move(position)
            # expat reads a tag or comment from its beginning again until it is whole: twice as much keeps that linear.
            size = _CHUNK_BYTES if position > before else min(size * 2, _LARGEST_CHUNK_BYTES)
        yield from self._parsed(b"", final=True)

    def _parsed(self, chunk: bytes, *, final: bool = False) -> Iterator[Artefact]:
        broken = None
        try:
            self._parse(chunk, final=final)
        except StructureMessageError as error:
            broken = error
        # What came to its end before is right all the same.
        while self._done:
            yield self._done.popleft()
        if broken:
            raise broken

    def _new_parser(self) -> Any:
        parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartNamespaceDeclHandler = self._declare
        parser.EndNamespaceDeclHandler = self._forget_prefix
        parser.CommentHandler = self._comment
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        return parser

    def _install(self, start: Start, end: End, text: Text) -> None:
        parser = self._parser
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text

    def _parse(self, chunk: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            raise StructureMessageError(
                f"the XML is broken at line {error.lineno}, column {error.offset + 1}: {expat.ErrorString(error.code)}",
                next_step="read it again; what a broken message lacks is not deleted",
            ) from None

    # What the parser calls between artefacts.

    def _refuse_doctype(self, *_: object) -> None:
        raise StructureMessageError(
            "the message has a DOCTYPE, which could declare entities",
            next_step="check the response of the registry: SDMX-ML has no DOCTYPE, pages for people have",
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
        role = xml_envelope.role(self._levels[-1].role, local, attributes)
        if role is Role.ARTEFACT:
            self._begin_artefact(name, attributes, position)
        elif role in {Role.HEADER, Role.NOTICE, Role.SUCCESS, Role.OUTSIDE}:
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
        if self._collector or not self._levels or self._levels[-1].role not in {Role.STRUCTURES, Role.CONTAINER}:
            return
        self._comments += self._window.comment(self._parser.CurrentByteIndex)
        self._limits.check_envelope(len(self._comments))

    def _begin_message(self, name: str, position: int) -> None:
        self._root = xml_envelope.root(name)
        self.format = self._root.format
        self._prolog = self._window.before(position)
        self._window.release()
        self._push(self._root.role, name, position)

    def _push(self, role: Role, name: str, position: int) -> None:
        prefixes = {prefix: stack[-1] for prefix, stack in self._prefixes.items() if stack}
        self._levels.append(Level(role, name, self._window.start_tag(position), prefixes))
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
        self._window.keep(position, artefact=True)
        self._collector = ContentCollector(
            self._surroundings,
            of_format(self._root.format, identity.kind, identity.agency),
            lambda: self._end_artefact(identity, position),
        )
        self._collector.begin(name, attributes)

    def _end_artefact(self, identity: Identity, offset: int) -> None:
        collector = self._collector
        assert collector is not None  # it is its end that calls this
        raw = self._window.element(self._parser.CurrentByteIndex, empty=collector.is_empty)
        self._limits.check_artefact(len(raw))
        collector.flush()
        body = Body(self._source.encoding.encoded(raw), collector.content_hash, collector.references, offset)
        self._done.append(artefact_of(identity, body, self._root.format, self._around()))
        self._collector, self._comments = None, b""
        self._go_on()

    def _around(self) -> MessageFrame:
        encoding = self._source.encoding
        if self._envelope is None:
            self._envelope = build_message_frame(self._root, self._prolog, self._header, self._levels, encoding)
        if not self._comments:
            return self._envelope
        return replace(self._envelope, before=self._envelope.before + encoding.encoded(self._comments))

    def _expand(self, qualified: str) -> str:
        prefix, _, local = qualified.strip().rpartition(":")
        stack = self._prefixes.get(prefix)
        return shortened(f"{stack[-1]} {local}") if stack and stack[-1] else local

    # A header, or what is no structure.

    def _begin_aside(self, role: Role, local: str, attributes: Attributes, position: int) -> None:
        def done(empty: bool) -> None:
            if role is Role.HEADER:
                self._header = self._window.element(self._parser.CurrentByteIndex, empty=empty)
            elif role is Role.NOTICE:
                status = attributes.get("status", "")[:40]
                self._report("notice", f"the sender adds a {local} {status}".rstrip(), position)
            elif role is Role.OUTSIDE:
                self._report("outside", f"{local[:80]} is not a structure, and in no artefact", position)
            self._go_on()

        self._window.keep(position, artefact=False)
        skip_element(self._install, self._limits, done)

    def _go_on(self) -> None:
        self._window.release()
        self._install(self._start, self._end, self._text)

    def _report(self, code: FindingCode, message: str, offset: int) -> None:
        note(self.findings, SplitWarning(code, message, offset))
