"""`contexture topics`: what lies in topics, and how they differ from what publications say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contexture.cli import exit_codes

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

    Topics are those that files name and those that CONTEXTURE_HOME tells were sent to. Nothing is changed, and runs
    never change a topic that is there. Connections come from the environment, as for `contexture connection test`.

    Exit codes: 0 none differs; 1 some do; 2 a file or connection can't be used; 3 brokers are away.
    """
    from contexture.cli import topic_plans_output
    from contexture.cli.waiting import say
    from contexture.operations.actions import topic_plan

    planned = topic_plan.plans(files or [], say)
    (topic_plans_output.print_json if as_json else topic_plans_output.print_text)(planned)
    raise typer.Exit(exit_codes.INVALID if any(each.plan.changes for each in planned) else exit_codes.OK)


@app.command("apply")
def apply_topics(
    files: Annotated[list[Path] | None, _FILES] = None,
    *,
    grow_keyed: Annotated[bool, typer.Option(help="Also give topics with keys more partitions; keys move.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Change topics to what publications say, as `contexture topics plan` shows it.

    More partitions for topics with keys are refused unless --grow-keyed is given, and nothing is changed then. Fewer
    partitions and other replication factors are left to be done by hand.

    Exit codes: 0 all is as it should be now; 1 something is left to do by hand; 2 a file or connection can't be used,
    or keys would move; 3 brokers are away.
    """
    from contexture.cli import topic_plans_output
    from contexture.cli.waiting import say
    from contexture.operations.actions import topic_plan

    planned = topic_plan.applied(files or [], say, grow_keyed=grow_keyed)
    (topic_plans_output.print_json if as_json else topic_plans_output.print_text)(planned)
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
    last: Annotated[int, typer.Option(min=1, max=10_000, help="How many records, the newest.")] = 10,
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds without an answer.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show the newest records of topics, or of those that a publication has sent to: key, value and headers.

    Only what is committed is shown, by the records' times, the newest last. Nothing is written, and no group is
    joined. Records hold the source's data. The connection comes from the environment, as for
    `contexture connection test`.

    Exit codes: 0 read; 2 a topic, a publication or a connection isn't there, or may not be read; 3 brokers are away.
    """
    from contexture.cli import topic_reading_output
    from contexture.operations.actions import topic_reading

    if not (names or publication):
        raise typer.BadParameter("name topics, or give --publication")
    found = topic_reading.newest(names or [], publication, connection, count=last, timeout_seconds=timeout_seconds)
    (topic_reading_output.print_json if as_json else topic_reading_output.print_text)(found)


@app.command("compare")
def compare_topics(
    names: Annotated[list[str] | None, _TOPICS] = None,
    *,
    left: Annotated[str, typer.Option(help="Connection to the Kafka that Cygnus writes to.")] = "kafka_cygnus",
    right: Annotated[str, typer.Option(help="Connection to the Kafka that Contexture writes to.")] = "kafka_default",
    prefix: Annotated[str, typer.Option(help="Compare all topics of both sides whose names begin so.")] = "",
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds without an answer.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Compare the lines that Cygnus wrote with those of Contexture: the newest value of each attribute of each entity.

    Order, timestamps and isPattern don't count. Topics are read from their beginnings to their ends of now, as a
    read-committed consumer sees them; nothing is written. The connections come from the environment, as for
    `contexture connection test`.

    Exit codes: 0 both sides tell the same; 1 they differ; 2 a connection or topic isn't there; 3 brokers are away.
    """
    from contexture.cli import topic_comparison_output
    from contexture.operations.actions import topic_comparison

    if bool(names) == bool(prefix):
        raise typer.BadParameter("name topics, or give --prefix")
    pairs = topic_comparison.Pairs.given(names) if names else topic_comparison.Pairs(prefix=prefix)
    found = topic_comparison.compare_sides(left, right, pairs, timeout_seconds=timeout_seconds)
    show = topic_comparison_output.print_json if as_json else topic_comparison_output.print_text
    show(found)
    raise typer.Exit(exit_codes.OK if found.alike else exit_codes.INVALID)
