"""Entities and structures that change while they are read: the newest version is published, and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.landing import MORNING, car
from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture_sandbox.context_broker import ConcurrentWriter, SeedEntity, TestBroker
from spark_jobs.entities.judge import judge_outbox
from spark_jobs.entities.read import read_entities

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ENTITIES = 100
V2 = {"kind": "ngsi", "connection": "c", "service": "city", "service_path": "/churn", "page_size": 20}
LINKED = {
    **{"kind": "ngsi", "connection": "c", "service": "city", "page_size": 20},
    **{"api": "ngsi-ld", "context": "https://example.org/context.jsonld"},
}


class Judged(Preparer):
    """Runs that are judged as the gate sees them."""

    def order(self, mode: str) -> StageOrder:
        return StageOrder.model_validate(
            {
                "publication": self.publication,
                "fingerprint": fingerprint(self.publication),
                "home": self.storage.root,
                "run": f"run{self.runs}",
                "mode": mode,
                "sequence": self.runs,
            }
        )

    def pulled(self, broker: TestBroker, mode: str = "full") -> tuple[Manifest, QualityVerdict]:
        """The outbox of a new run that reads a broker, and the verdict on it."""
        self.runs += 1
        read_entities(self.spark, self.order(mode), BrokerConnection(broker.url), self.state.pointer().watermark)
        return self.judged(self.again(f"run{self.runs}", mode=mode), mode)

    def judged(self, manifest: Manifest, mode: str = "changes") -> tuple[Manifest, QualityVerdict]:
        """The same for an outbox that is prepared."""
        landed = LandingManifest.from_file(self.storage, self.folder.landing_manifest(manifest.run))
        return manifest, judge_outbox(self.spark, self.order(mode), landed, manifest)

    def landed(self) -> list[dict[str, Any]]:
        """What the last run has read, in order."""
        folder = self.folder.landing(f"run{self.runs}")
        names = self.storage.files(folder, ".parquet")
        tables = [pq.read_table(self.storage.path(f"{folder}/{name}"), partitioning=None) for name in names]
        rows: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("ordinal").to_pylist()
        return [row for row in rows if row["operation"] == "upsert"]


Runs = Callable[..., Judged]


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path) -> Runs:
    def make(owner: Publication | None = None, **changes: Any) -> Judged:
        return Judged(spark, tmp_path / "home", owner or publication(**changes))

    return make


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


def seeds() -> Iterator[SeedEntity]:
    for number in range(ENTITIES):
        moment = MORNING + timedelta(seconds=number)
        entity = {"id": f"e{number}", "type": "Thing", "level": {"type": "Number", "value": number, "metadata": {}}}
        yield SeedEntity("city", "/churn", entity, moment, moment)


def churning(broker: TestBroker, updates: int, pages: int) -> None:
    """So many entities change behind each of the next pages, those at its border among them if all do."""
    churn = ConcurrentWriter(broker.store, "city", updates=updates, deletes=0, inserts=0)
    left = iter(range(pages))
    broker.faults.after_page = lambda page: churn(page) if next(left, None) is not None else None


def newest(landed: list[dict[str, Any]]) -> dict[str, Any]:
    """What the read has met of each entity last."""
    return {row["id"]: orjson.loads(row["body"]) for row in sorted(landed, key=lambda row: row["modified_at"])}


def check_newest(city: Judged, manifest: Manifest, verdict: QualityVerdict) -> None:
    """The run may be sent, and holds each entity once, as it was read last."""
    landed = city.landed()
    expected = newest(landed)
    assert len(landed) > len(expected), "none changed between two pages"
    assert (verdict.approved, [each.name for each in verdict.results if not each.success]) == (True, [])
    sent = {record["key"]: orjson.loads(record["value"]) for record in city.records(manifest)}
    assert (len(sent), manifest.records, manifest.accepted) == (len(expected), len(expected), len(expected))
    assert (manifest.repeated, manifest.read) == (len(landed) - len(expected), len(landed))
    for body in sent.values():
        # Pages carry the broker's own time of each attribute, which is not published.
        assert body.get("churn", {}).get("value") == expected[body["id"]].get("churn", {}).get("value")


def test_entities_that_change_at_page_borders_of_a_full_run_are_published_as_they_are_last(
    runs: Runs, broker: TestBroker
) -> None:
    broker.load(seeds())
    churning(broker, ENTITIES, pages=20)
    city = runs(source=V2)

    manifest, verdict = city.pulled(broker, "full")

    check_newest(city, manifest, verdict)
    assert manifest.records == ENTITIES


def test_entities_that_change_while_changes_are_read_are_published_as_they_are_last(
    runs: Runs, broker: TestBroker
) -> None:
    broker.load(seeds())
    city = runs(source={**V2, "overlap_seconds": 3600})
    city.conclude(city.pulled(broker, "full")[0])
    broker.store.clock.advance(60)
    ConcurrentWriter(broker.store, "city", updates=ENTITIES, deletes=0, inserts=0)(1)
    churning(broker, 7, pages=12)

    manifest, verdict = city.pulled(broker, "changes")

    check_newest(city, manifest, verdict)


@pytest.mark.parametrize("flavour", ["orion-ld", "scorpio", "stellio"])
def test_linked_data_that_changes_at_page_borders_is_published_as_it_is_last(
    runs: Runs, broker: TestBroker, flavour: str
) -> None:
    face = broker.speak_linked_data(flavour)
    entities = [
        {"id": f"urn:e:{number:04}", "type": "Thing", "level": {"type": "Property", "value": number}}
        for number in range(ENTITIES)
    ]
    face.load(entities, tenant="city", at="2025-12-01T00:00:00Z")

    def rewrite(page: int) -> None:
        # Those that were read already, and those of the next page.
        if page <= 3:
            changed = [{**each, "level": {"type": "Property", "value": 1000 + page}} for each in entities[::9]]
            face.load(changed, tenant="city", at=f"2026-01-01T00:00:0{page}Z")

    broker.faults.after_page = rewrite
    city = runs(source=LINKED, message={"format": "ngsi-ld"})

    manifest, verdict = city.pulled(broker)

    assert (verdict.approved, [each.name for each in verdict.results if not each.success]) == (True, [])
    assert (manifest.records, manifest.accepted) == (ENTITIES, ENTITIES)
    assert manifest.repeated == len(city.landed()) - ENTITIES


def later(number: int, value: float, seconds: int, **attributes: object) -> dict[str, object]:
    return {**car(number, value, modified=MORNING + timedelta(seconds=seconds)), **attributes}


def test_an_older_version_that_breaks_a_rule_counts_nowhere(runs: Runs) -> None:
    city = runs(quality={"max_quarantined_share": 0.1})
    broken = {"type": "Number", "value": "fast", "metadata": {}}

    manifest, verdict = city.judged(city.prepare([later(1, 0, 1, speed=broken), later(2, 20, 1), later(1, 11, 2)]))

    assert verdict.approved
    assert (manifest.quarantined, manifest.quarantined_entities, manifest.repeated) == ({}, 0, 0)
    assert (manifest.accepted, manifest.upserts, city.quarantine(manifest)) == (2, 2, [])


def test_a_newer_version_that_breaks_a_rule_is_the_one_that_counts(runs: Runs) -> None:
    city = runs(quality={"max_quarantined_share": 0.9})
    broken = {"type": "Number", "value": "fast", "metadata": {}}

    manifest, verdict = city.judged(city.prepare([later(1, 10, 1), later(2, 20, 1), later(1, 0, 2, speed=broken)]))

    assert verdict.approved
    assert manifest.quarantined == {"number-string": 1}
    assert (manifest.accepted, manifest.repeated, manifest.upserts) == (1, 1, 1)


def test_warnings_and_expectations_are_of_what_is_published(runs: Runs) -> None:
    ranges = {"speed": {"minimum": 0, "maximum": 100}}
    quality = {"ranges": ranges, "attribute_types": {"speed": "Number"}, "rules": {"count-mismatch": "off"}}
    between = {"column": "number", "max_value": 100, "severity": "critical"}
    expectations = [{"name": "ExpectColumnValuesToBeBetween", "on": "attributes", "kwargs": between}]
    city = runs(quality={**quality, "expectations": expectations})

    manifest, verdict = city.judged(city.prepare([later(1, 900, 1), later(2, 20, 1), later(1, 11, 2)]))

    assert (verdict.approved, [each.name for each in verdict.results if not each.success]) == (True, [])
    assert (manifest.warnings, manifest.accepted) == ({}, 2)


def test_an_attribute_that_went_while_its_entity_was_read_is_not_published(runs: Runs) -> None:
    city = runs(topics={"data_model": "dm-by-attribute"})
    colour = {"type": "Text", "value": "red", "metadata": {}}
    city.concluded([later(1, 10, 0, colour=colour)])

    manifest, verdict = city.judged(city.prepare([later(1, 10, 1, colour=colour, lost=colour), later(1, 11, 2)]))

    assert verdict.approved
    has_value = {orjson.loads(row["key"])[-1]: row["value"] is not None for row in city.records(manifest)}
    assert has_value == {"speed": True, "colour": False}
    assert (manifest.upserts, manifest.deletes, manifest.accepted, manifest.repeated) == (1, 1, 1, 3)


def test_what_is_read_twice_without_a_change_is_no_duplicate(runs: Runs) -> None:
    city = runs()

    manifest, verdict = city.judged(city.prepare([car(1, 10), car(2, 20), car(1, 10)]))

    assert verdict.approved
    assert (manifest.accepted, manifest.repeated, manifest.upserts) == (2, 1, 2)


def test_other_content_at_the_same_time_is_a_duplicate_still(runs: Runs) -> None:
    city = runs(quality={"max_quarantined_share": 1.0})

    manifest, verdict = city.judged(city.prepare([car(1, 10), car(2, 20), car(1, 11)]))

    assert [each.name for each in verdict.results if not each.success] == ["unique-identity"]
    assert (verdict.approved, manifest.quarantined) == (False, {"duplicate": 2})
