"""The part of a publication that says which topics its records go to, and how these are made."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr
from pydantic.json_schema import SkipJsonSchema

from contexture.publications.fields import (
    ChangesNoRecord,
    ChangesRecords,
    ConfigValue,
    Flag,
    Positive,
    PublicationModel,
    SelectorText,
    Text,
)

_NAMES = ChangesRecords("names topics")
_STORAGE = ChangesNoRecord("storage of topics that are made")
_GUARD = ChangesNoRecord("a guard that stops a run")
_REPLICA = ChangesRecords("a topic that becomes a replica must hold everything again")

DataModel = Literal["dm-by-service", "dm-by-service-path", "dm-by-entity", "dm-by-attribute"]

_LEGAL_TOPIC = re.compile(r"^[A-Za-z0-9._-]{1,249}$")
_MADE_FROM_STRUCTURE = re.compile(r"\{(agency|class)\}")
CYGNUS_2_19 = "cygnus-2.19"
_OWN_TOPICS = "contexture.ledger."


def _check_topic(name: str) -> str:
    if not _LEGAL_TOPIC.match(name) or name in {".", ".."}:
        raise ValueError(f"{name!r} is not a topic name: 1 to 249 letters, digits, dots, underscores and hyphens")
    if name.startswith(_OWN_TOPICS):
        raise ValueError(f"{name!r} belongs to Contexture's ledgers: choose a name without {_OWN_TOPICS}")
    return name


def _check_route_topic(name: str) -> str:
    made = _MADE_FROM_STRUCTURE.sub("x", name)
    if "{" in made or "}" in made:
        raise ValueError(f"{name!r}: names are made from {{agency}} and {{class}} only")
    _check_topic(made)
    return name


def _as_topics(value: object) -> object:
    """Returns a list, where the file has one text: names with commas between them, as Fusion Registry 10 takes them."""
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


def _check_different(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a topic is in the list twice: every record would be sent to it twice")
    return names


# A text: YAML reads 1.10 without quotes as the number 1.1.
CygnusVersion = Annotated[StrictStr, Field(pattern=r"^[0-3]\.[0-9]{1,2}(\.[0-9]{1,2})?$")]
TopicName = Annotated[Text, AfterValidator(_check_topic)]
_OneOrMany = BeforeValidator(_as_topics, json_schema_input_type=str | list[str])
TopicNames = Annotated[tuple[TopicName, ...], _OneOrMany, AfterValidator(_check_different)]
RouteTopic = Annotated[Text, AfterValidator(_check_route_topic)]
RouteTopics = Annotated[tuple[RouteTopic, ...], _OneOrMany, AfterValidator(_check_different), Field(min_length=1)]


class Route(PublicationModel):
    """Registry: the topics of the structures that a selector selects."""

    select: SelectorText = Field(description="Selector of structures, such as Codelist=BIS:*(*)")
    topics: RouteTopics = Field(
        description="Topics of what it selects; {agency} and {class} in them are those of the structure"
    )


Naming = Literal["cygnus", "cygnus-legacy", "injective", "fixed"]


class Topics(PublicationModel):
    """Names and creation of topics."""

    naming: Annotated[Naming, _NAMES] = Field("cygnus", description="fixed: those listed in topics")
    topics: Annotated[TopicNames, _NAMES] = Field((), description="Every record goes to each of these")
    partitions: Annotated[Positive, ChangesRecords("decides the partition of a key")] = Field(
        1, description="Partitions of new topics (Cygnus)"
    )
    replication_factor: Annotated[Annotated[Positive, Field(le=32767)] | None, _STORAGE] = Field(
        None,
        description="Replicas of new topics, at most the number of brokers (Cygnus); null: the brokers' own default",
    )
    keep: Annotated[Literal["latest", "history"], _REPLICA] = Field(
        "latest",
        description="latest: compacted, the topic is a replica; history: every change stays for the topic's retention, "
        "counted from its sending",
    )
    config: Annotated[dict[str, ConfigValue], _STORAGE] = Field({}, description="Further configuration of new topics")
    max_new_topics: Annotated[Positive, _GUARD] = Field(
        5000, description="A run that would create more topics fails before it sends"
    )
    max_broker_partitions: Annotated[Positive, _GUARD] = Field(
        15000, description="A run whose new topics would give a broker more partitions than this fails before it sends"
    )

    @property
    def written_names(self) -> tuple[str, ...]:
        """The names that the file has, each once; those of structures may have `{agency}` and `{class}` in them."""
        return self.topics

    @property
    def summary(self) -> str:
        """The names on one line, or how they are made."""
        return ",".join(self.written_names)


class EntityTopics(Topics):
    """Names, data model and creation of topics; parameter names and defaults are those of the Cygnus Kafka sink."""

    naming: Annotated[Literal["cygnus", "cygnus-legacy", "injective", "fixed"], _NAMES] = Field(
        "cygnus",
        description="cygnus: as NGSIKafkaSink does; cygnus-legacy: as it did up to 1.2; injective: no two share a "
        "name; fixed: those listed in topics",
    )
    cygnus_version: Annotated[CygnusVersion | None, _NAMES] = Field(
        None, description='Name topics as this release of Cygnus did, such as "1.9.0"; null: as all since 1.10 do'
    )
    data_model: Annotated[DataModel, ChangesRecords("names topics and decides what one record holds")] = Field(
        "dm-by-entity", description="What one topic is for (Cygnus' data_model)"
    )
    enable_lowercase: Annotated[Flag, _NAMES] = Field(False, description="Lower-case the finished name (Cygnus)")
    compat: Annotated[Literal["none", "cygnus-2.19"], _NAMES] = Field(
        "none", description="cygnus-2.19: grouping and mappings name with the quirks of that release"
    )
    enable_grouping: Annotated[Flag, _NAMES] = Field(False, description="Apply grouping_rules (Cygnus)")
    grouping_rules: Annotated[Text | None, ChangesNoRecord("where the file of rules is; its contents count")] = Field(
        None, description="File of grouping rules (Cygnus), from this file's folder"
    )
    grouping_rules_content: Annotated[SkipJsonSchema[Text | None], _NAMES] = Field(
        None, description="Its contents; never written"
    )
    enable_name_mappings: Annotated[Flag, _NAMES] = Field(False, description="Apply name_mappings (Cygnus)")
    name_mappings: Annotated[Text | None, ChangesNoRecord("where the file of mappings is; its contents count")] = Field(
        None, description="File of name mappings (Cygnus), from this file's folder"
    )
    name_mappings_content: Annotated[SkipJsonSchema[Text | None], _NAMES] = Field(
        None, description="Its contents; never written"
    )
    collision: Annotated[Literal["warn", "quarantine"], ChangesNoRecord("what is quarantined; outbox ids cover it")] = (
        Field(
            "warn",
            description=(
                "An entity whose topic is another's: warn: it is counted and sent; quarantine: it goes to quarantine"
            ),
        )
    )
    topics: Annotated[TopicNames, _NAMES] = Field(
        (), description="With naming fixed: every record goes to each of these"
    )

    @property
    def summary(self) -> str:
        """The names on one line, or how they are made."""
        return super().summary if self.naming == "fixed" else f"{self.naming} {self.data_model}"


class StructureTopics(Topics):
    """Names and creation of the topics of structures."""

    naming: Annotated[Literal["fixed"], _NAMES] = Field("fixed", description="fixed: those listed in topics and routes")
    routes: Annotated[tuple[Route, ...], _NAMES] = Field((), description="Topics by selector, in addition to topics")

    @property
    def written_names(self) -> tuple[str, ...]:
        """The names that the file has, those of routes too, each once."""
        return tuple(dict.fromkeys([*self.topics, *(name for route in self.routes for name in route.topics)]))


class EventTopics(Topics):
    """Names and creation of the topics of Contexture's own events."""

    naming: Annotated[Literal["fixed"], _NAMES] = Field("fixed", description="fixed: those listed in topics")
    keep: Annotated[Literal["history"], _REPLICA] = Field(
        "history", description="Every event stays as long as retention specifies"
    )
