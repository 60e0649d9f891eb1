"""Topic names that tell every identity apart and can be read back.

Parts are joined by `__`. Letters, digits and `-` stand for themselves; every other character is an escape that begins
with `_`: `_u` for `_`, `_s` for `/`, `_p` for `.`, `_k` for `:`, else its code point as `_hh`, `_whhhh` or `_xhhhhhh`.
A name never holds a dot, because Kafka refuses topics that differ only in `.` and `_`. A name above the limit is cut
and ends in `_-` and the SHA-256 of the whole: it still has one identity only, but can't be read back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from contexture.events import ContextIdentity
from contexture.topics.legality import MAXIMUM_LENGTH, TopicNameError
from contexture.topics.parts import DATA_MODELS, name_parts
from contexture.topics.releases import NameMaker

SEPARATOR = "__"
_DIGEST_MARK = "_-"
_SHORT = {"_": "_u", "/": "_s", ".": "_p", ":": "_k"}
_READ_SHORT = {escape: character for character, escape in _SHORT.items()}
_SPECIAL = re.compile("[^A-Za-z0-9-]")
_TOKEN = re.compile("(__)|(_[uspk])|_([0-9a-f]{2})|_w([0-9a-f]{4})|_x([0-9a-f]{6})|([A-Za-z0-9-]+)")
_SHORTENED = re.compile("(?:^|[^_])_-[0-9a-f]{64}$")
_HEAD_LENGTH = MAXIMUM_LENGTH - len(_DIGEST_MARK) - sha256().digest_size * 2


@dataclass(frozen=True, slots=True)
class DecodedName:
    """What a topic name stands for; None for what names of its data model don't hold."""

    service: str
    service_path: str | None = None
    id: str | None = None
    type: str | None = None
    attribute: str | None = None


def injective_names(data_model: str) -> NameMaker:
    """Names of one data model."""

    def name(identity: ContextIdentity, attribute: str | None) -> str:
        return encode(name_parts(data_model, identity, attribute))

    return name


def encode(parts: tuple[str, ...]) -> str:
    """The name of these parts, at most 249 characters long; different parts have different names."""
    name = SEPARATOR.join(_SPECIAL.sub(_escape, part) for part in parts)
    if len(name) <= MAXIMUM_LENGTH:
        return name
    # A head that ended in `_` would read as a separator together with the mark.
    return f"{name[:_HEAD_LENGTH].rstrip('_')}{_DIGEST_MARK}{sha256(name.encode()).hexdigest()}"


def decode(name: str) -> DecodedName:
    """What the name stands for.

    Raises:
        TopicNameError: it was shortened, or isn't a name of this encoding.
    """
    if _SHORTENED.search(name):
        raise TopicNameError(
            "the topic name was shortened to its SHA-256 and can't be read back",
            next_step="take the identity from a record's key (message.key: identity)",
            topic=name[:MAXIMUM_LENGTH],
        )
    parts = _parts(name)
    # Only what `encode` writes is read, so no two names stand for the same parts.
    if parts is None or len(parts) not in DATA_MODELS.values() or encode(parts) != name:
        raise TopicNameError(
            "this is no topic name of naming injective",
            next_step="give a name as `contexture preview` shows it",
            topic=name[:MAXIMUM_LENGTH],
        )
    return DecodedName(*parts)


def _parts(name: str) -> tuple[str, ...] | None:
    parts, position = [""], 0
    while position < len(name):
        token = _TOKEN.match(name, position)
        if token is None:
            return None
        if token[1]:
            parts.append("")
        else:
            parts[-1] += _character(token)
        position = token.end()
    return tuple(parts)


def _character(token: re.Match[str]) -> str:
    _, short, byte, unit, point, plain = token.groups()
    if plain or short:
        return plain or _READ_SHORT[short]
    number = int(byte or unit or point, 16)
    return chr(number) if number <= 0x10FFFF else ""


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    number = ord(character)
    if number < 0x100:
        return f"_{number:02x}"
    return f"_w{number:04x}" if number < 0x10000 else f"_x{number:06x}"
