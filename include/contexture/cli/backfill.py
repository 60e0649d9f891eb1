"""`contexture backfill`: the plan of a backfill, and its start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes
from contexture.cli.output import FORMATS

if TYPE_CHECKING:
    from contexture.operations.actions.backfill import BackfillPlan, PlannedInterval

app = typer.Typer(add_completion=False)


class From(StrEnum):
    """Where intervals come from."""

    AUTO = "auto"
    ARCHIVE = "archive"
    SOURCE = "source"


class Incomplete(StrEnum):
    """What to do with an interval that is archived in part."""

    REFUSE = "refuse"
    SEND = "send"


class Outdated(StrEnum):
    """What to do with old values on a replica."""

    SKIP = "skip"
    SEND = "send"


@app.command("backfill")
def backfill(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The publication.")],
    *,
    first: Annotated[
        datetime,
        typer.Option(
            "--from",
            metavar="TIME",
            formats=FORMATS,
            help="Start of the first interval, UTC, such as 2026-03-01T11:00.",
        ),
    ],
    last: Annotated[
        datetime, typer.Option("--to", metavar="TIME", formats=FORMATS, help="Start of the last interval, UTC.")
    ],
    dry_run: Annotated[bool, typer.Option(help="Only show what would be sent; start nothing.")] = False,
    replay_from: Annotated[From, typer.Option(help="auto: the archive if complete, else the source.")] = From.AUTO,
    incomplete: Annotated[
        Incomplete, typer.Option(help="refuse: an incomplete interval fails; send: what exists is sent.")
    ] = Incomplete.REFUSE,
    outdated: Annotated[
        Outdated, typer.Option(help="On a replica: skip old values, or send them over newer ones.")
    ] = Outdated.SKIP,
    topic_prefix: Annotated[str, typer.Option(help="Prefix of every topic; empty for none.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Send past intervals of a publication again, through Airflow's Backfill; show first what each contains.

    What is archived is read from CONTEXTURE_HOME. What a source keeps of the past is asked for by the runs themselves.
    Airflow is found by the environment, as for `contexture resync`; it takes one backfill of a DAG at a time. Runs are
    started, not waited for.

    Exit codes: 0 shown or started; 1 an interval would be refused, sent in part, has not ended, has a run that has not
    ended, or is not there at all, and with --dry-run off nothing was started; 2 a name, a date, a variable or a
    permission is wrong; 3 Airflow or the storage did not answer.
    """
    from contexture.operations.actions.backfill import options_of, planned, start

    options = options_of(replay_from.value, incomplete.value, outdated.value, topic_prefix)
    plan = planned(name, first.replace(tzinfo=UTC), last.replace(tzinfo=UTC), options)
    started = None
    if plan.can_start and not dry_run:
        plan, started = start(plan)
    (print_json if as_json else print_text)(plan, started)
    is_good = plan.sends_all if dry_run else plan.can_start
    raise typer.Exit(exit_codes.OK if is_good else exit_codes.INVALID)


_TOPICS_SHOWN = 10


def print_json(plan: BackfillPlan, started: int | None) -> None:
    document = {**plan.model_dump(mode="json"), "overwrites": plan.overwrites, "backfill": started}
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(plan: BackfillPlan, started: int | None) -> None:
    """A line for each interval, with its topics and what is missing below it."""
    for line in _lines(plan):
        print(line)
    if started is not None:
        print(f"started: backfill {started} of publish_{plan.publication}")


def _lines(plan: BackfillPlan) -> Iterator[str]:
    for each in plan.intervals:
        yield f"{each.start:%Y-%m-%d %H:%M} to {each.end:%Y-%m-%d %H:%M}: {_describe(each)}"
        for topic, records in list(each.topics.items())[:_TOPICS_SHOWN]:
            yield f"  {topic}: {records}"
        if len(each.topics) > _TOPICS_SHOWN:
            yield f"  and {len(each.topics) - _TOPICS_SHOWN} more topics (--json lists them)"
        for missing in each.missing:
            yield f"  missing: {missing}"
    if plan.overwrites:
        yield "warning: on compacted topics, old values will replace newer ones"
    elif plan.replica and not plan.options.sends_outdated:
        yield (
            "on compacted topics, records are left out where the target holds newer ones: fewer than these may be sent"
        )


def _describe(each: PlannedInterval) -> str:
    match each.outcome:
        case "archive" | "partial_archive":
            part = "" if each.outcome == "archive" else "part of the "
            return f"{part}archive, {each.runs} runs, {each.records} records"
        case "source":
            return "requested from the source when the run begins"
        case "refused":
            return "refused, because it is incomplete"
        case "nothing":
            return "nothing of it is archived"
        case "not_finished":
            return "not finished yet, and Airflow leaves it out"
        case "running":
            return "its run has not ended, and Airflow leaves it out: wait until it ends, then start the backfill again"
