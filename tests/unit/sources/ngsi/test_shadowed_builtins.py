"""Users' attributes that are called like the builtins of NGSIv2, read from a broker as a pull reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from builders.context_broker import Client
from contexture.sources.ngsi.entity import parse_entity
from contexture.sources.ngsi.entity_head import read_entity_head
from contexture.sources.ngsi.notifications.parsing import parse_notified
from contexture.sources.ngsi.query import EntityQuery
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity
from contexture_sandbox.context_broker.loading import SeedEntity, load
from samples_location import samples_or_skip

CREATED, MODIFIED = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
USERS = {"type": "DateTime", "value": "2019-05-06T07:08:09.000Z", "metadata": {}}


def page(entity: dict[str, object], service_path: str = "/parks") -> bytes:
    """The entity as a page of a pull contains it."""
    client = Client(service_path="/parks")
    load(client.broker.store, [SeedEntity("city", "/parks", entity, CREATED, MODIFIED)])
    client.headers["fiware-servicepath"] = service_path
    given = EntityQuery(service_path).page_parameters(since=None, offset=0, limit=10)
    (shown,) = client.get(**given)
    return orjson.dumps(shown)


@pytest.mark.parametrize(
    ("name", "created", "modified"),
    [("dateModified", CREATED, None), ("dateCreated", None, MODIFIED)],
)
def test_a_users_time_is_an_attribute_and_never_a_time_of_the_walk(
    name: str, created: str | None, modified: str | None
) -> None:
    body = page({"id": "p", "type": "Park", name: USERS, "n": {"type": "Number", "value": 1, "metadata": {}}})

    seen = read_entity_head(body, "/parks")
    parsed = parse_entity(body, service="city", service_path_hint="/parks", attribute_times=True)

    assert (seen.created, seen.modified) == (created, modified)
    assert parsed.entity == {
        "id": "p",
        "type": "Park",
        name: USERS,
        "n": {"type": "Number", "value": 1, "metadata": {}},
    }
    assert (parsed.created_at is None, parsed.modified_at is None) == (created is None, modified is None)
    assert check_entity(parsed, EntityRuleOptions()) == []


def test_a_users_service_path_is_an_attribute_beside_a_known_path() -> None:
    users = {"type": "Text", "value": "/parks", "metadata": {}}
    body = page({"id": "p", "type": "Park", "servicePath": users})

    parsed = parse_entity(body, service="city", service_path_hint="/parks", attribute_times=True)

    assert parsed.attributes == {"servicePath": users}
    assert check_entity(parsed, EntityRuleOptions()) == []


def test_a_users_service_path_is_never_the_path_of_the_identity() -> None:
    body = page({"id": "p", "type": "Park", "servicePath": {"type": "Text", "value": "/liar"}}, "/#")

    parsed = parse_entity(body, service="city", attribute_times=True)

    assert read_entity_head(body, None).path is None
    assert [violation.rule for violation in check_entity(parsed, EntityRuleOptions())] == ["shadowed-builtin"]
    assert "/liar" not in parsed.identity.service_path


def test_every_attribute_of_every_sample_comes_back_from_a_broker() -> None:
    folder = samples_or_skip() / "ngsi"
    for path in sorted(folder.rglob("v2-normalized.json")):
        entity: dict[str, Any] = json.loads(path.read_bytes())
        expires = entity.get("dateExpires", {}).get("type") == "DateTime"

        parsed = parse_entity(page(entity), service="city", service_path_hint="/parks", attribute_times=True)

        # A DateTime called dateExpires is how a user sets the builtin.
        assert set(parsed.attributes) == set(entity) - {"id", "type"} - ({"dateExpires"} if expires else set()), path
        assert all(not attribute["metadata"].get("dateModified") for attribute in parsed.attributes.values()), path  # type: ignore[index]


def test_a_users_metadata_that_no_broker_can_have_written_is_kept() -> None:
    users = {"type": "DateTime", "value": "2050-01-01T00:00:00.000Z"}
    body = page({"id": "p", "type": "Park", "n": {"type": "Number", "value": 1, "metadata": {"dateModified": users}}})

    parsed = parse_entity(body, service="city", service_path_hint="/parks", attribute_times=True)

    assert parsed.attributes == {"n": {"type": "Number", "value": 1, "metadata": {"dateModified": users}}}


def notified(**attributes: object) -> Any:
    return parse_notified(orjson.dumps({"id": "p", "type": "Park", **attributes}), "ngsiv2", "city", "/parks")


def test_a_notified_time_is_quarantined_where_the_subscription_does_not_distinguish_it() -> None:
    parsed = notified(dateModified=USERS, n={"type": "Number", "value": 1, "metadata": {}})

    assert (parsed.modified_at, parsed.attributes["dateModified"]) == (None, USERS)
    assert [violation.rule for violation in check_entity(parsed, EntityRuleOptions())] == ["shadowed-builtin"]


@pytest.mark.parametrize("is_users", [False, True])
def test_a_notified_time_is_distinguished_by_the_metadata_that_the_subscription_requests(is_users: bool) -> None:
    time = {"type": "DateTime", "value": MODIFIED}
    shown = {**USERS, "metadata": {"dateModified": time} if is_users else {}}

    parsed = notified(dateModified=shown, n={"type": "Number", "value": 1, "metadata": {"dateModified": time}})

    assert list(parsed.attributes) == (["dateModified", "n"] if is_users else ["n"])
    assert parsed.modified_at == (None if is_users else datetime(2019, 5, 6, 7, 8, 9, tzinfo=UTC))
    assert check_entity(parsed, EntityRuleOptions()) == []


def test_a_notification_without_builtins_needs_no_metadata() -> None:
    assert check_entity(notified(n={"type": "Number", "value": 1, "metadata": {}}), EntityRuleOptions()) == []
