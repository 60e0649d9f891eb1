"""The test's side of a registry that runs in another process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import httpx
import orjson

from contexture.errors import RetriableError
from contexture_sandbox.registry.model import Action


class RemoteRegistry:
    """Fills and disturbs a test registry over HTTP, whatever its face.

    Args:
        url: the registry's.
        timeout_seconds: of one request.
    """

    def __init__(self, url: str, *, timeout_seconds: float = 60.0) -> None:
        self.url = url
        self._timeout_seconds = timeout_seconds

    def submit(self, message: bytes, *, action: Action = "Replace") -> dict[str, Any]:
        """One transaction: its number and the URNs that it added, modified and deleted.

        Raises:
            RetriableError: the registry is not there, or refuses.
        """
        return self._call("POST", "submit", message, {"action": action})

    def delete(self, urns: Iterable[str]) -> dict[str, Any]:
        """One transaction that deletes."""
        return self._call("POST", "delete", orjson.dumps(list(urns)))

    def advance(self, seconds: float) -> None:
        """Let the registry's clock jump."""
        self._call("POST", "clock", orjson.dumps({"seconds": seconds}))

    def set_faults(self, *faults: Mapping[str, object]) -> None:
        """Replace all faults: `{kind, nth, times, path, …}`."""
        self._call("POST", "faults", orjson.dumps(faults))

    def clear_faults(self) -> None:
        """Make the registry well again."""
        self._call("DELETE", "faults")

    def stats(self) -> dict[str, Any]:
        """Face, structures, transactions, requests, answers."""
        return self._call("GET", "stats")

    def _call(
        self, method: str, path: str, body: bytes = b"", parameters: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        try:
            with httpx.Client(timeout=self._timeout_seconds, trust_env=False) as client:
                answer = client.request(method, f"{self.url}/sandbox/{path}", content=body, params=parameters)
                answer.raise_for_status()
        except httpx.HTTPError as error:
            raise RetriableError(
                f"the test registry did not do {path}: {error}",
                next_step="check that it runs at this URL",
                url=self.url,
            ) from error
        result: dict[str, Any] = answer.json()
        return result
