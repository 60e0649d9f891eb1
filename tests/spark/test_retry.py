"""Quarantined events that are tried again, with a real Spark session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from builders.landing import MORNING, car
from builders.outboxes import publication
from builders.preparing import Preparer
from contexture.storage.manifests import Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RELAXED = {"rules": {"number-string": "warning"}}
Prepare = Callable[..., Preparer]


@pytest.fixture
def preparer(spark: SparkSession, tmp_path: Path) -> Prepare:
    def make(**changes: Any) -> Preparer:
        return Preparer(spark, tmp_path, publication(**changes))

    return make


def relaxed(runs: Preparer) -> Preparer:
    """The same publication after its rule was relaxed."""
    quality = runs.publication.quality.model_copy(update=RELAXED)
    runs.publication = runs.publication.model_copy(update={"quality": quality})
    return runs


def broken(number: int, *, minutes: int = 0, speed: object = "11") -> dict[str, object]:
    moment = MORNING + timedelta(minutes=minutes)
    return {**car(number, 0, modified=moment), "speed": {"type": "Number", "value": speed, "metadata": {}}}


def sent_speeds(manifest: Manifest, runs: Preparer) -> list[tuple[str, object]]:
    values = ((record["key"], record["value"]) for record in runs.records(manifest))
    return sorted((orjson.loads(key)[2], value and orjson.loads(value)["speed"]["value"]) for key, value in values)


def still_held_back(manifest: Manifest, runs: Preparer) -> int:
    return len(runs.storage.publication(runs.publication.name).quarantine(manifest.outbox).chosen(()))


def test_what_passes_now_is_published_alone_and_leaves_the_listing(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])
    refused = runs.concluded([broken(1, minutes=1), car(2, 20)])
    watermark = runs.state.pointer().watermark

    again = relaxed(runs).retry(refused.outbox)
    later = runs.concluded([broken(1, minutes=1), car(2, 20)])

    assert sent_speeds(again, runs) == [("car1", "11")]
    assert (again.read, again.upserts, again.absent, again.deletes) == (1, 1, 0, 0)
    assert (again.retried, again.skipped_newer, again.mode) == (refused.outbox, 0, "changes")
    assert runs.state.pointer().watermark == watermark
    assert set(runs.held("withheld", "missing_since").values()) == {(False, None)}
    assert still_held_back(refused, runs) == 0
    assert later.records == 0


def test_newer_state_wins_and_is_counted(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10), car(2, 20)])
    refused = runs.concluded([broken(1, minutes=1), broken(2, minutes=1), broken(3, minutes=1)])
    runs.concluded([car(1, 12, modified=MORNING + timedelta(minutes=2)), car(2, 20), broken(3, minutes=1)])

    again = relaxed(runs).retry(refused.outbox)

    assert sent_speeds(again, runs) == [("car2", "11"), ("car3", "11")]
    assert (again.skipped_newer, again.accepted, again.upserts) == (1, 3, 2)
    assert still_held_back(refused, runs) == 0


def test_without_a_time_of_change_what_was_sent_later_is_newer(preparer: Prepare) -> None:
    runs = preparer()
    timeless = [
        {name: value for name, value in entity.items() if name != "dateModified"} for entity in (broken(1), car(1, 12))
    ]
    refused = runs.concluded([timeless[0]])
    runs.concluded([timeless[1]])

    again = relaxed(runs).retry(refused.outbox)

    assert (again.records, again.skipped_newer) == (0, 1)


def test_what_followed_on_a_rejected_run_under_its_number_is_newer(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(2, 1)])
    timeless = [
        {name: value for name, value in entity.items() if name != "dateModified"} for entity in (broken(1), car(1, 12))
    ]
    refused = runs.prepare([timeless[0]])
    runs.storage.publication("vehicles").outboxes.set_status(refused.outbox, "rejected", reason="a test says so")
    runs.concluded([timeless[1]], sequence=refused.sequence)

    again = relaxed(runs).retry(refused.outbox)

    assert (again.records, again.skipped_newer) == (0, 1)


def test_what_is_refused_again_stays_with_the_new_reason(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded([car(1, 10)])
    refused = runs.concluded([{**broken(1, minutes=1), "colour": {"type": "Text"}}, broken(2)])

    again = relaxed(runs).retry(refused.outbox)

    assert sent_speeds(again, runs) == [("car2", "11")]
    assert [(row["id"], row["rule"]) for row in runs.quarantine(again)] == [("car1", "attr-shape")]
    assert again.quarantined == {"attr-shape": 1}
    assert (still_held_back(refused, runs), still_held_back(again, runs)) == (0, 1)
    assert runs.retry(again.outbox).retried == again.outbox


def test_attributes_that_came_since_are_not_taken_for_removed(preparer: Prepare) -> None:
    runs = preparer(topics={"data_model": "dm-by-attribute"})
    colour = {"colour": {"type": "Text", "value": "red", "metadata": {}}}
    refused = runs.concluded([broken(1, minutes=2)])
    runs.concluded([{**car(1, 10), **colour}])

    again = relaxed(runs).retry(refused.outbox)

    assert (again.records, again.deletes, again.skipped_newer) == (1, 0, 0)
    assert len(runs.held()) == 2


def test_a_newcomer_has_the_topic_once_its_holder_is_gone(preparer: Prepare) -> None:
    source = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"}
    runs = preparer(topics={"collision": "quarantine"}, source=source)
    left, right = {**car(1, 1), "id": "a=b", "type": "c"}, {**car(1, 2), "id": "a", "type": "b=c"}
    refused = runs.concluded([left, right])
    again = runs.retry(refused.outbox)
    for _ in range(2):
        runs.concluded([car(3, 3)])

    last = runs.retry(again.outbox)

    assert again.quarantined == {"topic-collision": 1}
    assert [record["key"] for record in runs.records(last)] == [b'["vehicles","/4wheels","a","b=c"]']
