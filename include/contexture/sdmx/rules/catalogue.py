"""The rules structures are held to, as data: for checks, for `quality.rules`, and for the documentation."""

from __future__ import annotations

from contexture.events.rules import Catalogue, Rule

RULES: tuple[Rule, ...] = (
    Rule("unreadable", "error", "what the registry sent is a structure message that can be taken apart", "structure"),
    Rule("one-structure", "error", "the body of a structure holds that one alone", "structure"),
    Rule("urn-missing", "error", "the structure has a URN to be told by", "structure"),
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
"""Rules of all that is held: nobody can say which structure is at fault, so an error rejects the run."""

WITHOUT_CHOICE = ("unreadable", "one-structure", "urn-missing", "topic-name")
"""Always errors: there is nothing that could be sent."""

_CATALOGUE = Catalogue(RULES)

unknown_rules = _CATALOGUE.unknown
severities = _CATALOGUE.severities
