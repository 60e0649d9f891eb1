"""Record keys for each choice of `message.key`."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from contexture.events import AttributeName, ContextIdentity
from contexture.messages.keys import key_maker, record_key

CAR = ContextIdentity("vehicles", "/4wheels", "caré", "car")


@pytest.mark.parametrize(
    ("choice", "key"),
    [
        ("identity", '["vehicles","/4wheels","caré","car"]'.encode()),
        ("none", None),
        ("topic", b"vehiclesxffffx002f4wheels"),
        ("id", "caré".encode()),
        ("type", b"car"),
        ("service", b"vehicles"),
        ("service_path", b"/4wheels"),
    ],
)
def test_each_choice_gives_its_key(choice: str, key: bytes | None) -> None:
    assert record_key(choice, identity=CAR, topic="vehiclesxffffx002f4wheels") == key


def test_the_identity_of_an_attributes_record_holds_its_name() -> None:
    key = key_maker("identity")(CAR, "topic", AttributeName("speed"))
    assert key == '["vehicles","/4wheels","caré","car","speed"]'.encode()


def test_an_unknown_choice_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="use one of identity, none, topic, id, type, service, service_path"):
        key_maker("colour")
