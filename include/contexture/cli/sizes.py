"""`contexture check --sizes`: what each publication selects from its registry, against the limits of its target."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.errors import ConfigurationError, ContextureError, RetriableError
from contexture.publications import LoadedPublication, Publication, discover

if TYPE_CHECKING:
    from contexture.cli.structure_sizes import Progress, Sizes
    from contexture.kafka import ClientSettings
    from contexture.sending.size_limits import SizeLimits
    from contexture.sources.sdmx.registry import FusionRegistry, SdmxRegistry
    from contexture.sources.sdmx.registry.connection import AskedFlavour

WAIT_SECONDS = 15.0
"""How long brokers are waited for: somebody is waiting at a command line."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found out about one publication.

    Attributes:
        loaded: its file.
        skipped: why nothing was measured, where there is nothing to measure.
        limits, sizes: None where it was not measured.
        failure: why it could not be.
        unreachable: the registry was away.
    """

    loaded: LoadedPublication
    skipped: str = ""
    limits: SizeLimits | None = None
    sizes: Sizes | None = None
    failure: str = ""
    unreachable: bool = False

    @property
    def has_too_large(self) -> bool:
        """Whether a structure would stop the producer."""
        return self.sizes is not None and bool(self.sizes.too_large)


def publications(files: Sequence[Path]) -> list[LoadedPublication]:
    """The publications in files and folders, or called so.

    Raises:
        ConfigurationError: one is neither.
    """
    folder = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    if not files:
        return _of_registries_if_any(discover(folder))
    there = {each.publication.name: each for each in discover(folder) if each.publication} if folder.is_dir() else {}
    found: list[LoadedPublication] = []
    for file in files:
        named = None if file.exists() else there.get(str(file))
        found += [named] if named else discover(file)
    return found


def measure_each(loaded: Sequence[LoadedPublication], progress: Callable[[str], Progress]) -> list[Measured]:
    """What every publication selects, measured.

    Args:
        loaded: the publications.
        progress: gives who is told how far one of them is.
    """
    return [_measured(each, progress) for each in loaded]


def _of_registries_if_any(loaded: list[LoadedPublication]) -> list[LoadedPublication]:
    concerned = [each for each in loaded if each.publication is None or each.publication.source.kind == "sdmx"]
    return concerned or loaded


def _measured(loaded: LoadedPublication, progress: Callable[[str], Progress]) -> Measured:
    publication = loaded.publication
    if publication is None:
        return Measured(loaded)
    if publication.source.kind != "sdmx":
        return Measured(loaded, skipped="it reads a context broker: entities that are too large go to quarantine")
    try:
        return _of_registry(loaded, publication, progress(publication.name))
    except ContextureError as error:
        return Measured(loaded, failure=str(error), unreachable=isinstance(error, RetriableError))


def _of_registry(loaded: LoadedPublication, publication: Publication, progress: Progress) -> Measured:
    from contexture.cli.record_sizes import bare, enveloped
    from contexture.cli.structure_forms import Forms
    from contexture.cli.structure_sizes import measure
    from contexture.records.messages.envelopes import structure_envelope
    from contexture.records.topics.structure_routes import router
    from contexture.sources.sdmx import Selector, choose

    media_type = str(publication.source.media_type)
    with _registry(publication) as registry:
        held = registry.held(media_type).urns
        chosen = choose([Selector.parse(text) for text in publication.source.select], held)
        topics = router(publication.topics).route(chosen, held=held).topics
        names = sorted({name for each in topics.values() for name in each})
        limits = _limits(publication, names)
        around = structure_envelope(publication)
        sent_as = bare if around is None else enveloped(around)
        forms = Forms.of(media_type, converts=publication.message.allow_lossy)
        sizes = measure(registry, topics, forms, limits, progress, sent_as)
        return Measured(loaded, limits=limits, sizes=sizes)


def _registry(publication: Publication) -> FusionRegistry | SdmxRegistry:
    from contexture.cli import connections
    from contexture.sources.sdmx.registry import open_registry, registry_connection

    connection_id = publication.source.connection
    fields = connections.read(connection_id)
    if fields is None:
        raise ConfigurationError(
            f"there is no connection {connection_id!r} in the environment",
            next_step=f"set {connections.variable_of(connection_id)} as Airflow has it",
        )
    flavour = cast("AskedFlavour", publication.source.flavour)
    return open_registry(registry_connection(connection_id, fields), flavour=flavour)


def _limits(publication: Publication, topics: Sequence[str]) -> SizeLimits:
    from contexture.sending import for_structures, structure_topic_config
    from contexture.sending.size_limits import size_limits

    config = structure_topic_config({name: str(value) for name, value in publication.topics.config.items()})
    settings = _kafka(publication.publish.connection)
    return size_limits(
        None if settings is None else for_structures(settings), topics, config, wait_seconds=WAIT_SECONDS
    )


def _kafka(connection_id: str) -> ClientSettings | None:
    from contexture.cli import connections, kafka_connections

    fields = connections.read(connection_id)
    return None if fields is None else kafka_connections.settings(fields)
