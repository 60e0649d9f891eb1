"""The formats of structure messages, by their first bytes and by media type."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from contexture.sources.sdmx.errors import StructureMessageError, UnsplittableFormatError
from contexture.sources.sdmx.urn import Urn


class Format(StrEnum):
    """A format of structure messages, by the name people use."""

    SDMX_ML_1_0 = "SDMX-ML 1.0"
    SDMX_ML_2_0 = "SDMX-ML 2.0"
    SDMX_ML_2_1 = "SDMX-ML 2.1"
    SDMX_ML_3_0 = "SDMX-ML 3.0"
    SDMX_ML_3_1 = "SDMX-ML 3.1"
    SDMX_JSON_1_0 = "SDMX-JSON 1.0"
    SDMX_JSON_2_0 = "SDMX-JSON 2.0"
    SDMX_JSON_2_1 = "SDMX-JSON 2.1"
    FUSION_JSON = "Fusion-JSON"

    @property
    def media_type(self) -> str:
        """The media type by which a registry is asked for it."""
        return MEDIA_TYPES[self]

    @property
    def registry_media_type(self) -> str | None:
        """The media type of data registrations in it; None where it has none.

        That of SDMX-JSON follows from SDMX-REST's form of media types alone: its schemas have no registrations.
        """
        if self in {Format.SDMX_ML_1_0, Format.SDMX_ML_2_0, Format.SDMX_JSON_1_0}:
            return None
        return self.media_type.replace(".structure+", ".registry+")

    @property
    def is_json(self) -> bool:
        """Whether its messages are JSON; they are XML else."""
        return "JSON" in self.value


MEDIA_TYPES = {
    Format.SDMX_ML_1_0: "application/vnd.sdmx.structure+xml;version=1.0",
    Format.SDMX_ML_2_0: "application/vnd.sdmx.structure+xml;version=2.0",
    Format.SDMX_ML_2_1: "application/vnd.sdmx.structure+xml;version=2.1",
    Format.SDMX_ML_3_0: "application/vnd.sdmx.structure+xml;version=3.0.0",
    Format.SDMX_ML_3_1: "application/vnd.sdmx.structure+xml;version=3.1.0",
    Format.SDMX_JSON_1_0: "application/vnd.sdmx.structure+json;version=1.0.0",
    Format.SDMX_JSON_2_0: "application/vnd.sdmx.structure+json;version=2.0.0",
    Format.SDMX_JSON_2_1: "application/vnd.sdmx.structure+json;version=2.1.0",
    Format.FUSION_JSON: "application/vnd.fusion.json",
}

_ML_VERSIONS = {
    "v1_0": Format.SDMX_ML_1_0,
    "v2_0": Format.SDMX_ML_2_0,
    "v2_1": Format.SDMX_ML_2_1,
    "v3_0": Format.SDMX_ML_3_0,
    "v3_1": Format.SDMX_ML_3_1,
}
_JSON_VERSIONS = {"1.0": Format.SDMX_JSON_1_0, "2.0": Format.SDMX_JSON_2_0, "2.1": Format.SDMX_JSON_2_1}
_NAMESPACE = re.compile(r"https?://www\.sdmx\.org/resources/sdmxml/schemas/(v\d+_\d+)/(\w+)", re.IGNORECASE)
_SCHEMA = re.compile(r"(?:sdmx-json|json\.sdmx\.org)\S*/(\d+\.\d+)(?:\.\d+)*/", re.IGNORECASE)
_MEDIA_VERSION = re.compile(
    r"^application/vnd\.sdmx(?:\.structure\+|\.registry\+|\.)json\b.*?;\s*version=\"?(\d+\.\d+)", re.IGNORECASE
)
_LONGEST_NAME = 1000
_UNSPLITTABLE = {b"UNA": "SDMX-EDI", b"UNB": "SDMX-EDI", b"PK\x03\x04": "XLSX or another zip file"}
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
_SINGLY = "request one URN at a time from the registry; each response is passed on unchanged"


def ml_format(namespace: str) -> tuple[Format, str] | None:
    """Returns format and part (`message`, `structure`, `registry` …) of an SDMX-ML namespace; None for any other."""
    found = _NAMESPACE.fullmatch(namespace)
    version = _ML_VERSIONS.get(found[1].lower()) if found else None
    return (version, found[2].lower()) if found and version else None


def json_format(schema: str | None, media_type: str | None) -> Format | None:
    """Returns the version of SDMX-JSON by the schema that a message names, or else by its media type."""
    for pattern, text in ((_SCHEMA, schema), (_MEDIA_VERSION, media_type)):
        # The version is at the beginning; in a long text the pattern would search behind each word to its end.
        found = pattern.search(text[:_LONGEST_NAME]) if text else None
        if found and found[1] in _JSON_VERSIONS:
            return _JSON_VERSIONS[found[1]]
    return Format.SDMX_JSON_1_0 if media_type and media_type.strip() == "application/vnd.sdmx.json" else None


def is_fusion(media_type: str | None) -> bool:
    return bool(media_type) and str(media_type).strip().lower().startswith("application/vnd.fusion.json")


def family(head: bytes, media_type: str | None) -> str:
    """Returns `xml` or `json`, by the first bytes of a message, decoded to UTF-8.

    Raises:
        StructureMessageError: the message is empty, or neither.
        UnsplittableFormatError: it is SDMX-EDI or XLSX.
    """
    text = head.lstrip()
    if text[:1] in {b"<", b"{"}:
        return "xml" if text[:1] == b"<" else "json"
    for magic, name in _UNSPLITTABLE.items():
        if text.startswith(magic):
            raise UnsplittableFormatError(f"{name} cannot be split", next_step=_SINGLY)
    for magic, name in _PACKED.items():
        if head.startswith(magic):
            raise StructureMessageError(f"the message is compressed with {name}", next_step="unpack it first")
    hint = f", though its media type is {media_type[:100]}" if media_type else ""
    what = "neither XML nor a JSON object" if text else "empty"
    raise StructureMessageError(
        f"the message is {what}{hint}",
        next_step="check the response of the registry; an empty response does not show what the registry holds",
    )


EDI = "application/vnd.sdmx.structure;version=edi"
EDI_OF_QUERIES = "application/vnd.sdmx.structure+edi"
XLSX = "application/vnd.xlsx"

_UNSPLITTABLE_TYPES = frozenset(
    {EDI, EDI_OF_QUERIES, XLSX, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
)
_SDMX_JSON_1_0 = "application/vnd.sdmx.json"
_OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    # Two pages of one manual name two types.
    EDI: (EDI_OF_QUERIES,),
    EDI_OF_QUERIES: (EDI,),
    Format.SDMX_JSON_1_0.media_type: (_SDMX_JSON_1_0,),
    _SDMX_JSON_1_0: (Format.SDMX_JSON_1_0.media_type,),
}
_PATCH = re.compile(r"(version=\d+\.\d+)\.0$")
_HEAD_BYTES, _END_BYTES = 16_384, 1024
_BEGINNINGS = {True: (b"UNA", b"UNB"), False: (b"PK",)}

_MESSAGE_NAMESPACE = re.compile(rb"https?://www\.sdmx\.org/resources/sdmxml/schemas/v\d+_\d+/message", re.IGNORECASE)


def normal(media_type: str) -> str:
    """Returns a media type as it is compared: lower case, without spaces and quotes."""
    return re.sub(r"[\s\"]", "", media_type).lower()


def splittable(media_type: str) -> bool:
    """Whether a message of this type can be split into artefacts; if not, artefacts are requested singly."""
    return normal(media_type) not in _UNSPLITTABLE_TYPES


def accept_values(media_type: str) -> tuple[str, ...]:
    """Returns values for Accept, in the order to try until the registry knows one.

    >>> accept_values("application/vnd.sdmx.structure+xml;version=3.0.0")
    ('application/vnd.sdmx.structure+xml;version=3.0.0', 'application/vnd.sdmx.structure+xml;version=3.0')
    """
    plain = normal(media_type)
    shorter = _PATCH.sub(r"\1", plain)
    words = (plain, shorter, *_OTHER_WORDS.get(plain, ()))
    return tuple(dict.fromkeys(words))


def format_of(media_type: str) -> Format | None:
    """Returns the format that a media type names; None for one that cannot be split, or is unknown."""
    plain = normal(media_type)
    if is_fusion(plain):
        return Format.FUSION_JSON
    plain = plain.replace("vnd.sdmx.registry+", "vnd.sdmx.structure+")
    named = {word: format_ for format_ in Format for word in accept_values(format_.media_type)}
    return named.get(plain) or json_format(None, plain)


def other_format(path: Path, requested: str, received: str) -> str | None:
    """Returns what the message in a file is, where that is not what was requested.

    Args:
        path: of the message.
        requested: the media type of the request.
        received: the media type of the response.
    """
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not splittable(requested):
        return None if head.startswith(_BEGINNINGS[_is_edi(requested)]) else (received or "something else")
    wanted = format_of(requested)
    if wanted is None:
        return None
    return _other_json(wanted, head, received) if wanted.is_json else _other_ml(wanted, head, received)


def is_cut_off(path: Path, media_type: str) -> bool:
    """Whether a message that cannot be split lacks its end; splitting checks the others."""
    if splittable(media_type):
        return False
    if not _is_edi(media_type):
        return not zipfile.is_zipfile(path)
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _END_BYTES))
        return b"UNZ" not in stream.read()


def _is_edi(media_type: str) -> bool:
    return normal(media_type) in {EDI, EDI_OF_QUERIES}


def _other_json(wanted: Format, head: bytes, received: str) -> str | None:
    found = Format.FUSION_JSON if is_fusion(received) else json_format(None, normal(received))
    is_other = head[:1] == b"<" or found not in {None, wanted}
    return (found or received or "XML") if is_other else None


def _other_ml(wanted: Format, head: bytes, received: str) -> str | None:
    if head[:1] == b"{":
        return received or "JSON"
    namespace = _MESSAGE_NAMESPACE.search(head)
    known = ml_format(namespace[0].decode()) if namespace else None
    return known[0] if known and known[0] is not wanted else None


# SDMX 3.0 renamed it; a registry shows its log and SDMX-JSON by one name, and SDMX-ML 2.1 by the other.
_RENAMED = {"ContentConstraint": "DataConstraint"}


def same_artefact(urn: str) -> str:
    """Returns the URN that identifies an artefact, whatever format it was read in.

    >>> same_artefact("urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=ECB:CR_EXR(1.0)")
    'urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=ECB:CR_EXR(1.0)'
    """
    return _with_class(urn, _RENAMED)


def _with_class(urn: str, classes: Mapping[str, str]) -> str:
    try:
        parsed = Urn.parse(urn)
    except ValueError:
        return urn
    other = classes.get(parsed.class_name)
    return urn if other is None else str(replace(parsed, class_name=other))


def named_in(urn: str, format_: Format) -> str:
    """Returns the URN that an artefact has in messages of a format.

    >>> named_in("urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=ECB:CR_EXR(1.0)", Format.SDMX_ML_2_1)
    'urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=ECB:CR_EXR(1.0)'
    """
    if format_ is not Format.SDMX_ML_2_1:
        return same_artefact(urn)
    return _with_class(urn, {new: old for old, new in _RENAMED.items()})
