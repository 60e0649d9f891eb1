"""Answers of a registry that contradict each other: nothing is concluded from them."""

from __future__ import annotations

from collections.abc import Sequence

from contexture.errors import RetriableError


def half_answer(registry: str, what: str, urns: Sequence[str]) -> RetriableError:
    """The error of a registry whose answers contradict each other.

    Args:
        registry: its address.
        what: what it did with these structures, such as `lists, and does not give,`.
        urns: of the structures.
    """
    more = f" and {len(urns) - 1:,} more" if len(urns) > 1 else ""
    return RetriableError(
        f"half answer: the registry at {registry} {what} {urns[0]}{more}",
        next_step="retry: it may have changed meanwhile; if this stays, look into the registry's log. Nothing was sent "
        "or deleted",
        registry=registry,
    )
