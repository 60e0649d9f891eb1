"""`contexture report`: the data quality of a publication's runs as one file."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from contexture.cli.output import FORMATS, time_span
from contexture.errors import ConfigurationError

app = typer.Typer(add_completion=False)

_NAME = typer.Argument(metavar="PUBLICATION", help="Name of the publication, as in its file.")


class ReportFormat(StrEnum):
    HTML = "html"
    JSON = "json"


@app.command("report")
def report_publication(
    name: Annotated[str, _NAME],
    *,
    since: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", formats=FORMATS, help="Runs from this time on, UTC, such as 2026-03-01T11:00."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", formats=FORMATS, help="Runs before this time, UTC.")
    ] = None,
    last: Annotated[int | None, typer.Option(min=1, help="At most this many; 40 if nothing is chosen.")] = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="One: its outbox's id, or Airflow's run id.")] = None,
    form: Annotated[
        ReportFormat, typer.Option("--format", help="A page, or a document for scripts.")
    ] = ReportFormat.HTML,
    out: Annotated[Path | None, typer.Option(help="Where to write it; standard output if none.")] = None,
) -> None:
    """Write a data quality report of a publication's runs: one HTML file that needs nothing else.

    Expectations with what was observed, rules with counts and samples, how volume and types changed, and plots. Read
    from CONTEXTURE_HOME and the operational tables, without Airflow and Kafka. Nothing is changed.

    Exit codes: 0 written; 2 there is no such publication or run, or the file can't be written; 3 the storage did not
    answer.
    """
    from contexture.operations.reports.build import report_of_home
    from contexture.operations.reports.html import page
    from contexture.operations.reports.model import ReportPeriod
    from contexture.operations.reports.selection import LAST

    since, until = time_span(since, until)
    if run is not None and (since, until, last) != (None, None, None):
        raise ConfigurationError(
            "--run is about one run, and --since, --until and --last about several", next_step="leave one of them out"
        )
    if (since, until, last, run) == (None, None, None, None):
        last = LAST
    found = report_of_home(name, ReportPeriod(since=since, until=until, last=last, run=run))
    _write(found.to_json() + b"\n" if form is ReportFormat.JSON else page(found), out)


def _write(content: bytes, out: Path | None) -> None:
    if out is None:
        typer.echo(content.decode(), nl=False)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        raise ConfigurationError(
            f"{out} cannot be written: {error.strerror}", next_step="name a file in an existing folder"
        ) from error
    typer.echo(f"wrote {out} ({len(content):,} bytes)", err=True)
