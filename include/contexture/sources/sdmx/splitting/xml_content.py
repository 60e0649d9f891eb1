"""The content of one element while it is parsed: its canonical form, hashed, and the references in it.

The canonical form is the sequence of the parser's events: for each element its expanded name, its attributes sorted,
its content, and an end. Prefixes, comments, processing instructions, the way characters are written and the order of
attributes are not in it, nor is white space between elements of SDMX-ML. It is written as JSON texts, because orjson
sorts and writes them faster than Python could.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from contexture.sources.sdmx.errors import Limits
from contexture.sources.sdmx.splitting.identity import References

XSI_TYPE = "http://www.w3.org/2001/XMLSchema-instance type"
_SDMX = re.compile(r"https?://www\.sdmx\.org/resources/sdmxml/schemas/(?=v\d)", re.IGNORECASE)


def parted(name: str) -> tuple[str, str]:
    """Namespace and local name; the parser has a space between them."""
    namespace, _, local = name.rpartition(" ")
    return namespace, local


def shortened(name: str) -> str:
    """Returns the name without the part of its namespace that all of SDMX-ML has in common."""
    return _SDMX.sub("", name, count=1)


def is_foreign(name: str) -> bool:
    """Whether an element is of another vocabulary, such as a text in XHTML: white space in it may be content."""
    return " " in name and not _SDMX.match(name)


Attributes = dict[str, str]
Start = Callable[[str, Attributes], None]
End = Callable[[str], None]
Text = Callable[[str], None]
Install = Callable[[Start, End, Text], None]
"""Makes the parser call these three from now on."""

_END = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is the same for all elements of a message.

    Attributes:
        install: sets the parser's handlers.
        names: short names by the parser's, as far as they are known; elements of other vocabularies are not in it.
        expand: the short name that a text such as `str:CodelistType` represents where the parser is.
        limits: of depth.
    """

    install: Install
    names: dict[str, str]
    expand: Callable[[str], str]
    limits: Limits


class ContentCollector:
    """Takes in one element from its start, which was seen, to its end, at which it calls `done`.

    Attributes:
        references: what the content refers to, as far as it was flushed.
    """

    def __init__(self, surroundings: Surroundings, references: References, done: Callable[[], None]) -> None:
        self.references = references
        self._around = surroundings
        self._done = done
        self._digest = sha256()
        self._events: list[Any] = []
        self._pieces: list[str] = []
        self._is_whole = True

    @property
    def content_hash(self) -> bytes:
        """SHA-256 of the canonical form."""
        return self._digest.digest()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is inside; for the moment of its end."""
        return self._is_whole and len(self._events) == 3

    def begin(self, name: str, attributes: Attributes) -> None:
        """Takes over from the parser's start of the element."""
        self._append_start(name, attributes)
        if name not in self._around.names and is_foreign(name):
            self._install_foreign(depth=1, back=None)
        else:
            self._around.names[name] = self._events[0]
            self._install_plain()

    def flush(self) -> None:
        """Hashes what is complete; called now and then, it keeps memory small."""
        kept = _last_starts(self._events)
        del self._events[len(self._events) - len(kept) :]
        if self._events:
            written = orjson.dumps(self._events, option=orjson.OPT_SORT_KEYS)
            self._digest.update(written[1:-1])
            self._digest.update(b",")
            self.references.read(self._events, written)
            self._is_whole = False
        self._events[:] = kept

    def _install_plain(self) -> None:
        # Called for each element, so all is in local variables, and what can happen once for many doesn't happen here.
        events, pieces, names = self._events, self._pieces, self._around.names
        append, pop = events.append, pieces.pop
        expand, deepest = self._around.expand, self._around.limits.depth
        depth = 1

        def start(name: str, attributes: Attributes) -> None:
            nonlocal depth
            if pieces:
                text = pop() if len(pieces) == 1 else self._text()
                if not text.isspace():
                    append(text)
            depth += 1
            if depth > deepest:
                raise self._around.limits.too_deep()
            try:
                append(names[name])
            except KeyError:
                append(self._new_name(name, depth, (start, end, pieces.append)))
            append(_typed(attributes, expand) if XSI_TYPE in attributes else attributes)

        def end(_: str) -> None:
            nonlocal depth
            if pieces:
                text = pop() if len(pieces) == 1 else self._text()
                if not text.isspace() or (events and type(events[-1]) is dict):
                    append(text)
            append(_END)
            depth -= 1
            if not depth:
                self._done()

        self._around.install(start, end, pieces.append)

    def _new_name(self, name: str, depth: int, back: tuple[Start, End, Text]) -> str:
        short = shortened(name)
        if is_foreign(name):
            self._install_foreign(depth, back)
        else:
            self._around.names[name] = short
        return short

    def _install_foreign(self, depth: int, back: tuple[Start, End, Text] | None) -> None:
        """Handlers within an element of another vocabulary: all white space counts there."""
        outermost, limits = depth, self._around.limits

        def start(name: str, attributes: Attributes) -> None:
            nonlocal depth
            self._append_text()
            depth += 1
            if depth > limits.depth:
                raise limits.too_deep()
            self._append_start(name, attributes)

        def end(_: str) -> None:
            nonlocal depth
            self._append_text()
            if back and depth == outermost:
                # It is the end of an element that began under the other handlers.
                self._around.install(*back)
                back[1]("")
                return
            self._events.append(_END)
            depth -= 1
            if depth < outermost:
                self._done()

        self._around.install(start, end, self._pieces.append)

    def _append_start(self, name: str, attributes: Attributes) -> None:
        short = self._around.names.get(name) or shortened(name)
        self._events += (short, _typed(attributes, self._around.expand))

    def _append_text(self) -> None:
        if self._pieces:
            self._events.append(self._text())

    def _text(self) -> str:
        whole = "".join(self._pieces)
        self._pieces.clear()
        return whole


def _last_starts(events: list[Any]) -> list[Any]:
    """The starts that nothing follows yet: what is in such an element, and what a reference there is to, is open."""
    start = len(events)
    while start and type(events[start - 1]) is dict:
        start -= 2
    return events[start:]


def _typed(attributes: Attributes, expand: Callable[[str], str]) -> Attributes:
    if XSI_TYPE not in attributes:
        return attributes
    return {**attributes, XSI_TYPE: expand(attributes[XSI_TYPE])}
