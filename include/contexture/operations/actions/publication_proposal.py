"""A proposed publication: from what was chosen of a source to its file, with the records that it would send."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Final

from contexture.errors import ConfigurationError
from contexture.operations.actions import check, preview
from contexture.operations.actions.check import StructurePreview
from contexture.operations.actions.entity_profile import AttributeProfile, profile_entities, suggest_rules
from contexture.operations.actions.preview import Preview
from contexture.operations.actions.proposed_publication import ProposedEntities, ProposedStructures, load_text
from contexture.operations.actions.source_survey import SourceSurvey, count_selected, sample_entities
from contexture.publications import LoadedPublication, NgsiPublication, SdmxPublication
from contexture.publications.problems import Problem
from contexture.publications.schedule import check as check_cron
from contexture.publications.source import STRUCTURE_FORM
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.entity import EntityForm
from contexture.sources.sdmx.registry import RegistryConnection

BY_HAND: Final = "none"
"""The schedule of a publication whose runs start by hand."""
SCHEDULE: Final = "*/5 * * * *"
DATA_MODELS: Final = ("dm-by-service-path", "dm-by-entity")
"""Instead of names of topics: one for each service path, or for each entity."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

ConfirmRequired = Callable[[Sequence[str], int], bool]
"""Decides by the attributes that all sampled entities have, and their number, whether these are required."""


@dataclass(frozen=True, slots=True)
class PublicationChoices:
    """What a person chooses for a publication, whatever its source is.

    Attributes:
        connection: id of the connection to the source.
        kafka: id of the connection to Kafka.
        topics: names with commas; for a broker also one of `DATA_MODELS`.
        schedule: when it runs, or `BY_HAND`.
    """

    name: str
    connection: str
    kafka: str
    topics: str
    schedule: str = SCHEDULE

    @property
    def cron(self) -> str | None:
        """The schedule of the file; None: runs start by hand."""
        return None if self.schedule == BY_HAND else self.schedule


@dataclass(frozen=True, slots=True)
class EntitySelection:
    """The entities of a broker that were chosen; no paths or types: all of them."""

    service: str
    api: EntityForm
    context: str = ""
    service_paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StructureSelection:
    """The structures of a registry that were chosen; no agencies or classes: all of them."""

    agencies: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    media_type: str = STRUCTURE_FORM


@dataclass(frozen=True, slots=True)
class PublicationProposal:
    """A proposed file, and what it would do.

    Attributes:
        loaded: the publication of its text, or what is wrong with it.
        counts: what the source has: entities by service path and type, or structures by agency and class.
        preview: the first records; None where the file has errors.
        profile: the attributes of the sampled entities.
    """

    proposed: ProposedEntities | ProposedStructures
    loaded: LoadedPublication
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    preview: Preview | StructurePreview | None = None
    profile: Sequence[AttributeProfile] = ()

    @property
    def problems(self) -> Sequence[Problem]:
        """The errors of the file, or its notes."""
        return self.loaded.error.problems if self.loaded.error else self.loaded.notes

    def next_steps(self, file: str) -> list[str]:
        """Returns what to do once the file is written; `file`: its path."""
        name = self.proposed.name
        entities = f"then: airflow dags trigger publish_{name} --conf '{{\"dry_run\": true}}'"
        structures = (
            f"then: `contexture check {file} --sizes`, and `contexture resync {name} --mode full --reason 'first load'`"
        )
        step = structures if isinstance(self.proposed, ProposedStructures) else entities
        return [*self._quarantine(), f"next: read the file; after each change `contexture check {file}`", step]

    def _quarantine(self) -> Iterator[str]:
        if isinstance(self.preview, Preview) and self.loaded.publication:
            refused = len({each.id for each in self.preview.refused})
            allowed = self.loaded.publication.quality.max_quarantined_share
            if refused > allowed * self.preview.entities:
                yield (
                    f"first: {refused} of {self.preview.entities} sampled entities would go to quarantine, more than "
                    f"quality.max_quarantined_share ({allowed}) allows: correct them, or set `quality.rules`"
                )


def propose_entities(
    connection: BrokerConnection,
    choices: PublicationChoices,
    selection: EntitySelection,
    *,
    sample: int,
    confirm_required: ConfirmRequired,
    shows_values: bool = True,
) -> PublicationProposal:
    """Returns a publication of a broker's entities, of which a sample is profiled.

    Args:
        sample: how many entities are profiled.
        confirm_required: is called where all sampled entities have an attribute.
        shows_values: whether the file may have rules that quote values of the sample.

    Raises:
        ConfigurationError: nothing is selected.
        ContextureError: the broker cannot be reached, or refuses.
    """
    models = choices.topics in DATA_MODELS
    proposed = ProposedEntities(
        name=choices.name,
        connection=choices.connection,
        kafka=choices.kafka,
        topics=() if models else split_names(choices.topics),
        schedule=choices.cron,
        selected=0,
        service=selection.service,
        api=selection.api,
        context=selection.context,
        service_paths=selection.service_paths,
        types=selection.types,
        data_model=choices.topics,
    )
    loaded = load_text(choices.name, proposed.text())
    publication = loaded.publication
    if not isinstance(publication, NgsiPublication):
        return PublicationProposal(proposed, loaded)
    selected = count_selected(connection, publication.source)
    if not selected:
        raise ConfigurationError("no entity is selected", next_step="choose other service paths or types")
    samples = sample_entities(connection, publication, sample)
    profile = profile_entities(preview.parse_sample(publication, samples))
    rules = tuple(each for each in suggest_rules(profile) if shows_values or each.rule == "required")
    required = [each.attribute for each in rules if each.rule == "required"]
    requires = bool(required) and confirm_required(required, len(samples.entities))
    proposed = replace(proposed, selected=selected, candidates=rules, requires=requires)
    loaded = load_text(choices.name, proposed.text())
    shown = preview.preview(loaded.publication, samples) if isinstance(loaded.publication, NgsiPublication) else None
    return PublicationProposal(proposed, loaded, preview=shown, profile=profile)


def propose_structures(
    connection: RegistryConnection, choices: PublicationChoices, selection: StructureSelection, survey: SourceSurvey
) -> PublicationProposal:
    """Returns a publication of a registry's structures, with where those of the survey would go."""
    by_class = survey.by_kind(selection.agencies)
    wanted = selection.classes
    proposed = ProposedStructures(
        name=choices.name,
        connection=choices.connection,
        kafka=choices.kafka,
        topics=split_names(choices.topics),
        schedule=choices.cron,
        selected=sum(number for each, number in by_class.items() if not wanted or each in wanted),
        agencies=selection.agencies,
        classes=wanted,
        media_type=selection.media_type,
    )
    loaded, shown = load_text(choices.name, proposed.text()), None
    if isinstance(loaded.publication, SdmxPublication):
        shown = check.preview(loaded.publication, connection.address, list(survey.urns))
    return PublicationProposal(proposed, loaded, {"agencies": survey.by_place(), "classes": by_class}, shown)


def propose_name(title: str, taken: Collection[str]) -> str:
    """Returns a name for a publication that is made of a title, and numbered where others have it."""
    plain = "-".join(filter(None, _HUMP.split(title))).lower() or "publication"
    numbered = chain((plain,), (f"{plain}-{number}" for number in count(2)))
    return next(each for each in numbered if each not in taken)


def check_schedule(text: str) -> str:
    """Returns a schedule as it was given, or `BY_HAND`.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return text if text == BY_HAND else str(check_cron(text))
    except ValueError as error:
        raise ConfigurationError(str(error), next_step=f"write five cron fields, such as {SCHEDULE}") from None


def split_names(names: str) -> tuple[str, ...]:
    """Returns the names of a text that has commas between them."""
    return tuple(part.strip() for part in names.split(",") if part.strip())
