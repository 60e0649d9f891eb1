"""Why the client can't use a file for TLS; it only names the option, with a number of OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from contexture.kafka.errors import KafkaConfigurationError

_FAILED: Final = re.compile(r"(ssl\.(?:ca|certificate|key)\.location) failed")
_KEY: Final = "ssl.key.location"
_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - the name of an option
_ENCRYPTED: Final = b"ENCRYPTED"


def explained(options: Mapping[str, object], text: str) -> KafkaConfigurationError | None:
    """The error for the file that the client could not use; None where it speaks of none.

    Args:
        options: of the connection.
        text: what the client said.
    """
    found = _FAILED.search(text)
    if found is None or not options.get(found[1]):
        return None
    name, path = found[1], Path(str(options[found[1]]))
    reason, remedy = _unreadable(name, path) or _content(name, path, bool(options.get(_PASSWORD)))
    return KafkaConfigurationError(f"{name} of the Kafka connection can't be used: {reason}", next_step=remedy)


def _unreadable(name: str, path: Path) -> tuple[str, str] | None:
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        if path.is_dir() and name == "ssl.ca.location":
            return None
        return (
            f"{path}: {error.strerror}",
            "correct the path, or put the file there on every machine that runs tasks, readable by their user",
        )


def _content(name: str, path: Path, has_password: bool) -> tuple[str, str]:
    if name != _KEY:
        return f"{path} holds no certificate in PEM", "name a PEM file: -----BEGIN CERTIFICATE-----"
    if _ENCRYPTED not in path.read_bytes():
        return f"{path} holds no private key in PEM", "name a PEM file: -----BEGIN PRIVATE KEY-----"
    if has_password:
        return f"{_PASSWORD} does not open the key in {path}", f"correct {_PASSWORD}"
    return f"the key in {path} has a password", f"give it in {_PASSWORD}"
