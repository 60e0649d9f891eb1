"""What each error code of the client means for a sender, and the sentence for people.

The table is by name (`KafkaError.name()`) because flags alone mislead: a record over the client's limit is neither
fatal nor abortable, and a commit after it would succeed without the record. docs/reference/kafka-errors.md is this
table for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.kafka.errors import FencedError, KafkaConfigurationError
from contexture.kafka.interfaces import KafkaErrorLike


class ErrorClass(Enum):
    """What to do about an error."""

    SAME_CALL_AGAIN = "retriable"
    SEND_AGAIN = "abortable"
    BROKERS_AWAY = "timed out"
    FENCED = "fenced"
    FATAL = "fatal"
    CONFIGURATION = "configuration"
    REJECTED = "rejected"


_LOGIN: Final = "check user, password and sasl.mechanism of the Kafka connection"
_TOKEN: Final = "give the Kafka connection a delegation token that is valid, or another login"  # noqa: S105 - a sentence
_MISSING: Final = (
    "start a new run: it creates a removed topic again, and sends everything to it again; or allow this user to see "
    "the topic (a forbidden one looks the same)"
)
_OLD_BROKERS: Final = "use brokers of version 2.8 or later"
_ADMINISTRATOR: Final = "ask the brokers' administrator: their configuration refuses it"
_CONTROLLERS: Final = "name brokers in bootstrap.servers, not controllers"

HINTS: Final[Mapping[str, str]] = {
    "_AUTHENTICATION": _LOGIN,
    "SASL_AUTHENTICATION_FAILED": _LOGIN,
    "UNSUPPORTED_SASL_MECHANISM": "set a sasl.mechanism that the brokers offer",
    "ILLEGAL_SASL_STATE": "check security.protocol and sasl.mechanism of the Kafka connection",
    "SECURITY_DISABLED": "the brokers check no permissions: remove the options for them from the Kafka connection",
    "_SSL": "check security.protocol, ssl.ca.location and the client's certificate",
    "_UNKNOWN_PROTOCOL": "correct security.protocol of the Kafka connection",
    "_FS": "check the files that the Kafka connection names: they must be there and readable",
    "_NOT_CONFIGURED": "set the property it names in the extra of the Kafka connection",
    "DELEGATION_TOKEN_AUTH_DISABLED": _TOKEN,
    "DELEGATION_TOKEN_NOT_FOUND": _TOKEN,
    "DELEGATION_TOKEN_OWNER_MISMATCH": _TOKEN,
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": _TOKEN,
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": _TOKEN,
    "DELEGATION_TOKEN_EXPIRED": _TOKEN,
    "TOPIC_AUTHORIZATION_FAILED": "allow this user WRITE and DESCRIBE on the topic",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "allow this user WRITE and DESCRIBE on transactional ids with the prefix "
    "publish.transactional_id_prefix",
    "CLUSTER_AUTHORIZATION_FAILED": "allow this user IDEMPOTENT_WRITE on the cluster",
    "GROUP_AUTHORIZATION_FAILED": "allow this user READ on the group named by group.id of the connection",
    "INVALID_GROUP_ID": "correct group.id of the Kafka connection",
    "UNKNOWN_TOPIC_OR_PART": _MISSING,
    "_UNKNOWN_TOPIC": _MISSING,
    "_UNKNOWN_PARTITION": "give the topic as many partitions as the outbox names",
    "TOPIC_EXCEPTION": "correct the topic's name",
    "INVALID_CONFIG": "correct topics.config of the publication",
    "INVALID_PARTITIONS": "correct topics.partitions of the publication",
    "INVALID_REPLICATION_FACTOR": "lower topics.replication_factor to the number of brokers, or add brokers",
    "INVALID_REPLICA_ASSIGNMENT": "lower topics.replication_factor to the number of brokers, or add brokers",
    "INVALID_REQUIRED_ACKS": "leave acks out of the Kafka connection",
    "INVALID_TRANSACTION_TIMEOUT": "lower transaction.timeout.ms to the brokers' transaction.max.timeout.ms",
    "POLICY_VIOLATION": "ask the brokers' administrator which policy refuses it",
    "TOPIC_DELETION_DISABLED": _ADMINISTRATOR,
    "PRINCIPAL_DESERIALIZATION_FAILURE": _ADMINISTRATOR,
    "UNACCEPTABLE_CREDENTIAL": _ADMINISTRATOR,
    "UNSUPPORTED_VERSION": _OLD_BROKERS,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": _OLD_BROKERS,
    "_UNSUPPORTED_FEATURE": _OLD_BROKERS,
    "UNSUPPORTED_COMPRESSION_TYPE": "choose another compression.type",
    "MISMATCHED_ENDPOINT_TYPE": _CONTROLLERS,
    "UNSUPPORTED_ENDPOINT_TYPE": _CONTROLLERS,
    "_INVALID_ARG": "correct the property in the extra of the Kafka connection",
    "_NOT_IMPLEMENTED": "use a mechanism this client was built with",
}
"""What a person must change, for each error that only a person can end."""

_NAMES: Final[Mapping[ErrorClass, str]] = {
    ErrorClass.FENCED: "_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH",
    ErrorClass.REJECTED: """
        MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_MSG_SIZE INVALID_RECORD INVALID_TIMESTAMP""",
    ErrorClass.BROKERS_AWAY: """
        _MSG_TIMED_OUT _TIMED_OUT_QUEUE _TRANSPORT _ALL_BROKERS_DOWN _RESOLVE _UNKNOWN_BROKER NETWORK_EXCEPTION
        BROKER_NOT_AVAILABLE""",
    ErrorClass.SAME_CALL_AGAIN: """
        _TIMED_OUT _RETRY _WAIT_COORD _WAIT_CACHE _IN_PROGRESS _INTR _ISR_INSUFF _NODE_UPDATE REQUEST_TIMED_OUT
        LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION REPLICA_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE
        ELIGIBLE_LEADERS_NOT_AVAILABLE FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE
        NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE
        NOT_COORDINATOR CONCURRENT_TRANSACTIONS NOT_CONTROLLER UNKNOWN_CONTROLLER_ID STALE_CTRL_EPOCH
        STALE_BROKER_EPOCH KAFKA_STORAGE_ERROR LISTENER_NOT_FOUND THROTTLING_QUOTA_EXCEEDED REASSIGNMENT_IN_PROGRESS
        UNSTABLE_OFFSET_COMMIT REBOOTSTRAP_REQUIRED _QUEUE_FULL""",
    ErrorClass.FATAL: "_FATAL _CRIT_SYS_RESOURCE _DESTROY _DESTROY_BROKER _GAPLESS_GUARANTEE",
    ErrorClass.SEND_AGAIN: """
        _INCONSISTENT _STATE _CONFLICT _PREV_IN_PROGRESS _PURGE_QUEUE _PURGE_INFLIGHT _INVALID_DIFFERENT_RECORD
        _BAD_MSG _BAD_COMPRESSION _PARTIAL _UNDERFLOW _OUTDATED _APPLICATION _NOOP _NOENT _READ_ONLY _INVALID_TYPE
        _FAIL UNKNOWN NO_ERROR INVALID_MSG OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID
        INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE TRANSACTION_ABORTABLE TRANSACTION_COORDINATOR_FENCED
        UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID TOPIC_ALREADY_EXISTS OPERATION_NOT_ATTEMPTED INVALID_REQUEST
        LOG_DIR_NOT_FOUND""",
}
"""Errors that a sender or an administrator of topics can meet."""

_OF_OTHERS: Final = """
    _PARTITION_EOF _UNKNOWN_GROUP _EXISTING_SUBSCRIPTION _ASSIGN_PARTITIONS _REVOKE_PARTITIONS _NO_OFFSET
    _KEY_SERIALIZATION _VALUE_SERIALIZATION _KEY_DESERIALIZATION _VALUE_DESERIALIZATION _MAX_POLL_EXCEEDED
    _ASSIGNMENT_LOST _AUTO_OFFSET_RESET _LOG_TRUNCATION
    OFFSET_OUT_OF_RANGE OFFSET_METADATA_TOO_LARGE ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL UNKNOWN_MEMBER_ID
    INVALID_SESSION_TIMEOUT REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE NON_EMPTY_GROUP GROUP_ID_NOT_FOUND
    FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH MEMBER_ID_REQUIRED GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID
    GROUP_SUBSCRIBED_TO_TOPIC FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID UNSUPPORTED_ASSIGNOR STALE_MEMBER_EPOCH
    INVALID_REGULAR_EXPRESSION INVALID_PRINCIPAL_TYPE ELECTION_NOT_NEEDED NO_REASSIGNMENT_IN_PROGRESS RESOURCE_NOT_FOUND
    DUPLICATE_RESOURCE INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED UNKNOWN_SUBSCRIPTION_ID
    TELEMETRY_TOO_LARGE INVALID_REGISTRATION INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
    SHARE_SESSION_LIMIT_REACHED FENCED_STATE_EPOCH INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND
    STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED"""

OF_OTHERS: Final = frozenset(_OF_OTHERS.split())
"""Errors of requests that are never made here (groups, quorums, streams); readers know those that are theirs.

Whatever brings one of them to a sender: the transaction did not happen, so it is done again.
"""

MEANINGS: Final[Mapping[str, ErrorClass]] = {
    **dict.fromkeys(HINTS, ErrorClass.CONFIGURATION),
    **{name: meaning for meaning, names in _NAMES.items() for name in names.split()},
    **dict.fromkeys(OF_OTHERS, ErrorClass.SEND_AGAIN),
}
"""Every code that the client knows."""

# Nothing that the client says of one call changes what these mean.
_BY_NAME_ALONE: Final = frozenset({ErrorClass.FENCED, ErrorClass.REJECTED, ErrorClass.CONFIGURATION})
REFUSALS: Final = frozenset({"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})


def classify_error(error: KafkaErrorLike) -> ErrorClass:
    """Returns what a sender does about this error."""
    found = MEANINGS.get(error.name(), ErrorClass.SEND_AGAIN)
    if found in _BY_NAME_ALONE:
        return found
    if error.fatal():
        return ErrorClass.FATAL
    if error.txn_requires_abort() and found is not ErrorClass.BROKERS_AWAY:
        return ErrorClass.SEND_AGAIN
    return ErrorClass.SAME_CALL_AGAIN if error.retriable() else found


def translate_error(
    error: KafkaErrorLike,
    doing: str,
    *,
    topic: str | None = None,
    by_broker: bool = False,
    needs: str = "WRITE and DESCRIBE",
) -> ContextureError:
    """Returns the error of ours that a caller gets for it.

    Args:
        error: the client's.
        doing: what was attempted.
        topic: of which topic, if it is known.
        by_broker: a record that can't be sent was refused by the brokers, not by the client before it left.
        needs: the operations on the topic that a user has to be allowed for it.
    """
    where = "" if topic is None else f" (topic {topic})"
    message = f"{doing}{where} failed: {error.name()}: {error.str()}"
    name = error.name()
    match classify_error(error):
        case ErrorClass.FENCED:
            return fenced(message)
        case ErrorClass.REJECTED:
            return RejectedError(
                message,
                next_step=_rejected_hint(name, by_broker),
                topic=topic or "",
                status=3 if by_broker else 2,
                error=name,
            )
        case ErrorClass.CONFIGURATION:
            hint = _permission(needs) if name == "TOPIC_AUTHORIZATION_FAILED" else HINTS[name]
            return KafkaConfigurationError(message, next_step=hint, topic=topic or "", status=3)
        case ErrorClass.FATAL:
            return RetriableError(
                message, next_step="clear the task: a new client continues from the ledger's position"
            )
        case _:
            return RetriableError(
                message,
                next_step="check the brokers' logs, then clear the task: it continues from the ledger's position",
            )


def fenced(message: str) -> FencedError:
    """Returns the error for a sender whose place another one took."""
    return FencedError(
        f"another sender took over this shard ({message})",
        next_step="leave the outbox to the other sender (a second instance, or a task cleared while this one ran); "
        "what it did not send, the next run sends first",
        alert="another sender took over",
    )


def misconfigured(problem: Exception) -> ConfigurationError:
    """Returns the error for a client that can not even be made."""
    return KafkaConfigurationError(
        f"no Kafka client can be made with these settings: {problem.args[0] if problem.args else problem}",
        next_step="correct the extra of the Kafka connection",
    )


def _permission(needs: str) -> str:
    otherwise = ", or make the topic beforehand" if needs == "CREATE" else ""
    return f"allow this user {needs} on the topic{otherwise}"


def _rejected_hint(name: str, by_broker: bool) -> str:
    if name == "INVALID_RECORD":
        return "give every record of a compacted topic a key (message.key), or use keep: history"
    if name == "INVALID_TIMESTAMP":
        return (
            "raise the topic's message.timestamp.before.max.ms (message.timestamp.after.max.ms for a time ahead of the "
            "brokers' clock), or set its message.timestamp.type to LogAppendTime"
        )
    if by_broker:
        return (
            "raise max.message.bytes of the topic (or message.max.bytes of the brokers) above the compressed record, "
            "or leave this object out"
        )
    return (
        "raise message.max.bytes of the Kafka connection, and max.message.bytes of the topic if it is lower, "
        "or leave this object out"
    )
