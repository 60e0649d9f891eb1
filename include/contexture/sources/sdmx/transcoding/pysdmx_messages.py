"""A structure in a message that pysdmx can read: what it cannot is corrected or left out.

What is left out is reported as lost, because losses are counted from the structure as it was.

It labels every text as English in SDMX-ML and not at all in SDMX-JSON. In SDMX-JSON it writes some references in a
short form that is no URN, lengths as texts, and lists that are empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.transcoding.losses import ENGLISH, LANGUAGE, local, text_of, tree, unicode_of
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
