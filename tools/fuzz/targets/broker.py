"""What a context broker sends: entities in three forms, notifications, and the headers of these."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from contexture.events import content_hash
from contexture.publications import NgsiPublication
from contexture.records.messages.rendering import Renderer, renderer
from contexture.sources.ngsi.entity import ParsedEntity, parse_entity
from contexture.sources.ngsi.entity_head import read_entity_head, read_linked_data_head
from contexture.sources.ngsi.history import entity_versions, parse_entity_history
from contexture.sources.ngsi.notifications.notification import NotificationError, read_headers
from contexture.sources.ngsi.notifications.parsing import parse_notification, read_notification
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity
from tools.fuzz.inputs import samples, with_samples
from tools.fuzz.target import Target, request, taken_apart

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_NOW_MS = 1_772_366_400_000
_WORDS = (b"id", b"type", b"value", b"metadata", b"dateModified", b"dateCreated", b"dateExpires", b"servicePath")
_LINKED_WORDS = (b"@context", b"@value", b"datasetId", b"modifiedAt", b"deletedAt", b"object", b"languageMap", b"scope")

ENTITY = (
    b'{"id":"car1","type":"car","speed":{"type":"Number","value":112.9,"metadata":{"accuracy":{"type":"Number",'
    b'"value":2}}},"location":{"type":"geo:json","value":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}},'
    b'"seen":{"type":"DateTime","value":"2026-01-01T00:00:00.000Z"},'
    b'"dateModified":{"type":"DateTime","value":"2026-01-01T00:00:00.000Z"},'
    b'"servicePath":{"type":"Text","value":"/4wheels"}}'
)
LINKED_ENTITY = (
    b'{"@context":"https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld","id":"urn:ngsi-ld:car:1",'
    b'"type":["car","vehicle"],"scope":["/a","/b"],"speed":[{"type":"Property","value":112.9,"unitCode":"KMH",'
    b'"observedAt":"2026-01-01T00:00:00Z","datasetId":"urn:d:1","accuracy":{"type":"Property","value":2}},'
    b'{"type":"Property","value":5}],"owner":{"type":"Relationship","object":"urn:ngsi-ld:person:1"},'
    b'"name":{"type":"LanguageProperty","languageMap":{"en":"a","fr":"b"}},"createdAt":"2026-01-01T00:00:00Z",'
    b'"modifiedAt":"2026-01-01T00:00:00Z"}'
)
HISTORY = (
    b'{"id":"urn:ngsi-ld:car:1","type":"car","speed":[{"type":"Property","value":1,"modifiedAt":"2026-01-01T00:00:00Z"}'
    b',{"type":"Property","value":"urn:ngsi-ld:null","modifiedAt":"2026-01-01T00:00:01Z","datasetId":"urn:d:1"}]}'
)
LEGACY = (
    b'{"subscriptionId":"51c0ac9ed714fb3b37d7d5a8","originator":"localhost","contextResponses":[{"contextElement":'
    b'{"id":"car1","type":"car","isPattern":"false","attributes":[{"name":"speed","type":"float","value":"112.9",'
    b'"metadatas":[{"name":"accuracy","type":"Number","value":"2"}]}]},"statusCode":{"code":"200"}}]}'
)
_HEADERS = {
    "Content-Type": "application/json; charset=utf-8",
    "Fiware-Service": "vehicles",
    "Fiware-ServicePath": "/4wheels",
    "Fiware-Correlator": "d8cc7a8a-e56d-11f1; cbnotif=1",
    "Ngsiv2-AttrsFormat": "normalized",
}
_LINKED_HEADERS = {
    "Content-Type": "application/ld+json",
    "NGSILD-Tenant": "vehicles",
    "Link": '<https://example.org/c.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"',
}


def _published(api: str, form: str) -> Renderer:
    source = {"kind": "ngsi", "api": api, "connection": "broker", "service": "vehicles", "types": ["car"]}
    settings = {"name": "cars", "schedule": None, "source": source, "message": {"format": form, "key": "identity"}}
    return renderer(NgsiPublication.model_validate(settings))


_RENDERERS = {
    "ngsiv2": tuple(_published("ngsiv2", form) for form in ("ngsiv2", "ngsiv1", "cygnus-lines", "ngsi-ld")),
    "ngsi-ld": tuple(_published("ngsi-ld", form) for form in ("ngsiv2", "ngsi-ld")),
}


def _judged(parsed: ParsedEntity, api: str) -> object:
    """What the rules say; what they let pass is rendered in every form."""
    linked_data = api == "ngsi-ld"
    found = check_entity(parsed, EntityRuleOptions(linked_data=linked_data, stale_after_seconds=3600), received_at=NOW)
    content_hash(parsed.entity)
    if not any(violation.severity == "error" for violation in found):
        for render in _RENDERERS[api]:
            render(parsed.identity, parsed.entity, None, _NOW_MS, parsed.linked_data)
    return tuple(sorted({violation.rule for violation in found}))


def _ngsiv2(body: bytes) -> object:
    read_entity_head(body, None)
    return _judged(parse_entity(body, service="vehicles", attribute_times=True), "ngsiv2")


def _linked_data(body: bytes) -> object:
    read_linked_data_head(body)
    return _judged(parse_entity(body, service="vehicles", form="ngsi-ld", attribute_times=True), "ngsi-ld")


def _history(body: bytes) -> object:
    evolution = parse_entity_history(body)
    return len(list(entity_versions(evolution, evolution, whole=True))) + len(
        list(entity_versions(evolution, None, whole=False))
    )


def _notification(data: bytes) -> object:
    _, headers, body = taken_apart(data)
    read_notification(headers, body, default_service="")
    events = parse_notification(headers, body, received_at=NOW)
    return tuple(sorted({event.operation for event in events})), min(len(events), 3)


def _headers(data: bytes) -> object:
    _, headers, _ = taken_apart(data)
    sender = read_headers(headers)
    return sender.legacy, sender.context is None, len(sender.service_paths) > 1


def _ngsiv2_inputs() -> Mapping[str, bytes]:
    listed = {"entity": ENTITY, "bare": b'{"id":"a","type":"t"}'}
    return with_samples(listed, "ngsi/*/*/v2-normalized.json", "ngsi/*/*/v2-keyvalues.json")


def _linked_data_inputs() -> Mapping[str, bytes]:
    return with_samples({"entity": LINKED_ENTITY}, "ngsi/*/*/ld-*.jsonld")


def _notification_inputs() -> Mapping[str, bytes]:
    own = {
        "ngsiv2": request(_HEADERS, b'{"subscriptionId":"5","data":[' + ENTITY + b"," + ENTITY + b"]}"),
        "paths": request({**_HEADERS, "Fiware-ServicePath": "/a,/b"}, b'{"data":[' + ENTITY + b"," + ENTITY + b"]}"),
        "simplified": request(_HEADERS, ENTITY),
        "deleted": request(
            _HEADERS, b'{"data":[{"id":"a","type":"t","alterationType":{"type":"Text","value":"entityDelete"}}]}'
        ),
        "legacy": request({**_HEADERS, "Ngsiv2-AttrsFormat": "legacy"}, LEGACY),
        "ngsi-ld": request(
            _LINKED_HEADERS,
            b'{"id":"urn:n:1","type":"Notification","subscriptionId":"urn:s:1","notifiedAt":"2026-01-01T00:00:00Z",'
            b'"data":[' + LINKED_ENTITY + b"]}",
        ),
    }
    for content in samples("orion/notifications.json").values():
        for number, one in enumerate(json.loads(content)):
            own[f"orion {number}"] = request(one["headers"], json.dumps(one["body"]).encode())
    return own


def _header_inputs() -> Mapping[str, bytes]:
    return {"ngsiv2": request(_HEADERS), "ngsi-ld": request(_LINKED_HEADERS)}


_HEADER_WORDS = (b"/", b"/#", b",", b"/a" * 11, b'charset="', b"keyValues", b"legacy", b"json-ld#context", b"Link: <")

TARGETS = (
    Target("ngsi-v2", "entities of NGSIv2", _ngsiv2, _ngsiv2_inputs, "json", _WORDS),
    Target("ngsi-ld", "entities of NGSI-LD", _linked_data, _linked_data_inputs, "json", _WORDS + _LINKED_WORDS),
    Target("ngsi-history", "entities of NGSI-LD's temporal interface", _history, lambda: {"history": HISTORY}, "json"),
    Target(
        "notifications",
        "bodies and headers of notifications",
        _notification,
        _notification_inputs,
        "request",
        _WORDS + _LINKED_WORDS + _HEADER_WORDS,
        (NotificationError,),
    ),
    Target(
        "headers",
        "headers of notifications",
        _headers,
        _header_inputs,
        "lines",
        _HEADER_WORDS,
        (NotificationError,),
    ),
)
