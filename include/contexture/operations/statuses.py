"""What can become of a transaction, in the numbers that users of registries know."""

from __future__ import annotations

from enum import IntEnum

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError


class TransactionStatus(IntEnum):
    """The status of one Kafka transaction."""

    PENDING = 0
    """Not yet sent."""
    SENT = 1
    """The brokers acknowledged its commit."""
    LOCAL_FAILURE = 2
    """Failed before it left: typically a check against the connection's settings."""
    BROKER_ERROR = 3
    """The brokers refused it, or did not answer."""
    UNEXPECTED = 4
    """Anything else."""

    @classmethod
    def of(cls, error: BaseException) -> TransactionStatus:
        """The status of the transaction that failed with this error."""
        if not isinstance(error, ContextureError):
            return cls.UNEXPECTED
        told = error.context.get("status")
        if told in {cls.LOCAL_FAILURE, cls.BROKER_ERROR}:
            return cls(int(str(told)))
        if isinstance(error, RejectedError):
            return cls.LOCAL_FAILURE
        return cls.BROKER_ERROR if isinstance(error, RetriableError | ConfigurationError) else cls.UNEXPECTED
