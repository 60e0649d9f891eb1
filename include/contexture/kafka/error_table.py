"""What each Kafka error means for a sender, and the sentence for people.

The table is by the client's names for codes (`KafkaError.name()`), because flags alone mislead: a record over the
client's limit is neither fatal nor abortable, and a commit after it would succeed without the record.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.kafka.errors import FencedError, KafkaConfigurationError
from contexture.kafka.ports import KafkaErrorLike


class Meaning(Enum):
    """What to do about an error."""

    SAME_CALL_AGAIN = "retriable"
    SEND_AGAIN = "abortable"
    BROKERS_AWAY = "timed out"
    FENCED = "fenced"
    FATAL = "fatal"
    CONFIGURATION = "configuration"
    REJECTED = "rejected"


_FENCED: Final = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
_REJECTED: Final = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP"})
_AWAY: Final = frozenset({"_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE"})
_HINTS: Final[dict[str, str]] = {
    "_AUTHENTICATION": "check user, password and sasl.mechanism of the Kafka connection",
    "SASL_AUTHENTICATION_FAILED": "check user, password and sasl.mechanism of the Kafka connection",
    "UNSUPPORTED_SASL_MECHANISM": "set a sasl.mechanism that the brokers offer",
    "ILLEGAL_SASL_STATE": "check security.protocol and sasl.mechanism of the Kafka connection",
    "_SSL": "check security.protocol, ssl.ca.location and the client's certificate",
    "TOPIC_AUTHORIZATION_FAILED": "allow this user WRITE and DESCRIBE on the topic",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "allow this user WRITE and DESCRIBE on transactional ids with the prefix "
    "publish.transactional_id_prefix",
    "CLUSTER_AUTHORIZATION_FAILED": "allow this user IDEMPOTENT_WRITE on the cluster",
    "GROUP_AUTHORIZATION_FAILED": "allow this user READ on the group named by group.id of the connection",
    "UNKNOWN_TOPIC_OR_PART": "create the topic, or allow this user to see it (a forbidden topic looks the same)",
    "_UNKNOWN_TOPIC": "create the topic, or allow this user to see it (a forbidden topic looks the same)",
    "_UNKNOWN_PARTITION": "give the topic as many partitions as the outbox names",
    "TOPIC_EXCEPTION": "correct the topic's name",
    "INVALID_CONFIG": "correct topics.config of the publication",
    "INVALID_PARTITIONS": "correct topics.partitions of the publication",
    "INVALID_REPLICATION_FACTOR": "lower topics.replication_factor to the number of brokers, or add brokers",
    "INVALID_TRANSACTION_TIMEOUT": "lower transaction.timeout.ms to the brokers' transaction.max.timeout.ms",
    "POLICY_VIOLATION": "ask the brokers' administrator which policy refuses it",
    "UNSUPPORTED_VERSION": "use brokers of version 2.8 or later",
    "UNSUPPORTED_COMPRESSION_TYPE": "choose another compression.type",
    "_INVALID_ARG": "correct the property in the extra of the Kafka connection",
    "_NOT_IMPLEMENTED": "use a mechanism this client was built with",
}
REFUSALS: Final = frozenset({"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})


def meaning(error: KafkaErrorLike) -> Meaning:
    """What a sender does about this error."""
    name = error.name()
    for names, answer in (
        (_FENCED, Meaning.FENCED),
        (_REJECTED, Meaning.REJECTED),
        (_HINTS, Meaning.CONFIGURATION),
        (_AWAY, Meaning.BROKERS_AWAY),
    ):
        if name in names:
            return answer
    if error.fatal() or name == "_FATAL":
        return Meaning.FATAL
    return Meaning.SAME_CALL_AGAIN if error.retriable() else Meaning.SEND_AGAIN


def translated(
    error: KafkaErrorLike, doing: str, *, topic: str | None = None, by_broker: bool = False
) -> ContextureError:
    """The error of ours that a caller gets for it.

    Args:
        error: the client's.
        doing: what was tried.
        topic: where to, if it is known.
        by_broker: a record that can't be sent was refused by the brokers, not by the client before it left.
    """
    where = "" if topic is None else f" to topic {topic}"
    message = f"{doing}{where} failed: {error.name()}: {error.str()}"
    name = error.name()
    match meaning(error):
        case Meaning.FENCED:
            return fenced(message)
        case Meaning.REJECTED:
            return RejectedError(
                message, next_step=_rejected_hint(name, by_broker), topic=topic or "", status=3 if by_broker else 2
            )
        case Meaning.CONFIGURATION:
            return KafkaConfigurationError(message, next_step=_HINTS[name], topic=topic or "", status=3)
        case Meaning.FATAL:
            return RetriableError(message, next_step="clear the task: a new client goes on where the ledger stands")
        case _:
            return RetriableError(
                message, next_step="look at the brokers' logs, then clear the task: it goes on where the ledger stands"
            )


def fenced(message: str) -> FencedError:
    """The error for a sender whose place another one took."""
    return FencedError(
        f"another sender took over this shard ({message})",
        next_step="leave it to the other sender (a second instance, or a task cleared while this one ran); "
        "what it did not send, the next run sends first",
        alert="another sender took over",
    )


def misconfigured(problem: Exception) -> ConfigurationError:
    """The error for a client that can not even be made."""
    return KafkaConfigurationError(
        f"no Kafka client can be made with these settings: {problem.args[0] if problem.args else problem}",
        next_step="correct the extra of the Kafka connection",
    )


def _rejected_hint(name: str, by_broker: bool) -> str:
    if name == "INVALID_RECORD":
        return "give every record of a compacted topic a key (message.key), or use keep: history"
    if name == "INVALID_TIMESTAMP":
        return "raise the topic's message.timestamp.before.max.ms, or leave records without event time"
    if by_broker:
        return (
            "raise max.message.bytes of the topic (or message.max.bytes of the brokers) above the compressed record, "
            "or leave this object out"
        )
    return (
        "raise message.max.bytes of the Kafka connection, and max.message.bytes of the topic if it is lower, "
        "or leave this object out"
    )
