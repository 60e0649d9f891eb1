"""Writes the pages of docs/reference that say what the code says: `.venv/bin/python docs/generate_reference.py`.

A test holds the pages equal to what this writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from contexture.ngsi.rules import RULES
from contexture.ngsi.rules.catalogue import REJECTING
from contexture.publications.fields import Section
from contexture.publications.fingerprints import CHANGES_RECORDS
from contexture.publications.publication import Publication
from contexture.publications.supported import UNSUPPORTED, Unsupported

FOLDER = Path(__file__).parent / "reference"
GENERATED = "<!-- Written by docs/generate_reference.py; change the code, then run it again. -->"
SCHEMA: dict[str, Any] = Publication.model_json_schema()


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    return {"publication.md": publication_page(), "row-rules.md": rules_page()}


def publication_page() -> str:
    """All keys of a publication file."""
    lines = [
        "# Keys of a publication",
        "",
        GENERATED,
        "",
        "A publication is one YAML file in the folder of publications (`CONTEXTURE_PUBLICATIONS`). Unknown keys, wrong",
        "types and impossible combinations are refused with file, line and the nearest valid key.",
        "`contexture check FILE` shows them, and `contexture schema` prints the schema for editors.",
        "",
        "*Sends again*: a change of the key changes the publication's fingerprint, so that `resync.on_config_change`",
        "applies. Values under *not yet* are known and refused.",
        "",
        "## Top level",
        "",
        *_table("", Publication),
    ]
    for name, field in Publication.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            text = " ".join((section.__doc__ or "").split())
            lines += ["", f"## {name}", "", text, "", *_table(name, section)]
    return "\n".join(lines) + "\n"


def rules_page() -> str:
    """All row rules."""
    rows = [f"| `{rule.name}` | {rule.default} | {rule.scope} | {_cell(rule.description)} |" for rule in RULES]
    lines = [
        "# Row rules",
        "",
        GENERATED,
        "",
        "What each entity is held to. An *error* sends the entity to quarantine; what the target holds of it stays. A",
        "*warning* is counted, and the entity is published. `quality.rules` of a publication sets a rule to `off`,",
        "`warning` or `error`. Rules of scope *snapshot* look at all that one run read, *record* at a finished record.",
        "",
        f"An error of {', '.join(f'`{name}`' for name in REJECTING)}",
        "is that of no entity in particular: it rejects the run, and nothing is sent. So does one of `count-drop`,",
        "which a run with `confirm_shrink` passes. `body`, `topic-length` and, but for `dm-by-attribute`, `size` are",
        "always errors: there is nothing that Kafka would take.",
        "",
        "| rule | severity | scope | what it asks for |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _table(section: str, model: type[Section]) -> list[str]:
    head = ["| key | type | default | sends again | meaning |", "|---|---|---|---|---|"]
    return [*head, *_rows(section, model, "")]


def _rows(section: str, model: type[Section], prefix: str) -> Iterator[str]:
    properties = SCHEMA["properties"] if model is Publication else SCHEMA["$defs"][model.__name__]["properties"]
    for name, field in model.model_fields.items():
        if name not in properties:
            # What the loader puts there is no key of a file, and the schema leaves it out.
            continue
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, Section):
            if section:
                yield from _rows(section, nested, f"{prefix}{name}.")
            continue
        key = f"{prefix}{name}"
        again = "yes" if (f"{section}.{key}" if section else key) in CHANGES_RECORDS else "no"
        meaning = f"{_cell(field.description or '')}{_not_yet(section, key)}"
        yield f"| `{key}` | {_type(properties[name])} | {_default(field)} | {again} | {meaning} |"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _type(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return "mapping"
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}.get(
        str(schema.get("type")), str(schema.get("type", "any"))
    )


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _not_yet(section: str, key: str) -> str:
    rows = [row for row in UNSUPPORTED if (row.section, row.key) == (section, key)]
    return "".join(f"; not yet: {_values(row)}" for row in rows)


def _values(row: Unsupported) -> str:
    shown = [json.dumps(value) if isinstance(value, bool) else str(value) for value in row.values]
    return ", ".join(f"`{row.member}: {value}`" if row.member else f"`{value}`" for value in shown) or "anything"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def main() -> None:
    """Writes the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
