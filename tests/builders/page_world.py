"""Publications as the page shows them: in trouble, late, at work and well, with the runs of some hours."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import create_engine, insert

from builders.attempts import failed_send
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from builders.page_browser import Browser
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.monitoring.rows import milliseconds
from contexture.monitoring.tables import RUNS
from contexture.operations.status.detail import StepTime
from contexture.storage.home import Home
from contexture.storage.publication_store import run_name
from contexture.storage.schemas import QUARANTINE
from contexture.storage.state import StatePointer

FILE = """
name: {name}
description: {description}
schedule: "*/5 * * * *"
source: {{kind: ngsi, connection: context_broker, service: city, service_path: /4wheels, types: [car]}}
"""
DESCRIPTIONS = {
    "city-vehicles": "Positions of the city's own fleet, one topic per vehicle",
    "air-quality-stations-of-the-metropolitan-area": "Air quality",
    "parking": "Free places of car parks",
    "streetlights": "Lamps by district",
    "waste-containers": "Levels of containers",
}
AIR = "air-quality-stations-of-the-metropolitan-area"
MESSAGE = "the context broker at http://orion.example.org:1026 did not answer. Next: see that it runs, then start a run"
HALF_SENT = 620


def page_world(folder: Path) -> Browser:
    """Writes a home and publication files below the folder; returns a browser of the page that shows them.

    The variables CONTEXTURE_HOME and CONTEXTURE_PUBLICATIONS have to name `home` and `publications` in the folder.
    """
    home = Home(str(folder / "home"))
    (folder / "publications").mkdir()
    for name, description in DESCRIPTIONS.items():
        (folder / "publications" / f"{name}.yaml").write_text(FILE.format(name=name, description=description))
    tables = RunTables.of_home(home.root)
    assert tables is not None
    # The first access creates the tables.
    tables.set_publication("parking", topics="t", format_name="ngsiv2", connection="kafka")
    runs = [
        *_runs(home, "city-vehicles", count=20, first=NOON - timedelta(minutes=98)),
        *_runs(home, "parking", count=3, first=NOON - timedelta(minutes=14)),
        *_runs(home, AIR, count=9, first=NOON - timedelta(minutes=80), quarantined=True),
        *_runs(home, "waste-containers", count=12, first=NOON - timedelta(minutes=59)),
    ]
    runs[19] |= {"state": "running", "ended_ms": None, "mode": "full"}
    runs[-1] |= {"state": "failed", "failed_task": "publish", "message": MESSAGE}
    engine = create_engine(f"sqlite:///{home.root}/operations.sqlite")
    with engine.begin() as connection:
        connection.execute(insert(RUNS), runs)
    engine.dispose()
    _quarantine(home, AIR, "outbox9")
    _stop(home, "waste-containers")
    for number in range(4):
        tables.set_transaction(_transaction("city-vehicles", "outbox20", number, HALF_SENT // 4, NOON))
    tables.set_transaction(_transaction("parking", "outbox3", 0, 1_245, NOON - timedelta(minutes=3)))
    tables.close()
    return _browser()


def _browser() -> Browser:
    found = Browser(*DESCRIPTIONS, paused=["streetlights"])
    found.airflow.active.add("city-vehicles")
    for name in DESCRIPTIONS:
        tasks = [("settle", 1.1), ("stage", 21.4), ("quality_gate", 1.6), ("publish", 8.2), ("conclude", 1.3)]
        found.airflow.started[name] = tuple(StepTime(task, "success", seconds) for task, seconds in tasks)
    found.airflow.started["waste-containers"] = (
        *found.airflow.started["parking"][:3],
        StepTime("publish", "failed", 61.0, 0),
        StepTime("conclude", "upstream_failed", 0.0),
    )
    found.airflow.started["city-vehicles"] = (
        StepTime("settle", "success", 1.2, None, NOON - timedelta(seconds=82)),
        StepTime("stage", "success", 48.0, None, NOON - timedelta(seconds=80)),
        StepTime("quality_gate", "success", 1.6, None, NOON - timedelta(seconds=32)),
        StepTime("publish", "running", None, 0, NOON - timedelta(seconds=30)),
    )
    return found


def _runs(home: Home, name: str, *, count: int, first: Any, quarantined: bool = False) -> list[dict[str, Any]]:
    rows = []
    outboxes = home.publication(name).outboxes
    for number in range(1, count + 1):
        at = first + timedelta(minutes=5 * (number - 1))
        run_id = f"scheduled__{at.isoformat()}"
        made = outbox(home, publication(name=name), number, [records("a")], run=run_name(run_id))
        amount = 200 + 97 * number % 1_100
        shard = made.shards[0].model_copy(update={"records": 2 * HALF_SENT if number == 20 else amount})
        refused = {"number-string": number % 4} if quarantined and number % 4 else {}
        changed = made.model_copy(
            update={
                "shards": (shard,),
                "read": amount + 5,
                "accepted": amount,
                "quarantined": refused,
                "quarantined_entities": sum(refused.values()),
                "received_to": at,
            }
        )
        home.write(PublicationPaths(name).manifest(made.outbox), changed.to_json())
        outboxes.set_status(made.outbox, "approved", reason="every critical expectation holds")
        if number < 20:
            outboxes.set_status(made.outbox, "concluded", reason="everything is in Kafka")
        started = milliseconds(at)
        rows.append(
            {
                "publication": name,
                "run": run_name(run_id),
                "run_id": run_id,
                "mode": "changes",
                "sequence": number,
                "outbox": made.outbox,
                "state": "succeeded",
                "failed_task": None,
                "message": None,
                "started_ms": started,
                "ended_ms": started + 40_000 + 3_000 * number,
            }
        )
    concluded = min(count, 19)
    last = first + timedelta(minutes=5 * (concluded - 1))
    pointer = StatePointer(
        concluded_at=last,
        outbox=f"outbox{concluded}",
        sequence=concluded,
        identities=48_210,
        watermark=last.isoformat(),
    )
    home.publication(name).state.commit(pointer)
    return rows


def _quarantine(home: Home, name: str, outbox_id: str) -> None:
    rows = [
        {
            "ordinal": number,
            "operation": "upsert",
            "scope": "city",
            "path": "/4wheels",
            "id": f"urn:ngsi-ld:Station:{number:03}",
            "type": "Station",
            "received_at": NOON,
            "media_type": "application/json",
            "body": f'{{"id": "station{number}", "pm10": {{"type": "Number", "value": "{number}"}}}}'.encode(),
            "rule": "number-string" if number % 2 else "datetime",
            "severity": "error",
            "message": f"'pm10' has the type Number, but its value is the text '{number}'",
        }
        for number in range(1, 9)
    ]
    with home.write_atomically(f"{PublicationPaths(name).quarantine(outbox_id)}/part-0.parquet") as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), file)


def _stop(home: Home, name: str) -> None:
    waiting = "f3" * 16
    outbox(home, publication(name=name), 13, [records("a")], name=waiting)
    home.publication(name).outboxes.set_status(waiting, "approved", reason="every critical expectation holds")
    home.publication(name).attempts.keep(failed_send(waiting, shard=0, state="stopped", next_at=None, message=MESSAGE))


def _transaction(name: str, outbox_id: str, number: int, count: int, at: Any) -> TransactionRow:
    sent = TransactionStatus.SENT
    return TransactionRow(name, outbox_id, 0, number, sent, count, 310 * count, (number + 1) * count, None, None, at)
