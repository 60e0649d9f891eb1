"""Writes the pages of docs/reference that follow from the code: `.venv/bin/python docs/generate_reference.py`.

A test compares the pages with what this writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from message_catalogue import messages_page
from pydantic.fields import FieldInfo
from typer.main import get_command

from contexture.cli import COMMANDS
from contexture.events.rules import Rule
from contexture.kafka.error_codes import HINTS, MEANINGS, OF_OTHERS, ErrorClass
from contexture.publications.checks import FOR_OPERATIONS
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
    """Returns the generated pages by file name."""
    return {
        "commands.md": commands_page(),
        "publication.md": publication_page(),
        "row-rules.md": rules_page(),
        "kafka-errors.md": errors_page(),
        "messages.md": messages_page(GENERATED),
    }


GUIDES: Mapping[str, str] = {
    "backfill": "backfill",
    "connection": "test-connections",
    "dead-letters": "use-a-dead-letter-topic",
    "doctor": "install",
    "import cygnus": "move-from-cygnus",
    "import fmr": "move-from-fusion-registry",
    "ledger": "stuck-outbox",
    "new": "add-a-publication",
    "models": "validate-with-models",
    "notify": "receive-notifications",
    "outbox": "stuck-outbox",
    "quarantine": "find-a-missing-entity",
    "report": "report-data-quality",
    "state": "recover",
    "structures": "split-structures",
    "tables": "set-up-operational-tables",
    "topics": "change-topics",
    "verify": "verify-a-replica",
}
"""The page that explains how to use a command, where there is one."""


def commands_page() -> str:
    """Returns all commands with their arguments and options, and the exit codes."""
    lines = [
        "# Commands and exit codes",
        "",
        GENERATED,
        "",
        "`contexture COMMAND --help` explains each option. Commands find an installation by the same",
        "[variables](environment-variables.md) as Airflow's tasks: `CONTEXTURE_HOME`, `CONTEXTURE_PUBLICATIONS`,",
        "`AIRFLOW_CONN_<ID>`. Run them as the tasks' user. Beside `make up`, paste the line that it prints. In a",
        "checkout the programs are in `.venv/bin`.",
        "",
        "| command | what it does |",
        "|---|---|",
        *(row for name in COMMANDS for row in _command_rows(name)),
        "",
        "Commands that show or change something take `--json`, one document for programs; with exit code 2 or 3",
        "standard output is empty. Problems are on standard error, with what to do next. Four characters of an outbox",
        "id suffice. `outbox retry` and `quarantine retry` start a run if `CONTEXTURE_AIRFLOW_URL` is set; otherwise",
        "they print the command for Airflow.",
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | done, or in order |",
        "| 1 | what was checked is wrong: a file, a step of a connection test, a publication that needs a person, an "
        "outbox whose sending failed, topics that differ, a structure that cannot be split or sent, "
        "an installation that lacks something |",
        "| 2 | the command line, a variable or a permission is wrong; or there is no such object |",
        "| 3 | a source, a broker, Airflow or the storage could not be reached |",
        "",
        "`make demo` exits with 0 only when what was read back from Kafka equals what was prepared, and no run failed.",
    ]
    return "\n".join(lines) + "\n"


def _command_rows(name: str) -> Iterator[str]:
    command = get_command(import_module(COMMANDS[name][0]).app)
    below = getattr(command, "commands", None)
    guides = {name: GUIDES.get(name)}
    for words, each in ((f"{name} {word}", inner) for word, inner in below.items()) if below else [(name, command)]:
        parameters = [_parameter(parameter) for parameter in each.params if parameter.name != "as_json"]
        usage = " ".join([f"contexture {words}", *parameters])
        text = (each.help or COMMANDS[name][1]).strip().split("\n\n")[0].replace("\n", " ")
        # The guide of a group is named with its first command.
        guide = GUIDES.get(words) or guides.pop(name, None)
        link = f" [How](../how-to/{guide}.md)" if guide else ""
        yield f"| `{usage.replace('|', BAR)}` | {_cell(text)}{link} |"


BAR = "\\|"
PLACEHOLDERS: Mapping[Any, str] = {int: "N", float: "SECONDS", Path: "PATH"}


def _parameter(parameter: Any) -> str:
    annotation = parameter.type_descriptor.annotation
    if parameter.param_type_name == "argument":
        text = (parameter.metavar or parameter.name.upper()).removesuffix("...").strip("[]…")
        text += "…" if parameter.nargs == -1 else ""
    else:
        text = max(parameter.opts, key=len)
        if not parameter.is_flag:
            text += f" {_choices(annotation) or parameter.metavar or PLACEHOLDERS.get(annotation, 'TEXT')}"
    return text if parameter.required else f"[{text}]"


def _choices(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(member.value) for member in annotation)
    return ""


def publication_page() -> str:
    """Returns all keys of a publication file."""
    lines = [
        "# Keys of a publication",
        "",
        GENERATED,
        "",
        "A publication is one YAML file in the folder `CONTEXTURE_PUBLICATIONS`. Unknown keys, wrong types and",
        "impossible combinations are refused with file, line and the nearest valid key. `contexture check FILE`",
        "reports them; `contexture schema` prints the schema for editors.",
        "",
        "A change of a key with ↻ changes the publication's fingerprint, so `resync.on_config_change` applies.",
        "Values under *not yet* are refused. *Kinds* are the values of `source.kind` for which a key exists; empty:",
        "all.",
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
    """Returns all row rules, of both kinds of sources."""
    lines = [
        "# Row rules",
        "",
        GENERATED,
        "",
        "An *error* sends an entity or structure to quarantine, and the target keeps what it has of it. A *warning*",
        "is counted, and it is published. `quality.rules` sets a rule to `off`, `warning` or `error`. Rules of",
        "scope *snapshot* compare all that one run read and the target has; those of scope *record* check a",
        "finished record.",
        "",
        "## Entities (`kind: ngsi`)",
        "",
        f"An error of {', '.join(f'`{name}`' for name in of_entities.REJECTING)}",
        "belongs to no single entity: it rejects the run, and nothing is sent. So does one of `count-drop`, unless the",
        "run has `confirm_shrink`. `body`, `topic-length` and (except for `dm-by-attribute`) `size` are always errors,",
        "because Kafka would accept nothing of it.",
        "",
        "Where `required-attr` is a warning, an entity without the attribute fails the run, by an expectation. As",
        "an error it quarantines that entity, and the others are published.",
        "",
        *_rules_table(of_entities.RULES),
        "",
        "## Structures (`kind: sdmx`)",
        "",
        f"An error of {', '.join(f'`{name}`' for name in of_structures.REJECTING)}",
        "rejects the run; so does one of `count-drop` or `count-zero`, unless the run has `confirm_shrink`.",
        f"{', '.join(f'`{name}`' for name in of_structures.WITHOUT_CHOICE)}",
        "are always errors, because nothing could be sent.",
        "",
        f"`schema` checks structures of at most {LARGEST_SCHEMA_BYTES >> 20:,} MB; Fusion-JSON has no schema.",
        f"`duplicate-item` checks up to {LARGEST_ITEMS_BYTES >> 20:,} MB. `dangling-reference` compares with what",
        "this run read and the target has, and ignores references to what `source.select` excludes.",
        "",
        *_rules_table(of_structures.RULES),
        "",
        "## Columns for expectations",
        "",
        "`quality.expectations` ([how](../how-to/add-an-expectation.md)) and their `where` see one row for each",
        "entity, attribute or structure that the rules accepted, changed or not, in its newest version.",
        "",
        f"- `on: entities`: {_listed(ENTITY_COLUMNS)}; for each attribute that an expectation names,",
        "  `value_<name>` (its number, or null) and `type_<name>` (its NGSI type; null where the entity lacks it). In",
        "  `where`, write names with other characters than letters, digits and underscores in backticks.",
        f"- `on: attributes`: {_typed(ATTRIBUTE_COLUMNS)}.",
        "  `type` is the entity's; `number` and `text` are the value where it is one, a text up to 1,000 characters;",
        "  `modified_at` is the attribute's own time with `dm-by-attribute`, where the source reports it.",
        f"- `on: structures`: {_typed(STRUCTURE_COLUMNS)}.",
        "  `topics` and `warnings` are joined by commas; `modified_at` is the time of the registry's transaction.",
        "",
        f"`{AGE_COLUMN}`, in all of them: how many seconds `modified_at` is ahead of the run's time; mostly negative.",
    ]
    return "\n".join(lines) + "\n"


CLASSES: Mapping[ErrorClass, tuple[str, str]] = {
    ErrorClass.SAME_CALL_AGAIN: (
        "Retriable",
        "The same call is repeated for `publish.broker_wait_seconds` before an attempt counts as failed.",
    ),
    ErrorClass.BROKERS_AWAY: (
        "Brokers away",
        "Records were not accepted in time. The transaction is repeated with a new client, three times uncounted.",
    ),
    ErrorClass.SEND_AGAIN: (
        "Abort and send again",
        "The transaction did not happen. It is repeated with a new client from the ledger's position; each time is an "
        "attempt of `batches.batch_ttl`.",
    ),
    ErrorClass.FENCED: (
        "Fenced",
        "Another sender took over the shard: the task fails and is not repeated. When the transaction was open for "
        "longer than `transaction.timeout.ms`, the ledger decides whether there is another sender.",
    ),
    ErrorClass.REJECTED: (
        "Never succeeds",
        "The record cannot be sent: nothing of its transaction becomes visible, and `publish.on_failure` decides what "
        "happens next.",
    ),
    ErrorClass.FATAL: ("Fatal", "The client is unusable: the task fails, and its next attempt makes a new one."),
}
"""The title of each class of errors, and what is done about it."""


def errors_page() -> str:
    """Returns what is done about each error of the Kafka client."""
    lines = [
        "# Errors of the Kafka client",
        "",
        GENERATED,
        "",
        "What Contexture does about each code of librdkafka, by its name in `confluent_kafka.KafkaError`. The",
        "client's own property of a single error goes first (*fatal*, *abort* or *retriable*), except where a",
        "sender is fenced, a record cannot be sent or a person must act. Codes that are not listed belong to",
        "requests that Contexture does not make; a sender would send the transaction again.",
    ]
    for found, (title, text) in CLASSES.items():
        names = sorted(name for name, meaning in MEANINGS.items() if meaning is found and name not in OF_OTHERS)
        lines += ["", f"## {title}", "", text, "", ", ".join(f"`{name}`" for name in names)]
    lines += ["", "## A person must change something", "", "The task fails immediately, with this advice.", ""]
    by_advice: dict[str, list[str]] = {}
    for name in sorted(HINTS):
        by_advice.setdefault(HINTS[name], []).append(name)
    lines += ["| error | what to do |", "|---|---|"]
    lines += [f"| {_listed(names)} | {_cell(advice)} |" for advice, names in by_advice.items()]
    return "\n".join(lines) + "\n"


def _rules_table(rules: Sequence[Rule]) -> list[str]:
    lines: list[str] = []
    for scope in dict.fromkeys(rule.scope for rule in rules):
        rows = [
            f"| `{rule.name}` | {rule.default} | {_cell(rule.description)} |" for rule in rules if rule.scope == scope
        ]
        lines += ["", f"| rule of scope *{scope}* | severity | what it requires |", "|---|---|---|", *rows]
    return lines[1:]


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
    head = ["| key | kinds | type; default | meaning |", "|---|---|---|---|"]
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
    of_kinds = "" if len(kinds) == len(PUBLICATIONS) else ", ".join(kinds)
    types = ", ".join(dict.fromkeys(part for key in kinds.values() for part in key.type.split(", ")))
    defaults: dict[str, list[str]] = {}
    for kind, key in kinds.items():
        defaults.setdefault(_default(key.field), []).append(kind)
    values = [
        value if "ngsi" in of or len(defaults) == 1 else f"{', '.join(of)}: {value}" for value, of in defaults.items()
    ]
    again = " ↻" if (f"{section}.{name}" if section else name) in CHANGES_RECORDS else ""
    meaning = _cell(first.field.description or "")
    return f"| `{name}`{again} | {of_kinds} | {types}; {'; '.join(values)} | {meaning} |"


def _type(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _type(whole, whole["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        parts = [_type(whole, part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys("list" if part == f"list of {parts[0]}" else part for part in parts))
    if schema.get("type") == "array":
        return f"list of {_type(whole, schema.get('items', {}))}"
    if schema.get("type") == "object":
        return "mapping"
    return {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}.get(
        str(schema.get("type")), str(schema.get("type", "any"))
    )


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def main() -> None:
    """Writes the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
