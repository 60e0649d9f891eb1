"""`contexture grouping-rules`: the rules of a file, as Cygnus' REST interface manages them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from contexture.operations.actions.grouping_rules import RuleChange, WrittenRule

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, add, update, delete and check Cygnus' grouping rules in a file. Exit codes: 0 done; 2 a rule, the file "
    "or the command line is wrong.",
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The file that `topics.grouping_rules` names.")]
_Id = Annotated[int, typer.Argument(metavar="ID", help="The id of the rule.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")]
_FIELDS = "Parts of the identity to join, by commas: entityId, entityType, servicePath."
_REGEX = "Java expression that the joined parts match as a whole."
_DESTINATION = "The entity part of the topic's name."
_PATH = "The service path of the topic's name."


@app.callback()
def grouping_rules() -> None:
    """List, add, update, delete and check Cygnus' grouping rules in a file."""


@app.command("list")
def list_rules(file: _File, *, as_json: _Json = False) -> None:
    """List the rules in the order in which they are tried; the first that matches decides."""
    from contexture.cli.output import printable
    from contexture.cli.text_table import text_table
    from contexture.operations.actions.grouping_rules import read_rules

    rules = read_rules(file)
    if as_json:
        typer.echo(json.dumps({"grouping_rules": [asdict(rule) for rule in rules]}, ensure_ascii=False))
        return
    rows = [
        [
            printable(each)
            for each in (str(rule.id), "+".join(rule.fields), rule.regex, rule.destination, rule.fiware_service_path)
        ]
        for rule in rules
    ]
    head = ["id", "fields", "regex", "destination", "service path"]
    typer.echo(text_table(head, rows, [""] * len(rows)).plain, nl=False)


@app.command("check")
def check_rules(file: _File, *, as_json: _Json = False) -> None:
    """Check the file as strictly as Cygnus' REST interface: also unknown members and ids that occur twice."""
    from contexture.operations.actions.grouping_rules import read_rules

    count = len(read_rules(file))
    typer.echo(json.dumps({"rules": count}) if as_json else f"{count} rules are right")


@app.command("add")
def add_rule(
    file: _File,
    *,
    fields: Annotated[str, typer.Option(help=_FIELDS)],
    regex: Annotated[str, typer.Option(help=_REGEX)],
    destination: Annotated[str, typer.Option(help=_DESTINATION)],
    service_path: Annotated[str, typer.Option(help=_PATH)],
    as_json: _Json = False,
) -> None:
    """Add a rule at the end; it gets the highest id plus one. The file is made if it does not exist."""
    from contexture.operations.actions import grouping_rules as action

    rule = action.WrittenRule(0, _names(fields), regex, destination, service_path)
    _show("added", action.add_rule(file, rule), as_json=as_json)


@app.command("update")
def update_rule(
    file: _File,
    number: _Id,
    *,
    fields: Annotated[str | None, typer.Option(help=_FIELDS)] = None,
    regex: Annotated[str | None, typer.Option(help=_REGEX)] = None,
    destination: Annotated[str | None, typer.Option(help=_DESTINATION)] = None,
    service_path: Annotated[str | None, typer.Option(help=_PATH)] = None,
    as_json: _Json = False,
) -> None:
    """Change the given members of a rule; it keeps its id and its place."""
    from contexture.errors import ConfigurationError
    from contexture.operations.actions import grouping_rules as action

    given = {
        "fields": None if fields is None else _names(fields),
        "regex": regex,
        "destination": destination,
        "fiware_service_path": service_path,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise ConfigurationError(
            "nothing is to be changed", next_step="give --fields, --regex, --destination or --service-path"
        )
    _show("changed", action.update_rule(file, number, changes), as_json=as_json)


@app.command("delete")
def delete_rule(file: _File, number: _Id, *, as_json: _Json = False) -> None:
    """Delete a rule."""
    from contexture.operations.actions import grouping_rules as action

    _show("deleted", action.delete_rule(file, number), as_json=as_json)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _show(what: str, change: RuleChange, *, as_json: bool) -> None:
    if as_json:
        document = {"rule": asdict(change.rule), "rules": change.rules, "lost_comments": change.lost_comments}
        typer.echo(json.dumps(document, ensure_ascii=False))
        return
    typer.echo(f"rule {change.rule.id} is {what}; the file has {change.rules} now: {_described(change.rule)}")
    if change.lost_comments:
        typer.echo(f"{change.lost_comments} comment lines between the rules are gone; those above the first brace stay")
    typer.echo(
        "A publication that uses the file sends everything again in its next run. Check it first: contexture check"
    )


def _described(rule: WrittenRule) -> str:
    from contexture.cli.output import printable

    return printable(f"{'+'.join(rule.fields)} ~ {rule.regex} to {rule.destination} on {rule.fiware_service_path}")
