"""What an artefact in JSON says: its members, its references, and the hash of its canonical form.

The canonical form is that of `contexture.events`: keys sorted, no white space, number literals as written. Large
artefacts are hashed member by member, and their long arrays in pieces, so that no tree of a large code list is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

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


class _DelicateNumberError(Exception):
    """A number is there that a parser may write otherwise than it found it."""


def _refuse_number(_: str) -> float:
    raise _DelicateNumberError


_VALUES = msgspec.json.Decoder(float_hook=_refuse_number)


class _Head(msgspec.Struct, rename={"agency": "agencyID", "agency_of_fusion": "agencyId"}):
    id: Any = None
    agency: Any = None
    agency_of_fusion: Any = None
    version: Any = None
    urn: Any = None
    links: Any = None


_HEADS = msgspec.json.Decoder(_Head)


def read(kind: str, content: bytes, references: References) -> tuple[Identity, bytes]:
    """What the artefact says about itself, and the hash of its canonical form; references are gathered on the way.

    Raises:
        StructureMessageError: it is no JSON object.
    """
    try:
        return _identity(kind, _HEADS.decode(content)), _hash(content, references)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _invalid(error) from None


def _identity(kind: str, head: _Head) -> Identity:
    # SDMX-JSON and Fusion-JSON spell it differently.
    return Identity(
        kind=kind,
        agency=_text(head.agency) or _text(head.agency_of_fusion),
        id=_text(head.id),
        version=_text(head.version),
        declared_urn=_text(head.urn) or _urn_of_links(head.links),
    )


def _hash(content: bytes, references: References) -> bytes:
    digest = sha256()
    for piece in [_canonical_text(content)] if len(content) <= _PIECE_BYTES else _pieces_of_object(content):
        digest.update(piece)
        references.read_text(piece)
    return digest.digest()


def _pieces_of_object(content: bytes) -> Iterator[bytes]:
    found = _MEMBERS.decode(content)
    separator = b"{"
    for key in sorted(found, key=str.encode):
        yield separator + orjson.dumps(key) + b":"
        separator = b","
        yield from _canonical(memoryview(found[key]))
    yield b"}"


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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _urn_of_links(links: object) -> str | None:
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
