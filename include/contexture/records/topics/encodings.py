"""Encodings of topic names: Cygnus' own ones, and the injective one, which distinguishes every identity and can be
decoded.

Parts are joined by `__`. Letters, digits and `-` represent themselves; every other character is an escape that begins
with `_`: `_u` for `_`, `_s` for `/`, `_p` for `.`, `_k` for `:`, else its code point as `_hh`, `_whhhh` or `_xhhhhhh`.
A name never holds a dot, because Kafka refuses topics that differ only in `.` and `_`. A name above the limit is cut
and ends in `_-` and the SHA-256 of the whole: it still has one identity only, but can't be read back.

Cygnus' encoding works on UTF-16 code units: `A-Z a-z 0-9 _ - .` represent themselves, `=` becomes `xffff`, every other
unit `x` and its four lower-case hexadecimal digits. An `x` that four hexadecimal digits follow is doubled. The encoding
isn't reversible: `x/` and `x002f` have the same name, as upstream has it. Releases of Cygnus differ:

up to 1.2      parts joined by `_`, other characters than `A-Z a-z 0-9 . -` written `_`, no root path, lower case,
               at most 64 characters
1.3 and 1.4    joined by `xffff`, but only `=` and `x` encoded: every name with a path is illegal
1.5 to 1.9     the names of today in lower case
since 1.10     the names of today
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256

from contexture.errors import DefectError, RejectedError
from contexture.events import ContextIdentity

CONCATENATOR = "xffff"
"""The text between the encoded parts of a name; inserted as it is, never encoded."""

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz0123456789_-."
_AMBIGUOUS_X = re.compile("x(?=[0-9A-Fa-f]{4})")
_CYGNUS_SPECIAL = re.compile("[^A-Za-z0-9_.-]|x(?=[0-9A-Fa-f]{4})")

_ASCII_ESCAPES = {chr(unit): CONCATENATOR if chr(unit) == "=" else f"x{unit:04x}" for unit in range(128)} | {"x": "xx"}
_X = ord("x")


def encode_cygnus(text: str) -> str:
    """Returns the part of a topic name that represents `text`; any string has one, also one with lone surrogates.

    >>> encode_cygnus("/4wheels")
    'x002f4wheels'
    """
    if not text.isascii():
        return _CYGNUS_SPECIAL.sub(_escape_cygnus, text)
    # Most names need no or one kind of escape: deleting what is plain finds them faster than any expression.
    special = text.encode().translate(None, _PLAIN)
    if not special:
        return text
    kinds = set(special)
    if _X in kinds:
        kinds.discard(_X)
        # First, because the look-ahead reads the raw text. The escapes below add no character that is escaped.
        text = _AMBIGUOUS_X.sub("xx", text)
    for unit in kinds:
        character = chr(unit)
        text = text.replace(character, _ASCII_ESCAPES[character])
    return text


def _escape_cygnus(match: re.Match[str]) -> str:
    character = match[0]
    if character.isascii():
        return _ASCII_ESCAPES[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"x{units[start : start + 4]}" for start in range(0, len(units), 4))


MAXIMUM_LENGTH = 249
_LEGAL = re.compile(r"[A-Za-z0-9._-]*")
_SHOWN_CHARACTERS = 80


class TopicNameError(RejectedError):
    """This identity has no topic, or one that Kafka refuses."""


def check_legal(name: str) -> str:
    """Returns the name itself, when Kafka accepts it.

    Raises:
        TopicNameError: the name is empty, `.` or `..`, longer than 249 characters, or holds other characters than
            `A-Z a-z 0-9 . _ -`.
    """
    reason = _illegality(name)
    if reason is None:
        return name
    raise TopicNameError(
        f"the topic name {_shown(name)} {reason}",
        next_step="choose another data model or fixed topics for this publication, or rename the entity in its source",
        topic=name[:MAXIMUM_LENGTH],
        length=len(name),
    )


def _illegality(name: str) -> str | None:
    if not name:
        return "is empty"
    if name in {".", ".."}:
        return "is reserved"
    if len(name) > MAXIMUM_LENGTH:
        return f"has {len(name)} characters; Kafka accepts {MAXIMUM_LENGTH}"
    legal = _LEGAL.match(name)
    if legal is not None and legal.end() < len(name):
        return f"holds {name[legal.end()]!a}; Kafka accepts letters, digits, '.', '_' and '-'"
    return None


def _shown(name: str) -> str:
    return ascii(name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}...")


DATA_MODELS: dict[str, int] = {"dm-by-service": 1, "dm-by-service-path": 2, "dm-by-entity": 4, "dm-by-attribute": 5}
"""The number of parts (service, path, id, type, attribute) in a name of each data model."""


def name_parts(data_model: str, identity: ContextIdentity, attribute: str | None) -> tuple[str, ...]:
    """Returns those of service, path, id, type and attribute that the data model's names hold.

    Raises:
        TopicNameError: the identity has neither id nor type, or the attribute no name.
    """
    wanted = DATA_MODELS[data_model]
    parts = (identity.service, identity.service_path, identity.id, identity.type)
    if wanted > 2 and not identity.id and not identity.type:
        raise TopicNameError(
            "an entity without id and type has no topic", next_step="correct it in its source", identity=identity
        )
    return (*parts, check_attribute(attribute, identity)) if wanted > len(parts) else parts[:wanted]


def check_attribute(attribute: str | None, identity: ContextIdentity) -> str:
    """Returns the attribute's name, where names of topics need one.

    Raises:
        TopicNameError: the name is empty.
    """
    if attribute is None:
        raise DefectError(
            "dm-by-attribute names topics of attributes, but none was given",
            next_step="report this with the publication's topics",
            identity=identity,
        )
    if not attribute:
        raise TopicNameError(
            "an attribute without a name has no topic", next_step="name the attribute in its source", identity=identity
        )
    return attribute


NameMaker = Callable[[ContextIdentity, str | None], str]

LEGACY_LIMIT = 64
LAST_LEGACY, LAST_PARTIAL, LAST_LOWER_CASE = (1, 2), (1, 4), (1, 9)

_NOT_LEGACY = re.compile("[^A-Za-z0-9.-]")
_PARTIAL = re.compile("=|x(?=[0-9A-Fa-f]{4})")


def release(version: str) -> tuple[int, int]:
    """Returns major and minor number of a version such as `1.9.0`."""
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def legacy_names(data_model: str) -> NameMaker:
    """Returns the maker of names as Cygnus had them up to 1.2."""

    def name(identity: ContextIdentity, attribute: str | None) -> str:
        service, *others = name_parts(data_model, identity, attribute)
        if others:
            others[0] = others[0].removeprefix("/")
        return _short_enough("_".join(_NOT_LEGACY.sub("_", part) for part in (service, *filter(None, others))).lower())

    return name


def partial_names(data_model: str) -> NameMaker:
    """Returns the maker of names of Cygnus 1.3 and 1.4; most are illegal, and refused here as brokers did."""

    def name(identity: ContextIdentity, attribute: str | None) -> str:
        service, *others = name_parts(data_model, identity, attribute)
        parts = (service, *others[:1], *filter(None, others[1:]))
        return _taken_by_brokers(CONCATENATOR.join(_PARTIAL.sub(_partially, part) for part in parts))

    return name


def _taken_by_brokers(name: str) -> str:
    try:
        return check_legal(name)
    except TopicNameError as error:
        raise TopicNameError(
            f"{error.message}; brokers refused most names of Cygnus 1.3 and 1.4",
            next_step="leave cygnus_version out, or write the release whose topics consumers read",
            **error.context,
        ) from None


def _partially(match: re.Match[str]) -> str:
    return "xx" if match[0] == "x" else CONCATENATOR


def _short_enough(name: str) -> str:
    if len(name) <= LEGACY_LIMIT:
        return name
    raise TopicNameError(
        f"the topic name {name[:LEGACY_LIMIT]}... has {len(name)} characters; Cygnus up to 1.2 refused more than "
        f"{LEGACY_LIMIT}",
        next_step="use naming cygnus or injective for this publication, or rename the entity in its source",
        length=len(name),
    )


SEPARATOR = "__"
_DIGEST_MARK = "_-"
_SHORT = {"_": "_u", "/": "_s", ".": "_p", ":": "_k"}

_INJECTIVE_SPECIAL = re.compile("[^A-Za-z0-9-]")

_HEAD_LENGTH = MAXIMUM_LENGTH - len(_DIGEST_MARK) - sha256().digest_size * 2


def injective_names(data_model: str) -> NameMaker:
    return lambda identity, attribute: encode_injective(name_parts(data_model, identity, attribute))


def encode_injective(parts: tuple[str, ...]) -> str:
    """Returns the name of these parts, at most 249 characters long; different parts have different names."""
    name = SEPARATOR.join(_INJECTIVE_SPECIAL.sub(_escape_injective, part) for part in parts)
    if len(name) <= MAXIMUM_LENGTH:
        return name
    # A head that ended in `_` would read as a separator together with the mark.
    return f"{name[:_HEAD_LENGTH].rstrip('_')}{_DIGEST_MARK}{sha256(name.encode()).hexdigest()}"


def _escape_injective(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    number = ord(character)
    if number < 0x100:
        return f"_{number:02x}"
    return f"_w{number:04x}" if number < 0x10000 else f"_x{number:06x}"
