"""`contexture topics`: plans and applies changes of topics, reads and compares records."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from contexture.cli import exit_codes
from contexture.cli.output import printable

if TYPE_CHECKING:
    from contexture.kafka import TopicRecord
    from contexture.kafka.topics import TopicChange
    from contexture.operations.actions.topic_comparison import Compared, Differing, Entity, TopicContents
    from contexture.operations.actions.topic_plan import PlannedTopics
    from contexture.operations.actions.topic_reading import ShownRecords

_SHOWN = 20


def print_comparison_json(compared: Compared) -> None:
    """One JSON document about everything that differs."""
    comparison = compared.comparison
    document = {
        "alike": compared.are_equal,
        "left": _counts(compared.left),
        "right": _counts(compared.right),
        "topics_only_left": compared.only_left,
        "topics_only_right": compared.only_right,
        "equal": comparison.equal,
        "only_left": [_named(entity) for entity in comparison.only_left],
        "only_right": [_named(entity) for entity in comparison.only_right],
        "differing": [
            {
                **_named(each.entity),
                "differing": each.differing,
                "only_left": each.only_left,
                "only_right": each.only_right,
            }
            for each in comparison.differing
        ],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_comparison_text(compared: Compared) -> None:
    """Counts, then the first of what differs."""
    console = Console(highlight=False, soft_wrap=True)
    comparison = compared.comparison
    for name, side in (("left", compared.left), ("right", compared.right)):
        console.print(Text(f"{name}: {', '.join(f'{count} {what}' for what, count in _counts(side).items())}"))
    _print_some(console, "topics only left", compared.only_left)
    _print_some(console, "topics only right", compared.only_right)
    _print_some(console, "entities only left", [_show_record(entity) for entity in comparison.only_left])
    _print_some(console, "entities only right", [_show_record(entity) for entity in comparison.only_right])
    _print_some(console, "entities that differ", [_difference(each) for each in comparison.differing])
    verdict = "both sides are equal" if compared.are_equal else "the sides differ"
    style = "bold green" if compared.are_equal else "bold red"
    console.print(Text(f"{comparison.equal} entities are equal; {verdict}", style=style))


def _print_some(console: Console, title: str, items: Sequence[str]) -> None:
    if not items:
        return
    console.print(Text(f"{title}: {len(items)}", style="red"))
    for item in items[:_SHOWN]:
        console.print(Text(f"  {item}"))
    if len(items) > _SHOWN:
        console.print(Text(f"  and {len(items) - _SHOWN} more; --json has all", style="dim"))


def _counts(side: TopicContents) -> dict[str, int]:
    return {
        "entities": len(side.entities),
        "lines": side.lines,
        "unreadable": side.unreadable,
        "tombstones": side.tombstones,
    }


def _named(entity: Entity) -> dict[str, str]:
    return dict(zip(("service", "service_path", "id", "type"), entity, strict=True))


def _show_record(entity: Entity) -> str:
    service, path, entity_id, entity_type = entity
    return f"{entity_id} ({entity_type}) in {service}{path}"


def _difference(each: Differing) -> str:
    parts = (("differing", each.differing), ("only left", each.only_left), ("only right", each.only_right))
    return f"{_show_record(each.entity)}: {'; '.join(_part(title, names) for title, names in parts if names)}"


def _part(title: str, names: Iterable[str]) -> str:
    return f"{title} {', '.join(names)}"


def print_plans_json(planned: Sequence[PlannedTopics]) -> None:
    document = [
        {
            "connection": each.connection,
            "missing": each.plan.missing,
            "alike": each.plan.alike,
            "changes": [_as_json(change, each.made) for change in each.plan.changes],
        }
        for each in planned
    ]
    typer.echo(json.dumps({"connections": document}, ensure_ascii=False, indent=2))


def print_plans_text(planned: Sequence[PlannedTopics]) -> None:
    """Each connection with its counts, and a line for each difference."""
    for each in planned:
        plan = each.plan
        differ = len({change.drift.topic for change in plan.changes})
        typer.echo(f"{each.connection}: {plan.alike} topics are as configured, {differ} differ")
        if plan.missing:
            more = f" and {len(plan.missing) - _SHOWN} more" if len(plan.missing) > _SHOWN else ""
            names = f"{', '.join(plan.missing[:_SHOWN])}{more}"
            typer.echo(f"  not there yet: the next run that sends to them creates them: {names}")
        for change in plan.changes:
            typer.echo(f"  {change.drift}")
            is_made = each.made is not None and change in each.made
            typer.echo(f"    {'changed' if is_made else f'next: {change.advice}'}")


def _as_json(change: TopicChange, made: tuple[TopicChange, ...] | None) -> dict[str, object]:
    return {
        "topic": change.drift.topic,
        "setting": change.drift.setting,
        "wanted": change.drift.wanted,
        "found": change.drift.found,
        "way": change.way.value,
        "advice": change.advice,
        "changed": made is not None and change in made,
    }


_SHOWN_CHARACTERS = 2_000


def print_records_json(found: ShownRecords) -> None:
    """One JSON document with everything; what is no text is written as `{"base64": …}`."""
    records = [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": _time(record),
            "key": _record_as_json(record.key),
            "value": _record_as_json(record.value),
            "headers": [[name, _record_as_json(value)] for name, value in record.headers],
        }
        for record in found.records
    ]
    document = {"connection": found.connection, "topics": found.topics, "records": records}
    typer.echo(json.dumps(document, ensure_ascii=True, indent=2))


def print_records_text(found: ShownRecords) -> None:
    """A block for each record, in the order in which they were read."""
    for record in found.records:
        place = f"{record.topic}[{record.partition}] at offset {record.offset}"
        typer.secho(f"{printable(place)}, {_time(record) or 'without a time'}", bold=True)
        typer.echo(f"  key    {_shown(record.key, 'none')}")
        typer.echo(f"  value  {_shown(record.value, 'null: deleted')}")
        for name, value in record.headers:
            typer.echo(f"  header {printable(name)}: {_shown(value, 'null')}")
    typer.echo(f"{found.connection}: {len(found.records)} records, the {found.which} of {len(found.topics)} topics")


def _time(record: TopicRecord) -> str | None:
    if record.timestamp_ms is None:
        return None
    return datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _record_as_json(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _shown(content: bytes | None, nothing: str) -> str:
    if content is None:
        return nothing
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes that are not text; --json has them"
    shown = printable(text, _SHOWN_CHARACTERS)
    return shown if len(text) <= _SHOWN_CHARACTERS else f"{shown} ({len(content)} bytes; --json has all)"


app = typer.Typer(add_completion=False, no_args_is_help=True)

_TOPICS = typer.Argument(help="Topics of both sides, or LEFT=RIGHT where their names differ.")


@app.callback()
def topics() -> None:
    """Read topics, and compare them with what publications say, or with each other."""


_FILES = typer.Argument(metavar="[FILE…]", help="Publication files or folders; CONTEXTURE_PUBLICATIONS if none.")
_JSON = typer.Option("--json", help="One JSON document for scripts.")


@app.command("plan")
def plan_topics(files: Annotated[list[Path] | None, _FILES] = None, *, as_json: Annotated[bool, _JSON] = False) -> None:
    """Show how topics differ from what publications say: partitions, replication factor, configuration.

    Topics are those that files name and those that records were sent to, by CONTEXTURE_HOME. Nothing is changed, and
    runs never change a topic that is there. Connections come from the environment, as for `contexture connection test`.

    Exit codes: 0 none differs; 1 some do; 2 a file or connection can't be used; 3 brokers are away.
    """
    from contexture.cli.output import print_progress
    from contexture.operations.actions import topic_plan

    planned = topic_plan.plans(files or [], print_progress)
    (print_plans_json if as_json else print_plans_text)(planned)
    raise typer.Exit(exit_codes.INVALID if any(each.plan.changes for each in planned) else exit_codes.OK)


@app.command("apply")
def apply_topics(
    files: Annotated[list[Path] | None, _FILES] = None,
    *,
    grow_keyed: Annotated[bool, typer.Option(help="Also add partitions to topics with keys; keys move.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Change topics to what publications say, as `contexture topics plan` shows it.

    More partitions for topics with keys are refused unless --grow-keyed is given, and nothing is changed then. Fewer
    partitions and other replication factors are left to be done by hand.

    Exit codes: 0 all is as it should be now; 1 something is left to do by hand; 2 a file or connection can't be used,
    or keys would move; 3 brokers are away.
    """
    from contexture.cli.output import print_progress
    from contexture.operations.actions import topic_plan

    planned = topic_plan.applied(files or [], print_progress, grow_keyed=grow_keyed)
    (print_plans_json if as_json else print_plans_text)(planned)
    left = any(len(each.made or ()) < len(each.plan.changes) for each in planned)
    raise typer.Exit(exit_codes.INVALID if left else exit_codes.OK)


@app.command("read")
def read_topics(
    names: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC…]", help="Topics.")] = None,
    *,
    publication: Annotated[str | None, typer.Option(help="The topics of this publication.")] = None,
    connection: Annotated[
        str | None, typer.Option(help="Id of the Kafka connection; the publication's, or kafka_default.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, max=10_000, help="How many records, of all topics together.")] = 10,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="The first records of the topics in place of the newest.")
    ] = False,
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for a response.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show the newest records of topics, or of those that a publication has sent to: key, value and headers.

    Only what is committed is shown, by the records' times, the newest last; with --from-beginning what the topics still
    have first, each partition in its order. Nothing is written, and no group is joined. Records hold the source's data.
    The connection comes from the environment, as for `contexture connection test`.

    Exit codes: 0 read; 2 a topic, a publication or a connection isn't there, or may not be read; 3 brokers are away.
    """
    from contexture.operations.actions import topic_reading

    if not (names or publication):
        raise typer.BadParameter("name topics, or give --publication")
    found = topic_reading.read_some(
        names or [],
        publication,
        connection,
        count=last,
        which="first" if from_beginning else "newest",
        timeout_seconds=timeout_seconds,
    )
    (print_records_json if as_json else print_records_text)(found)


@app.command("compare")
def compare_topics(
    names: Annotated[list[str] | None, _TOPICS] = None,
    *,
    left: Annotated[str, typer.Option(help="Connection to the Kafka that Cygnus writes to.")] = "kafka_cygnus",
    right: Annotated[str, typer.Option(help="Connection to the Kafka that Contexture writes to.")] = "kafka_default",
    prefix: Annotated[str, typer.Option(help="Compare all topics of both sides whose names begin with this.")] = "",
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for a response.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Compare the lines that Cygnus wrote with those of Contexture: the newest value of each attribute of each entity.

    Order, timestamps and isPattern don't count. Topics are read from their beginnings to their ends of now, as a
    read-committed consumer sees them; nothing is written. The connections come from the environment, as for
    `contexture connection test`.

    Exit codes: 0 both sides are equal; 1 they differ; 2 a connection or topic isn't there; 3 brokers are away.
    """
    from contexture.operations.actions import topic_comparison

    if bool(names) == bool(prefix):
        raise typer.BadParameter("name topics, or give --prefix")
    pairs = topic_comparison.Pairs.given(names) if names else topic_comparison.Pairs(prefix=prefix)
    found = topic_comparison.compare_sides(left, right, pairs, timeout_seconds=timeout_seconds)
    show = print_comparison_json if as_json else print_comparison_text
    show(found)
    raise typer.Exit(exit_codes.OK if found.are_equal else exit_codes.INVALID)
