"""The sizes of what a publication selects from a registry, before any of it is sent."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.errors import ContextureError, RetriableError
from contexture.operations.environment import publications_folder
from contexture.publications import LoadedPublication, Publication, SdmxPublication, discover
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import StructureContent, StructureEnvelope
from contexture.sources.sdmx import Artefact, Format, StructureMessageError, split
from contexture.sources.sdmx.formats import same_artefact, splittable
from contexture.sources.sdmx.registry import NotExpressible, Registry, Reply, read_first_supported, read_one_in
from contexture.sources.sdmx.transcoding.transcoder import (
    NotTranscodableError,
    source_formats,
    target_format,
    transcode,
)

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings
    from contexture.sending.size_limits import Exceeded, SizeLimits
    from contexture.sources.sdmx.registry import FusionRegistry, SdmxRegistry

Message = Callable[[], bytes]
RecordSize = Callable[[str, str, int, Message], tuple[int, Message]]
"""From a structure's URN, media type, size and message to the size and value of its record, the key left out."""

_AT_SOME_TIME = RunReference(modified_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC))


def bare(urn: str, media_type: str, size: int, message: Message) -> tuple[int, Message]:
    """A message as it is."""
    return size, message


def enveloped(envelope: StructureEnvelope) -> RecordSize:
    """What a message is in an envelope: with headers, or within an event."""

    def sent_as(urn: str, media_type: str, size: int, message: Message) -> tuple[int, Message]:
        # Ids and times have one length, whatever they say.
        content = StructureContent(urn, media_type, b"", _AT_SOME_TIME)
        headers = envelope.size(envelope.headers(content))
        if not envelope.is_structured:
            return size + headers, message
        event = envelope.event(content, message())
        return len(event) + headers, lambda: event

    return sent_as


WAIT_SECONDS = 15.0
"""How long brokers are waited for: a person is waiting at a command line."""


@dataclass(frozen=True, slots=True)
class SizeReport:
    """What was found out about one publication.

    Attributes:
        loaded: its file.
        skipped: why nothing was measured, where there is nothing to measure.
        limits, sizes: None where it was not measured.
        failure: why it could not be.
        unreachable: the registry was away.
    """

    loaded: LoadedPublication
    skipped: str = ""
    limits: SizeLimits | None = None
    sizes: Sizes | None = None
    failure: str = ""
    unreachable: bool = False

    @property
    def has_too_large(self) -> bool:
        """Whether a structure would stop the producer."""
        return self.sizes is not None and bool(self.sizes.too_large)


def publications(files: Sequence[Path]) -> list[LoadedPublication]:
    """The publications in files and folders, or called so.

    Raises:
        ConfigurationError: one is neither.
    """
    folder = publications_folder()
    if not files:
        return _of_registries_if_any(discover(folder))
    there = {each.publication.name: each for each in discover(folder) if each.publication} if folder.is_dir() else {}
    found: list[LoadedPublication] = []
    for file in files:
        named = None if file.exists() else there.get(str(file))
        found += [named] if named else discover(file)
    return found


def measure_publications(loaded: Sequence[LoadedPublication], progress: Callable[[str], Progress]) -> list[SizeReport]:
    """What every publication selects, measured.

    Args:
        loaded: the publications.
        progress: returns the progress of one of them.
    """
    return [_measured(each, progress) for each in loaded]


def _of_registries_if_any(loaded: list[LoadedPublication]) -> list[LoadedPublication]:
    concerned = [each for each in loaded if each.publication is None or isinstance(each.publication, SdmxPublication)]
    return concerned or loaded


def _measured(loaded: LoadedPublication, progress: Callable[[str], Progress]) -> SizeReport:
    publication = loaded.publication
    if publication is None:
        return SizeReport(loaded)
    if not isinstance(publication, SdmxPublication):
        return SizeReport(loaded, skipped="it reads a context broker: entities that are too large go to quarantine")
    try:
        return _of_registry(loaded, publication, progress(publication.name))
    except ContextureError as error:
        return SizeReport(loaded, failure=str(error), unreachable=isinstance(error, RetriableError))


def _of_registry(loaded: LoadedPublication, publication: SdmxPublication, progress: Progress) -> SizeReport:
    from contexture.records.messages.envelopes import structure_envelope
    from contexture.records.topics.structure_routes import router
    from contexture.sources.sdmx import Selector, select_structures

    media_type = str(publication.source.media_type)
    with _registry(publication) as registry:
        held = registry.list_structures(media_type).urns
        chosen = select_structures([Selector.parse(text) for text in publication.source.select], held)
        topics = router(publication.topics).route(chosen, held=held).topics
        names = sorted({name for each in topics.values() for name in each})
        limits = _limits(publication, names)
        around = structure_envelope(publication)
        sent_as = bare if around is None else enveloped(around)
        forms = Forms.of(media_type, converts=publication.message.allow_lossy)
        bundled = publication.message.bundle == "transaction"
        sizes = measure(registry, topics, forms, limits, progress, sent_as, bundled=bundled)
        return SizeReport(loaded, limits=limits, sizes=sizes)


def _registry(publication: SdmxPublication) -> FusionRegistry | SdmxRegistry:
    from contexture.operations import environment
    from contexture.sources.sdmx.registry import open_registry, registry_connection

    source = publication.source
    connection = registry_connection(source.connection, environment.read_required(source.connection))
    return open_registry(connection, flavour=source.flavour, registrations=source.registrations)


def _limits(publication: Publication, topics: Sequence[str]) -> SizeLimits:
    from contexture.sending import for_structures, structure_topic_config
    from contexture.sending.size_limits import size_limits

    config = structure_topic_config({name: str(value) for name, value in publication.topics.config.items()})
    settings = _kafka(publication.publish.connection)
    return size_limits(
        None if settings is None else for_structures(settings), topics, config, wait_seconds=WAIT_SECONDS
    )


def _kafka(connection_id: str) -> ClientSettings | None:
    from contexture.operations import environment
    from contexture.operations.actions import connection_check

    fields = environment.read(connection_id)
    return None if fields is None else connection_check.settings(fields)


@dataclass(frozen=True, slots=True)
class Forms:
    """The form of a publication, and those that are converted into it.

    Attributes:
        media_type: the form.
        target: what others are converted into; None where nothing is.
    """

    media_type: str
    target: Format | None = None

    @classmethod
    def of(cls, media_type: str, *, converts: bool) -> Forms:
        """The forms of a publication that allows conversions, or does not."""
        return cls(media_type, target_format(media_type) if converts else None)

    @property
    def asked_for(self) -> tuple[str, ...]:
        """Media types, the one that is wanted first."""
        others = source_formats(self.target) if self.target else ()
        return (self.media_type, *(each.media_type for each in others))

    def sent(self, artefact: Artefact) -> tuple[int, Message]:
        """Size and content of the message that would be sent.

        Raises:
            NotTranscodableError: it would have to be converted, and can't be.
        """
        if self.target and artefact.format is not self.target:
            artefact = transcode(artefact, self.target, datetime.now(UTC)).artefact
        size = len(artefact.envelope.before) + artefact.size + len(artefact.envelope.after)
        return size, artefact.message


Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A structure that would stop the producer.

    Attributes:
        urn: of the structure.
        size_bytes: of key and value.
        topics: that it goes to.
        exceeded: the limits that it is above.
    """

    urn: str
    size_bytes: int
    topics: tuple[str, ...]
    exceeded: tuple[Exceeded, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What was measured.

    Attributes:
        selected: how many structures are.
        measured: how many of them were read.
        largest_urn, largest_bytes: the greatest of them.
        too_large: those above a limit.
        inexpressible: reasons, by the URN of what the format can't express.
        gone: selected, and not there any more when they were read.
    """

    selected: int
    measured: int = 0
    largest_urn: str | None = None
    largest_bytes: int = 0
    too_large: tuple[TooLarge, ...] = ()
    inexpressible: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tally:
    """What is found on the way; `waiting`: what is still to be read, by `same_artefact`."""

    waiting: dict[str, str]
    topics: Mapping[str, tuple[str, ...]]
    limits: SizeLimits
    sent_as: RecordSize
    measured: int = 0
    largest: tuple[int, str | None] = (0, None)
    too_large: list[TooLarge] = field(default_factory=list)
    inexpressible: dict[str, str] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)

    def note_bundles(self) -> None:
        """Compares one message of all structures with the client's limit, for each topic."""
        for topic, size in sorted(self.totals.items()):
            # What topics and brokers compare is compressed, and known when a run has made the message.
            exceeded = self.limits.exceeded(size, lambda: 0, ())
            if exceeded:
                self.too_large.append(TooLarge(f"one message of all for {topic}", size, (topic,), exceeded))

    def note(self, urn: str, media_type: str, size: int, message: Message) -> None:
        """Compares one structure with the limits."""
        size, message = self.sent_as(urn, media_type, size, message)
        size += len(urn.encode())
        self.measured += 1
        if size > self.largest[0]:
            self.largest = (size, urn)
        topics = self.topics.get(urn, ())
        self.totals.update(dict.fromkeys(topics, size))
        from contexture.sending.size_limits import compressed_size

        exceeded = self.limits.exceeded(size, lambda: compressed_size(message(), self.limits.compression), topics)
        if exceeded:
            self.too_large.append(TooLarge(urn, size, topics, exceeded))


def measure(
    registry: Registry,
    topics: Mapping[str, tuple[str, ...]],
    forms: Forms,
    limits: SizeLimits,
    progress: Progress = lambda done, of: None,
    sent_as: RecordSize = bare,
    *,
    bundled: bool = False,
) -> Sizes:
    """The sizes of structures, each in the record that would be sent.

    Args:
        registry: that holds them.
        topics: where each structure goes; those that go nowhere are left out.
        forms: in which they are read.
        limits: what they are compared with.
        progress: gets how many were read, and of how many.
        sent_as: says what becomes of a message: `bare`, or `enveloped`.
        bundled: a full run sends all structures of a topic as one message, which is compared with the client's limit.

    Raises:
        RegistryUnavailableError: the registry is away, ill, or answers with less than whole messages.
        ConfigurationError: it refuses us, or answers in another format.
    """
    tally = _Tally({same_artefact(urn): urn for urn in topics}, topics, limits, sent_as)
    with tempfile.TemporaryDirectory(prefix="contexture-sizes-") as folder:
        into = Path(folder) / "reply"
        if splittable(forms.media_type):
            for query in registry.queries(tuple(topics)):
                reply = read_first_supported(registry, forms.asked_for, query, into)
                if reply is not None:
                    _note_all(tally, reply, forms)
                progress(len(topics) - len(tally.waiting), len(topics))
        gone = _one_by_one(registry, tally, forms, into, progress)
    if bundled:
        tally.note_bundles()
    size, urn = tally.largest
    return Sizes(len(topics), tally.measured, urn, size, tuple(tally.too_large), tally.inexpressible, gone)


def _note_all(tally: _Tally, reply: Reply, forms: Forms) -> None:
    for named, artefact in _artefacts(reply):
        urn = tally.waiting.pop(named, None)
        if urn is None:
            continue
        try:
            size, message = forms.sent(artefact)
        except NotTranscodableError as error:
            tally.inexpressible[urn] = error.message
        else:
            tally.note(urn, forms.media_type, size, message)


def _artefacts(reply: Reply) -> Iterator[tuple[str, Artefact]]:
    """What is in a message, by names."""
    with reply.path.open("rb") as stream:
        try:
            for each in split(stream, reply.media_type):
                if each.urn is not None:
                    yield same_artefact(each.urn), each
        except StructureMessageError as error:
            raise RetriableError(
                f"the registry returned a broken message: {error.message}",
                next_step="check the registry's log, and retry",
            ) from error


def _one_by_one(registry: Registry, tally: _Tally, forms: Forms, into: Path, progress: Progress) -> tuple[str, ...]:
    """What no bounded question brought; what can't be split is never asked for otherwise. Gives what is gone."""
    gone: list[str] = []
    for named, urn in tuple(tally.waiting.items()):
        reason = ""
        for reply in read_one_in(registry, forms.asked_for, urn, into):
            if reply is None:
                gone.append(urn)
            elif isinstance(reply, NotExpressible):
                reason = reply.reason
            elif splittable(forms.media_type):
                _note_all(tally, reply, forms)
            else:
                tally.note(urn, reply.media_type, reply.size, into.read_bytes)
                tally.waiting.pop(named)
            if named not in tally.waiting:
                break
        if tally.waiting.pop(named, None) and reason:
            tally.inexpressible[urn] = reason
        progress(len(tally.topics) - len(tally.waiting), len(tally.topics))
    return tuple(gone)
