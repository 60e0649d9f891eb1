"""What a broker accepts on a write: identifiers, values, and the attributes made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from contexture_sandbox.context_broker.answers import Refusal, bad_request
from contexture_sandbox.context_broker.model import DATE_TYPES, StoredAttribute, compact_json
from contexture_sandbox.context_broker.times import parse_time, shown

MAX_IDENTIFIER = 256
MAX_EXACT_INTEGER = 2**53
_FORBIDDEN_IN_IDENTIFIER = re.compile(r"""[^\x21-\x7e]|[&?/#<>"'=;()]""")
_FORBIDDEN_IN_VALUE = re.compile(r"""[<>"'=;()]""")
_NOT_AN_ATTRIBUTE = frozenset({"id", "type"})
RESERVED_NAMES = frozenset({"*", "geo:distance"})


def check_identifier(text: object, what: str) -> str:
    """An entity id, entity type, attribute name, attribute type, metadata name or metadata type.

    Raises:
        Refusal: 400, its length or a character is not allowed.
    """
    if not isinstance(text, str):
        raise bad_request(f"{what} must be a JSON string" if text is not None else f"no {what} specified")
    if not text:
        raise bad_request(f"{what} length: 0, min length supported: 1")
    if len(text) > MAX_IDENTIFIER:
        raise bad_request(f"{what} length: {len(text)}, max length supported: {MAX_IDENTIFIER}")
    if _FORBIDDEN_IN_IDENTIFIER.search(text):
        raise bad_request(f"Invalid characters in {what}")
    return text


def members(entity: Mapping[str, object]) -> dict[str, object]:
    """The attributes of a JSON entity."""
    return {name: value for name, value in entity.items() if name not in _NOT_AN_ATTRIBUTE}


def parse_attribute(
    name: str, given: object, now_us: int, *, previous: StoredAttribute | None = None, key_values: bool = False
) -> StoredAttribute:
    """An attribute as a client sent it; type and metadata it left out stay as they were in `previous`.

    Raises:
        Refusal: 400, Orion would not store it.
    """
    if name in RESERVED_NAMES:
        raise bad_request(f"attribute name is reserved: {name}")
    check_identifier(name, "attribute name")
    if key_values:
        given = {"value": given}
    if not isinstance(given, Mapping):
        raise bad_request("attribute must be a JSON object, unless keyValues option is used")
    value = given.get("value")
    type_ = _type_of(given, value, previous)
    metadata = dict(previous.metadata if previous else ()) | dict(_metadata(given.get("metadata")))
    return StoredAttribute(type_, _checked_value(value, type_), tuple(sorted(metadata.items())), now_us, now_us)


def _type_of(given: Mapping[str, object], value: object, previous: StoredAttribute | None) -> str:
    if "type" in given:
        return check_identifier(given["type"], "attribute type")
    return previous.type if previous else default_type(value)


def _checked_value(value: object, type_: str) -> bytes:
    if type_ in DATE_TYPES and value is not None:
        moment = parse_time(value) if isinstance(value, str) else None
        if moment is None:
            raise bad_request("date has invalid format in attribute value")
        return f'"{shown(moment)}"'.encode()
    if type_ != "TextUnrestricted" and has_forbidden_text(value):
        raise bad_request("Invalid characters in attribute value")
    return compact_json(as_double(value))


def _metadata(given: object) -> tuple[tuple[str, bytes], ...]:
    if not given:
        return ()
    if not isinstance(given, Mapping):
        raise bad_request("metadata must be a JSON object")
    return tuple((name, _one_metadata(name, given[name])) for name in given)


def _one_metadata(name: str, given: object) -> bytes:
    check_identifier(name, "metadata name")
    if not isinstance(given, Mapping):
        raise bad_request("metadata must be a JSON object")
    value = given.get("value")
    type_ = check_identifier(given.get("type", default_type(value)), "metadata type")
    return compact_json({"type": type_, "value": as_double(value)})


def has_forbidden_text(value: object) -> bool:
    """Whether a string anywhere in the value holds a character Orion refuses."""
    if isinstance(value, str):
        return _FORBIDDEN_IN_VALUE.search(value) is not None
    if isinstance(value, Mapping):
        return any(has_forbidden_text(part) for part in value) or any(has_forbidden_text(v) for v in value.values())
    return isinstance(value, list) and any(has_forbidden_text(part) for part in value)


def default_type(value: object) -> str:
    """The type an attribute gets when the client gave none."""
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int | float):
        return "Number"
    if value is None:
        return "None"
    return "Text" if isinstance(value, str) else "StructuredValue"


def as_double(value: object) -> object:
    """Numbers as Orion shows them: every number is a double, and a whole one has no point (`1.0` comes back as `1`)."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < MAX_EXACT_INTEGER else value
    if isinstance(value, dict):
        return {name: as_double(part) for name, part in value.items()}
    return [as_double(part) for part in value] if isinstance(value, list) else value


def parse_json_object(body: bytes) -> dict[str, object]:
    """The JSON object of a request body.

    Raises:
        Refusal: 400, it is no JSON, or no object.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(400, "ParseError", "Errors found in incoming JSON buffer") from error
    if not isinstance(value, dict):
        raise Refusal(400, "BadRequest", "payload must be a JSON object")
    return value
