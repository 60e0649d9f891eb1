"""What the transactions of a registry's log require: what to read, and what is no longer selected.

A version that another one takes over from is deleted though the log doesn't say so (`~` and `+` mean the latest); one
that becomes the latest because a later one was deleted is read though nothing changed it.

Whatever was sent, and neither is meant nor was changed since, was deleted in the gap.

With a log it is the id of a transaction, in decimal digits. Without one it is the registry's own Last-Modified, and
good for nothing but the question whether anything changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from contexture.sources.sdmx.reading.scope import Names, SelectedStructures, by_name
from contexture.sources.sdmx.registry import Log, RegistryTransaction

Moved = Callable[[Sequence[str], Sequence[str]], Sequence[str]]
"""Of URNs that are meant before and after a transaction: those that it leaves alone and brings to further topics."""


def no_version_moves(before: Sequence[str], after: Sequence[str]) -> Sequence[str]:
    """Where topics don't depend on which version is the latest."""
    return ()


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A structure to be read.

    Attributes:
        urn: what the registry calls it.
        may_be_gone: the registry may answer that it holds no such thing; otherwise its log and its answer contradict.
    """

    urn: str
    may_be_gone: bool = False


@dataclass(frozen=True, slots=True)
class LogStep:
    """What one transaction asks for.

    Attributes:
        transaction: of the registry.
        read: what it added or modified among what is meant, in its order; then what it made the latest version, or
            brought to further topics.
        delete: what was meant before it and isn't any more, by the URNs that were sent.
    """

    transaction: RegistryTransaction
    read: tuple[FetchRequest, ...]
    delete: tuple[str, ...]


def changed_urns(log: Iterable[RegistryTransaction]) -> dict[str, str]:
    """The URNs of all structures that transactions changed or deleted, by name."""
    return by_name(urn for each in log for urn in (*each.changed, *each.deleted))


def held_before(log: Sequence[RegistryTransaction], held: Iterable[str], sent: Names) -> tuple[str, ...]:
    """What the registry held before the first of these transactions.

    The log does not say whether a change added a structure; what was sent had been there, and of what wasn't sent it
    makes no difference.

    Args:
        log: all transactions that it knows up to the moment of `held`, or later.
        held: names of what it holds.
        sent: what the target holds.
    """
    first: dict[str, bool] = {}
    for transaction in log:
        changed, deleted = named(transaction)
        for name in deleted:
            first.setdefault(name, True)
        for name in changed:
            first.setdefault(name, name in sent)
    untouched = (name for name in held if name not in first)
    return (*untouched, *(name for name, was_there in first.items() if was_there))


def steps(
    log: Sequence[RegistryTransaction],
    meaning: SelectedStructures,
    *,
    held: Iterable[str],
    selected: Names,
    more_to_come: bool = False,
    moved: Moved = no_version_moves,
) -> tuple[LogStep, ...]:
    """What each transaction asks for, in their order; those that ask for nothing are left out.

    Args:
        log: the transactions.
        meaning: of the publication, which knows every structure that they name.
        held: names of what the registry held before the first of them.
        selected: what was meant then, with the URNs that were sent.
        more_to_come: the registry has made transactions that its log does not show yet.
        moved: says what a transaction brings to further topics.
    """
    course = _Course(meaning, set(held), dict(selected), _at_the_end(log), more_to_come, moved)
    return tuple(step for step in map(course.step, log) if step.read or step.delete)


class _Course:
    """Goes along the log, and knows what is held and meant at each moment."""

    def __init__(
        self,
        meaning: SelectedStructures,
        held: set[str],
        selected: dict[str, str],
        stays: Mapping[str, bool],
        open_end: bool,
        moved: Moved,
    ) -> None:
        self._meaning = meaning
        self._held = held
        self._selected = selected
        self._stays = stays
        self._open_end = open_end
        self._moved = moved

    def step(self, transaction: RegistryTransaction) -> LogStep:
        """What this one asks for, given all before it."""
        changed, deleted = named(transaction)
        self._held |= changed.keys()
        self._held -= deleted.keys()
        concerned = self._meaning.versions_beside((*changed, *deleted))
        meant = dict.fromkeys(self._meaning.among(name for name in concerned if name in self._held))
        before = [name for name in concerned if name in self._selected]
        moved = self._named_moved(before, meant)
        risen = [name for name in meant if (name not in self._selected or name in moved) and name not in changed]
        left = [name for name in (*deleted, *before) if name in self._selected and name not in meant]
        read = (
            *(FetchRequest(urn, not self._stays[name]) for name, urn in changed.items() if name in meant),
            *(FetchRequest(self._meaning.urn(name), self._may_be_gone(name)) for name in risen),
        )
        delete = tuple(self._selected.pop(name) for name in dict.fromkeys(left))
        for name in meant:
            self._selected.setdefault(name, changed.get(name) or self._meaning.urn(name))
        return LogStep(transaction, read, delete)

    def _named_moved(self, before: Sequence[str], after: Iterable[str]) -> set[str]:
        urns = {self._selected.get(name) or self._meaning.urn(name): name for name in (*before, *after)}
        names = {name: urn for urn, name in urns.items()}
        moved = self._moved([names[name] for name in before], [names[name] for name in after])
        return {urns[urn] for urn in moved}

    def _may_be_gone(self, name: str) -> bool:
        # A version that a transaction not yet told has added isn't there at the time of an earlier one.
        return self._open_end or not self._stays.get(name, True)


def named(transaction: RegistryTransaction) -> tuple[dict[str, str], dict[str, str]]:
    """What a transaction changed and deleted, by name."""
    changed, deleted = by_name(transaction.changed), by_name(transaction.deleted)
    # What a transaction replaces may stand in both lists; it is there afterwards.
    return changed, {name: urn for name, urn in deleted.items() if name not in changed}


def _at_the_end(log: Sequence[RegistryTransaction]) -> dict[str, bool]:
    """Of every structure that the log names, whether it is there after the last transaction."""
    found: dict[str, bool] = {}
    for transaction in log:
        changed, deleted = named(transaction)
        found.update(dict.fromkeys(changed, True))
        found.update(dict.fromkeys(deleted, False))
    return found


@dataclass(frozen=True, slots=True)
class GapRecovery:
    """What happened in a gap, as far as it can still be seen.

    Attributes:
        read: what is meant at the end of the gap and was not changed since, so that its present content is what it was
            then; names and URNs. What changed since comes with the transaction that changed it.
        absent: what was sent and the registry does not list, by names and the URNs that were sent.
        held: names of what the registry held at the end of the gap.
        selected: what was meant then, with the URNs that were sent or will be.
    """

    read: Names
    absent: Names
    held: tuple[str, ...]
    selected: Names


def plan_gap_recovery(
    later: Sequence[RegistryTransaction], meaning: SelectedStructures, *, held: Sequence[str], sent: Names
) -> GapRecovery:
    """What the gap before these transactions asks for.

    Args:
        later: the transactions after the gap.
        meaning: of the publication.
        held: names of what the registry holds now.
        sent: what the target holds.
    """
    then = held_before(later, held, sent)
    known, changed = set(then), changed_urns(later)
    meant = meaning.among(then)
    absent = {name: urn for name, urn in sent.items() if name not in known}
    return GapRecovery(
        read={name: meaning.urn(name) for name in meant if name not in changed},
        absent=absent,
        held=then,
        selected={name: sent.get(name) or meaning.urn(name) for name in meant},
    )


SETTLED = timedelta(minutes=5)
"""How long ago the last change must be before its time is relied on: HTTP counts whole seconds, and clocks differ."""


def transaction_of(watermark: str | None) -> int | None:
    """The id that a watermark of a registry with a log says; None where it says none."""
    return int(watermark) if watermark and watermark.isascii() and watermark.isdigit() else None


def reached(log: Log, after: int) -> int:
    """The last transaction that the log has told about, be it in a gap. (The newest one may not be told yet.)"""
    told = (transaction.id for transaction in log.transactions)
    return max(after, log.gap_until or after, *told)


def settled(last_modified: str | None, listed_at: datetime) -> str | None:
    """The time of the last change, if the registry can be asked by it next time; None where it gives none, or one that
    can't be relied on.

    Args:
        last_modified: of the list of everything, before anything was read.
        listed_at: a moment before that list was asked for.
    """
    time = _time(last_modified) if last_modified else None
    return last_modified if time is not None and time <= listed_at - SETTLED else None


def _time(text: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
