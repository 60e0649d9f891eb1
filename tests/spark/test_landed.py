"""What a scan of a landing folder finds; reads and writes Parquet without a session."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contexture.sources.ngsi.broker import EntityPage
from contexture.sources.ngsi.entity_head import EntityHead
from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from spark_jobs.data_sources.ngsi import landing_rows
from spark_jobs.entities.landing import ScannedLanding

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def land(home: Path, *sightings: EntityHead, walk: int = 0, bodies: bool = True) -> None:
    page = EntityPage([b"{}"] * len(sightings), sightings, NOON, NOON)
    (home / "landing").mkdir(exist_ok=True)
    batch = landing_rows(page, service="s", walk=walk, first=0, bodies=bodies)
    with pq.ParquetWriter(home / "landing" / f"part-{walk}.parquet", batch.schema) as writer:
        writer.write_batch(batch)


def scan(home: Path) -> ScannedLanding:
    return ScannedLanding.scan(StoredFolder(Home(str(home)), "landing"))


def seen(id_: str, hour: int, *, path: str | None = "/a") -> EntityHead:
    return EntityHead(path, id_, "t", "2026-01-01T00:00:00.000Z", f"2026-01-01T{hour:02}:00:00.00Z")


def test_the_newest_change_is_as_the_broker_wrote_it_and_only_up_to_a_moment(tmp_path: Path) -> None:
    land(tmp_path, seen("a", 3), seen("b", 11), seen("c", 13))
    assert scan(tmp_path).newest_version(NOON) == "2026-01-01T11:00:00.00Z"


def test_what_was_seen_without_its_body_is_no_change(tmp_path: Path) -> None:
    land(tmp_path, seen("a", 3))
    land(tmp_path, seen("a", 3), seen("b", 11), walk=1, bodies=False)
    landed = scan(tmp_path)
    assert landed.newest_version(NOON) == "2026-01-01T03:00:00.00Z"
    assert (landed.rows, landed.present) == (3, 2)


def test_an_entity_that_came_in_two_versions_is_one(tmp_path: Path) -> None:
    land(tmp_path, seen("a", 3), seen("a", 4), seen("b", 3))
    land(tmp_path, seen("a", 3), walk=1)
    assert (
        scan(tmp_path).count_identities(0),
        scan(tmp_path).count_identities(1),
        scan(tmp_path).count_identities(2),
    ) == (2, 1, 0)


def test_what_a_walk_met_and_the_number_of_its_next_row(tmp_path: Path) -> None:
    land(tmp_path, seen("a", 3))
    land(tmp_path, seen("b", 3), seen("c", 3), seen("c", 4), walk=1)
    landed = scan(tmp_path)
    assert landed.seen_identities(1) == {("/a", "b", "t"), ("/a", "c", "t")}
    assert [landed.next_number(walk) for walk in (0, 1, 2)] == [1, 3, 0]


def test_a_row_without_its_service_path_leaves_identities_unknown(tmp_path: Path) -> None:
    land(tmp_path, seen("a", 3))
    assert scan(tmp_path).has_identities
    land(tmp_path, seen("a", 3, path=None), walk=1)
    assert not scan(tmp_path).has_identities


def test_the_digest_changes_with_any_byte_of_any_file(tmp_path: Path) -> None:
    land(tmp_path, seen("a", 3))
    first = scan(tmp_path)
    land(tmp_path, seen("a", 4))
    assert first.files.keys() == scan(tmp_path).files.keys()
    assert first.digest != scan(tmp_path).digest


def test_a_folder_without_files_holds_nothing(tmp_path: Path) -> None:
    landed = scan(tmp_path)
    assert (landed.rows, landed.present, landed.newest_version(NOON), landed.has_identities) == (0, 0, None, True)
