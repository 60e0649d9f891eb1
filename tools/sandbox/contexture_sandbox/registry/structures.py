"""Structure queries: from a URL to a structure message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime

from contexture.sources.sdmx import Artefact, Format
from contexture.sources.sdmx.urn import is_registration
from contexture_sandbox.context_broker.times import http_date
from contexture_sandbox.http_server import Answer
from contexture_sandbox.registry import messages
from contexture_sandbox.registry.credentials import user_of
from contexture_sandbox.registry.model import Structure
from contexture_sandbox.registry.queries import Query
from contexture_sandbox.registry.refusals import NOT_IMPLEMENTED, Refusal, no_results
from contexture_sandbox.registry.registry import Call, Registry
from contexture_sandbox.registry.selection import companions, selected
from contexture_sandbox.registry.stubs import fusion_stub, stub

_ANY = frozenset({"", "*/*", "application/*"})
_ML = Format.SDMX_ML_2_1
_WORDS = {
    "sdmx-2.1": Format.SDMX_ML_2_1,
    "sdmx-3.0": Format.SDMX_ML_3_0,
    "sdmx-json": Format.SDMX_JSON_2_0,
    "fusion-json": Format.FUSION_JSON,
}
_MEDIA_TYPES = {
    "application/xml": Format.SDMX_ML_2_1,
    "application/json": Format.SDMX_JSON_2_0,
    "application/vnd.sdmx.json": Format.SDMX_JSON_1_0,
    "application/vnd.sdmx.structure+xml": Format.SDMX_ML_2_1,
    "application/vnd.sdmx.structure+json": Format.SDMX_JSON_2_0,
}


def answer(registry: Registry, query: Query, call: Call) -> Answer:
    """The structures that a query asks for, in the format that the client takes.

    A structure that isn't kept in that format is left out, as one that the format can't express. Fusion-JSON expresses
    every kind: its stubs are made of whatever is kept.

    Raises:
        Refusal: 401, the credentials are wrong; 404, nothing is selected; 406, the format is unknown; 501, history
            without having any.
    """
    query = _dated(registry, query)
    with registry.store.lock:
        there = _visible(registry, query, call)
        found = selected(query, there)
        beside = companions(query, found, there)
        modified_ms = registry.store.last_modified_ms([*found, *beside])
    if not found and not call.empty:
        raise no_results()
    headers = _headers(registry, modified_ms)
    if registry.face == "fmr" and _unchanged(call.headers, modified_ms):
        return Answer(304, b"", headers)
    format_ = format_of(call, found)
    chosen = call.share(_artefacts(query, format_, found, beside))
    registry.answers += 1
    now_ms = registry.store.now_ms()
    body = messages.message(format_, chosen, number=registry.answers, prepared_ms=now_ms)
    return Answer(200, body, {"content-type": format_.media_type, **headers})


def _visible(registry: Registry, query: Query, call: Call) -> dict[str, Structure]:
    """What there is for this client: without credentials what is public."""
    store = registry.store
    held = store.current() if query.as_of_ms is None else store.as_of(query.as_of_ms)
    there = {urn: structure for urn, structure in held.items() if not is_registration(urn)}
    if not registry.restricted or user_of(registry, call) is not None:
        return there
    return {urn: structure for urn, structure in there.items() if urn not in registry.restricted}


def format_of(call: Call, found: Iterable[Structure]) -> Format:
    """The format of the answer, by `format` or the Accept header; without any, the first that the structures have.

    Raises:
        Refusal: 406, the registry has no such format.
    """
    word = call.parameters.get("format")
    if word is not None:
        asked = _WORDS.get(word) or _by_media_type(word)
        if asked is None:
            raise Refusal(406, NOT_IMPLEMENTED, f"no such format: {word[:80]}")
        return asked
    accepted = [part.strip() for part in call.headers.get("accept", "").split(",")]
    for media_type in accepted:
        if media_type.partition(";")[0] in _ANY:
            return next((structure.first.format for structure in found), _ML)
        if known := _by_media_type(media_type):
            return known
    raise Refusal(406, NOT_IMPLEMENTED, "no format is known of those in the Accept header")


def _by_media_type(text: str) -> Format | None:
    parts = [part.strip() for part in text.lower().split(";")]
    plain = ";".join(part for part in parts if not part.startswith("q="))
    by_type = {format_.media_type: format_ for format_ in messages.FORMATS} | _MEDIA_TYPES
    shortened = {media_type.removesuffix(".0"): format_ for media_type, format_ in by_type.items()}
    return by_type.get(plain) or shortened.get(plain)


def _dated(registry: Registry, query: Query) -> Query:
    if query.as_of_ms is None or registry.has_history:
        return query
    if registry.face == "plain":
        raise Refusal(501, NOT_IMPLEMENTED, "asOf is not known here")
    return replace(query, as_of_ms=None)


def _artefacts(
    query: Query, format_: Format, found: Iterable[Structure], beside: Iterable[Structure]
) -> list[Artefact]:
    if query.detail == "stubs" and format_ is Format.FUSION_JSON:
        return [fusion_stub(structure.first) for structure in (*found, *beside)]
    own, others = _rendered(format_, found), _rendered(format_, beside)
    if query.detail == "stubs":
        return [stub(artefact) for artefact in own + others]
    return own + ([stub(artefact) for artefact in others] if query.detail == "referencestubs" else others)


def _rendered(format_: Format, structures: Iterable[Structure]) -> list[Artefact]:
    return [structure.renderings[format_] for structure in structures if format_ in structure.renderings]


def _headers(registry: Registry, modified_ms: int) -> dict[str, str]:
    if registry.face == "plain":
        return {"cache-control": "no-store"}
    return {"last-modified": http_date(modified_ms * 1000)}


def _unchanged(headers: Mapping[str, str], modified_ms: int) -> bool:
    """Whether nothing changed since the moment that the client names; HTTP counts whole seconds."""
    given = headers.get("if-modified-since")
    if given is None:
        return False
    try:
        return modified_ms // 1000 <= parsedate_to_datetime(given).timestamp()
    except ValueError:
        return False
