"""Warnings about a publication: values that are accepted, but not used as the file has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contexture.publications import fields
from contexture.publications.checks import records
from contexture.publications.checks.ngsi import linked_data_notes
from contexture.publications.cygnus_names import GroupingRules
from contexture.publications.delivery import KEY_NONE
from contexture.publications.problems import ModelProblem
from contexture.publications.publication import NgsiPublication, Publication
from contexture.publications.topics import CYGNUS_2_19

_REPLACED = {
    "broker_list": "the brokers are `bootstrap.servers` of the Airflow connection named by `publish.connection`",
    "zookeeper_endpoint": "Kafka 4 has no ZooKeeper; topics are made through the brokers",
}


def find_warnings(data: object, publication: Publication) -> Iterator[ModelProblem]:
    """Yields what the reader of the file should know, as findings that are no errors."""
    yield from _cygnus_parameters(publication)
    if isinstance(publication, NgsiPublication):
        yield from _service_in_lower_case(data, publication)
        yield from _covered_paths(data, publication)
        yield from _vague_deletions(publication)
        yield from _key_by_value(publication)
        yield from _rules_left_out(publication)
        yield from linked_data_notes(publication)


def _cygnus_parameters(publication: Publication) -> Iterator[ModelProblem]:
    for key, replacement in _REPLACED.items():
        if getattr(publication.publish, key) is not None:
            yield ModelProblem(("publish", key), f"`{key}` of Cygnus has no effect", replacement, at_key=True)


def _service_in_lower_case(data: object, publication: NgsiPublication) -> Iterator[ModelProblem]:
    source = data.get("source") if isinstance(data, Mapping) else None
    written = source.get("service") if isinstance(source, Mapping) else None
    used = publication.source.service
    if written is not None and written != used:
        message = f"the service {written!r} is read as {used!r}"
        hint = "brokers treat a service as lower case; topics are named after it, so both must agree"
        yield ModelProblem(("source", "service"), message, hint)


def _covered_paths(data: object, publication: NgsiPublication) -> Iterator[ModelProblem]:
    source = data.get("source") if isinstance(data, Mapping) else None
    written = source.get("service_path") if isinstance(source, Mapping) else None
    used = publication.source.service_path
    for path in dict.fromkeys(map(fields.check_service_path, written if isinstance(written, list) else ())):
        if path not in used:
            message = f"the service path {path} lies inside another one: it is read once, with that one"
            yield ModelProblem(("source", "service_path"), message, "leave it out")


def _vague_deletions(publication: NgsiPublication) -> Iterator[ModelProblem]:
    missing = records.indistinguishable_parts(publication)
    if publication.source.detect_deletions and publication.message.key != KEY_NONE and missing:
        message = f"a tombstone with `key: {publication.message.key}` doesn't say which identity is gone"
        hint = f"they may differ in {', '.join(sorted(missing))}: use `key: identity`, or `detect_deletions: false`"
        yield ModelProblem(("message", "key"), message, hint)


def _key_by_value(publication: NgsiPublication) -> Iterator[ModelProblem]:
    name = records.attribute_of_key(publication)
    if name is not None:
        message = f"`key: {name}` is the value of the attribute {name!r}"
        hint = "entities without it go to quarantine; when it changes, later records may go to another partition"
        yield ModelProblem(("message", "key"), message, hint)


def _rules_left_out(publication: NgsiPublication) -> Iterator[ModelProblem]:
    topics = publication.topics
    if topics.grouping_rules_content is None or topics.compat != CYGNUS_2_19:
        return
    if dropped := GroupingRules.from_json(topics.grouping_rules_content, compat=True).dropped:
        rules = f"rule {dropped[0]} is" if len(dropped) == 1 else f"rules {', '.join(map(str, dropped))} are"
        message = f"grouping {rules} left out, as Cygnus does: it groups nothing"
        hint = "each lacks a member, has an empty one, or a path without a leading slash; correct or remove it"
        yield ModelProblem(("topics", "grouping_rules"), message, hint)
