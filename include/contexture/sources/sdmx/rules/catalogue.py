"""The rules for structures as data: for checks, for `quality.rules`, and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contexture.events.rules import Catalogue, Rule, Severity
from contexture.sources.sdmx.selectors import Selector

if TYPE_CHECKING:
    from contexture.publications import SdmxPublication

RULES: tuple[Rule, ...] = (
    Rule("unreadable", "error", "what the registry sent is a structure message that can be taken apart", "structure"),
    Rule("one-structure", "error", "the body of a structure holds that one alone", "structure"),
    Rule("urn-missing", "error", "the structure has a URN", "structure"),
    Rule("identity", "error", "agency, id and version are written with the characters that SDMX allows", "structure"),
    Rule("urn-agreement", "warning", "a declared URN is the one that kind, agency, id and version give", "structure"),
    Rule("unknown-kind", "warning", "SDMX's information model has the kind of the structure", "structure"),
    Rule(
        "schema",
        "warning",
        "the schema of its format takes the structure; what is large is let pass",
        "structure",
    ),
    Rule("duplicate-item", "warning", "no two items of one kind in one place have the same id", "structure"),
    Rule(
        "transcoding-loss",
        "warning",
        "what message.allow_lossy lets be converted says all that the registry wrote",
        "structure",
    ),
    Rule("topic-name", "error", "the topic's name is one that Kafka accepts", "record"),
    Rule(
        "duplicate",
        "error",
        "one URN has one content in one snapshot; where that is no error, the last one counts",
        "snapshot",
    ),
    Rule(
        "dangling-reference",
        "warning",
        "what a structure refers to is held, if source.select covers it; ~ and 1.0+ mean any version that fits",
        "snapshot",
    ),
    Rule("version-order", "warning", "a new version is later than those that were published before it", "snapshot"),
    Rule(
        "final-content",
        "warning",
        "a stable version (2.3.1), or one that was published as final (isFinal), keeps its content",
        "snapshot",
    ),
    Rule("count-mismatch", "warning", "as many structures were read as the registry lists", "snapshot"),
    Rule("count-drop", "error", "no more vanish in one run than source.shrink_limit allows", "snapshot"),
    Rule("count-zero", "error", "the registry isn't empty while the target holds something", "snapshot"),
)

REJECTING = ("dangling-reference", "version-order", "final-content", "count-mismatch")
"""Rules of all that is held: no one can say which structure is at fault, so an error rejects the run."""

WITHOUT_CHOICE = ("unreadable", "one-structure", "urn-missing", "topic-name")
"""Always errors: there is nothing that could be sent."""

_CATALOGUE = Catalogue(RULES)

unknown_rules = _CATALOGUE.unknown
severities = _CATALOGUE.severities

# Measured on one core: 1 MB of SDMX-ML takes 0.04 s to split, 0.03 s to validate and 0.03 s for comparing its ids; 1 MB
# of SDMX-JSON takes 0.01 s to validate. A tree takes ten times the bytes of its text.
LARGEST_SCHEMA_BYTES = 8 << 20
LARGEST_ITEMS_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class StructureRuleOptions:
    """What the rules of one run check against.

    Attributes:
        severities: rule to severity; a rule that is absent is off.
        selectors: of the publication's `source.select`; none: everything is selected.
        largest_schema_bytes: artefacts with more bytes aren't validated.
        largest_items_bytes: in artefacts with more bytes, ids of items aren't compared.
    """

    severities: Mapping[str, Severity] = field(default_factory=lambda: severities({}))
    selectors: tuple[Selector, ...] = ()
    largest_schema_bytes: int = LARGEST_SCHEMA_BYTES
    largest_items_bytes: int = LARGEST_ITEMS_BYTES

    @classmethod
    def for_publication(cls, publication: SdmxPublication) -> StructureRuleOptions:
        """The options that a publication's `quality` and `source` say.

        Raises:
            ConfigurationError: `quality.rules` names a rule that there isn't, or a selector can't be read.
        """
        return cls(
            severities=severities(publication.quality.rules),
            selectors=tuple(map(Selector.parse, publication.source.select)),
        )
