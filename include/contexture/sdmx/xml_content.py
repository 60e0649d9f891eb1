"""The content of one element while it is parsed: its canonical form, hashed, and the references in it.

The canonical form is the sequence of what the parser tells: for each element its expanded name, its attributes sorted,
its content, and an end. Prefixes, comments, processing instructions, the way characters are written and the order of
attributes are not in it, nor is white space between elements of SDMX-ML. It is written as JSON texts, because orjson
sorts and writes them faster than Python could.

Each element costs two calls of Python; nothing else may happen there that can happen once for thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from contexture.sdmx.limits import Limits
from contexture.sdmx.references import References
from contexture.sdmx.xml_names import XSI_TYPE, ShortNames

_EVENTS_AT_ONCE = 8192
_END = 0
Attributes = dict[str, str]


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the parser calls within the element."""

    start: Callable[[str, Attributes], None]
    end: Callable[[str], None]
    text: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of an element at its end."""

    content_hash: bytes
    empty: bool


def collect(  # noqa: C901  # closures: with the attributes of an object, each element would cost a third more
    attributes: Attributes,
    name: str,
    *,
    names: ShortNames,
    expand: Callable[[str], str],
    references: References,
    limits: Limits,
    done: Callable[[Content], None],
) -> Handlers:
    """Handlers for what is inside an element that just began; `done` is called at its end.

    Args:
        attributes: of the element.
        name: of the element, expanded.
        names: shortens names; kept for the whole message.
        expand: the name that a text such as `str:CodelistType` stands for where the parser is.
        references: gets what the content refers to.
        limits: of its depth.
        done: gets the hash.
    """
    digest = sha256()
    events: list[Any] = [names[name], _typed(attributes, expand)]
    append = events.append
    pieces: list[str] = []
    foreign = names.foreign
    deepest = limits.depth
    depth = 1
    leaf = True
    nothing = True
    foreign_from = 1 if name in foreign else 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth, leaf, foreign_from, nothing
        if pieces:
            text = pieces[0] if len(pieces) == 1 else "".join(pieces)
            pieces.clear()
            if foreign_from or not text.isspace():
                append(text)
        depth += 1
        leaf = True
        nothing = False
        append(names[name])
        append(_typed(attributes, expand) if XSI_TYPE in attributes else attributes)
        if depth > deepest:
            raise limits.too_deep()
        if foreign and not foreign_from and name in foreign:
            foreign_from = depth

    def end(_: str) -> None:
        nonlocal depth, leaf, foreign_from, nothing
        if pieces:
            nothing = False
            text = pieces[0] if len(pieces) == 1 else "".join(pieces)
            pieces.clear()
            if leaf or foreign_from or not text.isspace():
                append(text)
        append(_END)
        leaf = False
        if depth == foreign_from:
            foreign_from = 0
        depth -= 1
        if not depth:
            flush()
            done(Content(digest.digest(), nothing))
        elif len(events) > _EVENTS_AT_ONCE:
            flush()

    def flush() -> None:
        written = orjson.dumps(events, option=orjson.OPT_SORT_KEYS)
        digest.update(written[1:-1])
        digest.update(b",")
        references.read(events, written)
        events.clear()

    return Handlers(start, end, pieces.append)


def _typed(attributes: Attributes, expand: Callable[[str], str]) -> Attributes:
    if XSI_TYPE not in attributes:
        return attributes
    return {**attributes, XSI_TYPE: expand(attributes[XSI_TYPE])}
