"""Reading what a registry's log tells: each transaction's structures as it left them, and its deletions."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from contexture.sources.sdmx.reading.scope import Meaning, Names, by_name
from contexture.sources.sdmx.reading.steps import (
    Moved,
    Step,
    catch_up,
    held_before,
    nothing_moves,
    reached,
    steps,
    touched,
)
from contexture.sources.sdmx.registry import Log, LogResetError
from spark_jobs.structures.half_answers import half_answer
from spark_jobs.structures.intake import Intake, Listed
from spark_jobs.structures.outcome import Outcome
from spark_jobs.structures.questions import One
from spark_jobs.structures.snapshot import check_silence, confirm_absent, land_rest, unlisted

_log = logging.getLogger(__name__)


def land_logged(intake: Intake, after: int, moved: Moved = nothing_moves) -> Outcome:
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
        return Outcome(str(after), len(intake.sent), complete=False, transaction=after)
    listed = intake.listed()
    # Asked again, so that it tells all that the list shows.
    log = intake.registry.transactions(after)
    intake.queries.append(f"transactions after {after}")
    meaning = Meaning(intake.selectors, (*listed.urns, *touched(log.transactions).values(), *intake.sent.values()))
    _land_steps(intake, _planned(intake, log, meaning, listed, after, moved))
    check_silence(intake, listed)
    intake.registry.probe()
    told = reached(log, after)
    return Outcome(str(told), len(listed.selected), complete=log.gap_until is not None, transaction=told)


def land_deleted(intake: Intake, listed: Listed, after: int) -> None:
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
    meaning = Meaning(intake.selectors, deleted.values())
    for name, urn in deleted.items():
        if name not in listed.held and name not in intake.tally.landed and meaning.among([name]):
            intake.delete(urn, intake.place())


def _planned(intake: Intake, log: Log, meaning: Meaning, listed: Listed, after: int, moved: Moved) -> tuple[Step, ...]:
    selected: Names = intake.sent
    held = held_before(log.transactions, listed.held, intake.sent)
    if log.gap_until is not None:
        selected = _close_gap(intake, log, log.gap_until, meaning, listed)
    more_to_come = log.newest > reached(log, after)
    return steps(log.transactions, meaning, held=held, selected=selected, more_to_come=more_to_come, moved=moved)


def _close_gap(intake: Intake, log: Log, gap_until: int, meaning: Meaning, listed: Listed) -> Names:
    """Lands what happened in the gap, as far as it can still be seen; gives what was meant at its end."""
    _log.warning("the log of %s does not tell all up to %d: catching up", intake.registry.address, gap_until)
    found = catch_up(log.transactions, meaning, held=tuple(listed.held), sent=intake.sent)
    intake.read_selected(found.read, gap_until)
    after = intake.listed()
    land_rest(intake, found.read, gap_until)
    confirm_absent(intake, [*found.absent.values(), *unlisted(intake, listed, after)])
    return found.selected


def _land_steps(intake: Intake, planned: Iterable[Step]) -> None:
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


def _ask_twice(intake: Intake, questions: list[One], may_be_gone: set[int]) -> None:
    """Asks for structures as they were; one that wasn't there then, and should have been, as it is now."""
    gone = [question for question in intake.ask(questions) if question.place.number not in may_be_gone]
    for question in gone:
        intake.tally.gone.pop(question.place.number)
    missing = intake.ask([One(question.place, question.urn) for question in gone])
    if missing:
        urns = [question.urn for question in missing]
        raise half_answer(intake.registry.address, "tells a change of, and then does not hold,", urns)
