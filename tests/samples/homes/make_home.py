"""Makes a home as the Contexture that stands on PYTHONPATH writes it; see README.md.

    python make_home.py FOLDER

Three runs of one publication against the test broker: two concluded, the third approved and not sent. The first sends
three cars and refuses one; the second changes one and misses one; the third changes one and deletes the missed one.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from contexture.ngsi import BrokerConnection
from contexture.outbox.conclusion import conclude
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import Manifest
from contexture.outbox.orders import StageOrder, StageResult
from contexture.outbox.storage import Storage
from contexture.publications import Publication, fingerprint
from contexture.sandbox.context_broker import SeedEntity, TestBroker
from spark_jobs import stage

HEADERS = {"fiware-service": "vehicles", "fiware-servicepath": "/4wheels"}
VEHICLES = Publication.model_validate(
    {
        "name": "vehicles",
        "schedule": "*/5 * * * *",
        "source": {
            "kind": "ngsi",
            "connection": "context_broker",
            "service": "vehicles",
            "service_path": "/4wheels",
            "types": ["car"],
        },
        "publish": {"shards": 2},
        "quality": {"max_quarantined_share": 1.0},
    }
)


def car(number: int, speed: object) -> SeedEntity:
    """A car, whose speed is its only attribute."""
    moment = datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)
    attribute = {"type": "Number", "value": speed, "metadata": {}}
    return SeedEntity("vehicles", "/4wheels", {"id": f"car{number}", "type": "car", "speed": attribute}, moment, moment)


class Home:
    """Runs of the publication, numbered from 1."""

    def __init__(self, folder: Path) -> None:
        self.storage = Storage(str(folder))
        self.folder = PublicationFolder(VEHICLES.name)
        self.outboxes = Outboxes(self.storage, VEHICLES.name)
        self.runs = 0

    def approved(self) -> Manifest:
        """The outbox of a new run, approved."""
        self.runs += 1
        order = StageOrder(
            publication=VEHICLES,
            fingerprint=fingerprint(VEHICLES),
            home=self.storage.root,
            run=f"run{self.runs}",
            mode="changes",
            sequence=self.runs,
        )
        self.storage.write(self.folder.order(order.run), order.to_json())
        assert stage.main(["--order", self.storage.uri(self.folder.order(order.run))]) == 0
        result = StageResult.model_validate_json(self.storage.read(self.folder.result(order.run)))
        assert result.outbox is not None
        self.outboxes.move(result.outbox, "approved", reason="the quality gate let it pass")
        return self.outboxes.manifest(result.outbox)

    def concluded(self) -> None:
        """A new run, taken for sent."""
        conclude(self.storage, self.approved(), cluster="cluster-a", target="PLAINTEXT://broker:9092")


def main(folder: Path) -> None:
    """Makes the home."""
    home = Home(folder)
    with TestBroker() as broker, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXTURE_SOURCE_CONNECTION", BrokerConnection(broker.url, timeout_seconds=30).to_json())
        broker.load([car(0, 0), car(1, 10), car(2, 20), car(3, {"too fast": "<script>"})])
        home.concluded()
        httpx.put(f"{broker.url}/v2/entities/car1/attrs/speed/value", headers=HEADERS | TEXT, content="11")
        httpx.delete(f"{broker.url}/v2/entities/car2", headers=HEADERS)
        broker.settle()
        home.concluded()
        httpx.put(f"{broker.url}/v2/entities/car0/attrs/speed/value", headers=HEADERS | TEXT, content="1")
        broker.settle()
        home.approved()


TEXT = {"content-type": "text/plain"}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
