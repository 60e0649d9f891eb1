"""The protocol of a listener is known from its answer; no answer, or another program's, shows nothing."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from contexture.kafka import ClientSettings, diagnosis
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.diagnosis import DetectedProtocol, listener, other_protocol
from contexture.kafka.errors import KafkaConfigurationError
from contexture_sandbox.certificates import Authority


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port that answers every connection with these bytes, after it has heard something."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1024)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def handshake(code: int, *mechanisms: str, correlation: int = 0x43545852) -> bytes:
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in mechanisms)
    body = struct.pack(">ihi", correlation, code, len(mechanisms)) + names
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        (handshake(34), DetectedProtocol(False, ())),
        (handshake(33, "PLAIN", "SCRAM-SHA-512"), DetectedProtocol(False, ("PLAIN", "SCRAM-SHA-512"))),
        (handshake(33, "PLAIN", correlation=7), None),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", None),
        (handshake(33, "PLAIN")[:-3], None),
        (struct.pack(">i", 2_000_000_000), None),
        (struct.pack(">iihi", 10, 0x43545852, 33, 5), None),
        # Texts whose lengths lead back, and one that would write into a log what it likes.
        (struct.pack(">iihih", 12, 0x43545852, 33, 2_000_000_000, -2), None),
        (struct.pack(">iihihh", 14, 0x43545852, 33, 2_000_000_000, -3, -4), None),
        (handshake(33, "PLAIN\nERROR all is lost"), None),
        (b"", None),
    ],
)
def test_only_an_answer_of_kafka_counts(answer, spoken):
    with answering(answer) as port:
        assert listener("127.0.0.1", port) == spoken


def test_a_listener_that_sends_a_byte_now_and_then_is_given_up(monkeypatch):
    monkeypatch.setattr(diagnosis, "_ANSWER_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    stop = threading.Event()

    def drip() -> None:
        theirs.sendall(struct.pack(">i", 4_000))
        while not stop.wait(0.02):
            theirs.sendall(b"x")

    threading.Thread(target=drip, daemon=True).start()
    started = time.monotonic()
    with ours, theirs:
        assert diagnosis._mechanisms(ours) is None
        stop.set()
    # All that it announced would take 80 s.
    assert time.monotonic() - started < 40


def test_a_busy_listener_may_take_longer_for_its_handshake_than_for_the_connection(monkeypatch, tmp_path):
    monkeypatch.setattr(diagnosis, "_CONNECT_SECONDS", 0.2)
    Authority().issue(tmp_path / "broker.pem", "broker")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "broker.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            # What comes first is the question without TLS, which such a port does not understand.
            server.accept()[0].close()
            connection, _ = server.accept()
            time.sleep(0.6)
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1024)
                secured.sendall(handshake(33, "PLAIN"))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert listener("127.0.0.1", server.getsockname()[1]) == DetectedProtocol(True, ("PLAIN",))
        thread.join(60)


def test_where_no_one_listens_nothing_is_reported():
    assert listener("127.0.0.1", 9) is None
    assert other_protocol(ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:9"}), "sending") is None


@pytest.mark.parametrize(
    ("spoken", "protocol", "differs"),
    [
        (DetectedProtocol(False, ()), "PLAINTEXT", False),
        (DetectedProtocol(False, ()), "SASL_PLAINTEXT", True),
        (DetectedProtocol(False, ()), "SSL", True),
        (DetectedProtocol(True, ("PLAIN",)), "SASL_SSL", False),
        (DetectedProtocol(True, ("PLAIN",)), "SSL", True),
        (DetectedProtocol(True, None), "SSL", False),
        (DetectedProtocol(True, None), "SASL_SSL", False),
        (DetectedProtocol(True, None), "PLAINTEXT", True),
    ],
)
def test_a_client_is_understood_by_its_own_protocol_alone(spoken, protocol, differs):
    assert spoken.differs_from(protocol) is differs


def test_the_first_server_that_answers_decides():
    with answering(handshake(33, "PLAIN", "GSSAPI")) as port:
        settings = ClientSettings.from_extra({"bootstrap.servers": f"127.0.0.1:9,PLAINTEXT://127.0.0.1:{port}"})
        found = other_protocol(settings, "sending")
    assert found is not None
    assert found.message == (
        f"sending failed: the broker at 127.0.0.1:{port} uses SASL_PLAINTEXT, and security.protocol of the "
        "connection is PLAINTEXT"
    )
    assert found.next_step.startswith(
        "set security.protocol to SASL_PLAINTEXT, and sasl.mechanism to one of PLAIN, GSSAPI, or name the port"
    )


class Said:
    """An error of the client by its name."""

    def __init__(self, name: str, text: str = "") -> None:
        self._name, self._text = name, text

    def code(self) -> int:
        return -1

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return self._text

    def fatal(self) -> bool:
        return False

    def retriable(self) -> bool:
        return False

    def txn_requires_abort(self) -> bool:
        return False


def looking(clock: Callable[[], float] = time.monotonic) -> tuple[ClientCallbacks, list[str]]:
    watch, looked = ClientCallbacks(clock), []
    watch.look = lambda doing: looked.append(doing)  # type: ignore[func-returns-value]
    return watch, looked


def test_silent_brokers_are_looked_at_once_in_a_while_and_waited_for_where_nothing_is_found():
    watch, looked = looking()
    watch.on_error(Said("_ALL_BROKERS_DOWN"))
    for _ in range(100):
        watch.raise_refusal("sending")
    assert looked == ["sending"]


def test_what_was_lost_once_is_looked_at_once():
    now = [100.0]
    watch, looked = looking(lambda: now[0])
    for moment, lost in ((100.0, True), (200.0, False), (300.0, True), (310.0, True), (340.0, False)):
        now[0] = moment
        if lost:
            watch.on_error(Said("_TRANSPORT"))
        watch.raise_refusal(f"at {moment:.0f}")
    assert looked == ["at 100", "at 300", "at 340"]


def test_brokers_that_answer_are_not_looked_at():
    watch, looked = looking()
    watch.raise_refusal("sending")
    watch.on_error(Said("_TIMED_OUT"))
    watch.raise_refusal("sending")
    assert looked == []


def test_a_login_where_none_is_asked_for_is_reported_by_the_protocol_and_not_by_the_password():
    watch = ClientCallbacks()
    watch.look = lambda doing: KafkaConfigurationError(f"{doing}: another protocol", next_step="set it")
    watch.on_error(Said("_AUTHENTICATION", "Broker: Request not valid in current SASL state"))
    with pytest.raises(KafkaConfigurationError, match="sending: another protocol"):
        watch.raise_refusal("sending")
    watch.look = lambda doing: None
    with pytest.raises(KafkaConfigurationError, match="check user, password"):
        watch.raise_refusal("sending")
