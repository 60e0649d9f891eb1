"""Where the artefacts stand in the envelopes of SDMX-ML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.formats import Format, ml_format
from contexture.sdmx.kinds import kind_of_element
from contexture.sdmx.xml_names import parted


class Role(Enum):
    """What an element is in an envelope."""

    MESSAGE = auto()
    """The root of a structure message since 2.1: a header, and all structures in one element."""
    OLD_MESSAGE = auto()
    """The root of a structure message of 1.0 and 2.0: a header, and the containers."""
    INTERFACE = auto()
    """The root of a registry interface message, or one of its requests: structures are somewhere inside."""
    STRUCTURES = auto()
    """It holds containers."""
    CONTAINER = auto()
    """It holds artefacts, mostly of one kind."""
    ARTEFACT = auto()
    HEADER = auto()
    NOTICE = auto()
    """The sender says something about the message."""
    OUTSIDE = auto()
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Root:
    """What the root element tells.

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
_HOLDERS = frozenset({"Structures", "Structure", "QueryStructureResponse"})
_NOTICES = frozenset({"Footer", "StatusMessage"})
_OTHER_CONTENTS = frozenset({"DataSet", "DataSets", "MetadataSet", "MetadataSets", "MetadataReport"})
"""Data and reference metadata, which some senders put where structures are."""


def root(name: str) -> Root:
    """What the message is, by the expanded name of its root.

    Raises:
        StructureMessageError: it is no structure message of SDMX-ML.
    """
    namespace, local = parted(name)
    known = ml_format(namespace)
    if known is None:
        raise StructureMessageError(
            f"the message is XML with the root element {local[:80]}, and no SDMX-ML",
            next_step="look at what the registry answered: it may be a page for people, or a SOAP envelope",
        )
    format_, part = known
    if part == "message" and local == "Structure":
        return Root(format_, Role.OLD_MESSAGE if format_ in _OLD else Role.MESSAGE, namespace)
    if part == "message" and local == "RegistryInterface":
        return Root(format_, Role.INTERFACE, namespace)
    raise StructureMessageError(
        f"the message is a {local[:80]} of {format_}, and holds no structures",
        next_step="look at what the registry answered, or ask for structures",
    )


def role(parent: Role, local: str, attributes: Mapping[str, str]) -> Role:
    """What an element is, by what it is in.

    Raises:
        StructureMessageError: it is data or reference metadata.
    """
    if local in _OTHER_CONTENTS:
        raise StructureMessageError(
            f"the message contains a {local}, which is no structure",
            next_step="look at what the registry answered, or ask for structures",
        )
    if parent is Role.CONTAINER:
        return Role.ARTEFACT
    if local in _NOTICES:
        return Role.NOTICE
    if parent is Role.STRUCTURES:
        return _in_structures(local, attributes)
    if local == "Header":
        return Role.HEADER
    if parent is Role.OLD_MESSAGE:
        return _in_structures(local, attributes)
    if parent is Role.MESSAGE:
        return Role.STRUCTURES if local == "Structures" else Role.OUTSIDE
    if local in _HOLDERS:
        return Role.STRUCTURES
    return Role.INTERFACE if local in _REQUESTS else Role.OUTSIDE


def _in_structures(local: str, attributes: Mapping[str, str]) -> Role:
    # Some senders leave the container out.
    direct = "id" in attributes or kind_of_element(local) is not None
    return Role.ARTEFACT if direct else Role.CONTAINER
