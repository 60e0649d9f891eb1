"""Detects which registry is at an address, and makes its client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import TokenRefusedError
from contexture.sources.http.transport import RetryBudget
from contexture.sources.sdmx.registry.connection import PRODUCT, AskedFlavour, Product, RegistryConnection, product_in
from contexture.sources.sdmx.registry.fusion import SEARCH, FusionRegistry
from contexture.sources.sdmx.registry.interface import StructureQuery
from contexture.sources.sdmx.registry.rest import SdmxRegistry
from contexture.sources.sdmx.registry.structures import Api, StructurePaths
from contexture.sources.sdmx.registry.transport import (
    NOT_FOUND,
    OK,
    SMALL,
    ProbeResult,
    StructureDownloads,
    probe_address,
)

FMR_PATHS: dict[Api, StructurePaths] = {
    "v2": StructurePaths("/sdmx/v2", "v2"),
    "v1": StructurePaths("/ws/public/sdmxapi/rest", "v1"),
}
_PLACES = (
    StructurePaths("/v2", "v2"),
    StructurePaths("", "v2"),
    StructurePaths("", "v1"),
    StructurePaths("/v1", "v1"),
)


def open_registry(
    connection: RegistryConnection,
    *,
    flavour: AskedFlavour = "auto",
    budget: RetryBudget | None = None,
    transport: httpx.BaseTransport | None = None,
    registrations: bool = False,
) -> FusionRegistry | SdmxRegistry:
    """Returns a client of the registry at a connection; the caller closes it, or uses it as a context manager.

    A Fusion (Metadata) Registry is known by its product endpoint. Any other registry receives a small request of each
    version of SDMX-REST, until one succeeds.

    Args:
        connection: where it is, and what is known of it.
        flavour: that of a publication; `auto` takes that of the connection, and detects it where that is `auto` too.
        budget: how often requests to a registry that is away are repeated; three attempts when None.
        transport: replaces the network in tests.
        registrations: whether data registrations are listed, and found in the log, like structures.

    Raises:
        RegistryUnavailableError: the registry is away.
        ConfigurationError: the connection cannot be used, the registry refuses us, or there is none.
    """
    asked = connection.flavour if flavour == "auto" else flavour
    if asked != "generic":
        for place in _applications(connection):
            found = _fusion(place, budget, transport, registrations=registrations)
            if found is not None:
                return found
    if asked == "fmr":
        raise ConfigurationError(
            f"what is at {connection.address} does not identify itself as a Fusion (Metadata) Registry",
            next_step="put the address of its web application into the connection, or set flavour: generic",
        )
    return _generic(connection, budget, transport, registrations=registrations)


def _applications(connection: RegistryConnection) -> Iterator[RegistryConnection]:
    """Yields where the web application may begin; some connections name the address of its structure queries."""
    for paths in FMR_PATHS.values():
        if connection.base_url.endswith(paths.root):
            yield replace(connection, base_url=connection.base_url.removesuffix(paths.root))
            return
    yield connection


def _fusion(
    connection: RegistryConnection,
    budget: RetryBudget | None,
    transport: httpx.BaseTransport | None,
    *,
    registrations: bool,
) -> FusionRegistry | None:
    network = StructureDownloads(connection, budget, transport)
    try:
        product = product_in(_probe(network, PRODUCT).body)
        if product is not None:
            paths = FMR_PATHS[_api(network, connection, product)]
            has_log = _probe(network, f"{SEARCH}?max=1").status == OK
            return FusionRegistry(connection, network, paths, product, has_log=has_log, has_registrations=registrations)
    except BaseException:
        network.close()
        raise
    network.close()
    return None


def _api(network: StructureDownloads, connection: RegistryConnection, product: Product) -> Api:
    if connection.api != "auto":
        return connection.api
    if product.has_version_2 or _is_interface(_probe(network, FMR_PATHS["v2"].of(SMALL, stubs=True))):
        return "v2"
    return "v1"


def _generic(
    connection: RegistryConnection,
    budget: RetryBudget | None,
    transport: httpx.BaseTransport | None,
    *,
    registrations: bool,
) -> SdmxRegistry:
    network = StructureDownloads(connection, budget, transport)
    try:
        paths, sign_of_life = _found(network, connection)
    except BaseException:
        network.close()
        raise
    return SdmxRegistry(connection, network, paths, sign_of_life, has_registrations=registrations)


def _found(network: StructureDownloads, connection: RegistryConnection) -> tuple[StructurePaths, StructureQuery]:
    places = [place for place in _PLACES if _is_possible(place, connection)]
    interfaces: list[StructurePaths] = []
    for query in (SMALL, StructureQuery()):
        for place in places:
            probe = _probe(network, place.of(query, stubs=True))
            if probe.has_structures:
                return place, query
            if _is_interface(probe):
                interfaces.append(place)
    if interfaces:
        return interfaces[-1], SMALL
    raise ConfigurationError(
        f"what is at {connection.address} does not respond to structure queries",
        next_step="put the part before /structure or /codelist into the connection's host, and set api to v1 or v2 "
        "in its extra",
    )


def _is_possible(place: StructurePaths, connection: RegistryConnection) -> bool:
    named = next((api for api in ("v1", "v2") if connection.base_url.endswith(f"/{api}")), None)
    if named is not None:
        return not place.root and place.api == named
    return connection.api in {"auto", place.api}


def _is_interface(probe: ProbeResult) -> bool:
    return probe.has_structures or (probe.status == NOT_FOUND and probe.is_registrys)


def _probe(network: StructureDownloads, path: str) -> ProbeResult:
    """Returns the response to a request that may have none here."""
    try:
        return network.retrying(lambda: probe_address(network, path))
    except TokenRefusedError:
        raise
    except ConfigurationError:
        return ProbeResult(0)
