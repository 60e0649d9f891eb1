"""A ledger that was rebuilt in part is as lost as before."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture.operations.actions import rebuild
from contexture.sending.ledger_rebuild import RebuiltShard, settled_entry
from contexture.storage.delivery import KnownLedger
from contexture.storage.home import Home

VEHICLES = """
name: vehicles
schedule: null
source: {kind: ngsi, connection: broker, service: vehicles, service_path: /4wheels}
"""


class OneTopic:
    """A ledger of which the rows are counted."""

    topic, rows = "contexture.ledger.vehicles", 0

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(topic_id=self.topic_id(), shards=frozenset(range(self.rows)))

    def topic_id(self) -> str:
        return "id1"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OneTopic:
    (tmp_path / "publications").mkdir()
    (tmp_path / "publications" / "vehicles.yaml").write_text(VEHICLES)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    entry = settled_entry("outbox1", 1, None)
    shards = (RebuiltShard(0, entry, "concluded"), RebuiltShard(1, entry, "concluded"))
    found = OneTopic()
    monkeypatch.setattr(rebuild, "_ledger", lambda publication, progress: found)
    monkeypatch.setattr(rebuild, "planned_rebuild", lambda *args, **options: shards)
    Home(str(tmp_path / "home")).publication("vehicles").ledger.write_known(KnownLedger(cluster="c", topic_id="id1"))
    return found


def written(ledger: OneTopic, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Rebuilds it; so many rows are written before Kafka is away."""

    def write(*args: object, **options: object) -> None:
        ledger.rows = rows
        if rows < 2:
            raise RetriableError("the brokers are silent", next_step="start it again")

    monkeypatch.setattr(rebuild, "write_rows", write)
    rebuild.rebuild_ledger(rebuild.plan_ledger_rebuild("vehicles", print, assume_sent=False), print)


def test_it_is_rebuilt_again_after_it_was_cut_short(
    ledger: OneTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RetriableError):
        written(ledger, monkeypatch, 1)
    home = Home(str(tmp_path / "home"))
    half = home.publication("vehicles").ledger.known()
    # So that no run takes it for the ledger that it knows.
    assert half is not None
    assert half.topic_id != "id1"

    written(ledger, monkeypatch, 2)

    assert home.publication("vehicles").ledger.known() == KnownLedger(cluster="c", topic_id="id1")
    assert home.publication("vehicles").ledger.committed_shards("id1") == {0, 1}
    with pytest.raises(ConfigurationError, match="is not lost"):
        rebuild.plan_ledger_rebuild("vehicles", print, assume_sent=False)


def test_a_ledger_that_lost_the_row_of_one_shard_is_rebuilt(ledger: OneTopic, tmp_path: Path) -> None:
    Home(str(tmp_path / "home")).publication("vehicles").ledger.write_rows("id1", [0, 1])
    ledger.rows = 1

    assert rebuild.plan_ledger_rebuild("vehicles", print, assume_sent=False).how == "holds nothing of shards 1"
