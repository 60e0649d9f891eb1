"""The contract with readers in three public forms: JSON Schema, AsyncAPI 3.0 and ODCS 3.0."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from contexture.operations.actions.contract import DIALECT, ObservedContract, ValueShape
from contexture.publications import Publication

MOST_TOPICS: Final = 1_000
"""The largest number of topics that a document names; a publication may have one for each entity."""

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_GUARANTEES: Final = (
    "Readers with isolation.level=read_committed see each record once; records of one key are in the order of the "
    "source. A record without a value says that its key was deleted. Headers may be added; none is removed within a "
    "major version."
)


def json_schema(contract: ObservedContract, publication: Publication) -> dict[str, Any]:
    """Returns a JSON Schema (2020-12) whose `$defs` have the key and the value of each kind."""
    kinds = sorted(contract.values)
    values = {_name(kind): {"title": kind, **contract.values[kind].schema()} for kind in kinds}
    return {
        "$schema": DIALECT,
        "title": f"Records of {publication.name}",
        "description": _description(contract),
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in values],
        "$defs": {"key": contract.key_schema(), **values},
    }


def asyncapi(contract: ObservedContract, publication: Publication) -> dict[str, Any]:
    """Returns an AsyncAPI 3.0.0 document: a channel for each topic, a message for each kind, and the tombstone."""
    kinds = {kind: _name(kind) for kind in sorted(contract.values)}
    topics = sorted(contract.topics)[:MOST_TOPICS]
    messages = {name: _message(contract, contract.values[kind]) for kind, name in kinds.items()}
    if _deletes(contract, publication):
        messages["tombstone"] = _tombstone(contract)
    channels = {topic: _channel(contract, publication, topic, kinds, messages) for topic in topics}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": f"Topics of {publication.name}",
            "version": contract.fingerprint[:12],
            "description": f"{_description(contract)} {_GUARANTEES}",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": {
            f"send-{topic}": {"action": "send", "channel": {"$ref": f"#/channels/{topic}"}} for topic in topics
        },
        "components": {"messages": messages},
    }


def odcs(contract: ObservedContract, publication: Publication) -> dict[str, Any]:
    """Returns an ODCS 3.0.2 data contract: an object for each kind, with its properties."""
    return {
        "apiVersion": "v3.0.2",
        "kind": "DataContract",
        "id": f"contexture-{publication.name}",
        "name": publication.name,
        "version": contract.fingerprint[:12],
        "status": "active",
        "description": {
            "purpose": publication.description or f"Topics that equal {publication.source.title}",
            "usage": _GUARANTEES,
            "limitations": _description(contract),
        },
        "schema": [_table(contract.values[kind]) for kind in sorted(contract.values)],
        "slaProperties": [{"property": "frequency", "value": publication.schedule}] if publication.schedule else [],
    }


FORMS: Final[Mapping[str, Callable[[ObservedContract, Publication], dict[str, Any]]]] = MappingProxyType(
    {"json-schema": json_schema, "asyncapi": asyncapi, "odcs": odcs}
)
"""The forms by their names."""


def _description(contract: ObservedContract) -> str:
    since = f" since {contract.since:%Y-%m-%d %H:%M} UTC" if contract.since else ""
    count = len(contract.topics)
    topics = f", the first {MOST_TOPICS:,} of {count:,} topics" if count > MOST_TOPICS else ""
    return f"Observed in {contract.records:,} records{since}{topics}. A later record may lack a member or have a null."


def _deletes(contract: ObservedContract, publication: Publication) -> bool:
    return contract.tombstones > 0 or publication.source.detect_deletions


def _message(contract: ObservedContract, shape: ValueShape) -> dict[str, Any]:
    media_type = "application/x-ndjson" if shape.lines else shape.media_type
    return {
        "name": shape.kind,
        "title": shape.kind,
        "contentType": media_type,
        "headers": _headers(contract),
        "payload": shape.schema(),
        "bindings": _key_binding(contract),
    }


def _tombstone(contract: ObservedContract) -> dict[str, Any]:
    return {
        "name": "tombstone",
        "title": "Tombstone",
        "summary": "What the key names was deleted in the source; the record has no value.",
        "headers": _headers(contract),
        "payload": {"type": "null"},
        "bindings": _key_binding(contract),
    }


def _headers(contract: ObservedContract) -> dict[str, Any]:
    always = sorted(name for name, count in contract.headers.items() if count == contract.records)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string"} for name, count in sorted(contract.headers.items()) if count},
    }
    return schema | {"required": always} if always else schema


def _key_binding(contract: ObservedContract) -> dict[str, Any]:
    return {"kafka": {"key": contract.key_schema(), "bindingVersion": "0.5.0"}}


def _channel(
    contract: ObservedContract,
    publication: Publication,
    topic: str,
    kinds: Mapping[str, str],
    messages: Mapping[str, Any],
) -> dict[str, Any]:
    here = [name for kind, name in kinds.items() if topic in contract.values[kind].topics]
    here += ["tombstone"] if "tombstone" in messages else []
    return {
        "address": topic,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in here},
        "bindings": {"kafka": _topic_binding(publication)},
    }


def _topic_binding(publication: Publication) -> dict[str, Any]:
    topics = publication.topics
    policy = topics.config.get("cleanup.policy") or ("compact" if topics.keep == "latest" else "delete")
    configuration: dict[str, Any] = {"cleanup.policy": policy.split(",")}
    for name in ("retention.ms", "retention.bytes", "delete.retention.ms", "max.message.bytes"):
        if name in topics.config:
            configuration[name] = int(topics.config[name])
    binding = {"partitions": topics.partitions, "topicConfiguration": configuration, "bindingVersion": "0.5.0"}
    return binding | ({"replicas": topics.replication_factor} if topics.replication_factor else {})


def _table(shape: ValueShape) -> dict[str, Any]:
    schema = shape.schema()
    table: dict[str, Any] = {"name": shape.kind, "logicalType": "object", "physicalType": "topic"}
    if len(shape.topics) == 1:
        table["physicalName"] = next(iter(shape.topics))
    properties = _properties(schema)
    return table | ({"properties": properties} if properties else {"description": shape.media_type})


def _properties(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = set(schema.get("required", ()))
    return [
        {"name": name, **_logical(part), "required": name in required}
        for name, part in sorted(schema.get("properties", {}).items())
    ]


def _logical(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the type of a property; one that was null, or of several types, says so in custom properties."""
    listed = schema.get("type") or [each.get("type") for each in schema.get("anyOf", ())]
    types = [listed] if isinstance(listed, str) else [each for each in listed if isinstance(each, str)]
    known = [each for each in types if each != "null"]
    found: dict[str, Any] = {"physicalType": " or ".join(types) or "any"}
    if len(known) == 1:
        found["logicalType"] = known[0]
    if "null" in types:
        found["customProperties"] = [{"property": "nullable", "value": True}]
    if known == ["object"] and (inner := _properties(schema)):
        found["properties"] = inner
    if known == ["array"] and isinstance(schema.get("items"), Mapping):
        found["items"] = _logical(schema["items"])
    return found


def _name(kind: str) -> str:
    """Returns a kind as a name within documents: letters, digits, point, hyphen and underscore."""
    return _NO_NAME.sub("_", kind).strip("_") or "other"
