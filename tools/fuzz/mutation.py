"""Changing inputs: as bytes, as what they are (JSON, XML, lines), into what parsers fear (depth, length, numbers)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tools.fuzz.target import Family

MAXIMUM_BYTES = 1 << 19
"""Of an input: enough to show a cost that grows faster than its size."""
_DEPTHS = (40, 101, 257, 1_100, 5_000, 100_000)
_REPEATS = (2, 3, 17, 300, 5_000, 50_000)
_NUMBERS = (
    b"0",
    b"-0",
    b"-1",
    b"1e999",
    b"1E400",
    b"-1.5e-400",
    b"9223372036854775808",
    b"18446744073709551616",
    b"253402300800000",
    b"99999999999999999999",
    b"9" * 5_000,
    b"0." + b"3" * 5_000,
    b"NaN",
    b"Infinity",
    b"00",
    b"0x10",
    b"1_000",
    "٣".encode(),
)
_TEXTS = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"\r\n",
    "\u2028".encode(),
    "\u202e".encode(),
    "e\u0301".encode(),
    "\U0001f600".encode(),
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"../../etc/passwd",
    b"%00",
    b"${jndi}",
    b"9999-12-31T23:59:59-05:00",
    b"0001-01-01T00:00:00+05:00",
    b"2026-02-30T25:61:61Z",
    b"a" * 70_000,
)
_ANY_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_ANY_TEXT = re.compile(rb'"[^"\n]{0,200}"')
_ANY_PIECE = re.compile(
    rb"<[^<>]{1,300}>"
    rb'|"[^"\n]{0,50}"\s*:\s*[^,{}\[\]]{1,80},'
    rb"|[{\[][^{}\[\]]{0,300}[}\]]"
    rb'|"[^"\n]{0,200}"'
    rb"|[^\n]{1,200}\n"
)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**25,
    "",
    "a",
    "\ud800",
    "urn:x:y",
    [],
    {},
    [None],
    {"value": {}},
    {"type": 1, "value": [[]]},
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59-05:00",
    "x" * 5_000,
)

Change = Callable[[Random, bytes, Sequence[bytes]], bytes]


class Mutator:
    """Makes inputs out of inputs, by chance.

    Args:
        random: the chance.
        family: how inputs are taken apart.
        words: that mean something to the parser.
    """

    def __init__(self, random: Random, family: Family, words: Sequence[bytes] = ()) -> None:
        self._random = random
        self._words = (*words, *_TEXTS)
        own: dict[Family, list[Change]] = {
            "json": [_member_changed, _member_changed, _nested, _repeated_piece],
            "xml": [_nested, _repeated_piece, _repeated_piece, _dropped_line],
            "lines": [_dropped_line, _repeated_piece],
            "request": [_dropped_line, _body_changed, _body_changed, _nested],
            "yaml": [_dropped_line, _nested, _repeated_piece],
            "bytes": [],
        }
        self._changes: list[Change] = [*_OF_BYTES, *own[family]]

    def mutated(self, data: bytes, other: bytes) -> bytes:
        """An input changed one to four times; `other` may lend a part of itself."""
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3, 4))):
            change = self._random.choice(self._changes)
            if self._random.random() < 0.1:
                data = _spliced(self._random, data, other)
            data = change(self._random, data, self._words)[:MAXIMUM_BYTES]
        return data


def _place(random: Random, data: bytes) -> int:
    return random.randrange(len(data) + 1)


def _stretch(random: Random, data: bytes) -> tuple[int, int]:
    start = _place(random, data)
    return start, min(len(data), start + random.choice((1, 1, 2, 4, 16, 100, 1_000)))


def _flipped(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _index in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _cut(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _stretch(random, data)
    return data[:start] if random.random() < 0.2 else data[:start] + data[end:]


def _doubled(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _stretch(random, data)
    return data[:end] + data[start:end] * random.choice((1, 1, 2, 50)) + data[end:]


def _with_word(random: Random, data: bytes, words: Sequence[bytes]) -> bytes:
    start, end = _stretch(random, data)
    return data[:start] + random.choice(words) + data[end if random.random() < 0.3 else start :]


def _another_number(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return _replaced(random, data, _ANY_NUMBER, random.choice(_NUMBERS))


def _another_text(random: Random, data: bytes, words: Sequence[bytes]) -> bytes:
    return _replaced(random, data, _ANY_TEXT, b'"' + random.choice(words) + b'"')


def _replaced(random: Random, data: bytes, pattern: re.Pattern[bytes], by: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data + by
    at = random.choice(found)
    return data[: at.start()] + by + data[at.end() :]


def _spliced(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _stretch(random, other)
    at = _place(random, data)
    return data[:at] + other[start:end] + data[at:]


def _many_words(random: Random, data: bytes, words: Sequence[bytes]) -> bytes:
    """Thousands of one word, inside of a text where there is one: expressions that look ahead from each are slow."""
    word = random.choice(words) or b" "
    times = min(random.choice(_REPEATS), MAXIMUM_BYTES // len(word))
    found = list(_ANY_TEXT.finditer(data))
    at = random.choice(found).start() + 1 if found else _place(random, data)
    return data[:at] + word * times + data[at:]


_OF_BYTES: tuple[Change, ...] = (_flipped, _cut, _doubled, _with_word, _another_number, _another_text, _many_words)


def _dropped_line(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    at = random.randrange(len(lines))
    moved = lines.pop(at)
    if random.random() < 0.5:
        lines.insert(random.randrange(len(lines) + 1), moved)
    return b"".join(lines)


def _repeated_piece(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Thousands of one element: what costs more than its length shows here. Half of the time each is a little other."""
    found = list(_ANY_PIECE.finditer(data))
    if not found:
        return data
    at = random.choice(found)
    piece = at[0]
    times = min(random.choice(_REPEATS), MAXIMUM_BYTES // max(1, len(piece) + 8))
    separator = random.choice((b"", b",", b"\n"))
    if random.random() < 0.5:
        many = separator.join(_numbered(piece, number) for number in range(times))
    else:
        many = separator.join([piece] * times)
    return data[: at.start()] + many + data[at.end() :]


def _numbered(piece: bytes, number: int) -> bytes:
    """The piece with a number in its first word."""
    return re.sub(rb"(\w)(?=\W|$)", lambda found: found[1] + str(number).encode(), piece, count=1)


def _nested(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    opening, closing = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"<a>", b"</a>"), (b"(", b")"), (b"- ", b"")))
    depth = min(random.choice(_DEPTHS), MAXIMUM_BYTES // (len(opening) + len(closing) + 1))
    start, end = _stretch(random, data)
    if found := list(_ANY_TEXT.finditer(data)):
        start, end = random.choice(found).span()
    inside = data[start:end] if random.random() < 0.8 else b""
    close = closing * depth if random.random() < 0.7 else b""
    return data[:start] + opening * depth + inside + close + data[end:]


def _body_changed(random: Random, data: bytes, words: Sequence[bytes]) -> bytes:
    head, empty, body = data.partition(b"\n\n")
    return head + empty + _member_changed(random, body, words)


def _member_changed(random: Random, data: bytes, words: Sequence[bytes]) -> bytes:
    """One value of a JSON document becomes another, moves, or goes."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _another_text(random, data, words)
    places = list(_places(document))
    if not places:
        return data
    holder, key = random.choice(places)
    kind = random.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        other_holder, other_key = random.choice(places)
        holder[key] = other_holder[other_key]
    elif kind == 2 and isinstance(holder, dict):
        holder[random.choice(words).decode("utf-8", "replace")[:300]] = random.choice(_VALUES)
    else:
        holder[key] = random.choice(_VALUES)
    try:
        return json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):  # it was put into itself
        return data


def _places(document: Any, limit: int = 2_000) -> Any:
    """Where values of a document stand: what holds each, and its key or index."""
    level, found = [document], 0
    while level and found < limit:
        below = []
        for item in level:
            keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
            for key in keys:
                found += 1
                yield item, key
                below.append(item[key])
        level = below
