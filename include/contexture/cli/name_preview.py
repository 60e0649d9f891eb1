"""Which topics entities would get, name by name: what the name is made of, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contexture.errors import RejectedError
from contexture.events import ContextIdentity
from contexture.publications import Publication, fields
from contexture.records.topics import TopicNamer
from contexture.records.topics.collisions import as_brokers_compare, colliding, numbered
from contexture.sources.ngsi import EntityError, ParsedEntity, parse_entity

if TYPE_CHECKING:
    from contexture.cli.samples import Samples


@dataclass(frozen=True, slots=True)
class AskedName:
    """An entity, or one attribute of it, whose topic is asked for."""

    identity: ContextIdentity
    attribute: str | None = None
    attribute_type: str = ""


@dataclass(frozen=True, slots=True)
class ShownName:
    """The topics of what was asked for.

    Attributes:
        asked: the entity and the attribute.
        identity: what the name is made of, after grouping rules and name mappings.
        attribute: likewise the attribute's name.
        topics: the topics; none where there is an error.
        error: why it would go to quarantine, and what to do; empty otherwise.
        collides: whether another of those asked for would share the topic, or could not have its own beside it.
    """

    asked: AskedName
    identity: ContextIdentity
    attribute: str | None
    topics: tuple[str, ...]
    error: str = ""
    collides: bool = False


def asked_entity(publication: Publication, text: str, service_path: str | None) -> ContextIdentity:
    """The entity that `id=type` or `id` means; its path is the publication's only one unless it is given."""
    entity_id, _, entity_type = text.rpartition("=") if "=" in text else (text, "", "")
    return ContextIdentity(publication.source.service, service_path or _path(publication), entity_id, entity_type)


def asked_of_sample(publication: Publication, samples: Samples) -> tuple[list[AskedName], list[str]]:
    """The entities of a sample, or each of their attributes; and what is wrong with those that can't be read."""
    asked, refused = list[AskedName](), list[str]()
    source = publication.source
    for each in samples.entities:
        try:
            parsed = parse_entity(
                each.body, service=source.service, service_path_hint=each.service_path, form=source.api
            )
        except EntityError as error:
            refused.append(str(error))
            continue
        asked.extend(_names_of(parsed) if tells_attributes(publication) else [AskedName(parsed.identity)])
    return asked, refused


def tells_attributes(publication: Publication) -> bool:
    """Whether topics are those of attributes."""
    return publication.topics.data_model == "dm-by-attribute" and publication.topics.naming != "fixed"


def _names_of(parsed: ParsedEntity) -> Iterator[AskedName]:
    for name, member in parsed.attributes.items():
        kind = member.get("type") if isinstance(member, dict) else None
        attribute = parsed.attribute_name(name).name
        yield AskedName(parsed.identity, attribute, kind if isinstance(kind, str) else "")


def show_names(publication: Publication, asked: Iterable[AskedName]) -> list[ShownName]:
    """The topics of each, in order.

    Raises:
        ConfigurationError: the publication's topics can't be named.
    """
    namer = TopicNamer(publication.topics)
    return _with_collisions(namer, publication, [_shown(namer, each) for each in asked])


def _with_collisions(namer: TopicNamer, publication: Publication, shown: list[ShownName]) -> list[ShownName]:
    if publication.topics.naming == "fixed":
        return shown
    named = [each for each in shown if not each.error]
    topics = numbered([as_brokers_compare(each.topics[0]) for each in named])
    asked = [(each.asked.identity, each.asked.attribute, each.asked.attribute_type) for each in named]
    found = iter(colliding(topics, numbered([namer.parts(*each) for each in asked])).tolist())
    return [each if each.error else replace(each, collides=next(found)) for each in shown]


def _shown(namer: TopicNamer, asked: AskedName) -> ShownName:
    identity, attribute = namer.names(asked.identity, asked.attribute, asked.attribute_type)
    try:
        topics = namer(asked.identity, asked.attribute, asked.attribute_type)
    except RejectedError as error:
        return ShownName(asked, identity, attribute, (), str(error))
    return ShownName(asked, identity, attribute, topics)


def _path(publication: Publication) -> str:
    if publication.source.api == "ngsi-ld":
        # It has no service paths.
        return "/"
    first = publication.source.service_path[0]
    return first if not fields.is_wildcard(first) else first.removesuffix("#").rstrip("/") or "/"
