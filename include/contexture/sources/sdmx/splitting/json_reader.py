"""Splitting SDMX-JSON and Fusion-JSON.

The canonical form is that of `contexture.events`: keys sorted, no white space, number literals as written. Large
artefacts are hashed member by member, and their long arrays in pieces, so that no tree of a large code list is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import msgspec
import orjson

from contexture.events import canonical_json, parse_json
from contexture.sources.sdmx.errors import FindingCode, Limits, SplitWarning, StructureMessageError, note
from contexture.sources.sdmx.formats import Format, is_fusion, json_format
from contexture.sources.sdmx.splitting.artefact import Artefact, FrameParts, MessageFrame
from contexture.sources.sdmx.splitting.encodings import ByteStream, Utf8Source
from contexture.sources.sdmx.splitting.identity import Body, Identity, References, artefact_of
from contexture.sources.sdmx.splitting.json_text import JsonText
from contexture.sources.sdmx.urn import kind_of_container, kind_of_element

_PIECE_BYTES = 1 << 18
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_MINUS_ZERO = re.compile(rb"-0(?=[\s,\]}])")
_SORTED = orjson.OPT_SORT_KEYS


class _DelicateNumberError(Exception):
    """A number is there that a parser may write otherwise than it found it."""


def _refuse_number(_: str) -> float:
    raise _DelicateNumberError


_VALUES = msgspec.json.Decoder(float_hook=_refuse_number)


class _Head(msgspec.Struct, rename={"agency": "agencyID", "agency_of_fusion": "agencyId"}):
    id: Any = None
    agency: Any = None
    agency_of_fusion: Any = None
    version: Any = None
    urn: Any = None
    links: Any = None


_HEADS = msgspec.json.Decoder(_Head)


def read(kind: str, content: bytes, references: References) -> tuple[Identity, bytes]:
    """What the artefact says about itself, and the hash of its canonical form; references are gathered on the way.

    Raises:
        StructureMessageError: it is no JSON object.
    """
    try:
        return _identity(kind, _HEADS.decode(content)), _hash(content, references)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _invalid(error) from None


def _identity(kind: str, head: _Head) -> Identity:
    # SDMX-JSON and Fusion-JSON spell it differently.
    return Identity(
        kind=kind,
        agency=_text(head.agency) or _text(head.agency_of_fusion),
        id=_text(head.id),
        version=_text(head.version),
        declared_urn=_text(head.urn) or _urn_of_links(head.links),
    )


def _hash(content: bytes, references: References) -> bytes:
    digest = sha256()
    for piece in [_canonical_text(content)] if len(content) <= _PIECE_BYTES else _pieces_of_object(content):
        digest.update(piece)
        references.read_text(piece)
    return digest.digest()


def _pieces_of_object(content: bytes) -> Iterator[bytes]:
    found = _MEMBERS.decode(content)
    separator = b"{"
    for key in sorted(found, key=str.encode):
        yield separator + orjson.dumps(key) + b":"
        separator = b","
        yield from _canonical(memoryview(found[key]))
    yield b"}"


def _canonical(raw: memoryview) -> Iterator[bytes]:
    if len(raw) <= _PIECE_BYTES or bytes(raw[:1]) != b"[":
        yield _canonical_text(raw)
        return
    separator = b"["
    for piece in _pieces(raw):
        yield separator + _canonical_text(b"[" + piece + b"]")[1:-1]
        separator = b","
    yield b"]"


def _pieces(array: memoryview) -> Iterator[bytes]:
    """Yields the elements of an array, joined to pieces of some size."""
    joined: list[msgspec.Raw] = []
    size = 0
    for element in _ELEMENTS.decode(array):
        joined.append(element)
        size += len(memoryview(element))
        if size > _PIECE_BYTES:
            yield b",".join(joined)
            joined, size = [], 0
    if joined:
        yield b",".join(joined)


def _canonical_text(raw: memoryview | bytes) -> bytes:
    try:
        if not _MINUS_ZERO.search(raw):
            return orjson.dumps(_VALUES.decode(raw), option=_SORTED)
    except (_DelicateNumberError, orjson.JSONEncodeError):
        # With a point, with an exponent, or longer than a machine's: such a number is kept as it is written.
        pass
    return canonical_json(parse_json(bytes(raw)))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _urn_of_links(links: object) -> str | None:
    for link in links if isinstance(links, list) else []:
        if isinstance(link, dict) and link.get("rel") == "self" and isinstance(link.get("urn"), str):
            return str(link["urn"])
    return None


def _invalid(error: Exception) -> StructureMessageError:
    # Only what the parser says about the form: its text holds no content.
    return StructureMessageError(
        f"an artefact is not valid JSON: {str(error)[:120]}",
        next_step="read it again; what a broken message lacks is not deleted",
    )


@dataclass(frozen=True, slots=True)
class Header:
    """What describes the message.

    Attributes:
        meta: bytes of the member of this name.
        json_schema: bytes of the member `$schema`.
    """

    meta: bytes = b""
    json_schema: bytes = b""

    def having(self, key: str, value: bytes) -> Header:
        """With one of the two members."""
        return replace(self, meta=value) if key == "meta" else replace(self, json_schema=value)

    def before(self, opening: bytes) -> bytes:
        """Returns a message up to its first structure: the header's members, then `opening`."""
        members = ((b'"$schema":', self.json_schema), (b'"meta":', self.meta))
        return b"{" + b"".join(key + value + b"," for key, value in members if value) + opening

    @property
    def schema(self) -> str | None:
        """The schema that the message names.

        Raises:
            StructureMessageError: the header is no JSON.
        """
        try:
            meta = orjson.loads(self.meta) if self.meta else {}
            named = (meta.get("schema") if isinstance(meta, dict) else None, orjson.loads(self.json_schema or b"null"))
        except orjson.JSONDecodeError:
            raise StructureMessageError("the header is not valid JSON", next_step="read the message again") from None
        return next((text for text in named if isinstance(text, str)), None)


class LateHeader:
    """Searches for a header behind the structures, in a stream that can be read twice.

    Attributes:
        unreachable: whether there may be one, and the stream can't be read twice.
    """

    def __init__(self, stream: ByteStream, limits: Limits) -> None:
        self._stream: Any = stream
        self._limits = limits
        self._start = _position(stream)
        self.unreachable = False

    def find(self) -> Header | None:
        """Returns the header, wherever it is; None where there is none."""
        if self._start is None:
            self.unreachable = True
            return None
        back = self._stream.tell()
        self._stream.seek(self._start)
        try:
            return self._read()
        finally:
            self._stream.seek(back)

    def _read(self) -> Header | None:
        header = Header()
        text = JsonText(Utf8Source(self._stream, self._limits), self._limits)
        for key in text.members():
            if key in {"meta", "$schema"}:
                header = header.having(key, text.value())
            else:
                text.skip()
        return header if header.meta or header.json_schema else None


def _position(stream: Any) -> int | None:
    """Returns where the stream is, if it can be set back to there."""
    try:
        return int(stream.tell()) if stream.seekable() else None
    except (AttributeError, OSError):
        return None


_OTHER_MESSAGES = {
    "datasets": "is a data message",
    "structure": "is a data message",
    "structures": "is a data message",
    "metadataset": "is a metadata message",
    "metadatasets": "is a metadata message",
}
"""What other messages contain in place of structures; a metadata message contains reference metadata."""
_OTHER_SCHEMAS = {"metadata-schema": "is a metadata message", "data-schema": "is a data message"}


class JsonReader:
    """Reads one message of SDMX-JSON or Fusion-JSON.

    Attributes:
        format: of the message, once something showed it.
        findings: what was found outside of artefacts, so far.
    """

    def __init__(self, source: Utf8Source, limits: Limits, media_type: str | None, late: LateHeader) -> None:
        self.format: Format | None = None
        self.findings: list[SplitWarning] = []
        self._source = source
        self._text = JsonText(source, limits)
        self._media_type = media_type
        self._late = late
        self._header = Header()
        self._settled = False

    def artefacts(self) -> Iterator[Artefact]:
        """Yields the artefacts, each when its end was seen.

        Raises:
            StructureMessageError: it is broken, or no structure message.
            LimitExceededError: it is larger or deeper than it may be.
        """
        for key in self._text.members():
            if key in {"meta", "$schema"}:
                self._header = self._header.having(key, self._text.value())
            elif key == "errors":
                self._errors()
            elif key == "data":
                yield from self._data()
            elif key.lower() in _OTHER_MESSAGES:
                raise self._no_structures(_OTHER_MESSAGES[key.lower()])
            elif self._text.begins(b"["):
                yield from self._fusion(key)
            else:
                self._aside(key)
        self._text.finish()
        if not self._settled and not self._header.meta:
            raise self._no_structures("has neither structures nor a header")

    def _data(self) -> Iterator[Artefact]:
        if not self._text.begins(b"{"):
            raise self._no_structures("has data that are not an object")
        self._settle()
        self.format = self._version()
        for key in self._text.members():
            if key.lower() in _OTHER_MESSAGES:
                raise self._no_structures(_OTHER_MESSAGES[key.lower()])
            if not self._text.begins(b"["):
                self._aside(key)
                continue
            yield from self._container(kind_of_container(key) or key, self._envelope(b'"data":{', key, b"}}"))

    def _fusion(self, key: str) -> Iterator[Artefact]:
        kind = kind_of_element(key)
        self._settle()
        if kind is None and not self._header.meta and not is_fusion(self._media_type) and self.format is None:
            raise self._no_structures("has no member that is known")
        self.format = Format.FUSION_JSON
        yield from self._container(kind or key, self._envelope(b"", key, b"}"))

    def _container(self, kind: str, envelope: MessageFrame) -> Iterator[Artefact]:
        for _ in self._text.elements():
            offset = self._text.offset
            if self._text.begins(b"{"):
                yield self._artefact(kind, envelope, offset)
            else:
                self._text.skip()
                self._report("outside", f"an element among {kind} is not an object", offset)

    def _artefact(self, kind: str, envelope: MessageFrame, offset: int) -> Artefact:
        content = self._text.value()
        gathered = References()
        identity, content_hash = read(kind, content, gathered)
        body = Body(self._source.encoding.encoded(content), content_hash, gathered, offset)
        return artefact_of(identity, body, self.format or Format.SDMX_JSON_2_0, envelope)

    def _envelope(self, opening: bytes, key: str, tail: bytes) -> MessageFrame:
        parts = FrameParts(self._header.before(opening), orjson.dumps(key) + b":[", key, b"]", tail)
        encoding = self._source.encoding
        before, after = parts.head + parts.opening, parts.closing + parts.tail
        return MessageFrame(encoding.bom + encoding.encoded(before), encoding.encoded(after), parts)

    def _settle(self) -> None:
        """Reads the header before the first structure."""
        if self._settled:
            return
        self._settled = True
        if not self._header.meta:
            self._header = self._late.find() or self._header
            if self._late.unreachable:
                self._report("late-header", "structures come before any header, and the message cannot be read twice")
        schema = self._header.schema or ""
        for name, what in _OTHER_SCHEMAS.items():
            if name in schema:
                raise self._no_structures(what)

    def _version(self) -> Format:
        version = json_format(self._header.schema, self._media_type)
        if version is None:
            self._report("notice", "the message names no version of SDMX-JSON; it is read as 2.0")
        return version or Format.SDMX_JSON_2_0

    def _errors(self) -> None:
        offset = self._text.offset
        if not self._text.begins(b"["):
            self._aside("errors")
            return
        count = sum(1 for _ in self._each())
        if count:
            self._report("notice", f"the sender reports {count} errors", offset)

    def _each(self) -> Iterator[None]:
        for each in self._text.elements():
            self._text.skip()
            yield each

    def _aside(self, key: str) -> None:
        offset = self._text.offset
        self._text.skip()
        self._report("outside", f"the member {key[:80]} is not an array of structures", offset)

    def _no_structures(self, what: str) -> StructureMessageError:
        return StructureMessageError(
            f"the message is JSON that {what}", next_step="check the response of the registry, or request structures"
        )

    def _report(self, code: FindingCode, message: str, offset: int | None = None) -> None:
        note(self.findings, SplitWarning(code, message, offset))
