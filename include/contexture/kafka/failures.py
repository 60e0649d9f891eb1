"""How a failed transaction travels inside this package, until the publisher decides what becomes of it."""

from __future__ import annotations

from contexture.errors import ContextureError


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
