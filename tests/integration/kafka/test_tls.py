"""TLS with certificates on both sides, and each way in which it fails: at once, with the setting that heals it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from builders.at_once import at_once
from builders.java_stores import in_jks, keys_in_pkcs12, trust_in_pkcs12
from contexture.kafka import ClientSettings, KafkaConfigurationError, test_connection
from contexture.sending import Publisher, SenderNames
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture_sandbox.certificates import Authority
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.listeners import Security

pytestmark = pytest.mark.integration

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture(scope="module")
def root() -> Authority:
    return Authority("the root")


@pytest.fixture(scope="module")
def both_sides(root: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """Clients show a certificate; the broker knows the root alone."""
    folder = tmp_path_factory.mktemp("both-sides")
    root.write(folder / "certificates" / "ca.pem")
    for name in ("broker", "client"):
        root.issue(folder / "certificates" / f"{name}.pem", name)
    with EmbeddedKafka(security=Security("SSL", client_certificates=True), data_folder=folder) as cluster:
        yield cluster


def failure(extra: dict[str, object]) -> KafkaConfigurationError:
    """The error of a publisher, which must come at once."""
    publisher = Publisher(ClientSettings.from_extra(extra), SenderNames("p"), shards=1)
    with at_once(), pytest.raises(KafkaConfigurationError) as caught:
        publisher.publish(MemoryShard([OutboxRow("t", b"k", b"v")]))
    return caught.value


def works(extra: dict[str, object]) -> bool:
    return test_connection(ClientSettings.from_extra(extra), timeout_seconds=60).passed


def test_certificates_in_pem_open_the_cluster(both_sides):
    settings = both_sides.client_settings()
    assert works(settings)
    own = settings["ssl.certificate.location"]
    java = {"ssl.keystore.type": "PEM", "ssl.keystore.location": own, "ssl.truststore.type": "PEM"}
    java |= {"ssl.truststore.location": settings["ssl.ca.location"]}
    assert works({**java, "bootstrap.servers": settings["bootstrap.servers"], "security.protocol": "SSL"})


def test_a_key_in_pem_may_have_a_password(both_sides, tmp_path):
    settings = both_sides.client_settings()
    own = Path(str(settings["ssl.certificate.location"])).read_bytes()
    key = serialization.load_pem_private_key(own, None)
    locked = serialization.BestAvailableEncryption(b"key-hush")
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (tmp_path / "my.key").write_bytes(content)
    assert works({**settings, "ssl.key.location": str(tmp_path / "my.key"), "ssl.key.password": "key-hush"})


@pytest.mark.parametrize("kind", ["p12", "jks", "jks with a password for its key"])
def test_stores_of_java_clients_open_the_cluster_with_the_whole_chain(both_sides, root, tmp_path, kind):
    Authority("between", above=root).issue(tmp_path / "me.pem", "me")
    keys = keys_in_pkcs12(tmp_path / "me.pem", tmp_path / "keys.p12", "store-hush")
    trust = trust_in_pkcs12(both_sides.certificates / "ca.pem", tmp_path / "trust.p12", "trust-hush")
    more = {}
    if kind != "p12":
        key_password = "key-hush" if "key" in kind else ""
        keys = in_jks(keys, tmp_path / "keys.jks", "store-hush", key_password=key_password)
        trust = in_jks(trust, tmp_path / "trust.jks", "trust-hush")
        more = {"ssl.key.password": key_password} if key_password else {}
    extra = {
        "bootstrap.servers": both_sides.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": "store-hush",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": "trust-hush",
        **more,
    }
    assert works(extra)


def test_without_our_certificate_it_is_asked_for(both_sides):
    settings = both_sides.client_settings()
    del settings["ssl.certificate.location"], settings["ssl.key.location"]
    error = failure(settings)
    assert "the broker requires a client certificate" in error.message
    assert "ssl.certificate.location and ssl.key.location, or ssl.keystore.location" in error.next_step


def test_a_connection_without_tls_is_reported_what_the_port_speaks(both_sides):
    error = failure({"bootstrap.servers": both_sides.bootstrap_servers})
    assert "uses SSL or SASL_SSL, and security.protocol of the connection is PLAINTEXT" in error.message


def test_our_certificate_of_another_authority_is_reported(both_sides, tmp_path):
    Authority("another company").issue(tmp_path / "me.pem", "me")
    mine = {name: str(tmp_path / "me.pem") for name in ("ssl.certificate.location", "ssl.key.location")}
    error = failure({**both_sides.client_settings(), **mine})
    assert "the broker refuses the client certificate" in error.message
    assert "signed by CN=another company" in error.message
    assert "ssl.certificate.location" in error.next_step


def test_our_expired_certificate_is_reported(both_sides, root, tmp_path):
    root.issue(tmp_path / "me.pem", "me", until=YESTERDAY)
    mine = {name: str(tmp_path / "me.pem") for name in ("ssl.certificate.location", "ssl.key.location")}
    error = failure({**both_sides.client_settings(), **mine})
    assert f"the client certificate has expired since {YESTERDAY:%Y-%m-%d %H:%M} UTC" in error.message
    assert "renew the certificate in ssl.certificate.location" in error.next_step


def test_an_unknown_authority_of_the_broker_is_reported(both_sides, tmp_path):
    Authority("another company").write(tmp_path / "ca.pem")
    error = failure({**both_sides.client_settings(), "ssl.ca.location": str(tmp_path / "ca.pem")})
    assert "signed by an authority (CN=the root) that this connection does not trust" in error.message
    assert "ssl.ca.location" in error.next_step


def test_another_host_name_is_reported(both_sides):
    # Another spelling of 127.0.0.1, which the certificate does not have.
    servers = both_sides.bootstrap_servers.replace("127.0.0.1", "127.1")
    error = failure({**both_sides.client_settings(), "bootstrap.servers": servers})
    assert "the broker's certificate is for localhost, 127.0.0.1, not for 127.1" in error.message
    assert "bootstrap.servers" in error.next_step
    assert works({**both_sides.client_settings(), "ssl.endpoint.identification.algorithm": ""})


def test_an_expired_certificate_of_the_broker_is_reported(tmp_path: Path):
    authority = Authority()
    authority.write(tmp_path / "certificates" / "ca.pem")
    authority.issue(tmp_path / "certificates" / "broker.pem", "broker", until=YESTERDAY)
    authority.issue(tmp_path / "certificates" / "client.pem", "client")
    with EmbeddedKafka(security=Security("SSL"), data_folder=tmp_path) as cluster:
        error = failure(cluster.client_settings())
    assert f"the broker's certificate has expired since {YESTERDAY:%Y-%m-%d %H:%M} UTC" in error.message
    assert "renew the certificate in the ssl.keystore.location of the broker" in error.next_step
