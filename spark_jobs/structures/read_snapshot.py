"""Reading every selected structure so reliably that a missing structure counts as deleted.

The lists before and after the read, the bulk replies and the single replies must agree. An empty or incomplete reply
contradicts one of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from contexture.errors import RetriableError
from contexture.sources.sdmx.reading.steps import Names
from spark_jobs.structures.read_context import ReadContext, RegistryListing


def contradictory_reply_error(registry: str, what: str, urns: Sequence[str]) -> RetriableError:
    """Returns the error of a registry whose replies contradict each other.

    Args:
        registry: its address.
        what: the contradiction, as a verb before the structures, such as `lists, and then does not hold,`.
        urns: of the structures.
    """
    more = f" and {len(urns) - 1:,} more" if len(urns) > 1 else ""
    return RetriableError(
        f"incomplete response: the registry at {registry} {what} {urns[0]}{more}",
        next_step="retry, because the registry may have changed; if the error persists, check the registry's log. "
        "Nothing was sent or deleted",
        registry=registry,
    )


_KINDS_CHECKED = 5


def land_snapshot(context: ReadContext, before: RegistryListing) -> RegistryListing:
    """Lands every selected structure.

    Afterwards each is landed, or marked as inexpressible. Each other structure that was sent is listed but no longer
    selected, or is absent, which a single query has confirmed.

    Args:
        context: of the read.
        before: the registry's list before the read.

    Returns:
        The list after the read.

    Raises:
        ContextureError: the registry failed, or its replies contradict each other.
    """
    context.read_selected(before.selected)
    # Of two successive lists one is complete: a structure in neither was absent at the time of one of them.
    earlier, after = context.list_structures(), context.list_structures()
    land_rest(context, after.selected)
    land_unless_gone(context, {**before.selected, **earlier.selected}, after)
    absent = [urn for name, urn in context.sent.items() if name not in after.held and name not in context.totals.landed]
    confirm_absent(context, [*absent, *missing_from_list(context, before, earlier, after)])
    check_empty_reply(context, after)
    context.registry.probe()
    return after


def land_rest(context: ReadContext, selected: Names, transaction: int | None = None) -> None:
    """Lands those of the structures that were not landed yet, by single queries.

    Raises:
        RetriableError: the registry lists one of them, and reports it as absent.
    """
    missing = [urn for name, urn in selected.items() if name not in context.totals.landed]
    gone = context.read_singly(missing, transaction)
    if gone:
        raise contradictory_reply_error(context.registry.address, "lists, and then does not hold,", gone)


def land_unless_gone(context: ReadContext, selected: Names, after: RegistryListing) -> None:
    """Lands structures of earlier lists that the last list lacks and that were not landed, if they are still there.

    Raises:
        RetriableError: the registry has one of them, and then reports it as absent.
    """
    unsure = [name for name in selected if name not in after.held and name not in context.totals.landed]
    there = frozenset(context.search(selected[name] for name in unsure))
    land_rest(context, {name: selected[name] for name in unsure if selected[name] in there})


def confirm_absent(context: ReadContext, urns: Iterable[str]) -> None:
    """Checks that structures are absent that the registry does not list.

    Raises:
        RetriableError: the registry has one of them.
    """
    there = context.search(urns)
    if there:
        raise contradictory_reply_error(context.registry.address, "does not list, and yet holds,", there)


def check_empty_reply(context: ReadContext, listed: RegistryListing) -> None:
    """Checks that the registry does not report every structure as absent.

    If it has reported any structure as absent or inexpressible, a single query for an existing one must return it.

    Raises:
        RetriableError: the registry returns none of the existing structures.
    """
    if not context.has_negative_reply or context.has_single_reply:
        return
    existing = _existing_structures(context, listed)
    if not any(context.can_read_singly(urn) for urn in existing):
        raise contradictory_reply_error(
            context.registry.address, "lists, and does not give when asked for it alone,", existing
        )


def _existing_structures(context: ReadContext, listed: RegistryListing) -> list[str]:
    """Returns a structure that was just landed; if there is none, one that was sent before and one of each kind."""
    if context.totals.landed:
        return [next(iter(context.totals.landed.values()))]
    sent = (urn for name, urn in listed.held.items() if name in context.sent)
    kinds = {_kind(urn): urn for urn in listed.held.values()}
    return [*islice(sent, 1), *islice(kinds.values(), _KINDS_CHECKED)]


def missing_from_list(context: ReadContext, *lists: RegistryListing) -> list[str]:
    """Returns structures that replies contained, and no list contains.

    Kinds that no list contains are ignored, because the format has another name for them, which the lists use.
    """
    listed = {name for each in lists for name in each.held}
    kinds = {_kind(name) for name in listed}
    return [urn for name, urn in context.totals.others.items() if name not in listed and _kind(name) in kinds]


def _kind(urn: str) -> str:
    return urn.partition("=")[0]
