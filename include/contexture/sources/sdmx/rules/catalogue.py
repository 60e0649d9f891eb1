"""The rules for structures as data: for checks, for `quality.rules`, and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contexture.events.rules import Catalogue, Rule, Severity, parse_rules
from contexture.sources.sdmx.selectors import Selector

if TYPE_CHECKING:
    from contexture.publications import SdmxPublication

_STRUCTURE_RULES = """
    unreadable error what the registry sent is a structure message that can be split
    one-structure error the body of a structure holds that one alone
    urn-missing error the structure has a URN
    identity error agency, id and version are written with the characters that SDMX allows
    urn-agreement warning a declared URN is the one that kind, agency, id and version give
    unknown-kind warning SDMX's information model has the kind of the structure
    schema warning the schema of its format accepts the structure; large ones are not checked
    duplicate-item warning no two items of one kind in one place have the same id
    transcoding-loss warning a structure converted by message.allow_lossy contains all that the registry wrote
"""
_RECORD_RULES = """
    topic-name error the topic's name is one that Kafka accepts
"""
_SNAPSHOT_RULES = """
    duplicate error one URN has one content in one snapshot; where that is no error, the last one counts
    dangling-reference warning a reference that source.select covers is resolved; ~ and 1.0+ match every such version
    version-order warning a new version is later than those that were published before it
    final-content warning a stable version (2.3.1), or one that was published as final (isFinal), keeps its content
    count-mismatch warning as many structures were read as the registry lists
    count-drop error no more disappear in one run than source.shrink_limit allows
    count-zero error the registry is not empty while the target has content
"""

RULES: tuple[Rule, ...] = (
    *parse_rules("structure", _STRUCTURE_RULES),
    *parse_rules("record", _RECORD_RULES),
    *parse_rules("snapshot", _SNAPSHOT_RULES),
)

REJECTING = ("dangling-reference", "version-order", "final-content", "count-mismatch")
"""Rules of all published structures: they do not show which one is at fault, so an error rejects the run."""

WITHOUT_CHOICE = ("unreadable", "one-structure", "urn-missing", "topic-name")
"""Always errors: there is nothing that could be sent."""

_CATALOGUE = Catalogue(RULES)

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
        """Returns the options of a publication's `quality` and `source`.

        Raises:
            ConfigurationError: `quality.rules` names a rule that does not exist, or a selector cannot be parsed.
        """
        return cls(
            severities=severities(publication.quality.rules),
            selectors=tuple(map(Selector.parse, publication.source.select)),
        )
