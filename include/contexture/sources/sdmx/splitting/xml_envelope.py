"""The message around one artefact of SDMX-ML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from xml.sax.saxutils import quoteattr

from contexture.sources.sdmx.errors import StructureMessageError
from contexture.sources.sdmx.formats import Format, ml_format
from contexture.sources.sdmx.splitting.artefact import FrameParts, MessageFrame
from contexture.sources.sdmx.splitting.encodings import Encoding
from contexture.sources.sdmx.splitting.xml_content import parted
from contexture.sources.sdmx.urn import REGISTRATION, kind_of_element


class Role(Enum):
    """What an element is in an envelope."""

    MESSAGE = auto()
    """The root of a structure message since 2.1: a header, and all structures in one element."""
    OLD_MESSAGE = auto()
    """The root of a structure message of 1.0 and 2.0: a header, and the containers."""
    INTERFACE = auto()
    """The root of a registry interface message, or one of its requests: structures are somewhere inside."""
    REGISTRATIONS = auto()
    """A part of a registry interface message that holds data registrations, or parts that do."""
    STRUCTURES = auto()
    """It holds containers."""
    CONTAINER = auto()
    """It holds artefacts, mostly of one kind."""
    ARTEFACT = auto()
    HEADER = auto()
    NOTICE = auto()
    """The sender says something about the message."""
    SUCCESS = auto()
    """The sender says that there is nothing to say about the message."""
    OUTSIDE = auto()
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Root:
    """What the root element shows.

    Attributes:
        format: of the message.
        role: of the root.
        namespace: of messages, as this one writes it.
    """

    format: Format
    role: Role
    namespace: str


_OLD = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})
_REQUESTS = frozenset({"SubmitStructureRequest", "NotifyRegistryEvent", "StructuralEvent"})
_ABOUT_REGISTRATIONS = frozenset(
    {
        "QueryRegistrationResponse",
        "QueryResult",
        "DataResult",
        "MetadataResult",
        "SubmitRegistrationsRequest",
        "RegistrationRequest",
        "RegistrationEvent",
    }
)
_HOLDERS = frozenset({"Structures", "Structure", "QueryStructureResponse"})
_INTERFACES = frozenset({"RegistryInterface", "QueryRegistrationResponse", "SubmitRegistrationsRequest"})
_NOTICES = frozenset({"Footer", "StatusMessage"})
_OTHER_CONTENTS = frozenset({"DataSet", "DataSets", "MetadataSet", "MetadataSets", "MetadataReport"})
"""Data and reference metadata, which some senders put where structures are."""


def root(name: str) -> Root:
    """Returns what the message is, by the expanded name of its root.

    Raises:
        StructureMessageError: it is no structure message of SDMX-ML.
    """
    namespace, local = parted(name)
    known = ml_format(namespace)
    if known is None:
        raise StructureMessageError(
            f"the message is XML with the root element {local[:80]}, and not SDMX-ML",
            next_step="check the response of the registry: it may be a page for people, or a SOAP envelope",
        )
    format_, part = known
    if part == "message" and local == "Structure":
        return Root(format_, Role.OLD_MESSAGE if format_ in _OLD else Role.MESSAGE, namespace)
    if part == "message" and local in _INTERFACES:
        return Root(format_, Role.INTERFACE, namespace)
    raise StructureMessageError(
        f"the message is a {local[:80]} of {format_}, and holds no structures",
        next_step="check the response of the registry, or request structures",
    )


def role(parent: Role, local: str, attributes: Mapping[str, str]) -> Role:
    """Returns what an element is, by what it is in.

    Raises:
        StructureMessageError: it is data or reference metadata.
    """
    if local in _OTHER_CONTENTS:
        raise StructureMessageError(
            f"the message contains a {local}, which is not a structure",
            next_step="check the response of the registry, or request structures",
        )
    if parent is Role.CONTAINER:
        return Role.ARTEFACT
    if local in _NOTICES:
        is_success = parent is Role.REGISTRATIONS and attributes.get("status") == "Success"
        return Role.SUCCESS if is_success else Role.NOTICE
    if parent is Role.STRUCTURES:
        return _in_structures(local, attributes)
    if local == "Header":
        return Role.HEADER
    if parent is Role.OLD_MESSAGE:
        return _in_structures(local, attributes)
    if parent is Role.MESSAGE:
        return Role.STRUCTURES if local == "Structures" else Role.OUTSIDE
    return _in_interface(parent, local)


def _in_interface(parent: Role, local: str) -> Role:
    if parent is Role.REGISTRATIONS and local == REGISTRATION:
        return Role.ARTEFACT
    if local in _ABOUT_REGISTRATIONS:
        return Role.REGISTRATIONS
    if local in _HOLDERS:
        return Role.STRUCTURES
    return Role.INTERFACE if local in _REQUESTS else Role.OUTSIDE


def _in_structures(local: str, attributes: Mapping[str, str]) -> Role:
    # Some senders leave the container out.
    direct = "id" in attributes or kind_of_element(local) is not None
    return Role.ARTEFACT if direct else Role.CONTAINER


Prefixes = Mapping[str, str]
"""Namespaces by prefix; the default namespace has the prefix ""."""

START_TAG = re.compile(rb"<([^\s/>\"']+)[^>\"']*+(?:\"[^\"]*+\"[^>\"']*+|'[^']*+'[^>\"']*+)*+>")
_DECLARATION = re.compile(rb"\s*<\?xml\b.*?\?>", re.DOTALL)
_WITHOUT_STRUCTURES = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0})


@dataclass(frozen=True, slots=True)
class Level:
    """An element around artefacts.

    Attributes:
        role: what it is.
        name: its expanded name.
        tag: its start tag, as it was written.
        prefixes: what is declared where it begins.
    """

    role: Role
    name: str
    tag: bytes
    prefixes: Prefixes

    @property
    def end_tag(self) -> bytes:
        return end_tag(self.tag)


def end_tag(tag: bytes) -> bytes:
    found = START_TAG.match(tag)
    return b"</%s>" % (found[1] if found else b"")


def build_message_frame(
    root: Root, prolog: bytes, header: bytes, levels: Sequence[Level], encoding: Encoding
) -> MessageFrame:
    """Builds the message around what is inside `levels`.

    A structure message stays as it is: prolog, start tags and header are its own bytes. So does a response with data
    registrations. Of any other registry interface message, which may request an action unrelated to the artefact, a
    structure message or such a response is made.

    Args:
        root: what the message is.
        prolog: all before the root's start tag.
        header: the whole header, or nothing.
        levels: the elements around the artefact, the root first.
        encoding: of the message.
    """
    parts = None
    if levels[-1].role is Role.REGISTRATIONS:
        before, after = _own_response(prolog, header, levels) or _response(root, prolog, header, levels)
    elif root.role is Role.INTERFACE:
        before, after = _structure_message(root, prolog, header, levels)
    else:
        parts = _parts(prolog, header, levels)
        before, after = parts.head + parts.opening, parts.closing + parts.tail
    return MessageFrame(encoding.bom + encoding.encoded(before), encoding.encoded(after), parts)


def _parts(prolog: bytes, header: bytes, levels: Sequence[Level]) -> FrameParts:
    last = levels[-1]
    container = last if last.role is Role.CONTAINER else None
    around = levels[:-1] if container else levels
    return FrameParts(
        head=b"".join((prolog, levels[0].tag, header, *(level.tag for level in around[1:]))),
        opening=container.tag if container else b"",
        container=parted(container.name)[1] if container else "",
        closing=container.end_tag if container else b"",
        tail=b"".join(level.end_tag for level in reversed(around)),
        prefixes=last.prefixes,
    )


def _structure_message(root: Root, prolog: bytes, header: bytes, levels: Sequence[Level]) -> tuple[bytes, bytes]:
    first, last = levels[0], levels[-1]
    prefix = _unused(first.prefixes, last.prefixes)
    declaration = _DECLARATION.match(prolog)
    before = [
        declaration[0] if declaration else b"",
        _tag(prefix, "Structure", {**first.prefixes, prefix: root.namespace}),
    ]
    before.append(header)
    after = [f"</{prefix}:Structure>".encode()]
    in_container = last.role is Role.CONTAINER
    if root.format in _WITHOUT_STRUCTURES:
        local = parted(last.name)[1] if in_container else "Structures"
        before.append(_tag(prefix, local, last.prefixes))
        after.append(f"</{prefix}:{local}>".encode())
    else:
        before.append(_tag(prefix, "Structures", last.prefixes))
        after.append(f"</{prefix}:Structures>".encode())
        if in_container:
            before.append(last.tag)
            after.append(last.end_tag)
    return b"".join(before), b"".join(reversed(after))


def _own_response(prolog: bytes, header: bytes, levels: Sequence[Level]) -> tuple[bytes, bytes] | None:
    """Returns what is around a registration in a response to a query; None in any other message.

    The status is written anew, with the prefix of the result: it is that of the one registration.
    """
    if [parted(level.name)[1] for level in levels[:3]] != [
        "RegistryInterface",
        "QueryRegistrationResponse",
        "QueryResult",
    ]:
        return None
    response, result = levels[1:3]
    tag = START_TAG.match(result.tag)
    prefix = tag[1].decode().rpartition(":")[0] if tag else ""
    if response.prefixes.get(prefix) != parted(result.name)[0]:
        return None
    status = f'<{prefix}{":" if prefix else ""}StatusMessage status="Success"/>'.encode()
    before = (prolog, levels[0].tag, header, response.tag, status, *(level.tag for level in levels[2:]))
    return b"".join(before), b"".join(level.end_tag for level in reversed(levels))


def _response(root: Root, prolog: bytes, header: bytes, levels: Sequence[Level]) -> tuple[bytes, bytes]:
    """Returns a response to a query for registrations, which requests nothing."""
    first, last = levels[0], levels[-1]
    message = _unused(first.prefixes, last.prefixes)
    registry = _unused({**first.prefixes, message: ""}, last.prefixes)
    declaration = _DECLARATION.match(prolog)
    declared = {**last.prefixes, message: root.namespace, registry: f"{root.namespace.removesuffix('message')}registry"}
    result = parted(last.name)[1]
    result = result if result == "MetadataResult" else "DataResult"
    matches = "true" if result == "MetadataResult" else "false"
    before = (
        declaration[0] if declaration else b"",
        _tag(message, "RegistryInterface", {**first.prefixes, message: root.namespace}),
        header,
        _tag(message, "QueryRegistrationResponse", declared),
        f'<{registry}:StatusMessage status="Success"/><{registry}:QueryResult timeSeriesMatch="{matches}">'.encode(),
        f"<{registry}:{result}>".encode(),
    )
    after = (
        f"</{registry}:{result}></{registry}:QueryResult></{message}:QueryRegistrationResponse>"
        f"</{message}:RegistryInterface>"
    )
    return b"".join(before), after.encode()


def _tag(prefix: str, local: str, prefixes: Prefixes) -> bytes:
    declared = "".join(
        f" xmlns{':' if each else ''}{each}={quoteattr(namespace)}"
        for each, namespace in prefixes.items()
        if each != "xml" and (namespace or not each)
    )
    return f"<{prefix}:{local}{declared}>".encode()


def _unused(*scopes: Prefixes) -> str:
    prefix = "message"
    while any(prefix in scope for scope in scopes):
        prefix += "_"
    return prefix
