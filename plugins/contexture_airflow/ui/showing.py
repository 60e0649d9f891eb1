"""What a person should see before confirming an action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contexture.errors import ConfigurationError, DefectError
from contexture.monitoring.rows import RunRow
from contexture.operations.status.quarantine import HeldBack, held_back
from contexture.operations.status.sources import Sources
from contexture.storage.delivery import AttemptLog
from contexture.storage.outboxes import Outboxes
from contexture.storage.shrink_report import Vanishing, kept_vanishing

CONFIRM_SHRINK: Final = "confirm-shrink"
_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands beside the form.

    Attributes:
        facts: names and values.
        held: what the rules hold back, with a choice of rules.
        vanishing: what would be deleted.
    """

    facts: tuple[tuple[str, str], ...] = ()
    held: HeldBack | None = None
    vanishing: Vanishing | None = None


def shown_before(sources: Sources, name: str, action: str, outbox: str) -> Shown:
    """What belongs to an action; nothing for most.

    Raises:
        ConfigurationError: there is no such outbox.
        RetriableError: the storage did not answer.
    """
    if action == CONFIRM_SHRINK:
        return Shown(vanishing=vanishing_of_latest(sources, name))
    if not outbox:
        return Shown()
    status = Outboxes(sources.storage, name).status(_one_step(outbox))
    if action == "retry-quarantine":
        return Shown(held=held_back(sources.storage, name, status))
    sends = AttemptLog(sources.storage, name).of_outbox(outbox)
    failed = ", ".join(f"shard {each.shard}: {each.told()}" for each in sends)
    stands = f"{status.status}, {status.steps[-1].reason}"
    told = _of_manifest(Outboxes(sources.storage, name), outbox)
    return Shown(facts=(("Outbox", outbox), ("Stands", stands), *told, ("Failed sends", failed or "none")))


def _of_manifest(outboxes: Outboxes, outbox: str) -> tuple[tuple[str, str], ...]:
    try:
        manifest = outboxes.manifest(outbox)
    except DefectError:
        # To be abandoned is the way out of a damaged outbox.
        return (("Records", "not known: its manifest can not be read"),)
    records = f"{manifest.records:,} for {manifest.topics:,} topics, {manifest.deletes:,} of them tombstones"
    return (("Mode", manifest.mode), ("Records", records))


def vanishing_of_latest(sources: Sources, name: str) -> Vanishing | None:
    """What the last run that has ended would have deleted, had the guard let it; backfills delete nothing."""
    runs: Sequence[RunRow] = sources.tables.ask(lambda history: history.runs(name, limit=_LOOKED_AT), ())
    ended = (each for each in runs if each.state != "running" and not each.is_backfill)
    latest = next(ended, None)
    return kept_vanishing(sources.storage, name, latest.run) if latest else None


def _one_step(outbox: str) -> str:
    # It becomes part of a path.
    if not outbox.isalnum():
        raise ConfigurationError("there is no such outbox", next_step="choose one of the publication's page")
    return outbox
