"""Which formats structures are converted from and into, and which kinds a format has no place for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from contexture.sdmx.formats import Format
from contexture.sdmx.registries.media_types import format_of

TARGETS: Mapping[Format, str] = MappingProxyType(
    {
        Format.SDMX_ML_2_1: "STRUCTURE_SDMX_ML_2_1",
        Format.SDMX_ML_3_0: "STRUCTURE_SDMX_ML_3_0",
        Format.SDMX_ML_3_1: "STRUCTURE_SDMX_ML_3_1",
        Format.SDMX_JSON_2_0: "STRUCTURE_SDMX_JSON_2_0_0",
        Format.SDMX_JSON_2_1: "STRUCTURE_SDMX_JSON_2_1_0",
    }
)
"""What can be converted into, by the names that pysdmx has for it."""

READERS: Mapping[Format, str] = MappingProxyType(
    {
        Format.SDMX_ML_2_1: "pysdmx.io.xml.sdmx21.reader.structure",
        Format.SDMX_ML_3_0: "pysdmx.io.xml.sdmx30.reader.structure",
        Format.SDMX_ML_3_1: "pysdmx.io.xml.sdmx31.reader.structure",
        Format.SDMX_JSON_2_0: "pysdmx.io.json.sdmxjson2.reader.structure",
    }
)
"""What can be converted from, by the modules of pysdmx that read it."""

_SOURCES: Mapping[Format, tuple[Format, ...]] = MappingProxyType(
    {
        # The nearest first. SDMX-JSON 2.1 is left out: pysdmx does not read the official samples of it.
        Format.SDMX_ML_2_1: (Format.SDMX_ML_3_0, Format.SDMX_JSON_2_0),
        Format.SDMX_ML_3_0: (Format.SDMX_JSON_2_0, Format.SDMX_ML_2_1),
        Format.SDMX_ML_3_1: (Format.SDMX_ML_3_0, Format.SDMX_JSON_2_0, Format.SDMX_ML_2_1),
        Format.SDMX_JSON_2_0: (Format.SDMX_ML_3_0, Format.SDMX_ML_2_1),
        Format.SDMX_JSON_2_1: (Format.SDMX_JSON_2_0, Format.SDMX_ML_3_0, Format.SDMX_ML_2_1),
    }
)

# pysdmx writes them all the same, as elements that the format doesn't have.
_SINCE_3_0 = frozenset(
    {
        "DataConstraint",
        "GeoGridCodelist",
        "GeographicCodelist",
        "Hierarchy",
        "HierarchyAssociation",
        "MetadataConstraint",
        "MetadataProviderScheme",
        "MetadataProvisionAgreement",
        "RepresentationMap",
        "StructureMap",
        "ValueList",
    }
)
_OF_2_1 = frozenset({"DataConstraint"})


def target_format(media_type: str) -> Format | None:
    """The format that a media type names, if structures can be converted into it."""
    found = format_of(media_type)
    return found if found in TARGETS else None


def source_formats(target: Format) -> tuple[Format, ...]:
    """What a registry is asked for in place of a format that it doesn't write, the nearest first."""
    return _SOURCES[target]


def has_place_for(target: Format, kind: str) -> bool:
    """Whether a format has messages of structures of this kind; a `DataConstraint` has another name in SDMX-ML 2.1."""
    return target is not Format.SDMX_ML_2_1 or kind in _OF_2_1 or kind not in _SINCE_3_0
