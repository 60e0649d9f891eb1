"""A structure registry as the records that topics should hold of it: by the rules and routes that runs use."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from contexture.errors import RejectedError, RetriableError
from contexture.kafka import TopicRecord
from contexture.operations.verification.contents import OWN_HEADERS, foreign_headers, parse_time, structure_in_value
from contexture.operations.verification.source_view import (
    Difference,
    ExpectedRecord,
    Met,
    QuarantinedEntity,
    SourceHealth,
)
from contexture.publications import SdmxPublication
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import StructureContent, structure_envelope
from contexture.records.topics.structure_routes import router
from contexture.sources.http.errors import ReplyTooLargeError
from contexture.sources.sdmx import Artefact, Format, Selector, StructureMessageError, Urn, split
from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.reading.steps import SelectedStructures, by_name, transaction_of
from contexture.sources.sdmx.registry import LogResetError, Registry, RegistryConnection, Reply, open_registry
from contexture.sources.sdmx.rules.catalogue import StructureRuleOptions
from contexture.sources.sdmx.rules.checks import check
from contexture.sources.sdmx.urn import is_registration
from contexture.storage.schemas import HEADER_PREFIX, REGISTRY_HEADER

_HASH_BYTES: Final = 32
_REGISTRY_TRANSACTION: Final = REGISTRY_HEADER.name.removeprefix(HEADER_PREFIX)
INEXPRESSIBLE: Final = "inexpressible"


class RegistryView:
    """The structures of one publication, read from its registry.

    A registry's list shows no times, so that times of records are not compared.

    Args:
        publication: whose; its structures are read in a form that can be taken apart, and none is converted.
        registry: a client; who opened it closes it.
    """

    def __init__(self, publication: SdmxPublication, registry: Registry) -> None:
        source = publication.source
        self._publication, self._registry = publication, registry
        self._selectors = [Selector.parse(text) for text in source.select]
        self._media_type = source.media_type or Format.SDMX_ML_2_1.media_type
        self._options = StructureRuleOptions.for_publication(publication)
        self._router = router(publication.topics)
        self._envelope = structure_envelope(publication)
        self._structured = publication.message.envelope == "cloudevents-structured"
        self._pause_seconds = source.pause_milliseconds / 1000
        self._seconds = float(source.walk_deadline_seconds)
        self._topics: Mapping[str, tuple[str, ...]] = {}
        self._changed: frozenset[str] | None = None
        self._hides_registrations = False

    def health(self) -> SourceHealth:
        """As `SourceView.health`; the count is that of the registry's list."""
        self._registry.probe()
        return SourceHealth(datetime.now(UTC), (len(self._selected()),))

    def walk(self) -> Iterator[Met]:
        """As `SourceView.walk`: in bulk, and what the answers lack one by one."""
        self._changed = None
        selected, met = self._selected(), set()
        ends = time.monotonic() + self._seconds
        with _reply_file() as into:
            for query in self._registry.queries(tuple(selected.values())):
                self._wait(ends)
                try:
                    reply = self._registry.read(query, self._media_type, into)
                except ReplyTooLargeError:
                    continue
                for artefact in _artefacts(reply) if isinstance(reply, Reply) else ():
                    name = same_artefact(artefact.urn) if artefact.urn else ""
                    if name in selected and name not in met:
                        met.add(name)
                        yield self._met(name, artefact)
            yield from self._alone({name: urn for name, urn in selected.items() if name not in met}, into, ends)

    def again(self, entities: Sequence[bytes]) -> Iterator[Met]:
        """As `SourceView.again`; a structure that the registry no longer lists does not come."""
        self._changed = None
        selected = self._selected()
        names = [entity.decode() for entity in entities]
        with _reply_file() as into:
            wanted = {name: selected[name] for name in names if name in selected}
            yield from self._alone(wanted, into, time.monotonic() + self._seconds)

    def can_ask(self, entity: bytes) -> bool:
        return _urn(entity) is not None

    def entity_of(self, name: bytes) -> bytes:
        """As `SourceView.entity_of`: one artefact may have a URN in one format and another in the next."""
        return same_artefact(name.decode(errors="replace")).encode()

    def entity_of_key(self, key: bytes) -> bytes | None:
        return self.entity_of(key) if _urn(key) is not None else None

    def is_behind(self, entity: bytes | None, modified_us: int | None, watermark: str | None) -> bool:
        """As `SourceView.is_behind`: by the registry's log, where it has one."""
        del modified_us
        known = transaction_of(watermark)
        if entity is None or known is None or not self._registry.has_log:
            return False
        if self._changed is None:
            self._changed = frozenset(self._changed_since(known))
        name = entity.decode(errors="replace")
        return name in self._changed or (self._hides_registrations and is_registration(name))

    def difference(self, expected: ExpectedRecord, record: TopicRecord) -> Difference | None:
        """As `SourceView.difference`: the hash of the content, then headers."""
        content, _ = structure_in_value(record.value or b"", structured=self._structured)
        if content != expected.content:
            return "body"
        if self._envelope is None:
            return "headers" if foreign_headers(record) else None
        headers = dict(record.headers)
        transaction = (headers.get(_REGISTRY_TRANSACTION) or b"").decode(errors="replace")
        occasion = RunReference(
            registry_transaction=int(transaction) if transaction.isdecimal() else None,
            modified_at=parse_time((headers.get("ce_time") or b"").decode(errors="replace")),
        )
        media_type = expected.event[_HASH_BYTES:].decode() or None
        structure = StructureContent(expected.name.decode(), media_type, expected.event[:_HASH_BYTES], occasion)
        wanted = {name: value.encode() for name, value in self._envelope.constant}
        made = self._envelope.headers(structure)
        wanted |= {name: value for name, value in zip(self._envelope.columns, made, strict=True) if value is not None}
        found = {name: value for name, value in record.headers if not name.startswith(OWN_HEADERS)}
        if occasion.registry_transaction is None and occasion.modified_at is None:
            # Nothing repeats the place in the landing that the id is made of then.
            wanted.pop("ce_id", None), found.pop("ce_id", None)
        return None if wanted == found else "headers"

    def _selected(self) -> Mapping[str, str]:
        """URNs of the selected structures by name, as the registry lists them now; their routes are kept."""
        held = self._registry.list_structures(self._media_type)
        meaning, names = SelectedStructures(self._selectors, (*held.urns, *held.other_names)), by_name(held.urns)
        selected = {name: names[name] for name in meaning.among(names)}
        routed = self._router.route(list(selected.values()), held=list(selected.values()))
        self._topics = {same_artefact(urn): topics for urn, topics in routed.topics.items()}
        return selected

    def _alone(self, urns: Mapping[str, str], into: Path, ends: float) -> Iterator[Met]:
        for name, urn in urns.items():
            self._wait(ends)
            reply = self._registry.read_one(urn, self._media_type, into)
            if reply is None:
                raise RetriableError(
                    f"incomplete response: the registry at {self._registry.address} lists, and then does not hold, "
                    f"{urn}",
                    next_step="verify again: the registry may have changed in the meantime",
                    registry=self._registry.address,
                )
            found = _artefacts(reply) if isinstance(reply, Reply) else ()
            artefact = next((each for each in found if each.urn and same_artefact(each.urn) == name), None)
            if artefact is None:
                yield Met(0, name.encode(), (QuarantinedEntity(name.encode(), None, INEXPRESSIBLE),))
            else:
                yield self._met(name, artefact)

    def _met(self, name: str, artefact: Artefact) -> Met:
        return Met(0, name.encode(), tuple(self._rows(name, artefact)))

    def _rows(self, name: str, artefact: Artefact) -> Iterator[ExpectedRecord | QuarantinedEntity]:
        urn, entity = artefact.urn or "", name.encode()
        refused = [each.rule for each in check(artefact, self._options) if each.severity == "error"]
        if not refused and self._envelope is not None:
            try:
                self._envelope.check(urn, artefact.media_type)
            except RejectedError:
                refused = ["identity"]
        if refused:
            yield QuarantinedEntity(entity, None, refused[0])
            return
        event = artefact.content_hash + (artefact.media_type or "").encode()
        for topic in self._topics.get(name, ()):
            yield ExpectedRecord(topic, urn.encode(), urn.encode(), entity, artefact.content_hash, event, None)

    def _changed_since(self, known: int) -> Iterator[str]:
        try:
            log = self._registry.transactions(known)
        except LogResetError:
            return
        self._hides_registrations = any(each.hides_registrations for each in log.transactions)
        for transaction in log.transactions:
            yield from map(same_artefact, (*transaction.changed, *transaction.deleted))

    def _wait(self, ends: float) -> None:
        if time.monotonic() > ends:
            raise RetriableError(
                f"reading {self._registry.address} takes longer than {self._seconds:g} s",
                next_step="raise source.walk_deadline_seconds",
            )
        time.sleep(self._pause_seconds)


def _artefacts(reply: Reply) -> Iterator[Artefact]:
    """The structures of a reply, as far as it can be taken apart; what is lacking is asked for alone."""
    with reply.path.open("rb") as stream:
        try:
            yield from split(stream, reply.media_type)
        except StructureMessageError:
            return


@contextmanager
def _reply_file() -> Iterator[Path]:
    with TemporaryDirectory(prefix="contexture-") as folder:
        yield Path(folder) / "reply"


def _urn(text: bytes) -> Urn | None:
    try:
        return Urn.parse(text.decode())
    except ValueError:
        return None


@contextmanager
def open_registry_view(publication: SdmxPublication, connection: RegistryConnection) -> Iterator[RegistryView]:
    """Gives the structures of a publication's registry; closed at the end.

    Raises:
        RetriableError: the registry is away.
        ConfigurationError: the connection cannot be used, or the registry refuses it.
    """
    source = publication.source
    with open_registry(connection, flavour=source.flavour, registrations=source.registrations) as registry:
        yield RegistryView(publication, registry)
