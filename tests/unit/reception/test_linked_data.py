"""Which NGSI-LD notifications a publication takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from contexture.publications import Publication
from contexture.reception import NotificationTarget, ThisMachineOnly
from contexture.reception.targets import Inboxes, target_of
from contexture.sources.ngsi.notifications.notification import Notification, NotificationError
from contexture.sources.ngsi.notifications.parsing import read_notification
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter

ACCESS = ThisMachineOnly(without_credentials=True)


def notified(tenant: str, kind: str | list[str] = "Car") -> Notification:
    entity = {"id": "urn:a:1", "type": kind, "speed": {"type": "Property", "value": 1}}
    body = {"id": "urn:n:1", "type": "Notification", "subscriptionId": "urn:s:1", "data": [entity]}
    headers = {"content-type": "application/json", "ngsild-tenant": tenant}
    return read_notification(headers, orjson.dumps(body))


@pytest.fixture
def target(tmp_path: Path) -> NotificationTarget:
    writer = InboxWriter(Home(str(tmp_path)).publication("air").open_inbox_folder())
    writer.close()
    return NotificationTarget("City", ("/#",), ACCESS, writer, types=("Car",), api="ngsi-ld")


def test_a_tenant_keeps_its_case(target: NotificationTarget) -> None:
    target.check(notified("City"))
    with pytest.raises(NotificationError, match="'city' is not the publication's"):
        target.check(notified("city"))
    replace(target, service="city", api=None).check(notified("City"))


def test_an_entity_of_several_types_is_selected_by_any_of_them(target: NotificationTarget) -> None:
    target.check(notified("City", ["Car", "Asset"]))
    with pytest.raises(NotificationError, match="'Asset,Bus' is outside"):
        target.check(notified("City", ["Bus", "Asset"]))


@pytest.mark.parametrize("api", ["ngsiv2", "ngsi-ld"])
def test_a_publication_says_whether_its_service_is_a_tenant(api: str, tmp_path: Path) -> None:
    source = {"kind": "ngsi", "connection": "b", "service": "city", "api": api}
    publication = Publication.model_validate({"name": "air", "source": source})
    inboxes = Inboxes(Home(str(tmp_path)))
    assert target_of(publication, ACCESS, inboxes).api == api
    inboxes.close()
