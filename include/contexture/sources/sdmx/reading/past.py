"""What a registry did in an interval of the past, by its log.

Nothing is inferred from what is there today but what the log between then and now undoes: what was there before its
first transaction is what is there now, without what was added since, and with what was changed or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contexture.sources.sdmx.reading.scope import Names, SelectedStructures
from contexture.sources.sdmx.reading.steps import LogStep, Moved, named, no_version_moves, steps
from contexture.sources.sdmx.registry import Log, LogPeriod, RegistryTransaction


@dataclass(frozen=True, slots=True)
class LogReplay:
    """What the log tells of a stretch of time.

    Attributes:
        steps: what its transactions ask for, in order, by their ids; those that ask for nothing are left out.
        told: ids of all that it tells, also of those that ask for nothing.
        meant: what was meant before the first of them, by name, with the URNs of today.
        unreadable: ids of those whose content can't be distinguished from that of another one at the same moment.
    """

    steps: dict[int, LogStep]
    told: frozenset[int]
    meant: Names
    unreadable: frozenset[int]


def plan_log_replay(
    log: Log,
    period: LogPeriod,
    meaning: SelectedStructures,
    *,
    held: Iterable[str],
    sent: Names,
    moved: Moved = no_version_moves,
) -> LogReplay:
    """What a stretch of time asks for.

    Args:
        log: all transactions since the last one before it.
        period: the transactions in it.
        meaning: of the publication, which knows every structure that the log names.
        held: names of what the registry held after the log was asked, or before.
        sent: URNs that the target holds, by name: what was sent of a structure had that one.
        moved: says what a transaction brings to further topics.
    """
    before = structures_at(log.transactions, held)
    meant = {name: sent.get(name) or meaning.urn(name) for name in meaning.among(before)}
    every = steps(log.transactions, meaning, held=before, selected=meant, more_to_come=True, moved=moved)
    inside = frozenset(period.ids)
    return LogReplay(
        steps={step.transaction.id: step for step in every if step.transaction.id in inside},
        told=inside & {transaction.id for transaction in log.transactions},
        meant=meant,
        unreadable=inside & _at_one_moment(log.transactions),
    )


def structures_at(log: Sequence[RegistryTransaction], held: Iterable[str]) -> tuple[str, ...]:
    """Names of what the registry held before the first of these transactions.

    Args:
        log: all of them up to the moment of `held`, or later.
        held: names of what it holds.
    """
    first: dict[str, bool] = {}
    for transaction in log:
        changed, deleted = named(transaction)
        added = {name for name in changed if changed[name] in transaction.added}
        for name in (*changed, *deleted):
            first.setdefault(name, name not in added)
    untouched = (name for name in held if name not in first)
    return (*untouched, *(name for name, was_there in first.items() if was_there))


def _at_one_moment(log: Sequence[RegistryTransaction]) -> set[int]:
    """Transactions that changed what a later one of the same moment touched: what was there then shows only that."""
    found: set[int] = set()
    for place, transaction in enumerate(log):
        changed = named(transaction)[0].keys()
        for later in log[place + 1 :]:
            if later.at != transaction.at:
                break
            touched = [*named(later)[0], *named(later)[1]]
            if not changed.isdisjoint(touched):
                found.add(transaction.id)
    return found
