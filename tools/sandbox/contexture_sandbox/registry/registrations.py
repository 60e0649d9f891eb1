"""Data registrations of SDMX-REST 2.1: queries by id, by data provider and by context, and their responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import orjson

from contexture.sources.sdmx import Artefact, Format, Urn
from contexture.sources.sdmx.urn import REGISTRATION, is_registration
from contexture_sandbox.context_broker.times import parse_time
from contexture_sandbox.http_server import Answer
from contexture_sandbox.registry.credentials import user_of
from contexture_sandbox.registry.messages import SENDER, container_of, start_tag
from contexture_sandbox.registry.model import Structure
from contexture_sandbox.registry.queries import ALL
from contexture_sandbox.registry.refusals import NOT_IMPLEMENTED, Refusal, bad_request, no_results
from contexture_sandbox.registry.registry import Call, Registry
from contexture_sandbox.registry.selection import resolved

Structures = Mapping[str, Structure]

_CONTEXTS = {"provisionagreement": "ProvisionAgreement", "dataflow": "Dataflow", "datastructure": "DataStructure"}
_MEDIA_TYPES = {media_type: each for each in Format if (media_type := each.registry_media_type)}
_WITHOUT_PATCH = {media_type.removesuffix(".0"): each for media_type, each in _MEDIA_TYPES.items()}
_ANY = frozenset({"", "*/*", "application/*", "application/xml"})
_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas/v"
_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<mes:RegistryInterface xmlns:mes="{schemas}/message" '
    'xmlns:reg="{schemas}/registry"><mes:Header><mes:ID>{id}</mes:ID><mes:Test>false</mes:Test>'
    '<mes:Prepared>{prepared}</mes:Prepared><mes:Sender id="{sender}"/><mes:Receiver id="not_supplied"/></mes:Header>'
    '<mes:QueryRegistrationResponse><reg:StatusMessage status="Success"/>'
)
_END = "</mes:QueryRegistrationResponse></mes:RegistryInterface>"


def answer(registry: Registry, segments: Sequence[str], call: Call) -> Answer:
    """The registrations that a query selects, in the format that the client takes.

    One that is not stored in that format is left out, as one that the format cannot express.

    Args:
        registry: what is queried.
        segments: of the path, after `registration`.
        call: the request.

    Raises:
        Refusal: 400, no such query; 404, nothing is selected; 406, the format is unknown; 501, providers by id.
    """
    with registry.store.lock:
        there = registry.store.current()
        hidden = registry.restricted if registry.restricted and user_of(registry, call) is None else frozenset()
        found = [
            each for each in _selected(segments, there) if each.urn not in hidden and _is_updated(each, call.parameters)
        ]
    if not found:
        raise no_results()
    format_ = _format(call, found)
    shown = [each.renderings[format_] for each in call.share(found) if format_ in each.renderings]
    registry.answers += 1
    body = _message(format_, shown, f"IREF{registry.answers:06}", registry.store.now_ms())
    return Answer(200, body, {"content-type": str(format_.registry_media_type)})


def _selected(segments: Sequence[str], there: Structures) -> list[Structure]:
    registrations = [there[urn] for urn in sorted(there) if is_registration(urn)]
    context, *names = segments or (ALL,)
    if context == "id":
        return [each for each in registrations if [each.first.id] == names]
    if context == "provider":
        agency, provider = (*names, ALL, ALL)[:2]
        if provider != ALL:
            raise Refusal(501, NOT_IMPLEMENTED, "registrations cannot be queried by the id of a provider")
        return [each for each in registrations if _is_about(each, there, "DataProviderScheme", (agency, ALL, ALL))]
    if context != ALL and context not in _CONTEXTS:
        raise bad_request(f"there is no context {context[:80]}")
    wanted = (*names, ALL, ALL, ALL)[:3]
    kinds = _CONTEXTS.values() if context == ALL else (_CONTEXTS[context],)
    return [each for each in registrations if any(_is_about(each, there, kind, wanted) for kind in kinds)]


def _is_about(registration: Structure, there: Structures, kind: str, wanted: Sequence[str]) -> bool:
    """Whether the registration's agreement, or what that refers to, is of the kind and has these names."""
    if set(wanted) == {ALL}:
        return True
    asked = [part.split(",") for part in wanted]
    return any(
        urn.class_name == kind
        and all(
            ALL in names or name in names for names, name in zip(asked, (urn.agency, urn.id, urn.version), strict=True)
        )
        for urn in map(Urn.parse, _reached(registration, there))
    )


def _reached(registration: Structure, there: Structures) -> Iterable[str]:
    reached: dict[str, None] = {}
    waiting = list(registration.first.references)
    while waiting:
        reference = waiting.pop()
        if reference in reached:
            continue
        reached[reference] = None
        urn = resolved(reference, there)
        waiting += there[urn].first.references if urn is not None else ()
    return reached


def _is_updated(registration: Structure, parameters: Mapping[str, str]) -> bool:
    after, before = (_moment_ms(parameters.get(name)) for name in ("updatedAfter", "updatedBefore"))
    changed = registration.modified_ms
    return (after is None or changed > after) and (before is None or changed < before)


def _moment_ms(text: str | None) -> int | None:
    if text is None:
        return None
    moment_us = parse_time(text)
    if moment_us is None:
        raise bad_request("updatedAfter or updatedBefore is no date or time")
    return moment_us // 1000


def _format(call: Call, found: Sequence[Structure]) -> Format:
    for part in call.headers.get("accept", "").split(","):
        media_type = part.strip().lower().replace(" ", "")
        if media_type in _ANY:
            return found[0].first.format
        known = _MEDIA_TYPES.get(media_type) or _WITHOUT_PATCH.get(media_type)
        if known:
            return known
    raise Refusal(406, NOT_IMPLEMENTED, "no format is known of those in the Accept header")


def _message(format_: Format, registrations: Sequence[Artefact], identifier: str, now_ms: int) -> bytes:
    prepared = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if format_.is_json:
        meta = orjson.dumps({"id": identifier, "test": False, "prepared": prepared, "sender": {"id": SENDER}})
        listed = b",".join(each.content for each in registrations)
        if format_ is Format.FUSION_JSON:
            return b'{"meta":%s,"%s":[%s]}' % (meta, REGISTRATION.encode(), listed)
        return b'{"meta":%s,"data":{"registrations":[%s]}}' % (meta, listed)
    schemas = _SCHEMAS + format_.value.rpartition(" ")[2].replace(".", "_")
    head = _HEAD.format(schemas=schemas, id=identifier, prepared=prepared, sender=SENDER)
    results = b"".join(_result(each) for each in registrations)
    return head.encode() + results + _END.encode()


def _result(registration: Artefact) -> bytes:
    container = container_of(registration)
    assert container is not None  # nothing else is stored
    matches = b"true" if container.local == "MetadataResult" else b"false"
    result = start_tag(container) + registration.content + b"</%s>" % container.name
    return b'<reg:QueryResult timeSeriesMatch="%s">%s</reg:QueryResult>' % (matches, result)
