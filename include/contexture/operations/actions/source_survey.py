"""What a source has that could be published: entities by service path and type, or structures by agency and class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contexture.errors import ConfigurationError, RetriableError
from contexture.operations import environment
from contexture.operations.actions.connection_check import connection_target, source_kind
from contexture.operations.actions.preview import SampleEntities, from_broker
from contexture.operations.actions.source_check import BrokerCheck, RegistryCheck, identify_broker
from contexture.publications import NgsiPublication, Publication
from contexture.publications.fields import check_service, check_tenant
from contexture.publications.source import NgsiSource, SourceKind
from contexture.sources.http.connection import BrokerConnection, ConnectionFields
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.connect import Dialect, open_broker
from contexture.sources.ngsi.entity import EntityForm
from contexture.sources.ngsi.query import EntityQuery
from contexture.sources.sdmx.registry import RegistryConnection, open_registry
from contexture.sources.sdmx.urn import Urn

_ONCE: Final = RetryBudget(attempts=2, first_wait_seconds=0.2, longest_wait_seconds=0.5)
_SECONDS: Final = 10.0
_WALK_SECONDS: Final = 60.0
_MOST_COUNTED: Final = 20_000
_EVERYWHERE: Final = "/#"


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """What one service of a broker, or a registry, has.

    Attributes:
        title: the service, or the product of the registry.
        groups: entities by service path and type, or structures by agency and class; of a large broker those of the
            oldest entities.
        is_whole: whether everything is in `groups`.
        api: the interface of a broker. Entities of NGSI-LD show no service path.
        urns: all structures of a registry.
    """

    title: str
    groups: Mapping[tuple[str, str], int]
    is_whole: bool = True
    api: EntityForm = "ngsiv2"
    urns: tuple[str, ...] = ()

    def by_place(self) -> dict[str, int]:
        """Returns the numbers by service path or agency, the largest first."""
        return _summed((place, number) for (place, _), number in self.groups.items())

    def by_kind(self, places: Sequence[str] = ()) -> dict[str, int]:
        """Returns the numbers by type or class, the largest first; of these places alone where there are any."""
        return _summed((kind, number) for (place, kind), number in self.groups.items() if not places or place in places)


def _summed(counts: Iterator[tuple[str, int]]) -> dict[str, int]:
    found = Counter[str]()
    for name, count in counts:
        found[name] += count
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def list_connections() -> tuple[list[str], list[str]]:
    """Returns the ids of the environment's connections that may lead to a source, and of those that lead to Kafka."""
    sources, clusters = list[str](), list[str]()
    for connection_id in environment.connection_ids():
        try:
            fields = environment.read(connection_id)
        except ConfigurationError:
            continue
        target = connection_target(fields.kind) if fields else None
        if target is not None:
            (clusters if target == "kafka" else sources).append(connection_id)
    return sources, clusters


def find_source_kind(
    connection_id: str, fields: ConnectionFields, publications: Sequence[Publication], seconds: float = _SECONDS
) -> SourceKind:
    """Returns what a connection leads to: as it or a publication names it, else as the source responds.

    Args:
        connection_id: of the connection.
        fields: of the connection.
        publications: those that may use it.
        seconds: how long the source may take for a response.

    Raises:
        ConfigurationError: it leads to Kafka, or to nothing that Contexture reads.
        RetriableError: nothing responds.
    """
    target = connection_target(fields.kind)
    if target in {"ngsi", "sdmx"}:
        return target
    if target != "source":
        raise ConfigurationError(
            f"connection {connection_id!r} has the type {fields.kind!r}, which is not the type of a broker or a "
            "registry",
            next_step="name a connection of the type http, contexture_ngsi or contexture_sdmx",
        )
    registry = RegistryCheck(connection_id, fields, "", seconds)
    known = source_kind(connection_id, registry, service="", media_type="", publications=publications)
    if known:
        return known
    if registry.is_fusion():
        return "sdmx"
    broker = BrokerCheck(connection_id, fields, "", seconds).outcome()
    if broker.unreachable:
        raise RetriableError(
            f"no context broker and no structure registry responds at {broker.target}",
            next_step=f"start it, or correct host and port of the connection {connection_id}",
        )
    is_registry = not broker.passed and registry.outcome().steps[0].passed
    return "sdmx" if is_registry else "ngsi"


def count_services(
    connection_id: str, connection: BrokerConnection, publications: Sequence[Publication]
) -> dict[str, int]:
    """Returns the entities of the services that can be found: the default one, and those of these publications.

    A broker has no list of its services.

    Raises:
        ContextureError: the broker cannot be reached.
    """
    sources = (each.source for each in publications)
    known = {each.service for each in sources if isinstance(each, NgsiSource) and each.connection == connection_id}
    try:
        flavour, api, _ = identify_broker(connection, "")
    except ConfigurationError:
        # A proxy may refuse the default service to this login.
        return {}
    found: dict[str, int] = {}
    for service in ("", *sorted(known - {""})):
        try:
            with open_broker(connection, service, Dialect(api, flavour), budget=_ONCE) as broker:
                found[service] = broker.count(EntityQuery(_EVERYWHERE))
        except ConfigurationError:
            # A tenant of NGSI-LD that does not exist yet.
            found[service] = 0
    return found


def survey_broker(
    connection: BrokerConnection, service: str, context: str, *, walk_seconds: float = _WALK_SECONDS
) -> SourceSurvey:
    """Counts the entities of one service by service path and type.

    Args:
        connection: of the broker.
        service: the Fiware-Service, or tenant.
        context: URL of the @context, where NGSI-LD's names are to be short.
        walk_seconds: how long the walk over its entities may take.

    Raises:
        ContextureError: the broker cannot be reached, or refuses.
    """
    try:
        flavour, api, _ = identify_broker(connection, service)
        service = str(check_tenant(service) if api == "ngsi-ld" else check_service(service))
    except ValueError as error:
        raise ConfigurationError(str(error), next_step="correct the service") from None
    except ConfigurationError as error:
        # A broker of NGSIv2 refuses a wrong service without naming it.
        raise ConfigurationError(f"service {service!r}: {error.message}", next_step=error.next_step) from None
    query = EntityQuery(_EVERYWHERE, identities_only=True)
    groups = Counter[tuple[str, str]]()
    with open_broker(connection, service, Dialect(api, flavour, context), budget=_ONCE) as broker:
        total = broker.count(query)
        for page in broker.scan(query, deadline_seconds=walk_seconds):
            groups.update((head.path or "/", head.type or "") for head in page.heads)
            if groups.total() >= _MOST_COUNTED:
                break
    return SourceSurvey(service, groups, groups.total() >= total, api)


def count_selected(connection: BrokerConnection, source: NgsiSource) -> int:
    """Returns how many entities a source selects.

    Raises:
        ContextureError: the broker cannot be reached, or refuses.
    """
    paths = (",".join(source.service_path),) if source.api == "ngsi-ld" else source.service_path
    with open_broker(connection, source.service, Dialect.of(source), budget=_ONCE) as broker:
        return sum(broker.count(EntityQuery.of_source(source, path, 1)) for path in paths)


def sample_entities(connection: BrokerConnection, publication: NgsiPublication, limit: int) -> SampleEntities:
    """Returns entities that a publication selects, the same number of each of its types.

    Raises:
        ContextureError: the broker cannot be reached, or refuses.
    """
    types = publication.source.types
    sources = [publication.source.model_copy(update={"types": (each,)}) for each in types] or [publication.source]
    share = max(1, limit // len(sources))
    parts = [from_broker(connection, publication.model_copy(update={"source": each}), share) for each in sources]
    return replace(parts[0], entities=tuple(entity for part in parts for entity in part.entities)[:limit])


def survey_registry(connection: RegistryConnection, media_type: str) -> SourceSurvey:
    """Counts the structures that a registry shows, by agency and class.

    Raises:
        ContextureError: the registry cannot be reached, or refuses.
    """
    with open_registry(connection, budget=_ONCE) as registry:
        urns, product = registry.list_structures(media_type).urns, registry.product
    return SourceSurvey(product, Counter(_group(urn) for urn in urns), urns=urns)


def _group(urn: str) -> tuple[str, str]:
    try:
        found = Urn.parse(urn)
    except ValueError:
        return "", ""
    return found.agency, found.class_name


def connection_fields(connection_id: str) -> ConnectionFields:
    """Returns the fields of a connection of the environment.

    Raises:
        ConfigurationError: it is not there, or cannot be read.
    """
    fields = environment.read(connection_id)
    if fields is None:
        raise no_connection_error(connection_id, list_connections()[0])
    return fields


def no_connection_error(connection_id: str, sources: Sequence[str]) -> ConfigurationError:
    """Returns the error for a source's connection that the environment does not have."""
    variable = environment.variable_of(connection_id or "CITY_BROKER")
    example = f'export {variable}=\'{{"conn_type": "http", "host": "127.0.0.1", "port": 1026}}\''
    return ConfigurationError(
        f"there is no connection {connection_id!r} in the environment"
        if connection_id
        else "the environment has no connection to a context broker or a structure registry",
        next_step=f"choose among: {', '.join(sources)}"
        if sources
        else f"set one as Airflow has it (those in Airflow's database are not seen here): {example}",
    )
