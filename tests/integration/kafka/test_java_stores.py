"""Java's own stores through keytool: what does not open is reported, and no password shows while it runs."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from builders.java_stores import in_jks, keys_in_pkcs12, trust_in_pkcs12
from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture_sandbox.certificates import Authority
from e2e.processes import command_line, descendants

pytestmark = pytest.mark.integration

STORE, KEY, TRUST = "störe-hush", "këy-hush", "trust-hush"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca.pem`, `me.pem`, and both as JKS: the key has a password of its own."""
    folder = tmp_path_factory.mktemp("java")
    authority = Authority()
    authority.write(folder / "ca.pem")
    authority.issue(folder / "me.pem", "me")
    keys = keys_in_pkcs12(folder / "me.pem", folder / "keys.p12", "first-hush")
    in_jks(keys, folder / "keys.jks", "first-hush", new_password="store-hush", key_password="key-hush")
    in_jks(trust_in_pkcs12(folder / "ca.pem", folder / "trust.p12", TRUST), folder / "trust.jks", TRUST)
    return folder


def settings(folder: Path, **changed: str) -> ClientSettings:
    options = {
        "ssl_keystore_location": str(folder / "keys.jks"),
        "ssl_keystore_password": "store-hush",
        "ssl_key_password": "key-hush",
        "ssl_truststore_location": str(folder / "trust.jks"),
        "ssl_truststore_password": TRUST,
        **changed,
    }
    named = {name.replace("_", "."): value for name, value in options.items()}
    return ClientSettings.from_extra({"bootstrap.servers": "a:1", "security.protocol": "SSL", **named})


def test_key_and_certificates_come_out_as_they_went_in(folder):
    options = settings(folder).producer()
    assert options["ssl.ca.pem"] == (folder / "ca.pem").read_text()
    assert str(options["ssl.key.pem"]) + str(options["ssl.certificate.pem"]) == (folder / "me.pem").read_text()


def test_a_trust_store_in_jks_opens_without_its_password_as_it_does_in_java(folder):
    assert settings(folder, ssl_truststore_password="").admin()["ssl.ca.pem"] == (folder / "ca.pem").read_text()


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"ssl_keystore_password": "wrong-hush"}, "ssl.keystore.password"),
        ({"ssl_key_password": "wrong-hush"}, "ssl.key.password"),
        ({"ssl_truststore_password": "wrong-hush"}, "ssl.truststore.password"),
        ({"ssl_keystore_location": "p12", "ssl_keystore_password": "wrong-hush"}, "ssl.keystore.password"),
        ({"ssl_truststore_location": "p12", "ssl_truststore_password": "wrong-hush"}, "ssl.truststore.password"),
    ],
)
def test_a_wrong_password_is_reported_by_its_option(folder, changed, option):
    stores = {"ssl_keystore_location": folder / "keys.p12", "ssl_truststore_location": folder / "trust.p12"}
    given = {name: str(stores[name]) if value == "p12" else value for name, value in changed.items()}
    with pytest.raises(KafkaConfigurationError, match="cannot be opened") as caught:
        settings(folder, **given).producer()
    assert f"correct {option} of the Kafka connection" in caught.value.next_step
    assert "hush" not in str(caught.value)


def test_a_store_of_authorities_is_no_key_store(folder):
    with pytest.raises(KafkaConfigurationError, match="0 private keys"):
        settings(folder, ssl_keystore_location=str(folder / "trust.jks"), ssl_keystore_password=TRUST).producer()


def test_passwords_beyond_ascii_reach_keytool(folder, tmp_path):
    # Java allows them for PKCS#12 only, which keytool reads where the ciphers are too old for others.
    keys = keys_in_pkcs12(folder / "me.pem", tmp_path / "keys.p12", STORE)
    options = settings(folder, ssl_keystore_location=str(keys), ssl_keystore_password=STORE, ssl_key_password=KEY)
    assert str(options.producer()["ssl.key.pem"]) in (folder / "me.pem").read_text()


def test_no_password_shows_in_processes_and_no_file_stays(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    copies = {"ssl_keystore_location": "keys.jks", "ssl_truststore_location": "trust.jks"}
    for name, file in copies.items():
        # Other paths than before: nothing was read of them yet.
        copies[name] = str(tmp_path.parent / f"{tmp_path.name}-{file}")
        Path(copies[name]).write_bytes((folder / file).read_bytes())
    with watched(tmp_path) as seen:
        settings(folder, **copies).producer()
    commands = [command for command in seen.commands if "keytool" in command]
    assert len({command for command in commands if "-importkeystore" in command}) == 1
    assert commands
    assert [command for command in seen.commands if "hush" in command] == []
    assert seen.modes
    assert {mode for mode in seen.modes if mode & (stat.S_IRWXG | stat.S_IRWXO)} == set()
    assert list(tmp_path.iterdir()) == []


class Seen:
    def __init__(self) -> None:
        self.commands: set[str] = set()
        self.modes: set[int] = set()


@contextmanager
def watched(folder: Path) -> Iterator[Seen]:
    """Looks at all that this process starts, and at the modes of all that lies in a folder, as often as it can."""
    seen, over = Seen(), threading.Event()

    def look() -> None:
        while not over.is_set():
            # Not at what others start: tests beside this one have stores of their own made.
            below = [process for process in descendants(os.getpid()) if process.pid != os.getpid()]
            seen.commands |= set(map(command_line, below))
            for path in folder.rglob("*"):
                quietly(lambda path=path: seen.modes.add(stat.S_IMODE(path.stat().st_mode)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def quietly(look: Callable[[], object]) -> None:
    with suppress(OSError):
        look()
