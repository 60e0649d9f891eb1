"""Sample entities for a preview: from a file, or the first page of a publication's own source."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from contexture.errors import ConfigurationError
from contexture.publications import fields
from contexture.sources.http.transport import Patience
from contexture.sources.ngsi import Broker, BrokerConnection, Dialect, EntityQuery, open_broker
from contexture.sources.ngsi.entity_head import listed

if TYPE_CHECKING:
    from contexture.publications import Publication

_PATIENCE = Patience(attempts=2, first_wait_seconds=0.2, longest_wait_seconds=0.5)
_DEADLINE_SECONDS = 30.0
# A file has no time of arrival; one fixed moment keeps its preview the same each time.
_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SampleEntity:
    """One entity as its source has it, its service path (None: the entity has to say), and when it arrived, UTC."""

    body: bytes
    service_path: str | None
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Samples:
    """Sample entities, where they come from, and the broker's clock where there is one."""

    origin: str
    entities: tuple[SampleEntity, ...]
    reference_time: datetime | None


def from_file(path: Path, publication: Publication) -> Samples:
    """The entities of a JSON file: an array of them, one alone, or one on each line.

    Raises:
        ConfigurationError: the file can't be read, or holds something else.
    """
    try:
        bodies = _bodies(path.read_bytes().removeprefix(BOM_UTF8).strip())
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}", next_step="check the path") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} holds no entities: {error}",
            next_step=f"write a JSON array of entities in the normalized form of {publication.source.api}",
        ) from None
    paths = publication.source.service_path
    service_path = None if len(paths) > 1 or fields.is_wildcard(paths[0]) else paths[0]
    return Samples(str(path), tuple(SampleEntity(body, service_path, _NO_TIME) for body in bodies), None)


def _bodies(content: bytes) -> list[bytes]:
    bodies = listed(content) if content.startswith(b"[") else _alone_or_on_lines(content)
    if not bodies:
        raise ValueError("it is empty")
    return bodies


def _alone_or_on_lines(content: bytes) -> list[bytes]:
    try:
        return [bytes(msgspec.json.decode(content, type=msgspec.Raw))]
    except msgspec.DecodeError:
        decoder = msgspec.json.Decoder(msgspec.Raw)
        return [bytes(raw) for raw in decoder.decode_lines(content)]


def from_broker(connection: BrokerConnection, publication: Publication, limit: int) -> Samples:
    """The first entities that the publication selects, oldest first.

    Raises:
        ContextureError: the broker can't be reached, or refuses.
    """
    entities: list[SampleEntity] = []
    source = publication.source
    with open_broker(connection, source.service, Dialect.of(source), patience=_PATIENCE) as broker:
        reference_time = broker.probe()
        # Scopes of NGSI-LD are selected at once, for an entity may have several.
        paths = (",".join(source.service_path),) if source.api == "ngsi-ld" else source.service_path
        for path in paths:
            entities.extend(_of_path(broker, publication, path, limit - len(entities)))
            if len(entities) >= limit:
                break
    return Samples(connection.address, tuple(entities), reference_time)


def _of_path(broker: Broker, publication: Publication, path: str, limit: int) -> Iterator[SampleEntity]:
    source = publication.source
    query = EntityQuery(
        service_path=path,
        types=source.types,
        ids=source.ids,
        id_pattern=source.id_pattern,
        type_pattern=source.type_pattern,
        mq=source.metadata_query,
        q=source.query,
        attributes=source.attributes,
        georel=source.georel,
        geometry=source.geometry,
        coords=source.coords,
        page_size=limit,
    )
    hint = None if fields.is_wildcard(path) else path
    page = next(broker.walk(query, deadline_seconds=_DEADLINE_SECONDS), None)
    if page is not None:
        yield from (SampleEntity(body, hint, page.received_at) for body in page.entities[:limit])
