"""Cars as a context broker shows them: the recorded car of the sandbox, with other numbers in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from contexture.publications import Publication

SERVICE = "vehicles"
SERVICE_PATH = "/4wheels"
TYPE = "car"
RECEIVED_AT = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
MODIFIED_AT = datetime(2026, 3, 1, 7, 59, tzinfo=UTC)

_SHOWN = MODIFIED_AT.strftime("%Y-%m-%dT%H:%M:%S.000Z")
_TEMPLATE = (
    f'{{"id":"car%d","type":"{TYPE}",'
    '"dateCreated":{"type":"DateTime","value":"2026-01-02T03:04:05.000Z","metadata":{}},'
    f'"dateModified":{{"type":"DateTime","value":"{_SHOWN}","metadata":{{}}}},'
    '"location":{"type":"geo:json","value":{"type":"Point","coordinates":[2.%06d,41.%06d]},"metadata":{}},'
    '"oil_level":{"type":"float","value":%d.%d,"metadata":{}},'
    f'"servicePath":{{"type":"Text","value":"{SERVICE_PATH}","metadata":{{}}}},'
    '"speed":{"type":"float","value":%d.%d,"metadata":{"accuracy":{"type":"Number","value":2}}},'
    '"when":{"type":"DateTime","value":"2026-02-%02dT%02d:04:05.000Z","metadata":{}}}'
).encode()


def cars() -> Iterator[bytes]:
    """Entity bodies without end, the same each time, each with an id and numbers of its own."""
    number = 0
    while True:
        mixed = number * 2_654_435_761 & 0xFFFFFFFF
        yield _TEMPLATE % (
            number,
            mixed % 1_000_000,
            mixed // 7 % 1_000_000,
            mixed % 100,
            mixed // 100 % 10,
            mixed // 1000 % 130,
            mixed // 3 % 10,
            1 + mixed % 28,
            mixed // 28 % 24,
        )
        number += 1


def cars_publication(
    *, name: str = "bench", source: Mapping[str, object] | None = None, **sections: object
) -> Publication:
    """Builds a publication of cars.

    Args:
        name: of the publication.
        source: keys of its source that differ from a full read of one service path.
        sections: further ones of the publication.
    """
    return Publication.model_validate(
        {
            "name": name,
            "source": {
                "kind": "ngsi",
                "connection": "none",
                "service": SERVICE,
                "service_path": SERVICE_PATH,
                **(source or {}),
            },
            # A topic for each of a million cars would be another bench.
            "topics": {"naming": "cygnus", "data_model": "dm-by-service-path", "partitions": 2, "keep": "latest"},
            "message": {"format": "ngsiv2", "key": "identity"},
            **sections,
        }
    )
