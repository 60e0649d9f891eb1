"""What connections lead to: key stores, responses of keytool and of Kafka's listeners, extras of HTTP connections.

A program of ours replaces keytool, because starting Java takes half a second, and reading a store there is Java's task.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.kafka.diagnosis import mechanisms_in
from contexture.kafka.key_stores import KEYS, TRUST, Keytool, KeytoolError, client_options
from contexture.sources.http.connection import ConnectionFields, broker_connection
from contexture.sources.sdmx.registry.connection import registry_connection
from tools.fuzz.target import Target

_STORES = Path(__file__).resolve().parents[1] / "stores"
_MADE_UP = "made-up"
_STAND_IN = """#!/bin/sh
cat "$CONTEXTURE_FUZZ_ANSWER" 2>/dev/null && exit
echo "keytool error: java.io.IOException: Invalid keystore format"
exit 1
"""
_MOMENTS = count(1)


@cache
def _folder() -> Path:
    """Of this process, with a keytool that answers what a file holds, and fails where there is none."""
    folder = Path(tempfile.mkdtemp(prefix="contexture-fuzz-"))
    program = folder / "bin" / "keytool"
    program.parent.mkdir()
    program.write_text(_STAND_IN, encoding="ascii")
    program.chmod(0o700)
    os.environ["JAVA_HOME"] = str(folder)
    return folder


def _answers(data: bytes | None) -> Path:
    """Where there is a file of the input, which keytool answers."""
    file = _folder() / "answer"
    file.write_bytes(data or b"")
    os.environ["CONTEXTURE_FUZZ_ANSWER"] = str(file if data is not None else _folder() / "none")
    return file


def _store(setting: str) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        _answers(None)
        file = _folder() / "store"
        file.write_bytes(data)
        # A store is read anew when its file is another one, which a coarse clock may not show.
        os.utime(file, ns=(0, next(_MOMENTS)))
        return tuple(sorted(client_options({f"{setting}.location": str(file), f"{setting}.password": _MADE_UP})))

    return parse


def _keytool(data: bytes) -> object:
    store = _answers(data)
    with Keytool() as keytool:
        try:
            return min(len(keytool.keys(store, "")), 2), keytool.certificates(store, _MADE_UP).count("BEGIN")
        except KeytoolError:
            return "failed"


def _listener(data: bytes) -> object:
    found = mechanisms_in(data)
    # People read them in errors and logs.
    if found and not all(name.isascii() and name.isprintable() for name in found):
        raise AssertionError("a mechanism holds what a log should not")
    return found is None, bool(found)


def _extra(data: bytes) -> object:
    try:
        extra = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"  # Airflow reads it
    if not isinstance(extra, dict):
        return "no object"
    ends: list[object] = []
    host = str(extra.pop("host", "host"))
    for read in (broker_connection, registry_connection):
        try:
            found = read("c", ConnectionFields(host, "http", "", 80, "user", "hush", extra))
            ends.append((found.grant is None, type(found.verify).__name__))
        except ConfigurationError as error:
            if "hush" in str(error):
                raise AssertionError("an error shows a secret") from error
            ends.append("refused")
    return tuple(ends)


def _stores(*names: str) -> Callable[[], Mapping[str, bytes]]:
    return lambda: {name: (_STORES / name).read_bytes() for name in names}


def _listed() -> Mapping[str, bytes]:
    key = b"Keystore type: PKCS12\n\nme, Nov 22, 2026, PrivateKeyEntry,\nfingerprint (SHA-256): AA:BB\n"
    certificate = b"Alias name: ca\n-----BEGIN CERTIFICATE-----\nMIIB\nAA==\n-----END CERTIFICATE-----\n"
    return {"key": key, "certificate": certificate, "both": key + certificate}


def _spoken() -> Mapping[str, bytes]:
    names = b"".join(struct.pack(">h", len(name)) + name for name in (b"PLAIN", b"SCRAM-SHA-512"))
    head = struct.Struct(">ihi")
    return {"login": head.pack(0x43545852, 33, 2) + names, "none": head.pack(0x43545852, 34, 0)}


def _extras() -> Mapping[str, bytes]:
    return {
        "oauth2": b'{"authentication":"oauth2","token_url":"http://idm/t","client_id":"c","client_secret":"hush","scope":'
        b'"s","token_header":"X-T","timeout_seconds":5,"verify":false}',
        "keyrock": b'{"host":"https://broker.example.org:1026/v2","authentication":"keyrock","token_url":"http://idm/t"}',
        "plain": b'{"headers":{"X-A":"b"},"token":"hush","verify":"/etc/ca.pem","certificate":"/a.pem","flavour":"fmr",'
        b'"api":"v2","reply_bytes":1000}',
    }


_CONFIGURATION = (ConfigurationError,)
_DER_WORDS = (
    b"\x02\x04\x7f\xff\xff\xff",
    b"\x30\x80",
    b"\x04\x84\xff\xff\xff\xff",
    b"\xfe\xed\xfe\xed",
    b"-----BEGIN ",
)
_ANSWER_WORDS = (
    b"-----BEGIN CERTIFICATE-----",
    b"-----END CERTIFICATE-----",
    b", Jan 1, 2026, PrivateKeyEntry,",
    b"\n",
)
_EXTRA_WORDS = (
    b"http://[",
    b":99999",
    b"//a:b@c",
    b"oauth2",
    b"keyrock",
    b"basic",
    b"username",
    b"user_password",
    b"\\r\\nX: y",
    b"1e400",
)

TARGETS = (
    Target(
        "key-stores",
        "key stores of Java clients",
        _store(KEYS),
        _stores("keys.p12", "strong.p12"),
        "bytes",
        _DER_WORDS,
        _CONFIGURATION,
    ),
    Target(
        "trust-stores",
        "trust stores of Java clients",
        _store(TRUST),
        _stores("trust.p12"),
        "bytes",
        _DER_WORDS,
        _CONFIGURATION,
    ),
    Target("keytool", "answers of keytool", _keytool, _listed, "lines", _ANSWER_WORDS, _CONFIGURATION),
    Target("listeners", "answers of whatever listens where a broker should", _listener, _spoken, "bytes"),
    Target(
        "http-connections", "extras of connections to sources", _extra, _extras, "json", _EXTRA_WORDS, _CONFIGURATION
    ),
)
