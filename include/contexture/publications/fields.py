"""Scalar types of publication models, strict so that a quoted number is an error; services and service paths.

NGSI-LD has tenants in place of services, and scopes in place of service paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationInfo,
)

from contexture.publications import schedule

_SERVICE = re.compile(r"^[a-z0-9_]{0,50}$")
_LEVEL = re.compile(r"^[A-Za-z0-9_]{1,50}$")
_LEVELS_MAX = 10
_TENANT = re.compile(r"[!-~]{0,200}")
_ANY_LEVEL = "+"


def check_service(value: object) -> object:
    """Returns the service as the broker will see it: in lower case. The empty service is the broker's default tenant.

    Raises:
        ValueError: characters or length that a broker refuses.
    """
    if not isinstance(value, str):
        return value
    if not _SERVICE.match(value.lower()):
        raise ValueError(f"{value!r} is not a service: at most 50 letters, digits and underscores")
    return value.lower()


def check_tenant(value: object) -> object:
    """Returns an NGSI-LD tenant as it is: brokers differ in what they take. The empty one is the default tenant.

    Raises:
        ValueError: what no header can say.
    """
    if isinstance(value, str) and not _TENANT.fullmatch(value):
        raise ValueError(f"{value!r} is not a tenant: at most 200 visible ASCII characters without spaces")
    return value


def check_scope(value: object) -> object:
    """Returns the scope without a trailing slash (GS CIM 009, 4.18 and 4.19).

    Raises:
        ValueError: not `/`, `/a/b`, or one of these with the wildcards `+` for a level and `#` for all below.
    """
    return _checked_path(value, wildcards=(_ANY_LEVEL,))


def check_service_path(value: object) -> object:
    """Returns the path without a trailing slash.

    Raises:
        ValueError: not `/`, `/a/b`, or one of these followed by the wildcard `#`.
    """
    return _checked_path(value, wildcards=())


def _checked_path(value: object, *, wildcards: tuple[str, ...]) -> object:
    if not isinstance(value, str):
        return value
    if "," in value:
        raise ValueError(f"{value!r} holds several paths: write them as a list, [/a, /b]")
    if "*" in value:
        raise ValueError(f"{value!r}: brokers refuse * in a service path; the wildcard is #, as in /# or /a/#")
    if not value.startswith("/"):
        raise ValueError(f"{value!r} is not a service path: it starts with /")
    levels = value.removesuffix("/")[1:].split("/") if value != "/" else []
    named = levels[:-1] if levels[-1:] == ["#"] else levels
    _check_levels(value, [level for level in named if level not in wildcards])
    return "/" + "/".join(levels)


def _check_levels(value: str, levels: list[str]) -> None:
    if len(levels) > _LEVELS_MAX:
        raise ValueError(f"{value!r} has {len(levels)} levels: a service path has at most {_LEVELS_MAX}")
    for level in levels:
        if not _LEVEL.match(level):
            raise ValueError(f"{level!r} is not a level of a service path: 1 to 50 letters, digits and underscores")


def is_wildcard(service_path: str) -> bool:
    """Whether the path selects more than one service path."""
    return service_path.endswith("#")


def merge_service_paths(service_paths: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the paths in their order, each once, without those that another one covers: nothing is read twice."""
    once = tuple(dict.fromkeys(service_paths))
    return tuple(path for path in once if not any(other != path and path_contains(other, path) for other in once))


def path_contains(outer: str, inner: str) -> bool:
    """Whether everything that `inner` selects is selected by `outer` too."""
    if outer == inner:
        return True
    if not is_wildcard(outer):
        return False
    # `/a/#` selects /a itself and everything below it.
    return (inner.removesuffix("/#") + "/").startswith(outer.removesuffix("#"))


_SELECTOR = re.compile(r"[^=()]+=[^=:()]+:[^=:()]+\([^()]+\)")
Flag = StrictBool
Text = Annotated[StrictStr, Field(min_length=1)]
Count = Annotated[StrictInt, Field(ge=0)]
Positive = Annotated[StrictInt, Field(ge=1)]
Number = StrictFloat


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_items(value: object) -> object:
    """Returns a list of one, where the file has a single text instead of a list."""
    return (value,) if isinstance(value, str) else value


def _as_numbers(value: object) -> object:
    """Returns the numbers of a text such as `5000,10000`, which is how Cygnus has them."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",")]
    return tuple(int(part) if part.isascii() and part.isdecimal() else part for part in parts)


def _check_selector(text: str) -> str:
    # Only its shape: what kinds and versions there are is known to the packages above.
    if text != "*" and not _SELECTOR.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a selector: write KIND=AGENCY:ID(VERSION) with * for any, as in Codelist=ECB:*(*)"
        )
    return text


def _as_config_value(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _as_name(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_linked_data(info: ValidationInfo) -> bool:
    # `api` is before the fields that depend on it.
    return bool(info.data) and info.data.get("api") == "ngsi-ld"


def _as_service(value: object, info: ValidationInfo) -> object:
    return check_tenant(value) if _is_linked_data(info) else check_service(value)


def _as_service_path(value: object, info: ValidationInfo) -> object:
    return check_scope(value) if _is_linked_data(info) else check_service_path(value)


# For fields that are lists of texts; the schema for editors also accepts one text.
OneOrMany = BeforeValidator(_as_items, json_schema_input_type=str | list[str])

# For fields that are lists of whole numbers, which may be one text with commas.
NumbersOrText = BeforeValidator(_as_numbers, json_schema_input_type=str | list[int])

Share = Annotated[StrictFloat, BeforeValidator(_as_float), Field(ge=0, le=1)]

Schedule = Annotated[StrictStr, BeforeValidator(schedule.check)]

Service = Annotated[StrictStr, BeforeValidator(_as_service)]
ServicePath = Annotated[StrictStr, BeforeValidator(_as_service_path)]

ServicePaths = Annotated[tuple[ServicePath, ...], OneOrMany, Field(min_length=1), AfterValidator(merge_service_paths)]

SelectorText = Annotated[Text, AfterValidator(_check_selector)]
Texts = Annotated[tuple[Text, ...], OneOrMany]
ConfigValue = Annotated[StrictStr, BeforeValidator(_as_config_value, json_schema_input_type=str | float | bool)]
FunctionName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
PartitionerName = Annotated[FunctionName, BeforeValidator(_as_name, json_schema_input_type=str | int)]
ConnectionId = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_.-]{1,250}$")]


@dataclass(frozen=True, slots=True)
class ChangesRecords:
    """A mark of a key: another value may change records or where they go, so that all are sent again."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChangesNoRecord:
    """A mark of a key: no value of it changes a record."""

    reason: str


class PublicationModel(BaseModel):
    """Base of every part of a publication: immutable, and without unknown keys."""

    # Sections are built as parts of Publication only; building each on its own too would double the import time.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)
