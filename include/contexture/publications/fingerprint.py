"""The fingerprint of a publication: it changes when, and only when, records or their destinations may change.

A key at its default is left out, so a key that a later version adds changes no fingerprint of today.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from contexture.publications.publication import Publication

# Every key of the model stands in one of these two tables, with the reason; a test insists.
CHANGES_RECORDS: Mapping[str, str] = {
    "name": "names the ledger and the state: another name is another publication",
    "source.kind": "another kind of source has other content",
    "source.connection": "another source has other content",
    "source.api": "another interface writes entities in another way",
    "source.context": "names of types and attributes follow from it",
    "source.service": "part of the identity and of topic names",
    "source.service_path": "selects what is published",
    "source.types": "selects what is published",
    "source.ids": "selects what is published",
    "source.id_pattern": "selects what is published",
    "source.type_pattern": "selects what is published",
    "source.query": "selects what is published",
    "source.metadata_query": "selects what is published",
    "source.attributes": "selects what a record holds",
    "source.georel": "selects what is published",
    "source.geometry": "selects what is published",
    "source.coords": "selects what is published",
    "source.select": "selects what is published",
    "source.flavour": "another interface may write structures in another way",
    "source.media_type": "the form in which structures arrive",
    "source.registrations": "selects what is published",
    "source.detect_deletions": "decides whether there are tombstones",
    "topics.naming": "names topics",
    "topics.cygnus_version": "names topics",
    "topics.data_model": "names topics and decides what one record holds",
    "topics.enable_lowercase": "names topics",
    "topics.compat": "names topics",
    "topics.enable_grouping": "names topics",
    "topics.grouping_rules_content": "names topics",
    "topics.enable_name_mappings": "names topics",
    "topics.name_mappings_content": "names topics",
    "topics.topics": "names topics",
    "topics.routes": "names topics",
    "topics.partitions": "decides the partition of a key",
    "topics.keep": "a topic that becomes a replica must hold everything again",
    "batches.batch_size": "decides which events share a record",
    "batches.batch_timeout": "decides which events share a record",
    "message.format": "the value of a record",
    "message.envelope": "the value and headers of a record",
    "message.key": "the key of a record",
    "message.media_type": "the value of a record",
    "message.allow_lossy": "the value of a record",
    "quality.coerce_numbers": "the value of a record",
    "publish.connection": "the cluster that records go to",
}

CHANGES_NO_RECORD: Mapping[str, str] = {
    "description": "for people",
    "schedule": "when, not what",
    "source.mode": "how much is read at once; what differs from the target stays the same",
    "source.notifier_connection": "who may notify, not what",
    "source.shrink_limit.share": "a guard that stops a run",
    "source.shrink_limit.count": "a guard that stops a run",
    "source.shrink_limit.beyond": "a guard that stops a run",
    "source.shrink_limit.answer_hours": "a guard that stops a run",
    "source.page_size": "how it is read, not what",
    "source.overlap_seconds": "how it is read, not what",
    "source.walk_deadline_seconds": "a guard that stops a run",
    "source.suppress_unchanged": "which repeats are sent, not what they hold; outbox ids cover it",
    "source.parallel_readers": "how it is read, not what",
    "source.pause_milliseconds": "how it is read, not what",
    "topics.grouping_rules": "where the rules lie; their contents count",
    "topics.name_mappings": "where the mappings lie; their contents count",
    "topics.collision": "what is held back; outbox ids cover it",
    "topics.replication_factor": "storage of topics that are made",
    "topics.config": "storage of topics that are made",
    "topics.max_new_topics": "a guard that stops a run",
    "topics.max_broker_partitions": "a guard that stops a run",
    "batches.batch_ttl": "when it is sent again, not what",
    "batches.batch_retry_intervals": "when it is sent again, not what",
    "publish.shards": "who sends a record, not where to; outbox ids cover it",
    "publish.transaction_records": "what becomes visible together, not what is sent",
    "publish.transactional_id_prefix": "who sends a record, not where to",
    "publish.on_failure": "what happens to records that can't be sent",
    "publish.dead_letter_topic": "where records go that can't be sent",
    "publish.max_dead_letters": "a guard that stops a run",
    "publish.broker_wait_seconds": "how long a sender waits",
    "publish.broker_list": "without effect",
    "publish.zookeeper_endpoint": "without effect",
    "quality.rules": "what is held back; outbox ids cover it",
    "quality.expectations": "what stops a run",
    "quality.max_quarantined_share": "what stops a run",
    "quality.minimum_entities": "what stops a run",
    "quality.maximum_entities": "what stops a run",
    "quality.required_attributes": "what is held back or stops a run",
    "quality.attribute_types": "what is held back or stops a run",
    "quality.ranges": "what is held back or stops a run",
    "quality.fresh_within_seconds": "what stops a run",
    "quality.allowed_values": "what is held back",
    "quality.stale_after_seconds": "what is held back",
    "quality.syntax": "what is held back",
    "quality.allow_intervals": "what is held back",
    "quality.models": "what is held back; outbox ids cover it",
    "quality.model_documents": "what is held back; outbox ids cover it",
    "resync.on_startup": "when, not what",
    "resync.on_config_change": "when, not what",
    "retention.archive_days": "how long runs are kept",
    "notify.mail": "who hears of failures",
    "notify.notifiers": "who hears of failures",
    "notify.published_within_minutes": "who hears of delays",
}

# In these lists the order says nothing.
_UNORDERED = frozenset(
    {"source.service_path", "source.types", "source.ids", "source.attributes", "source.select", "topics.topics"}
)


def canonical_json(publication: Publication) -> bytes:
    """The keys that can change a record or its destination, where they aren't at their defaults, in one fixed form."""
    chosen = {key: value for key in CHANGES_RECORDS if (value := _value(publication, key)) is not None}
    return json.dumps(chosen, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(publication: Publication) -> str:
    """SHA-256 of the canonical form, in hexadecimal: equal for publications whose records are equal."""
    return sha256(canonical_json(publication)).hexdigest()


def _value(publication: Publication, key: str) -> object:
    section, _, name = key.rpartition(".")
    owner = getattr(publication, section) if section else publication
    value = getattr(owner, name)
    if value == type(owner).model_fields[name].default:
        return None
    if key == "topics.routes":
        return [route.model_dump(mode="json") for route in publication.topics.routes]
    return sorted(value) if key in _UNORDERED else value
