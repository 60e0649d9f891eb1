"""How `contexture transactions` shows them: for people, and for scripts."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console

from contexture.cli.terminal_text import printable
from contexture.cli.text_table import text_table
from contexture.monitoring import TransactionRow, TransactionStatus
from contexture.operations.actions.transactions import KeptTransactions

_ID_SHOWN = 12
_HEAD = ("changed (UTC)", "publication", "status", "outbox", "shard", "number", "registry's", "records", "bytes", "")
_STYLES = {TransactionStatus.PENDING: "yellow", TransactionStatus.SENT: "green"}


def print_transactions(kept: KeptTransactions, *, as_json: bool) -> None:
    """The transactions as a table, or as one JSON document."""
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
        console.print(f"there are more: these are the last {len(kept.rows)}; --last gives others", style="dim")


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
