"""What the transactions of a registry's log ask for: what to read, and what is no longer meant.

A version that another one takes over from is deleted though the log doesn't say so (`~` and `+` mean the latest); one
that becomes the latest because a later one was deleted is read though nothing changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from contexture.sdmx.reading.meaning import Meaning, Names, by_name
from contexture.sdmx.registries import RegistryTransaction

Moved = Callable[[Sequence[str], Sequence[str]], Sequence[str]]
"""Of URNs that are meant before and after a transaction: those that it leaves alone and brings to further topics."""


def nothing_moves(before: Sequence[str], after: Sequence[str]) -> Sequence[str]:
    """Where topics don't depend on which version is the latest."""
    return ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A structure to be read.

    Attributes:
        urn: what the registry calls it.
        may_be_gone: the registry may answer that it holds no such thing; otherwise its log and its answer contradict.
    """

    urn: str
    may_be_gone: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What one transaction asks for.

    Attributes:
        transaction: of the registry.
        read: what it added or modified among what is meant, in its order; then what it made the latest version, or
            brought to further topics.
        delete: what was meant before it and isn't any more, by the URNs that were sent.
    """

    transaction: RegistryTransaction
    read: tuple[Wanted, ...]
    delete: tuple[str, ...]


def touched(log: Iterable[RegistryTransaction]) -> dict[str, str]:
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
    meaning: Meaning,
    *,
    held: Iterable[str],
    selected: Names,
    more_to_come: bool = False,
    moved: Moved = nothing_moves,
) -> tuple[Step, ...]:
    """What each transaction asks for, in their order; those that ask for nothing are left out.

    Args:
        log: the transactions.
        meaning: of the publication, which knows every structure that they name.
        held: names of what the registry held before the first of them.
        selected: what was meant then, with the URNs that were sent.
        more_to_come: the registry has made transactions that its log does not tell yet.
        moved: says what a transaction brings to further topics.
    """
    course = _Course(meaning, set(held), dict(selected), _at_the_end(log), more_to_come, moved)
    return tuple(step for step in map(course.step, log) if step.read or step.delete)


class _Course:
    """Goes along the log, and knows what is held and meant at each moment."""

    def __init__(
        self,
        meaning: Meaning,
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

    def step(self, transaction: RegistryTransaction) -> Step:
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
            *(Wanted(urn, not self._stays[name]) for name, urn in changed.items() if name in meant),
            *(Wanted(self._meaning.urn(name), self._may_be_gone(name)) for name in risen),
        )
        delete = tuple(self._selected.pop(name) for name in dict.fromkeys(left))
        for name in meant:
            self._selected.setdefault(name, changed.get(name) or self._meaning.urn(name))
        return Step(transaction, read, delete)

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
