"""Topics of several identities: in the narrow rows of a run, and against state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders.outboxes import publication
from builders.states import NOON, write_files
from contexture.events import AttributeName, ContextIdentity, identity_hash, identity_key
from contexture.publications import Publication
from contexture.records.changes import ChangeKind
from contexture.records.topics import TopicNamer
from contexture.records.topics.collisions import IdentityIndex
from contexture.storage.home import Home
from contexture.storage.schemas import STATE
from contexture.storage.state import StateReader
from spark_jobs.entities.collisions import find_collisions, mark_quarantined

Event = tuple[str, str, str] | tuple[str, str, str, AttributeName]
GROUPING = (
    '{"grouping_rules": [{"id": 1, "fields": ["entityType"], "regex": "car", "destination": "cars", '
    '"fiware_service_path": "/all"}]}'
)


def identity(event: Event) -> tuple[ContextIdentity, AttributeName | None]:
    return ContextIdentity("vehicles", *event[:3]), event[3] if len(event) == 4 else None


def snapshot(owner: Publication, *events: Event, verdict: ChangeKind = ChangeKind.SEND) -> Any:
    namer, meanings = TopicNamer(owner.topics), IdentityIndex(owner.topics)
    rows = []
    for number, event in enumerate(events):
        who, attribute = identity(event)
        rows.append(
            {
                "event": number,
                "verdict": verdict.value,
                "identity_hash": identity_hash(identity_key(who, attribute)),
                "entity_hash": identity_hash(identity_key(who)),
                "content_hash": bytes(32),
                "topic": namer(who, attribute and attribute.name)[0],
                "meaning": meanings.of_event(who, attribute),
            }
        )
    schema = pa.schema(
        [
            ("event", pa.int64()),
            ("verdict", pa.int32()),
            ("identity_hash", pa.binary(16)),
            ("entity_hash", pa.binary(16)),
            ("content_hash", pa.binary(32)),
            ("topic", pa.string()),
            ("meaning", pa.int64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def holding(home: Path, owner: Publication, *events: Event) -> StateReader:
    """A state that holds these, each at its topic."""
    state, namer = Home(str(home)).publication(owner.name).state, TopicNamer(owner.topics)
    rows = []
    for event in events:
        who, attribute = identity(event)
        key = identity_key(who, attribute)
        hashes = {"identity_hash": identity_hash(key), "entity_hash": identity_hash(identity_key(who)), "identity": key}
        where = {"topics": namer(who, attribute and attribute.name), "key": key, "content_hash": bytes(32)}
        flags = {"modified_at": NOON, "withheld": False, "sequence": 1, "removed": False}
        rows.append({**hashes, **where, **flags})
    return state.reader(write_files(state, pa.Table.from_pylist(rows, schema=STATE)))


def found(owner: Publication, run: Sequence[Event], reader: StateReader) -> list[tuple[int, str | int, bool]]:
    """Of each collision its event, the event or the identity that holds the topic, and whether it is refused."""
    collisions = find_collisions(owner, snapshot(owner, *run), reader)
    return sorted((one.row, one.holder, one.refused) for one in collisions)


LEFT: Event = ("/4wheels", "a=b", "c")
RIGHT: Event = ("/4wheels", "a", "b=c")
OTHER: Event = ("/4wheels", "car1", "car")
DOTTED: Event = ("/4wheels", "car.1", "car")
SCORED: Event = ("/4wheels", "car_1", "car")
LEFT_KEY = '["vehicles","/4wheels","a=b","c"]'


def cars(**topics: Any) -> Publication:
    return publication(topics=topics)


@pytest.mark.parametrize(("policy", "refused"), [("warn", False), ("quarantine", True)])
def test_of_a_run_the_first_has_the_topic(tmp_path: Path, policy: str, refused: bool) -> None:
    owner = cars(collision=policy)

    assert found(owner, [OTHER, RIGHT, LEFT], holding(tmp_path, owner)) == [(2, 1, refused)]


@pytest.mark.parametrize(("policy", "refused"), [("warn", False), ("quarantine", True)])
def test_who_has_the_topic_in_state_keeps_it_from_one_that_comes_first(
    tmp_path: Path, policy: str, refused: bool
) -> None:
    owner = cars(collision=policy)
    reader = holding(tmp_path, owner, LEFT, OTHER)

    assert found(owner, [RIGHT], reader) == [(0, LEFT_KEY, refused)]
    assert found(owner, [RIGHT, LEFT], reader) == [(0, 1, refused)]
    assert found(owner, [LEFT, OTHER], reader) == []


def test_those_that_share_it_in_state_both_stay_and_are_reported(tmp_path: Path) -> None:
    owner = cars(collision="quarantine")
    reader = holding(tmp_path, owner, LEFT, RIGHT)

    assert found(owner, [RIGHT, LEFT], reader) == [(1, 0, False)]
    assert found(owner, [RIGHT], reader) == []


@pytest.mark.parametrize("policy", ["warn", "quarantine"])
def test_what_brokers_would_refuse_beside_another_topic_is_refused(tmp_path: Path, policy: str) -> None:
    owner = cars(collision=policy)

    assert found(owner, [DOTTED, SCORED], holding(tmp_path, owner)) == [(1, 0, True)]
    held = holding(tmp_path, owner, SCORED)
    assert found(owner, [DOTTED], held) == [(0, '["vehicles","/4wheels","car_1","car"]', True)]


def test_what_is_sent_elsewhere_now_holds_nothing(tmp_path: Path) -> None:
    before, owner = cars(data_model="dm-by-service-path"), cars(collision="quarantine")
    elsewhere = ("/4wheels", "car1", "car")
    reader = holding(tmp_path, before, elsewhere)

    assert found(owner, [elsewhere], reader) == []


@pytest.mark.parametrize(
    "topics",
    [
        {"data_model": "dm-by-service", "collision": "quarantine"},
        {"data_model": "dm-by-service-path", "collision": "quarantine"},
        {"naming": "injective"},
        {"naming": "fixed", "topics": ["ALL"]},
        {
            "enable_grouping": True,
            "grouping_rules": "g.json",
            "grouping_rules_content": GROUPING,
            "collision": "quarantine",
        },
    ],
)
def test_a_topic_shared_on_purpose_is_no_collision(tmp_path: Path, topics: dict[str, Any]) -> None:
    owner = cars(**topics)
    reader = holding(tmp_path, owner, OTHER, ("/4wheels", "car2", "car"))

    assert found(owner, [("/4wheels", "car3", "car"), OTHER, ("/4wheels", "car4", "car")], reader) == []


def test_paths_that_are_named_alike_collide(tmp_path: Path) -> None:
    owner = cars(naming="cygnus-legacy", data_model="dm-by-service-path", collision="quarantine")
    slashed, scored = ("/a/b", "car1", "car"), ("/a_b", "car2", "car")
    reader = holding(tmp_path, owner, slashed, ("/a/b", "car3", "car"))

    assert found(owner, [slashed, ("/a/b", "car4", "car"), scored], reader) == [(2, 0, True)]
    ((event, holder, refused),) = found(owner, [scored], reader)
    assert (event, refused) == (0, True)
    assert holder in {'["vehicles","/a/b","car1","car"]', '["vehicles","/a/b","car3","car"]'}


def test_an_entity_named_like_a_group_collides_with_it(tmp_path: Path) -> None:
    grouping = {"enable_grouping": True, "grouping_rules": "g.json", "grouping_rules_content": GROUPING}
    owner = cars(naming="cygnus-legacy", collision="quarantine", **grouping)
    named_alike = ("/all", "cars", "")
    reader = holding(tmp_path, owner, OTHER)

    assert found(owner, [("/4wheels", "car2", "car")], reader) == []
    assert found(owner, [("/all", "ca?rs", "bus"), ("/all", "ca!rs", "bus")], reader) == [(1, 0, True)]
    assert find_collisions(owner, snapshot(owner, named_alike), reader) == []


def test_attributes_collide_one_by_one_and_instances_of_one_share_their_topic(tmp_path: Path) -> None:
    owner = cars(data_model="dm-by-attribute", collision="quarantine")
    near, far = AttributeName("speed", "urn:near"), AttributeName("speed", "urn:far")
    left, right = (*LEFT, AttributeName("speed")), (*RIGHT, AttributeName("speed"))  # type: ignore[has-type]
    reader = holding(tmp_path, owner, left)

    assert found(owner, [right, (*RIGHT, AttributeName("colour"))], reader) == [
        (0, '["vehicles","/4wheels","a=b","c","speed"]', True)
    ]
    assert found(owner, [(*OTHER, near), (*OTHER, far)], holding(tmp_path, owner, (*OTHER, near))) == []


def test_without_new_topics_the_rest_of_state_is_not_read(tmp_path: Path) -> None:
    owner = cars()
    reader = holding(tmp_path, owner, OTHER, LEFT)

    find_collisions(owner, snapshot(owner, OTHER), reader)
    once = reader.groups_read
    find_collisions(owner, snapshot(owner, RIGHT), reader)

    assert (once, reader.groups_read > once + 1) == (1, True)


def test_only_what_is_sent_is_looked_at(tmp_path: Path) -> None:
    owner = cars(collision="quarantine")
    rows = snapshot(owner, LEFT, RIGHT, verdict=ChangeKind.QUARANTINED)

    assert find_collisions(owner, rows, holding(tmp_path, owner)) == []


def test_a_refused_event_has_no_content(tmp_path: Path) -> None:
    rows = mark_quarantined(snapshot(cars(), LEFT, RIGHT), [1])

    assert rows.column("verdict").to_pylist() == [ChangeKind.SEND, ChangeKind.QUARANTINED]
    assert rows.column("content_hash").to_pylist() == [bytes(32), None]
