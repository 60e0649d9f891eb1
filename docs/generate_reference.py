"""Writes the pages of docs/reference that say what the code says: `.venv/bin/python docs/generate_reference.py`.

A test holds the pages equal to what this writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from contexture.events.rules import Rule
from contexture.kafka.error_codes import HINTS, MEANINGS, OF_OTHERS, ErrorClass
from contexture.publications.checks import FOR_OPERATIONS, UNSUPPORTED, UnsupportedOption
from contexture.publications.checks.quality import AGE_COLUMN, ATTRIBUTE_COLUMNS, ENTITY_COLUMNS, STRUCTURE_COLUMNS
from contexture.publications.fields import PublicationModel
from contexture.publications.fingerprint import keys_that_change_records
from contexture.publications.publication import PUBLICATIONS, Publication
from contexture.sources.ngsi.rules import catalogue as of_entities
from contexture.sources.sdmx.rules import catalogue as of_structures
from contexture.sources.sdmx.rules.catalogue import LARGEST_ITEMS_BYTES, LARGEST_SCHEMA_BYTES

CHANGES_RECORDS = frozenset(keys_that_change_records())
FOLDER = Path(__file__).parent / "reference"
GENERATED = "<!-- Written by docs/generate_reference.py; change the code, then run it again. -->"
SCHEMAS: dict[str, Any] = {kind: model.model_json_schema() for kind, model in PUBLICATIONS.items()}


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    return {"publication.md": publication_page(), "row-rules.md": rules_page(), "kafka-errors.md": errors_page()}


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
        "applies. Values under *not yet* are known and refused. *Kinds* are the values of `source.kind`:",
        "`ngsi` is a context broker, `sdmx` a structure registry, `operations` what Contexture itself did.",
        "",
        "## Top level",
        "",
        *_table(""),
    ]
    for name, field in Publication.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, PublicationModel):
            lines += ["", f"## {name}", "", f"{field.description}.", "", *_table(name)]
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _typed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` ({kind})" for name, kind in columns.items())


def rules_page() -> str:
    """All row rules, of both kinds of sources."""
    lines = [
        "# Row rules",
        "",
        GENERATED,
        "",
        "What each entity of a context broker and each structure of a registry is held to. An *error* sends it to",
        "quarantine; what the target holds of it stays. A *warning* is counted, and it is published. `quality.rules`",
        "of a publication sets a rule to `off`, `warning` or `error`. Rules of scope *snapshot* look at all that one",
        "run read and the target holds, *record* at a finished record.",
        "",
        "## Entities (`kind: ngsi`)",
        "",
        f"An error of {', '.join(f'`{name}`' for name in of_entities.REJECTING)}",
        "is that of no entity in particular: it rejects the run, and nothing is sent. So does one of `count-drop`,",
        "which a run with `confirm_shrink` passes. `body`, `topic-length` and, but for `dm-by-attribute`, `size` are",
        "always errors: there is nothing that Kafka would take.",
        "",
        "Where `required-attr` is a warning, an entity without the attribute fails the run, by an expectation of its",
        "own. As an error it holds that entity back, and the others are published.",
        "",
        *_rules_table(of_entities.RULES),
        "",
        "## Structures (`kind: sdmx`)",
        "",
        f"An error of {', '.join(f'`{name}`' for name in of_structures.REJECTING)}",
        "rejects the run, and so does one of `count-drop` or `count-zero`, unless it has `confirm_shrink`.",
        f"{', '.join(f'`{name}`' for name in of_structures.WITHOUT_CHOICE)}",
        "are always errors: there is nothing that could be sent.",
        "",
        f"`schema` is checked in structures of at most {LARGEST_SCHEMA_BYTES >> 20:,} MB; Fusion-JSON has no schema.",
        f"`duplicate-item` is checked up to {LARGEST_ITEMS_BYTES >> 20:,} MB. `dangling-reference` is judged",
        "against what this run read and what the target holds; a reference to what `source.select` leaves out is none",
        "of its business.",
        "",
        *_rules_table(of_structures.RULES),
        "",
        "## Columns for expectations",
        "",
        "Expectations of the author's own (`quality.expectations`: [how](../how-to/add-an-expectation.md)) and their",
        "`where` see one row for each entity, attribute or structure that the rules accepted, changed or not,",
        "in its newest version: what changes while it is read is read twice, and the older version counts nowhere.",
        "",
        f"- `on: entities`: {_listed(ENTITY_COLUMNS)}; and of each attribute that an expectation names",
        "  `value_<name>` (its number; null where it has none) and `type_<name>` (its NGSI type; null where the entity",
        "  lacks it). Names with other signs than letters, digits and underscores stand in backticks in `where`.",
        f"- `on: attributes`: {_typed(ATTRIBUTE_COLUMNS)}.",
        "  `type` is the entity's; `number` and `text` are the value where it is one, a text up to 1,000 characters;",
        "  `modified_at` is the attribute's own time with dm-by-attribute, where the source tells it.",
        f"- `on: structures`: {_typed(STRUCTURE_COLUMNS)}.",
        "  `topics` and `warnings` are names with commas between them; `modified_at` is the time of the registry's",
        "  transaction, where it has any.",
        "",
        f"`{AGE_COLUMN}` says in all of them how many seconds `modified_at` lies ahead of the run's time; it is mostly",
        "negative.",
    ]
    return "\n".join(lines) + "\n"


CLASSES: Mapping[ErrorClass, tuple[str, str]] = {
    ErrorClass.SAME_CALL_AGAIN: (
        "Retriable",
        "The same call is made again, visibly, for `publish.broker_wait_seconds` before an attempt counts as failed.",
    ),
    ErrorClass.BROKERS_AWAY: (
        "Brokers away",
        "Records were not taken in time. The transaction is done again with a new client, three times uncounted.",
    ),
    ErrorClass.SEND_AGAIN: (
        "Abort and send again",
        "The transaction did not happen. It is done again with a new client from where the ledger stands; each time is "
        "an attempt of `batches.batch_ttl`.",
    ),
    ErrorClass.FENCED: (
        "Fenced",
        "Another sender took over the shard: the task fails and is not repeated. When the transaction was open for "
        "longer than `transaction.timeout.ms`, the ledger tells whether there is another one.",
    ),
    ErrorClass.REJECTED: (
        "Never succeeds",
        "The record can't be sent as it is: nothing of its transaction becomes visible, and `publish.on_failure` says "
        "what happens next.",
    ),
    ErrorClass.FATAL: ("Fatal", "The client is of no use any more: the task fails, and its next try makes a new one."),
}
"""What the classes of errors are called and what is done about them."""


def errors_page() -> str:
    """What is done about each error of the Kafka client."""
    lines = [
        "# Errors of the Kafka client",
        "",
        GENERATED,
        "",
        "What is done about each code of librdkafka, by its name in `confluent_kafka.KafkaError`. Except where a",
        "sender is fenced, a record can't be sent or a person must act, the client's own word about a single error",
        "goes first: a *fatal* one ends the client, one that needs an *abort* is sent again, a *retriable* one is the",
        "same call again.",
    ]
    for found, (title, text) in CLASSES.items():
        names = sorted(name for name, meaning in MEANINGS.items() if meaning is found and name not in OF_OTHERS)
        lines += ["", f"## {title}", "", text, "", ", ".join(f"`{name}`" for name in names)]
    lines += ["", "## A person must change something", "", "The task fails at once, with this advice.", ""]
    lines += [
        "| error | what to do |",
        "|---|---|",
        *(f"| `{name}` | {_cell(HINTS[name])} |" for name in sorted(HINTS)),
    ]
    lines += ["", "## Of requests that Contexture does not make", ""]
    lines += ["If one came to a sender all the same, the transaction would be sent again.", ""]
    return "\n".join([*lines, ", ".join(f"`{name}`" for name in sorted(OF_OTHERS))]) + "\n"


def _rules_table(rules: Sequence[Rule]) -> list[str]:
    rows = [f"| `{rule.name}` | {rule.default} | {rule.scope} | {_cell(rule.description)} |" for rule in rules]
    return ["| rule | severity | scope | what it asks for |", "|---|---|---|---|", *rows]


class _Key(NamedTuple):
    """A key as one kind of publication has it."""

    field: FieldInfo
    type: str


def _table(section: str) -> list[str]:
    found: dict[str, dict[str, _Key]] = {}
    for kind, model in PUBLICATIONS.items():
        owner = model.model_fields[section].annotation if section else model
        assert isinstance(owner, type)
        assert issubclass(owner, PublicationModel)
        for name, key in _keys(kind, owner, "", at_top=not section):
            if kind != "operations" or name in FOR_OPERATIONS.get(section, ()):
                found.setdefault(name, {})[kind] = key
    head = ["| key | kinds | type | default | sends again | meaning |", "|---|---|---|---|---|---|"]
    return [*head, *(_row(section, name, kinds) for name, kinds in found.items())]


def _keys(kind: str, model: type[PublicationModel], prefix: str, *, at_top: bool) -> Iterator[tuple[str, _Key]]:
    schema = SCHEMAS[kind]
    properties = schema["properties"] if at_top else schema["$defs"][model.__name__]["properties"]
    for name, field in model.model_fields.items():
        if name not in properties:
            # What the loader puts there is no key of a file, and the schema leaves it out.
            continue
        nested = field.annotation
        if not (isinstance(nested, type) and issubclass(nested, PublicationModel)):
            yield f"{prefix}{name}", _Key(field, _type(schema, properties[name]))
        elif not at_top:
            yield from _keys(kind, nested, f"{prefix}{name}.", at_top=False)


def _row(section: str, name: str, kinds: Mapping[str, _Key]) -> str:
    first = next(iter(kinds.values()))
    of_kinds = "all" if len(kinds) == len(PUBLICATIONS) else ", ".join(kinds)
    types = ", ".join(dict.fromkeys(part for key in kinds.values() for part in key.type.split(", ")))
    defaults: dict[str, list[str]] = {}
    for kind, key in kinds.items():
        defaults.setdefault(_default(key.field), []).append(kind)
    values = [value if "ngsi" in of else f"{', '.join(of)}: {value}" for value, of in defaults.items()]
    again = "yes" if (f"{section}.{name}" if section else name) in CHANGES_RECORDS else "no"
    meaning = f"{_cell(first.field.description or '')}{_not_yet(section, name)}"
    return f"| `{name}` | {of_kinds} | {types} | {'; '.join(values)} | {again} | {meaning} |"


def _type(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _type(whole, whole["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(whole, part) for part in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(whole, schema.get('items', {}))}"
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


def _values(row: UnsupportedOption) -> str:
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
