"""`contexture topics`: what lies in topics."""

from __future__ import annotations

from typing import Annotated

import typer

from contexture.cli import exit_codes

app = typer.Typer(add_completion=False, no_args_is_help=True)

_TOPICS = typer.Argument(help="Topics of both sides, or LEFT=RIGHT where their names differ.")


@app.callback()
def topics() -> None:
    """Look at what lies in topics."""


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
    from contexture.cli import topic_comparison, topic_comparison_output

    if bool(names) == bool(prefix):
        raise typer.BadParameter("name topics, or give --prefix")
    pairs = topic_comparison.Pairs.given(names) if names else topic_comparison.Pairs(prefix=prefix)
    found = topic_comparison.compare_sides(left, right, pairs, timeout_seconds=timeout_seconds)
    show = topic_comparison_output.print_json if as_json else topic_comparison_output.print_text
    show(found)
    raise typer.Exit(exit_codes.OK if found.alike else exit_codes.INVALID)
