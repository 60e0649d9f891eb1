"""Putting structure messages together from artefacts, each with its own bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import orjson

from contexture.sources.sdmx import Artefact, Format

SENDER = "SANDBOX"
_HEADER = re.compile(rb"<(?P<name>(?:[^\s<>/:]+:)?Header)\b.*?</(?P=name)\s*>", re.DOTALL)
_DECLARED = re.compile(rb"""\sxmlns(?::([^\s=]+))?\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_END_TAG = re.compile(rb"</([^\s>]+)\s*>")
_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
_ARRAY = re.compile(rb'("(?:[^"\\]|\\.)*"):\[$')
_NAMESPACES = {
    Format.SDMX_ML_2_1: "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message",
    Format.SDMX_ML_3_0: "http://www.sdmx.org/resources/sdmxml/schemas/v3_0/message",
    Format.SDMX_ML_3_1: "http://www.sdmx.org/resources/sdmxml/schemas/v3_1/message",
}
ORDER_OF_2_1 = [
    "OrganisationSchemes",
    "Dataflows",
    "Metadataflows",
    "CategorySchemes",
    "Categorisations",
    "Codelists",
    "HierarchicalCodelists",
    "Concepts",
    "MetadataStructures",
    "DataStructures",
    "StructureSets",
    "ReportingTaxonomies",
    "Processes",
    "Constraints",
    "ProvisionAgreements",
]
_SCHEMAS = {
    Format.SDMX_JSON_1_0: "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/structure-message/tools/"
    "schemas/1.0/sdmx-json-structure-schema.json",
    Format.SDMX_JSON_2_0: "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/develop/structure-message/tools/"
    "schemas/2.0.0/sdmx-json-structure-schema.json",
    Format.SDMX_JSON_2_1: "https://json.sdmx.org/2.1/sdmx-json-structure-schema.json",
}
FORMATS: frozenset[Format] = frozenset({*_NAMESPACES, *_SCHEMAS, Format.FUSION_JSON})
"""What can be stored, and put together again."""


@dataclass(frozen=True, slots=True)
class Container:
    """The container of artefacts of one kind: an element's name and the namespaces it needs, or a JSON member."""

    name: bytes
    namespaces: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def local(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(b":")[2].decode()


def message(format_: Format, artefacts: Sequence[Artefact], *, number: int, prepared_ms: int) -> bytes:
    """A structure message of all the artefacts, which are of its format.

    Its id and the time it was prepared are new in every answer, as they are in those of registries.
    """
    prepared = datetime.fromtimestamp(prepared_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if format_.is_json:
        return _json(format_, _gathered(artefacts), f"IREF{number:06}", prepared)
    return _xml(format_, _gathered(artefacts), f"IREF{number:06}", prepared)


def container_of(artefact: Artefact) -> Container | None:
    """Returns the container of the artefact; None where it had none, or its bytes cannot be put beside others."""
    return _container(artefact.format.is_json, artefact.envelope.before, artefact.envelope.after)


def is_utf8(artefact: Artefact) -> bool:
    """Whether its bytes can stand in a message of UTF-8."""
    before = artefact.envelope.before
    declared = _ENCODING.match(before.removeprefix(b"\xef\xbb\xbf"))
    named = declared is None or declared[1].lower() in {b"utf-8", b"us-ascii", b"ascii"}
    return named and before.removeprefix(b"\xef\xbb\xbf")[:1] in {b"<", b"{"} and b"\0" not in before


@lru_cache(4096)
def _container(is_json: bool, before: bytes, after: bytes) -> Container | None:
    if is_json:
        array = _ARRAY.search(before)
        return Container(array[1]) if array else None
    names = _END_TAG.findall(after)
    if len(names) < 3:
        return None
    declared = {prefix: one or other for prefix, one, other in _DECLARED.findall(_HEADER.sub(b"", before))}
    return Container(names[0], tuple(declared.items()))


def _gathered(artefacts: Iterable[Artefact]) -> dict[Container, list[bytes]]:
    gathered: dict[Container, list[bytes]] = {}
    for artefact in artefacts:
        container = container_of(artefact)
        assert container is not None  # nothing else is stored
        gathered.setdefault(container, []).append(artefact.content)
    return dict(sorted(gathered.items(), key=lambda each: _position(each[0].local)))


def _position(local: str) -> int:
    return ORDER_OF_2_1.index(local) if local in ORDER_OF_2_1 else len(ORDER_OF_2_1)


def _xml(format_: Format, gathered: dict[Container, list[bytes]], identifier: str, prepared: str) -> bytes:
    parts = [
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:Structure xmlns:mes="{_NAMESPACES[format_]}">'
        f"<mes:Header><mes:ID>{identifier}</mes:ID><mes:Test>false</mes:Test><mes:Prepared>{prepared}</mes:Prepared>"
        f'<mes:Sender id="{SENDER}"/></mes:Header>'.encode()
    ]
    # Without structures the schema wants no element for them.
    parts += [b"<mes:Structures>"] if gathered else []
    for container, contents in gathered.items():
        parts += [start_tag(container), *contents, b"</%s>" % container.name]
    parts += [b"</mes:Structures>"] if gathered else []
    return b"".join([*parts, b"</mes:Structure>"])


def start_tag(container: Container) -> bytes:
    """The start tag of a container."""
    # Each container declares its namespaces again, because two messages may use one prefix for different things.
    declared = [b' xmlns%s%s="%s"' % (b":" if prefix else b"", prefix, uri) for prefix, uri in container.namespaces]
    return b"<%s%s>" % (container.name, b"".join(declared))


def _json(format_: Format, gathered: dict[Container, list[bytes]], identifier: str, prepared: str) -> bytes:
    meta: dict[str, object] = {"id": identifier, "test": False, "prepared": prepared, "sender": {"id": SENDER}}
    if format_ in _SCHEMAS:
        meta["schema"] = _SCHEMAS[format_]
    members = b",".join(container.name + b":[" + b",".join(all_) + b"]" for container, all_ in gathered.items())
    if format_ is Format.FUSION_JSON:
        return b'{"meta":' + orjson.dumps(meta) + (b"," if members else b"") + members + b"}"
    return b'{"meta":' + orjson.dumps(meta) + b',"data":{' + members + b"}}"
