"""What NGSI-LD excludes: brokers that don't speak it, and what a selection in NGSIv2's words can't mean there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from contexture.publications.checks.records import Findings
from contexture.publications.problems import ModelProblem

if TYPE_CHECKING:
    from contexture.publications.publication import NgsiPublication

_SPEAKS_NGSIV2_ALONE = frozenset(("orion",))
_SPEAKS_LINKED_DATA_ALONE = frozenset(("scorpio", "stellio"))
_EVERYTHING = frozenset(("/", "/#"))
_OWN_TIMES = {"modifiedAt", "createdAt", "dateModified", "dateCreated"}
_RELATIONS = ("near;", "coveredBy", "within", "contains", "overlaps", "intersects", "equals", "disjoint")

_CONDITION = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|[^;|()"])+""")
_PARTS = re.compile(r"\s*+(?P<not>!?)\s*+(?P<name>[^=!<>~\s]*+)\s*+(?:(?P<sign>==|!=|>=|<=|>|<|!?~=)\s*(?P<value>.*))?")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_BARE_TEXT = re.compile(r"(?!(?:true|false)$)[^\W\d_][\w -]*")
_PATTERN_SIGNS = ("~=", "!~=")


def _interface(publication: NgsiPublication) -> Findings:
    source = publication.source
    involved = (("source", "api"),)
    if source.api == "ngsiv2" and source.context is not None:
        yield ModelProblem(("source", "context"), "`context` needs `api: ngsi-ld`", "leave it out", involved)
    foreign = _SPEAKS_LINKED_DATA_ALONE if source.api == "ngsiv2" else _SPEAKS_NGSIV2_ALONE
    if source.flavour in foreign:
        other = "ngsi-ld" if source.api == "ngsiv2" else "ngsiv2"
        message = f"`flavour: {source.flavour}` does not speak `api: {source.api}`"
        yield ModelProblem(("source", "flavour"), message, f"write `api: {other}`, or leave the flavour out", involved)


def _scopes(publication: NgsiPublication) -> Findings:
    source = publication.source
    everything = [path for path in source.service_path if path in _EVERYTHING]
    if source.api == "ngsi-ld" and everything and len(source.service_path) > 1:
        message = f"the scope {everything[0]} selects everything, also what has no scope"
        yield ModelProblem(("source", "service_path"), message, "leave the others out", (("source", "api"),))


def _notified_scopes(publication: NgsiPublication) -> Findings:
    source = publication.source
    if source.api == "ngsi-ld" and source.mode == "notifications" and not _EVERYTHING.intersection(source.service_path):
        # A full run would not find what another scope's notification brought, and would take it for gone.
        message = "`mode: notifications` cannot distinguish scopes"
        involved = (("source", "api"), ("source", "mode"))
        yield ModelProblem(("source", "service_path"), message, "leave it out, or write `mode: changes`", involved)


def _geography(publication: NgsiPublication) -> Findings:
    source = publication.source
    if source.api != "ngsi-ld":
        return
    involved = (("source", "api"),)
    if source.geometry == "box":
        message = "`geometry: box` has no counterpart in NGSI-LD"
        yield ModelProblem(("source", "geometry"), message, "write it as a polygon of its corners", involved)
    if source.georel is not None and not source.georel.startswith(_RELATIONS):
        message = f"`georel: {source.georel}` has no counterpart in NGSI-LD"
        yield ModelProblem(("source", "georel"), message, "use near;maxDistance:METRES, within or intersects", involved)


def _conditions(publication: NgsiPublication) -> Findings:
    source = publication.source
    if source.api != "ngsi-ld":
        return
    for key, text in (("query", source.query), ("metadata_query", source.metadata_query)):
        for condition in _CONDITION.findall(text or ""):
            if problem := _problem(condition.strip()):
                message, hint = problem
                yield ModelProblem(("source", key), f"{condition.strip()!r}: {message}", hint, (("source", "api"),))


def _problem(condition: str) -> tuple[str, str] | None:
    """Returns what NGSI-LD has no words for in one condition, and what to write instead."""
    parts = _PARTS.fullmatch(condition)
    if parts is None:
        return None
    name, sign, value = parts["name"], parts["sign"], parts["value"] or ""
    if name in _OWN_TIMES:
        return f"a walk of the source needs {name} for itself", "leave it out"
    if parts["not"]:
        return "NGSI-LD cannot query what an entity lacks", "leave it out, and filter in the consumer"
    unquoted = [one.strip() for one in _QUOTED.sub("", value).split(",")]
    if sign not in _PATTERN_SIGNS and any(one[:1] == "'" or _BARE_TEXT.fullmatch(one) for one in unquoted):
        text = value.split(",")[0].strip().strip("'")
        return "NGSI-LD writes texts in double quotes", f'write {name}{sign}"{text}"'
    return None


def linked_data_notes(publication: NgsiPublication) -> Iterator[ModelProblem]:
    """Yields what the reader of a file should know about its NGSI-LD source."""
    source = publication.source
    if source.api != "ngsi-ld":
        return
    if source.context is None:
        message = "without `context` a broker writes the names of types and attributes as full addresses"
        hint = "topics would be named by them: give the URL of the @context they were made with"
        yield ModelProblem(("source", "api"), message, hint)
    if source.attributes:
        message = "with NGSI-LD `attributes` also selects: an entity that has none of them is not read"
        yield ModelProblem(("source", "attributes"), message, "it would count as deleted when it loses the last one")
    if publication.topics.data_model == "dm-by-service-path" and publication.topics.naming != "fixed":
        message = "NGSI-LD has no service paths: `dm-by-service-path` names one topic for the whole tenant"
        yield ModelProblem(("topics", "data_model"), message, "scopes are the attribute `scope` of each entity")


LINKED_DATA_CHECKS: tuple[Callable[[NgsiPublication], Findings], ...] = (
    _interface,
    _scopes,
    _notified_scopes,
    _geography,
    _conditions,
)
