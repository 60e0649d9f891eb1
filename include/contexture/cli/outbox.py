"""`contexture outbox`: lists, shows, retries and abandons outboxes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import computed_field
from rich.console import Console
from rich.text import Text

from contexture.cli.text_table import text_table
from contexture.storage.delivery import SendAttempts, most_urgent
from contexture.storage.documents import StoredDocument
from contexture.storage.manifests import Manifest, ShardManifest

if TYPE_CHECKING:
    from contexture.operations.actions.outboxes import OutboxReport
    from contexture.operations.environment import FoundOutbox
    from contexture.storage.outboxes import OutboxStatus
    from contexture.storage.publication_store import PublicationStore

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show outboxes, send one again, or abandon one. Exit codes: 0 done; 2 there is no such outbox or its state "
    "does not allow this; 3 the storage did not respond.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of an outbox, or its first four characters or more.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")]


@app.command("list")
def list_outboxes(
    publication: Annotated[str | None, typer.Argument(help="Only those of this publication.")] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also concluded, rejected and abandoned ones that are still stored.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the outboxes that are pending (prepared or approved), oldest first."""
    from contexture.operations import environment

    owners = environment.stores(environment.open_home(), publication)
    lines = [
        _line(owner, status)
        for owner in owners
        for status in (owner.outboxes.all() if everything else owner.outboxes.pending())
    ]
    print_list(lines, as_json=as_json, everything=everything)


@app.command("show")
def show_outbox(outbox: Id, *, as_json: AsJson = False) -> None:
    """Show the story of an outbox, its counts, topics and quarantine, its report, and what to do next."""
    from contexture.operations import environment
    from contexture.operations.actions import outboxes

    print_story(outboxes.describe_outbox(environment.find_outbox(environment.open_home(), outbox)), as_json=as_json)


@app.command("retry")
def retry_outbox(
    outbox: Id,
    *,
    reason: Annotated[str, typer.Option(help="Reason; stored with the run.")] = "sent again by contexture outbox retry",
    as_json: AsJson = False,
) -> None:
    """Clear the failed sends of an approved outbox, and start the run that sends it now, with all attempts.

    Airflow is found by CONTEXTURE_AIRFLOW_URL and who asks by CONTEXTURE_AIRFLOW_TOKEN, or CONTEXTURE_AIRFLOW_USER and
    CONTEXTURE_AIRFLOW_PASSWORD; without an address the command that starts the run is printed. An outbox of a backfill
    is sent by its own run alone.
    """
    from contexture.operations import environment
    from contexture.operations.actions import interventions
    from contexture.operations.airflow_client import airflow_of_environment

    found = environment.find_outbox(environment.open_home(), outbox)
    airflow = airflow_of_environment()
    sent = interventions.send_again(airflow, found.store, found.status.outbox, reason)
    page = f": {airflow.page(sent.dag, sent.run)}" if airflow and sent.run else ""
    _record(found, interventions.SEND_AGAIN, reason, sent.outcome, sent.run)
    _answer(found, sent.outcome + page, as_json=as_json)


@app.command("abandon")
def abandon_outbox(
    outbox: Id,
    *,
    reason: Annotated[str, typer.Option(help="Reason; stored with the outbox.")],
    as_json: AsJson = False,
) -> None:
    """Give an outbox up: the rest of it is never sent, and the publication's next run is a full one."""
    from contexture.operations import environment
    from contexture.operations.actions import interventions

    if not reason.strip():
        raise typer.BadParameter("enter a reason: it is stored with the action", param_hint="--reason")
    found = environment.find_outbox(environment.open_home(), outbox)
    done = interventions.abandon(found.store, found.status.outbox, reason, _user())
    _record(found, interventions.ABANDON, reason, done.outcome, None)
    _answer(found, done.outcome, as_json=as_json)


def _user() -> str:
    from contextlib import suppress
    from getpass import getuser

    # A container may have no name for its user.
    with suppress(OSError, KeyError):
        return getuser()
    return ""


def _record(found: FoundOutbox, action: str, reason: str, outcome: str, run: str | None) -> None:
    """Keeps what was done, as the page does; where the tables are away, it is done all the same."""
    from contextlib import suppress
    from datetime import UTC, datetime
    from uuid import uuid4

    from contexture.errors import ContextureError
    from contexture.monitoring import RunTables
    from contexture.monitoring.rows import InterventionRow
    from contexture.operations.actions import interventions

    at, outbox = datetime.now(UTC), found.status.outbox
    row = InterventionRow(uuid4().hex, found.publication, at, _user(), action, outbox, reason, outcome, run)
    with suppress(ContextureError):
        tables = RunTables.of_home(found.store.home.root)
        if tables is not None and tables.is_there:
            interventions.record_intervention(tables, row)
            tables.close()


def _line(owner: PublicationStore, status: OutboxStatus) -> OutboxLine:

    manifest = owner.outboxes.manifest(status.outbox)
    return OutboxLine(
        publication=owner.name,
        outbox=status.outbox,
        sequence=status.sequence,
        mode=manifest.mode,
        status=status.status,
        since=status.steps[-1].at,
        records=manifest.records,
        reason=status.steps[-1].reason,
        sends=owner.attempts.of_outbox(status.outbox),
    )


def _answer(found: FoundOutbox, sentence: str, *, as_json: bool) -> None:

    if not as_json:
        typer.echo(sentence)
        return
    sends = found.store.attempts.of_outbox(found.status.outbox)
    status = found.store.outboxes.status(found.status.outbox)
    document = {
        "publication": found.publication,
        "outbox": status.outbox,
        "status": status.status,
        "attempts": sum(each.failed for each in sends),
        "message": sentence,
    }
    typer.echo(json.dumps(document, indent=2))


TRANSACTIONS_SHOWN = 20


def registry_lines(manifest: Manifest) -> Iterator[str]:
    """What a registry's outbox is, and the registry's transaction behind each of Kafka's; nothing for a broker's."""
    if manifest.baseline:
        yield "what the registry holds is recorded as the start; nothing is sent until it changes"
    if manifest.flush:
        yield "everything that the registry holds, in one transaction"
    lines = [line for shard in manifest.shards for line in _of_shard(shard)]
    yield from lines[:TRANSACTIONS_SHOWN]
    if len(lines) > TRANSACTIONS_SHOWN:
        yield f"  and {len(lines) - TRANSACTIONS_SHOWN} more; --json has all"


def _of_shard(shard: ShardManifest) -> Iterator[str]:
    ends = [part.first_position for part in shard.registry[1:]]
    for part, end in zip(shard.registry, [*ends, shard.records], strict=False):
        records = end - part.first_position
        what = "tombstones" if part.deletions else "additions and modifications"
        at = f" of {part.at:%Y-%m-%d %H:%M:%S} UTC" if part.at else ""
        yield f"  registry transaction {part.id}{at}: {records} {'record' if records == 1 else 'records'}, {what}"


TOPICS_SHOWN = 20
_ID_SHOWN = 12
_HEAD = ("outbox", "publication", "number", "mode", "status", "since (UTC)", "records", "failed sends", "sending")
_STYLES = {"prepared": "yellow", "approved": "yellow", "concluded": "green", "rejected": "red", "abandoned": "red"}


class OutboxLine(StoredDocument):
    publication: str
    outbox: str
    sequence: int
    mode: str
    status: str
    since: datetime
    records: int
    reason: str
    sends: tuple[SendAttempts, ...]

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on top of property
    @property
    def attempts(self) -> int:
        return sum(each.failed for each in self.sends)


def print_list(lines: list[OutboxLine], *, as_json: bool, everything: bool) -> None:
    if as_json:
        print(json.dumps({"outboxes": [line.model_dump(mode="json") for line in lines]}, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    if lines:
        styles = [_STYLES[line.status] for line in lines]
        console.print(text_table(_HEAD, [_cells(line) for line in lines], styles), end="")
        console.print("more of one: contexture outbox show ID (its first four characters or more)", style="dim")
    else:
        console.print(
            "there is no outbox"
            if everything
            else "no outbox is pending; --all also lists concluded, rejected and abandoned ones"
        )


def _cells(line: OutboxLine) -> tuple[str, ...]:
    since = f"{line.since:%Y-%m-%d %H:%M:%S}"
    shown = most_urgent(line.sends)
    counts = (str(line.records), str(line.attempts), shown.describe() if shown else "")
    return (line.outbox[:_ID_SHOWN], line.publication, str(line.sequence), line.mode, line.status, since, *counts)


def print_story(story: OutboxReport, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(story.model_dump(mode="json"), ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"outbox {story.outbox}", style="bold"))
    for line in _lines(story):
        console.print(Text(line))
    console.print(Text(f"next: {story.next_step}", style="bold"))


def _lines(story: OutboxReport) -> Iterator[str]:
    manifest = story.manifest
    yield f"publication {story.publication}, {manifest.mode} run {story.sequence}, {story.status}"
    if story.sends:
        yield f"{sum(each.failed for each in story.sends)} failed sends"
    yield from (f"  shard {each.shard}: {each.describe()}: {each.message}" for each in story.sends)
    yield from (f"  {step['at']}  {step['status']}: {step['reason']}" for step in story.steps)
    yield (
        f"{manifest.read} read, {manifest.accepted} accepted, {manifest.unchanged} unchanged, "
        f"{manifest.quarantined_entities} quarantined"
    )
    yield (
        f"{manifest.records} records ({manifest.upserts} upserts, {manifest.deletes} deletes) in "
        f"{manifest.transactions} transactions, {len(manifest.shards)} shards"
    )
    yield from registry_lines(manifest)
    if manifest.retried is not None:
        yield (
            f"retries what outbox {manifest.retried} quarantined; {manifest.skipped_newer} left out, because the "
            "target holds newer ones"
        )
    if manifest.replayed_from is not None:
        where = f", to topics that begin with {manifest.topic_prefix}" if manifest.topic_prefix else ""
        yield (
            f"sent again from the {manifest.replayed_from}{where}; {manifest.skipped_newer} left out, because the "
            "target holds newer ones"
        )
    yield from (f"missing, and not replaced: {each}" for each in manifest.missing)
    if manifest.collisions:
        yield f"{manifest.collisions} events have a topic that another identity uses: the report shows which"
    if manifest.transcoded:
        yield f"{manifest.transcoded} structures were converted: the report shows what was lost"
    yield from _topic_lines(story)
    for rule in story.refused:
        yield f"quarantine, {rule.rule} ({rule.severity}): {rule.rows}, such as {'; '.join(rule.samples)}"
    for failed in story.failed:
        yield f"expectation failed, {failed.severity}: {failed.description} (found {failed.observed})"
    yield f"report {story.report or 'none'}"


def _topic_lines(story: OutboxReport) -> Iterator[str]:
    if story.topics:
        yield f"{len(story.topics)} topics"
    for topic, records in list(story.topics.items())[:TOPICS_SHOWN]:
        yield f"  {records:>8}  {topic}"
    if len(story.topics) > TOPICS_SHOWN:
        yield f"  and {len(story.topics) - TOPICS_SHOWN} more; --json has all"
