"""A source as the records that topics should hold of it, and which publications can be compared with theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from contexture.errors import ConfigurationError
from contexture.kafka import TopicRecord
from contexture.operations.verification.verify import basis_of, check_verifiable, unverifiable
from contexture.publications import Publication, SdmxPublication
from contexture.sources.sdmx.formats import splittable

Difference = Literal["body", "headers", "time"]


class ExpectedRecord(NamedTuple):
    """The last record that a key of a topic should have.

    Attributes:
        topic, key: of the record.
        name: the identity key of what it says, an attribute's with its name.
        entity: the identity key of the entity or structure that it belongs to.
        content: hash of the value, by the measure of `SourceView.difference`.
        event: the content hash of the event, which ids of CloudEvents are made of.
        modified_us: when the source says that it was changed, microseconds since 1970; None where it does not say.
    """

    topic: str
    key: bytes | None
    name: bytes
    entity: bytes
    content: bytes
    event: bytes
    modified_us: int | None


class QuarantinedEntity(NamedTuple):
    """An entity or structure that a rule quarantines: topics keep what they had of it, so it is not judged."""

    entity: bytes
    modified_us: int | None
    rule: str


class Met(NamedTuple):
    """An entity or structure that a walk of the source met, whatever it becomes; each walk counts for itself."""

    walk: int
    entity: bytes
    rows: tuple[ExpectedRecord | QuarantinedEntity, ...]


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """The source at one moment: its clock, and how many entities or structures each walk would meet."""

    time: datetime
    counts: tuple[int, ...]


class SourceView(Protocol):
    """A source that can be walked, and asked again for some of what it holds.

    Every method raises `RetriableError` when the source is away or ill, and `ConfigurationError` when it refuses.
    """

    def health(self) -> SourceHealth:
        """Asks what a source cannot answer without its database."""
        ...

    def walk(self) -> Iterator[Met]:
        """Reads everything that the publication selects; what changes meanwhile may come twice."""
        ...

    def again(self, entities: Sequence[bytes]) -> Iterator[Met]:
        """Reads these alone, by their ids; what the source no longer holds does not come."""
        ...

    def can_ask(self, entity: bytes) -> bool:
        """Whether the source can be asked for one entity or structure by its id."""
        ...

    def entity_of(self, name: bytes) -> bytes:
        """Returns the identity key of the entity or structure that an identity key of state belongs to."""
        ...

    def entity_of_key(self, key: bytes) -> bytes | None:
        """Returns the same for a record's key; None where the key does not say it, or is a stranger's."""
        ...

    def is_behind(self, entity: bytes | None, modified_us: int | None, watermark: str | None) -> bool:
        """Returns whether the source says that it changed after what the last concluded run has read."""
        ...

    def difference(self, expected: ExpectedRecord, record: TopicRecord) -> Difference | None:
        """Compares a record that is no tombstone with what the source holds; None when nothing differs."""
        ...


def check_answerable(publication: Publication) -> None:
    """Checks that a publication's topics can be compared with its source at all.

    Raises:
        ConfigurationError: they cannot, and why.
    """
    check_verifiable(publication)
    reason = _unanswerable(publication)
    if reason is not None:
        raise ConfigurationError(
            f"publication {publication.name} cannot be verified against its source: {reason}",
            next_step="verify it against what was sent (--against sent)",
            publication=publication.name,
        )


def is_answerable(publication: Publication) -> bool:
    """Returns whether a publication's topics can be compared with its source."""
    return unverifiable(publication) is None and _unanswerable(publication) is None


def _unanswerable(publication: Publication) -> str | None:
    if not publication.source.has_content:
        return "its source is Contexture itself, whose events happen once"
    if isinstance(publication, SdmxPublication):
        return _unanswerable_structures(publication)
    if basis_of(publication) == "records":
        return "its records have no key of their own, so that the last one of an entity is not known"
    if publication.source.mode == "notifications":
        return "it publishes what its source notifies, which may be a part of an entity"
    return None


def _unanswerable_structures(publication: SdmxPublication) -> str | None:
    if publication.message.allow_lossy:
        return "it may convert structures (message.allow_lossy), which no longer have the registry's content then"
    if publication.source.media_type is not None and not splittable(publication.source.media_type):
        return f"structures in {publication.source.media_type} cannot be split"
    return None
