"""The test's side of a registry that runs in another process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from contexture_sandbox.registry.model import Action
from contexture_sandbox.remote import RemoteServer


class RemoteRegistry(RemoteServer):
    """Fills and disturbs a test registry over HTTP, whatever its face.

    Args:
        url: the registry's.
        timeout_seconds: of one request.
    """

    def __init__(self, url: str, *, timeout_seconds: float = 60.0) -> None:
        super().__init__("test registry", url, timeout_seconds=timeout_seconds)

    def submit(self, message: bytes, *, action: Action = "Replace") -> dict[str, Any]:
        """One transaction: its number and the URNs that it added, modified and deleted.

        Raises:
            RetriableError: the registry is not there, or refuses.
        """
        return self.call("POST", "submit", message, {"action": action})

    def delete(self, urns: Iterable[str]) -> dict[str, Any]:
        """One transaction that deletes."""
        return self.call("POST", "delete", orjson.dumps(list(urns)))

    def advance(self, seconds: float) -> None:
        """Let the registry's clock jump."""
        self.call("POST", "clock", orjson.dumps({"seconds": seconds}))

    def set_faults(self, *faults: Mapping[str, object]) -> None:
        """Replace all faults: `{kind, nth, times, path, …}`."""
        self.call("POST", "faults", orjson.dumps(faults))
