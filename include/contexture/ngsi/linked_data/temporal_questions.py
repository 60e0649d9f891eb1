"""A stretch of an NGSI-LD broker's history as URL parameters, and what its answer says of how much it holds.

GS CIM 009: the temporal query language is clause 4.11, the query 5.7.4, answers that hold a part 6.3.10. Whether
`between` holds its ends differs from broker to broker, so one millisecond more is asked for, and times are looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from contexture.ngsi.entity import broker_time
from contexture.ngsi.linked_data.questions import TypeQuestion
from contexture.ngsi.paging import broker_text

TEMPORAL_ENTITIES = "/ngsi-ld/v1/temporal/entities"
MILLISECOND = timedelta(milliseconds=1)
_LONGEST_RANGE = 200

_MOMENT = r"\d{4}-\d\d-\d\dT[^/]*?"
_RANGE = re.compile(rf"\s*date-time\s+{_MOMENT}-(?P<end>{_MOMENT})/\S+\s*", re.IGNORECASE)
_TIMES = {"timeproperty": "modifiedAt", "options": "sysAttrs"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a history, UTC; its end is not in it. Both are whole milliseconds."""

    start: datetime
    end: datetime

    def __contains__(self, time: datetime) -> bool:
        return self.start <= time < self.end

    def parameters(self) -> dict[str, str]:
        """Asks for what happened in it, and perhaps right before it."""
        asked = {"timerel": "between", "timeAt": broker_text(self.start - MILLISECOND)}
        return {**asked, "endTimeAt": broker_text(self.end), **_TIMES}

    def halves(self, told: datetime | None) -> tuple[Stretch, Stretch] | None:
        """Two stretches, cut at the time that was told if that is inside, else in the middle; None if it can't be."""
        cut = whole_millisecond(told) if told is not None else self.start
        if not self.start < cut < self.end:
            cut = whole_millisecond(self.start + (self.end - self.start) / 2)
        if cut == self.start:
            return None
        return Stretch(self.start, cut), Stretch(cut, self.end)


def whole_millisecond(time: datetime) -> datetime:
    """The time cut to milliseconds, as brokers show them."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def history_parameters(question: TypeQuestion, stretch: Stretch) -> dict[str, str]:
    """Asks how the selected entities changed in a stretch; paging is added by who pages."""
    return question.selection() | stretch.parameters()


def last_known_parameters(types: str, ids: str, before: datetime) -> dict[str, str]:
    """Asks what was known of each attribute of these entities (joined by commas) before a time."""
    asked = {"type": types, "id": ids, "timerel": "before", "timeAt": broker_text(before), "lastN": "1"}
    return asked | _TIMES


def range_end(content_range: str) -> datetime | None:
    """The latest time that an answer holds by its Content-Range; None where that can't be told.

    It is `date-time <start>-<end>/<size>`, without `lastN` in the order of time (clause 6.3.10).
    """
    found = _RANGE.fullmatch(content_range) if len(content_range) <= _LONGEST_RANGE else None
    return broker_time(found["end"]) if found else None
