"""What is fuzzed: a parser behind one function of bytes, with inputs that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError

Family = Literal["json", "xml", "lines", "request", "yaml", "bytes"]

SOURCE_ERRORS: tuple[type[ContextureError], ...] = (RejectedError, ConfigurationError, RetriableError)
"""What a stranger's document may end in; a `DefectError` would blame us for it."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser.

    Attributes:
        name: by which it is chosen.
        what: that is read, for people.
        parse: takes an input; its result distinguishes the ways that an input can take, and is hashable.
        inputs: real ones and literal ones, by name.
        family: how inputs are taken apart before they are changed.
        words: that mean something to the parser.
        allowed: the errors that may come out.
    """

    name: str
    what: str
    parse: Callable[[bytes], object]
    inputs: Callable[[], Mapping[str, bytes]]
    family: Family
    words: tuple[bytes, ...] = ()
    allowed: tuple[type[ContextureError], ...] = SOURCE_ERRORS


def request(headers: Mapping[str, str], body: bytes = b"", status: int | None = None) -> bytes:
    """Headers and a body as one input: lines, an empty line, the body. An answer has its status in front."""
    first = [] if status is None else [str(status).encode()]
    lines = [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in headers.items()]
    return b"\n".join([*first, *lines]) + b"\n\n" + body


def taken_apart(data: bytes) -> tuple[list[bytes], dict[str, str], bytes]:
    """What `request` joined: lines that are no headers, the headers, the body."""
    head, _, body = data.partition(b"\n\n")
    others: list[bytes] = []
    headers: dict[str, str] = {}
    for line in head.split(b"\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            others.append(line)
            continue
        # A server hands over Latin-1, and no line ends.
        headers[name.decode("latin-1").strip()] = value.decode("latin-1").strip().replace("\r", "")
    return others, headers, body
