"""What the form, the key and the retention of records exclude: a compacted topic needs one identity for each key.

A compacted topic keeps one record for each key, so a key that two identities may share loses one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from contexture.publications import fields
from contexture.publications.delivery import KEY_IDENTITY, KEY_NONE, KEY_TOPIC
from contexture.publications.problems import ModelProblem

if TYPE_CHECKING:
    from contexture.publications.publication import NgsiPublication, Publication

IDENTITY_FIELDS = frozenset({"service", "service_path", "id", "type"})

_BEFORE_1_10 = re.compile(r"0\.|1\.0?[0-9](\.|$)")

_BY_TOPIC: dict[str, frozenset[str]] = {
    "dm-by-service": frozenset({"service"}),
    "dm-by-service-path": frozenset({"service", "service_path"}),
    "dm-by-entity": IDENTITY_FIELDS,
    "dm-by-attribute": IDENTITY_FIELDS | {"attribute"},
}


def attribute_of_key(publication: NgsiPublication) -> str | None:
    """Returns the attribute whose value is the key; None where the key is something else."""
    key = publication.message.key
    return None if key in {KEY_IDENTITY, KEY_NONE, KEY_TOPIC} or key in IDENTITY_FIELDS else key


def indistinguishable_parts(publication: NgsiPublication) -> frozenset[str]:
    """Returns the parts of the identity in which two events of one topic and one key may still differ."""
    return _identity(publication) - _of_topic(publication) - _of_selection(publication) - _of_key(publication)


def is_constant_per_topic(publication: NgsiPublication) -> bool:
    """Whether all events of one topic have the same key."""
    key = publication.message.key
    if key in {KEY_NONE, KEY_TOPIC}:
        return True
    named = key == KEY_IDENTITY or key in IDENTITY_FIELDS
    return named and _of_key(publication) <= _of_topic(publication) | _of_selection(publication)


def _identity(publication: NgsiPublication) -> frozenset[str]:
    if publication.topics.data_model != "dm-by-attribute":
        return IDENTITY_FIELDS
    # NGSI-LD has several instances of an attribute, which share a topic.
    return IDENTITY_FIELDS | ({"attribute", "datasetId"} if publication.source.api == "ngsi-ld" else {"attribute"})


def _of_topic(publication: NgsiPublication) -> frozenset[str]:
    topics = publication.topics
    # Legacy names write every special character as `_`, so any two identities may share one.
    if topics.naming in {"fixed", "cygnus-legacy"}:
        return frozenset()
    if topics.enable_grouping or topics.enable_name_mappings:
        return frozenset()
    # Lower case, which some releases always had, lets `Car1` and `car1` share a topic; a service is lower case anyway.
    in_lower_case = topics.enable_lowercase or _BEFORE_1_10.match(topics.cygnus_version or "") is not None
    return frozenset({"service"}) if in_lower_case else _BY_TOPIC[topics.data_model]


def _of_selection(publication: NgsiPublication) -> frozenset[str]:
    source = publication.source
    # NGSI-LD has no service paths, and an entity may have several types.
    if source.api == "ngsi-ld":
        return frozenset(("service", "service_path"))
    one_path = len(source.service_path) == 1 and not fields.is_wildcard(source.service_path[0])
    fixed = {"service": True, "service_path": one_path, "type": len(source.types) == 1}
    return frozenset(name for name, is_fixed in fixed.items() if is_fixed)


def _of_key(publication: NgsiPublication) -> frozenset[str]:
    key = publication.message.key
    if key == KEY_IDENTITY:
        return _identity(publication)
    return frozenset({key}) & IDENTITY_FIELDS


Findings = Iterator[ModelProblem]

_WITHOUT_CHOICE = {
    "body": ("what is not a JSON object has nothing that could be published", "leave it out: it is always an error"),
    "size": ("Kafka accepts no larger record", "leave it out, or raise `max.message.bytes` in topics.config"),
    "topic-length": ("Kafka accepts no such name", "leave it out, or choose names by `naming` and `data_model`"),
}


def _keyless(publication: NgsiPublication) -> Findings:
    if publication.message.key != KEY_NONE:
        return
    if publication.source.detect_deletions:
        yield ModelProblem(
            ("message", "key"),
            "`key: none` with `detect_deletions: true`: a tombstone without a key deletes nothing",
            "use `key: identity`, or `detect_deletions: false`",
            (("source", "detect_deletions"),),
        )
    if publication.topics.keep == "latest":
        yield ModelProblem(
            ("message", "key"),
            "`key: none` with `keep: latest`: a compacted topic accepts no record without a key",
            "use `key: identity`, or `topics: {keep: history}`",
            (("topics", "keep"),),
        )


def _joined_lines(publication: NgsiPublication) -> Findings:
    if publication.message.format != "cygnus-lines" or publication.batches.batch_size == 1:
        return
    involved = (("message", "format"), ("message", "key"), ("topics",), ("source",))
    size = publication.batches.batch_size
    if publication.topics.keep == "latest":
        message = f"`keep: latest` with cygnus-lines of up to {size} events in one record: no key is that of them all"
        hint = "use `batch_size: 1`, or `topics: {keep: history}`"
        yield ModelProblem(("batches", "batch_size"), message, hint, involved)
    elif not is_constant_per_topic(publication):
        message = f"cygnus-lines of up to {size} events in one record have no common `key: {publication.message.key}`"
        hint = "use `key: topic`, `key: none` (with detect_deletions: false), or `batch_size: 1`"
        yield ModelProblem(("batches", "batch_size"), message, hint, involved)


def _envelope(publication: NgsiPublication) -> Findings:
    message, size = publication.message, publication.batches.batch_size
    if message.envelope == "none":
        return
    if message.format == "cygnus-lines" and size > 1:
        what = f"`envelope: {message.envelope}` is around one event, and up to {size} cygnus-lines share a record"
        involved = (("message", "format"), ("message", "envelope"))
        yield ModelProblem(("batches", "batch_size"), what, "use `batch_size: 1`, or `envelope: none`", involved)


def _replica_key(publication: NgsiPublication) -> Findings:
    key = publication.message.key
    if publication.topics.keep != "latest" or key in {KEY_NONE, KEY_IDENTITY}:
        return
    involved = (("topics",), ("source", "types"), ("source", "service_path"))
    if key != KEY_TOPIC and key not in IDENTITY_FIELDS:
        message = f"`keep: latest` needs one identity for each key; the attribute {key!r} is not part of the identity"
        yield ModelProblem(("message", "key"), message, "use `key: identity`, or `topics: {keep: history}`", involved)
    elif missing := indistinguishable_parts(publication):
        message = (
            f"`keep: latest` needs one identity for each key; with `key: {key}` several could share one: they differ"
        )
        message += f" in {', '.join(sorted(missing))}"
        yield ModelProblem(("message", "key"), message, "use `key: identity`, or `topics: {keep: history}`", involved)


def _key_that_is_not_read(publication: NgsiPublication) -> Findings:
    name, selected = attribute_of_key(publication), publication.source.attributes
    if name is not None and selected and name not in selected:
        yield ModelProblem(
            ("message", "key"),
            f"`key: {name}` is the value of an attribute that is not read: `source.attributes` leaves it out",
            "add it to source.attributes, or use `key: identity`",
            (("source", "attributes"),),
        )


def _rules_without_choice(publication: NgsiPublication) -> Findings:
    for rule, severity in publication.quality.rules.items():
        reason, hint = _WITHOUT_CHOICE.get(rule, ("", ""))
        # Where each attribute is a record of its own, the size of a whole entity may be anything.
        has_choice = rule == "size" and publication.topics.data_model == "dm-by-attribute"
        if reason and severity != "error" and not has_choice:
            yield ModelProblem(("quality", "rules", rule), f"`{rule}: {severity}`: {reason}", hint)


def _dead_letters(publication: Publication) -> Findings:
    publish, involved = publication.publish, (("publish", "on_failure"),)
    if publish.on_failure == "dead-letter":
        if publication.dead_letter_topic in publication.topics.topics:
            message = (
                f"{publication.dead_letter_topic} is a topic of the publication: dead letters need one of their own"
            )
            yield ModelProblem(("publish", "dead_letter_topic"), message, "choose another name", involved)
        return
    for key in ("dead_letter_topic", "max_dead_letters"):
        if getattr(publish, key) != type(publish).model_fields[key].default:
            message = f"`{key}` has no effect with `on_failure: stop`"
            yield ModelProblem(("publish", key), message, "write `on_failure: dead-letter`, or leave it out", involved)


RECORDS_OF_ENTITIES: tuple[Callable[[NgsiPublication], Findings], ...] = (
    _keyless,
    _joined_lines,
    _envelope,
    _replica_key,
    _key_that_is_not_read,
    _rules_without_choice,
    _dead_letters,
)
RECORDS_OF_STRUCTURES: tuple[Callable[[Publication], Findings], ...] = (_dead_letters,)
