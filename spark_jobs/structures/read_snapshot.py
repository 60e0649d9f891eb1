"""Reading every selected structure so surely that what is missing may count as deleted.

What the registry lists before and after the read, what it gives in bulk, and what it says of one structure must agree;
an answer that is empty or half contradicts one of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from contexture.errors import RetriableError
from contexture.sources.sdmx.reading.scope import Names
from spark_jobs.structures.read_context import Listed, ReadContext


def contradictory_reply_error(registry: str, what: str, urns: Sequence[str]) -> RetriableError:
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


_KINDS_TRIED = 5


def land_snapshot(intake: ReadContext, before: Listed) -> Listed:
    """Lands every structure that is meant.

    Every one was landed, or is marked as inexpressible; what was sent and isn't among them was asked for alone, and the
    registry says that it holds no such thing, or holds it and it isn't meant.

    Args:
        intake: where it is landed.
        before: what the registry lists.

    Returns:
        What it lists afterwards.

    Raises:
        ContextureError: the registry failed, or its answers contradict each other.
    """
    intake.read_selected(before.selected)
    # Of two answers in succession one is true: what neither list has was not there at the time of one of them.
    earlier, after = intake.listed(), intake.listed()
    land_rest(intake, after.selected)
    land_unless_gone(intake, {**before.selected, **earlier.selected}, after)
    absent = [urn for name, urn in intake.sent.items() if name not in after.held and name not in intake.tally.landed]
    confirm_absent(intake, [*absent, *missing_from_list(intake, before, earlier, after)])
    check_empty_reply(intake, after)
    intake.registry.probe()
    return after


def land_rest(intake: ReadContext, selected: Names, transaction: int | None = None) -> None:
    """Lands those of the structures that were not landed yet, asked for one by one.

    Raises:
        RetriableError: the registry lists one of them, and says that it does not hold it.
    """
    missing = [urn for name, urn in selected.items() if name not in intake.tally.landed]
    gone = intake.read_one_by_one(missing, transaction)
    if gone:
        raise contradictory_reply_error(intake.registry.address, "lists, and then does not hold,", gone)


def land_unless_gone(intake: ReadContext, selected: Names, after: Listed) -> None:
    """Lands those of earlier lists that the last one lacks and that were not landed; they may be gone by now.

    Raises:
        RetriableError: the registry holds one of them, and then says that it does not.
    """
    unsure = [name for name in selected if name not in after.held and name not in intake.tally.landed]
    there = frozenset(intake.look_for(selected[name] for name in unsure))
    land_rest(intake, {name: selected[name] for name in unsure if selected[name] in there})


def confirm_absent(intake: ReadContext, urns: Iterable[str]) -> None:
    """Asks for structures that the registry does not list.

    Raises:
        RetriableError: it holds one of them all the same.
    """
    there = intake.look_for(urns)
    if there:
        raise contradictory_reply_error(intake.registry.address, "does not list, and yet holds,", there)


def check_empty_reply(intake: ReadContext, listed: Listed) -> None:
    """Makes sure that "there is none" is no word that the registry has for everything.

    Where it has said so, in whatever way, it has to give a structure that is surely there when asked for that alone.

    Raises:
        RetriableError: it gives none of them.
    """
    if not intake.lacks_some or intake.gives_single_structures:
        return
    sure = _surely_there(intake, listed)
    if not any(intake.gives(urn) for urn in sure):
        raise contradictory_reply_error(
            intake.registry.address, "lists, and does not give when asked for it alone,", sure
        )


def _surely_there(intake: ReadContext, listed: Listed) -> list[str]:
    """One that it has just given; or one that it gave before, and one of each kind."""
    if intake.tally.landed:
        return [next(iter(intake.tally.landed.values()))]
    sent = (urn for name, urn in listed.held.items() if name in intake.sent)
    kinds = {_kind(urn): urn for urn in listed.held.values()}
    return [*islice(sent, 1), *islice(kinds.values(), _KINDS_TRIED)]


def missing_from_list(intake: ReadContext, *lists: Listed) -> list[str]:
    """What replies held although no list has it.

    A kind that no list has at all is one that the format has another name for; its structures are listed by that.
    """
    listed = {name for each in lists for name in each.held}
    kinds = {_kind(name) for name in listed}
    return [urn for name, urn in intake.tally.others.items() if name not in listed and _kind(name) in kinds]


def _kind(urn: str) -> str:
    return urn.partition("=")[0]
