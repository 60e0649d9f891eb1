"""Reading the changes of the registry's log, and rereading structures that a rule refused.

Refused structures are read again only if nothing has changed them since. Otherwise the next run publishes them in their
order: published now, they would come before the transactions in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.reading.steps import (
    LogStep,
    Moved,
    Names,
    SelectedStructures,
    by_name,
    changed_urns,
    held_before,
    missing_registrations,
    no_version_moves,
    plan_gap_recovery,
    reached,
    show_registrations,
    steps,
    transaction_of,
)
from contexture.sources.sdmx.registry import Log, LogResetError, Registry, RegistryTransaction
from contexture.sources.sdmx.urn import is_registration
from spark_jobs.structures.read_context import ReadContext, ReadOutcome, RegistryListing
from spark_jobs.structures.read_snapshot import (
    check_empty_reply,
    confirm_absent,
    contradictory_reply_error,
    land_rest,
    missing_from_list,
)
from spark_jobs.structures.read_tasks import SingleQuery


def check_no_pending_outbox(registry: Registry, selectors: Sequence[Selector], sent_to: int) -> None:
    """Checks that other instances have published every transaction of the log that concerns a selected structure.

    A first run that only records the registry's content would not publish those transactions. Once it had published
    later ones, the other instances would take theirs as published.

    Args:
        registry: with a log.
        selectors: of the publication; none select everything.
        sent_to: the registry transaction up to which the log was published.

    Raises:
        RetriableError: a transaction is not published yet.
    """
    log = registry.transactions(sent_to)
    pending = [
        transaction.id
        for transaction in log.transactions
        if transaction.hides_registrations or _concerns(transaction, selectors)
    ]
    if not pending and log.gap_until is None:
        return
    raise RetriableError(
        f"another instance has published this registry up to transaction {sent_to} of {log.newest}, but not all later "
        "transactions",
        next_step="wait until it has, and this run records what is there; if that instance does not exist any more, "
        "start a run in mode full",
        registry=registry.address,
    )


def _concerns(transaction: RegistryTransaction, selectors: Sequence[Selector]) -> bool:
    urns = (*transaction.changed, *transaction.deleted)
    return any(not selectors or any(selector.matches(urn) for selector in selectors) for urn in urns)


_TOGETHER_FROM = 4
_log = logging.getLogger(__name__)


def land_logged(context: ReadContext, after: int, moved: Moved = no_version_moves) -> ReadOutcome:
    """Lands what happened after a transaction.

    A gap at the start of the log is landed as one transaction with the id of its last one: the selected structures with
    their present content. Then the landing is complete: a sent structure is gone if no row but a deletion names it.

    Args:
        context: of the read.
        after: id of the last known transaction.
        moved: returns what a transaction moves to further topics.

    Raises:
        ContextureError: the registry failed, or its replies contradict each other.
    """
    if reached(context.registry.transactions(after), after) == after:
        return ReadOutcome(str(after), len(context.sent), complete=False, transaction=after)
    listed = context.list_structures()
    # Read again, so that the log contains every change that the list shows.
    log = _with_registrations(context, context.registry.transactions(after))
    context.queries.append(f"transactions after {after}")
    selection = SelectedStructures(
        context.selectors, (*listed.urns, *changed_urns(log.transactions).values(), *context.sent.values())
    )
    _land_steps(context, _plan_steps(context, log, selection, listed, after, moved))
    check_empty_reply(context, listed)
    context.registry.probe()
    newest = reached(log, after)
    return ReadOutcome(str(newest), len(listed.selected), complete=log.gap_until is not None, transaction=newest)


def _with_registrations(context: ReadContext, log: Log) -> Log:
    """Returns the log with what happened to data registrations, where it does not say that itself.

    Raises:
        RetriableError: the registry has a registration that its list lacks.
    """
    if not any(each.hides_registrations for each in log.transactions):
        return log
    # Listed after the log was read, so that the list shows what its transactions did.
    urns = tuple(context.list_structures().held.values())
    confirm_absent(context, missing_registrations(urns, context.sent.values()))
    return replace(log, transactions=show_registrations(log.transactions, urns, context.sent.values()))


def land_deleted(context: ReadContext, listed: RegistryListing, after: int) -> None:
    """Lands, after a snapshot, deletions of the log whose structures are gone.

    Another instance may have published such a structure, and not yet its deletion; the state of this one may lack it.

    Args:
        context: of the read.
        listed: the registry's list after the snapshot.
        after: id of the last known transaction.
    """
    try:
        log = context.registry.transactions(after)
    except LogResetError:
        # The registry has another log now, so only its present content counts.
        return
    deleted = by_name(urn for transaction in log.transactions for urn in transaction.deleted)
    selection = SelectedStructures(context.selectors, deleted.values())
    for name, urn in deleted.items():
        if name not in listed.held and name not in context.totals.landed and selection.among([name]):
            context.delete(urn, context.next_position())


def _plan_steps(
    context: ReadContext, log: Log, selection: SelectedStructures, listed: RegistryListing, after: int, moved: Moved
) -> tuple[LogStep, ...]:
    selected: Names = context.sent
    held = held_before(log.transactions, listed.held, context.sent)
    if log.gap_until is not None:
        selected = _close_gap(context, log, log.gap_until, selection, listed)
    more_to_come = log.newest > reached(log, after)
    return steps(log.transactions, selection, held=held, selected=selected, more_to_come=more_to_come, moved=moved)


def _close_gap(
    context: ReadContext, log: Log, gap_until: int, selection: SelectedStructures, listed: RegistryListing
) -> Names:
    """Lands the net change of a gap in the log; returns the structures that were selected at its end."""
    _log.warning("the log of %s lacks entries up to %d: catching up", context.registry.address, gap_until)
    found = plan_gap_recovery(log.transactions, selection, held=tuple(listed.held), sent=context.sent)
    context.read_selected(found.read, gap_until)
    after = context.list_structures()
    land_rest(context, found.read, gap_until)
    confirm_absent(context, [*found.absent.values(), *missing_from_list(context, listed, after)])
    return found.selected


def _land_steps(context: ReadContext, planned: Iterable[LogStep]) -> None:
    queries: list[SingleQuery] = []
    may_be_gone: set[int] = set()
    for step in planned:
        number, at = step.transaction.id, step.transaction.at
        landed = _land_registrations(context, step)
        for wanted in step.read:
            if wanted.urn in landed:
                continue
            queries.append(SingleQuery(context.next_position(number, at), wanted.urn, as_of=at))
            if wanted.may_be_gone:
                may_be_gone.add(queries[-1].position.number)
        for urn in step.delete:
            context.delete(urn, context.next_position(number, at))
    _read_with_fallback(context, queries, may_be_gone)


def _land_registrations(context: ReadContext, step: LogStep) -> frozenset[str]:
    """Lands the data registrations of a transaction in bulk, if they are many; returns the URNs of those landed."""
    urns = by_name(wanted.urn for wanted in step.read if is_registration(wanted.urn))
    if len(urns) < _TOGETHER_FROM:
        return frozenset()
    landed = context.read_selected(urns, step.transaction.id, step.transaction.at)
    return frozenset(urn for name, urn in urns.items() if name in landed)


def _read_with_fallback(context: ReadContext, queries: list[SingleQuery], may_be_gone: set[int]) -> None:
    """Reads structures as of their transactions, and as they are now if they were absent but should not have been."""
    gone = [query for query in context.run_queries(queries) if query.position.number not in may_be_gone]
    for query in gone:
        context.totals.gone.pop(query.position.number)
    missing = context.run_queries([SingleQuery(query.position, query.urn) for query in gone])
    if missing:
        urns = [query.urn for query in missing]
        raise contradictory_reply_error(context.registry.address, "reports a change of, and then does not hold,", urns)


_RUN_FIRST = "start a run without retry_quarantine: it reads these structures too, under today's rules"


def land_refused(context: ReadContext, urns: Sequence[str], watermark: str | None) -> ReadOutcome:
    """Lands those refused structures that are still selected, and that nothing has changed since the last run.

    Args:
        context: of the read.
        urns: of the refused structures.
        watermark: of the last concluded run.

    Raises:
        ConfigurationError: the log no longer contains all that happened since.
        RetriableError: a structure was changed while it was read, or the registry's replies contradict each other.
    """
    after = _known_transaction(context, watermark)
    listed = context.list_structures()
    refused = [same_artefact(urn) for urn in urns]
    later = _changed_after(context, refused, after)
    names = [name for name in refused if name in listed.selected and name not in later]
    context.queries.append(f"{len(names)} of {len(urns)} structures that were refused")
    _log.info(
        "%d of %d structures are read again; the others were deleted, or the next run reads them", len(names), len(urns)
    )
    gone = context.read_singly(listed.selected[name] for name in names)
    _check_unchanged(context, names, after)
    if gone:
        raise contradictory_reply_error(context.registry.address, "lists, and then does not hold,", gone)
    check_empty_reply(context, listed)
    context.registry.probe()
    return ReadOutcome(None, 0, complete=False, transaction=after)


def _known_transaction(context: ReadContext, watermark: str | None) -> int | None:
    """Returns the transaction up to which the target is current; None: the registry has no log."""
    if not context.registry.has_log:
        return None
    after = transaction_of(watermark)
    if after is None:
        raise ConfigurationError("the last published transaction of the registry is unknown", next_step=_RUN_FIRST)
    return after


def _changed_after(context: ReadContext, names: Iterable[str], after: int | None) -> frozenset[str]:
    """Returns the names of structures that the log reports as changed or deleted after a transaction.

    Of the data registrations among `names` each may have been, where the log does not say which.
    """
    if after is None:
        return frozenset()
    log = context.registry.transactions(after)
    if log.gap_until is not None:
        raise ConfigurationError(
            f"the registry's log no longer contains everything after transaction {after}", next_step=_RUN_FIRST
        )
    if reached(log, after) < log.newest:
        raise RetriableError(
            f"the registry has made transaction {log.newest}, and its log does not contain it yet",
            next_step="clear the task after a few minutes",
        )
    changed = frozenset(changed_urns(log.transactions))
    if any(transaction.hides_registrations for transaction in log.transactions):
        return changed.union(filter(is_registration, names))
    return changed


def _check_unchanged(context: ReadContext, names: Sequence[str], after: int | None) -> None:
    changed = _changed_after(context, names, after).intersection(names)
    if changed:
        raise RetriableError(
            f"{min(changed)} was changed while it was read",
            next_step="clear the task: the next run publishes it",
            structures=len(changed),
        )
