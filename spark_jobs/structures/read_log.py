"""Reading what the registry's log requires, and again what a rule refused before.

Only what nothing has changed since then is read. All else is told by the next run, at its own place: told now, it would
stand before the transactions that lie between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.reading.scope import Names, SelectedStructures, by_name
from contexture.sources.sdmx.reading.steps import (
    LogStep,
    Moved,
    changed_urns,
    held_before,
    no_version_moves,
    plan_gap_recovery,
    reached,
    steps,
    transaction_of,
)
from contexture.sources.sdmx.registry import Log, LogResetError, Registry, RegistryTransaction
from spark_jobs.structures.read_context import Listed, ReadContext, ReadOutcome
from spark_jobs.structures.read_snapshot import (
    check_empty_reply,
    confirm_absent,
    contradictory_reply_error,
    land_rest,
    missing_from_list,
)
from spark_jobs.structures.read_tasks import One


def check_no_pending_outbox(registry: Registry, selectors: Sequence[Selector], told: int) -> None:
    """Returns when the others have told all that the log says about what is selected.

    An instance that has only noted what is there would not show what they still have to; and once it had told something
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
        f"another instance has published this registry up to transaction {told} of {log.newest}, and not all "
        "that came after it",
        next_step="wait until it has, and this run will note what is there; if it is gone, start a run in mode full",
        registry=registry.address,
    )


def _concerns(transaction: RegistryTransaction, selectors: Sequence[Selector]) -> bool:
    urns = (*transaction.changed, *transaction.deleted)
    return any(not selectors or any(selector.matches(urn) for selector in selectors) for urn in urns)


_log = logging.getLogger(__name__)


def land_logged(intake: ReadContext, after: int, moved: Moved = no_version_moves) -> ReadOutcome:
    """Lands what happened after a transaction.

    What the log can no longer tell is landed as one transaction, with the id of the last one of the gap: what is meant
    as it is now. Then the landing is complete: what was sent, and no row names but deletions, is gone.

    Args:
        intake: where it is landed.
        after: id of the last transaction that is known.
        moved: says what a transaction brings to further topics.

    Raises:
        ContextureError: the registry failed, or its answers contradict each other.
    """
    if reached(intake.registry.transactions(after), after) == after:
        return ReadOutcome(str(after), len(intake.sent), complete=False, transaction=after)
    listed = intake.listed()
    # Asked again, so that it tells all that the list shows.
    log = intake.registry.transactions(after)
    intake.queries.append(f"transactions after {after}")
    meaning = SelectedStructures(
        intake.selectors, (*listed.urns, *changed_urns(log.transactions).values(), *intake.sent.values())
    )
    _land_steps(intake, _planned(intake, log, meaning, listed, after, moved))
    check_empty_reply(intake, listed)
    intake.registry.probe()
    told = reached(log, after)
    return ReadOutcome(str(told), len(listed.selected), complete=log.gap_until is not None, transaction=told)


def land_deleted(intake: ReadContext, listed: Listed, after: int) -> None:
    """Lands, behind a snapshot, what the log says was deleted, and is gone.

    Another instance may have published it, and not yet its deletion; what this one sent need not have it.

    Args:
        intake: where it is landed.
        listed: what the registry lists after the snapshot.
        after: id of the last transaction that is known.
    """
    try:
        log = intake.registry.transactions(after)
    except LogResetError:
        # It is another log than the one that is known: only what is there now counts.
        return
    deleted = by_name(urn for transaction in log.transactions for urn in transaction.deleted)
    meaning = SelectedStructures(intake.selectors, deleted.values())
    for name, urn in deleted.items():
        if name not in listed.held and name not in intake.tally.landed and meaning.among([name]):
            intake.delete(urn, intake.place())


def _planned(
    intake: ReadContext, log: Log, meaning: SelectedStructures, listed: Listed, after: int, moved: Moved
) -> tuple[LogStep, ...]:
    selected: Names = intake.sent
    held = held_before(log.transactions, listed.held, intake.sent)
    if log.gap_until is not None:
        selected = _close_gap(intake, log, log.gap_until, meaning, listed)
    more_to_come = log.newest > reached(log, after)
    return steps(log.transactions, meaning, held=held, selected=selected, more_to_come=more_to_come, moved=moved)


def _close_gap(intake: ReadContext, log: Log, gap_until: int, meaning: SelectedStructures, listed: Listed) -> Names:
    """Lands what happened in the gap, as far as it can still be seen; gives what was meant at its end."""
    _log.warning("the log of %s lacks entries up to %d: catching up", intake.registry.address, gap_until)
    found = plan_gap_recovery(log.transactions, meaning, held=tuple(listed.held), sent=intake.sent)
    intake.read_selected(found.read, gap_until)
    after = intake.listed()
    land_rest(intake, found.read, gap_until)
    confirm_absent(intake, [*found.absent.values(), *missing_from_list(intake, listed, after)])
    return found.selected


def _land_steps(intake: ReadContext, planned: Iterable[LogStep]) -> None:
    questions: list[One] = []
    may_be_gone: set[int] = set()
    for step in planned:
        number, at = step.transaction.id, step.transaction.at
        for wanted in step.read:
            questions.append(One(intake.place(number, at), wanted.urn, as_of=at))
            if wanted.may_be_gone:
                may_be_gone.add(questions[-1].place.number)
        for urn in step.delete:
            intake.delete(urn, intake.place(number, at))
    _ask_twice(intake, questions, may_be_gone)


def _ask_twice(intake: ReadContext, questions: list[One], may_be_gone: set[int]) -> None:
    """Asks for structures as they were; one that wasn't there then, and should have been, as it is now."""
    gone = [question for question in intake.ask(questions) if question.place.number not in may_be_gone]
    for question in gone:
        intake.tally.gone.pop(question.place.number)
    missing = intake.ask([One(question.place, question.urn) for question in gone])
    if missing:
        urns = [question.urn for question in missing]
        raise contradictory_reply_error(intake.registry.address, "reports a change of, and then does not hold,", urns)


_RUN_FIRST = "start a run without retry_quarantine: it reads these structures too, under today's rules"


def land_refused(intake: ReadContext, urns: Sequence[str], watermark: str | None) -> ReadOutcome:
    """Lands those of the structures that are still meant, and that nothing has changed since the last run.

    Args:
        intake: where they are landed.
        urns: of what was refused.
        watermark: of the last concluded run.

    Raises:
        ConfigurationError: the log no longer tells all that happened since.
        RetriableError: a structure was changed while it was read, or the registry's answers contradict each other.
    """
    after = _place(intake, watermark)
    listed = intake.listed()
    later = _changed_after(intake, after)
    names = [name for name in map(same_artefact, urns) if name in listed.selected and name not in later]
    intake.queries.append(f"{len(names)} of {len(urns)} structures that were refused")
    _log.info("%d of %d structures are read again; others are gone or left to the next run", len(names), len(urns))
    gone = intake.read_one_by_one(listed.selected[name] for name in names)
    _check_unchanged(intake, names, after)
    if gone:
        raise contradictory_reply_error(intake.registry.address, "lists, and then does not hold,", gone)
    check_empty_reply(intake, listed)
    intake.registry.probe()
    return ReadOutcome(None, 0, complete=False, transaction=after)


def _place(intake: ReadContext, watermark: str | None) -> int | None:
    """The transaction up to which the target knows the registry; None where it numbers none."""
    if not intake.registry.has_log:
        return None
    after = transaction_of(watermark)
    if after is None:
        raise ConfigurationError("the last published transaction of the registry is unknown", next_step=_RUN_FIRST)
    return after


def _changed_after(intake: ReadContext, after: int | None) -> frozenset[str]:
    """Names of what the log says was changed or deleted after a transaction."""
    if after is None:
        return frozenset()
    log = intake.registry.transactions(after)
    if log.gap_until is not None:
        raise ConfigurationError(
            f"the registry's log no longer has all that happened after transaction {after}", next_step=_RUN_FIRST
        )
    if reached(log, after) < log.newest:
        raise RetriableError(
            f"the registry has made transaction {log.newest}, and its log does not have it yet",
            next_step="clear the task in a while",
        )
    return frozenset(changed_urns(log.transactions))


def _check_unchanged(intake: ReadContext, names: Iterable[str], after: int | None) -> None:
    changed = _changed_after(intake, after).intersection(names)
    if changed:
        raise RetriableError(
            f"{min(changed)} was changed while it was read",
            next_step="clear the task: the next run publishes it",
            structures=len(changed),
        )
