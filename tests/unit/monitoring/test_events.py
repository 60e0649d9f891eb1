"""Contexture's own events: stored once and in order, sent as CloudEvents, documented, without data or secrets."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders.outboxes import NOON
from contexture.monitoring import RunTables
from contexture.monitoring.own_events import MEMBERS, SOURCE, EventType, OwnEvent, StoredEvent, records
from contexture.monitoring.rows import InterventionRow
from contexture.records.cloudevents import decode

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "operations-events.md"


def own_event(
    occasion: str = "run1", kind: EventType = EventType.OUTBOX_ABANDONED, publication: str = "vehicles"
) -> OwnEvent:
    data = dict.fromkeys(MEMBERS[kind])
    return OwnEvent(kind, publication, NOON, occasion, data | {MEMBERS[kind][0]: "first000"})


@pytest.fixture
def store(tmp_path: Path) -> RunTables:
    return RunTables(f"sqlite:///{tmp_path / 'tables.sqlite'}")


def test_events_are_stored_in_the_order_of_arrival_and_read_from_any_position(store: RunTables) -> None:
    for number in range(5):
        store.append_event(own_event(f"run{number}"))
    found = store.events_after(0, limit=10)
    assert [event.id for event in found] == [own_event(f"run{number}").id for number in range(5)]
    assert [event.position for event in found] == sorted({event.position for event in found})
    assert store.events_after(found[1].position, limit=2) == found[2:4]
    assert store.events_after(found[0].position, until=found[2].position, limit=10) == found[1:3]
    assert store.events_after(found[-1].position, limit=10) == []


def test_an_event_that_is_appended_twice_is_stored_once(store: RunTables) -> None:
    store.append_event(own_event())
    (first,) = store.events_after(0, limit=10)
    store.append_event(own_event())
    store.append_event(own_event(publication="bikes"))
    assert [event.position == first.position for event in store.events_after(0, limit=10)] == [True, False]


def test_positions_in_a_new_database_continue_behind_those_of_the_lost_one(store: RunTables, tmp_path: Path) -> None:
    store.append_event(own_event())
    (before,) = store.events_after(0, limit=10)
    other = RunTables(f"sqlite:///{tmp_path / 'other.sqlite'}")
    other.append_event(own_event("run2"))
    assert len(other.events_after(before.position, limit=10)) == 1


def test_an_action_of_a_person_is_an_event_too(store: RunTables) -> None:
    row = InterventionRow("id1", "vehicles", NOON, "ana", "abandon", "outbox1", "not ours", "it is abandoned", None)
    store.insert_action(row)
    (event,) = store.events_after(0, limit=10)
    assert event.type == "contexture.operations.action.performed"
    assert json.loads(event.data) == {
        "who": "ana",
        "action": "abandon",
        "subject": "outbox1",
        "reason": "not ours",
        "outcome": "it is abandoned",
        "run_id": None,
    }


def test_old_events_are_deleted_with_the_rows_of_their_publication(store: RunTables) -> None:
    store.append_event(own_event())
    assert store.delete_before("bikes", before=datetime.now(UTC)) == 0
    assert store.delete_before("vehicles", before=NOON + timedelta(seconds=1)) == 1
    assert store.events_after(0, limit=10) == []


def stored(data: str = '{"outbox":"first000","share":1.0}') -> StoredEvent:
    return StoredEvent(7, "a" * 32, EventType.OUTBOX_ABANDONED, "vehicles", NOON, data)


def test_the_record_is_a_cloud_event_in_both_modes() -> None:
    for envelope in ("cloudevents-binary", "cloudevents-structured"):
        (record,) = records([stored()], envelope)
        event = decode(record.headers, record.key, record.value)
        assert record.key == b"vehicles"
        assert {name: value for name, value in event.items() if name != "data"} == {
            "specversion": "1.0",
            "id": "a" * 32,
            "source": SOURCE,
            "type": "contexture.operations.outbox.abandoned",
            "subject": "vehicles",
            "time": "2026-03-01T12:00:00Z",
            "datacontenttype": "application/json",
        }
        data = event["data"]
        assert (json.loads(data) if isinstance(data, str | bytes) else data) == {"outbox": "first000", "share": 1.0}


def test_the_data_are_sent_as_they_are_stored() -> None:
    (record,) = records([stored()], "cloudevents-binary")
    assert record.value == b'{"outbox":"first000","share":1.0}'


def test_an_event_has_the_members_of_its_type_and_no_other() -> None:
    with pytest.raises(ValueError, match="has other members than outbox, entity"):
        OwnEvent(EventType.OUTBOX_ABANDONED, "vehicles", NOON, "run1", {"outbox": "x", "entity": "car1"})


def test_every_type_and_every_member_is_in_the_reference() -> None:
    rows = re.findall(
        r"^\| `(contexture\.operations\.[a-z.]+)` \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    documented = {name: tuple(re.findall(r"`(\w+)`", members)) for name, members in rows}
    assert documented == {str(kind): members for kind, members in MEMBERS.items()}
