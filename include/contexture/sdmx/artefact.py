"""One maintainable artefact of a structure message: its own bytes, what it is, and a message around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from contexture.sdmx.findings import Finding
from contexture.sdmx.formats import Format
from contexture.sdmx.kinds import PACKAGES
from contexture.sdmx.urns import DEFAULT_VERSION, Urn


@dataclass(frozen=True, slots=True)
class Envelope:
    """What stands before and after an artefact in a message of its own, in the encoding of the message."""

    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """What an artefact says about itself, before any rule is applied."""

    kind: str
    agency: str | None
    id: str | None
    version: str | None
    declared_urn: str | None


@dataclass(frozen=True, slots=True)
class Artefact:
    """One artefact, whole and unchanged.

    Attributes:
        urn: by kind, agency, id and version; the declared one where the model has no such kind; None where neither
            says which artefact it is.
        declared_urn: what the artefact says itself.
        kind: such as `Codelist`; an element's or member's own name where the model has no such kind.
        agency, id, version: of the artefact; the version is 1.0 where it has none.
        references: URNs of the maintainable artefacts that it refers to, each once, in the order of their text.
        content_hash: SHA-256 of its canonical form: header, encoding, prefixes, comments, order of attributes and keys,
            and white space between elements don't count.
        content: its bytes as they stood in the message.
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
    envelope: Envelope = field(repr=False, compare=False)
    findings: tuple[Finding, ...] = ()
    offset: int = field(default=0, compare=False)

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.content)

    @property
    def media_type(self) -> str:
        """Of the message around it."""
        return self.format.media_type

    def message(self) -> bytes:
        """A complete structure message that holds this artefact alone, with the header of the message it came in."""
        return b"".join((self.envelope.before, self.content, self.envelope.after))


def named(identity: Identity, offset: int) -> tuple[str | None, tuple[Finding, ...]]:
    """The URN of an artefact, and what is odd about it."""
    if identity.kind not in PACKAGES:
        return _foreign(identity, offset)
    if not identity.agency or not identity.id:
        return None, (Finding("no-identity", f"a {identity.kind} without agency or id", offset),)
    urn = str(Urn.of(identity.kind, identity.agency, identity.id, identity.version))
    if identity.declared_urn in {None, urn}:
        return urn, ()
    return urn, (Finding("urn-differs", f"{urn} says of itself that it is {identity.declared_urn}", offset),)


def version_of(identity: Identity) -> str:
    """The version that the URN has."""
    return identity.version or DEFAULT_VERSION


def _foreign(identity: Identity, offset: int) -> tuple[str | None, tuple[Finding, ...]]:
    if identity.kind in NOT_MAINTAINABLE:
        found = Finding(
            "not-maintainable", f"{identity.kind} {identity.id or 'without id'} is not maintainable", offset
        )
        return None, (found,)
    found = Finding("unknown-kind", f"{identity.kind} {identity.id or 'without id'} is of an unknown kind", offset)
    try:
        return str(Urn.parse(identity.declared_urn or "")), (found,)
    except ValueError:
        return None, (found, Finding("no-identity", f"this {identity.kind} declares no URN", offset))


NOT_MAINTAINABLE = frozenset({"Agency", "Concept"})
"""What SDMX-ML 1.0 and 2.0 have beside maintainable artefacts."""
