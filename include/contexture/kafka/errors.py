"""The errors of Kafka, by what to do about them."""

from __future__ import annotations

from contexture.errors import ConfigurationError, ContextureError, RetriableError


class KafkaConfigurationError(ConfigurationError):
    """The Kafka connection, a topic's configuration or a permission must be changed by a person."""


class BrokersAwayError(RetriableError):
    """The brokers did not answer for as long as they are waited for."""


class OffsetGoneError(ConfigurationError):
    """Records that should be read are not there any more; reading on would leave them out in silence."""


class DamagedRecordsError(ConfigurationError):
    """What brokers gave is not what was written to them: reading on would take wrong records for right ones."""


class FencedError(ConfigurationError):
    """Another sender has taken over this shard; a task that continued would fight with it.

    A sending ends with it where the ledger shows the other one's row (`resume`).
    """


class SequenceTakenError(ConfigurationError):
    """Another outbox with the same sequence was sent first: what this one was compared with is no longer true."""


class LedgerLostError(ConfigurationError):
    """The ledger that says what was sent is not there any more: sending now would send records twice."""


class SendAgainError(Exception):
    """The transaction did not happen and may be done again with a new producer.

    Args:
        error: what to raise to the caller when it is not done again.
        counted: whether doing it again uses up an attempt.
        outlived: whether the transaction was open for longer than it may, so that brokers gave it up.
    """

    def __init__(self, error: ContextureError, *, counted: bool, outlived: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.counted = counted
        self.outlived = outlived
