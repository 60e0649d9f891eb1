"""`contexture status`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from contexture.operations.status.dead_letters import DeadLetterStatus
    from contexture.operations.status.status import Deletions, Operations, PublicationStatus

app = typer.Typer(add_completion=False)


@app.command("status")
def show_status(
    publication: Annotated[str | None, typer.Argument(help="Only this publication.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show each publication: whether it runs, its last concluded run, what is pending, and the next attempt.

    Read from CONTEXTURE_HOME, the folder of publications and the operational tables, without Airflow and Kafka.

    Exit codes: 0 nothing needs a person; 1 the last run failed, a run waits for an answer, deletions in a source are
    not detected, a topic was removed and no full run has filled it again, sending an outbox has failed, or the files of
    a publication are damaged; 2 there is no such publication; 3 the storage did not answer.
    """
    from contexture.operations import environment
    from contexture.operations.status.status import OperationsReader, publication_statuses

    storage = environment.open_home()
    tables = OperationsReader(storage)
    found = publication_statuses(storage, tables, publication)
    if as_json:
        document = {
            "home": storage.root,
            "operational_tables": tables.address,
            "operational_tables_problem": tables.problem,
            "publications": [each.model_dump(mode="json") for each in found],
        }
        typer.echo(json.dumps(document, indent=2))
    else:
        for line in _lines(found, storage.root):
            typer.echo(line)
        if tables.problem:
            typer.secho(f"without the operational tables: {tables.problem}", err=True)
    raise typer.Exit(exit_codes.INVALID if any(each.needs_a_person for each in found) else exit_codes.OK)


def _lines(found: list[PublicationStatus], root: str) -> Iterator[str]:
    if not found:
        yield f"no publication in {root}; set CONTEXTURE_HOME as Airflow has it"
    for each in found:
        yield each.publication + ("" if each.configured is not False else " (no valid publication file)")
        yield from [f"  stopped: {each.status.reason}"] if each.damaged else _known_lines(each)


def _known_lines(each: PublicationStatus) -> Iterator[str]:
    yield f"  {_last_run(each)}"
    if each.outbox:
        known = "nothing was sent; the registry held" if each.baseline else "target holds"
        yield f"  {known} {each.identities} identities, watermark {each.watermark or 'none'}"
    yield from _operation_lines(each.operations)
    if each.question:
        yield f"  waiting for approval: {each.question}"
    if each.waiting:
        since = f"{each.waiting.since:%Y-%m-%d %H:%M:%S} UTC"
        yield f"  inbox: {each.waiting.files} files of notifications wait, the oldest since {since}"
    if each.owes_full:
        yield f"  the next run is full: {each.owes_full}"
    yield from _deletion_lines(each.status.deletions)
    yield from _dead_letter_lines(each.status.dead_letters)
    for outbox in each.pending:
        failed = f", {outbox.attempts} failed sends" if outbox.attempts else ""
        yield f"  pending: outbox {outbox.outbox[:12]} (run {outbox.sequence}), {outbox.status}{failed}"
        for send in outbox.sends:
            if send.is_open:
                yield f"    shard {send.shard}: {send.describe()}: {send.message}"


def _deletion_lines(found: Deletions) -> Iterator[str]:
    if found.detected:
        return
    since = f"{found.incomplete_since:%Y-%m-%d %H:%M:%S} UTC, {found.incomplete_runs} runs"
    yield f"  deletions not detected since {since}: {found.reason}. Next: {found.next_step}"


def _dead_letter_lines(found: DeadLetterStatus) -> Iterator[str]:
    if not found.kept and not found.last_run:
        return
    counts = [f"{found.last_run} of the last concluded run"] if found.last_run else []
    if found.kept:
        counts.append(f"{found.kept} of all stored runs, the last at {found.last_at:%Y-%m-%d %H:%M:%S} UTC")
    tried = "" if found.outstanding or not found.kept else "; a full run has retried them since"
    where = found.topic or "a topic that the publication no longer names"
    yield f"  dead letters in {where}: {', '.join(counts)}{tried}"


def _operation_lines(operations: Operations | None) -> Iterator[str]:
    if operations is None:
        return
    run = operations.last_run
    if run is not None and run.state != "succeeded":
        since = f"{run.ended_at or run.started_at:%Y-%m-%d %H:%M:%S} UTC"
        why = f" in {run.failed_task}: {run.message}" if run.failed_task else ""
        yield f"  latest run {run.run_id}: {run.state} since {since}{why}"
    if operations.transactions:
        counted = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in operations.transactions.items())
        last = f", the last at {operations.last_sent_at:%Y-%m-%d %H:%M:%S} UTC" if operations.last_sent_at else ""
        yield f"  transactions: {counted}; {operations.records} records sent{last}"


def _last_run(each: PublicationStatus) -> str:
    if each.concluded_at is None:
        return "no run has concluded yet"
    quarantined = "no longer stored" if each.quarantined is None else f"{each.quarantined} quarantined"
    mode = f"{each.mode} " if each.mode else ""
    return f"last concluded: {mode}run {each.sequence} at {each.concluded_at:%Y-%m-%d %H:%M:%S} UTC, {quarantined}"
