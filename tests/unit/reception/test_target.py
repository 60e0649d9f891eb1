"""Which notifications are a publication's own."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from builders.notifying import HEADERS, LEGACY, body, entity
from builders.outboxes import publication
from contexture.reception import Credentials
from contexture.reception.targets import Inboxes, receives_notifications, target_of
from contexture.sources.ngsi.notifications.notification import NotificationError
from contexture.sources.ngsi.notifications.parsing import read_notification
from contexture.storage.home import Home

SOURCE = {"kind": "ngsi", "connection": "b", "mode": "notifications", "service": "vehicles", "types": ["car"]}
LINKED = {"content-type": "application/json", "ngsild-tenant": "vehicles"}
LEGACY_BODY = b'{"contextResponses":[{"contextElement":{"id":"car1","type":"car","attributes":[]}}]}'


def linked(*types: str) -> bytes:
    listed = [{"id": "urn:car:1", "type": list(types)}]
    return orjson.dumps({"id": "urn:n:1", "type": "Notification", "subscriptionId": "urn:s:1", "data": listed})


def refusal(folder: Path, headers: dict[str, str], content: bytes, **source: object) -> str | None:
    """Why the publication refuses a notification; None when it takes it."""
    inboxes = Inboxes(Home(str(folder)))
    target = target_of(publication(source=SOURCE | source), Credentials.of(tokens=["a"]), inboxes)
    try:
        target.check(read_notification(headers, content, default_service=""))
    except NotificationError as error:
        return error.message
    finally:
        inboxes.close()
    return None


@pytest.mark.parametrize(
    ("headers", "content", "source"),
    [
        (HEADERS, body(entity(1)), {}),
        (HEADERS, body({**entity(1), "type": "bus"}), {"types": []}),
        (HEADERS | {"fiware-service": "Vehicles"}, body(entity(1)), {}),
        (LEGACY, LEGACY_BODY, {}),
        (HEADERS, body(entity(2)), {"ids": ["car1", "car2"]}),
        (LINKED, linked("car"), {"api": "ngsi-ld"}),
        (LINKED, linked("Vehicle", "car"), {"api": "ngsi-ld"}),
    ],
)
def test_what_the_publication_selects_is_its_own(tmp_path: Path, headers, content, source) -> None:
    assert refusal(tmp_path, headers, content, **source) is None


@pytest.mark.parametrize(
    ("headers", "content", "source", "described"),
    [
        (HEADERS, body(entity(1), {**entity(2), "type": "bus"}), {}, "the type 'bus' is outside the publication's"),
        (HEADERS, body({"id": "car1"}), {}, "the type '' is outside"),
        (HEADERS, body(entity(3)), {"ids": ["car1", "car2"]}, "the id 'car3' is outside"),
        (HEADERS | {"fiware-service": "city"}, body(entity(1)), {}, "the service 'city' is not the publication's"),
        (HEADERS, body(entity(1)), {"service_path": "/trucks/#"}, "the service path '/4wheels' is outside"),
        (HEADERS, body(entity(1)), {"api": "ngsi-ld"}, "the notification is ngsiv2, and the publication reads ngsi-ld"),
        (LINKED, linked("car"), {}, "the notification is ngsi-ld, and the publication reads ngsiv2"),
        (LINKED, linked("bus", "truck"), {"api": "ngsi-ld"}, "the type 'bus,truck' is outside"),
    ],
)
def test_everything_else_is_refused_with_the_reason(tmp_path: Path, headers, content, source, described: str) -> None:
    assert described in (refusal(tmp_path, headers, content, **source) or "")


@pytest.mark.parametrize(("mode", "expected"), [("notifications", True), ("changes", False), ("full", False)])
def test_only_the_mode_makes_a_publication_one_that_is_notified(mode: str, expected: bool) -> None:
    assert receives_notifications(publication(source=SOURCE | {"mode": mode})) is expected
