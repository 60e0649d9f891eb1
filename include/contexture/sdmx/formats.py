"""The formats of structure messages, and how their first bytes and media types tell which one it is."""

from __future__ import annotations

import re
from enum import StrEnum

from contexture.sdmx.errors import StructureMessageError, UnsplittableFormatError


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
        """What a registry is asked for to get it."""
        return MEDIA_TYPES[self]

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
    r"^application/vnd\.sdmx(?:\.structure\+|\.)json\b.*?;\s*version=\"?(\d+\.\d+)", re.IGNORECASE
)
_LONGEST_NAME = 1000
_UNSPLITTABLE = {b"UNA": "SDMX-EDI", b"UNB": "SDMX-EDI", b"PK\x03\x04": "XLSX or another zip file"}
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
_ONE_AT_A_TIME = "ask the registry for one URN at a time; each reply is passed on as it is"


def ml_format(namespace: str) -> tuple[Format, str] | None:
    """Format and part (`message`, `structure`, `registry` …) of an SDMX-ML namespace; None for any other."""
    found = _NAMESPACE.fullmatch(namespace)
    version = _ML_VERSIONS.get(found[1].lower()) if found else None
    return (version, found[2].lower()) if found and version else None


def json_format(schema: str | None, media_type: str | None) -> Format | None:
    """The version of SDMX-JSON by the schema that a message names, or else by its media type."""
    for pattern, text in ((_SCHEMA, schema), (_MEDIA_VERSION, media_type)):
        # What such a text says stands at its beginning; in a long one each word would be looked behind to its end.
        found = pattern.search(text[:_LONGEST_NAME]) if text else None
        if found and found[1] in _JSON_VERSIONS:
            return _JSON_VERSIONS[found[1]]
    return Format.SDMX_JSON_1_0 if media_type and media_type.strip() == "application/vnd.sdmx.json" else None


def is_fusion(media_type: str | None) -> bool:
    """Whether a media type says Fusion-JSON."""
    return bool(media_type) and str(media_type).strip().lower().startswith("application/vnd.fusion.json")


def family(head: bytes, media_type: str | None) -> str:
    """`xml` or `json`, by the first bytes of a message, decoded to UTF-8.

    Raises:
        StructureMessageError: the message is empty, or neither.
        UnsplittableFormatError: it is SDMX-EDI or XLSX.
    """
    text = head.lstrip()
    if text[:1] in {b"<", b"{"}:
        return "xml" if text[:1] == b"<" else "json"
    for magic, name in _UNSPLITTABLE.items():
        if text.startswith(magic):
            raise UnsplittableFormatError(f"{name} can't be split", next_step=_ONE_AT_A_TIME)
    for magic, name in _PACKED.items():
        if head.startswith(magic):
            raise StructureMessageError(f"the message is packed with {name}", next_step="unpack it first")
    hint = f", though its media type is {media_type[:100]}" if media_type else ""
    what = "neither XML nor a JSON object" if text else "empty"
    raise StructureMessageError(
        f"the message is {what}{hint}",
        next_step="look at what the registry answered; an empty answer says nothing about what it holds",
    )
