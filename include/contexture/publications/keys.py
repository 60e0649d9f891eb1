"""Which parts of an event's identity its topic, its selection and its key tell apart.

A compacted topic keeps one record for each key, so a key that two identities may share loses one of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contexture.publications import scope
from contexture.publications.delivery import KEY_IDENTITY, KEY_NONE, KEY_TOPIC

if TYPE_CHECKING:
    from contexture.publications.publication import Publication

IDENTITY_FIELDS = frozenset({"service", "service_path", "id", "type"})

_BEFORE_1_10 = re.compile(r"0\.|1\.0?[0-9](\.|$)")

_BY_TOPIC: dict[str, frozenset[str]] = {
    "dm-by-service": frozenset({"service"}),
    "dm-by-service-path": frozenset({"service", "service_path"}),
    "dm-by-entity": IDENTITY_FIELDS,
    "dm-by-attribute": IDENTITY_FIELDS | {"attribute"},
}


def attribute_of_key(publication: Publication) -> str | None:
    """The attribute whose value is the key; None where the key is something else."""
    key = publication.message.key
    known = publication.source.kind != "ngsi" or key in {KEY_IDENTITY, KEY_NONE, KEY_TOPIC} or key in IDENTITY_FIELDS
    return None if known else key


def not_told_apart(publication: Publication) -> frozenset[str]:
    """The parts of the identity in which two events of one topic and one key may still differ."""
    return _identity(publication) - _of_topic(publication) - _of_selection(publication) - _of_key(publication)


def same_for_all_of_a_topic(publication: Publication) -> bool:
    """Whether all events of one topic have the same key."""
    key = publication.message.key
    if key in {KEY_NONE, KEY_TOPIC}:
        return True
    named = key == KEY_IDENTITY or key in IDENTITY_FIELDS
    return named and _of_key(publication) <= _of_topic(publication) | _of_selection(publication)


def _identity(publication: Publication) -> frozenset[str]:
    if publication.topics.data_model != "dm-by-attribute":
        return IDENTITY_FIELDS
    # NGSI-LD has several instances of an attribute, which share a topic.
    return IDENTITY_FIELDS | ({"attribute", "datasetId"} if publication.source.api == "ngsi-ld" else {"attribute"})


def _of_topic(publication: Publication) -> frozenset[str]:
    topics = publication.topics
    # Legacy names write every special character as `_`, so any two identities may share one.
    if topics.naming in {"fixed", "cygnus-legacy"}:
        return frozenset()
    if topics.enable_grouping or topics.enable_name_mappings:
        return frozenset()
    # Lower case, which some releases always had, lets `Car1` and `car1` share a topic; a service is lower case anyway.
    in_lower_case = topics.enable_lowercase or _BEFORE_1_10.match(topics.cygnus_version or "") is not None
    return frozenset({"service"}) if in_lower_case else _BY_TOPIC[topics.data_model]


def _of_selection(publication: Publication) -> frozenset[str]:
    source = publication.source
    # NGSI-LD has no service paths, and an entity may have several types.
    if source.api == "ngsi-ld":
        return frozenset(("service", "service_path"))
    one_path = len(source.service_path) == 1 and not scope.is_wildcard(source.service_path[0])
    fixed = {"service": True, "service_path": one_path, "type": len(source.types) == 1}
    return frozenset(name for name, is_fixed in fixed.items() if is_fixed)


def _of_key(publication: Publication) -> frozenset[str]:
    key = publication.message.key
    if key == KEY_IDENTITY:
        return _identity(publication)
    return frozenset({key}) & IDENTITY_FIELDS
