"""The pull phase against the test broker, with a real Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.counted_broker import CountedBroker
from builders.layout import PublicationPaths
from contexture.errors import ConfigurationError, RetriableError
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Mode
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from contexture_sandbox.context_broker import ConcurrentWriter, SeedEntity, TestBroker
from contexture_sandbox.context_broker.loading import load
from spark_jobs.entities.read import read_entities, selection_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "bearer-8f3a51"


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


def car(number: int, *, path: str = "/4wheels", second: int | None = None, speed: str = "1.0E2") -> SeedEntity:
    moment = NEW_YEAR + timedelta(seconds=number if second is None else second)
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": float(speed), "metadata": {}}}
    return SeedEntity("vehicles", path, entity, moment, moment)


def order(home: Path, *, run: str = "r1", mode: Mode = "changes", **source: object) -> StageOrder:
    selected = {"kind": "ngsi", "connection": "broker", "service": "vehicles", "service_path": "/4wheels", **source}
    topics = {"naming": "cygnus", "data_model": "dm-by-entity"}
    publication = Publication.model_validate({"name": "cars", "source": selected, "topics": topics})
    return StageOrder(
        publication=publication,
        fingerprint=fingerprint(publication),
        home=str(home),
        run=run,
        mode=mode,
        sequence=1,
    )


def connection(broker: TestBroker) -> BrokerConnection:
    return BrokerConnection(broker.url, headers={"authorization": SECRET})


def rows(home: Path, manifest: LandingManifest) -> pa.Table:
    folder = home / PublicationPaths("cars").landing(manifest.run)
    tables = [pq.read_table(folder / name) for name in sorted(manifest.files)]
    return pa.concat_tables(tables).sort_by("ordinal")


def test_a_full_pull_lands_every_entity_as_the_broker_wrote_it(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load(car(number) for number in range(5))

    manifest = read_entities(spark, order(tmp_path, mode="full", page_size=2), connection(broker), None)

    landed = rows(tmp_path, manifest)
    assert landed["id"].to_pylist() == ["car0", "car1", "car2", "car3", "car4"]
    assert landed["ordinal"].to_pylist() == [0, 1, 2, 3, 4]
    assert set(landed["operation"].to_pylist()) == {"upsert"}
    assert landed["path"].to_pylist() == ["/4wheels"] * 5
    assert landed["scope"].to_pylist() == ["vehicles"] * 5
    assert landed["version"][1].as_py() == "2026-01-01T00:00:01.000Z"
    assert landed["modified_at"][1].as_py() == NEW_YEAR + timedelta(seconds=1)
    assert landed["created_at"][1].as_py() == NEW_YEAR + timedelta(seconds=1)
    assert landed["media_type"][0].as_py() == "application/json"
    assert landed["body"][0].as_py().startswith(b'{"id":"car0","type":"car","speed":{"type":"Number","value":100')
    assert (manifest.rows, manifest.present, manifest.source_count, manifest.complete) == (5, 0, 5, True)
    assert manifest.watermark_to == "2026-01-01T00:00:04.000Z"


def test_landing_has_the_types_that_everything_after_it_expects(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1)])

    manifest = read_entities(spark, order(tmp_path), connection(broker), None)

    assert {field.name: field.type for field in rows(tmp_path, manifest).schema} == {
        field.name: field.type for field in LANDING
    }


def test_changes_lands_what_changed_since_the_watermark_and_who_is_there(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load(car(number, second=number * 100) for number in range(4))

    manifest = read_entities(spark, order(tmp_path, overlap_seconds=60), connection(broker), "2026-01-01T00:05:00.000Z")

    landed = rows(tmp_path, manifest)
    found = [(row["operation"], row["id"], row["body"] is None) for row in landed.to_pylist()]
    assert found == [("upsert", "car3", False), *(("present", f"car{number}", True) for number in range(4))]
    assert landed["ordinal"].to_pylist() == [0, *(2**36 + number for number in range(4))]
    assert (manifest.rows, manifest.present, manifest.complete) == (5, 4, True)
    assert manifest.watermark_from == manifest.watermark_to == "2026-01-01T00:05:00.000Z"


def test_changes_without_a_watermark_is_a_full_walk(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.load([car(1), car(2)])

    manifest = read_entities(spark, order(tmp_path, mode="changes"), connection(broker), None)

    assert (manifest.rows, manifest.present, manifest.complete) == (2, 0, True)
    assert all("orderBy=dateCreated" in query for query in manifest.queries)


def test_changes_that_detect_no_deletions_never_prove_absence(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1), car(2)])

    asked = order(tmp_path, detect_deletions=False)
    manifest = read_entities(spark, asked, connection(broker), "2026-01-01T00:00:02.000Z")

    assert (manifest.present, manifest.complete) == (0, False)


def test_an_empty_answer_of_a_healthy_broker_is_a_landing_without_rows(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    manifest = read_entities(spark, order(tmp_path), connection(broker), None)

    assert (manifest.rows, manifest.source_count, manifest.complete, manifest.watermark_to) == (0, 0, True, None)
    assert rows(tmp_path, manifest).schema.names == LANDING.names


def test_a_broker_without_its_database_leaves_no_manifest(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1)])
    broker.faults.database_gone = True

    with pytest.raises(RetriableError, match="responded with 500"):
        read_entities(spark, order(tmp_path), connection(broker), None)
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_database_that_goes_away_during_the_walk_fails_the_pull(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load(car(number) for number in range(6))

    def lose_database(page: int) -> None:
        broker.faults.database_gone = page >= 3  # the first page is the count before the walk

    broker.faults.after_page = lose_database
    with pytest.raises(RetriableError, match="responded with 500"):
        read_entities(spark, order(tmp_path, page_size=2), connection(broker), None)
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_broker_that_refuses_a_page_is_a_configuration_error_in_spark_too(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1)])
    broker.faults.fail(nth=2, status=403, path="/v2/entities")  # the first is the count

    with pytest.raises(ConfigurationError, match="refuses the credentials of the connection") as raised:
        read_entities(spark, order(tmp_path), connection(broker), None)
    assert "headers of the connection" in raised.value.next_step


def test_a_pull_with_a_manifest_is_not_read_again(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.load([car(1)])
    first = read_entities(spark, order(tmp_path), connection(broker), None)
    broker.stop()

    assert read_entities(spark, order(tmp_path), connection(broker), None) == first


def test_what_a_killed_pull_left_is_removed_first(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.load([car(1)])
    first = read_entities(spark, order(tmp_path), connection(broker), None)
    Home(str(tmp_path)).remove(PublicationPaths("cars").landing_manifest("r1"))

    again = read_entities(spark, order(tmp_path), connection(broker), None)

    assert again.rows == 1
    assert first.files.keys().isdisjoint(again.files)
    assert {path.name for path in tmp_path.rglob("*.parquet")} == set(again.files)


def test_nothing_that_stays_is_missed_while_others_write(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load(car(number) for number in range(300))
    churn = ConcurrentWriter(broker.store, "vehicles", updates=7, deletes=2, inserts=2, service_path="/4wheels")
    broker.faults.after_page = churn

    manifest = read_entities(spark, order(tmp_path, page_size=20), connection(broker), None)

    stayed = {f"car{number}" for number in range(300)} - churn.deleted
    assert churn.deleted
    assert stayed <= set(rows(tmp_path, manifest)["id"].to_pylist())


def test_answers_that_break_off_are_asked_for_again(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.load(car(number) for number in range(10))
    broker.faults.drop(nth=3, path="/v2/entities")
    broker.faults.truncate(nth=5, path="/v2/entities")
    broker.faults.fail(nth=7, status=503, path="/v2/entities")

    manifest = read_entities(spark, order(tmp_path, page_size=4), connection(broker), None)

    assert rows(tmp_path, manifest)["id"].to_pylist() == [f"car{number}" for number in range(10)]


def test_entities_that_never_had_times_are_landed_by_a_full_pull(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    old = {"id": "old", "type": "car", "speed": {"type": "Number", "value": 1, "metadata": {}}}
    broker.load([car(1), car(2), car(3), SeedEntity("vehicles", "/4wheels", old, None, None)])

    manifest = read_entities(spark, order(tmp_path, page_size=2), connection(broker), None)

    assert set(rows(tmp_path, manifest)["id"].to_pylist()) == {"old", "car1", "car2", "car3"}
    assert manifest.complete


@pytest.mark.parametrize(
    ("hidden_after", "shown_after", "rows_landed", "complete"),
    [
        # Pages 1 and 2 are the counts before the walk, 3 to 7 the walk, 8 and 9 the counts after it, 10 to 14 the walk
        # of the second look, 15 to 18 its sweep, 19 and 20 counts, 21 to 29 the third look.
        ({2}, {7}, 11, True),
        ({2, 9, 20}, {7, 18, 29}, 8, False),
    ],
)
def test_what_the_broker_counts_and_the_walk_did_not_meet_is_looked_for_once_more(
    spark: SparkSession,
    broker: TestBroker,
    tmp_path: Path,
    hidden_after: set[int],
    shown_after: set[int],
    rows_landed: int,
    complete: bool,
) -> None:
    old = {"id": "old", "type": "car", "speed": {"type": "Number", "value": 1, "metadata": {}}}
    broker.load([car(number) for number in range(8)])
    broker.load([SeedEntity("vehicles", "/4wheels", {**old, "id": f"old{number}"}, None, None) for number in range(3)])
    tenant = broker.store.tenant("vehicles")
    hiding = {key: entity for key, entity in tenant.entities.items() if "old" in str(key)}

    def hide(page: int) -> None:
        for key, entity in hiding.items():
            if page in hidden_after:
                tenant.remove(key)
            elif page in shown_after:
                tenant.put(entity)

    broker.faults.after_page = hide

    manifest = read_entities(spark, order(tmp_path, page_size=4), connection(broker), None)

    landed = rows(tmp_path, manifest)
    assert (manifest.rows, manifest.source_count, manifest.complete) == (rows_landed, 11, complete)
    assert landed["ordinal"].to_pylist() == list(range(rows_landed))
    assert landed["id"].to_pylist()[8:] == ["old0", "old1", "old2"][: rows_landed - 8]
    assert landed["body"].null_count == 0


def test_one_walk_for_each_service_path_and_identities_from_wildcards(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1, path="/a"), car(1, path="/b/c"), car(1, path="/other")])

    manifest = read_entities(spark, order(tmp_path, service_path=["/a", "/b/#"]), connection(broker), None)

    found = [(row["ordinal"] >> 36, row["path"]) for row in rows(tmp_path, manifest).to_pylist()]
    assert found == [(0, "/a"), (1, "/b/c")]
    assert (manifest.source_count, manifest.complete) == (2, True)


def test_attributes_that_are_events_land_with_the_times_of_their_own_changes(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1)])
    asked = order(tmp_path)
    topics = asked.publication.topics.model_copy(update={"data_model": "dm-by-attribute"})
    by_attribute = asked.model_copy(update={"publication": asked.publication.model_copy(update={"topics": topics})})

    manifest = read_entities(spark, by_attribute, connection(broker), None)

    body = rows(tmp_path, manifest)["body"][0].as_py()
    assert b'"speed":{"type":"Number","value":100.0,"metadata":{"dateModified":{"type":"DateTime","value":"2' in body


def test_the_watermark_never_passes_the_start_of_the_pull(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    broker.load([car(1), car(2)])
    shadowing = {"id": "x", "type": "car", "dateModified": {"type": "DateTime", "value": "2050-01-01T00:00:00.000Z"}}
    broker.load([SeedEntity("vehicles", "/4wheels", shadowing)])

    manifest = read_entities(spark, order(tmp_path), connection(broker), None)

    assert manifest.rows == 3
    assert manifest.watermark_to == "2026-01-01T00:00:02.000Z"


def test_odd_characters_in_the_home_and_in_identities_are_kept(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    home = tmp_path / "my home #1 100%20 [ä] {x}"
    odd = {"id": "urn:ünï:\u2028'\";1", "type": "Größe 2", "a": {"type": "Text", "value": "x\n", "metadata": {}}}
    broker.load([SeedEntity("vehicles", "/4wheels", odd)])

    manifest = read_entities(spark, order(home), connection(broker), None)

    landed = rows(home, manifest)
    assert landed["id"].to_pylist() == ["urn:ünï:\u2028'\";1"]
    assert landed["type"].to_pylist() == ["Größe 2"]
    assert manifest.complete


def test_an_impossible_service_path_is_named_to_the_one_who_configured_it(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="rejects the request") as raised:
        read_entities(spark, _with_service_path(order(tmp_path), "/a b"), connection(broker), None)
    assert "service_path" in raised.value.next_step


def _with_service_path(asked: StageOrder, path: str) -> StageOrder:
    source = asked.publication.source.model_copy(update={"service_path": (path,)})
    return asked.model_copy(update={"publication": asked.publication.model_copy(update={"source": source})})


@pytest.mark.parametrize(("entity_id", "landed", "complete"), [(5, "5", True), (None, None, False)])
def test_an_entity_whose_id_is_no_text_lands_and_absence_is_unproven_only_if_it_has_none(
    spark: SparkSession, broker: TestBroker, tmp_path: Path, entity_id: object, landed: str | None, complete: bool
) -> None:
    broker.load([car(1), SeedEntity("vehicles", "/4wheels", {"id": entity_id, "type": "car"})])

    manifest = read_entities(spark, order(tmp_path), connection(broker), None)

    assert rows(tmp_path, manifest)["id"].to_pylist() == ["car1", landed]
    assert (manifest.rows, manifest.complete) == (2, complete)


def test_several_readers_land_each_entity_once_in_the_order_of_one(
    spark: SparkSession, broker: TestBroker, tmp_path: Path
) -> None:
    # Ten of a second, so that cuts fall among equals; stored finer than shown, as brokers do.
    moments = (NEW_YEAR + timedelta(seconds=number // 10, microseconds=77 + number) for number in range(200))
    old = {"id": "old", "type": "car"}
    broker.load([SeedEntity("vehicles", "/4wheels", {**old, "id": f"old{number}"}, None, None) for number in range(3)])
    broker.load(
        SeedEntity("vehicles", "/4wheels", {"id": f"car{number:03}", "type": "car"}, moment, moment)
        for number, moment in enumerate(moments)
    )

    first, second = (order(tmp_path / f"{n}", mode="full", page_size=10, parallel_readers=n) for n in (1, 3))
    one = read_entities(spark, first, connection(broker), None)
    three = read_entities(spark, second, connection(broker), None)

    expected = ["old0", "old1", "old2", *(f"car{number:03}" for number in range(200))]
    assert rows(tmp_path / "1", one)["id"].to_pylist() == expected
    landed = rows(tmp_path / "3", three)
    assert landed["id"].to_pylist() == expected
    slices = landed["ordinal"].to_numpy() >> 30
    assert sorted(set(slices.tolist())) == [0, 1, 2]
    assert (three.rows, three.source_count, three.complete) == (203, 203, True)
    assert (one.watermark_to, one.queries) == (three.watermark_to, three.queries)


def test_what_a_publication_says_about_reading_reaches_the_readers(tmp_path: Path) -> None:
    said = {"parallel_readers": 5, "pause_milliseconds": 40, "page_size": 70, "walk_deadline_seconds": 9}
    selection = selection_of(order(tmp_path, ids=["car1", "car2"], **said), None)
    assert (selection.parallel_readers, selection.page_size, selection.walk_deadline_seconds) == ("5", "70", "9")
    assert selection.budget.pause_seconds == 0.04
    assert [walk.query.ids for walk in selection.walks()] == [("car1", "car2")]


@pytest.mark.parametrize("readers", [1, 2])
def test_there_are_never_more_requests_under_way_than_readers(
    spark: SparkSession, tmp_path: Path, readers: int
) -> None:
    """The session has two slots, so that two walks of one reader could be read at once."""
    paths = ["/a", "/b", "/c", "/d"]
    with CountedBroker().serving() as broker:
        load(broker.broker.store, (car(number, path=path) for path in paths for number in range(60)))
        asked = order(tmp_path, service_path=paths, page_size=5, parallel_readers=readers)
        manifest = read_entities(spark, asked, BrokerConnection(broker.url), None)

    assert (manifest.present, manifest.complete) == (0, True)
    assert {row["id"] for row in rows(tmp_path, manifest).to_pylist()} == {f"car{number}" for number in range(60)}
    assert broker.most <= readers


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_stays_is_missed_by_three_readers_while_others_write(
    spark: SparkSession, broker: TestBroker, tmp_path: Path, seed: int
) -> None:
    broker.load(car(number) for number in range(600))
    churn = ConcurrentWriter(
        broker.store, "vehicles", updates=7, deletes=1, inserts=1, seed=seed, service_path="/4wheels"
    )
    broker.faults.after_page = churn

    manifest = read_entities(spark, order(tmp_path, page_size=20, parallel_readers=3), connection(broker), None)

    stayed = {f"car{number}" for number in range(600)} - churn.deleted
    assert len(churn.deleted) > 25
    assert stayed <= set(rows(tmp_path, manifest)["id"].to_pylist())


def test_no_file_holds_the_secret(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> None:
    broker.load([car(1)])

    read_entities(spark, order(tmp_path), connection(broker), None)

    local = Path(str(spark.conf.get("spark.local.dir"))).parent
    files = [path for folder in (tmp_path, local) for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_the_source_can_be_read_by_anyone(spark: SparkSession, broker: TestBroker) -> None:
    from spark_jobs.data_sources.ngsi import NgsiDataSource

    broker.load([car(1), car(2)])
    spark.dataSource.register(NgsiDataSource)

    read = spark.read.format("ngsi").option("url", broker.url).option("service", "vehicles").load()

    assert sorted(row["id"] for row in read.collect()) == ["car1", "car2"]
