"""What the transactions of a registry's log require: what to read, and what is no longer selected.

A superseded version is deleted though the log does not say so, because `~` and `+` select the latest. A version that
becomes the latest because a later one was deleted is read though nothing changed it. What was sent, and neither is
selected nor was changed since, was deleted in the gap.

Of an interval of the past, the structures before its first transaction are those of today, without what was added since
and with what was changed or deleted since. Nothing else is inferred.

A watermark is the id of a transaction, in decimal digits, where the registry has a log. Otherwise it is the registry's
Last-Modified, which only shows whether anything changed since.

Structures are selected by any of the URNs they have. One artefact may have a URN in one format and another in the next
(a `ContentConstraint` of SDMX-ML 2.1 is a `DataConstraint` in a registry's log). Here every structure goes by its
*name*, the one that `same_artefact` gives for all of its URNs; the URNs themselves are stored with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.registry import Log, LogPeriod, RegistryTransaction
from contexture.sources.sdmx.selectors import Selector, select_structures
from contexture.sources.sdmx.urn import Urn, is_registration


def show_registrations(
    log: Sequence[RegistryTransaction], listed: Iterable[str], sent: Iterable[str]
) -> tuple[RegistryTransaction, ...]:
    """Returns the transactions, the last that hides data registrations with all that may have happened to them.

    Each registration that the registry lists may have been changed, and each that was sent and is not listed was
    deleted. Which of several transactions did it makes no difference to what is there after the last one.

    Args:
        log: the transactions.
        listed: URNs of what the registry holds now.
        sent: URNs of what the target holds.
    """
    last = max((each.id for each in log if each.hides_registrations), default=None)
    held = tuple(urn for urn in listed if is_registration(urn))
    ended = missing_registrations(held, sent)
    return tuple(
        replace(each, changed=(*each.changed, *held), deleted=(*each.deleted, *ended)) if each.id == last else each
        for each in log
    )


def missing_registrations(listed: Iterable[str], sent: Iterable[str]) -> tuple[str, ...]:
    """Returns the data registrations that the target holds and the registry does not list."""
    held = frozenset(listed)
    return tuple(urn for urn in sent if is_registration(urn) and urn not in held)


Names = Mapping[str, str]
"""URNs by name."""


def by_name(urns: Iterable[str]) -> dict[str, str]:
    """Returns the URNs by their names; of two URNs of one artefact the first."""
    found: dict[str, str] = {}
    for urn in urns:
        found.setdefault(same_artefact(urn), urn)
    return found


class SelectedStructures:
    """The structures that selectors select.

    Args:
        selectors: of a publication; without any, everything is selected.
        urns: all that is known of any structure, also of deleted ones; requests to the registry use the first URN of a
            name.
    """

    def __init__(self, selectors: Sequence[Selector], urns: Iterable[str]) -> None:
        self._selectors = selectors
        self._written: dict[str, list[str]] = {}
        for urn in dict.fromkeys(urns):
            self._written.setdefault(same_artefact(urn), []).append(urn)
        self._versions: dict[str, list[str]] = {}
        for name in self._written:
            self._versions.setdefault(_without_version(name), []).append(name)

    def urn(self, name: str) -> str:
        """Returns the registry's URN of a structure."""
        return self._written[name][0]

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns those of the structures that are selected when they are all there is, in their order."""
        held = tuple(names)
        if not self._selectors:
            return held
        chosen = select_structures(self._selectors, [urn for name in held for urn in self._written[name]])
        selected = {same_artefact(urn) for urn in chosen}
        return tuple(name for name in held if name in selected)

    def versions_beside(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns these structures and all other versions of them, each once: these alone show which is the latest."""
        return tuple(dict.fromkeys(self._beside(names)))

    def _beside(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield from self._versions[_without_version(name)]


def _without_version(name: str) -> str:
    try:
        return str(replace(Urn.parse(name), version=""))
    except ValueError:
        # What has no version to distinguish it is a structure of its own.
        return name


Moved = Callable[[Sequence[str], Sequence[str]], Sequence[str]]
"""Returns, of the URNs selected before and after a transaction, those it does not change but adds to further topics."""


def no_version_moves(before: Sequence[str], after: Sequence[str]) -> Sequence[str]:
    """Returns nothing: topics do not depend on which version is the latest."""
    return ()


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A structure to be read.

    Attributes:
        urn: the registry's name of it.
        may_be_gone: the registry may respond that it holds no such structure; otherwise its log contradicts that.
    """

    urn: str
    may_be_gone: bool = False


@dataclass(frozen=True, slots=True)
class LogStep:
    """What one transaction requires.

    Attributes:
        transaction: of the registry.
        read: selected structures that it added or modified, in its order; then those that it made the latest version,
            or added to further topics.
        delete: what was selected before it and is not any more, by the URNs that were sent.
    """

    transaction: RegistryTransaction
    read: tuple[FetchRequest, ...]
    delete: tuple[str, ...]


def changed_urns(log: Iterable[RegistryTransaction]) -> dict[str, str]:
    """Returns the URNs of all structures that transactions changed or deleted, by name."""
    return by_name(urn for each in log for urn in (*each.changed, *each.deleted))


def held_before(log: Sequence[RegistryTransaction], held: Iterable[str], sent: Names) -> tuple[str, ...]:
    """Returns the names that the registry held before the first of these transactions.

    The log does not say whether a change added a structure. What was sent had been there; what was not sent makes no
    difference.

    Args:
        log: all transactions that it knows up to the moment of `held`, or later.
        held: names of what it holds.
        sent: what the target holds.
    """
    return _before(log, held, lambda name, _urn, _added: name in sent)


def structures_at(log: Sequence[RegistryTransaction], held: Iterable[str]) -> tuple[str, ...]:
    """Returns the names that the registry held before the first of these transactions, by what each says it added.

    Args:
        log: all of them up to the moment of `held`, or later.
        held: names of what it holds.
    """
    return _before(log, held, lambda _name, urn, added: urn not in added)


def _before(
    log: Sequence[RegistryTransaction], held: Iterable[str], was_there: Callable[[str, str, Sequence[str]], bool]
) -> tuple[str, ...]:
    first: dict[str, bool] = {}
    for transaction in log:
        changed, deleted = names_in(transaction)
        for name in deleted:
            first.setdefault(name, True)
        for name, urn in changed.items():
            first.setdefault(name, was_there(name, urn, transaction.added))
    untouched = (name for name in held if name not in first)
    return (*untouched, *(name for name, is_there in first.items() if is_there))


def steps(
    log: Sequence[RegistryTransaction],
    scope: SelectedStructures,
    *,
    held: Iterable[str],
    selected: Names,
    more_to_come: bool = False,
    moved: Moved = no_version_moves,
) -> tuple[LogStep, ...]:
    """Returns what each transaction requires, in their order, without those that require nothing.

    Args:
        log: the transactions.
        scope: of the publication, which knows every structure that they name.
        held: names of what the registry held before the first of them.
        selected: what was selected then, with the URNs that were sent.
        more_to_come: the registry has made transactions that its log does not show yet.
        moved: returns what a transaction adds to further topics.
    """
    pass_ = _LogPass(scope, set(held), dict(selected), _at_the_end(log), more_to_come, moved)
    return tuple(step for step in map(pass_.step, log) if step.read or step.delete)


class _LogPass:
    """Goes through the log, and knows what is held and selected at each moment."""

    def __init__(
        self,
        scope: SelectedStructures,
        held: set[str],
        selected: dict[str, str],
        stays: Mapping[str, bool],
        open_end: bool,
        moved: Moved,
    ) -> None:
        self._scope = scope
        self._held = held
        self._selected = selected
        self._stays = stays
        self._open_end = open_end
        self._moved = moved

    def step(self, transaction: RegistryTransaction) -> LogStep:
        """Returns what this transaction requires after all before it."""
        changed, deleted = names_in(transaction)
        self._held |= changed.keys()
        self._held -= deleted.keys()
        concerned = self._scope.versions_beside((*changed, *deleted))
        selected_now = dict.fromkeys(self._scope.among(name for name in concerned if name in self._held))
        before = [name for name in concerned if name in self._selected]
        moved = self._named_moved(before, selected_now)
        risen = [name for name in selected_now if (name not in self._selected or name in moved) and name not in changed]
        left = [name for name in (*deleted, *before) if name in self._selected and name not in selected_now]
        read = (
            *(FetchRequest(urn, not self._stays[name]) for name, urn in changed.items() if name in selected_now),
            *(FetchRequest(self._scope.urn(name), self._may_be_gone(name)) for name in risen),
        )
        delete = tuple(self._selected.pop(name) for name in dict.fromkeys(left))
        for name in selected_now:
            self._selected.setdefault(name, changed.get(name) or self._scope.urn(name))
        return LogStep(transaction, read, delete)

    def _named_moved(self, before: Sequence[str], after: Iterable[str]) -> set[str]:
        urns = {self._selected.get(name) or self._scope.urn(name): name for name in (*before, *after)}
        names = {name: urn for urn, name in urns.items()}
        moved = self._moved([names[name] for name in before], [names[name] for name in after])
        return {urns[urn] for urn in moved}

    def _may_be_gone(self, name: str) -> bool:
        # A version that a transaction not yet in the log has added is not there at the time of an earlier one.
        return self._open_end or not self._stays.get(name, True)


def names_in(transaction: RegistryTransaction) -> tuple[dict[str, str], dict[str, str]]:
    """Returns what a transaction changed and what it deleted, by name."""
    changed, deleted = by_name(transaction.changed), by_name(transaction.deleted)
    # What a transaction replaces may be in both lists; it is there afterwards.
    return changed, {name: urn for name, urn in deleted.items() if name not in changed}


def _at_the_end(log: Sequence[RegistryTransaction]) -> dict[str, bool]:
    """Returns for every structure that the log names whether it is there after the last transaction."""
    found: dict[str, bool] = {}
    for transaction in log:
        changed, deleted = names_in(transaction)
        found.update(dict.fromkeys(changed, True))
        found.update(dict.fromkeys(deleted, False))
    return found


@dataclass(frozen=True, slots=True)
class GapRecovery:
    """What happened in a gap, if it can still be seen.

    Attributes:
        read: what is selected at the end of the gap and was not changed since, so that its present content is that of
            then; names and URNs. What changed since comes with the transaction that changed it.
        absent: what was sent and the registry does not list, by names and the URNs that were sent.
        held: names of what the registry held at the end of the gap.
        selected: what was selected then, with the URNs that were sent or will be.
    """

    read: Names
    absent: Names
    held: tuple[str, ...]
    selected: Names


def plan_gap_recovery(
    later: Sequence[RegistryTransaction], scope: SelectedStructures, *, held: Sequence[str], sent: Names
) -> GapRecovery:
    """Returns what the gap before these transactions requires.

    Args:
        later: the transactions after the gap.
        scope: of the publication.
        held: names of what the registry holds now.
        sent: what the target holds.
    """
    then = held_before(later, held, sent)
    known, changed = set(then), changed_urns(later)
    selected = scope.among(then)
    absent = {name: urn for name, urn in sent.items() if name not in known}
    return GapRecovery(
        read={name: scope.urn(name) for name in selected if name not in changed},
        absent=absent,
        held=then,
        selected={name: sent.get(name) or scope.urn(name) for name in selected},
    )


@dataclass(frozen=True, slots=True)
class LogReplay:
    """What the log contains about an interval of the past.

    Attributes:
        steps: what its transactions require, in order, by their ids; those that require nothing are left out.
        known: ids of all transactions that it contains, also of those that require nothing.
        selected: what was selected before the first of them, by name, with the URNs of today.
        unreadable: ids of those whose content cannot be distinguished from that of another one at the same moment.
    """

    steps: dict[int, LogStep]
    known: frozenset[int]
    selected: Names
    unreadable: frozenset[int]


def plan_log_replay(
    log: Log,
    period: LogPeriod,
    scope: SelectedStructures,
    *,
    held: Iterable[str],
    sent: Names,
    moved: Moved = no_version_moves,
) -> LogReplay:
    """Returns what the transactions of an interval of the past require.

    Args:
        log: all transactions since the last one before it.
        period: the transactions in it.
        scope: of the publication, which knows every structure that the log names.
        held: names of what the registry held after the log was read, or before.
        sent: URNs that the target holds, by name: what was sent of a structure had that one.
        moved: returns what a transaction adds to further topics.
    """
    before = structures_at(log.transactions, held)
    selected = {name: sent.get(name) or scope.urn(name) for name in scope.among(before)}
    every = steps(log.transactions, scope, held=before, selected=selected, more_to_come=True, moved=moved)
    inside = frozenset(period.ids)
    return LogReplay(
        steps={step.transaction.id: step for step in every if step.transaction.id in inside},
        known=inside & {each.id for each in log.transactions if not each.hides_registrations},
        selected=selected,
        unreadable=inside & (_at_one_moment(log.transactions) | _of_registrations(log.transactions)),
    )


def _of_registrations(log: Sequence[RegistryTransaction]) -> set[int]:
    """Returns transactions that changed data registrations: no registry shows what these were at a moment."""
    return {transaction.id for transaction in log if any(map(is_registration, transaction.changed))}


def _at_one_moment(log: Sequence[RegistryTransaction]) -> set[int]:
    """Returns transactions that changed what a later one of the same moment changed: only the later content shows."""
    found: set[int] = set()
    for place, transaction in enumerate(log):
        changed = names_in(transaction)[0].keys()
        for later in log[place + 1 :]:
            if later.at != transaction.at:
                break
            touched = [*names_in(later)[0], *names_in(later)[1]]
            if not changed.isdisjoint(touched):
                found.add(transaction.id)
    return found


SETTLED = timedelta(minutes=5)
"""How long ago the last change must be before its time is relied on: HTTP counts whole seconds, and clocks differ."""


def transaction_of(watermark: str | None) -> int | None:
    """Returns the transaction id of a watermark; None where it is not one of a log."""
    return int(watermark) if watermark and watermark.isascii() and watermark.isdigit() else None


def reached(log: Log, after: int) -> int:
    """Returns the last transaction that the log contains, also in a gap. (It may not contain the newest one yet.)"""
    return max(after, log.gap_until or after, *(transaction.id for transaction in log.transactions))


def settled(last_modified: str | None, listed_at: datetime) -> str | None:
    """Returns the time of the last change, if the next request can use it; None where it is absent or unreliable.

    Args:
        last_modified: of the list of everything, before anything was read.
        listed_at: a moment before that list was requested.
    """
    time = _time(last_modified) if last_modified else None
    return last_modified if time is not None and time <= listed_at - SETTLED else None


def _time(text: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
