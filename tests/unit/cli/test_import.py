"""`contexture import cygnus`: files that pass the check, and what is said about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

AGENT = """\
a.sinks = kafka
a.sinks.kafka.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink
a.sinks.kafka.batch_size = 5
a.sinks.kafka.data_model = dm-by-service-path
"""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "agent_1.conf"
    path.write_text(AGENT, encoding="utf-8")
    return path


def test_files_are_written_and_pass_the_check(contexture, agent, tmp_path):
    done = contexture("import", "cygnus", str(agent), "--service", "vehicles", "--output", str(tmp_path / "out"))

    assert (done.code, done.err) == (0, "")
    assert "wrote" in done.out
    checked = contexture("check", str(tmp_path / "out" / "kafka.yaml"))
    assert (checked.code, "kafka.yaml: right" in checked.out) == (0, True)


def test_without_a_folder_everything_is_printed_and_nothing_written(contexture, agent, tmp_path):
    done = contexture("import", "cygnus", str(agent))

    assert done.code == 0
    for part in (
        "--- kafka.yaml (a.sinks.kafka)",
        "  data_model: dm-by-service-path",
        "    4  a.sinks.kafka.data_model = dm-by-service-path\n         kept: topics.data_model",
        "airflow connections add kafka_default --conn-type kafka",
        "Where Contexture differs from Cygnus on purpose",
        "the services: Cygnus took them from each notification",
    ):
        assert part in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["agent_1.conf"]


def test_grouping_rules_and_name_mappings_come_along(contexture, agent, tmp_path):
    switches = "a.sinks.kafka.enable_grouping = true\na.sinks.kafka.enable_name_mappings = true\n"
    agent.write_text(AGENT + switches, encoding="utf-8")
    rules = tmp_path / "grouping_rules.conf"
    rules.write_text(
        '# rules\n{"grouping_rules": [{"id": 1, "fields": ["entityType"], "regex": "car", "destination": "cars", '
        '"fiware_service_path": "/all"}]}'
    )
    mappings = tmp_path / "name_mappings.conf"
    mappings.write_text('{"serviceMappings": []}')
    out = tmp_path / "out"

    arguments = ("--grouping", str(rules), "--mappings", str(mappings), "--output", str(out))
    done = contexture("import", "cygnus", str(agent), "--service", "vehicles", *arguments)

    assert (done.code, done.err) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["grouping_rules.conf", "kafka.yaml", "name_mappings.conf"]
    assert contexture("check", str(out / "kafka.yaml")).code == 0


def test_a_document_for_scripts(contexture, agent):
    document = json.loads(contexture("import", "cygnus", str(agent), "--json").out)

    assert document["right"] is True
    assert [publication["name"] for publication in document["publications"]] == ["kafka"]
    assert {each["outcome"] for each in document["parameters"]} == {"kept", "replaced"}
    assert document["differences"][0]["title"] == "how changes arrive"


def test_a_value_that_was_wrong_shows_in_the_exit_code(contexture, agent):
    agent.write_text(AGENT + "a.sinks.kafka.batch_ttl = never\n", encoding="utf-8")

    done = contexture("import", "cygnus", str(agent))

    assert done.code == 1
    assert "wrong: expected a whole number of at least -1; the default 10 was written" in done.out


def test_what_the_check_refuses_is_shown(contexture, agent):
    done = contexture("import", "cygnus", str(agent), "--service", "my-service")

    assert done.code == 1
    assert "kafka.yaml:9:12: error: 'my-service' is not a service" in done.out


def test_files_that_are_there_are_kept(contexture, agent, tmp_path):
    (tmp_path / "kafka.yaml").write_text("mine")

    refused = contexture("import", "cygnus", str(agent), "--output", str(tmp_path))
    assert (refused.code, "replace them with --force" in refused.err) == (2, True)
    assert (tmp_path / "kafka.yaml").read_text() == "mine"

    assert contexture("import", "cygnus", str(agent), "--output", str(tmp_path), "--force").code == 0
    assert (tmp_path / "kafka.yaml").read_text().startswith("# Made by")


def test_a_file_that_is_not_there_is_reported(contexture, tmp_path):
    done = contexture("import", "cygnus", str(tmp_path / "none.conf"))

    assert (done.code, "cannot be read: No such file" in done.err) == (2, True)


GROUPED = AGENT + "a.sinks.kafka.enable_grouping = true\na.sinks.kafka.enable_name_mappings = true\n"


def test_two_files_of_one_name_are_refused(contexture, agent, tmp_path):
    agent.write_text(GROUPED, encoding="utf-8")
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "names.json").write_text("{}")

    files = ("--grouping", str(tmp_path / "one" / "names.json"), "--mappings", str(tmp_path / "other" / "names.json"))
    done = contexture("import", "cygnus", str(agent), *files)

    assert done.code == 2
    assert "--grouping and --mappings both name a file names.json. Next: rename one of them" in done.err


def test_a_rules_file_that_would_be_a_publication_is_refused(contexture, agent, tmp_path):
    (tmp_path / "rules.yaml").write_text("{}")

    done = contexture("import", "cygnus", str(agent), "--grouping", str(tmp_path / "rules.yaml"))

    assert (done.code, "rules.yaml would be read as a publication. Next: rename it" in done.err) == (2, True)


def test_a_file_that_no_sink_uses_is_not_copied(contexture, agent, tmp_path):
    rules = tmp_path / "grouping_rules.conf"
    rules.write_text("nothing like rules")
    out = tmp_path / "out"

    done = contexture("import", "cygnus", str(agent), "--grouping", str(rules), "--output", str(out))

    assert done.code == 0
    assert "whether --grouping is intended" in done.out
    assert [path.name for path in out.iterdir()] == ["kafka.yaml"]


def test_wrong_rules_are_reported_with_their_place_and_what_to_do(contexture, agent, tmp_path):
    agent.write_text(AGENT + "a.sinks.kafka.enable_grouping = true\n", encoding="utf-8")
    rules = tmp_path / "grouping_rules.conf"
    rules.write_text('# mine\n{"grouping_rules": [\n]\n,}')

    done = contexture("import", "cygnus", str(agent), "--grouping", str(rules))

    assert done.code == 1
    assert "the file is not JSON" in done.out
    assert "at line 4, column" in done.out
    assert "remove the comma before the closing bracket" in done.out


def test_a_file_as_operators_have_it(contexture, agent):
    agent.write_bytes(
        b"\xef\xbb\xbf# agent\r\n! old style comment\r\n"
        b"cygnus-ngsi.sinks : kafka-sink \\\r\n    mongo-sink\r\n"
        b"cygnus-ngsi.sources = http-source\r\n"
        b"cygnus-ngsi.sources.http-source.channels = k m\r\n"
        b"cygnus-ngsi.sources.http-source.handler.default_service=Vehicles\r\n"
        b"cygnus-ngsi.sinks.kafka-sink.type = com.telefonica.iot.cygnus.sinks.NGSIKafkaSink\r\n"
        b"cygnus-ngsi.sinks.kafka-sink.channel = k\r\n"
        b"cygnus-ngsi.sinks.kafka-sink.broker_list = a:9092, \\\r\n  b:9092\r\n"
        b"cygnus-ngsi.sinks.kafka-sink.batch_retry_intervals = 1000, 2000\r\n"
        b"cygnus-ngsi.sinks.mongo-sink.type = com.telefonica.iot.cygnus.sinks.NGSIMongoSink\r\n"
        b"cygnus-ngsi.sinks.mongo-sink.mongo_password = s3cret\r\n"
        b"cygunsagent.sinks.kafka-sink.batch_ttl = 3\r\n"
    )

    done = contexture("import", "cygnus", str(agent))

    assert done.code == 0
    for part in (
        "--- kafka-sink.yaml (cygnus-ngsi.sinks.kafka-sink)",
        "  batch_retry_intervals: [1000, 2000]",
        '"bootstrap.servers": "a:9092,b:9092"',
        "cygnus-ngsi.sinks.mongo-sink.mongo_password = ***\n         left out: NGSIMongoSink is not a Kafka sink",
        "cygunsagent.sinks.kafka-sink.batch_ttl = 3\n         left out: the agent does not list kafka-sink",
        "the service 'Vehicles' is read as 'vehicles'",
    ):
        assert part in done.out
    assert "s3cret" not in done.out


PRODUCER = """\
bootstrap.servers=k1:9092
sasl.mechanism=PLAIN
security.protocol=SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="t0p";
"""


@pytest.fixture
def producer(tmp_path: Path) -> Path:
    path = tmp_path / "kafka.properties"
    path.write_text(PRODUCER, encoding="utf-8")
    return path


def test_the_publication_of_a_registry_s_producer_is_written_and_passes_the_check(contexture, producer, tmp_path):
    options = ("--topic", "structures-new", "--format", "Fusion-JSON", "--output", str(tmp_path / "out"))
    done = contexture("import", "fmr", str(producer), *options)

    assert (done.code, done.err) == (0, "")
    assert f"wrote {tmp_path / 'out' / 'structures.yaml'} from kafka.properties" in done.out
    for part in (
        "    1  bootstrap.servers = k1:9092\n         kept: bootstrap.servers of the Kafka connection",
        "    4  sasl.jaas.config = ***\n         needs a decision:",
        '"sasl.username": "u", "sasl.password": "<sasl.password>"}',
    ):
        assert part in done.out
    assert "t0p" not in done.out + (tmp_path / "out" / "structures.yaml").read_text()
    assert contexture("check", str(tmp_path / "out" / "structures.yaml")).code == 0


def test_an_imported_producer_is_a_document_for_scripts_and_nothing_is_written(contexture, producer, tmp_path):
    document = json.loads(contexture("import", "fmr", str(producer), "--json").out)

    assert document["right"] is True
    assert [each["outcome"] for each in document["parameters"]] == ["kept", "kept", "kept", "needs a decision"]
    assert "differences" not in document
    assert [path.name for path in tmp_path.iterdir()] == ["kafka.properties"]


def test_a_file_of_something_else_is_refused(contexture, agent):
    done = contexture("import", "fmr", str(agent))
    assert (done.code, "the file names no Kafka" in done.err) == (2, True)


@pytest.mark.parametrize("name", ["My Structures", "../structures", ""])
def test_a_name_that_no_publication_can_have_is_refused(contexture, producer, tmp_path, name):
    done = contexture("import", "fmr", str(producer), "--name", name, "--output", str(tmp_path / "out"))
    assert (done.code, "is not a name of a publication" in done.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["kafka.properties"]
