"""How formats are asked for, and whether an answer is what was asked for."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from contexture.sdmx.formats import Format, is_fusion, json_format, ml_format

EDI = "application/vnd.sdmx.structure;version=edi"
EDI_OF_QUERIES = "application/vnd.sdmx.structure+edi"
XLSX = "application/vnd.xlsx"
_UNSPLITTABLE = frozenset(
    {EDI, EDI_OF_QUERIES, XLSX, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
)
_SDMX_JSON_1_0 = "application/vnd.sdmx.json"
_OTHER_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Two pages of one manual name two types.
        EDI: (EDI_OF_QUERIES,),
        EDI_OF_QUERIES: (EDI,),
        Format.SDMX_JSON_1_0.media_type: (_SDMX_JSON_1_0,),
        _SDMX_JSON_1_0: (Format.SDMX_JSON_1_0.media_type,),
    }
)
_PATCH = re.compile(r"(version=\d+\.\d+)\.0$")
_HEAD_BYTES, _END_BYTES = 16_384, 1024
_BEGINNINGS = {True: (b"UNA", b"UNB"), False: (b"PK",)}
_NAMESPACE = re.compile(rb"https?://www\.sdmx\.org/resources/sdmxml/schemas/v\d+_\d+/message", re.IGNORECASE)


def normal(media_type: str) -> str:
    """A media type as it is compared: lower case, without spaces and quotes."""
    return re.sub(r"[\s\"]", "", media_type).lower()


def splittable(media_type: str) -> bool:
    """Whether a message of this type can be split into artefacts; if not, one is asked for at a time."""
    return normal(media_type) not in _UNSPLITTABLE


def accept_values(media_type: str) -> tuple[str, ...]:
    """What to put into Accept, one after the other until the registry knows it.

    >>> accept_values("application/vnd.sdmx.structure+xml;version=3.0.0")
    ('application/vnd.sdmx.structure+xml;version=3.0.0', 'application/vnd.sdmx.structure+xml;version=3.0')
    """
    plain = normal(media_type)
    shorter = _PATCH.sub(r"\1", plain)
    words = (plain, shorter, *_OTHER_WORDS.get(plain, ()))
    return tuple(dict.fromkeys(words))


def format_of(media_type: str) -> Format | None:
    """The format that a media type names; None for one that can't be split, or that nobody knows."""
    plain = normal(media_type)
    if is_fusion(plain):
        return Format.FUSION_JSON
    named = {word: format_ for format_ in Format for word in accept_values(format_.media_type)}
    return named.get(plain) or json_format(None, plain)


def other_format(path: Path, asked: str, told: str) -> str | None:
    """What the message in a file is, where that is not what was asked for.

    Args:
        path: of the message.
        asked: its media type as it was asked for.
        told: the media type that the answer has.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not splittable(asked):
        return None if head.startswith(_BEGINNINGS[_is_edi(asked)]) else (told or "something else")
    wanted = format_of(asked)
    if wanted is None:
        return None
    return _other_json(wanted, head, told) if wanted.is_json else _other_ml(wanted, head, told)


def is_cut_off(path: Path, media_type: str) -> bool:
    """Whether a message that can't be split lacks its end; the others are seen to by splitting."""
    if splittable(media_type):
        return False
    if not _is_edi(media_type):
        return not zipfile.is_zipfile(path)
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _END_BYTES))
        return b"UNZ" not in stream.read()


def _is_edi(media_type: str) -> bool:
    return normal(media_type) in {EDI, EDI_OF_QUERIES}


def _other_json(wanted: Format, head: bytes, told: str) -> str | None:
    found = Format.FUSION_JSON if is_fusion(told) else json_format(None, normal(told))
    is_other = head[:1] == b"<" or found not in {None, wanted}
    return (found or told or "XML") if is_other else None


def _other_ml(wanted: Format, head: bytes, told: str) -> str | None:
    if head[:1] == b"{":
        return told or "JSON"
    namespace = _NAMESPACE.search(head)
    known = ml_format(namespace[0].decode()) if namespace else None
    return known[0] if known and known[0] is not wanted else None
