"""Splitting SDMX-JSON and Fusion-JSON."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from contexture.sdmx import json_content, references
from contexture.sdmx.artefact import Artefact, Envelope
from contexture.sdmx.encodings import Utf8Source
from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.findings import Finding, FindingCode, note
from contexture.sdmx.formats import Format, is_fusion, json_format
from contexture.sdmx.identity import Body, artefact_of
from contexture.sdmx.json_header import Header, LateHeader
from contexture.sdmx.json_text import JsonText
from contexture.sdmx.kinds import kind_of_container, kind_of_element
from contexture.sdmx.limits import Limits

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
        format: of the message, once something told it.
        findings: what was found outside of artefacts, so far.
    """

    def __init__(self, source: Utf8Source, limits: Limits, media_type: str | None, late: LateHeader) -> None:
        self.format: Format | None = None
        self.findings: list[Finding] = []
        self._source = source
        self._text = JsonText(source, limits)
        self._media_type = media_type
        self._late = late
        self._header = Header()
        self._settled = False

    def artefacts(self) -> Iterator[Artefact]:
        """The artefacts, each when its end was seen.

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
            raise self._no_structures("has data that are no object")
        self._settle()
        self.format = self._version()
        for key in self._text.members():
            if key.lower() in _OTHER_MESSAGES:
                raise self._no_structures(_OTHER_MESSAGES[key.lower()])
            if not self._text.begins(b"["):
                self._aside(key)
                continue
            before = self._header.before(b'"data":{' + orjson.dumps(key) + b":[")
            yield from self._container(kind_of_container(key) or key, self._envelope(before, b"]}}"))

    def _fusion(self, key: str) -> Iterator[Artefact]:
        kind = kind_of_element(key)
        self._settle()
        if kind is None and not self._header.meta and not is_fusion(self._media_type) and self.format is None:
            raise self._no_structures("has no member that is known")
        self.format = Format.FUSION_JSON
        before = self._header.before(orjson.dumps(key) + b":[")
        yield from self._container(kind or key, self._envelope(before, b"]}"))

    def _container(self, kind: str, envelope: Envelope) -> Iterator[Artefact]:
        for _ in self._text.elements():
            offset = self._text.offset
            if self._text.begins(b"{"):
                yield self._artefact(kind, envelope, offset)
            else:
                self._text.skip()
                self._report("outside", f"an element among {kind} is no object", offset)

    def _artefact(self, kind: str, envelope: Envelope, offset: int) -> Artefact:
        content = self._text.value()
        gathered = references.References()
        identity, content_hash = json_content.read(kind, content, gathered)
        body = Body(self._source.encoding.encoded(content), content_hash, gathered, offset)
        return artefact_of(identity, body, self.format or Format.SDMX_JSON_2_0, envelope)

    def _envelope(self, before: bytes, after: bytes) -> Envelope:
        encoding = self._source.encoding
        return Envelope(encoding.bom + encoding.encoded(before), encoding.encoded(after))

    def _settle(self) -> None:
        """Sees to the header before the first structure."""
        if self._settled:
            return
        self._settled = True
        if not self._header.meta:
            self._header = self._late.find() or self._header
            if self._late.unreachable:
                self._report("late-header", "structures come before any header, and the message can't be read twice")
        schema = self._header.schema or ""
        for name, what in _OTHER_SCHEMAS.items():
            if name in schema:
                raise self._no_structures(what)

    def _version(self) -> Format:
        version = json_format(self._header.schema, self._media_type)
        if version is None:
            self._report("notice", "the message names no version of SDMX-JSON; it is taken for 2.0")
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
        self._report("outside", f"the member {key[:80]} is no array of structures", offset)

    def _no_structures(self, what: str) -> StructureMessageError:
        return StructureMessageError(
            f"the message is JSON that {what}", next_step="look at what the registry answered, or ask for structures"
        )

    def _report(self, code: FindingCode, message: str, offset: int | None = None) -> None:
        note(self.findings, Finding(code, message, offset))
