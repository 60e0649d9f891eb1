"""How much work a PKCS#12 file asks for is read before it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12

from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture.kafka.key_stores import rounds_in
from contexture_sandbox.certificates import write_certificates

PASSWORD = "made-up"


def store(folder: Path, rounds: int) -> bytes:
    write_certificates(folder)
    key = serialization.load_pem_private_key((folder / "client.pem").read_bytes(), None)
    protection = (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(rounds)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(PASSWORD.encode())
    )
    return pkcs12.serialize_key_and_certificates(b"me", key, None, None, protection)  # type: ignore[arg-type]


def element(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x84]) + len(content).to_bytes(4) + content


def integer(number: int) -> bytes:
    return element(0x02, number.to_bytes(9))


SALT = element(0x04, b"saltsalt")


# Its checksum takes 2,048 of its own.
@pytest.mark.parametrize("rounds", [2_049, 12_345])
def test_rounds_are_those_that_the_file_was_made_with(tmp_path: Path, rounds: int) -> None:
    assert rounds_in(store(tmp_path, rounds)) == rounds


def test_the_most_counts_wherever_it_is() -> None:
    deep = element(0x30, SALT + integer(70))
    for _ in range(40):
        deep = element(0x04, element(0x30, deep))
    assert rounds_in(element(0x30, SALT + integer(9)) + deep) == 70


def test_lengths_may_be_left_open() -> None:
    assert rounds_in(b"\x30\x80\x30\x80" + SALT + integer(5) + b"\0\0\0\0") == 5


def test_a_number_that_is_not_behind_a_salt_is_no_number_of_rounds() -> None:
    assert rounds_in(element(0x30, integer(3) + element(0x30, SALT) + integer(4))) == 0


@pytest.mark.parametrize("content", [b"", b"\x30", b"\x30\xff", b"\x30\x84\xff\xff\xff\xff", b"\x04\x05abc"])
def test_what_is_cut_off_asks_for_nothing(content: bytes) -> None:
    assert rounds_in(content) == 0


def parts(content: bytes) -> list[tuple[bytes, bytes]]:
    """Elements in DER: each as a whole, and what is in it."""
    found, at = [], 0
    while at < len(content):
        width = content[at + 1] & 0x7F if content[at + 1] & 0x80 else 0
        start = at + 2 + width
        end = start + (int.from_bytes(content[at + 2 : start]) if width else content[at + 1])
        found.append((content[at:end], content[start:end]))
        at = end
    return found


def test_a_store_that_would_take_hours_is_not_opened_within_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((_, outer),) = parts(store(tmp_path, 3))
    (version, _), (content, _), (_, mac) = parts(outer)
    (digest, _), (salt, _), _ = parts(mac)
    endless = element(0x02, (2**31 - 1).to_bytes(4))
    hostile, program = tmp_path / "keys.p12", tmp_path / "bin" / "keytool"
    hostile.write_bytes(element(0x30, version + content + element(0x30, digest + salt + endless)))
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'keytool error: java.io.IOException: MAC iteration count too large'\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    options = {"ssl.keystore.location": str(hostile), "ssl.keystore.password": PASSWORD}
    settings = ClientSettings.from_extra({"bootstrap.servers": "a:1", "security.protocol": "SSL", **options})

    with pytest.raises(KafkaConfigurationError, match="cannot be opened: MAC iteration count too large"):
        settings.admin()
