"""Which artefact it is: what it says about itself, and the URN that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from contexture.sdmx.artefact import Artefact, Envelope
from contexture.sdmx.findings import Finding
from contexture.sdmx.formats import Format
from contexture.sdmx.kinds import PACKAGES, SINGLE_SCHEMES
from contexture.sdmx.references import References
from contexture.sdmx.urns import DEFAULT_VERSION, Urn

NOT_MAINTAINABLE = frozenset({"Agency", "Concept"})
"""What SDMX-ML 1.0 and 2.0 have beside maintainable artefacts."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What an artefact says about itself, before any rule is applied."""

    kind: str
    agency: str | None
    id: str | None
    version: str | None
    declared_urn: str | None


@dataclass(frozen=True, slots=True)
class Body:
    """What is known of an artefact beside its identity.

    Attributes:
        content: in the encoding of the message.
        content_hash: of the canonical form.
        references: that were gathered in it.
        offset: of its first byte in the message, in UTF-8.
    """

    content: bytes
    content_hash: bytes
    references: References
    offset: int


def artefact_of(identity: Identity, body: Body, format_: Format, envelope: Envelope) -> Artefact:
    """The artefact, named and with what is odd about its name."""
    identity = completed(identity)
    urn, findings = named(identity, body.offset)
    return Artefact(
        urn=urn,
        declared_urn=identity.declared_urn,
        kind=identity.kind,
        agency=identity.agency,
        id=identity.id,
        version=identity.version or DEFAULT_VERSION,
        references=body.references.but(urn, identity.declared_urn),
        content_hash=body.content_hash,
        content=body.content,
        format=format_,
        envelope=envelope,
        findings=findings,
        offset=body.offset,
    )


def completed(identity: Identity) -> Identity:
    """With the version, and in schemes that an agency has one of the id, that need not be written.

    SDMX 2.1 has 1.0 for the version of everything, 3.0 for what has no version.
    """
    if identity.kind in SINGLE_SCHEMES:
        return replace(identity, id=identity.id or SINGLE_SCHEMES[identity.kind], version=DEFAULT_VERSION)
    return identity if identity.version else replace(identity, version=DEFAULT_VERSION)


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
