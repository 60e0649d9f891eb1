"""The stage job from its order to its answer, against the test broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import publication
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import QualityVerdict
from contexture.storage.orders import StageOrder, StageResult
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from spark_jobs import pipeline, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SECRET = "bearer-8f3a51"
FOLDER = PublicationPaths("vehicles")
SOURCE = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"}


class Lasting:
    """The session of all tests, which a job can not stop."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Goes on."""


class Stage:
    """Runs the job in this process and remembers its answers."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.storage = Home(str(home))
        self.home = home
        self.capture = capture
        self.printed = ""
        self.code: int | None = None
        self.runs = 0

    def run(self, owner: Publication, *, mode: str = "changes", **asked: Any) -> StageResult:
        """The answer that lies beside a new order."""
        self.runs += 1
        order = StageOrder.model_validate(
            {
                "publication": owner,
                "fingerprint": fingerprint(owner),
                "home": self.storage.root,
                "run": f"run{self.runs}",
                "mode": mode,
                "sequence": self.runs,
                **asked,
            }
        )
        self.storage.write(FOLDER.order(order.run), order.to_json())
        self.code = stage.main(["--order", self.storage.uri(FOLDER.order(order.run))])
        streams = self.capture.readouterr()
        self.printed += streams.out + streams.err
        result = StageResult.model_validate_json(self.storage.read(FOLDER.result(order.run)))
        assert streams.out == result.model_dump_json() + "\n"
        return result

    def concluded(self, owner: Publication, **options: Any) -> StageResult:
        """The same, sent and concluded."""
        result = self.run(owner, **options)
        outboxes = self.storage.publication(owner.name).outboxes
        assert result.outbox is not None
        outboxes.set_status(result.outbox, "approved", reason="a test says so")
        conclude(
            self.storage.publication(owner.name),
            outboxes.manifest(result.outbox),
            cluster=None,
            target=None,
        )
        return result


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestBroker]:
    with TestBroker() as started:
        started.load(car(number) for number in range(3))
        connection = BrokerConnection(started.url, headers={"authorization": SECRET}, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        yield started


@pytest.fixture
def job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Stage:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    return Stage(tmp_path / "home", capsys)


def car(number: int) -> SeedEntity:
    moment = datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": 10 * number, "metadata": {}}}
    return SeedEntity("vehicles", "/4wheels", entity, moment, moment)


def cars(**changes: Any) -> Publication:
    return publication(**{"source": SOURCE, **changes})


def test_a_stage_leaves_an_outbox_a_verdict_and_a_report(broker: TestBroker, job: Stage) -> None:
    result = job.run(cars())

    assert (job.code, result.error, result.records, result.sequence, result.approved) == (0, None, 3, 1, True)
    assert result.outbox is not None
    manifest = job.storage.publication("vehicles").outboxes.manifest(result.outbox)
    assert result.shards == tuple(shard.shard for shard in manifest.shards if shard.records)
    assert (manifest.read, manifest.source_count, manifest.upserts, manifest.run) == (3, 3, 3, "run1")
    verdict = QualityVerdict.model_validate_json(job.storage.read(FOLDER.verdict(result.outbox)))
    assert (verdict.approved, verdict.failures) == (True, ())
    assert result.report == job.storage.uri(FOLDER.report(result.outbox))
    assert b"</html>" in job.storage.read(f"{FOLDER.report(result.outbox)}/index.html")
    assert list(result.seconds) == ["session", "pull", "evaluate", "plan", "assemble", "snapshot", "judge"]
    assert not job.storage.exists(FOLDER.work("run1"))


def test_a_stage_that_is_done_again_answers_the_same_without_reading_again(broker: TestBroker, job: Stage) -> None:
    first = job.run(cars())
    broker.load([car(9)])
    job.runs = 0

    again = job.run(cars())

    assert again.model_copy(update={"seconds": {}}) == first.model_copy(update={"seconds": {}})


def test_only_what_changed_since_is_staged_again(broker: TestBroker, job: Stage) -> None:
    job.concluded(cars())
    broker.load([car(7)])

    result = job.run(cars())

    assert (result.records, result.approved) == (1, True)


def volume_of(job: Stage, result: StageResult) -> tuple[str, bool] | None:
    verdict = QualityVerdict.model_validate_json(job.storage.read(FOLDER.verdict(str(result.outbox))))
    return next(((each.severity, each.success) for each in verdict.results if each.name == "volume"), None)


def test_a_source_that_has_nothing_yet_fails_no_run_until_something_was_read(broker: TestBroker, job: Stage) -> None:
    empty = cars(source={**SOURCE, "service": "empty"})

    first, second = job.concluded(empty), job.concluded(empty)

    assert [(each.approved, each.records) for each in (first, second)] == [(True, 0)] * 2
    assert [volume_of(job, each) for each in (first, second)] == [("warning", False)] * 2
    # What state does not know of may be in Kafka: the ledger has numbers beyond those of state.
    job.runs += 1
    assert job.run(empty).approved is False
    # And nothing is believed of a source that has had something.
    job.runs = 2
    assert job.concluded(cars()).records == 3
    again = job.run(empty, run="run5", sequence=4)
    assert (again.approved, volume_of(job, again)) == (False, ("critical", False))


def test_a_broker_without_its_database_is_no_source_that_has_nothing_yet(broker: TestBroker, job: Stage) -> None:
    broker.faults.database_gone = True

    result = job.run(cars())

    assert result.error is not None
    assert (result.outbox, result.error["intent"]) == (None, "retry")


def test_a_broker_that_is_down_is_a_reason_to_retry(broker: TestBroker, job: Stage) -> None:
    broker.stop()

    result = job.run(cars())

    assert job.code == 1
    assert result.outbox is None
    assert result.error is not None
    assert result.error["intent"] == "retry"
    assert result.error["next_step"]
    assert not job.storage.exists(FOLDER.landing_manifest("run1"))


def test_a_database_that_is_gone_is_no_empty_source(broker: TestBroker, job: Stage) -> None:
    job.concluded(cars())
    broker.faults.database_gone = True

    result = job.run(cars(), mode="full")

    assert job.code == 1
    assert result.error is not None
    assert result.error["intent"] == "retry"
    assert [item.outbox for item in job.storage.publication("vehicles").outboxes.pending()] == []


@pytest.mark.parametrize("mode", ["changes", "full"])
def test_an_empty_answer_deletes_nothing_and_is_not_approved(broker: TestBroker, job: Stage, mode: str) -> None:
    job.concluded(cars())
    typo = cars(source={**SOURCE, "service": "vehicels"})

    results = [job.run(typo, mode=mode) for _ in range(2)]

    assert [(result.records, result.approved, result.error) for result in results] == [(0, False, None)] * 2
    outboxes = job.storage.publication("vehicles").outboxes
    assert [outboxes.manifest(str(result.outbox)).absent for result in results] == [0, 0]


def test_too_many_deletions_are_for_a_person_to_decide(broker: TestBroker, job: Stage) -> None:
    cautious = cars(source={**SOURCE, "shrink_limit": {"share": 0.0, "count": 0}})
    job.concluded(cautious)
    broker.load([SeedEntity("vehicles", "/4wheels", car(2).entity, delete=True)])
    assert job.concluded(cautious).records == 0

    result = job.run(cautious)

    assert result.error is not None
    assert (result.error["intent"], result.error["message"]) == (
        "fix configuration",
        "1 of 3 identities are missing from the source, and only 0 may be deleted in one run",
    )


def test_a_manifest_that_is_none_is_called_damaged_with_a_next_step(broker: TestBroker, job: Stage) -> None:
    job.storage.write(FOLDER.landing_manifest("run1"), b'{"run": "of another release"}')

    result = job.run(cars())

    assert job.code == 1
    assert result.error is not None
    assert result.error["intent"] == "bug"
    assert str(result.error["next_step"]).startswith("restore the file from a backup")


def test_no_secret_is_written_or_printed(broker: TestBroker, job: Stage) -> None:
    job.concluded(cars())
    broker.stop()
    job.run(cars())

    assert SECRET in os.environ["CONTEXTURE_SOURCE_CONNECTION"]
    assert SECRET not in job.printed
    written = [path for path in job.home.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
    assert orjson.loads(job.printed.splitlines()[0])["approved"] is True


NEW_YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
CONTEXT = "https://example.org/context.jsonld"
LINKED = {"kind": "ngsi", "connection": "context_broker", "service": "city", "api": "ngsi-ld", "context": CONTEXT}


def test_a_backfill_without_archive_is_staged_from_the_brokers_history(broker: TestBroker, job: Stage) -> None:
    face = broker.speak_linked_data("scorpio")
    for hour in (6, 18):
        entity = {"id": "urn:car:1", "type": "car", "speed": {"type": "Property", "value": hour}}
        face.load([entity], tenant="city", at=f"2026-01-01T{hour:02}:00:00Z")

    result = job.run(cars(source=LINKED, topics={"keep": "history"}), mode="backfill", interval=NEW_YEAR)

    assert (job.code, result.error, result.records, result.approved) == (0, None, 2, True)
    assert b"</html>" in job.storage.read(f"{FOLDER.report(str(result.outbox))}/index.html")


def test_a_backfill_with_neither_archive_nor_history_says_so(broker: TestBroker, job: Stage) -> None:
    broker.speak_linked_data("orion-ld").load([], tenant="city")

    result = job.run(cars(source={**LINKED, "types": ["car"]}), mode="backfill", interval=NEW_YEAR)

    assert result.error is not None
    assert result.error["intent"] == "fix configuration"
    assert str(result.error["message"]).startswith("nothing of vehicles is archived between 2026-01-01T00:00:00+00:00")
    assert str(result.error["message"]).endswith("serves no history")
