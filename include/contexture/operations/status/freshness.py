"""The freshness of a publication: how old the source is as Kafka shows it, measured against the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contexture.publications.schedule import times_after


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old the source is as Kafka shows it.

    Attributes:
        until: up to when the source was read by the last concluded run; None before the first.
        age_seconds: how long ago that was.
        due_at: when the scheduled run starts that is due to read it again; None without a schedule.
        late_seconds: how long the run after that has been due too; 0 while the publication keeps its schedule.
    """

    until: datetime | None = None
    age_seconds: float | None = None
    due_at: datetime | None = None
    late_seconds: float = 0.0

    @property
    def is_late(self) -> bool:
        """Whether the publication does not keep its schedule."""
        return self.late_seconds > 0


UNKNOWN: Final = Freshness()


def assess_freshness(until: datetime | None, schedule: str | None, now: datetime) -> Freshness:
    """Returns the freshness of a publication.

    It is late when a scheduled run has not published anything before the next one is due: until then the run may still
    be working.

    Args:
        until: up to when the source was read by the last concluded run.
        schedule: by which runs start now; None where only people and events start them, or it is suspended.
        now: the time of the assessment.
    """
    if until is None:
        return UNKNOWN
    age = max(0.0, (now - until).total_seconds())
    if schedule is None:
        return Freshness(until, age)
    times = times_after(schedule, until)
    due_at, following = next(times), next(times)
    return Freshness(until, age, due_at, max(0.0, (now - following).total_seconds()))
