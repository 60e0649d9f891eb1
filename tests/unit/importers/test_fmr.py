"""From the Kafka properties of a Fusion registry to a publication, with every property explained."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.importers.fmr import ProducerRequest, import_producer
from contexture.importers.result import ImportResult, check_import
from contexture.kafka import ClientSettings

SCRAM = (
    "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
    '  username="fusion" password="t0p";\n'
)


SECRET = "t0pSecret"
NAMES = (
    *("topic", "format", "host", "port", "bootstrap.servers", "adminEmail", "transactional.id", "enable.ssl"),
    *("ssl.keystore.password", "sasl.jaas.config", "sasl.mechanism", "compression.type", "delivery.timeout.ms"),
    *("ssl.truststore.location", "batch.sise", "acks", "enable.kerberos.security", "max.request.size"),
)


def imported(*lines: str, **request: Any) -> ImportResult:
    text = "".join(f"{line}\n" for line in ("bootstrap.servers=k1:9092", *lines))
    return import_producer(text, ProducerRequest(**request), origin="kafka.properties")


def outcome(result: ImportResult, key: str) -> tuple[str, str]:
    (found,) = [each for each in result.explained if each.key == key]
    return found.outcome, found.why


def extra(result: ImportResult) -> dict[str, Any]:
    command = shlex.split(result.connections[1])
    assert command[:5] == ["airflow", "connections", "add", "kafka_default", "--conn-type"]
    found: dict[str, Any] = json.loads(command[-1])
    return found


def test_a_producer_is_a_publication_that_passes_the_check():
    result = imported("topic=FOO, BAR", "format=Fusion-JSON", "transactional.id=fusion", "adminEmail=a@x.org, b@x.org")

    (draft,) = result.drafts
    assert yaml.safe_load(draft.text) == {
        "name": "structures",
        "description": "What the registry's own Kafka producer published",
        "schedule": "* * * * *",
        "source": {"kind": "sdmx", "connection": "registry", "media_type": "application/vnd.fusion.json"},
        "topics": {"topics": ["FOO", "BAR"], "keep": "latest"},
        "publish": {"connection": "kafka_default", "transactional_id_prefix": "fusion"},
        "notify": {"mail": ["a@x.org", "b@x.org"]},
        "resync": {"on_startup": "pending"},
    }
    found = check_import(result, {})
    assert (found.is_right, found.problems) == (True, ())


def test_the_defaults_of_the_registry_are_written_and_left_to_a_person():
    result = imported()

    document = yaml.safe_load(result.drafts[0].text)
    assert document["source"]["media_type"] == "application/vnd.sdmx.structure+xml;version=2.1"
    assert document["topics"]["topics"] == ["structures-new"]
    assert document["publish"]["transactional_id_prefix"] == "tx"
    assert [each.partition(":")[0] for each in result.decisions] == [
        "the topic",
        "the format",
        "the address of the registry",
        "the login for the registry",
        "the first load",
        "replicas of topics that do not exist yet",
    ]


def test_what_is_requested_replaces_what_the_file_has():
    result = imported(
        "topic=FOO", "format=Fusion-JSON", topic="new", form="SDMX-ML 2.1", registry="https://r.org/FMR", name="codes"
    )

    document = yaml.safe_load(result.drafts[0].text)
    assert (document["name"], document["topics"]["topics"]) == ("codes", ["new"])
    assert document["source"]["media_type"] == "application/vnd.sdmx.structure+xml;version=2.1"
    assert result.connections[0] == "airflow connections add registry --conn-type http --conn-host https://r.org/FMR"
    assert not any("the address" in each or "still sends" in each for each in result.decisions)


def test_while_the_registry_still_sends_other_topics_are_advised():
    assert any(
        each.startswith("the topics FOO: the registry's producer still") for each in imported("topic=FOO").decisions
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SDMX-ML 2.0", "application/vnd.sdmx.structure+xml;version=2.0"),
        ("sdmx_ml_2.1", "application/vnd.sdmx.structure+xml;version=2.1"),
        ("SDMX-EDI", "application/vnd.sdmx.structure;version=edi"),
        ("SDMX-JSON", "application/vnd.sdmx.json"),
        ("XLSX (flat)", "application/vnd.xlsx"),
        ("application/vnd.fusion.json", "application/vnd.fusion.json"),
    ],
)
def test_formats_have_the_names_of_the_registry_s_documentation(name, expected):
    result = imported(f"format={name}", "topic=a")
    assert yaml.safe_load(result.drafts[0].text)["source"]["media_type"] == expected
    assert check_import(result, {}).is_right


def test_a_format_that_there_is_not_is_wrong():
    result = imported("format=CSV")
    assert not result.is_clean
    assert outcome(result, "format") == (
        "wrong",
        "it is not a format of the registry: name one by --format, such as SDMX-ML 2.1, Fusion-JSON or "
        "application/vnd.fusion.json",
    )
    with pytest.raises(ConfigurationError, match="'CSV' is not a format of the registry"):
        imported(form="CSV")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("client.id=fusion", ("kept", "client.id of the Kafka connection")),
        ("max.request.size=52428800", ("kept", "max.request.size of the Kafka connection")),
        ("acks=all", ("kept", "acks of the Kafka connection")),
        ("acks=1", ("no longer needed", "(Contexture needs acks=all)")),
        ("key.serializer=a.StringSerializer", ("no longer needed", "keys are bytes")),
        ("ssl.protocol=TLSv1.3", ("no longer needed", "client and broker agree on TLS 1.2 or 1.3")),
        ("partitioner.class=", ("no longer needed", "it is empty, so that the client's default counts")),
        (
            "delivery.timeout.ms=300000",
            ("no longer needed", "set it to transaction.timeout.ms (120000) or less"),
        ),
        ("compression.zstd.level=3", ("no longer needed", "set compression.type to zstd")),
        ("id=structures", ("no longer needed", "a publication has a name of its own, `name`")),
        (
            "enable.kerberos.security=true",
            (
                "needs a decision",
                "set security.protocol, sasl.kerberos.principal and sasl.kerberos.keytab of the Kafka connection",
            ),
        ),
        ("enable.kerberos.security=false", ("no longer needed", "it is empty or off, as it is without a property")),
        (
            "batch.sise=3",
            (
                "unknown",
                "the Kafka client has no such property; write batch.size for it; "
                "`contexture connection properties` lists those that there are",
            ),
        ),
    ],
)
def test_every_property_has_an_outcome(line, expected):
    assert outcome(imported(line), line.partition("=")[0]) == expected


def test_all_properties_are_explained_by_line():
    result = imported("linger.ms=0", "topic=a", "linger.ms=5")
    assert [(each.line, each.key, each.outcome) for each in result.explained] == [
        (1, "bootstrap.servers", "kept"),
        (2, "linger.ms", "no longer needed"),
        (3, "topic", "kept"),
        (4, "linger.ms", "kept"),
    ]
    assert extra(result) == {"bootstrap.servers": "k1:9092", "linger.ms": "5"}


def test_secrets_are_placeholders_everywhere():
    result = imported(*SCRAM.splitlines(), "ssl.truststore.location=/a.jks", "ssl.truststore.password=t0p")

    assert extra(result) == {
        "bootstrap.servers": "k1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.location": "/a.jks",
        "ssl.truststore.password": "<ssl.truststore.password>",
        "sasl.username": "fusion",
        "sasl.password": "<sasl.password>",
    }
    assert "t0p" not in repr(result)
    assert outcome(result, "sasl.jaas.config") == (
        "needs a decision",
        "sasl.username, sasl.password of the Kafka connection: enter the value in place of <sasl.password>",
    )
    assert outcome(result, "ssl.truststore.password")[0] == "needs a decision"
    assert ClientSettings.from_extra(extra(result)).bootstrap_servers == "k1:9092"


@pytest.mark.parametrize(
    "line",
    [
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="t0p";',
        "password=t0p",
        "sasl.jaas.config=PlainLoginModule required password=",
        "sasl.oauthbearer.token.endpoint.url=https://me:t0p@x.org/token",
        "batch.sise=t0p",
    ],
)
def test_no_line_shows_a_secret(line):
    assert "t0p" not in repr(imported(line if "t0p" in line else f'{line}"t0p'))


def test_kerberos_by_its_login_text():
    result = imported(
        "security.protocol=SASL_SSL",
        "sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required "
        'useKeyTab=true keyTab="/k" principal="p";',
    )
    assert extra(result)["sasl.kerberos.principal"] == "p"
    assert outcome(result, "sasl.jaas.config")[0] == "replaced"


def test_the_form_of_version_10():
    text = "Client\\ ID=fusion\nHost=k1\nPort=9093\nCompression\\ Algorithm=GZIP\nKafka\\ Topic=FOO,BAR\n"
    result = import_producer(text, ProducerRequest())
    assert extra(result) == {"client.id": "fusion", "compression.type": "GZIP", "bootstrap.servers": "k1:9093"}
    assert yaml.safe_load(result.drafts[0].text)["topics"]["topics"] == ["FOO", "BAR"]


def test_what_an_incomplete_login_lacks_is_left_to_a_person():
    result = imported("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN")
    assert "sasl.username of the Kafka connection: give it, sasl.mechanism PLAIN needs it" in result.decisions


def test_a_file_without_a_kafka_is_refused():
    with pytest.raises(ConfigurationError, match="the file names no Kafka"):
        import_producer("topic=a\n", ProducerRequest())


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.text(max_size=20)), max_size=8))
def test_any_values_become_a_publication_without_secrets_or_an_error_that_says_why(pairs):
    lines = [f"{name}={value}{SECRET if 'password' in name or 'jaas' in name else ''}" for name, value in pairs]
    try:
        result = imported(*lines)
    except ConfigurationError:
        return
    assert SECRET not in repr(result)
    # A topic or address may be refused, with its place; the file can always be read.
    assert not any("not readable" in each.message for each in check_import(result, {}).problems)
