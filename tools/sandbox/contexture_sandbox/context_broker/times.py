"""Times as an NGSIv2 broker keeps and shows them.

Orion stores its own times finer than it shows them: milliseconds are shown, cut off, not rounded. Here they are stored
as microseconds since 1970 and never fall on a whole millisecond, so what is shown is never equal to what is stored
(observed on Orion: `dateModified==<shown>` finds nothing).
"""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from threading import Lock

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ISO_START = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]|$)")


class Clock:
    """The broker's clock: it follows the system's clock, or a test freezes it at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0
        self._frozen: int | None = None
        self._offset = 0

    def now(self) -> int:
        """The present in microseconds since 1970: increasing with every call, unless frozen."""
        if self._frozen is not None:
            return self._frozen
        with self._lock:
            self._last = _off_the_millisecond(max(time.time_ns() // 1000 + self._offset, self._last + 1))
            return self._last

    def freeze(self, at: datetime | None = None) -> None:
        """Stand still at `at` (now when None): everything written from here on has the same times."""
        moment = self.now() if at is None else microseconds(at)
        self._frozen = _off_the_millisecond(moment)

    def advance(self, seconds: float) -> None:
        """Jump; negative seconds go back, as a badly kept clock does."""
        if self._frozen is not None:
            self._frozen = _off_the_millisecond(self._frozen + int(seconds * MICROSECONDS))
        else:
            self._offset += int(seconds * MICROSECONDS)
            self._last = 0

    def resume(self) -> None:
        """Tick again, by the system's clock."""
        self._frozen = None
        self._offset = 0


def _off_the_millisecond(moment: int) -> int:
    return moment if moment % 1000 else moment + 1


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // _MICROSECOND


def instant(moment_us: int) -> datetime:
    """The aware datetime (UTC) of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=moment_us)


def shown(moment_us: int) -> str:
    """A stored time as the API shows it: `2026-11-21T05:38:57.863Z`."""
    seconds, rest = divmod(moment_us, MICROSECONDS)
    return f"{_second(seconds)}.{rest // 1000:03d}Z"


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def parse_time(text: str) -> int | None:
    """Microseconds since 1970 of an ISO 8601 date or time, None when it is neither; without a zone it is UTC."""
    if not _ISO_START.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def is_date(value: object) -> bool:
    """Whether a value is a text that `parse_time` can read."""
    return isinstance(value, str) and parse_time(value) is not None


def http_date(moment_us: int) -> str:
    """A time as the `Date` header shows it."""
    return format_datetime(instant(moment_us), usegmt=True)


def stored(value: str | datetime | date | None) -> int | None:
    """A time given from outside (ISO text or datetime) as it is stored; None stays None.

    Raises:
        ValueError: the text is no time.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        return microseconds(value)
    moment = parse_time(str(value))
    if moment is None:
        raise ValueError(f"not a time: {value!s:.60}")
    return moment
