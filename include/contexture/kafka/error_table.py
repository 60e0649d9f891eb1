"""What an error of the client means for a sender, and the sentence for people.

What each code means stands in `error_classes`.
"""

from __future__ import annotations

from typing import Final

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.kafka.error_classes import HINTS, MEANINGS, Meaning
from contexture.kafka.errors import FencedError, KafkaConfigurationError
from contexture.kafka.ports import KafkaErrorLike

__all__ = ["REFUSALS", "Meaning", "fenced", "meaning", "misconfigured", "translated"]

# Nothing that the client says of one call changes what these mean.
_BY_NAME_ALONE: Final = frozenset({Meaning.FENCED, Meaning.REJECTED, Meaning.CONFIGURATION})
REFUSALS: Final = frozenset({"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})


def meaning(error: KafkaErrorLike) -> Meaning:
    """What a sender does about this error."""
    found = MEANINGS.get(error.name(), Meaning.SEND_AGAIN)
    if found in _BY_NAME_ALONE:
        return found
    if error.fatal():
        return Meaning.FATAL
    if error.txn_requires_abort() and found is not Meaning.BROKERS_AWAY:
        return Meaning.SEND_AGAIN
    return Meaning.SAME_CALL_AGAIN if error.retriable() else found


def translated(
    error: KafkaErrorLike,
    doing: str,
    *,
    topic: str | None = None,
    by_broker: bool = False,
    needs: str = "WRITE and DESCRIBE",
) -> ContextureError:
    """The error of ours that a caller gets for it.

    Args:
        error: the client's.
        doing: what was tried.
        topic: of which topic, if it is known.
        by_broker: a record that can't be sent was refused by the brokers, not by the client before it left.
        needs: the operations on the topic that a user has to be allowed for it.
    """
    where = "" if topic is None else f" (topic {topic})"
    message = f"{doing}{where} failed: {error.name()}: {error.str()}"
    name = error.name()
    match meaning(error):
        case Meaning.FENCED:
            return fenced(message)
        case Meaning.REJECTED:
            return RejectedError(
                message,
                next_step=_rejected_hint(name, by_broker),
                topic=topic or "",
                status=3 if by_broker else 2,
                error=name,
            )
        case Meaning.CONFIGURATION:
            hint = _permission(needs) if name == "TOPIC_AUTHORIZATION_FAILED" else HINTS[name]
            return KafkaConfigurationError(message, next_step=hint, topic=topic or "", status=3)
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
