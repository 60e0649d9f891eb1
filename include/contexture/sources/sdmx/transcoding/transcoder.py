"""Converting one structure: read and written by pysdmx, parsed by us, and compared with the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from io import BytesIO
from typing import Any

from contexture.errors import ConfigurationError, RejectedError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import Format, format_of, named_in, same_artefact
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.transcoding.losses import Fact, Losses, facts, losses
from contexture.sources.sdmx.transcoding.pysdmx_messages import (
    Languages,
    MessageHeader,
    correct_json,
    correct_xml,
    prepare_for_pysdmx,
)

TARGETS: Mapping[Format, str] = {
    Format.SDMX_ML_2_1: "STRUCTURE_SDMX_ML_2_1",
    Format.SDMX_ML_3_0: "STRUCTURE_SDMX_ML_3_0",
    Format.SDMX_ML_3_1: "STRUCTURE_SDMX_ML_3_1",
    Format.SDMX_JSON_2_0: "STRUCTURE_SDMX_JSON_2_0_0",
    Format.SDMX_JSON_2_1: "STRUCTURE_SDMX_JSON_2_1_0",
}
"""What can be converted into, by the names that pysdmx has for it."""

READERS: Mapping[Format, str] = {
    Format.SDMX_ML_2_1: "pysdmx.io.xml.sdmx21.reader.structure",
    Format.SDMX_ML_3_0: "pysdmx.io.xml.sdmx30.reader.structure",
    Format.SDMX_ML_3_1: "pysdmx.io.xml.sdmx31.reader.structure",
    Format.SDMX_JSON_2_0: "pysdmx.io.json.sdmxjson2.reader.structure",
}
"""What can be converted from, by the modules of pysdmx that read it."""

_SOURCES: Mapping[Format, tuple[Format, ...]] = {
    # The nearest first. SDMX-JSON 2.1 is left out: pysdmx does not read the official samples of it.
    Format.SDMX_ML_2_1: (Format.SDMX_ML_3_0, Format.SDMX_JSON_2_0),
    Format.SDMX_ML_3_0: (Format.SDMX_JSON_2_0, Format.SDMX_ML_2_1),
    Format.SDMX_ML_3_1: (Format.SDMX_ML_3_0, Format.SDMX_JSON_2_0, Format.SDMX_ML_2_1),
    Format.SDMX_JSON_2_0: (Format.SDMX_ML_3_0, Format.SDMX_ML_2_1),
    Format.SDMX_JSON_2_1: (Format.SDMX_JSON_2_0, Format.SDMX_ML_3_0, Format.SDMX_ML_2_1),
}

# pysdmx writes them all the same, as elements that the format doesn't have.
_SINCE_3_0 = """
    DataConstraint GeoGridCodelist GeographicCodelist Hierarchy HierarchyAssociation MetadataConstraint
    MetadataProviderScheme MetadataProvisionAgreement RepresentationMap StructureMap ValueList
"""
_OF_2_1 = frozenset({"DataConstraint"})


def target_format(media_type: str) -> Format | None:
    """Returns the format that a media type names, if structures can be converted into it."""
    found = format_of(media_type)
    return found if found in TARGETS else None


def source_formats(target: Format) -> tuple[Format, ...]:
    """Returns what to request from a registry that does not write a format, the nearest format first."""
    return _SOURCES[target]


def has_place_for(target: Format, kind: str) -> bool:
    """Whether a format has messages of structures of this kind; a `DataConstraint` has another name in SDMX-ML 2.1."""
    return target is not Format.SDMX_ML_2_1 or kind in _OF_2_1 or kind not in _SINCE_3_0.split()


LARGEST_BYTES = 16 << 20
"""Of a structure that is converted; pysdmx holds it as trees, which take many times its bytes."""


class NotTranscodableError(RejectedError):
    """This structure cannot be converted: too large, of a kind or content that pysdmx does not support."""


@dataclass(frozen=True, slots=True)
class Transcoded:
    """A converted structure.

    Attributes:
        artefact: as our own splitting reads it from the converted message.
        source: the format that it was converted from.
        losses: what it no longer contains.
    """

    artefact: Artefact
    source: Format
    losses: Losses


def transcode(
    artefact: Artefact, target: Format, moment: datetime, *, largest_bytes: int = LARGEST_BYTES
) -> Transcoded:
    """Converts a structure to another format. The same arguments return the same bytes.

    Args:
        artefact: the structure as its registry wrote it.
        target: one of `TARGETS`.
        moment: when it was read: the time of a message that has none in its header.
        largest_bytes: of a structure that is converted.

    Raises:
        NotTranscodableError: it cannot be converted, or would become another structure.
        ConfigurationError: the library by which pysdmx reads SDMX-ML is not installed.
    """
    if artefact.size > largest_bytes:
        raise _refused(artefact, f"has more than {largest_bytes:,} bytes, which is the limit for converting")
    if artefact.format not in READERS:
        raise _refused(artefact, f"is written in {artefact.format}, which nothing is converted from")
    if not has_place_for(target, artefact.kind):
        raise _refused(artefact, f"is a {artefact.kind}, which {target} has no place for")
    try:
        written = _converted(artefact, target, moment)
    except ImportError as error:
        raise ConfigurationError(
            f"converting structures needs what pysdmx reads SDMX-ML with: {error.name} is not installed",
            next_step="pip install 'pysdmx[xml]' where Spark's tasks run, or leave out message.allow_lossy",
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        # The library raises any error of its code: each means that it does not support this structure.
        raise _refused(artefact, f"can't be converted into {target}: {type(error).__name__} in pysdmx") from error
    result = _read_back(artefact, target, written)
    return Transcoded(result, artefact.format, losses(artefact, result))


def _converted(artefact: Artefact, target: Format, moment: datetime) -> bytes:
    message, header = prepare_for_pysdmx(artefact, moment)
    languages = _languages(artefact)
    written = _written(_structures(message, artefact.format), artefact, target, header)
    return (correct_json if target.is_json else correct_xml)(written, languages)


def _structures(message: str, source: Format) -> list[Any]:
    # Its readers are called by name: what the format is need not be guessed, and a text is never taken for a path or
    # an address. Real registries write what their schemas refuse.
    read = import_module(READERS[source]).read
    found = read(message, validate=False)
    return list((found.structures if source.is_json else found) or ())


def _written(structures: list[Any], artefact: Artefact, target: Format, header: MessageHeader) -> bytes:
    from msgspec.structs import replace
    from pysdmx.io import write_sdmx
    from pysdmx.io.format import Format as PysdmxFormat
    from pysdmx.model import Organisation
    from pysdmx.model.message import Header

    urn = named_in(str(artefact.urn), target)
    named = [replace(each, urn=urn) for each in structures] if len(structures) == 1 else structures
    head = Header(id=header.id, prepared=header.prepared, sender=Organisation(id=header.sender))
    written = write_sdmx(named, PysdmxFormat[TARGETS[target]], prettyprint=False, header=head)
    return str(written).encode()


def _languages(artefact: Artefact) -> Languages:
    found: dict[str, set[str]] = {}
    is_labelled: Callable[[Fact], bool] = lambda fact: fact.is_text and bool(fact.language)  # noqa: E731
    for fact in filter(is_labelled, facts(artefact)):
        found.setdefault(fact.value, set()).add(fact.language)
    return {text: frozenset(languages) for text, languages in found.items()}


def _read_back(artefact: Artefact, target: Format, written: bytes) -> Artefact:
    try:
        found = list(split(BytesIO(written), target.media_type))
    except StructureMessageError as error:
        raise _refused(artefact, f"comes out broken in {target}: {error.message}") from error
    if len(found) != 1:
        raise _refused(artefact, f"comes out as {len(found)} structures in {target}: pysdmx doesn't carry it")
    result = found[0]
    if result.format is not target or same_artefact(str(result.urn)) != same_artefact(str(artefact.urn)):
        raise _refused(artefact, f"comes out as another structure in {target}: {result.urn}")
    return result


def _refused(artefact: Artefact, why: str) -> NotTranscodableError:
    return NotTranscodableError(
        f"{artefact.urn} {why}",
        next_step="ask for another source.media_type, or leave this structure out of source.select",
    )
