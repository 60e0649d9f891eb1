"""The registry behind the HTTP application: what it holds, what is wrong with it, and what it was asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from contexture_sandbox.registry.faults import Faults
from contexture_sandbox.registry.model import Face
from contexture_sandbox.registry.store import Store

REMEMBERED_REQUESTS = 10_000
PRODUCT_VERSION = "12.4.2"
Entry = TypeVar("Entry")


class ConnectionDropped(Exception):  # noqa: N818 - an instruction to the server, never seen by a caller
    """The client is to get no answer at all."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, decoded. Header names are lower case.

    Attributes:
        empty, half: what a fault does to its answer.
    """

    method: str
    segments: tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    base: str = ""
    empty: bool = False
    half: bool = False

    def share(self, whole: Sequence[Entry]) -> Sequence[Entry]:
        """What a fault leaves of an answer."""
        if self.empty:
            return ()
        return whole[: len(whole) // 2] if self.half else whole


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """What a client asked, without its headers (they may hold a secret)."""

    method: str
    path: str
    parameters: Mapping[str, str]


class Registry:
    """State of one test registry.

    Attributes:
        face: what it looks like.
        version: of the product, for the face of an FMR; below 12 `asOf` is ignored, below 11 there is
            no SDMX-REST 2.
        credentials: passwords by user; who may submit, and see what is restricted.
        checks_references: whether it refuses what would leave a reference to nothing.
        restricted: URNs of structures that are not for the public.
        store: structures and the log.
        faults: what is to go wrong.
        requests: the last requests.
        answers: how many structure messages were put together.
    """

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
        self.store = Store()
        self.faults = Faults()
        self.requests: deque[RecordedRequest] = deque(maxlen=REMEMBERED_REQUESTS)
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

    def record(self, method: str, path: str, parameters: Mapping[str, str]) -> None:
        """Remember that a request arrived."""
        self.requests.append(RecordedRequest(method, path, dict(parameters)))
