"""What a source holds, as the checkpoint speaks of it: entities of a broker, or structures of a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from contexture.events.rules import Rule, Setting, Severity
from contexture.publications import Publication
from contexture.sources.ngsi.rules import catalogue as of_entities
from contexture.sources.sdmx.rules import catalogue as of_structures

SubjectFrame = Literal["entities", "structures"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What rows are about.

    Attributes:
        frame: the name of the frame that has a row for each of them, which is also their name.
        key: the column that tells which one it is.
        rules: the row rules about them.
        rejecting: those of the rules whose error is that of none of them, so that it rejects the run.
        severities: gives the severity of each rule by a publication's settings.
    """

    frame: SubjectFrame
    key: str
    rules: tuple[Rule, ...]
    rejecting: tuple[str, ...]
    severities: Callable[[Mapping[str, Setting]], Mapping[str, Severity]]


ENTITIES = Subject("entities", "identity", of_entities.RULES, of_entities.REJECTING, of_entities.severities)
STRUCTURES = Subject("structures", "urn", of_structures.RULES, of_structures.REJECTING, of_structures.severities)


def subject_of(publication: Publication) -> Subject:
    """What the source of a publication holds."""
    return STRUCTURES if publication.source.kind == "sdmx" else ENTITIES
