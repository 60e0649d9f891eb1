"""Times as commands take them: in UTC, from one and before another."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from contexture.errors import ConfigurationError

FORMATS: Final = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]
"""How a time may be written: also as our own output has it."""


def time_span(since: datetime | None, until: datetime | None) -> tuple[datetime | None, datetime | None]:
    """What `--since` and `--until` say, with their zone.

    Raises:
        ConfigurationError: no time is between them.
    """
    if since is not None and until is not None and since >= until:
        raise ConfigurationError("--since is not before --until", next_step="turn them round")
    return _in_utc(since), _in_utc(until)


def _in_utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)
