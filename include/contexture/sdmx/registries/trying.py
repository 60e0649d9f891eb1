"""Small questions that show what an address is."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from contexture.sdmx.registries.answers import OK
from contexture.sdmx.registries.port import ANY, Query
from contexture.sdmx.registries.transport import Question, Transport

SMALL = Query("AgencyScheme")
"""Something that most registries hold, and little of it."""
_STRUCTURES = (b"Structure", b'"data"', b'"meta"', b'"structures"')
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a question.

    Attributes:
        status: of the answer.
        body: its beginning, where it is 200.
        is_registrys: a refusal in the words of SDMX.
    """

    status: int
    body: bytes = b""
    is_registrys: bool = False

    @property
    def has_structures(self) -> bool:
        """Whether it looks like a structure message, and not like the page of a web server."""
        # Written in UTF-16, it has the same letters with zeros between them.
        body = self.body.replace(b"\0", b"")
        is_page = b"<html" in body[:1024].lower()
        return self.status == OK and not is_page and any(mark in body for mark in _STRUCTURES)


def tried(transport: Transport, path: str, accept: str = f"{ANY}/{ANY}") -> Attempt:
    """The answer to a small question; tried once.

    Raises:
        RegistryUnavailableError: nothing answers, or it is ill.
        ConfigurationError: it refuses us, or is no registry.
    """
    with tempfile.TemporaryDirectory(prefix="contexture-trying-") as folder:
        into = Path(folder) / "answer"
        fetched = transport.fetch(Question(path, accept), into)
        if not fetched.size:
            return Attempt(fetched.status, is_registrys=fetched.is_registrys)
        with into.open("rb") as stream:
            return Attempt(fetched.status, stream.read(_HEAD_BYTES))
