"""Topics on a real broker against the context broker that they were made from, damaged on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from builders.outboxes import publication
from builders.whole_runs import Lasting, WholeRuns
from contexture.cli import main
from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka import TopicRecord, read_committed
from contexture.operations.verification.against_source import verify_against_source
from contexture.operations.verification.broker_view import BrokerView, open_broker_view
from contexture.operations.verification.result import VerificationResult
from contexture.operations.verification.source_comparison import ABSENT, BEHIND, CHANGED, QUARANTINED
from contexture.operations.verification.source_view import Met
from contexture.operations.verification.topics import KafkaTopics, TopicSnapshot
from contexture.publications import Publication
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.connect import Dialect, open_broker
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline

pytestmark = pytest.mark.integration

NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}
CONTEXT = "https://example.org/context.jsonld"
SOURCE = {"kind": "ngsi", "connection": "broker", "service": "city", "service_path": "/cars", "page_size": 2}
LINKED = {"kind": "ngsi", "connection": "broker", "service": "City", "api": "ngsi-ld", "context": CONTEXT}
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def car(number: int, speed: object = 1.50, *, second: int = 0, kind: str = "Number") -> SeedEntity:
    attributes = {
        "speed": {"type": kind, "value": speed, "metadata": {}},
        "colour": {"type": "Text", "value": "réd", "metadata": {}},
    }
    at = NEW_YEAR + timedelta(seconds=second)
    return SeedEntity("city", "/cars", {"id": f"car{number}", "type": "Car", **attributes}, at, at)


class HookedTopics(KafkaTopics):
    """Topics of Kafka; something happens when they are first looked at, after the source was read."""

    before_first_cut: Callable[[], object] | None = None

    def cut(self, topics: Iterable[str]) -> TopicSnapshot:
        """As `KafkaTopics.cut`."""
        happening, self.before_first_cut = self.before_first_cut, None
        if happening is not None:
            happening()
        return super().cut(topics)


class ShortView(BrokerView):
    """A broker whose walks end early and look as if they had ended well."""

    def walk(self) -> Iterator[Met]:
        """The first two entities."""
        return islice(super().walk(), 2)


class City(WholeRuns):
    """A publication of five cars, its broker, and its topic."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, broker: TestBroker) -> None:
        super().__init__(home, kafka)
        self.broker, self.brokers = broker, kafka.client_settings()

    def owner(self, **changes: Any) -> Publication:
        topics = {"naming": "fixed", "topics": [self.topic], **changes.pop("topics", {})}
        return publication(name=self.name, **{"source": SOURCE, "topics": topics, **changes})

    def compared(
        self, owner: Publication, happening: Callable[[], object] | None = None, view: type[BrokerView] = BrokerView
    ) -> VerificationResult:
        topics = HookedTopics(self.settings, owner)
        topics.before_first_cut = happening
        connection, source = BrokerConnection(self.broker.url, timeout_seconds=60), owner.source
        with open_broker(connection, source.service, Dialect.of(source)) as broker:
            return verify_against_source(self.storage.publication(owner.name), owner, topics, view(owner, broker))

    def records(self) -> dict[str, TopicRecord]:
        """The last record of each key, by the last word of the key."""
        return {json.loads(each.key or b"")[2]: each for each in read_committed(self.settings, [self.topic])}

    def slip_in(self, record: TopicRecord, **changed: Any) -> None:
        """Another writer sends a record once more, changed."""
        sent = {
            "value": record.value,
            "key": record.key,
            "headers": list(record.headers),
            "timestamp": record.timestamp_ms,
            "partition": record.partition,
        }
        producer = Producer(self.brokers)
        producer.produce(self.topic, **{**sent, **changed})
        assert producer.flush(60) == 0


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[City]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        broker.load(car(number, second=number) for number in range(5))
        connection = BrokerConnection(broker.url, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        yield City(tmp_path, kafka, broker)


BINARY = {"envelope": "cloudevents-binary"}


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({}, 5),
        ({"message": BINARY}, 5),
        ({"message": {"envelope": "cloudevents-structured", "format": "ngsiv1"}}, 5),
        ({"message": {"format": "cygnus-lines"}, "topics": {"keep": "history"}}, 5),
        ({"topics": {"data_model": "dm-by-attribute"}, "message": BINARY}, 10),
    ],
)
def test_what_runs_publish_is_what_the_source_holds(city: City, changes: dict[str, Any], keys: int) -> None:
    owner = city.owner(**changes)
    city.ran(owner)
    city.broker.load([car(1, 7, second=60)])
    city.broker.load([SeedEntity("city", "/cars", car(2).entity, delete=True)])
    for _ in range(2):
        city.ran(owner)

    found = city.compared(owner)

    left = keys * 4 // 5
    assert (found.differences, found.unjudged, found.missing_topics) == (NOTHING, {}, ())
    assert (found.is_equal, found.against, found.held, found.compared) == (True, "source", left, {"source": left})


@pytest.mark.parametrize("envelope", ["none", "cloudevents-binary", "cloudevents-structured"])
def test_linked_data_is_compared_in_its_own_form(city: City, envelope: str) -> None:
    face = city.broker.speak_linked_data("scorpio")
    cars = [
        {"id": f"urn:car:{number}", "type": "Car", "speed": {"type": "Property", "value": number, "unitCode": "KMH"}}
        for number in range(3)
    ]
    face.load(cars, tenant="City", at="2026-01-01T00:00:00Z")
    owner = city.owner(source=LINKED, message={"format": "ngsi-ld", "envelope": envelope})
    city.ran(owner)

    found = city.compared(owner)

    assert (found.differences, found.unjudged, found.compared) == (NOTHING, {}, {"source": 3})


def test_each_damage_is_found(city: City) -> None:
    owner = city.owner(message=BINARY)
    city.ran(owner)
    city.broker.load([SeedEntity("city", "/cars", car(4).entity, delete=True)])
    for _ in range(2):
        city.ran(owner)
    alive = {each.key: each for each in read_committed(city.settings, [city.topic]) if each.value is not None}
    records = {json.loads(key or b"")[2]: each for key, each in alive.items()}
    stranger = records["car0"].key.replace(b"car0", b"car9") if records["car0"].key else b""
    # As if the tombstone of car4 had never come.
    city.slip_in(records["car4"])
    city.slip_in(records["car0"], key=stranger)
    city.slip_in(records["car0"], value=(records["car0"].value or b"").replace(b"1.5", b"1.6"))
    city.slip_in(records["car1"], headers=[*records["car1"].headers, ("colour", b"red")])
    city.slip_in(records["car2"], timestamp=(records["car2"].timestamp_ms or 0) + 60_000)
    city.slip_in(records["car3"], value=None)

    found = city.compared(owner)

    assert found.differences == {"missing": 1, "extra": 2, "different": 3, "order": 0}
    assert {(each.kind, json.loads(each.name)[2], each.detail.split(":")[0]) for each in found.samples} == {
        ("missing", "car3", "the source holds it, and no record or a tombstone is the last of its key"),
        ("extra", "car4", "neither the source nor state has it"),
        ("extra", "car9", "neither the source nor state has it"),
        ("different", "car0", "the source holds another body"),
        ("different", "car1", "its headers are not those of the source's content"),
        ("different", "car2", "its time is not the source's time of change"),
    }
    assert found.summary == "the topics differ from what the source holds: 1 missing, 2 extra, 3 different, of 4 keys"
    assert (found.unjudged, found.compared) == ({}, {})


def test_an_event_that_names_another_time_is_found(city: City) -> None:
    owner = city.owner(message=BINARY)
    city.ran(owner)
    record = city.records()["car1"]
    later = [(name, b"2026-05-01T00:00:00Z" if name == "ce_time" else value) for name, value in record.headers]
    city.slip_in(record, headers=later)

    found = city.compared(owner)

    assert found.differences == {**NOTHING, "different": 1}


def test_what_changes_while_it_is_read_is_no_difference(city: City) -> None:
    owner = city.owner()
    city.ran(owner)

    def happen() -> None:
        city.broker.load([car(1, 8, second=70), car(7, 1, second=80)])
        city.ran(owner)

    found = city.compared(owner, happen)

    assert (found.differences, found.unjudged) == (NOTHING, {CHANGED: 2})


def test_what_changed_after_the_last_run_is_counted_apart(city: City) -> None:
    owner = city.owner()
    city.ran(owner)
    city.broker.load([car(1, 8, second=70), car(7, 1, second=80)])

    assert city.compared(owner).unjudged == {BEHIND: 2}
    assert city.compared(owner).differences == NOTHING


def test_what_the_source_deleted_awaits_two_runs(city: City) -> None:
    owner = city.owner()
    city.ran(owner)
    city.broker.load([SeedEntity("city", "/cars", car(2).entity, delete=True)])

    before = city.compared(owner)
    city.ran(owner)
    once = city.compared(owner)
    city.ran(owner)

    assert before.differences == {**NOTHING, "extra": 1}
    assert before.samples[0].detail == "the source no longer has it; state holds it until two runs have found it absent"
    assert (once.differences, once.unjudged) == (NOTHING, {ABSENT: 1})
    assert (city.compared(owner).differences, city.compared(owner).unjudged) == (NOTHING, {})


def test_a_quarantined_entity_is_rightly_absent_or_old(city: City) -> None:
    owner = city.owner(quality={"max_quarantined_share": 1.0})
    city.ran(owner)
    city.broker.load([car(1, "fast", second=60), car(8, "fast", second=60)])
    city.ran(owner)

    found = city.compared(owner)

    assert (found.differences, found.unjudged, found.compared) == (NOTHING, {QUARANTINED: 1}, {"source": 4})


def test_a_source_that_is_not_read_completely_gives_no_verdict(city: City) -> None:
    owner = city.owner()
    city.ran(owner)

    with pytest.raises(RetriableError, match=r"not read completely: walk 0 of the source read 2 of 5"):
        city.compared(owner, view=ShortView)
    city.broker.faults.database_gone = True
    with pytest.raises(RetriableError):
        city.compared(owner)


def test_a_source_that_holds_nothing_any_more_gives_no_verdict(city: City) -> None:
    owner = city.owner()
    city.ran(owner)
    typo = owner.model_copy(update={"source": owner.source.model_copy(update={"service": "cyti"})})

    with pytest.raises(RetriableError, match="the source counts nothing, and something was published"):
        city.compared(typo)


@pytest.mark.airflow
def test_the_command_line_and_the_task_compare_with_the_source(
    city: City, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = city.owner()
    city.ran(owner)
    file = tmp_path / "publications" / f"{city.name}.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(owner.model_dump(mode="json", exclude_defaults=True)))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(file.parent))
    monkeypatch.setenv("CONTEXTURE_HOME", city.storage.root)
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": city.brokers}))
    monkeypatch.setenv("AIRFLOW_CONN_BROKER", city.broker.url)
    command = ["contexture", "verify", city.name, "--against", "source", "--json"]
    monkeypatch.setattr("sys.argv", command)
    capsys.readouterr()

    with pytest.raises(SystemExit) as equal:
        main()
    shown = json.loads(capsys.readouterr().out)
    city.slip_in(city.records()["car1"], value=b"{}")
    with pytest.raises(SystemExit) as different:
        main()
    city.broker.stop()
    with pytest.raises(SystemExit) as away:
        main()

    assert (equal.value.code, different.value.code, away.value.code) == (0, 1, 3)
    assert (shown["equal"], shown["against"], shown["compared"]) == (True, "source", {"source": 5})
    assert "Compared with</dt><dd>what the source holds" in Path(shown["report"]).read_text()


@pytest.mark.airflow
def test_the_task_fails_where_topics_are_not_what_the_source_holds(
    city: City, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    pytest.importorskip("airflow.sdk")
    from contexture_airflow.operators.verify_replica import VerifyReplicaOperator

    owner = city.owner()
    city.ran(owner)
    file = tmp_path / "publications" / f"{city.name}.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(owner.model_dump(mode="json", exclude_defaults=True)))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(file.parent))
    monkeypatch.setenv("CONTEXTURE_HOME", city.storage.root)
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": city.brokers}))
    monkeypatch.setenv("AIRFLOW_CONN_BROKER", city.broker.url)
    task = VerifyReplicaOperator(task_id="verify", publication=city.name, against="source")

    counts = task.execute({})  # type: ignore[typeddict-item]

    assert (counts["equal"], counts["against"], counts["held"]) == (True, "source", 5)
    city.slip_in(city.records()["car1"], value=b"{}")
    with pytest.raises(ConfigurationError, match="differ from what the source holds: 1 different, of 5 keys"):
        task.execute({})  # type: ignore[typeddict-item]


def test_a_view_is_opened_by_the_publication_s_own_words(city: City) -> None:
    owner = city.owner()
    with open_broker_view(owner, BrokerConnection(city.broker.url)) as view:
        assert view.health().counts == (5,)
        assert [
            met.walk for met in view.again([b'["city","/cars","car1","Car"]', b'["city","/cars","a,b","Car"]'])
        ] == [0]
