"""`contexture topics read` on a real broker."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from confluent_kafka import Producer

from builders.states import Held, state_table, write_files
from contexture.cli import main
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.kafka.reader import first_records, newest_records
from contexture.storage.home import Home
from contexture.storage.schemas import STATE
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> ClientSettings:
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}}
    monkeypatch.setenv("AIRFLOW_CONN_CITY_KAFKA", json.dumps(connection))
    return ClientSettings.from_extra({"bootstrap.servers": kafka.bootstrap_servers})


def made(settings: ClientSettings, topic: str, partitions: int = 1) -> str:
    ensure_topics(settings, [TopicSpec(topic, partitions, 1, keep="history")])
    return topic


def sender(kafka: EmbeddedKafka, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(60)
    return producer


def write(producer: Producer, topic: str, *records: tuple[int, bytes | None], commit: bool = True) -> None:
    """A transaction of records, each with its time and its value, keyed by the time."""
    producer.begin_transaction()
    for moment, value in records:
        producer.produce(topic, value, key=f"k{moment}", timestamp=moment, headers={"h": b"1"})
    producer.flush(60)
    if commit:
        producer.commit_transaction(60)
    else:
        producer.abort_transaction(60)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, Any]:
    monkeypatch.setattr(sys, "argv", ["contexture", "topics", "read", "--json", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    return int(end.value.code or 0), json.loads(captured.out) if captured.out else captured.err


def test_the_newest_committed_records_of_all_partitions_come_the_newest_last(kafka, settings):
    topic, producer = made(settings, "read-newest", partitions=3), sender(kafka, "tx.read-newest")
    for moment in range(1, 21):
        write(producer, topic, (moment, b"%d" % moment))

    assert [record.value for record in newest_records(settings, [topic], 3)] == [b"18", b"19", b"20"]
    assert len(newest_records(settings, [topic], 1000)) == 20


def test_records_before_a_long_aborted_transaction_are_found(kafka, settings):
    topic, producer = made(settings, "read-aborted"), sender(kafka, "tx.read-aborted")
    write(producer, topic, (1, b"a"), (2, b"b"))
    write(producer, topic, *((moment, b"never") for moment in range(3, 200)), commit=False)

    assert [record.value for record in newest_records(settings, [topic], 2)] == [b"a", b"b"]


def test_an_open_transaction_is_neither_shown_nor_waited_for(kafka, settings):
    topic, producer = made(settings, "read-open"), sender(kafka, "tx.read-open")
    write(producer, topic, (1, b"a"))
    producer.begin_transaction()
    producer.produce(topic, b"open", timestamp=2)
    producer.flush(60)

    assert [record.value for record in newest_records(settings, [topic], 5, timeout_seconds=30)] == [b"a"]
    producer.abort_transaction(60)


def test_the_first_records_come_from_the_beginning_and_no_more_than_were_asked_for(
    kafka, settings, capsys, monkeypatch
):
    topic, producer = made(settings, "read-first"), sender(kafka, "tx.read-first")
    for moment in (5, 4, 3):
        write(producer, topic, (moment, b"%d" % moment))

    code, found = run(capsys, monkeypatch, topic, "--connection", "city_kafka", "--from-beginning", "--last", "2")

    assert (code, [each["value"] for each in found["records"]]) == (0, ["5", "4"])
    assert [record.value for record in first_records(settings, [topic], 9)] == [b"5", b"4", b"3"]


def test_the_command_shows_keys_values_headers_and_deletions(kafka, settings, capsys, monkeypatch):
    topic, producer = made(settings, "read-command"), sender(kafka, "tx.read-command")
    write(
        producer, topic, (1_700_000_000_000, b'{"id":"car1"}'), (1_700_000_001_000, None), (1_700_000_002_000, b"\xff")
    )

    code, found = run(capsys, monkeypatch, topic, "--connection", "city_kafka")

    assert (code, found["connection"], found["topics"]) == (0, "city_kafka", [topic])
    assert [(each["key"], each["value"]) for each in found["records"]] == [
        ("k1700000000000", '{"id":"car1"}'),
        ("k1700000001000", None),
        ("k1700000002000", {"base64": "/w=="}),
    ]
    assert found["records"][0]["timestamp"] == "2023-11-14T22:13:20.000+00:00"
    assert found["records"][0]["headers"] == [["h", "1"]]


def test_a_publication_names_its_topics_and_its_connection(kafka, settings, capsys, monkeypatch, tmp_path):
    topic, producer = made(settings, "read-cars"), sender(kafka, "tx.read-cars")
    write(producer, topic, (1, b"a"))
    source = "source: {kind: ngsi, connection: broker, service: s}\n"
    (tmp_path / "cars.yaml").write_text(f"name: cars\n{source}publish: {{connection: city_kafka}}\n")
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))

    code, error = run(capsys, monkeypatch, "--publication", "cars")
    assert (code, "publication cars has sent to no topic yet" in error) == (2, True)

    state = Home(str(tmp_path / "home")).publication("cars").state
    (row,) = state_table([Held("car1")]).to_pylist()
    state.commit(write_files(state, state_table([]).from_pylist([row | {"topics": [topic]}], schema=STATE)))
    code, found = run(capsys, monkeypatch, "--publication", "cars")
    assert (code, [each["value"] for each in found["records"]]) == (0, ["a"])


def test_a_topic_that_is_not_there_gives_exit_code_2(settings, capsys, monkeypatch):
    code, error = run(capsys, monkeypatch, "read-nowhere", "--connection", "city_kafka")

    assert (code, "the first is read-nowhere" in error) == (2, True)
