"""Notifications that were swapped on their way are put in order by the broker's own times."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.notifying import body, notify
from builders.outboxes import publication
from contexture.publications import fingerprint
from contexture.sources.ngsi.notifications.notification import NotifiedEntity
from contexture.storage.home import Home
from contexture.storage.orders import StageOrder
from spark_jobs.entities.notifications import empty_landing, land_notifications
from spark_jobs.entities.sequence import NotifiedOrder

CARS = publication()
NUMBER = {"type": "Number", "value": 1, "metadata": {"dateModified": {"type": "DateTime", "value": "2026-01-01"}}}


def entity(number: int, second: int | None, operation: str = "upsert", form: str = "ngsiv2") -> NotifiedEntity:
    """A car that changed in that second of a minute; None: it doesn't say when."""
    shown = f"2026-01-01T00:00:{second:02}.000Z" if second is not None else None
    if form == "ngsi-ld":
        times = {"deletedAt" if operation == "delete" else "modifiedAt": shown} if shown else {}
        content: dict[str, object] = {"id": f"urn:car{number}", "type": "car", **times}
    else:
        time = {"type": "DateTime", "value": shown, "metadata": {}}
        content = {"id": f"car{number}", "type": "car", "n": NUMBER, **({"dateModified": time} if shown else {})}
    return NotifiedEntity(operation, "/", str(content["id"]), "car", orjson.dumps(content))  # type: ignore[arg-type]


def order_of(*entities: NotifiedEntity, form: Any = "ngsiv2") -> list[int]:
    """The places of arrival, in the order in which the entities are published."""
    order = NotifiedOrder()
    for each in entities:
        order.add(each, form)
    moves = order.moves()
    return sorted(range(len(entities)), key=lambda place: moves.get(place, place))


def test_nothing_moves_that_arrived_in_order() -> None:
    assert order_of(entity(1, 1), entity(1, 2), entity(1, 2), entity(2, 1), entity(1, 3, "delete")) == [0, 1, 2, 3, 4]


def test_two_that_were_swapped_are_exchanged_and_others_keep_their_places() -> None:
    assert order_of(entity(1, 1), entity(2, 9), entity(1, 5), entity(2, 8), entity(1, 4)) == [0, 3, 4, 1, 2]


def test_a_deletion_that_overtook_the_state_it_ends_follows_it() -> None:
    assert order_of(entity(1, 1, "delete"), entity(1, 1)) == [1, 0]


def test_a_deletion_stays_between_two_states_of_one_time() -> None:
    assert order_of(entity(1, 1), entity(1, 1, "delete"), entity(1, 1)) == [0, 1, 2]


def test_an_entity_that_came_back_is_not_deleted_by_the_deletion_before() -> None:
    assert order_of(entity(1, 1, "delete"), entity(1, 2)) == [0, 1]
    assert order_of(entity(1, 2), entity(1, 1, "delete")) == [1, 0]


def test_nothing_moves_past_what_does_not_say_its_time() -> None:
    assert order_of(entity(1, 5), entity(1, None), entity(1, 4), entity(1, 3)) == [0, 1, 3, 2]


def test_a_time_that_may_be_a_users_attribute_moves_nothing() -> None:
    plain = {"type": "DateTime", "metadata": {}}
    unsure = [
        NotifiedEntity("upsert", "/", "car1", "car", orjson.dumps({"dateModified": {**plain, "value": value}}))
        for value in ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")
    ]
    assert order_of(*unsure) == [0, 1]


def test_in_ngsi_ld_the_times_are_those_of_the_entity_and_of_its_deletion() -> None:
    swapped = [entity(1, 3, "delete", "ngsi-ld"), entity(1, 2, form="ngsi-ld"), entity(1, 4, form="ngsi-ld")]
    assert order_of(*swapped, form="ngsi-ld") == [1, 0, 2]


ARRIVED = st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 5)), max_size=12)


@given(ARRIVED)
def test_each_entity_is_published_by_its_times_and_no_other_entity_moves(arrived: list[tuple[int, int | None]]) -> None:
    order = order_of(*(entity(number, second) for number, second in arrived))

    assert sorted(order) == list(range(len(arrived)))
    # Who was at a place before is there now: only places of one entity are exchanged.
    assert [arrived[place][0] for place in order] == [number for number, _ in arrived]
    for number in {1, 2, 3}:
        times = [arrived[place][1] for place in order if arrived[place][0] == number]
        known = [pair for pair in pairwise(times) if None not in pair]
        assert all(earlier <= later for earlier, later in known)  # type: ignore[operator]


@pytest.mark.parametrize("first", ["{", None])
def test_swapped_notifications_land_in_order(tmp_path: Path, first: str | None) -> None:
    storage = Home(str(tmp_path))
    asked = StageOrder(
        publication=CARS, fingerprint=fingerprint(CARS), home=storage.root, run="r", mode="notifications", sequence=1
    )
    alteration = {"alterationType": {"type": "Text", "value": "entityDelete", "metadata": {}}}
    deleted = orjson.loads(entity(1, 1).body) | alteration
    created = orjson.loads(entity(1, 1).body)
    notify(storage, *([first.encode()] if first else []), body(deleted), body(created))

    land_notifications(
        storage.publication("vehicles"), asked, storage.publication("vehicles").inbox.claim(), empty_landing(asked)
    )

    rows = pq.read_table(storage.path("vehicles/landing/r/part-notified.parquet")).sort_by("ordinal").to_pylist()
    assert [(row["operation"], row["id"]) for row in rows if row["id"]] == [("upsert", "car1"), ("delete", "car1")]
