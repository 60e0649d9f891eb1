"""`contexture preview`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from contexture.events import ContextIdentity
    from contexture.operations.actions.preview import NamePreview, NameRequest
    from contexture.publications import NgsiPublication

app = typer.Typer(add_completion=False)

File = Annotated[Path, typer.Argument(help="The publication's file.")]
Entity = Annotated[list[str] | None, typer.Option("--entity", metavar="ID=TYPE", help="An entity; again for more.")]
Attribute = Annotated[list[str] | None, typer.Option("--attribute", help="With dm-by-attribute; again for more.")]
ServicePath = Annotated[str | None, typer.Option("--path", help="Service path of the entities.")]
Sample = Annotated[Path | None, typer.Option(help="Entities from a JSON file, normalized as the source has them.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")]


@app.command("preview")
def preview_names(
    file: File,
    *,
    entity: Entity = None,
    attribute: Attribute = None,
    path: ServicePath = None,
    sample: Sample = None,
    as_json: AsJson = False,
) -> None:
    """Show the topics that entities would get, name by name, after grouping rules and name mappings.

    Exit codes: 0 each has a topic; 1 the file is wrong, or an entity would go to quarantine; 2 the command line is
    wrong.
    """
    from contexture.operations.actions.preview import show_names
    from contexture.publications import parse_publication

    if not entity and sample is None:
        raise typer.BadParameter("give --entity ID=TYPE or --sample FILE")
    loaded = parse_publication(file)
    if loaded.publication is None:
        typer.echo(str(loaded.error), err=True)
        raise typer.Exit(exit_codes.INVALID)
    for note in loaded.notes:
        typer.echo(str(note), err=True)
    publication = loaded.publication
    from contexture.publications import NgsiPublication

    if not isinstance(publication, NgsiPublication):
        raise typer.BadParameter("this command is for entities; contexture check shows where other events go")
    asked = _asked(publication, entity or [], attribute or [], path)
    of_sample, refused = _of_sample(publication, sample)
    shown = show_names(publication, [*asked, *of_sample])
    _print_json(shown, refused) if as_json else _print_text(shown, refused)
    failed = refused or any(each.error for each in shown)
    raise typer.Exit(exit_codes.INVALID if failed else exit_codes.OK)


def _asked(
    publication: NgsiPublication, entities: list[str], attributes: list[str], path: str | None
) -> list[NameRequest]:
    from contexture.operations.actions.preview import NameRequest, asked_entity, splits_by_attribute

    if path is not None:
        path = _path_of_entities(path)
    by_attribute = splits_by_attribute(publication)
    if entities and by_attribute and not attributes:
        raise typer.BadParameter("dm-by-attribute names topics of attributes: give --attribute NAME")
    identities = [asked_entity(publication, text, path) for text in entities]
    names: list[str | None] = [*attributes] if by_attribute else [None]
    return [NameRequest(identity, name) for identity in identities for name in names]


def _path_of_entities(path: str) -> str:
    from contexture.publications import fields

    try:
        checked = fields.check_service_path(path)
    except ValueError as error:
        raise typer.BadParameter(f"--path: {error}") from None
    if fields.is_wildcard(path):
        raise typer.BadParameter(f"--path: {path} selects many paths: give the one that the entities are in")
    return str(checked)


def _of_sample(publication: NgsiPublication, path: Path | None) -> tuple[list[NameRequest], list[str]]:
    from contexture.operations.actions import preview
    from contexture.operations.actions.preview import asked_of_sample

    return ([], []) if path is None else asked_of_sample(publication, preview.from_file(path, publication))


def _print_json(shown: list[NamePreview], refused: list[str]) -> None:
    document = {"names": [dataclasses.asdict(each) for each in shown], "unreadable": refused}
    typer.echo(_printable(json.dumps(document, ensure_ascii=False, indent=2)))


def _print_text(shown: list[NamePreview], refused: list[str]) -> None:
    for reason in refused:
        typer.secho(f"to quarantine: {reason}", fg=typer.colors.RED)
    for each in shown:
        typer.echo(_parts(each.asked.identity, each.asked.attribute))
        if (each.identity, each.attribute) != (each.asked.identity, each.asked.attribute):
            typer.echo(f"  named as {_parts(each.identity, each.attribute)}")
        for topic in each.topics:
            typer.echo(f"  {topic} ({len(topic)} characters)")
        if each.collides:
            typer.secho("  collides with another of these", fg=typer.colors.YELLOW)
        if each.error:
            typer.secho(f"  to quarantine: {each.error}", fg=typer.colors.RED)


def _parts(identity: ContextIdentity, attribute: str | None) -> str:
    parts = dataclasses.astuple(identity)
    return _printable(json.dumps([*parts, attribute] if attribute is not None else parts, ensure_ascii=False))


def _printable(written: str) -> str:
    """The JSON with halves of characters, which arguments may hold and no terminal takes, as escapes."""
    return written.encode("utf-8", "backslashreplace").decode()
