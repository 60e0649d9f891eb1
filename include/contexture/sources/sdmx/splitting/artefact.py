"""One maintainable artefact of a structure message: its own bytes, what it is, and a message around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from contexture.sources.sdmx.errors import SplitWarning
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.urn import REGISTRATION


@dataclass(frozen=True, slots=True)
class FrameParts:
    """The parts of a frame that joining messages needs, in UTF-8.

    Attributes:
        head: all before the container, the header with it.
        opening: the start of the container of the artefact; nothing where there is none.
        container: its name; nothing where there is none.
        closing: the end of the container.
        tail: all behind it.
        prefixes: namespaces by prefix inside the container; the default namespace has the prefix "". Of XML only.
    """

    head: bytes
    opening: bytes
    container: str
    closing: bytes
    tail: bytes
    prefixes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageFrame:
    """The bytes before and after an artefact in a message of its own, in the encoding of the message.

    `parts` is None for a frame that was made in place of the source's own."""

    before: bytes
    after: bytes
    parts: FrameParts | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Artefact:
    """One artefact, whole and unchanged.

    Attributes:
        urn: by kind, agency, id and version; the declared one where the model has no such kind; None where neither
            identifies the artefact.
        declared_urn: that of the artefact itself.
        kind: such as `Codelist`; an element's or member's own name where the model has no such kind.
        agency, id, version: of the artefact; the version is 1.0 where it has none.
        references: URNs of the maintainable artefacts that it refers to, each once, in the order of their text.
        content_hash: SHA-256 of its canonical form: header, encoding, prefixes, comments, order of attributes and keys,
            and white space between elements don't count.
        content: its bytes as they were in the message.
        format: of the message.
        findings: what a person should know about it.
        offset: its first byte in the message, in UTF-8.
    """

    urn: str | None
    declared_urn: str | None
    kind: str
    agency: str | None
    id: str | None
    version: str
    references: tuple[str, ...]
    content_hash: bytes
    content: bytes = field(repr=False)
    format: Format
    envelope: MessageFrame = field(repr=False, compare=False)
    findings: tuple[SplitWarning, ...] = ()
    offset: int = field(default=0, compare=False)

    @property
    def size(self) -> int:
        return len(self.content)

    @property
    def media_type(self) -> str:
        """Of the message around it."""
        if self.kind == REGISTRATION:
            return self.format.registry_media_type or self.format.media_type
        return self.format.media_type

    def message(self) -> bytes:
        """A complete structure message that holds this artefact alone, with the header of the message it came in."""
        return b"".join((self.envelope.before, self.content, self.envelope.after))
