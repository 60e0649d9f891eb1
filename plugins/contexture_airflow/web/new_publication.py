"""A new publication from what a source has, as `contexture new` proposes it; the page shows the file and writes none.

Publication files are deployed and reviewed as DAG files are. The API server may have another copy of their folder than
the scheduler, or none. A file that is written there makes a DAG, and Airflow has no right to check for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from contexture.errors import ConfigurationError, ContextureError
from contexture.importers.fmr import ProducerRequest, import_producer
from contexture.importers.result import check_import
from contexture.operations.actions import source_survey
from contexture.operations.actions.check import StructurePreview
from contexture.operations.actions.connection_check import connection_target
from contexture.operations.actions.preview import Preview
from contexture.operations.actions.publication_proposal import (
    BY_HAND,
    DATA_MODELS,
    SCHEDULE,
    EntitySelection,
    PublicationChoices,
    PublicationProposal,
    StructureSelection,
    check_schedule,
    propose_entities,
    propose_name,
    propose_structures,
)
from contexture.operations.actions.source_survey import SourceSurvey
from contexture.publications import Publication, check_name
from contexture.publications.source import STRUCTURE_FORM, SourceKind
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.entity import EntityForm
from contexture.sources.sdmx.registry import RegistryConnection
from contexture_airflow.connections.settings import fields, source_connection
from contexture_airflow.web.forms import SubmittedForm, read_form
from contexture_airflow.web.rendering import render
from contexture_airflow.web.visitor import CurrentVisitor, Visitor

_SECONDS: Final = 10.0
_WALK_SECONDS: Final = 15.0
_SAMPLE: Final = 200
_SHOWN: Final = 200
_RECORDS: Final = 20
_KAFKA: Final = "kafka_default"
_Text = Annotated[str, Field(max_length=300)]
_Id = Annotated[str, Field(max_length=250, pattern=r"^[\w.-]*$")]
_Many = Annotated[tuple[_Text, ...], Field(max_length=_SHOWN)]


class ProposalRequest(BaseModel):
    """What was chosen so far; empty or None: nothing yet."""

    connection: _Id = ""
    kind: Literal["ngsi", "sdmx"] | None = None
    service: _Text | None = None
    api: EntityForm = "ngsiv2"
    context: _Text = ""
    media_type: _Text = STRUCTURE_FORM
    path: _Many = ()
    type: _Many = ()
    agency: _Many = ()
    class_: _Many = Field((), alias="class")
    name: _Text = ""
    topics: _Text = ""
    naming: Literal["", "dm-by-service-path", "dm-by-entity"] = ""
    kafka: _Id = ""
    schedule: _Text = SCHEDULE
    require: bool = False


Chosen = Annotated[ProposalRequest, Query()]
router = APIRouter(prefix="/new", default_response_class=HTMLResponse)


@router.get("")
def show_connections(request: Request, visitor: CurrentVisitor, chosen: Chosen) -> str:
    """The choice of a connection, and below it what its source has, which is asked for after the page is shown."""
    visitor.require_test_right(chosen.connection or None)
    load = visitor.places.new("survey", request.url.query) if chosen.connection else ""
    return render("new", visitor.places, chosen=chosen, load=load, offered=find_connections(visitor)[0])


@router.get("/survey")
def show_survey(visitor: CurrentVisitor, chosen: Chosen) -> str:
    """What the source has, with a form that chooses among it."""
    return render("new_survey", visitor.places, chosen=chosen, found=find_survey(visitor, chosen), shown=_SHOWN)


@router.get("/proposal")
def show_proposal(request: Request, visitor: CurrentVisitor, chosen: Chosen) -> str:
    """The proposed file, which is made after the page is shown."""
    visitor.require_test_right(chosen.connection)
    load = visitor.places.new("proposal/file", request.url.query)
    return render("new_proposal", visitor.places, chosen=chosen, load=load)


@router.get("/proposal/file")
def show_file(visitor: CurrentVisitor, chosen: Chosen) -> str:
    """The proposed file with what it would send."""
    return render("new_file", visitor.places, found=find_proposal(visitor, chosen), records=_RECORDS, shown=_SHOWN)


@router.get("/fmr")
def show_import(visitor: CurrentVisitor) -> str:
    """The form for the properties of a Fusion registry's producer."""
    visitor.require_test_right(None)
    return render("new_fmr", visitor.places, problem="", imported=None)


@router.post("/fmr")
def import_properties(visitor: CurrentVisitor, form: Annotated[SubmittedForm, Depends(read_form)]) -> str:
    """What `contexture import fmr` makes of these properties, which may be secret and are not kept."""
    visitor.require_test_right(None)
    request = ProducerRequest(
        name=form.one("name").strip() or "structures",
        topic=form.one("topic").strip() or None,
        form=form.one("format").strip() or None,
        registry=form.one("registry").strip() or None,
    )
    try:
        imported = check_import(import_producer(form.one("properties").replace("\r\n", "\n"), request), {})
    except ConfigurationError as error:
        return render("new_fmr", visitor.places, problem=str(error), imported=None)
    return render("new_fmr", visitor.places, problem="", imported=imported)


@router.post("/file")
def download_file(visitor: CurrentVisitor, form: Annotated[SubmittedForm, Depends(read_form)]) -> Response:
    """The text that the page has shown, as a file for the browser; nothing is stored."""
    try:
        name = check_name(form.one("name"))
    except ConfigurationError as error:
        raise HTTPException(422, str(error)) from error
    # Browsers send the lines of a form with a carriage return.
    text = form.one("text").replace("\r\n", "\n")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(f'{name}.yaml', safe='')}"}
    return Response(text, media_type="application/yaml", headers=headers)


def find_connections(visitor: Visitor) -> tuple[list[str], list[str]]:
    """Returns the connections that the visitor may test: those that may lead to a source, and those to Kafka.

    Airflow lists those of its database and of the environment; ids in a secrets backend are written by hand.
    """
    sources, clusters = map(set, source_survey.list_connections())
    for connection_id, kind in visitor.installation.airflow.connection_types().items():
        target = connection_target(kind)
        if target is not None:
            (clusters if target == "kafka" else sources).add(connection_id)
    return sorted(filter(visitor.may_test, sources)), sorted(filter(visitor.may_test, clusters))


@dataclass(frozen=True, slots=True)
class SurveyView:
    """What a source has, or why that is not known.

    Attributes:
        services: of a broker whose service is not chosen yet: those that are known, with their entities.
        by_place: numbers by service path or agency.
        by_kind: numbers by type or class.
        names: what the publication may be called, and which connections lead to Kafka.
    """

    problem: str = ""
    kind: SourceKind | None = None
    services: Mapping[str, int] | None = None
    survey: SourceSurvey | None = None
    by_place: Mapping[str, int] = field(default_factory=dict)
    by_kind: Mapping[str, int] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()
    models: tuple[str, ...] = DATA_MODELS
    by_hand: str = BY_HAND


def find_survey(visitor: Visitor, chosen: ProposalRequest) -> SurveyView:
    """Returns what a source has: first the services of a broker, then the paths and types of the chosen one."""
    visitor.require_test_right(chosen.connection)
    try:
        with visitor.installation.outside_calls:
            return _survey(visitor, chosen)
    except ContextureError as error:
        return SurveyView(str(error))


def _survey(visitor: Visitor, chosen: ProposalRequest) -> SurveyView:
    publications = _publications(visitor)
    kind = chosen.kind or source_survey.find_source_kind(
        chosen.connection, fields(chosen.connection), publications, _SECONDS / 2
    )
    match _open(chosen.connection, kind):
        case RegistryConnection() as registry:
            survey = source_survey.survey_registry(registry, chosen.media_type)
        case broker if chosen.service is None:
            services = source_survey.count_services(chosen.connection, broker, publications)
            return SurveyView(kind=kind, services=services)
        case broker:
            survey = source_survey.survey_broker(broker, chosen.service, chosen.context, walk_seconds=_WALK_SECONDS)
            if not survey.groups:
                raise ConfigurationError(
                    f"the service {chosen.service!r} has no entities",
                    next_step="choose another one: a broker has no list of services, and a misspelt one looks empty",
                )
    clusters = tuple(find_connections(visitor)[1]) or (_KAFKA,)
    return SurveyView("", kind, None, survey, survey.by_place(), survey.by_kind(), clusters)


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal, or why there is none.

    Attributes:
        shows_values: whether rules and reasons that quote values of entities are shown.
        refused: how many of the sample would go to quarantine, by rule.
    """

    problem: str = ""
    proposal: PublicationProposal | None = None
    shows_values: bool = False
    refused: Mapping[str, int] = field(default_factory=dict)
    entities: Preview | None = None
    structures: StructurePreview | None = None


def find_proposal(visitor: Visitor, chosen: ProposalRequest) -> ProposalView:
    """Returns the proposed publication, with values of entities only for those who may see them."""
    visitor.require_test_right(chosen.connection)
    shows_values = visitor.may_see_values
    try:
        with visitor.installation.outside_calls:
            found = _propose(visitor, chosen, shows_values)
    except ContextureError as error:
        return ProposalView(str(error))
    if isinstance(found.preview, StructurePreview):
        return ProposalView("", found, shows_values, structures=found.preview)
    refused = Counter(each.rule for each in found.preview.refused) if found.preview else {}
    return ProposalView("", found, shows_values, refused, found.preview)


def _propose(visitor: Visitor, chosen: ProposalRequest, shows_values: bool) -> PublicationProposal:
    if chosen.kind is None or (chosen.kind == "ngsi" and chosen.service is None):
        raise ConfigurationError("nothing is chosen yet", next_step="begin with the connection")
    connection = _open(chosen.connection, chosen.kind)
    if isinstance(connection, RegistryConnection):
        of_registry = StructureSelection(chosen.agency, chosen.class_, chosen.media_type)
        title = chosen.agency[0] if len(chosen.agency) == 1 else "structures"
        survey = source_survey.survey_registry(connection, chosen.media_type)
        return propose_structures(connection, _choices(visitor, chosen, title), of_registry, survey)
    service = (chosen.service or "").strip()
    of_broker = EntitySelection(service, chosen.api, chosen.context, chosen.path, chosen.type)
    title = chosen.type[0] if len(chosen.type) == 1 else service or chosen.connection
    return propose_entities(
        connection,
        _choices(visitor, chosen, title),
        of_broker,
        sample=_SAMPLE,
        confirm_required=lambda names, entities: chosen.require,
        shows_values=shows_values,
    )


def _choices(visitor: Visitor, chosen: ProposalRequest, title: str) -> PublicationChoices:
    # Names of publications that this visitor may not see are not said to be taken.
    taken = set(visitor.sources.dags)
    name = check_name(chosen.name.strip() or propose_name(title, taken))
    if name in taken:
        raise ConfigurationError(f"there is a publication {name!r} already", next_step="choose another name")
    topics = chosen.naming or chosen.topics.strip() or name
    schedule = check_schedule(chosen.schedule.strip() or BY_HAND)
    return PublicationChoices(name, chosen.connection, chosen.kafka or _KAFKA, topics, schedule)


def _open(connection_id: str, kind: SourceKind) -> BrokerConnection | RegistryConnection:
    """Returns a connection on which a person waits."""
    found = source_connection(connection_id, kind)
    return replace(found, timeout_seconds=min(found.timeout_seconds, _SECONDS))


def _publications(visitor: Visitor) -> list[Publication]:
    known = visitor.sources.publications
    return [known[name] for name in visitor.sources.dags if name in known]
