"""The S3 server of `cluster/` with a count of its requests, taken where they arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from contexture_sandbox.ports import LOOPBACK
from tools.cluster.object_store import ObjectStore

PROGRAM = Path(__file__).with_name("store_program.py")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests to an object store.

    Attributes:
        by_method: how many of each method; `LIST` is a GET of a folder's content.
        received: bytes that the store was sent.
        sent: bytes that it answered with.
    """

    by_method: dict[str, int] = field(default_factory=dict)
    received: int = 0
    sent: int = 0

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.by_method.values())

    @property
    def writing(self) -> int:
        """Those that stores charge most for: PUT, COPY, POST and LIST."""
        return sum(self.by_method.get(name, 0) for name in ("PUT", "POST", "LIST"))

    @classmethod
    def parsed(cls, lines: Iterable[str]) -> Traffic:
        """From the lines that the server's program writes."""
        methods, received, sent = dict[str, int](), 0, 0
        for line in lines:
            method, _, query, _, got, given = json.loads(line)
            name = "LIST" if method == "GET" and "list-type" in query else method
            methods[name] = methods.get(name, 0) + 1
            received, sent = received + got, sent + given
        return cls(methods, received, sent)


class CountedStore(ObjectStore):
    """The same server; `since` gives what it was asked from a moment on.

    Args:
        log: of the server; the notes about requests are in a file beside it.
        progress: gets a line when the server is installed.
    """

    def __init__(self, log: Path, progress: Callable[[str], None]) -> None:
        super().__init__(log, progress)
        self._noted = log.with_suffix(".requests")

    def mark(self) -> int:
        """A moment: how many bytes of notes there are."""
        return self._noted.stat().st_size if self._noted.exists() else 0

    def since(self, mark: int) -> Traffic:
        """What was asked after a moment."""
        with self._noted.open() as file:
            file.seek(mark)
            return Traffic.parsed(line for line in file if line.endswith("\n"))

    def _command(self, program: Path) -> list[str | Path]:
        self._noted.parent.mkdir(parents=True, exist_ok=True)
        # Isolated: modules that lie beside the program are none of the server's.
        return [program.with_name("python"), "-I", PROGRAM, LOOPBACK, str(self.port), self._noted]
