"""`contexture new`: a publication from what a source has, by questions or by options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contexture.cli import exit_codes
from contexture.cli.output import printable
from contexture.errors import ConfigurationError
from contexture.publications import NgsiPublication, SdmxPublication, check_name
from contexture.publications.schedule import check as check_schedule
from contexture.publications.source import STRUCTURE_FORM

if TYPE_CHECKING:
    from contexture.operations.actions.check import StructurePreview
    from contexture.operations.actions.entity_profile import AttributeProfile
    from contexture.operations.actions.preview import Preview
    from contexture.operations.actions.proposed_publication import ProposedEntities, ProposedStructures
    from contexture.operations.actions.source_survey import SourceSurvey
    from contexture.publications import LoadedPublication, Problem
    from contexture.sources.http.connection import BrokerConnection, ConnectionFields

app = typer.Typer(add_completion=False)

_SHOWN = 20
_RECORDS = 3
_ALL = "all"
_BY_HAND = "none"
_SCHEDULE = "*/5 * * * *"
DATA_MODELS = ("dm-by-service-path", "dm-by-entity")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A proposal, and what was found out on the way."""

    proposed: ProposedEntities | ProposedStructures
    loaded: LoadedPublication
    counts: dict[str, dict[str, int]]
    preview: Preview | StructurePreview | None = None
    profile: Sequence[AttributeProfile] = ()

    @property
    def problems(self) -> Sequence[Problem]:
        """The errors of the file, or its notes."""
        return self.loaded.error.problems if self.loaded.error else self.loaded.notes

    def next_steps(self, file: Path) -> list[str]:
        """Returns what to do once the file is written."""
        name = self.proposed.name
        entities = f"then: airflow dags trigger publish_{name} --conf '{{\"dry_run\": true}}'"
        structures = (
            f"then: `contexture check {file} --sizes`, and `contexture resync {name} --mode full --reason 'first load'`"
        )
        step = structures if "agencies" in self.counts else entities
        return [*self._quarantine(), f"next: read the file; after each change `contexture check {file}`", step]

    def _quarantine(self) -> Iterator[str]:
        from contexture.operations.actions.preview import Preview

        if isinstance(self.preview, Preview) and self.loaded.publication:
            refused = len({each.id for each in self.preview.refused})
            allowed = self.loaded.publication.quality.max_quarantined_share
            if refused > allowed * self.preview.entities:
                yield (
                    f"first: {refused} of {self.preview.entities} sampled entities would go to quarantine, more than "
                    f"quality.max_quarantined_share ({allowed}) allows: correct them, or set `quality.rules`"
                )


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
        names = list(counts)

        def check(text: str) -> str:
            parts = [] if text == _ALL else _parts(text)
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
            return _parts(check(",".join(given)))
        return _parts(self.ask("", "Numbers or names, with commas", _ALL, check))


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
    topics: Annotated[str | None, typer.Option(help=f"With commas; broker: or {' or '.join(DATA_MODELS)}.")] = None,
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
        outcome = _propose(questions)
        file = questions.folder / f"{outcome.proposed.name}.yaml"
        is_right = outcome.loaded.error is None
        if not as_json:
            _print_outcome(outcome, file)
        writes = is_right and (yes or (questions.asks and typer.confirm(f"\nWrite {file}?", default=True)))
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("\nstopped: nothing was written (without a terminal, give --yes or --json)", err=True)
        raise typer.Exit(exit_codes.INVALID) from None
    if writes:
        write_file(file, outcome.proposed.text(), replaces=force)
    if as_json:
        typer.echo(json.dumps(_document(outcome, file, writes), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join([f"wrote {file}", *outcome.next_steps(file)]) if writes else "nothing was written")
    raise typer.Exit(exit_codes.OK if is_right else exit_codes.INVALID)


def _folder(output: Path | None) -> Path:
    from contexture.operations.environment import FOLDER_VARIABLE, publications_folder

    folder = output or publications_folder()
    if not folder.is_dir():
        raise ConfigurationError(
            f"{folder} is not a folder", next_step=f"make it, set {FOLDER_VARIABLE} as Airflow has it, or give --output"
        )
    return folder


def _propose(questions: _Questions) -> _Outcome:
    from contexture.operations.actions import source_survey

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
    kind = questions.given["kind"] or source_survey.find_source_kind(connection, fields)
    return (_propose_structures if kind == "sdmx" else _propose_entities)(connection, fields, questions)


def _propose_entities(connection_id: str, fields: ConnectionFields, questions: _Questions) -> _Outcome:
    from contexture.operations import environment
    from contexture.operations.actions import preview, source_survey
    from contexture.operations.actions.entity_profile import profile_entities, suggest_rules
    from contexture.operations.actions.proposed_publication import ProposedEntities, load_text

    given, connection = questions.given, environment.context_broker(connection_id, fields)
    survey = _survey(connection_id, connection, questions)
    paths, by_place = tuple(given["path"] or ()), survey.by_place()
    if survey.api == "ngsiv2":
        paths = questions.choose("path", "Service paths", by_place, survey.is_whole)
    by_kind = survey.by_kind(paths)
    types = questions.choose("type_", "Types", by_kind, survey.is_whole)
    name, topics, kafka, schedule = _common(
        types[0] if len(types) == 1 else survey.title or connection_id, questions, DATA_MODELS
    )
    proposed = ProposedEntities(
        *(name, connection_id, kafka, () if topics in DATA_MODELS else _parts(topics), schedule, 0),
        *(survey.title, survey.api, given["names_by"], paths, types, topics),
    )
    counts = {"service_paths": by_place, "types": by_kind}
    publication = load_text(name, proposed.text()).publication
    if not isinstance(publication, NgsiPublication):
        return _Outcome(proposed, load_text(name, proposed.text()), counts)
    selected = source_survey.count_selected(connection, publication.source)
    if not selected:
        raise ConfigurationError("no entity is selected", next_step="choose other service paths or types")
    samples = source_survey.sample_entities(connection, publication, given["sample"])
    profile = profile_entities(preview.parse_sample(publication, samples))
    rules = tuple(suggest_rules(profile))
    required = [each.attribute for each in rules if each.rule == "required"]
    requires = bool(given["require"])
    if required and given["require"] is None and questions.asks:
        typer.echo(f"\nAll {len(samples.entities)} sampled entities have: {', '.join(map(printable, required))}")
        requires = typer.confirm("Quarantine an entity without one of them?", default=False)
    proposed = replace(proposed, selected=selected, candidates=rules, requires=requires)
    loaded = load_text(name, proposed.text())
    shown = preview.preview(loaded.publication, samples) if isinstance(loaded.publication, NgsiPublication) else None
    return _Outcome(proposed, loaded, counts, shown, profile)


def _survey(connection_id: str, connection: BrokerConnection, questions: _Questions) -> SourceSurvey:
    """Returns the survey of the chosen service, which has entities."""
    from contexture.operations.actions import source_survey

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
        known = source_survey.count_services(connection_id, connection)
        largest = max(known, key=lambda name: known[name], default="")
        proposed = (largest or '""') if known.get(largest) else None
        shown = ", ".join(f"{name or 'the default one'}: {number:,} entities" for name, number in known.items())
        shown = shown or "none"
        typer.echo(f"Services known here: {shown}. A broker has no list of them.", err=True)
    questions.ask("service", 'Service, "" for the default one', proposed, check)
    return found[-1]


def _propose_structures(connection_id: str, fields: ConnectionFields, questions: _Questions) -> _Outcome:
    from contexture.operations.actions import check, source_survey
    from contexture.operations.actions.proposed_publication import ProposedStructures, load_text
    from contexture.sources.sdmx.registry import registry_connection

    connection, media_type = registry_connection(connection_id, fields), questions.given["media_type"]
    survey = source_survey.survey_registry(connection, media_type)
    by_place = survey.by_place()
    agencies = questions.choose("agency", f"Agencies of {survey.title}", by_place, is_whole=True)
    by_kind = survey.by_kind(agencies)
    classes = questions.choose("class_", "Classes", by_kind, is_whole=True)
    default = agencies[0] if len(agencies) == 1 else "structures"
    name, topics, kafka, schedule = _common(default, questions)
    selected = sum(number for each, number in by_kind.items() if not classes or each in classes)
    proposed = ProposedStructures(
        name, connection_id, kafka, _parts(topics), schedule, selected, agencies, classes, media_type
    )
    loaded, shown = load_text(name, proposed.text()), None
    if isinstance(loaded.publication, SdmxPublication):
        shown = check.preview(loaded.publication, connection.address, list(survey.urns))
    return _Outcome(proposed, loaded, {"agencies": by_place, "classes": by_kind}, shown)


def _common(default: str, questions: _Questions, models: tuple[str, ...] = ()) -> tuple[str, str, str, str | None]:
    """Returns the name, the topics, the connection to Kafka and the schedule."""
    from contexture.operations.actions.source_survey import list_connections
    from contexture.operations.environment import known_publications

    taken = {each.name for each in known_publications()} | {file.stem for file in questions.folder.glob("*.y*ml")}

    def check(name: str) -> str:
        if check_name(name) in taken and not questions.given["force"]:
            raise ConfigurationError(
                f"there is a publication {name!r} already", next_step="choose another name, or replace it with --force"
            )
        return name

    plain = "-".join(filter(None, _HUMP.split(default))).lower() or "publication"
    numbered = chain((plain,), (f"{plain}-{number}" for number in count(2)))
    name = questions.ask("name", "\nName", next(each for each in numbered if each not in taken), check)
    or_models = f"; or one for each service path or entity: {', '.join(models)}" if models else ""
    topics = questions.ask("topics", f"Topics, with commas{or_models}", name, str)
    clusters = list_connections()[1]
    kafka = questions.ask("kafka", "Connection to Kafka", [*clusters, "kafka_default"][0], str)
    if kafka not in clusters:
        typer.echo(f"note: the environment has no connection {kafka!r} to Kafka yet", err=True)
    schedule = questions.ask("schedule", f"Schedule, {_BY_HAND}: by hand", _SCHEDULE, _check_schedule)
    return name, topics, kafka, None if schedule == _BY_HAND else schedule


def _check_schedule(text: str) -> str:
    try:
        return text if text == _BY_HAND else str(check_schedule(text))
    except ValueError as error:
        raise ConfigurationError(str(error), next_step=f"write five cron fields, such as {_SCHEDULE}") from None


def _parts(names: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in names.split(",") if part.strip())


def _print_outcome(outcome: _Outcome, file: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    from contexture.cli.check import print_preview, print_problem, print_structures
    from contexture.operations.actions.preview import Preview

    console = Console(highlight=False, soft_wrap=True)
    if outcome.profile:
        console.print(Text(f"\nprofile of {outcome.profile[0].entities} sampled entities", style="bold"))
    for each in outcome.profile:
        console.print(Text(printable(str(each)), style="dim"))
    console.print(Text(f"\n--- {file}", style="bold"))
    console.print(Text(outcome.proposed.text()))
    for problem in outcome.problems:
        print_problem(console, problem)
    if isinstance(outcome.preview, Preview):
        print_preview(console, outcome.preview, _RECORDS)
    elif outcome.preview:
        print_structures(console, outcome.preview)


def _document(outcome: _Outcome, file: Path, written: bool) -> dict[str, Any]:
    shown, proposed = outcome.preview, outcome.proposed
    return {
        "name": proposed.name,
        "path": str(file),
        "written": written,
        "right": outcome.loaded.error is None,
        "connection": proposed.connection,
        "selected": proposed.selected,
        "counts": outcome.counts,
        "profile": [each.as_dict() for each in outcome.profile],
        "candidates": [asdict(each) for each in getattr(proposed, "candidates", ())],
        "text": proposed.text(),
        "problems": [{**problem.as_dict(), "path": file.name} for problem in outcome.problems],
        "preview": asdict(shown) | {"topics": shown.topics} if shown else None,
        "next": outcome.next_steps(file),
    }
