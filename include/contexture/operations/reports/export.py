"""The report of `contexture report`, written to its place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import typer

from contexture.errors import ConfigurationError
from contexture.operations import environment
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.html import page
from contexture.operations.reports.model import ReportPeriod
from contexture.operations.reports.selection import LAST
from contexture.operations.status.status import OperationsReader


def rendered(
    name: str, *, since: datetime | None, until: datetime | None, last: int | None, run: str | None, form: str
) -> bytes:
    """The report in its form.

    Raises:
        ConfigurationError: there is no such publication or run, or what was chosen contradicts itself.
        RetriableError: the storage did not answer.
    """
    home = environment.open_home()
    environment.stores(home, name)
    period = _period(since, until, last, run)
    sources = ReportSources(home, OperationsReader(home).tables(), datetime.now(UTC))
    found = quality_report(sources, name, period)
    return found.to_json() + b"\n" if form == "json" else page(found)


def written(content: bytes, out: Path | None) -> None:
    """Writes it to a file and says so, or to standard output.

    Raises:
        ConfigurationError: the file can't be written.
    """
    if out is None:
        typer.echo(content.decode(), nl=False)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        raise ConfigurationError(
            f"{out} can't be written: {error.strerror}", next_step="name a file in a folder that is there"
        ) from error
    typer.echo(f"wrote {out} ({len(content):,} bytes)", err=True)


def _period(since: datetime | None, until: datetime | None, last: int | None, run: str | None) -> ReportPeriod:
    chosen = (since, until, last)
    if run is not None and chosen != (None, None, None):
        raise ConfigurationError(
            "--run is about one run, and --since, --until and --last about several", next_step="leave one of them out"
        )
    if chosen == (None, None, None) and run is None:
        last = LAST
    return ReportPeriod(since=since, until=until, last=last, run=run)
