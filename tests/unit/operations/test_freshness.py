"""How old the source is as Kafka shows it, and when that is too old for the schedule."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contexture.operations.status.freshness import Freshness, assess_freshness

HOURLY = "0 * * * *"


def at(hour: int, minute: int = 0, *, day: int = 2) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("until", "schedule", "now", "expected"),
    [
        (None, HOURLY, at(12), Freshness()),
        (at(10), None, at(12), Freshness(at(10), 7_200.0)),
        # The run of 11:00 may work until the one of 12:00 is due.
        (at(10, 1), HOURLY, at(11, 59), Freshness(at(10, 1), 7_080.0, at(11), 0.0)),
        (at(10, 1), HOURLY, at(12), Freshness(at(10, 1), 7_140.0, at(11), 0.0)),
        (at(10, 1), HOURLY, at(12, 30), Freshness(at(10, 1), 8_940.0, at(11), 1_800.0)),
        (at(6), "@daily", at(5, day=3), Freshness(at(6), 82_800.0, at(0, day=3), 0.0)),
        (at(6), "@daily", at(0, 1, day=4), Freshness(at(6), 151_260.0, at(0, day=3), 60.0)),
        # The clock of the source is ahead.
        (at(12, 1), HOURLY, at(12), Freshness(at(12, 1), 0.0, at(13), 0.0)),
    ],
)
def test_a_publication_is_late_when_a_second_scheduled_run_is_due(
    until: datetime | None, schedule: str | None, now: datetime, expected: Freshness
) -> None:
    assert assess_freshness(until, schedule, now) == expected
    assert expected.is_late == (expected.late_seconds > 0)
