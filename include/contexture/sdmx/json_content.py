"""What an artefact in JSON says: its members, its references, and the hash of its canonical form.

The canonical form is that of `contexture.events`: keys sorted, no white space, number literals as written. It is hashed
member by member, and long arrays in pieces, so that no tree of a large code list is ever built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256

import msgspec
import orjson

from contexture.events import canonical_json, parse_json
from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.identity import Identity
from contexture.sdmx.references import References

_PIECE_BYTES = 1 << 18
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_MINUS_ZERO = re.compile(rb"-0(?=[\s,\]}])")
_SORTED = orjson.OPT_SORT_KEYS
Members = Mapping[str, msgspec.Raw]


class _DelicateNumberError(Exception):
    """A number is there that a parser may write otherwise than it found it."""


def _refuse_number(_: str) -> float:
    raise _DelicateNumberError


_VALUES = msgspec.json.Decoder(float_hook=_refuse_number)


def members(content: bytes) -> Members:
    """The members of an artefact, each as its bytes.

    Raises:
        StructureMessageError: it is no JSON object.
    """
    try:
        return _MEMBERS.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _invalid(error) from None


def identity(kind: str, found: Members) -> Identity:
    """What the artefact says about itself; SDMX-JSON and Fusion-JSON spell it differently.

    Raises:
        StructureMessageError: a text in it is no JSON.
    """
    try:
        return Identity(
            kind=kind,
            agency=_text(found, "agencyID") or _text(found, "agencyId"),
            id=_text(found, "id"),
            version=_text(found, "version"),
            declared_urn=_text(found, "urn") or _urn_of_links(found),
        )
    except ValueError as error:
        raise _invalid(error) from None


def examine(found: Members, references: References) -> bytes:
    """The hash of the canonical form; references are gathered on the way.

    Raises:
        StructureMessageError: a value is no JSON.
    """
    digest, separator = sha256(), b"{"
    try:
        for key in sorted(found, key=str.encode):
            digest.update(separator + orjson.dumps(key) + b":")
            separator = b","
            for piece in _canonical(memoryview(found[key])):
                digest.update(piece)
                references.read_text(piece)
    except ValueError as error:
        raise _invalid(error) from None
    digest.update(b"}" if found else b"{}")
    return digest.digest()


def _canonical(raw: memoryview) -> Iterator[bytes]:
    if len(raw) <= _PIECE_BYTES or bytes(raw[:1]) != b"[":
        yield _canonical_text(raw)
        return
    separator = b"["
    for piece in _pieces(raw):
        yield separator + _canonical_text(b"[" + piece + b"]")[1:-1]
        separator = b","
    yield b"]"


def _pieces(array: memoryview) -> Iterator[bytes]:
    """The elements of an array, joined to pieces of some size."""
    joined: list[msgspec.Raw] = []
    size = 0
    for element in _ELEMENTS.decode(array):
        joined.append(element)
        size += len(memoryview(element))
        if size > _PIECE_BYTES:
            yield b",".join(joined)
            joined, size = [], 0
    if joined:
        yield b",".join(joined)


def _canonical_text(raw: memoryview | bytes) -> bytes:
    try:
        if not _MINUS_ZERO.search(raw):
            return orjson.dumps(_VALUES.decode(raw), option=_SORTED)
    except (_DelicateNumberError, orjson.JSONEncodeError):
        # With a point, with an exponent, or longer than a machine's: such a number is kept as it is written.
        pass
    return canonical_json(parse_json(bytes(raw)))


def _text(found: Members, key: str) -> str | None:
    value = found.get(key)
    parsed = orjson.loads(memoryview(value)) if value is not None else None
    return parsed if isinstance(parsed, str) and parsed else None


def _urn_of_links(found: Members) -> str | None:
    links = orjson.loads(memoryview(found["links"])) if "links" in found else []
    for link in links if isinstance(links, list) else []:
        if isinstance(link, dict) and link.get("rel") == "self" and isinstance(link.get("urn"), str):
            return str(link["urn"])
    return None


def _invalid(error: Exception) -> StructureMessageError:
    # Only what the parser says about the form: its text holds no content.
    return StructureMessageError(
        f"an artefact is no valid JSON: {str(error)[:120]}",
        next_step="read it again; what a broken message leaves out is not absent",
    )
