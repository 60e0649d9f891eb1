"""Making the report that `contexture report` was asked for, and putting it where it belongs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import typer

from contexture.cli import home
from contexture.cli.operations_status import OperationsReader
from contexture.errors import ConfigurationError
from contexture.operations.reports.choosing import LAST
from contexture.operations.reports.documents import Period
from contexture.operations.reports.page import page
from contexture.operations.reports.telling import ReportSources, quality_report


def rendered(
    name: str, *, since: datetime | None, until: datetime | None, last: int | None, run: str | None, form: str
) -> bytes:
    """The report in its form.

    Raises:
        ConfigurationError: there is no such publication or run, or what was chosen contradicts itself.
        RetriableError: the storage did not answer.
    """
    storage = home.open_home()
    [outboxes] = home.outboxes(storage, name)
    period = _period(since, until, last, run)
    sources = ReportSources(outboxes.storage, OperationsReader(storage).tables(), datetime.now(UTC))
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


def _period(since: datetime | None, until: datetime | None, last: int | None, run: str | None) -> Period:
    chosen = (since, until, last)
    if run is not None and chosen != (None, None, None):
        raise ConfigurationError(
            "--run is about one run, and --since, --until and --last about several", next_step="leave one of them out"
        )
    if chosen == (None, None, None) and run is None:
        last = LAST
    return Period(since=since, until=until, last=last, run=run)
