"""The parts of a publication that say how events become records, and how these are sent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from contexture.publications.fields import (
    ChangesNoRecord,
    ChangesRecords,
    ConnectionId,
    Count,
    Flag,
    FunctionName,
    NumbersOrText,
    PartitionerName,
    Positive,
    PublicationModel,
    Text,
)
from contexture.publications.topics import TopicName

_VALUE = ChangesRecords("the value of a record")
_KEY = ChangesRecords("the key of a record")
_ENVELOPE = ChangesRecords("the value and headers of a record")
_RETRY = ChangesNoRecord("when it is sent again, not what")
_BATCH = ChangesRecords("decides which events share a record")
_EFFECTLESS = ChangesNoRecord("without effect")

KEY_IDENTITY = "identity"
KEY_NONE = "none"
KEY_TOPIC = "topic"
JAVA_PARTITIONER = "murmur2"


class Batches(PublicationModel):
    """Retries of what could not be sent; parameter names and defaults are those of the Cygnus Kafka sink."""

    batch_ttl: Annotated[StrictInt, Field(ge=-1), _RETRY] = Field(
        10, description="Retries; 0: none, -1: no limit (Cygnus)"
    )
    batch_retry_intervals: Annotated[tuple[Positive, ...], NumbersOrText, Field(min_length=1), _RETRY] = Field(
        (5000,), description='Milliseconds before each retry, as a list or "5000,10000"; the last repeats (Cygnus)'
    )


class EntityBatches(Batches):
    """Batches and their retries; parameter names and defaults are those of the Cygnus Kafka sink."""

    batch_size: Annotated[Positive, _BATCH] = Field(1, description="Events of a batch, in arrival order (Cygnus)")
    batch_timeout: Annotated[Positive, _BATCH] = Field(
        30, description="Seconds after its first event at which a batch closes (Cygnus)"
    )


Format = Literal["cygnus-lines", "ngsiv1", "ngsiv2", "ngsi-ld", "sdmx", "operations"]
Envelope = Literal["none", "cloudevents-binary", "cloudevents-structured"]


class Message(PublicationModel):
    """The form of a record: its value, its envelope and its key."""

    format: Annotated[Format, _VALUE] = Field("ngsiv2", description="Form of the value")
    envelope: Annotated[Envelope, _ENVELOPE] = Field("none", description="CloudEvents Kafka binding around the value")
    key: Annotated[Text, _KEY] = Field(KEY_IDENTITY, description="identity: the key of a record is what it is about")
    encoder: Annotated[FunctionName | None, _VALUE] = Field(
        None, description="Entry point of the group contexture.encoders that turns each value into other bytes"
    )


class EntityMessage(Message):
    """The form of an entity's record: its value, its envelope and its key."""

    format: Annotated[Literal["cygnus-lines", "ngsiv1", "ngsiv2", "ngsi-ld"], _VALUE] = Field(
        "ngsiv2", description="Form of the value"
    )
    key: Annotated[Text, _KEY] = Field(
        KEY_IDENTITY,
        description="identity, none, topic, or a field: id, type, service, service_path or the name of an attribute",
    )
    partition_key: Annotated[Literal["none", "identity", "id", "type", "service", "service_path"], _ENVELOPE] = Field(
        "none", description="With an envelope: the part of the identity in CloudEvents' extension partitionkey"
    )


class StructureMessage(Message):
    """The form of a structure's record; its key is its URN."""

    format: Annotated[Literal["sdmx"], _VALUE] = Field(
        "sdmx", description="sdmx: the structure in the form of source.media_type"
    )
    key: Annotated[Literal["identity"], _KEY] = Field(
        "identity", description="identity: the key of a structure is its URN"
    )
    allow_lossy: Annotated[Flag, _VALUE] = Field(
        False,
        description="Convert structures that the registry cannot write in source.media_type; what is lost is recorded",
    )
    partition_key: Annotated[Literal["none", "identity", "agency", "class"], _ENVELOPE] = Field(
        "none", description="With an envelope: the part of the identity in CloudEvents' extension partitionkey"
    )
    bundle: Annotated[Literal["artefact", "transaction"], ChangesRecords("decides which structures share a record")] = (
        Field(
            "artefact",
            description="artefact: each structure is a record; transaction: what a transaction of the registry, or a "
            "full run, adds and changes is one message in one record without a key. Needs keep: history; verify and "
            "state rebuild refuse it",
        )
    )


class EventMessage(Message):
    """The form of a record of Contexture's own events, which are CloudEvents."""

    format: Annotated[Literal["operations"], _VALUE] = Field(
        "operations", description="operations: Contexture's own events"
    )
    envelope: Annotated[Literal["cloudevents-binary", "cloudevents-structured"], _ENVELOPE] = Field(
        "cloudevents-binary", description="CloudEvents Kafka binding around the value"
    )


Shards = Annotated[Positive, Field(le=1000), ChangesNoRecord("who sends a record, not where to; outbox ids cover it")]


class Publish(PublicationModel):
    """How the outbox is sent."""

    connection: Annotated[ConnectionId, ChangesRecords("the cluster that records go to")] = Field(
        "kafka_default", description="Id of the Airflow connection to Kafka"
    )
    shards: Shards = Field(2, description="Parallel senders")
    partitioner: Annotated[PartitionerName, ChangesRecords("decides the partition of a key")] = Field(
        JAVA_PARTITIONER,
        description="murmur2: by the key, as Kafka's Java producer; topic, or a part of the identity (id, type, "
        "service, service_path; agency, class): by the same hash of that; a number: that partition; else an entry "
        "point of the group contexture.partitioners",
    )
    transactional_id_prefix: Annotated[
        StrictStr, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$"), ChangesNoRecord("who sends a record, not where to")
    ] = Field("tx", description="Prefix of transactional ids")
    on_failure: Annotated[
        Literal["stop", "dead-letter"], ChangesNoRecord("what happens to records that cannot be sent")
    ] = Field(
        "stop",
        description="A record that can never be sent: stops sending, or goes to the dead-letter topic",
    )
    dead_letter_topic: Annotated[TopicName | None, ChangesNoRecord("where records go that cannot be sent")] = Field(
        None, description="With on_failure: dead-letter; unless named, contexture.dead-letter.<publication>"
    )
    max_dead_letters: Annotated[StrictInt, Field(ge=1, le=1000), ChangesNoRecord("a guard that stops a run")] = Field(
        10, description="With on_failure: dead-letter: more records of one run and shard that cannot be sent stop it"
    )
    broker_wait_seconds: Annotated[Count, ChangesNoRecord("how long a sender waits")] = Field(
        300, description="How long brokers may be unreachable before batch_ttl counts"
    )
    broker_list: Annotated[Text | None, _EFFECTLESS] = Field(
        None,
        description="Cygnus; without effect: the connection holds the brokers",
        json_schema_extra={"deprecated": True},
    )
    zookeeper_endpoint: Annotated[Text | None, _EFFECTLESS] = Field(
        None,
        description="Cygnus; without effect: today's Kafka has no ZooKeeper",
        json_schema_extra={"deprecated": True},
    )


class SizedPublish(Publish):
    """How records are sent that are cut into transactions by their number."""

    transaction_records: Annotated[Positive, ChangesNoRecord("what becomes visible together, not what is sent")] = (
        Field(50000, description="Records of one Kafka transaction, at most")
    )


class StructurePublish(Publish):
    """How structures are sent: by one sender, as the transactions of a registry have one order."""

    shards: Shards = Field(1, description="1: transactions have one order")


class EventPublish(SizedPublish):
    """How Contexture's own events are sent: by one sender, because they have one order."""

    shards: Shards = Field(1, description="1: events have one order")
