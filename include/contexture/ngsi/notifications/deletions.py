"""How a broker says in a notification that an entity is gone.

NGSIv2 says it by the builtin `alterationType`, which the subscription has to ask for (`notification.attrs`); without
it, a deletion looks exactly like an update. NGSI-LD says it by the entity's own `deletedAt`.
"""

from __future__ import annotations

from contexture.events import Operation

ALTERATION = "alterationType"
DELETED_AT = "deletedAt"

_ALTERATIONS = frozenset({"entityCreate", "entityUpdate", "entityChange", "entityDelete"})


def take_operation(entity: dict[str, object]) -> Operation:
    """What happened to an NGSIv2 entity; the builtin that says it is taken out, a user's attribute is not."""
    told = entity.get(ALTERATION)
    value = told.get("value") if isinstance(told, dict) else None
    if not isinstance(value, str) or value not in _ALTERATIONS:
        return "upsert"
    del entity[ALTERATION]
    return "delete" if value == "entityDelete" else "upsert"


def linked_data_operation(entity: dict[str, object]) -> Operation:
    """What happened to an NGSI-LD entity."""
    return "delete" if isinstance(entity.get(DELETED_AT), str) else "upsert"
