"""The JSON event format of CloudEvents 1.0.2 as a JSON Schema, written from the specification's sections."""

from __future__ import annotations

from typing import Any, Final

import orjson
from jsonschema import Draft202012Validator

_NAMED: Final = {"type": "string", "minLength": 1}
_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"
_NO_SPACE: Final = r"^[^\s<>\"{}|\\^`]+$"

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        # Context attributes: required and optional ones (specification, "Context Attributes").
        "specversion": {"const": "1.0"},
        "id": _NAMED,
        "source": {"type": "string", "pattern": _NO_SPACE},
        "type": _NAMED,
        "datacontenttype": {"type": "string", "pattern": r"^[^\s/;]+/[^\s/;]+"},
        "dataschema": {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9+.-]*:"},
        "subject": _NAMED,
        "time": {"type": "string", "pattern": _TIME},
        # Handling of "data" (JSON format, section 3.1): any JSON value, or bytes as Base64.
        "data": True,
        "data_base64": {"type": "string", "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    },
    # Names of attributes are lower-case letters and digits ("Naming Conventions").
    "propertyNames": {"pattern": "^([a-z0-9]+|data_base64)$"},
    # Type System Mapping (JSON format, section 2.2): everything but booleans and 32-bit integers is a text.
    "additionalProperties": {
        "anyOf": [
            {"type": "string"},
            {"type": "boolean"},
            {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
        ]
    },
    "not": {"required": ["data", "data_base64"]},
}

_VALIDATOR: Final = Draft202012Validator(SCHEMA)


def faults_of(value: bytes | None) -> list[str]:
    """What a value in structured mode breaks of the format: nothing, where it is valid."""
    assert value is not None
    return [error.message for error in _VALIDATOR.iter_errors(orjson.loads(value))]
