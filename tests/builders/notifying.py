"""Notifications as Orion sends them, kept in a publication's inbox without HTTP."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter

HEADERS = {
    "content-type": "application/json; charset=utf-8",
    "fiware-service": "vehicles",
    "fiware-servicepath": "/4wheels",
    "ngsiv2-attrsformat": "normalized",
}
LEGACY = {**HEADERS, "ngsiv2-attrsformat": "legacy"}


def entity(number: int, **attributes: float) -> dict[str, object]:
    """A car with numbers."""
    members = {name: {"type": "Number", "value": value, "metadata": {}} for name, value in attributes.items()}
    return {"id": f"car{number}", "type": "car", **members}


def gone(number: int) -> dict[str, object]:
    """A car that the broker has deleted, as it was."""
    return {**entity(number, speed=1), "alterationType": {"type": "Text", "value": "entityDelete", "metadata": {}}}


def body(*entities: Mapping[str, object]) -> bytes:
    """A notification of these entities."""
    return orjson.dumps({"subscriptionId": "6b012e71afd7828e1405bc64", "data": list(entities)})


def notify(storage: Home, *bodies: bytes, publication: str = "vehicles", headers: Mapping[str, str] = HEADERS) -> None:
    """Keeps these notifications, one after the other; the publication's next run takes them."""
    writer = InboxWriter(storage.publication(publication).open_inbox_folder())
    for each in bodies:
        writer.submit(headers, each).result()
    writer.close()
