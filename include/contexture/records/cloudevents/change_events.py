"""The CloudEvents attributes of a change of an entity or a structure: the same in both content modes.

The page docs/reference/cloudevents.md documents them for consumers, who deduplicate by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from urllib.parse import quote

from contexture.events import AttributeName, ContextIdentity, Operation, StructureIdentity, identity_key
from contexture.records.cloudevents.record import SPEC_VERSION
from contexture.records.cloudevents.values import timestamp

CONTEXT_ATTRIBUTES = ("id", "source", "type", "subject", "time", "entitytype", "attributename", "datasetid")
"""The attributes by which two changes of entities differ."""

_ID_BYTES = 16
_SDMX_ML = "http://www.sdmx.org/resources/sdmxml/schemas/{}/message"
_SDMX_JSON = (
    "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/{}/structure-message/tools/schemas/{}/"
    "sdmx-json-structure-schema.json"
)
STRUCTURE_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "application/vnd.sdmx.structure+xml;version=1.0": _SDMX_ML.format("v1_0"),
        "application/vnd.sdmx.structure+xml;version=2.0": _SDMX_ML.format("v2_0"),
        "application/vnd.sdmx.structure+xml;version=2.1": _SDMX_ML.format("v2_1"),
        "application/vnd.sdmx.structure+xml;version=3.0.0": _SDMX_ML.format("v3_0"),
        "application/vnd.sdmx.structure+xml;version=3.1.0": _SDMX_ML.format("v3_1"),
        "application/vnd.sdmx.structure+json;version=1.0.0": _SDMX_JSON.format("master", "1.0"),
        "application/vnd.sdmx.structure+json;version=2.0.0": _SDMX_JSON.format("develop", "2.0.0"),
        "application/vnd.sdmx.structure+json;version=2.1.0": "https://json.sdmx.org/2.1/sdmx-json-structure-schema.json",
    }
)
"""`dataschema` by media type: the namespace or schema that such messages name. Other media types have none."""


@dataclass(frozen=True, slots=True)
class RunReference:
    """The part of an id that distinguishes changes with the same content.

    Attributes:
        registry_transaction: the registry's transaction, where there is one; it counts before the others.
        modified_at: when the change happened by the source's clock; for a deletion, when what is deleted was last
            changed.
        otherwise: a text for sources that have neither, which a retry repeats.
    """

    registry_transaction: int | None = None
    modified_at: datetime | None = None
    otherwise: str = ""

    def text(self) -> str:
        if self.registry_transaction is not None:
            return f"t{self.registry_transaction}"
        if self.modified_at is not None:
            return f"m{timestamp(self.modified_at) or self.modified_at.isoformat()}"
        return f"o{self.otherwise}"


def event_id(operation: Operation, identity: bytes, content_hash: bytes, occasion: RunReference) -> str:
    """Returns the id of a change: the same whenever it is sent, and another when content comes back later.

    Args:
        operation: of the change.
        identity: the identity key.
        content_hash: of the content, or of what is deleted.
        occasion: what else distinguishes the change.
    """
    parts = (operation.encode(), occasion.text().encode(), identity, content_hash)
    return blake2b(b"\n".join(parts), digest_size=_ID_BYTES).hexdigest()


def context_source(connection: str, identity: ContextIdentity) -> str:
    """Returns the `source` of an entity's events: the connection to its broker, its service and its service path.

    >>> context_source("context_broker", ContextIdentity("vehicles", "/4wheels", "car1", "car"))
    '/ngsi/context_broker/vehicles/4wheels'
    """
    return _context_source(connection, identity.service, identity.service_path)


def context_values(
    operation: Operation,
    identity: ContextIdentity,
    attribute: AttributeName | None,
    *,
    connection: str,
    content_hash: bytes,
    occasion: RunReference,
    key: bytes | None = None,
) -> tuple[str | None, ...]:
    """Returns the values of `CONTEXT_ATTRIBUTES` for the change of an entity, or of one attribute of it.

    Args:
        operation, content_hash, occasion: as of `event_id`.
        identity: of the entity.
        attribute: the attribute, where the event shows one alone.
        connection: id of the connection to the source.
        key: the identity key, where it is known already.
    """
    what = "entity" if attribute is None else "attribute"
    # A deletion has no time because an absence is noticed later, and a time must never mean two things.
    happened = occasion.modified_at if operation == "upsert" else None
    return (
        event_id(operation, key or identity_key(identity, attribute), content_hash, occasion),
        context_source(connection, identity),
        f"contexture.ngsi.{what}.{operation}",
        identity.id,
        timestamp(happened) if happened is not None else None,
        identity.type or None,
        attribute.name if attribute is not None else None,
        attribute.dataset_id if attribute is not None else None,
    )


def structure_attributes(
    operation: Operation,
    identity: StructureIdentity,
    *,
    connection: str,
    content_hash: bytes,
    occasion: RunReference,
    media_type: str | None = None,
) -> dict[str, str]:
    """Returns all attributes of the change of a structure.

    Args:
        operation, content_hash: as of `event_id`.
        identity: of the structure.
        connection: id of the connection to the registry.
        occasion: the registry's transaction and its time, or what else distinguishes the change. A registry reports
            when deletions happened, so `modified_at` is the time of the transaction for them too.
        media_type: of the data; None for a deletion, which has none.
    """
    happened = occasion.modified_at
    attributes = {
        "specversion": SPEC_VERSION,
        "id": event_id(operation, identity_key(identity), content_hash, occasion),
        "source": f"/sdmx/{quote(connection, safe='')}",
        "type": f"contexture.sdmx.structure.{operation}",
        "subject": identity.urn,
        "time": timestamp(happened) if happened is not None else None,
        "datacontenttype": media_type,
        "dataschema": STRUCTURE_SCHEMAS.get(media_type) if media_type is not None else None,
    }
    return {name: value for name, value in attributes.items() if value is not None}


# A run has few services and paths, and many entities.
@lru_cache(4096)
def _context_source(connection: str, service: str, service_path: str) -> str:
    names = (quote(connection, safe=""), quote(service, safe=""))
    return f"/ngsi/{'/'.join(names)}{quote(service_path, safe='/')}"
