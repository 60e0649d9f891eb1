"""The body format `ngsiv2`: the entity in normalized form, as its source sent it."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from contexture.messages.errors import MessageError


def body(entity: Mapping[str, object]) -> bytes:
    """The entity as compact JSON: order of members and number literals as received.

    Args:
        entity: `ParsedEntity.entity`, which holds no builtins.

    Raises:
        MessageError: the entity can't be written as UTF-8 JSON.
    """
    try:
        return orjson.dumps(entity)
    except TypeError as error:
        raise MessageError(
            f"the entity can't be written as JSON ({error})", next_step="correct the entity in its source"
        ) from error
