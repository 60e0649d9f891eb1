"""The first run of an instance beside others that tell the same registry's log."""

from __future__ import annotations

from collections.abc import Sequence

from contexture.errors import RetriableError
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.registry import Registry, RegistryTransaction


def check_nothing_pends(registry: Registry, selectors: Sequence[Selector], told: int) -> None:
    """Returns when the others have told all that the log says about what is selected.

    An instance that has only noted what is there would not tell what they still have to; and once it had told something
    later, they would take theirs for told.

    Args:
        registry: with a log.
        selectors: of the publication; none select everything.
        told: the registry transaction up to which the log is told.

    Raises:
        RetriableError: something is not told yet.
    """
    log = registry.transactions(told)
    pending = [transaction.id for transaction in log.transactions if _concerns(transaction, selectors)]
    if not pending and log.gap_until is None:
        return
    raise RetriableError(
        f"another instance has told this publication's registry up to transaction {told} of {log.newest}, and not all "
        "that came after it",
        next_step="wait until it has, and this run will note what is there; if it is gone, start a run in mode full",
        registry=registry.address,
    )


def _concerns(transaction: RegistryTransaction, selectors: Sequence[Selector]) -> bool:
    urns = (*transaction.changed, *transaction.deleted)
    return any(not selectors or any(selector.matches(urn) for selector in selectors) for urn in urns)
