"""Reading again what a rule refused before: as the registry has it, at the place in its log where the target stands.

Only what nothing has changed since then is read. All else is told by the next run, at its own place: told now, it would
stand before the transactions that lie between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx.reading.steps import reached, touched, transaction_of
from contexture.sources.sdmx.registry import same_artefact
from spark_jobs.structures.half_answers import half_answer
from spark_jobs.structures.intake import Intake
from spark_jobs.structures.outcome import Outcome
from spark_jobs.structures.snapshot import check_silence

_RUN_FIRST = "start a run without retry_quarantine: it reads these structures too, under today's rules"
_log = logging.getLogger(__name__)


def land_refused(intake: Intake, urns: Sequence[str], watermark: str | None) -> Outcome:
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
    _log.info("%d of %d structures are read again; others are gone, or the next run tells them", len(names), len(urns))
    gone = intake.read_one_by_one(listed.selected[name] for name in names)
    _check_unchanged(intake, names, after)
    if gone:
        raise half_answer(intake.registry.address, "lists, and then does not hold,", gone)
    check_silence(intake, listed)
    intake.registry.probe()
    return Outcome(None, 0, complete=False, transaction=after)


def _place(intake: Intake, watermark: str | None) -> int | None:
    """The transaction up to which the target knows the registry; None where it numbers none."""
    if not intake.registry.has_log:
        return None
    after = transaction_of(watermark)
    if after is None:
        raise ConfigurationError(
            "nobody knows up to which of the registry's transactions this publication is told", next_step=_RUN_FIRST
        )
    return after


def _changed_after(intake: Intake, after: int | None) -> frozenset[str]:
    """Names of what the log says was changed or deleted after a transaction."""
    if after is None:
        return frozenset()
    log = intake.registry.transactions(after)
    if log.gap_until is not None:
        raise ConfigurationError(
            f"the registry's log no longer tells all that happened after transaction {after}", next_step=_RUN_FIRST
        )
    if reached(log, after) < log.newest:
        raise RetriableError(
            f"the registry has made transaction {log.newest}, and its log does not tell it yet",
            next_step="clear the task in a while",
        )
    return frozenset(touched(log.transactions))


def _check_unchanged(intake: Intake, names: Iterable[str], after: int | None) -> None:
    changed = _changed_after(intake, after).intersection(names)
    if changed:
        raise RetriableError(
            f"{min(changed)} was changed while it was read",
            next_step="clear the task: then the next run tells it",
            structures=len(changed),
        )
