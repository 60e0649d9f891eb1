"""The parts of a publication that say how events become records, and how these are sent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from contexture.publications.fields import ConnectionId, Count, Flag, Positive, Section, Text
from contexture.publications.topics import TopicName

KEY_IDENTITY = "identity"
KEY_NONE = "none"
KEY_TOPIC = "topic"


class Batches(Section):
    """Batches and their retries; parameter names and defaults are those of the Cygnus Kafka sink."""

    batch_size: Positive = Field(1, description="Events of a batch, in arrival order (Cygnus)")
    batch_timeout: Positive = Field(30, description="Seconds after its first event at which a batch closes (Cygnus)")
    batch_ttl: Annotated[StrictInt, Field(ge=-1)] = Field(10, description="Retries; 0: none, -1: for ever (Cygnus)")
    batch_retry_intervals: Annotated[tuple[Positive, ...], Field(min_length=1)] = Field(
        (5000,), description="Milliseconds before each retry; the last repeats (Cygnus)"
    )


class Message(Section):
    """The form of a record: its value, its envelope and its key."""

    format: Literal["cygnus-lines", "ngsiv1", "ngsiv2", "ngsi-ld", "sdmx", "operations"] = Field(
        "ngsiv2", description="Form of the value; structures: always sdmx; what Contexture itself did: operations"
    )
    envelope: Literal["none", "cloudevents-binary", "cloudevents-structured"] = Field(
        "none", description="CloudEvents Kafka binding around the value"
    )
    key: Text = Field(
        KEY_IDENTITY,
        description="identity, none, topic, or a field: id, type, service, service_path or the name of an attribute",
    )
    media_type: Text | None = Field(None, description="Registry: see source.media_type, which says it")
    allow_lossy: Flag = Field(
        False,
        description="Registry: convert what it doesn't write in the form of source.media_type, though something may be "
        "lost; what is lost is told",
    )


class Publish(Section):
    """How the outbox is sent."""

    connection: ConnectionId = Field("kafka_default", description="Id of the Airflow connection to Kafka")
    shards: Annotated[Positive, Field(le=1000)] = Field(
        2, description="Senders beside each other; structures: always 1"
    )
    transaction_records: Positive = Field(50000, description="Records of one Kafka transaction, at most")
    transactional_id_prefix: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        "tx", description="What transactional ids begin with"
    )
    on_failure: Literal["stop", "dead-letter"] = Field(
        "stop",
        description="What a record that can never be sent does: stop sending, or go to the dead-letter topic; of "
        "structures and operations always stop",
    )
    dead_letter_topic: TopicName | None = Field(
        None, description="With on_failure: dead-letter; unless named, contexture.dead-letter.<publication>"
    )
    max_dead_letters: Annotated[StrictInt, Field(ge=1, le=1000)] = Field(
        10, description="With on_failure: dead-letter: more records of one run and shard that can't be sent stop it"
    )
    broker_wait_seconds: Count = Field(300, description="How long a broker may be away before batch_ttl counts")
    broker_list: Text | None = Field(
        None,
        description="Cygnus; without effect: the connection holds the brokers",
        json_schema_extra={"deprecated": True},
    )
    zookeeper_endpoint: Text | None = Field(
        None,
        description="Cygnus; without effect: today's Kafka has no ZooKeeper",
        json_schema_extra={"deprecated": True},
    )
