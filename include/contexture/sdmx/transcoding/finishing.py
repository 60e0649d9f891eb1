"""What pysdmx writes, with what it gets wrong put right where the structure that it read says how it should be.

It labels every text as English in SDMX-ML and not at all in SDMX-JSON. In SDMX-JSON it writes some references in a
short form that is no URN, lengths as texts, and lists that are empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from contexture.sdmx.kinds import HOLDERS, PACKAGES
from contexture.sdmx.transcoding.trees import ENGLISH, LANGUAGE, text_of, tree

_PLURALS = {"name": "names", "description": "descriptions", "text": "texts"}
_FREE_TEXTS = frozenset({*_PLURALS, *_PLURALS.values(), "title", "value"})
_NUMBERS = frozenset({"minLength", "maxLength", "decimals", "interval", "startValue", "endValue"})
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SHORT = re.compile(r"([A-Z][A-Za-z]+)=[^:()\s]+:[^:()\s]+\([^()\s]+\)(?:\.[^()\s]+)?")

Languages = Mapping[str, frozenset[str]]
"""The languages that each text is in, in the structure as it was."""


def finished_xml(message: bytes, languages: Languages) -> bytes:
    """SDMX-ML whose texts say which language they are in."""
    root = tree(message)
    for element in root.iter():
        if element.get(LANGUAGE) is not None:
            element.set(LANGUAGE, _language(element.text or "", languages) or ENGLISH)
    return text_of(root)


def finished_json(message: bytes, languages: Languages) -> bytes:
    """SDMX-JSON whose texts say which language they are in, and whose references are URNs."""
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
