"""Converting one structure: read and written by pysdmx, parsed by us, and compared with the original.

What pysdmx cannot read is corrected or left out before. What is left out is reported as lost, because losses are
counted from the structure as it was.

pysdmx labels every text as English in SDMX-ML and not at all in SDMX-JSON. In SDMX-JSON it writes some references in
a short form that is no URN, lengths as texts, and lists that are empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from typing import Any

import orjson

from contexture.errors import ConfigurationError, RejectedError
from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import Format, format_of, named_in, same_artefact
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.transcoding.losses import (
    ENGLISH,
    LANGUAGE,
    Fact,
    Losses,
    facts,
    local,
    losses,
    text_of,
    tree,
    unicode_of,
)
from contexture.sources.sdmx.urn import HOLDERS, PACKAGES

_PLURALS = {"name": "names", "description": "descriptions", "text": "texts"}
_FREE_TEXTS = frozenset({*_PLURALS, *_PLURALS.values(), "title", "value"})
_NUMBERS = frozenset({"minLength", "maxLength", "decimals", "interval", "startValue", "endValue"})
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SHORT = re.compile(r"([A-Z][A-Za-z]+)=[^:()\s]+:[^:()\s]+\([^()\s]+\)(?:\.[^()\s]+)?")

Languages = Mapping[str, frozenset[str]]
"""The languages that each text is in, in the structure as it was."""


def correct_xml(message: bytes, languages: Languages) -> bytes:
    """Returns SDMX-ML whose texts name their language."""
    root = tree(message)
    for element in root.iter():
        if element.get(LANGUAGE) is not None:
            element.set(LANGUAGE, _language(element.text or "", languages) or ENGLISH)
    return text_of(root)


def correct_json(message: bytes, languages: Languages) -> bytes:
    """Returns SDMX-JSON whose texts name their language, and whose references are URNs."""
    document = orjson.loads(message)
    document["meta"]["test"] = False
    _finish(document["data"], languages)
    return orjson.dumps(document)


def _finish(value: Any, languages: Languages) -> None:
    if isinstance(value, list):
        for number, each in enumerate(value):
            value[number] = _completed(each) if isinstance(each, str) else each
            _finish(each, languages)
    elif isinstance(value, dict):
        for name, each in list(value.items()):
            if each == []:
                del value[name]
            elif isinstance(each, str) and name not in _FREE_TEXTS:
                value[name] = int(each) if name in _NUMBERS and _WHOLE.fullmatch(each) else _completed(each)
            else:
                _finish(each, languages)
        _label(value, languages)


def _label(members: dict[str, Any], languages: Languages) -> None:
    for one, several in _PLURALS.items():
        text = members.get(one)
        language = _language(text, languages) if isinstance(text, str) and several not in members else None
        if language:
            members[several] = {language: text}


def _language(text: str, languages: Languages) -> str | None:
    known = languages.get(" ".join(text.split()), frozenset())
    return ENGLISH if ENGLISH in known else min(known, default=None)


def _completed(text: str) -> str:
    short = _SHORT.fullmatch(text)
    if short is None:
        return text
    package = PACKAGES.get(HOLDERS.get(short[1], short[1]))
    return f"urn:sdmx:org.sdmx.infomodel.{package}.{text}" if package else text


# A message with one of them fails as a whole.
_STUMBLED_OVER = frozenset({"AnnotationValue", "CodelistExtension", "ISOConceptReference"})
_ID = re.compile(r"[A-Za-z0-9_@$\-]{1,200}")
_AGENCY = re.compile(r"[A-Za-z0-9_@$\-.]{1,200}")
_JSON_SCHEMA = (
    "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/develop/structure-message/tools/schemas/2.0.0/"
    "sdmx-json-structure-schema.json"
)


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The header of the converted message: id, time and sender of the message that the registry wrote."""

    id: str
    prepared: datetime
    sender: str


def prepare_for_pysdmx(artefact: Artefact, moment: datetime) -> tuple[str, MessageHeader]:
    """Builds a message of this structure alone, and its header.

    It is of SDMX-ML 2.1 or later, or SDMX-JSON 2.0; `moment` is for a header without the time of its preparation.

    Raises:
        ValueError: it cannot be parsed after all.
    """
    return _json(artefact, moment) if artefact.format.is_json else _xml(artefact, moment)


def _xml(artefact: Artefact, moment: datetime) -> tuple[str, MessageHeader]:
    root = tree(artefact.message())
    header = _header(_header_of_xml(next((child for child in root if local(child.tag) == "Header"), None)), moment)
    for element in [each for each in root.iter() if local(each.tag) in _STUMBLED_OVER]:
        element.getparent().remove(element)
    return unicode_of(root), header


def _header_of_xml(element: Any) -> Mapping[str, Any]:
    found = {} if element is None else {local(child.tag): child for child in element}
    sender = found.get("Sender")
    return {
        "id": found["ID"].text if "ID" in found else None,
        "prepared": found["Prepared"].text if "Prepared" in found else None,
        "sender": None if sender is None else sender.get("id"),
    }


def _json(artefact: Artefact, moment: datetime) -> tuple[str, MessageHeader]:
    message = orjson.loads(artefact.message())
    meta = message.get("meta")
    written = meta if isinstance(meta, dict) else {}
    sender = written.get("sender")
    header = _header({**written, "sender": sender.get("id") if isinstance(sender, dict) else None}, moment)
    head = {
        "schema": _JSON_SCHEMA,
        "id": header.id,
        "test": False,
        "prepared": header.prepared.isoformat(),
        "sender": {"id": header.sender},
    }
    return orjson.dumps({"meta": head, "data": message["data"]}).decode(), header


def _header(written: Mapping[str, Any], moment: datetime) -> MessageHeader:
    identifier, sender = str(written.get("id") or "").strip(), str(written.get("sender") or "").strip()
    return MessageHeader(
        identifier if _ID.fullmatch(identifier) else "UNKNOWN",
        _time(written.get("prepared")) or moment,
        sender if _AGENCY.fullmatch(sender) else "UNKNOWN",
    )


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text or "").strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


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
        raise _refused(artefact, f"is a {artefact.kind}, which {target} cannot express")
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
        raise _refused(artefact, f"cannot be converted into {target}: {type(error).__name__} in pysdmx") from error
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
        raise _refused(artefact, f"is broken after conversion into {target}: {error.message}") from error
    if len(found) != 1:
        raise _refused(artefact, f"becomes {len(found)} structures in {target}: pysdmx cannot convert it")
    result = found[0]
    if result.format is not target or same_artefact(str(result.urn)) != same_artefact(str(artefact.urn)):
        raise _refused(artefact, f"becomes another structure in {target}: {result.urn}")
    return result


def _refused(artefact: Artefact, why: str) -> NotTranscodableError:
    return NotTranscodableError(
        f"{artefact.urn} {why}",
        next_step="set another source.media_type, or leave this structure out of source.select",
    )
