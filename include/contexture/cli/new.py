"""`contexture new`: a publication from what a source has, by questions or by options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contexture.cli import exit_codes
from contexture.cli.output import printable
from contexture.errors import ConfigurationError
from contexture.publications import check_name
from contexture.publications.source import STRUCTURE_FORM

if TYPE_CHECKING:
    from contexture.operations.actions.publication_proposal import PublicationChoices, PublicationProposal
    from contexture.operations.actions.source_survey import SourceSurvey
    from contexture.sources.http.connection import BrokerConnection, ConnectionFields

app = typer.Typer(add_completion=False)

_SHOWN = 20
_RECORDS = 3
_ALL = "all"
# As in contexture.operations.actions.publication_proposal, which is imported too slowly for a help text.
_BY_HAND = "none"
_DATA_MODELS = ("dm-by-service-path", "dm-by-entity")


class _Questions:
    """Asks for what the command line does not have; where it does not ask, it takes what is proposed.

    Attributes:
        asks: whether there is a person to answer.
        given: the options of the command line by name; None or empty where there are none.
        folder: where the publication is written.
    """

    def __init__(self, asks: bool, given: Mapping[str, Any], folder: Path) -> None:
        self.asks = asks
        self.given = given
        self.folder = folder

    def ask(self, option: str, question: str, proposed: str | None, check: Callable[[str], str]) -> str:
        """Returns the option, the answer, or what is proposed, once the check accepts it."""
        given = self.given.get(option)
        if given is not None or not self.asks:
            return check((proposed or "") if given is None else given)

        def read(text: str) -> str:
            try:
                return check(text.strip())
            except (ConfigurationError, ValueError) as error:
                raise typer.BadParameter(str(error)) from None

        return str(typer.prompt(question, default=proposed, value_proc=read))

    def choose(self, option: str, title: str, counts: Mapping[str, int], is_whole: bool) -> tuple[str, ...]:
        """Returns the chosen ones of what is counted; none for all."""
        from contexture.operations.actions.publication_proposal import split_names

        names = list(counts)

        def check(text: str) -> str:
            parts = () if text == _ALL else split_names(text)
            chosen = [names[int(part) - 1] if part in places else part for part in parts]
            unknown = [part for part in chosen if is_whole and part not in counts]
            if unknown:
                known = ", ".join(map(printable, names[:_SHOWN]))
                raise ConfigurationError(
                    f"the source has no {', '.join(map(repr, unknown))}", next_step=f"choose among: {known}"
                )
            return ",".join(dict.fromkeys(chosen))

        places = [str(place) for place in range(1, len(names) + 1)] if self.asks else []
        given = self.given[option]
        if self.asks and not given:
            rows = [f"{place:>5}  {counts[name]:>9,}  {printable(name)}" for place, name in enumerate(names, start=1)]
            more = [f"  and {len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []
            typer.echo("\n".join(["", title, *rows[:_SHOWN], *more]))
        if given:
            return split_names(check(",".join(given)))
        return split_names(self.ask("", "Numbers or names, with commas", _ALL, check))


@app.command("new")
def new_publication(
    context: typer.Context,
    *,
    connection: Annotated[str | None, typer.Option(metavar="ID", help="Connection to the broker or registry.")] = None,
    kind: Annotated[Literal["ngsi", "sdmx"] | None, typer.Option(help="Kind of the source; else detected.")] = None,
    service: Annotated[str | None, typer.Option(help="Broker: the Fiware-Service or tenant.")] = None,
    path: Annotated[list[str] | None, typer.Option(help="Broker: a service path; again for more.")] = None,
    type_: Annotated[list[str] | None, typer.Option("--type", help="Broker: a type; again for more.")] = None,
    names_by: Annotated[str, typer.Option("--context", metavar="URL", help="NGSI-LD: the @context of names.")] = "",
    agency: Annotated[list[str] | None, typer.Option(help="Registry: an agency; again for more.")] = None,
    class_: Annotated[list[str] | None, typer.Option("--class", help="Registry: as Codelist; again for more.")] = None,
    media_type: Annotated[str, typer.Option(help="Registry: the format of the values.")] = STRUCTURE_FORM,
    topics: Annotated[str | None, typer.Option(help=f"With commas; broker: or {' or '.join(_DATA_MODELS)}.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the publication, and of its file.")] = None,
    kafka: Annotated[str | None, typer.Option(metavar="ID", help="Connection to Kafka.")] = None,
    schedule: Annotated[str | None, typer.Option(help=f"Five cron fields, a preset, or {_BY_HAND}.")] = None,
    sample: Annotated[int, typer.Option(min=1, max=1000, help="Broker: how many entities are profiled.")] = 200,
    require: Annotated[bool | None, typer.Option(help="Quarantine entities without what all sampled have.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to; else $CONTEXTURE_PUBLICATIONS.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask no questions: accept the proposal, and write it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document; written only with --yes.")] = False,
) -> None:
    """Write a publication from what a source has: choose service, paths and types, or agencies and classes.

    A sample of the entities is profiled: what all of them have, ranges, values. The proposed file has the reason beside
    each key and is checked as `contexture check` does; the first records that it would send are shown. Options replace
    questions.

    Exit codes: 0 written, or shown; 1 the proposal does not pass the check, or it was stopped; 2 the command line or
    the connection is wrong; 3 the source cannot be reached.
    """
    from contexture.operations.actions.proposed_publication import write_file

    # What replaces a question is read from the parameters by its name.
    questions = _Questions(not (yes or as_json), context.params, _folder(output))
    try:
        proposal = _propose(questions)
        file = questions.folder / f"{proposal.proposed.name}.yaml"
        is_right = proposal.loaded.error is None
        if not as_json:
            _print_proposal(proposal, file)
        writes = is_right and (yes or (questions.asks and typer.confirm(f"\nWrite {file}?", default=True)))
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("\nstopped: nothing was written (without a terminal, give --yes or --json)", err=True)
        raise typer.Exit(exit_codes.INVALID) from None
    if writes:
        write_file(file, proposal.proposed.text(), replaces=force)
    if as_json:
        typer.echo(json.dumps(_document(proposal, file, writes), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join([f"wrote {file}", *proposal.next_steps(str(file))]) if writes else "nothing was written")
    raise typer.Exit(exit_codes.OK if is_right else exit_codes.INVALID)


def _folder(output: Path | None) -> Path:
    from contexture.operations.environment import FOLDER_VARIABLE, publications_folder

    folder = output or publications_folder()
    if not folder.is_dir():
        raise ConfigurationError(
            f"{folder} is not a folder", next_step=f"make it, set {FOLDER_VARIABLE} as Airflow has it, or give --output"
        )
    return folder


def _propose(questions: _Questions) -> PublicationProposal:
    from contexture.operations.actions import source_survey
    from contexture.operations.environment import known_publications

    sources = source_survey.list_connections()[0]
    if questions.given["connection"] is None and not sources:
        raise source_survey.no_connection_error("", sources)

    def check(text: str) -> str:
        if not text:
            raise ConfigurationError(
                "several connections may lead to a source", next_step=f"give --connection, one of: {', '.join(sources)}"
            )
        return text if source_survey.connection_fields(text) else ""

    if len(sources) == 1 and questions.given["connection"] is None:
        connection = sources[0]
    else:
        connection = questions.ask("connection", f"Connection, one of {', '.join(sources)}", None, check)
    fields = source_survey.connection_fields(connection)
    kind = questions.given["kind"] or source_survey.find_source_kind(connection, fields, known_publications())
    return (_propose_structures if kind == "sdmx" else _propose_entities)(connection, fields, questions)


def _propose_entities(connection_id: str, fields: ConnectionFields, questions: _Questions) -> PublicationProposal:
    from contexture.operations import environment
    from contexture.operations.actions.publication_proposal import EntitySelection, propose_entities

    given, connection = questions.given, environment.context_broker(connection_id, fields)
    survey = _survey(connection_id, connection, questions)
    paths, by_place = tuple(given["path"] or ()), survey.by_place()
    if survey.api == "ngsiv2":
        paths = questions.choose("path", "Service paths", by_place, survey.is_whole)
    by_kind = survey.by_kind(paths)
    types = questions.choose("type_", "Types", by_kind, survey.is_whole)
    title = types[0] if len(types) == 1 else survey.title or connection_id
    choices = _choices(connection_id, title, questions, _DATA_MODELS)

    def confirm(names: Sequence[str], entities: int) -> bool:
        if given["require"] is not None or not questions.asks:
            return bool(given["require"])
        typer.echo(f"\nAll {entities} sampled entities have: {', '.join(map(printable, names))}")
        return typer.confirm("Quarantine an entity without one of them?", default=False)

    selection = EntitySelection(survey.title, survey.api, given["names_by"], paths, types)
    found = propose_entities(connection, choices, selection, sample=given["sample"], confirm_required=confirm)
    return replace(found, counts={"service_paths": by_place, "types": by_kind})


def _survey(connection_id: str, connection: BrokerConnection, questions: _Questions) -> SourceSurvey:
    """Returns the survey of the chosen service, which has entities."""
    from contexture.operations.actions import source_survey
    from contexture.operations.environment import known_publications

    found: list[SourceSurvey] = []

    def check(text: str) -> str:
        service = text.strip('"')
        survey = source_survey.survey_broker(connection, service, questions.given["names_by"])
        if not survey.groups:
            raise ConfigurationError(
                f"the service {service!r} has no entities" if service else "the default service has no entities",
                next_step="name the Fiware-Service (--service): a broker has no list, and a misspelt one looks empty",
            )
        found.append(survey)
        return text

    proposed = None
    if questions.given["service"] is None:
        known = source_survey.count_services(connection_id, connection, known_publications())
        largest = max(known, key=lambda name: known[name], default="")
        proposed = (largest or '""') if known.get(largest) else None
        shown = ", ".join(f"{name or 'the default one'}: {number:,} entities" for name, number in known.items())
        shown = shown or "none"
        typer.echo(f"Services known here: {shown}. A broker has no list of them.", err=True)
    questions.ask("service", 'Service, "" for the default one', proposed, check)
    return found[-1]


def _propose_structures(connection_id: str, fields: ConnectionFields, questions: _Questions) -> PublicationProposal:
    from contexture.operations.actions import source_survey
    from contexture.operations.actions.publication_proposal import StructureSelection, propose_structures
    from contexture.sources.sdmx.registry import registry_connection

    connection, media_type = registry_connection(connection_id, fields), questions.given["media_type"]
    survey = source_survey.survey_registry(connection, media_type)
    agencies = questions.choose("agency", f"Agencies of {survey.title}", survey.by_place(), is_whole=True)
    classes = questions.choose("class_", "Classes", survey.by_kind(agencies), is_whole=True)
    choices = _choices(connection_id, agencies[0] if len(agencies) == 1 else "structures", questions)
    return propose_structures(connection, choices, StructureSelection(agencies, classes, media_type), survey)


def _choices(connection_id: str, title: str, questions: _Questions, models: tuple[str, ...] = ()) -> PublicationChoices:
    """Returns the name, the topics, the connection to Kafka and the schedule."""
    from contexture.operations.actions.publication_proposal import (
        SCHEDULE,
        PublicationChoices,
        check_schedule,
        propose_name,
    )
    from contexture.operations.actions.source_survey import list_connections
    from contexture.operations.environment import known_publications

    taken = {each.name for each in known_publications()} | {file.stem for file in questions.folder.glob("*.y*ml")}

    def check(name: str) -> str:
        if check_name(name) in taken and not questions.given["force"]:
            raise ConfigurationError(
                f"there is a publication {name!r} already", next_step="choose another name, or replace it with --force"
            )
        return name

    name = questions.ask("name", "\nName", propose_name(title, taken), check)
    or_models = f"; or one for each service path or entity: {', '.join(models)}" if models else ""
    topics = questions.ask("topics", f"Topics, with commas{or_models}", name, str)
    clusters = list_connections()[1]
    kafka = questions.ask("kafka", "Connection to Kafka", [*clusters, "kafka_default"][0], str)
    if kafka not in clusters:
        typer.echo(f"note: the environment has no connection {kafka!r} to Kafka yet", err=True)
    schedule = questions.ask("schedule", f"Schedule, {_BY_HAND}: by hand", SCHEDULE, check_schedule)
    return PublicationChoices(name, connection_id, kafka, topics, schedule)


def _print_proposal(proposal: PublicationProposal, file: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    from contexture.cli.check import print_preview, print_problem, print_structures
    from contexture.operations.actions.preview import Preview

    console = Console(highlight=False, soft_wrap=True)
    if proposal.profile:
        console.print(Text(f"\nprofile of {proposal.profile[0].entities} sampled entities", style="bold"))
    for each in proposal.profile:
        console.print(Text(printable(str(each)), style="dim"))
    console.print(Text(f"\n--- {file}", style="bold"))
    console.print(Text(proposal.proposed.text()))
    for problem in proposal.problems:
        print_problem(console, problem)
    if isinstance(proposal.preview, Preview):
        print_preview(console, proposal.preview, _RECORDS)
    elif proposal.preview:
        print_structures(console, proposal.preview)


def _document(proposal: PublicationProposal, file: Path, written: bool) -> dict[str, Any]:
    shown, proposed = proposal.preview, proposal.proposed
    return {
        "name": proposed.name,
        "path": str(file),
        "written": written,
        "right": proposal.loaded.error is None,
        "connection": proposed.connection,
        "selected": proposed.selected,
        "counts": proposal.counts,
        "profile": [each.as_dict() for each in proposal.profile],
        "candidates": [asdict(each) for each in getattr(proposed, "candidates", ())],
        "text": proposed.text(),
        "problems": [{**problem.as_dict(), "path": file.name} for problem in proposal.problems],
        "preview": asdict(shown) | {"topics": shown.topics} if shown else None,
        "next": proposal.next_steps(str(file)),
    }
