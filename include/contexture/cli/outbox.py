"""`contexture outbox`: what is prepared, and the way out when it can't be sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from contexture.cli.outbox_output import OutboxLine
    from contexture.operations.environment import Found
    from contexture.storage.outboxes import Outboxes, OutboxStatus

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Look at outboxes, send one again, or give one up. Exit codes: 0 done; 2 there is no such outbox or it stands "
    "where this can't be done; 3 the storage did not answer.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of an outbox, or its first four characters or more.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")]


@app.command("list")
def list_outboxes(
    publication: Annotated[str | None, typer.Argument(help="Only those of this publication.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also those at their end, as far as kept.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the outboxes that are pending (prepared or approved), oldest first."""
    from contexture.cli import outbox_output
    from contexture.operations import environment

    owners = environment.outboxes(environment.open_home(), publication)
    lines = [_line(owner, status) for owner in owners for status in (owner.all() if everything else owner.pending())]
    outbox_output.print_list(lines, as_json=as_json, everything=everything)


@app.command("show")
def show_outbox(outbox: Id, *, as_json: AsJson = False) -> None:
    """Show the story of an outbox, its counts, topics and quarantine, its report, and what to do next."""
    from contexture.cli import outbox_output
    from contexture.operations import environment
    from contexture.operations.actions import outboxes

    outbox_output.print_story(outboxes.tell(environment.find_outbox(environment.open_home(), outbox)), as_json=as_json)


@app.command("retry")
def retry_outbox(outbox: Id, *, as_json: AsJson = False) -> None:
    """Forget the failed sends of an approved outbox, so that the next run sends it at once, with all attempts."""
    from contexture.operations import environment
    from contexture.operations.actions import interventions
    from contexture.storage.outboxes import is_of_backfill

    found = environment.find_outbox(environment.open_home(), outbox)
    failed = interventions.forget_failed_sends(found.outboxes, found.status.outbox)
    dag = f"publish_{found.publication}"
    then = (
        f"clear the publish task of its backfill in {dag}: no other run sends it"
        if is_of_backfill(found.outboxes, found.status.outbox)
        else f"start {dag} (in the UI, or: airflow dags trigger {dag}): its first task sends this outbox from where "
        "the ledger stands"
    )
    _answer(found, f"{failed} failed sends forgotten; now {then}", as_json=as_json)


@app.command("abandon")
def abandon_outbox(
    outbox: Id,
    *,
    reason: Annotated[str, typer.Option(help="Why; kept with the outbox.")],
    as_json: AsJson = False,
) -> None:
    """Give an outbox up: the rest of it is never sent, and the publication's next run is a full one."""
    from contexture.operations import environment
    from contexture.operations.actions import interventions

    if not reason.strip():
        raise typer.BadParameter("say why", param_hint="--reason")
    found = environment.find_outbox(environment.open_home(), outbox)
    moved, owes = interventions.abandon(found.outboxes, found.status.outbox, reason)
    _tell(found, reason)
    then = f"the next run of publish_{found.publication} sends everything" if owes else "nothing else is owed"
    _answer(found, f"outbox {moved.outbox} is abandoned; {then}", as_json=as_json)


def _tell(found: Found, reason: str) -> None:
    """Notes it as an event of Contexture's own; where the tables are away, it is done all the same."""
    from contextlib import suppress
    from datetime import UTC, datetime
    from getpass import getuser

    from contexture.errors import ContextureError
    from contexture.monitoring import ProducerStore
    from contexture.monitoring.own_events import EventType, Happening

    outbox = found.status.outbox
    # A container may have no name for its user.
    with suppress(ContextureError, OSError, KeyError):
        data = {"outbox": outbox, "reason": reason, "abandoned_by": getuser()}
        abandoned = Happening(EventType.OUTBOX_ABANDONED, found.publication, datetime.now(UTC), outbox, data)
        store = ProducerStore.of_home(found.outboxes.storage.root)
        if store is not None and store.is_there:
            store.happened(abandoned)
            store.close()


def _line(owner: Outboxes, status: OutboxStatus) -> OutboxLine:
    from contexture.cli.outbox_output import OutboxLine
    from contexture.storage.delivery import AttemptLog

    manifest = owner.manifest(status.outbox)
    return OutboxLine(
        publication=owner.folder.publication,
        outbox=status.outbox,
        sequence=status.sequence,
        mode=manifest.mode,
        status=status.status,
        since=status.steps[-1].at,
        records=manifest.records,
        reason=status.steps[-1].reason,
        sends=AttemptLog(owner.storage, owner.folder.publication).of_outbox(status.outbox),
    )


def _answer(found: Found, sentence: str, *, as_json: bool) -> None:
    from contexture.storage.delivery import AttemptLog

    if not as_json:
        typer.echo(sentence)
        return
    sends = AttemptLog(found.outboxes.storage, found.publication).of_outbox(found.status.outbox)
    status = found.outboxes.status(found.status.outbox)
    document = {
        "publication": found.publication,
        "outbox": status.outbox,
        "status": status.status,
        "attempts": sum(each.failed for each in sends),
        "message": sentence,
    }
    typer.echo(json.dumps(document, indent=2))
