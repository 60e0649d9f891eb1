"""The names of row rules, which `quality.rules` may set.

The rules themselves are in `contexture.ngsi.rules` and `contexture.sdmx.rules`, which are built on this package; a test
holds the names equal.
"""

from __future__ import annotations

ENTITY_RULES = (
    "body",
    "id-missing",
    "id-type",
    "type-missing",
    "id-syntax",
    "type-syntax",
    "attr-syntax",
    "attr-shape",
    "shadowed-builtin",
    "number-string",
    "number-precision",
    "bool-string",
    "datetime",
    "datetime-range",
    "stale",
    "future-modified",
    "geojson",
    "geo-legacy",
    "null-value",
    "unknown-type",
    "unknown-attr",
    "attr-type",
    "required-attr",
    "range",
    "enum",
    "model",
    "forbidden-char",
    "nesting",
    "size",
    "topic-length",
    "duplicate",
    "dup-across-paths",
    "type-drift",
    "relationship-target",
    "count-mismatch",
    "count-drop",
    "count-zero",
)
"""Rules about what a context broker holds."""

STRUCTURE_RULES = (
    "unreadable",
    "one-structure",
    "urn-missing",
    "identity",
    "urn-agreement",
    "unknown-kind",
    "schema",
    "duplicate-item",
    "transcoding-loss",
    "topic-name",
    "duplicate",
    "dangling-reference",
    "version-order",
    "final-content",
    "count-mismatch",
    "count-drop",
    "count-zero",
)
"""Rules about what a structure registry holds."""

RULE_NAMES = tuple(dict.fromkeys((*ENTITY_RULES, *STRUCTURE_RULES)))
