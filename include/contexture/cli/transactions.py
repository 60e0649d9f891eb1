"""`contexture transactions`: what has become of each Kafka transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from contexture.cli.time_span import FORMATS, time_span
from contexture.monitoring.history import LAST_NUMBER, LAST_SHARD, TransactionFilter
from contexture.monitoring.rows import TransactionStatus

app = typer.Typer(add_completion=False)

_NAMES = ", ".join(each.name.lower().replace("_", "-") for each in TransactionStatus)
_STATUSES = {name: each for each in TransactionStatus for name in (str(int(each)), each.name.lower().replace("_", "-"))}


def _status(text: str) -> TransactionStatus:
    found = _STATUSES.get(text.lower().replace("_", "-"))
    if found is None:
        raise typer.BadParameter(f"it is one of {_NAMES}; or its number, 0 to 4")
    return found


_STATUS = typer.Option(metavar="STATUS", parser=_status, help=f"{_NAMES}; or its number, 0 to 4.")


@app.command("transactions")
def show_transactions(
    publication: Annotated[str | None, typer.Argument(help="Only those of this one.")] = None,
    *,
    status: Annotated[TransactionStatus | None, _STATUS] = None,
    outbox: Annotated[str | None, typer.Option(metavar="ID", help="How the id of their outbox begins.")] = None,
    shard: Annotated[int | None, typer.Option(min=0, max=LAST_SHARD, help="Of the outbox.")] = None,
    registry_number: Annotated[
        int | None, typer.Option(min=0, max=LAST_NUMBER, help="A registry's own number of it.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", formats=FORMATS, help="Changed then or later, UTC, such as 2026-03-01T11:00."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", formats=FORMATS, help="Changed before that, UTC.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="At most so many, the latest.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show Kafka transactions with what has become of each, the latest first.

    Read from the operational tables, without Airflow and Kafka; the same filters are on the Contexture page.

    Exit codes: 0 told, whether there are any or not; 2 there is no such publication, or there are no tables; 3 the
    tables' database or the storage did not answer.
    """
    from contexture.cli.transactions_output import print_transactions
    from contexture.operations.actions.transactions import kept_transactions

    which = TransactionFilter(status, outbox, shard, *time_span(since, until), registry_number)
    print_transactions(kept_transactions(publication, which, last=last), as_json=as_json)
