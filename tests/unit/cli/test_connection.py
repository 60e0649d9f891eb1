"""`contexture connection test`: what works is said step by step, and no secret is shown."""

from __future__ import annotations

import json

import pytest

from builders.registry import SEX, SEX_AND_FLOW
from contexture.kafka import ConnectionReport
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.registry import TestRegistry


@pytest.fixture
def connect(monkeypatch, tmp_path):
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "none"))

    def set_variable(**fields: object) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_TRIED", json.dumps(fields))

    return set_variable


def test_a_context_broker_that_answers_works(contexture, connect):
    with TestBroker() as broker:
        host, port = broker.url.removeprefix("http://").split(":")
        connect(conn_type="http", host=host, port=int(port), password="hunter2", login="me")
        done = contexture("connection", "test", "tried")
        assert done.code == 0
        assert done.out.startswith(f"tried: {broker.url}\n  probe: works (")
        assert "hunter2" not in done.out


def test_a_context_broker_that_is_away_gives_exit_code_3(contexture, connect):
    connect(conn_type="http", host="127.0.0.1", port=9)
    for said in (["--kind", "ngsi"], ["--service", "city"]):
        done = contexture("connection", "test", "tried", "--json", *said)
        assert done.code == 3
        found = json.loads(done.out)
        assert (found["unreachable"], found["steps"][0]["name"], found["steps"][0]["passed"]) == (True, "probe", False)
        assert found["steps"][0]["detail"].startswith("the context broker at http://127.0.0.1:9 cannot be reached")


def test_what_is_away_and_may_be_either_is_called_neither(contexture, connect):
    connect(conn_type="http", host="127.0.0.1", port=9)
    done = contexture("connection", "test", "tried")
    assert done.code == 3
    assert "  reach: failed (" in done.out
    assert ": nothing responds at http://127.0.0.1:9 (ConnectError)\n    next: start the context broker or" in done.out
    assert "--kind ngsi or --kind sdmx specifies which of the two it is" in done.out


PUBLICATION = "name: {name}\nsource: {{kind: {kind}, connection: tried{more}}}\n{topics}"


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (["sdmx"], "the structure registry at http://127.0.0.1:9 cannot be reached"),
        (["ngsi"], "the context broker at http://127.0.0.1:9 cannot be reached"),
        (["ngsi", "sdmx"], "nothing responds at http://127.0.0.1:9"),
        ([], "nothing responds at http://127.0.0.1:9"),
    ],
)
def test_publications_say_what_a_connection_leads_to(contexture, connect, monkeypatch, tmp_path, kinds, said):
    connect(conn_type="http", host="127.0.0.1", port=9)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    for kind in kinds:
        more = ", service: city" if kind == "ngsi" else ""
        topics = "topics: {topics: [structures]}\n" if kind == "sdmx" else ""
        text = PUBLICATION.format(name=f"one-{kind}", kind=kind, more=more, topics=topics)
        (tmp_path / f"{kind}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("name: 7", encoding="utf-8")
    done = contexture("connection", "test", "tried")
    assert done.code == 3
    assert said in done.out


def test_a_registry_may_be_said_by_its_kind(contexture, connect):
    connect(conn_type="http", host="127.0.0.1", port=9)
    done = contexture("connection", "test", "tried", "--kind", "sdmx")
    assert done.code == 3
    assert "reach: failed" in done.out
    assert "the structure registry at http://127.0.0.1:9 cannot be reached" in done.out


def test_a_kafka_that_is_away_gives_exit_code_3_and_skips_the_other_steps(contexture, connect):
    extra = {"bootstrap.servers": "127.0.0.1:9", "sasl.password": "hunter2", "sasl.username": "me"}
    connect(conn_type="kafka", extra=extra)
    done = contexture("connection", "test", "tried", "--timeout", "0.5")
    assert done.code == 3
    assert done.out.startswith("tried: PLAINTEXT://me@127.0.0.1:9\n  server 127.0.0.1:9: failed (")
    assert "nothing listens there\n    next: start the broker, or correct its port in bootstrap.servers" in done.out
    assert "  authentication: not tried" in done.out
    assert "  transactions: not tried" in done.out
    assert "hunter2" not in done.out


def test_a_kafka_connection_that_can_not_be_used_says_why(contexture, connect):
    connect(conn_type="kafka", extra={"acks": "1"})
    done = contexture("connection", "test", "tried")
    assert done.code == 2
    assert "bootstrap.servers: give the brokers as host:port,host:port" in done.err


def test_host_port_login_and_password_of_a_kafka_connection_are_taken(contexture, connect):
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    connect(conn_type="kafka", host="127.0.0.1", port=9, login="me", password="hunter2", extra=extra)
    done = contexture("connection", "test", "tried", "--timeout", "0.5", "--json")
    found = json.loads(done.out)
    assert (done.code, found["target"]) == (3, "SASL_PLAINTEXT://me@127.0.0.1:9")
    assert found["steps"][0]["remedy"] == "start the broker, or correct its port in bootstrap.servers"
    assert "hunter2" not in done.out


@pytest.mark.parametrize(
    ("asked", "prefix"), [([], "city"), (["--transactional-id-prefix", "mine"], "mine")], ids=["publications", "asked"]
)
def test_transactional_ids_begin_as_publications_say_or_as_is_asked(
    contexture, connect, monkeypatch, tmp_path, asked, prefix
):
    used = []

    def tried(settings, **given):
        used.append(given["transactional_id_prefix"])
        return ConnectionReport(settings.identity(), None, (), ())

    monkeypatch.setattr("contexture.kafka.test_connection", tried)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    connect(conn_type="kafka", extra={"bootstrap.servers": "127.0.0.1:9"})
    for name, connection in (("cars", "tried"), ("bikes", "another")):
        source = "{kind: ngsi, connection: broker, service: city}"
        sent = f"{{connection: {connection}, transactional_id_prefix: {'city' if name == 'cars' else 'aaa'}}}"
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\nsource: {source}\npublish: {sent}\n", encoding="utf-8")
    contexture("connection", "test", "tried", *asked)
    assert used == [prefix]


def test_all_properties_of_a_kafka_connection_are_listed(contexture, connect):
    extra = {"bootstrap.servers": "a:1", "max.request.size": 5000, "sasl.password": "hunter2"}
    connect(conn_type="kafka", extra=extra)
    found = json.loads(contexture("connection", "properties", "tried", "--json").out)
    assert found["connection"] == "tried"
    [largest] = [each for each in found["properties"] if each["name"] == "message.max.bytes"]
    assert {name: largest[name] for name in ("default", "value", "origin", "given_as")} == {
        "default": "1000000",
        "value": "5000",
        "origin": "connection",
        "given_as": "max.request.size",
    }
    shown = contexture("connection", "properties", "tried").out
    assert "hunter2" not in shown + json.dumps(found)
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert rows["sasl.password"] == ["***", "connection"]
    assert rows["linger.ms"] == ["20", "5", "Contexture"]
    assert rows["reconnect.backoff.ms"] == ["100", "100"]


def test_properties_are_listed_without_a_connection_too(contexture):
    done = contexture("connection", "properties")
    assert done.code == 0
    assert "\nlinger.ms " in done.out
    assert {line.split()[-1] for line in done.out.splitlines() if line.startswith(("acks ", "linger.ms "))} == {
        "Contexture"
    }


def test_properties_of_a_connection_that_is_none_of_kafka_are_refused(contexture, connect):
    connect(conn_type="http", host="127.0.0.1")
    done = contexture("connection", "properties", "tried")
    assert (done.code, "there is no Kafka connection 'tried'" in done.err) == (2, True)


def test_a_connection_that_is_not_in_the_environment_says_what_to_set(contexture, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_TRIED", raising=False)
    done = contexture("connection", "test", "tried")
    assert done.code == 2
    assert "set AIRFLOW_CONN_TRIED as Airflow has it" in done.err


def test_another_type_is_refused(contexture, connect):
    connect(conn_type="ssh", host="127.0.0.1")
    done = contexture("connection", "test", "tried")
    assert done.code == 2
    assert "connection 'tried' has the type 'ssh'. Next: give it one of the types kafka, http, https" in done.err


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        (
            "contexture-kafka://me:hunter2@127.0.0.1:9",
            "tried: PLAINTEXT://me@127.0.0.1:9\n  server 127.0.0.1:9: failed (",
        ),
        ("contexture-ngsi://127.0.0.1:9", "the context broker at http://127.0.0.1:9 cannot be reached"),
        ("contexture-sdmx://127.0.0.1:9", "the structure registry at http://127.0.0.1:9 cannot be reached"),
        ('{"conn_type": "contexture_sdmx", "host": "127.0.0.1", "port": 9}', "the structure registry at http://127"),
    ],
)
def test_a_connection_of_our_own_types_says_itself_what_it_leads_to(contexture, connect, monkeypatch, connection, said):
    connect()
    monkeypatch.setenv("AIRFLOW_CONN_TRIED", connection)
    done = contexture("connection", "test", "tried", "--timeout", "0.5")
    assert done.code == 3
    assert said in done.out
    assert "hunter2" not in done.out


def test_properties_of_a_connection_of_our_own_type_are_listed(contexture, connect):
    connect(conn_type="contexture_kafka", host="a", extra={"linger.ms": 7})
    found = json.loads(contexture("connection", "properties", "tried", "--json").out)
    assert {each["name"]: each["value"] for each in found["properties"]}["linger.ms"] == "7"


def test_which_context_broker_it_is_is_shown(contexture, connect):
    with TestBroker() as broker:
        broker.speak_linked_data("scorpio")
        connect(conn_type="http", host=broker.url)
        done = contexture("connection", "test", "tried", "--service", "city")
    assert done.code == 0
    assert ": scorpio, queried by source.api ngsi-ld\n" in done.out


def test_an_orion_is_asked_as_one(contexture, connect):
    with TestBroker() as broker:
        connect(conn_type="http", host=broker.url)
        done = contexture("connection", "test", "tried", "--json")
    assert [step["detail"] for step in json.loads(done.out)["steps"]][1] == "orion, queried by source.api ngsiv2"


def test_a_broker_that_hides_which_one_it_is_may_speak_either(contexture, connect):
    with TestBroker() as broker:
        broker.speak_linked_data("stellio")
        broker.faults.fail(status=404, path="/actuator")
        connect(conn_type="http", host=broker.url)
        done = contexture("connection", "test", "tried", "--json")
    assert [step["detail"] for step in json.loads(done.out)["steps"]][1] == "unknown, queried by source.api ngsi-ld"


def test_a_registry_is_known_by_its_product_and_looked_into(contexture, connect):
    with TestRegistry() as registry:
        registry.submit(SEX_AND_FLOW)
        registry.restrict([SEX])
        connect(conn_type="http", host=registry.url, login="root", password="password")
        done = contexture("connection", "test", "tried", "--json")
    assert done.code == 0
    assert {step["name"]: step["detail"] for step in json.loads(done.out)["steps"]} == {
        "reach": f"{registry.url} answers",
        "product": "FMR 12.4.2, flavour fmr; its log lists what changes; "
        "what structures were at any moment can be read",
        "list": "2 structures",
        "credentials": "accepted: only with them these structures are visible: 1",
        "structure": f"{SEX} as application/vnd.sdmx.structure+xml;version=2.1: 1,102 bytes",
    }


@pytest.mark.slow
def test_a_registry_that_does_not_say_so_is_tried_as_one_after_a_broker(contexture, connect):
    with TestRegistry("plain") as registry:
        registry.submit(SEX_AND_FLOW)
        connect(conn_type="http", host=f"{registry.url}/rest")
        done = contexture("connection", "test", "tried")
    assert done.code == 0
    assert "product: works" in done.out
    assert "SDMX-REST 2, flavour generic; without a log: changes are found by comparing" in done.out
    assert "none: what is public is read" in done.out


def test_a_format_that_a_registry_does_not_render_is_reported(contexture, connect):
    with TestRegistry() as registry:
        registry.submit(SEX_AND_FLOW)
        connect(conn_type="http", host=registry.url)
        done = contexture("connection", "test", "tried", "--media-type", "application/vnd.xlsx")
    assert done.code == 1
    assert "structure: failed" in done.out
    assert "none of 2 structures is available as application/vnd.xlsx: the registry does not return it" in done.out


def test_refused_credentials_of_a_registry_are_reported_without_them(contexture, connect):
    with TestRegistry() as registry:
        registry.submit(SEX_AND_FLOW)
        registry.restrict([SEX])
        connect(conn_type="http", host=registry.url, login="root", password="hunter2", extra={"flavour": "fmr"})
        done = contexture("connection", "test", "tried")
    assert done.code == 1
    assert "list: failed" in done.out
    assert "refuses the credentials of the connection (401)" in done.out
    assert "structure: not tried" in done.out
    assert "hunter2" not in done.out


def test_a_registry_that_is_away_gives_exit_code_3(contexture, connect):
    connect(conn_type="http", host="127.0.0.1", port=9, extra={"flavour": "generic"})
    done = contexture("connection", "test", "tried", "--json")
    assert done.code == 3
    steps = [(step["name"], step["passed"]) for step in json.loads(done.out)["steps"]]
    assert steps == [("reach", False), ("product", None), ("list", None), ("credentials", None), ("structure", None)]
