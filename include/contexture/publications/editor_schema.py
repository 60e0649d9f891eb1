"""The JSON Schema by which an editor completes and checks publication files while they are written."""

from __future__ import annotations

import json

from contexture.publications.publication import Publication

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def editor_schema() -> str:
    """The schema as the text of a file: keys, types and values. What excludes each other, only loading knows."""
    schema = {"$schema": _DIALECT, **Publication.model_json_schema(mode="validation")}
    # A source of Contexture's own events has none.
    schema["$defs"]["Source"]["required"].remove("connection")
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
