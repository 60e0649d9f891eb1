"""The test's side of a broker that runs in another process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

import orjson

from contexture_sandbox.context_broker.loading import Loaded, SeedEntity
from contexture_sandbox.remote import RemoteServer

LINES_AT_ONCE = 5000


class RemoteBroker(RemoteServer):
    """Loads and disturbs a test broker over HTTP.

    Args:
        url: the broker's.
        timeout_seconds: of one request.
    """

    def __init__(self, url: str, *, timeout_seconds: float = 60.0) -> None:
        super().__init__("test broker", url, timeout_seconds=timeout_seconds)

    def load(self, entities: Iterable[SeedEntity]) -> Loaded:
        """Store entities without any check.

        Raises:
            RetriableError: the broker is not there, or does not understand.
        """
        total = Loaded()
        for lines in _portions(entities):
            done = self.call("POST", "load", b"\n".join(lines))
            total = Loaded(**{name: getattr(total, name) + done[name] for name in Loaded.__dataclass_fields__})
        return total

    def set_faults(self, **faults: object) -> None:
        """Replace all faults: `database_gone`, `delay_seconds`, `faults=[{kind, nth, …}]`, `churn={service, …}`."""
        self.call("POST", "faults", orjson.dumps(faults))


def line(seed: SeedEntity) -> bytes:
    """One line of `POST /sandbox/load`."""
    return orjson.dumps(
        {
            "service": seed.service,
            "service_path": seed.service_path,
            "entity": seed.entity,
            "created_at": _time(seed.created_at),
            "modified_at": _time(seed.modified_at),
            "delete": seed.delete,
        }
    )


def _time(moment: datetime | str | None) -> str | None:
    return moment.isoformat() if isinstance(moment, datetime) else moment


def _portions(entities: Iterable[SeedEntity]) -> Iterator[list[bytes]]:
    lines = map(line, entities)
    while portion := list(islice(lines, LINES_AT_ONCE)):
        yield portion
