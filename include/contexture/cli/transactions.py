"""`contexture transactions`: the transactions of the operational tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from contexture.cli.output import FORMATS, printable, time_span
from contexture.cli.text_table import text_table
from contexture.monitoring import TransactionRow, TransactionStatus
from contexture.monitoring.history import LAST_NUMBER, LAST_SHARD, TransactionFilter

if TYPE_CHECKING:
    from contexture.operations.actions.outboxes import KeptTransactions

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
    publication: Annotated[str | None, typer.Argument(help="Only those of this publication.")] = None,
    *,
    status: Annotated[TransactionStatus | None, _STATUS] = None,
    outbox: Annotated[str | None, typer.Option(metavar="ID", help="The beginning of the id of their outbox.")] = None,
    shard: Annotated[int | None, typer.Option(min=0, max=LAST_SHARD, help="Shard of the outbox.")] = None,
    registry_number: Annotated[
        int | None, typer.Option(min=0, max=LAST_NUMBER, help="The registry's own number of the transaction.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME", formats=FORMATS, help="Changed at this time or later, UTC, such as 2026-03-01T11:00."
        ),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", formats=FORMATS, help="Changed before this time, UTC.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="At most this many, the latest.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show Kafka transactions with their status, the latest first.

    Read from the operational tables, without Airflow and Kafka; the same filters are on the Contexture page.

    Exit codes: 0 shown, whether there are any or not; 2 there is no such publication, or there are no tables; 3 the
    tables' database or the storage did not answer.
    """
    from contexture.operations.actions.outboxes import kept_transactions

    which = TransactionFilter(status, outbox, shard, *time_span(since, until), registry_number)
    print_transactions(kept_transactions(publication, which, last=last), as_json=as_json)


_ID_SHOWN = 12
_HEAD = ("changed (UTC)", "publication", "status", "outbox", "shard", "number", "registry's", "records", "bytes", "")
_STYLES = {TransactionStatus.PENDING: "yellow", TransactionStatus.SENT: "green"}


def print_transactions(kept: KeptTransactions, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_document(kept), ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    if not kept.rows:
        console.print("no such transaction is in the operational tables", markup=False)
        return
    styles = [_STYLES.get(row.status, "red") for row in kept.rows]
    console.print(text_table(_HEAD, [_cells(row) for row in kept.rows], styles), end="")
    if kept.has_more:
        console.print(f"there are more: these are the last {len(kept.rows)}; --last shows more", style="dim")


def _cells(row: TransactionRow) -> tuple[str, ...]:
    return (
        f"{row.updated_at:%Y-%m-%d %H:%M:%S}",
        row.publication,
        f"{row.status} {_name(row.status)}",
        row.outbox[:_ID_SHOWN],
        str(row.shard),
        str(row.number),
        _registry_number(row),
        str(row.records),
        str(row.bytes),
        printable(_remark(row), limit=None),
    )


def _name(status: TransactionStatus) -> str:
    return status.name.lower().replace("_", " ")


def _registry_number(row: TransactionRow) -> str:
    if row.source_transaction is None:
        return ""
    return f"{row.source_transaction}{' deletions' if row.source_deletions else ''}"


def _remark(row: TransactionRow) -> str:
    aside = f"{row.dead_letters} dead letters" if row.dead_letters else ""
    return "; ".join(filter(None, (aside, row.message)))


def _document(kept: KeptTransactions) -> dict[str, Any]:
    return {
        "operational_tables": kept.address,
        "publication": kept.publication,
        "has_more": kept.has_more,
        "transactions": [_of_row(row) for row in kept.rows],
    }


def _of_row(row: TransactionRow) -> dict[str, Any]:
    return {
        **asdict(row),
        "status": int(row.status),
        "status_name": row.status.name.lower(),
        "updated_at": row.updated_at.isoformat(),
    }
