"""What was notified lands in the order of arrival, whole or not at all, and stays in the inbox."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from builders.notifying import HEADERS, body, entity, gone, notify
from builders.outboxes import publication
from contexture.publications import fingerprint
from contexture.storage.home import Home
from contexture.storage.inbox_reader import InboxClaim
from contexture.storage.inbox_writer import InboxWriter
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from fakes.failing_storage import FailingStorage, KilledError
from spark_jobs.entities.notifications import empty_landing, land_notifications

FIRST = -(1 << 36)
CARS = publication()


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def order(storage: Home, run: str = "run1") -> StageOrder:
    return StageOrder(
        publication=CARS, fingerprint=fingerprint(CARS), home=storage.root, run=run, mode="notifications", sequence=1
    )


def landed(storage: Home, run: str = "run1", claim: InboxClaim | None = None) -> LandingManifest:
    asked = order(storage, run)
    return land_notifications(
        storage.publication("vehicles"),
        asked,
        claim or storage.publication("vehicles").inbox.claim(),
        empty_landing(asked),
    )


def rows(storage: Home, run: str = "run1") -> list[dict[str, Any]]:
    return pq.read_table(storage.path(f"vehicles/landing/{run}/part-notified.parquet")).to_pylist()


def test_each_entity_is_a_row_below_all_that_is_read(storage: Home) -> None:
    notify(storage, body(entity(1, speed=1), entity(2, speed=2)), body(gone(1)))
    manifest = landed(storage)
    names = ("ordinal", "operation", "scope", "path", "id", "type", "media_type")
    v2 = "application/json; notified=ngsiv2"
    assert [tuple(row[name] for name in names) for row in rows(storage)] == [
        (FIRST, "upsert", "vehicles", "/4wheels", "car1", "car", v2),
        (FIRST + 1, "upsert", "vehicles", "/4wheels", "car2", "car", v2),
        (FIRST + 2, "delete", "vehicles", "/4wheels", "car1", "car", v2),
    ]
    assert rows(storage)[0]["body"] == orjson.dumps(entity(1, speed=1))
    assert rows(storage)[0]["received_at"] == rows(storage)[1]["received_at"] < rows(storage)[2]["received_at"]
    assert (manifest.rows, manifest.notified, manifest.complete, manifest.knows_source) == (3, 3, False, False)
    assert manifest.started_at == rows(storage)[0]["received_at"]
    assert len(storage.publication("vehicles").inbox.claim().files) == 2


def test_what_several_receivers_kept_lands_by_the_time_of_arrival(storage: Home) -> None:
    moments = iter([1, 4, 2, 3])
    writers = [
        InboxWriter(storage.publication("vehicles").open_inbox_folder(), clock_ns=lambda: next(moments) * 10**9)
        for _ in range(2)
    ]
    for number, writer in enumerate([writers[0], writers[0], writers[1], writers[1]]):
        writer.submit(HEADERS, body(entity(number, speed=number))).result()
    landed(storage)
    assert [(row["id"], row["received_at"]) for row in rows(storage)] == [
        ("car0", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("car2", datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)),
        ("car1", datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC)),
        # The second receiver's clock is behind, and by now it has seen what the first one wrote.
        ("car3", datetime(1970, 1, 1, 0, 0, 4, 1, tzinfo=UTC)),
    ]


def test_a_claim_holds_what_was_there_and_not_what_came_while_the_source_was_read(storage: Home) -> None:
    notify(storage, body(entity(1, speed=1)))
    claim = storage.publication("vehicles").inbox.claim()
    notify(storage, body(entity(2, speed=2)))
    landed(storage, claim=claim)
    assert [row["id"] for row in rows(storage)] == ["car1"]
    assert InboxClaim.model_validate_json(storage.read("vehicles/landing/run1/inbox.json")) == claim


def test_the_same_notifications_are_another_landing_in_another_run(storage: Home) -> None:
    notify(storage, body(entity(1, speed=1)))
    first, second = landed(storage), landed(storage, "run2")
    assert first.files == second.files
    assert first.digest != second.digest


def test_what_can_no_longer_be_read_lands_for_the_row_rules_to_refuse(storage: Home) -> None:
    notify(storage, b"{", body(entity(1, speed=1)))
    assert landed(storage).notified == 2
    assert [(row["operation"], row["id"], row["body"]) for row in rows(storage)] == [
        ("upsert", None, b"{"),
        ("upsert", "car1", orjson.dumps(entity(1, speed=1))),
    ]


def test_a_pull_without_notifications_stays_as_it_is(storage: Home) -> None:
    asked = order(storage).model_copy(update={"mode": "full"})
    read = empty_landing(asked)
    assert land_notifications(storage.publication("vehicles"), asked, InboxClaim(), read) is read
    assert not storage.exists("vehicles/landing/run1")


def test_wherever_landing_dies_it_can_be_done_again_and_the_inbox_is_whole(storage: Home) -> None:
    notify(storage, *(body(entity(number, speed=number)) for number in range(3)))
    deaths = 0
    for died in range(20):
        try:
            landed(FailingStorage(storage.root, died))
            break
        except KilledError:
            deaths += 1
            storage.remove("vehicles/landing/run1")
            assert len(storage.publication("vehicles").inbox.claim().files) == 3
    assert deaths > 0
    assert [row["id"] for row in rows(storage)] == ["car0", "car1", "car2"]
