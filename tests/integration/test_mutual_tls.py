"""Asking a broker that wants our certificate, with real handshakes on 127.0.0.1."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.query import EntityQuery
from contexture_sandbox.certificates import write_certificates

PASSWORD = "k3y-pass"


@dataclass
class SecuredBroker:
    """A broker of one entity; `seen` are the names of the certificates it was shown."""

    folder: Path
    url: str = ""
    seen: list[str] = field(default_factory=list)

    def connection(self, **given: Any) -> BrokerConnection:
        return BrokerConnection(self.url, **{"verify": str(self.folder / "ca.pem"), "timeout_seconds": 60.0, **given})


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SecuredBroker]:
    write_certificates(tmp_path)
    secured = SecuredBroker(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            subject = dict(pair for part in self.connection.getpeercert()["subject"] for pair in part)  # type: ignore[attr-defined]
            secured.seen.append(subject["commonName"])
            body = json.dumps([{"id": "car1", "type": "car"}]).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a test is no log."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.pem"))
    context.load_cert_chain(tmp_path / "broker.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with QuietServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        secured.url = f"https://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield secured
        server.shutdown()
        thread.join()


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A handshake that fails is what some tests are about."""


def walked(connection: BrokerConnection) -> list[str | None]:
    with NgsiV2Client(connection, "vehicles", budget=RetryBudget(attempts=2, sleep=lambda _: None)) as client:
        return [head.id for page in client.scan(EntityQuery("/a")) for head in page.heads]


def test_our_certificate_is_shown_to_a_broker_that_asks_for_it(broker: SecuredBroker) -> None:
    assert walked(broker.connection(certificate=str(broker.folder / "client.pem"))) == ["car1"]
    assert set(broker.seen) == {"client"}  # each request, the second look at a short page included


def test_a_key_in_a_file_of_its_own_may_have_a_password(broker: SecuredBroker) -> None:
    key = serialization.load_pem_private_key((broker.folder / "client.pem").read_bytes(), None)
    locked = serialization.BestAvailableEncryption(PASSWORD.encode())
    encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (broker.folder / "client.key").write_bytes(encoded)
    files = {"certificate": str(broker.folder / "client.pem"), "certificate_key": str(broker.folder / "client.key")}

    assert walked(broker.connection(**files, certificate_password=PASSWORD)) == ["car1"]
    with pytest.raises(ConfigurationError, match="client certificate"):
        walked(broker.connection(**files, certificate_password="wrong"))
    assert set(broker.seen) == {"client"}  # each request, the second look at a short page included


def test_without_the_certificate_it_is_asked_for(broker: SecuredBroker) -> None:
    with pytest.raises(ConfigurationError, match="requires a client certificate") as raised:
        walked(broker.connection())
    assert "certificate" in raised.value.next_step
    assert broker.seen == []


def test_a_certificate_of_another_authority_is_refused(broker: SecuredBroker, tmp_path: Path) -> None:
    write_certificates(tmp_path / "other")
    with pytest.raises(ConfigurationError, match="requires a client certificate"):
        walked(broker.connection(certificate=str(tmp_path / "other" / "client.pem")))
    assert broker.seen == []


def test_a_broker_of_another_authority_is_not_trusted(broker: SecuredBroker, tmp_path: Path) -> None:
    write_certificates(tmp_path / "other")
    mine = str(broker.folder / "client.pem")
    with pytest.raises(ConfigurationError, match="is not trusted"):
        walked(broker.connection(certificate=mine, verify=str(tmp_path / "other" / "ca.pem")))
    assert broker.seen == []
