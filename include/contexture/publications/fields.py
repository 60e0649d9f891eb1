"""The scalar types that publication models share: strict, so that a quoted number is an error and not a guess."""

from __future__ import annotations

import re
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

from contexture.publications import cron, scope

_SELECTOR = re.compile(r"[^=()]+=[^=:()]+:[^=:()]+\([^()]+\)")
Flag = StrictBool
Text = Annotated[StrictStr, Field(min_length=1)]
Count = Annotated[StrictInt, Field(ge=0)]
Positive = Annotated[StrictInt, Field(ge=1)]
Number = StrictFloat


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_items(value: object) -> object:
    """A list of one, where the file has a single text instead of a list."""
    return (value,) if isinstance(value, str) else value


def _check_selector(text: str) -> str:
    # Only its shape: what kinds and versions there are is known to the packages above.
    if text != "*" and not _SELECTOR.fullmatch(text):
        raise ValueError(
            f"{text!r} is no selector: write KIND=AGENCY:ID(VERSION) with * for any, as in Codelist=ECB:*(*)"
        )
    return text


def _as_config_value(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _is_linked_data(info: ValidationInfo) -> bool:
    # `api` stands before the fields that depend on it.
    return bool(info.data) and info.data.get("api") == "ngsi-ld"


def _as_service(value: object, info: ValidationInfo) -> object:
    return scope.check_tenant(value) if _is_linked_data(info) else scope.check_service(value)


def _as_service_path(value: object, info: ValidationInfo) -> object:
    return scope.check_scope(value) if _is_linked_data(info) else scope.check_service_path(value)


# For fields that are lists of texts; editors are told that one text will do.
OneOrMany = BeforeValidator(_as_items, json_schema_input_type=str | list[str])

Share = Annotated[StrictFloat, BeforeValidator(_as_float), Field(ge=0, le=1)]
Schedule = Annotated[StrictStr, BeforeValidator(cron.check)]
Service = Annotated[StrictStr, BeforeValidator(_as_service)]
ServicePath = Annotated[StrictStr, BeforeValidator(_as_service_path)]
ServicePaths = Annotated[tuple[ServicePath, ...], OneOrMany, Field(min_length=1), AfterValidator(scope.merged)]
SelectorText = Annotated[Text, AfterValidator(_check_selector)]
Texts = Annotated[tuple[Text, ...], OneOrMany]
ConfigValue = Annotated[StrictStr, BeforeValidator(_as_config_value, json_schema_input_type=str | float | bool)]
ConnectionId = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_.-]{1,250}$")]


class Section(BaseModel):
    """Base of every part of a publication: immutable, and no key it doesn't know."""

    # Sections are built as parts of Publication only; building each on its own too would double the import time.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)
