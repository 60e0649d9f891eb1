"""The test's side of a server that runs in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from contexture.errors import RetriableError


class RemoteServer:
    """Fills and disturbs a test server over HTTP, below `/sandbox`.

    Args:
        name: of the server, for messages.
        url: the server's.
        timeout_seconds: of one request.
    """

    def __init__(self, name: str, url: str, *, timeout_seconds: float) -> None:
        self.url = url
        self._name = name
        self._timeout_seconds = timeout_seconds

    def clear_faults(self) -> None:
        """Removes all faults."""
        self.call("DELETE", "faults")

    def stats(self) -> dict[str, Any]:
        """Returns what the server counts of its content and its requests."""
        return self.call("GET", "stats")

    def call(
        self, method: str, path: str, body: bytes = b"", parameters: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Sends one request below `/sandbox`, and returns its result.

        Raises:
            RetriableError: the server is not there, or refuses.
        """
        try:
            with httpx.Client(timeout=self._timeout_seconds, trust_env=False) as client:
                answer = client.request(method, f"{self.url}/sandbox/{path}", content=body, params=parameters)
                answer.raise_for_status()
        except httpx.HTTPError as error:
            raise RetriableError(
                f"the {self._name} did not do {path}: {error}",
                next_step="check that it runs at this URL",
                url=self.url,
            ) from error
        result: dict[str, Any] = answer.json()
        return result
