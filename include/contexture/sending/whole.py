"""An outbox is sent as its manifest says, or not at all: files that are damaged or mixed are noticed."""

from __future__ import annotations

from contexture.errors import DefectError


def no_registry_transaction(number: int) -> DefectError:
    """The error for a transaction that the outbox's manifest does not name."""
    return DefectError(
        f"the manifest of the outbox names no registry transaction for transaction {number}",
        next_step="do not send it: abandon the outbox and report this (its manifest is damaged)",
    )


def check_position(found: int, expected: int) -> None:
    """Sees that rows come without a hole.

    Raises:
        DefectError: they do not.
    """
    if found != expected:
        raise DefectError(
            f"the outbox gave position {found} where {expected} was due",
            next_step="do not send it: prepare the outbox again (its files are damaged or mixed)",
        )


def check_end(position: int, records: int) -> None:
    """Sees that all rows came.

    Raises:
        DefectError: they did not.
    """
    if position != records:
        raise DefectError(
            f"the outbox ended at position {position} of {records}",
            next_step="do not conclude it: prepare the outbox again (its files are damaged or mixed)",
        )
