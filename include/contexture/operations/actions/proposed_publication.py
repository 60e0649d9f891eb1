"""The YAML text of a proposed publication: what was chosen, with the reason beside each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from contexture.errors import ConfigurationError
from contexture.operations.actions.check import with_whole_selectors
from contexture.operations.actions.entity_profile import RuleCandidate, plain
from contexture.publications import LoadedPublication, parse_publication
from contexture.publications.yaml_document import quote

_NO_SQL: Final = frozenset("'\\\n")


@dataclass(frozen=True, slots=True)
class ProposedPublication:
    """What every proposal has.

    Attributes:
        name: of the publication.
        connection: id of the connection to the source.
        kafka: id of the connection to Kafka.
        topics: the names of its topics.
        schedule: when it runs; None: by hand.
        selected: how many entities or structures it selects now.
    """

    name: str
    connection: str
    kafka: str
    topics: tuple[str, ...]
    schedule: str | None
    selected: int


@dataclass(frozen=True, slots=True)
class ProposedEntities(ProposedPublication):
    """A publication of a context broker's entities.

    Attributes:
        service: the Fiware-Service, or tenant.
        api: the interface to read.
        context: URL of the @context; empty for none.
        service_paths: those that are read; none for all.
        types: those that are read; none for all.
        data_model: how topics are named where `topics` has none.
        candidates: rules that the sample keeps.
        requires: whether required attributes are in force.
    """

    service: str = ""
    api: str = "ngsiv2"
    context: str = ""
    service_paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    data_model: str = "dm-by-entity"
    candidates: tuple[RuleCandidate, ...] = ()
    requires: bool = False

    def text(self) -> str:
        """Returns the file."""
        return _joined(_head(self), self._source(), self._topics(), _publish(self), self._quality())

    def _source(self) -> Iterator[str]:
        yield from ("source:", "  kind: ngsi", f"  connection: {self.connection}")
        if self.api != "ngsiv2":
            yield f"  api: {self.api}  # the interface that the broker responds by"
        if self.context:
            yield f"  context: {quote(self.context)}  # short names of types and attributes"
        yield f"  service: {quote(self.service)}" + ("" if self.service else "  # the broker's default service")
        if self.service_paths:
            yield f"  service_path: {_list(self.service_paths)}"
        else:
            yield '  service_path: "/#"  # all service paths'
        if self.types:
            yield f"  types: {_list(self.types)}"
        else:
            yield "  # types: [Car]  # without it every type, also those to come"
        yield "  detect_deletions: true  # a record without a value for each entity that is deleted"

    def _topics(self) -> Iterator[str]:
        if self.topics:
            yield from ("topics:", "  naming: fixed")
            yield f"  topics: {_list(self.topics)}  # every entity goes to each of them"
        else:
            yield from ("topics:", "  naming: cygnus", f"  data_model: {self.data_model}")
        yield from _keep("entity")

    def _quality(self) -> Iterator[str]:
        yield from _minimum(self.selected)
        required = [each for each in self.candidates if each.rule == "required"]
        if required:
            mark = "" if self.requires else "# "
            reason = "An entity without one goes to quarantine; without the rule it would stop the run."
            yield f"  # {reason}" + ("" if self.requires else " Uncomment what must hold:")
            names = _list(tuple(each.attribute for each in required))
            yield f"  {mark}required_attributes: {names}  # {required[0].why}"
            yield f"  {mark}rules: {{required-attr: error}}"
        yield from self._warned("range", "ranges", "a number outside is published, counted, and marks the run")
        yield from self._warned("enumeration", "allowed_values", "another value is published, and counted")
        patterns = [each for each in self.candidates if each.rule == "pattern" and not _NO_SQL & set(each.attribute)]
        if patterns:
            yield "  # Other texts mark the run, which takes some seconds more. Uncomment what must hold:"
            yield "  # expectations:"
            for each in patterns:
                where = f"attribute = '{each.attribute}'"
                yield "  #   - name: expect_column_values_to_match_regex"
                yield "  #     on: attributes"
                yield f"  #     where: {quote(where)}  # {each.why}"
                yield f"  #     kwargs: {{column: text, regex: {quote(str(each.value))}, severity: warning}}"

    def _warned(self, kind: str, key: str, effect: str) -> Iterator[str]:
        found = [each for each in self.candidates if each.rule == kind]
        if found:
            yield f"  {key}:  # {effect}"
        for each in found:
            if kind == "range":
                low, high = (plain(float(bound)) for bound in each.value or ())
                value = f"{{minimum: {low}, maximum: {high}}}"
            else:
                value = _list(tuple(map(str, each.value or ())))
            yield f"    {quote(each.attribute)}: {value}  # {each.why}"


@dataclass(frozen=True, slots=True)
class ProposedStructures(ProposedPublication):
    """A publication of a registry's structures.

    Attributes:
        agencies: those whose structures are read; none for all.
        classes: likewise the classes.
        media_type: the format.
    """

    agencies: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    media_type: str = ""

    def text(self) -> str:
        """Returns the file."""
        return _joined(_head(self), self._source(), self._topics(), _publish(self), _minimum(self.selected))

    def _source(self) -> Iterator[str]:
        yield from ("source:", "  kind: sdmx", f"  connection: {self.connection}")
        if self.agencies or self.classes:
            selector = f"{','.join(self.classes) or '*'}={','.join(self.agencies) or '*'}:*(*)"
            yield f"  select: [{quote(selector)}]  # CLASS=AGENCY:ID(VERSION), * for any"
        else:
            yield '  # select: ["Codelist=ECB:*(*)"]  # without it all structures, also those to come'
        yield f"  media_type: {quote(self.media_type)}  # the format of the values"

    def _topics(self) -> Iterator[str]:
        yield from ("topics:", f"  topics: {_list(self.topics)}  # every structure goes to each of them")
        yield from _keep("structure")


def load_text(name: str, text: str) -> LoadedPublication:
    """Returns the publication of a text, or everything that is wrong with it, as `contexture check` finds it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return with_whole_selectors(parse_publication(path))


def write_file(path: Path, text: str, *, replaces: bool) -> None:
    """Writes a publication's file.

    Raises:
        ConfigurationError: it is there and is not to be replaced, or the folder cannot be written.
    """
    try:
        with path.open("w" if replaces else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError(
            f"{path} is there already", next_step="choose another name by --name, or replace it with --force"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}", next_step="check the folder and its permissions"
        ) from None


def _joined(*sections: Iterator[str]) -> str:
    return "".join(f"{line}\n" for section in sections for line in section)


def _head(proposed: ProposedPublication) -> Iterator[str]:
    yield "# Made by `contexture new`; docs/reference/publication.md explains all keys."
    yield f"name: {proposed.name}"
    if proposed.schedule:
        yield f"schedule: {quote(proposed.schedule)}  # when the source is read"
    else:
        yield '# schedule: "*/5 * * * *"  # without it runs start by hand'


def _publish(proposed: ProposedPublication) -> Iterator[str]:
    yield from ("publish:", f"  connection: {proposed.kafka}")


def _keep(what: str) -> Iterator[str]:
    yield f"  keep: latest  # compacted: the newest record of each {what} stays; history: every change does"
    yield "  # replication_factor: 3  # without it the brokers' own default"


def _minimum(selected: int) -> Iterator[str]:
    yield "quality:"
    why = f"half of the {selected:,} of today: a source that shows less stops the run"
    yield f"  minimum_entities: {max(1, selected // 2)}  # {why}"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quote, texts))}]"
