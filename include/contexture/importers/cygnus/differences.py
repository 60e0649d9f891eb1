"""Where Contexture does something else than Cygnus' Kafka sink, on purpose."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """One difference: what it is about, what Cygnus does, and what Contexture does."""

    title: str
    cygnus: str
    contexture: str


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "how changes come in",
        "waits for notifications; what comes while it is down is lost",
        "reads the broker: nothing is missed, but of several changes between two reads only the last is published; "
        "with mode: notifications each is published, and kept on disk until then",
    ),
    Difference(
        "what an event holds",
        "the attributes that the subscription notifies",
        "the whole entity, or those of source.attributes; with changes only entities that differ from the topic's",
    ),
    Difference(
        "lines of NGSIv1 notifications",
        "have isPattern, and numbers as texts, as brokers sent them then",
        "lines are those of NGSIv2 notifications: without isPattern, values with their JSON types; "
        "what is notified as legacy is written as Cygnus wrote it",
    ),
    Difference(
        "services",
        "one sink takes every service; the header is kept as sent",
        "one publication for each service, in lower case, as brokers store it",
    ),
    Difference(
        "service paths",
        "refuses more than 50 characters or a space after a comma",
        "every path a broker has, up to 10 levels",
    ),
    Difference(
        "the header timestamp",
        "when the notification came",
        "when the page with the entity, or its notification, came; the record's own time is that of the change",
    ),
    Difference(
        "keys and order",
        "no key: records of one entity may change places",
        "the entity is the key where all events of a record share it, so that its records stay in order",
    ),
    Difference(
        "order in a line and in a batch",
        "attributes, metadata and sub-batches in Java's hash order",
        "attributes and metadata as the broker sent them, sub-batches by first arrival",
    ),
    Difference(
        "paths in a record of several lines",
        "every line has the service path of the first",
        "each line has its own",
    ),
    Difference("quotes in service and path", "pasted into the JSON, which breaks it", "escaped"),
    Difference(
        "dm-by-attribute",
        "only the last attribute is written, once for each; without the name-mappings interceptor nothing is",
        "each attribute is written to its own topic, renamed or not, and is an event that batch_size counts",
    ),
    Difference(
        "entities without attributes",
        "fail up to 2.19",
        "are written with an empty list; by attribute there is nothing to write",
    ),
    Difference(
        "names that collide",
        "entities whose joined names are equal share a sub-batch, and one's data goes to the other's topic",
        "every event goes to its own topic; equal topic names of two entities are found and reported",
    ),
    Difference(
        "names that Kafka refuses",
        "tried again until batch_ttl, then dropped",
        "found before anything is sent, and kept in quarantine with the reason",
    ),
    Difference(
        "when a batch closes",
        "batch_timeout counts from the end of the batch before, and is looked at when Flume polls",
        "batch_timeout counts from the batch's first event; the end of a run closes its last batch",
    ),
    Difference(
        "large batches",
        "above the channel's transaction capacity nothing is delivered; above 1 MiB a record is lost",
        "no channel; a record that Kafka would refuse is split between lines",
    ),
    Difference(
        "file channels",
        "data with the text xffff, or quotes in ids, block them; absent members come back as the text null",
        "no channel; every text is published as it is, and what is absent stays absent",
    ),
    Difference(
        "retries",
        "each event of a failed batch by itself, in memory; after batch_ttl dropped, with the batch that waits next; "
        "-1 stays at the first interval",
        "the same records in the same order; after batch_ttl the run fails and the outbox waits; "
        "-1 goes along the list and stays at its last interval",
    ),
    Difference(
        "delivery",
        "sent without waiting for the brokers' answer: their failures are counted as success",
        "acknowledged by all replicas, in transactions, exactly once for consumers with isolation.level=read_committed",
    ),
    Difference(
        "new topics",
        "made one by one through ZooKeeper, before every sub-batch",
        "made together before the first record, through the brokers; more than topics.max_new_topics stop the run",
    ),
    Difference(
        "data that breaks a rule",
        "is published, or fails the whole notification",
        "goes to quarantine with the rule, counted; `quality.rules` switches rules",
    ),
    Difference(
        "grouping rules and name mappings",
        "read again every 30 s; what is wrong is dropped, or disables the file, without a word",
        "read with the publication; what is wrong is reported with its place; an edit sends everything again",
    ),
    Difference(
        "entities that no grouping rule matches",
        "id and type are joined by _, unless the interceptor's enable_encoding is true; an absent type is null",
        "named as without rules; `compat: cygnus-2.19` keeps what Cygnus did",
    ),
    Difference(
        "what name mappings match",
        ".* replaces twice; a path changes only where an entity mapping has the type; where none has the entity, the "
        "attributes of the last change; an attribute mapping without both originals disables the file",
        "each mapping changes what it matches, once, and an absent original is any; `compat: cygnus-2.19` keeps the "
        "first three",
    ),
    Difference(
        "deletions",
        "never published",
        "not published either, until detect_deletions: true sends records without a value",
    ),
    Difference(
        "statistics and administration",
        "an HTTP interface without authentication",
        "Airflow's pages and API, `contexture status`, the operational tables",
    ),
)
"""In the order in which a reader of topics meets them."""
