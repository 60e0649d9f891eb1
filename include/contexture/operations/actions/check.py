"""Checking publication files: loading each, and previewing the records of its entities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.errors import ConfigurationError, ContextureError
from contexture.operations.actions import structure_preview
from contexture.publications import LoadedPublication, NgsiPublication, SdmxPublication, discover

if TYPE_CHECKING:
    from contexture.operations.actions.preview import Preview
    from contexture.operations.actions.structure_preview import StructurePreview

from contexture.operations.environment import publications_folder


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
    return [_checked(structure_preview.with_whole_selectors(each), preview_from) for each in loaded]


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
        return Checked(loaded, structures=structure_preview.preview_of_file(publication, preview_from.sample))
    from contexture.operations import environment

    try:
        connection = environment.registry(publication.source.connection, preview_from.source)
        if connection is None:
            variable = environment.variable_of(publication.source.connection)
            how = f"for a preview set {variable}, or give --source http://host:8080 or --sample structures.xml"
            return Checked(loaded, no_preview=how)
        return Checked(loaded, structures=structure_preview.preview_of_registry(publication, connection))
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
