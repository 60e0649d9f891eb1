"""The test's side of a broker that runs in another process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

import httpx
import orjson

from contexture.errors import RetriableError
from contexture_sandbox.context_broker.loading import Loaded, SeedEntity

LINES_AT_ONCE = 5000


class RemoteBroker:
    """Loads and disturbs a test broker over HTTP.

    Args:
        url: the broker's.
        timeout_seconds: of one request.
    """

    def __init__(self, url: str, *, timeout_seconds: float = 60.0) -> None:
        self.url = url
        self._timeout_seconds = timeout_seconds

    def load(self, entities: Iterable[SeedEntity]) -> Loaded:
        """Store entities without any check.

        Raises:
            RetriableError: the broker is not there, or does not understand.
        """
        total = Loaded()
        for lines in _portions(entities):
            done = self._call("POST", "load", b"\n".join(lines))
            total = Loaded(**{name: getattr(total, name) + done[name] for name in Loaded.__dataclass_fields__})
        return total

    def set_faults(self, **faults: object) -> None:
        """Replace all faults: `database_gone`, `delay_seconds`, `faults=[{kind, nth, …}]`, `churn={service, …}`."""
        self._call("POST", "faults", orjson.dumps(faults))

    def clear_faults(self) -> None:
        """Make the broker well again."""
        self._call("DELETE", "faults")

    def stats(self) -> dict[str, object]:
        """Entities by service, requests by kind, pages, notifications."""
        return dict(self._call("GET", "stats"))

    def _call(self, method: str, path: str, body: bytes = b"") -> dict[str, int]:
        try:
            with httpx.Client(timeout=self._timeout_seconds, trust_env=False) as client:
                answer = client.request(method, f"{self.url}/sandbox/{path}", content=body)
                answer.raise_for_status()
        except httpx.HTTPError as error:
            raise RetriableError(
                f"the test broker did not do {path}: {error}", next_step="check that it runs at this URL", url=self.url
            ) from error
        result: dict[str, int] = answer.json()
        return result


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
