"""The properties of a connection for one publication: value, default, and who sets it."""

from __future__ import annotations

import pytest

from contexture.kafka import ClientSettings
from contexture.kafka.errors import KafkaConfigurationError
from contexture.operations.actions.connection_properties import ConnectionProperty, describe_kafka, describe_source
from contexture.operations.actions.proposed_publication import load_text
from contexture.publications import Publication
from contexture.sources.http.connection import ConnectionFields, broker_connection
from contexture.sources.sdmx.registry import registry_connection

ENTITIES = "name: cars\nsource: {kind: ngsi, connection: broker, service: city}\n"
STRUCTURES = "name: codes\nsource: {kind: sdmx, connection: codes, flavour: fmr}\ntopics: {topics: [codes]}\n"
OUR_DEFAULT = "Contexture's default"


def publication(text: str) -> Publication:
    found = load_text(text.split()[1], text).publication
    assert found is not None
    return found


def of_source(text: str, **extra: object) -> dict[str, ConnectionProperty]:
    fields = ConnectionFields("host", login="ana", password="hush", extra=extra)
    opened = (broker_connection if "ngsi" in text else registry_connection)("c", fields)
    found = describe_source(opened, fields, publication(text))
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def brief(found: ConnectionProperty) -> tuple[str, str, str]:
    return found.value, found.default, str(found.origin)


def test_a_broker_s_properties_come_from_connection_file_and_us():
    found = of_source(ENTITIES, verify=False, token_url="https://me:hush@tokens.example/x")
    assert brief(found["address"]) == ("http://host", "", "connection")
    assert brief(found["Fiware-Service"]) == ("city", "", "publication file")
    assert brief(found["Fiware-ServicePath"]) == ("/#", "/#", OUR_DEFAULT)
    assert brief(found["limit"]) == ("1000", "1000", OUR_DEFAULT)
    assert brief(found["timeout_seconds"]) == ("60", "60", OUR_DEFAULT)
    assert brief(found["verify"]) == ("false", "true", "connection")
    assert brief(found["password"]) == ("***", "", "connection")
    assert brief(found["client_secret"]) == ("", "the password", OUR_DEFAULT)
    assert brief(found["token_url"]) == ("https://***@tokens.example/x", "", "connection")
    assert brief(found["redirects"]) == ("not followed", "not followed", "enforced by Contexture")
    assert "hush" not in str(found)


def test_a_registry_s_flavour_in_the_file_wins():
    found = of_source(STRUCTURES, flavour="generic", api="v2", reply_bytes=5000)
    assert brief(found["flavour"]) == ("fmr", "auto", "publication file")
    assert found["flavour"].description == "The product, where the connection has generic (source.flavour)"
    assert brief(found["api"]) == ("v2", "auto", "connection")
    assert brief(found["reply_bytes"]) == ("5000", "1073741824", "connection")
    assert brief(found["timeout_seconds"]) == ("120", "120", OUR_DEFAULT)
    assert brief(found["Accept"])[2] == OUR_DEFAULT


def test_a_key_that_nothing_reads_is_shown_without_its_value():
    found = of_source(ENTITIES, passwort="hush")
    assert brief(found["passwort"]) == ("***", "", "not used by Contexture")


@pytest.mark.parametrize(
    ("name", "value", "origin"),
    [
        ("enable.idempotence", "true", "enforced by Contexture"),
        ("allow.auto.create.topics", "false", "enforced by Contexture"),
        ("isolation.level", "read_committed", "enforced by Contexture"),
        ("enable.auto.commit", "false", "enforced by Contexture"),
        ("batch.size", "1000000", OUR_DEFAULT),
        ("client.id", "me", "connection"),
        ("retry.backoff.ms", "100", "default of the Kafka client"),
        ("transactional.id", "tx.cars.<shard>", "publication file"),
    ],
)
def test_a_property_of_kafka_has_its_origin(name, value, origin):
    settings = ClientSettings.from_extra({"bootstrap.servers": "a:1", "client.id": "me"})
    found = {each.name: each for each in describe_kafka(settings, publication(ENTITIES))}
    assert (found[name].value, str(found[name].origin)) == (value, origin)
    assert all(each.description and "\n" not in each.description for each in found.values())


def test_what_is_enforced_cannot_be_set_by_any_connection():
    plain = ClientSettings.from_extra({"bootstrap.servers": "a:1"})
    enforced = [each.name for each in describe_kafka(plain, publication(ENTITIES)) if each.origin.name == "ENFORCED"]
    assert {"acks", "partitioner", "auto.offset.reset", "enable.partition.eof"} < set(enforced)
    in_force = plain.producer() | plain.consumer()
    for name in enforced:
        found = settings_with(name, "17")
        assert found is None or (found.producer() | found.consumer()).get(name) == in_force.get(name)


def settings_with(name: str, value: str) -> ClientSettings | None:
    """The settings of a connection that says it; None where it is refused."""
    try:
        return ClientSettings.from_extra({"bootstrap.servers": "a:1", name: value})
    except KafkaConfigurationError:
        return None
