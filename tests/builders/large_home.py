"""What 200 publications leave: 100,000 transactions and 20,000 runs; the first publication has half of each."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Table, create_engine, insert, text

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunTables
from contexture.monitoring.tables import RUNS, TRANSACTIONS
from contexture.records.changes.attribute_types import AttributeType, AttributeTypes
from contexture.storage.home import Home
from contexture.storage.state import StatePointer

NAMES = tuple(f"publication-{number:03}" for number in range(200))
TRANSACTIONS_HELD, RUNS_HELD = 100_000, 20_000
FILE = """
name: {name}
source: {{kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}}
"""
LARGEST_PAGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    ("", {"page": 4}),
    ("trends", {"name": NAMES[:50]}),
    ("publications/publication-000", {}),
    ("publications/publication-000/now", {}),
    ("publications/publication-000/transactions", {}),
    ("publications/publication-000/transactions", {"page": 1000}),
    ("publications/publication-000/transactions", {"status": 4}),
    ("publications/publication-000/transactions", {"outbox": "outbox77", "shard": 0}),
    ("publications/publication-000/transactions", {"since": "2026-02-28", "until": "2026-03-01", "page": 500}),
    ("publications/publication-000/transactions", {"source_transaction": 77_777}),
    ("publications/publication-000/runs", {"page": 100}),
    ("publications/publication-000/topics", {}),
    ("publications/publication-000/quality", {}),
    ("publications/publication-000/quarantine", {}),
    ("publications/publication-000/quarantine", {"page": 150}),
    ("publications/publication-000/quarantine", {"text": "car"}),
    ("publications/publication-000/samples", {}),
    ("publications/publication-000/report.html", {}),
    ("api/publications", {}),
    ("api/status/publication-000", {}),
)
"""Addresses of the pages that have most to show, with their queries."""

_LAST = int(datetime(2026, 3, 1, 11, tzinfo=UTC).timestamp() * 1000)
_AT_ONCE = 10_000


def large_home(folder: Path, database: str | None = None) -> Home:
    """A home below the folder, with publication files beside it.

    Args:
        folder: where `home` and `publications` come to be.
        database: of the operational tables; a SQLite file in the home when None.
    """
    home = Home(str(folder / "home"))
    (folder / "publications").mkdir()
    owner = publication()
    for name in NAMES:
        (folder / "publications" / f"{name}.yaml").write_text(FILE.format(name=name))
        outbox(home, owner.model_copy(update={"name": name}), 1, [records("a")])
        home.publication(name).state.commit(StatePointer(concluded_at=NOON, outbox="outbox1", sequence=1))
    _hold_back(home, NAMES[0])
    fill_tables(database or f"sqlite:///{home.root}/operations.sqlite")
    return home


def fill_tables(database: str) -> None:
    """Makes the operational tables and their rows."""
    store = RunTables(database)
    store.set_publication(NAMES[0], topics="t", format_name="ngsiv2", connection="kafka")
    store.close()
    _insert(database, TRANSACTIONS, [_transaction(number) for number in range(TRANSACTIONS_HELD)])
    _insert(database, RUNS, [_run(number) for number in range(RUNS_HELD)])


def _insert(database: str, table: Table, rows: list[dict[str, Any]]) -> None:
    # Without the limits that hold for who must not wait.
    engine = create_engine(database)
    with engine.begin() as connection:
        for first in range(0, len(rows), _AT_ONCE):
            connection.execute(insert(table), rows[first : first + _AT_ONCE])
        if engine.dialect.name == "postgresql":
            # It does so by itself, a minute later.
            connection.execute(text(f"ANALYZE {table.name}"))
    engine.dispose()


def _hold_back(home: Home, name: str) -> None:
    """So many runs with something in quarantine as a schedule of five minutes makes in a week."""
    folder = PublicationPaths(name)
    status, manifest = (
        home.publication(name).outboxes.status("outbox1"),
        home.publication(name).outboxes.manifest("outbox1"),
    )
    seen = AttributeTypes.of(AttributeType("car", f"attribute{number}", "Number") for number in range(100))
    for number in range(2, 2_000):
        held = status.model_copy(update={"outbox": f"outbox{number}", "sequence": number})
        home.write(folder.status(held.outbox), held.to_json())
        made = manifest.model_copy(update={"outbox": held.outbox, "sequence": number, "run": f"run{number}"})
        home.write(folder.manifest(held.outbox), made.to_json())
        home.write(folder.seen_types(held.outbox), seen.to_json())
        Path(home.path(folder.quarantine(held.outbox))).mkdir(parents=True)


def _owner(number: int) -> str:
    return NAMES[0] if number % 2 else NAMES[number // 2 % len(NAMES)]


def _transaction(number: int) -> dict[str, Any]:
    return {
        "publication": _owner(number),
        "outbox": f"outbox{number // 10}",
        "shard": 0,
        "number": number,
        "status": 4 if number % 100 == 0 else 1,
        "records": 100,
        "bytes": 30_000,
        "position": 100,
        "source_transaction": number,
        "message": None,
        "updated_ms": _LAST - number * 1_000,
        "source_deletions": False,
        "dead_letters": None,
    }


def _run(number: int) -> dict[str, Any]:
    return {
        "publication": _owner(number),
        "run": f"run{number}",
        "run_id": f"scheduled__{number}",
        "mode": "changes",
        "sequence": number,
        "outbox": f"outbox{number}",
        "state": "succeeded",
        "failed_task": None,
        "message": None,
        "started_ms": _LAST - number * 60_000,
        "ended_ms": _LAST,
    }
