"""The registry behind the HTTP application: what it holds, what is wrong with it, and what it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from contexture_sandbox.http_server import HttpCall, ServerState
from contexture_sandbox.registry.faults import RegistryFaults
from contexture_sandbox.registry.model import Face
from contexture_sandbox.registry.store import Store

PRODUCT_VERSION = "12.4.2"
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Call(HttpCall):
    """One request to the registry.

    Attributes:
        base: the registry's address, as the client knows it.
        empty, half: what a fault does to its response.
    """

    base: str = ""
    empty: bool = False
    half: bool = False

    def share(self, whole: Sequence[Entry]) -> Sequence[Entry]:
        """Returns what a fault leaves of a response."""
        if self.empty:
            return ()
        return whole[: len(whole) // 2] if self.half else whole


class Registry(ServerState):
    """State of one test registry.

    Attributes:
        face: what it looks like.
        version: of the product, for the face of an FMR; below 12 `asOf` is ignored, below 11 there is
            no SDMX-REST 2.
        credentials: passwords by user; who may submit, and see what is restricted.
        checks_references: whether it refuses what would leave a reference to nothing.
        restricted: URNs of structures that are not for the public.
        feeds_registrations: whether its feed lists data registrations; no document says what a Fusion registry does.
        store: structures, data registrations, and the log.
        answers: how many structure messages were put together.
    """

    faults: RegistryFaults

    def __init__(
        self,
        face: Face = "fmr",
        *,
        version: str = PRODUCT_VERSION,
        credentials: Mapping[str, str] | None = None,
        checks_references: bool = False,
    ) -> None:
        self.face = face
        self.version = version
        self.credentials = {"root": "password"} if credentials is None else dict(credentials)
        self.checks_references = checks_references
        self.restricted: set[str] = set()
        self.feeds_registrations = False
        self.store = Store()
        super().__init__(self.store.clock, RegistryFaults())
        self.answers = 0

    @property
    def has_history(self) -> bool:
        """Whether it answers `asOf`."""
        return self.face == "fmr" and self._release >= 12

    @property
    def has_version_2(self) -> bool:
        """Whether it answers structure queries of SDMX-REST 2; Fusion Registry 10 does not."""
        return self.face == "plain" or self._release >= 11

    @property
    def _release(self) -> int:
        return int(self.version.partition(".")[0])
