"""The body format `ngsiv1`: the bare context element, as NGSIv1 and Cygnus know it.

`{"id":…,"type":…,"isPattern":"false","attributes":[{"name":…,"type":…,"value":…,"metadatas":[…]}]}`: no wrapper
`contextElement` and no `statusCode`, for a record is one entity and has no status. Values keep their JSON types.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from contexture.messages.context_elements import attributes_of, received_attributes
from contexture.messages.errors import MessageError

_NO_PATTERN = "false"


def body(
    entity: Mapping[str, object],
    attribute: str | None = None,
    context_element: Mapping[str, object] | None = None,
) -> bytes:
    """The context element as compact JSON; number literals as received.

    Args:
        entity: id, type and attributes in NGSIv2's normalized form.
        attribute: the only attribute to write (`dm-by-attribute`); all of them when None.
        context_element: the context element as received, where the event came as one.

    Raises:
        MessageError: the attribute isn't there or isn't an object, or the text isn't UTF-8.
    """
    received = context_element is not None
    source = context_element if context_element is not None else entity
    attributes = received_attributes(source, attribute) if received else attributes_of(entity, attribute)
    known = {name: source[name] for name in ("id", "type") if name in source}
    element = {**known, "isPattern": source.get("isPattern", _NO_PATTERN) if received else _NO_PATTERN}
    try:
        return orjson.dumps({**element, "attributes": attributes})
    except TypeError as error:
        raise MessageError(
            f"the entity can't be written as JSON ({error})", next_step="correct the entity in its source"
        ) from error
