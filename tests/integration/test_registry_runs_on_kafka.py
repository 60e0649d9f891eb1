"""Structures from their registry to Kafka and back: what a consumer's copy holds is what the registry holds."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from builders.registry import codelist, codelists
from builders.structure_publications import structures
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import TopicRecord, read_committed
from contexture.publications import Publication
from contexture.records.cloudevents import decode
from contexture.sources.sdmx import split
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.manifests import Manifest
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.registry import TestRegistry, seed_codelist, seed_message
from spark_jobs import pipeline

pytestmark = pytest.mark.integration

SDMX_ML_2_1 = "application/vnd.sdmx.structure+xml;version=2.1"
CODELIST = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=CITY.TRAFFIC:CL_00007(1.0)"
DATAFLOW = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=CITY.TRAFFIC:DF_00001_9(1.0)"
HEADER = "contexture_registry_transaction"
STRUCTURES = 20
ROOTS = {"fmr": "sdmx", "plain": "rest"}


class Office(WholeRuns):
    """A publication of a registry's structures."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, registry: TestRegistry, root: str) -> None:
        super().__init__(home, kafka)
        self.registry = registry
        self._address = f"{registry.url}/{root}/v2/structure/*/*/*/*"

    def publication(self, **sections: Any) -> Publication:
        return structures(**{"name": self.name, "topics": {"topics": [self.topic]}, **sections})

    def run(self, **asked: Any) -> Manifest:
        return self.ran(self.publication(), **asked)

    def records(self, *topics: str) -> list[TopicRecord]:
        """All that a read-committed reader gets."""
        return list(read_committed(self.settings, topics or [self.topic]))

    def replica(self) -> dict[str, bytes]:
        """What a consumer's copy holds: content by URN."""
        newest = {(record.key or b"").decode(): record.value for record in self.records()}
        return {urn: contents(value)[urn] for urn, value in newest.items() if value is not None}

    def held(self) -> dict[str, bytes]:
        """What the registry holds: content by URN."""
        answer = httpx.get(self._address, headers={"Accept": SDMX_ML_2_1}, timeout=30, trust_env=False)
        return contents(answer.raise_for_status().content)


def contents(message: bytes) -> dict[str, bytes]:
    """The structures of a message: content by URN."""
    return {str(artefact.urn): artefact.content_hash for artefact in split(io.BytesIO(message))}


@pytest.fixture(params=["fmr", "plain"])
def office(
    request: pytest.FixtureRequest, tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Office]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestRegistry(request.param) as registry:
        registry.submit(seed_message(STRUCTURES))
        root = ROOTS[request.param]
        base = registry.url if root == "sdmx" else f"{registry.url}/{root}"
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", RegistryConnection(base).to_json())
        yield Office(tmp_path, kafka, registry, root)


with_a_log = pytest.mark.parametrize("office", ["fmr"], indirect=True)


def test_a_copy_made_of_the_topic_is_the_registry_after_a_flush_a_change_and_a_deletion(office: Office) -> None:
    flushed = office.run(mode="full")
    assert (flushed.records, flushed.transactions, flushed.flush) == (STRUCTURES, 1, True)
    assert office.replica() == office.held()

    office.registry.submit(seed_codelist(7, codes=2))
    changed = office.run()
    assert (changed.upserts, changed.deletes) == (1, 0)
    assert office.replica() == office.held()

    office.registry.delete([DATAFLOW])
    deleted = office.run()
    assert (deleted.upserts, deleted.deletes) == (0, 1)
    assert DATAFLOW not in office.replica()
    assert office.replica() == office.held()
    last = office.records()[-1]
    assert (last.key, last.value) == (DATAFLOW.encode(), None)

    assert office.run().records == 0
    assert office.verified(office.publication()) == (True, {"bytes": STRUCTURES - 1})
    office.forget_outboxes()
    assert office.verified(office.publication()) == (True, {"content": STRUCTURES - 1})


@with_a_log
def test_the_first_run_sends_nothing_and_the_next_one_what_changed_since(office: Office) -> None:
    noted = office.run()
    assert (noted.records, noted.baseline, noted.source_count) == (0, True, STRUCTURES)

    office.registry.submit(seed_codelist(7, codes=2))
    office.registry.delete([DATAFLOW])
    sent = office.run()
    assert (sent.upserts, sent.deletes, sent.transactions) == (1, 1, 2)
    assert [((record.key or b"").decode(), record.value is None) for record in office.records()] == [
        (CODELIST, False),
        (DATAFLOW, True),
    ]
    assert office.verified(office.publication()) == (True, {"bytes": 1}), "what was only noted is not missing"


@with_a_log
def test_each_transaction_of_a_log_has_its_number_in_kafka(office: Office) -> None:
    office.run()
    first = office.registry.submit(seed_codelist(7, codes=2))
    # Of transactions at one moment the registry shows what the last of them left.
    office.registry.store.clock.advance(5)
    second = office.registry.submit(seed_codelist(7, codes=3))
    office.registry.store.clock.advance(5)
    third = office.registry.delete([CODELIST])
    sent = office.run()
    assert sent.transactions == 3
    assert [dict(record.headers)[HEADER] for record in office.records()] == [
        str(transaction.id).encode() for transaction in (first, second, third)
    ]


@with_a_log
def test_routes_bring_structures_to_further_topics_and_tombstones_too(office: Office) -> None:
    lists = f"lists-{office.name}"
    routes = [{"select": "Codelist=CITY.TRAFFIC:*(*)", "topics": [lists]}]
    owner = office.publication(topics={"topics": [office.topic], "routes": routes})
    office.ran(owner, mode="full")
    assert {(record.key or b"").decode() for record in office.records(lists)} == {
        f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=CITY.TRAFFIC:CL_{number:05}(1.0)" for number in range(6, 12)
    }
    office.registry.delete([CODELIST])
    office.ran(owner)
    assert [record.value for record in office.records(lists) if record.key == CODELIST.encode()][-1] is None


@with_a_log
def test_a_refused_structure_is_tried_again_and_arrives_as_an_event(office: Office) -> None:
    def owner(severity: str) -> Publication:
        quality = {"rules": {"duplicate-item": severity}, "max_quarantined_share": 1.0}
        return office.publication(quality=quality, message={"envelope": "cloudevents-structured"})

    office.ran(owner("error"), mode="full")
    doubtful = codelist("CL_00007", "1.0", "x", "x", agency="CITY.TRAFFIC")
    office.registry.submit(codelists(doubtful))
    refused = office.ran(owner("error"))
    office.registry.submit(seed_codelist(8, codes=2))

    again = office.ran(owner("warning"), retry_quarantine=refused.outbox)
    event = decode(list(office.records()[-1].headers), None, office.records()[-1].value)
    sent = office.ran(owner("warning"))

    assert (refused.records, refused.quarantined) == (0, {"duplicate-item": 1})
    assert (again.records, again.retried, again.quarantined) == (1, refused.outbox, {})
    assert (event["subject"], event["type"]) == (CODELIST, "contexture.sdmx.structure.upsert")
    assert contents(str(event["data"]).encode()).keys() == {CODELIST}
    assert sent.records == 1
    [retried, last] = (dict(record.headers)[HEADER] for record in office.records()[-2:])
    assert int(last) == int(retried) + 1
