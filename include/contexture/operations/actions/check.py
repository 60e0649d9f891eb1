"""Checking publication files: loading each, and previewing the records of its entities or the topics of structures."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from contexture.errors import ConfigurationError, ContextureError
from contexture.operations.environment import publications_folder
from contexture.publications import LoadedPublication, NgsiPublication, PublicationError, SdmxPublication, discover
from contexture.publications.loading import place
from contexture.publications.problems import ModelProblem

if TYPE_CHECKING:
    from contexture.operations.actions.preview import Preview
    from contexture.sources.sdmx.registry import RegistryConnection

_STRUCTURES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class StructurePreview:
    """Where the structures of a registry, or of a message, would go.

    Attributes:
        origin: what was asked.
        held: structures in it.
        selected: those that `source.select` selects.
        topics: how many of these go to each topic.
        structures: the first of them with their topics.
        unrouted: selected, and selected by no route.
        refused: those whose topic would be illegal, with the reason.
        clashes: topics that Kafka takes for one name.
    """

    origin: str
    held: int
    selected: int
    topics: dict[str, int]
    structures: dict[str, tuple[str, ...]]
    unrouted: tuple[str, ...]
    refused: dict[str, str]
    clashes: tuple[tuple[str, ...], ...]


def with_whole_selectors(loaded: LoadedPublication) -> LoadedPublication:
    """The file as it was loaded, or with the errors of its selectors; the model sees no more than their shape."""
    publication = loaded.publication
    if not isinstance(publication, SdmxPublication):
        return loaded
    from contexture.sources.sdmx.selectors import unreadable

    found = [ModelProblem(where, error.message, error.next_step) for where, error in unreadable(publication)]
    if not found:
        return loaded
    problems = [place(loaded.path, finding) for finding in found]
    return replace(loaded, publication=None, error=PublicationError(loaded.path, problems))


def preview_of_file(publication: SdmxPublication, path: Path) -> StructurePreview:
    """Where the structures of a message would go.

    Raises:
        ConfigurationError: the file can't be read.
        StructureMessageError: it holds no structure message that can be split.
    """
    from contexture.sources.sdmx import split

    with opened(path) as stream:
        urns = [artefact.urn for artefact in split(stream) if artefact.urn is not None]
    return preview(publication, str(path), urns)


def preview_of_registry(publication: SdmxPublication, connection: RegistryConnection) -> StructurePreview:
    """Where the structures that a registry holds would go.

    Raises:
        ContextureError: the registry can't be reached, or refuses.
    """
    from contexture.sources.sdmx.registry import open_registry

    source = publication.source
    with open_registry(connection, flavour=source.flavour, registrations=source.registrations) as registry:
        held = registry.list_structures(source.media_type)
    return preview(publication, connection.address, list(held.urns))


def preview(publication: SdmxPublication, origin: str, held: list[str]) -> StructurePreview:
    """Where these structures would go."""
    from contexture.records.topics.structure_routes import router
    from contexture.sources.sdmx import Selector, select_structures

    selected = select_structures([Selector.parse(text) for text in publication.source.select], held)
    routing = router(publication.topics).route(selected, held=held)
    counted = Counter(topic for topics in routing.topics.values() for topic in topics)
    return StructurePreview(
        origin=origin,
        held=len(held),
        selected=len(selected),
        topics=dict(sorted(counted.items())),
        structures={urn: routing.topics[urn] for urn in list(routing.topics)[:_STRUCTURES_SHOWN]},
        unrouted=routing.unrouted,
        refused={urn: str(error) for urn, error in routing.refused.items()},
        clashes=routing.clashes,
    )


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The message as a stream.

    Raises:
        ConfigurationError: there is no such file, or it can't be read.
    """
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise unusable_file_error(error) from None
    with stream:
        yield stream


def unusable_file_error(error: OSError) -> ConfigurationError:
    """Returns the error for a file that cannot be read or written, with the next step."""
    return ConfigurationError(
        f"{error.filename or 'the file'}: {error.strerror}", next_step="check the path and its permissions"
    )


@dataclass(frozen=True, slots=True)
class PreviewFrom:
    """What a preview is of: a file, the source at an address, or (neither) that of the publication's own connection."""

    sample: Path | None = None
    source: str | None = None
    entities: int = 20


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found out about one file.

    Attributes:
        loaded: the publication with notes, or its errors.
        preview: what sample entities would become; None when there are none to look at.
        structures: where the structures of a registry would go; likewise.
        no_preview: why there is no preview, and how to get one.
        unreachable: a source was named but didn't give entities.
    """

    loaded: LoadedPublication
    preview: Preview | None = None
    structures: StructurePreview | None = None
    no_preview: str = ""
    unreachable: bool = False


def check(files: list[Path], preview_from: PreviewFrom) -> list[Checked]:
    """What is found out about every file, in order.

    Raises:
        ConfigurationError: a path or the sample file isn't there or can't be read.
    """
    paths = files or [publications_folder()]
    loaded = discover(*paths)
    if not loaded:
        raise ConfigurationError(
            f"no publication file in {', '.join(map(str, paths))}", next_step="name a folder with .yaml files"
        )
    return [_checked(with_whole_selectors(each), preview_from) for each in loaded]


def _checked(loaded: LoadedPublication, preview_from: PreviewFrom) -> Checked:
    publication = loaded.publication
    if isinstance(publication, SdmxPublication):
        return _routed(loaded, publication, preview_from)
    if isinstance(publication, NgsiPublication):
        if preview_from.sample is not None:
            return _previewed_from_file(loaded, publication, preview_from.sample)
        return _previewed_from_broker(loaded, publication, preview_from)
    return Checked(loaded, no_preview=f"events go to {', '.join(publication.topics.topics)}" if publication else "")


def _routed(loaded: LoadedPublication, publication: SdmxPublication, preview_from: PreviewFrom) -> Checked:
    """The file of a registry's publication with the topics that its structures would go to."""
    if preview_from.sample is not None:
        return Checked(loaded, structures=preview_of_file(publication, preview_from.sample))
    from contexture.operations import environment

    try:
        connection = environment.registry(publication.source.connection, preview_from.source)
        if connection is None:
            variable = environment.variable_of(publication.source.connection)
            how = f"for a preview set {variable}, or give --source http://host:8080 or --sample structures.xml"
            return Checked(loaded, no_preview=how)
        return Checked(loaded, structures=preview_of_registry(publication, connection))
    except ContextureError as error:
        return Checked(loaded, no_preview=str(error), unreachable=True)


def _previewed_from_file(loaded: LoadedPublication, publication: NgsiPublication, path: Path) -> Checked:
    # Only a preview needs numpy and an HTTP client.
    from contexture.operations.actions import preview

    return Checked(loaded, preview.preview(publication, preview.from_file(path, publication)))


def _previewed_from_broker(
    loaded: LoadedPublication, publication: NgsiPublication, preview_from: PreviewFrom
) -> Checked:
    from contexture.operations import environment
    from contexture.operations.actions import preview
    from contexture.sources.http.connection import BrokerConnection

    try:
        if preview_from.source is not None:
            connection: BrokerConnection | None = BrokerConnection(preview_from.source, timeout_seconds=10.0)
        else:
            connection = environment.from_environment(publication.source.connection)
        if connection is None:
            variable = environment.variable_of(publication.source.connection)
            how = f"for a preview set {variable}, or give --source http://host:1026 or --sample entities.json"
            return Checked(loaded, no_preview=how)
        found = preview.from_broker(connection, publication, preview_from.entities)
    except ContextureError as error:
        return Checked(loaded, no_preview=str(error), unreachable=True)
    return Checked(loaded, preview.preview(publication, found))
