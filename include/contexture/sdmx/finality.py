"""Whether a structure says that it is final, so that its content can't change any more."""

from __future__ import annotations

import re

from contexture.sdmx.artefact import Artefact
from contexture.sdmx.encodings import utf8
from contexture.sdmx.versions import Version
from contexture.sdmx.xml_envelope import START_TAG

_ATTRIBUTE = re.compile(rb"\sisFinal\s*=\s*[\"']\s*(?:true|1)\s*[\"']")
# Quotes inside of a JSON text are escaped, so this is a member.
_MEMBER = re.compile(rb'"isFinal"\s*:\s*true\b')


def is_final(artefact: Artefact) -> bool:
    """Whether it is a semantic version without extension, or says `isFinal`, as SDMX has it up to 2.1."""
    return is_stable(artefact.version) or _says_so(artefact)


def is_stable(version: str) -> bool:
    """Whether it is a semantic version without extension, such as 2.3.1; SDMX 3.0 never lets what has one change."""
    try:
        return Version.parse(version).is_stable
    except ValueError:
        return False


def _says_so(artefact: Artefact) -> bool:
    content = utf8(artefact.content, artefact.envelope.before)
    if artefact.format.is_json:
        return _MEMBER.search(content) is not None
    start = START_TAG.match(content)
    return start is not None and _ATTRIBUTE.search(start[0]) is not None
