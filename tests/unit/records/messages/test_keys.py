"""Record keys for each choice of `message.key`."""

from __future__ import annotations

import pytest

from contexture.events import AttributeName, ContextIdentity, parse_json
from contexture.records.messages import MessageError
from contexture.records.messages.rendering import key_maker

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
    assert key_maker(choice)(CAR, "vehiclesxffffx002f4wheels", None, {}) == key


def test_the_identity_of_an_attributes_record_holds_its_name() -> None:
    key = key_maker("identity")(CAR, "topic", AttributeName("speed"), {})
    assert key == '["vehicles","/4wheels","caré","car","speed"]'.encode()


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b'"Seat \xc3\xa9\\n"', "Seat é\n".encode()),
        (b'""', b""),
        (b"1.0", b"1.0"),
        (b"12345678901234567890123", b"12345678901234567890123"),
        (b"1E400", b"1E400"),
        (b"true", b"true"),
        (b'{"b":[1E5],"a":"x"}', b'{"b":[1E5],"a":"x"}'),
    ],
)
def test_an_attributes_value_is_the_key_as_its_source_wrote_it(value: bytes, key: bytes) -> None:
    entity = parse_json(b'{"id":"car1","type":"car","brand":{"type":"Text","value":' + value + b"}}")
    assert isinstance(entity, dict)
    assert key_maker("brand")(CAR, "topic", None, entity) == key


@pytest.mark.parametrize("entity", [{}, {"brand": {"value": None}}, {"brand": {"type": "Text"}}, {"brand": "Seat"}])
def test_an_entity_without_the_keys_value_is_rejected_data(entity: dict[str, object]) -> None:
    with pytest.raises(MessageError, match="the record's key is the value of 'brand', and the entity has none"):
        key_maker("brand")(CAR, "topic", None, entity)
