"""What a person should see before confirming an action."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.operations.page.held_back import HeldBack, held_back
from contexture.operations.page.sources import Sources
from contexture.outbox.attempts import AttemptLog
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.vanishing import Vanishing, kept_vanishing


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
    if action == "confirm-shrink":
        return Shown(vanishing=vanishing_of_latest(sources, name))
    if not outbox:
        return Shown()
    status = Outboxes(sources.storage, name).status(_one_step(outbox))
    if action == "retry-quarantine":
        return Shown(held=held_back(sources.storage, name, status))
    manifest = Outboxes(sources.storage, name).manifest(outbox)
    sends = AttemptLog(sources.storage, name).of_outbox(outbox)
    failed = ", ".join(f"shard {each.shard}: {each.told()}" for each in sends)
    return Shown(
        facts=(
            ("Outbox", outbox),
            ("Stands", f"{status.status}, {status.steps[-1].reason}"),
            ("Mode", manifest.mode),
            (
                "Records",
                f"{manifest.records:,} for {manifest.topics:,} topics, {manifest.deletes:,} of them tombstones",
            ),
            ("Failed sends", failed or "none"),
        )
    )


def vanishing_of_latest(sources: Sources, name: str) -> Vanishing | None:
    """What the latest run would have deleted, had the guard let it."""
    latest = sources.tables.ask(lambda history: history.runs(name, limit=1), ())
    return kept_vanishing(sources.storage, name, latest[0].run) if latest else None


def _one_step(outbox: str) -> str:
    # It becomes part of a path.
    if not outbox.isalnum():
        raise ConfigurationError("there is no such outbox", next_step="choose one of the publication's page")
    return outbox
