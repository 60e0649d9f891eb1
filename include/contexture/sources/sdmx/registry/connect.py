"""Finds out which registry is at an address, and makes its client."""

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
) -> FusionRegistry | SdmxRegistry:
    """A client of the registry at a connection; to be closed, or used as a context manager.

    A Fusion (Metadata) Registry is known by its product endpoint. Any other registry is asked for a little by each
    version of SDMX-REST, until one answers.

    Args:
        connection: where it is, and what is known of it.
        flavour: what a publication says that it is; `auto` leaves that to the connection, which may leave it to us.
        budget: how long to bear with a registry that is away; three tries when None.
        transport: stands in for the network in tests.

    Raises:
        RegistryUnavailableError: the registry is away.
        ConfigurationError: the connection can't be used, the registry refuses us, or there is none.
    """
    asked = connection.flavour if flavour == "auto" else flavour
    if asked != "generic":
        for place in _applications(connection):
            found = _fusion(place, budget, transport)
            if found is not None:
                return found
    if asked == "fmr":
        raise ConfigurationError(
            f"what is at {connection.address} does not say that it is a Fusion (Metadata) Registry",
            next_step="put the address of its web application into the connection, or set flavour: generic",
        )
    return _generic(connection, budget, transport)


def _applications(connection: RegistryConnection) -> Iterator[RegistryConnection]:
    """Where the web application may begin; people also name the address of its structure queries."""
    for paths in FMR_PATHS.values():
        if connection.base_url.endswith(paths.root):
            yield replace(connection, base_url=connection.base_url.removesuffix(paths.root))
            return
    yield connection


def _fusion(
    connection: RegistryConnection, budget: RetryBudget | None, transport: httpx.BaseTransport | None
) -> FusionRegistry | None:
    network = StructureDownloads(connection, budget, transport)
    try:
        product = product_in(_answer(network, PRODUCT).body)
        if product is not None:
            paths = FMR_PATHS[_api(network, connection, product)]
            has_log = _answer(network, f"{SEARCH}?max=1").status == OK
            return FusionRegistry(connection, network, paths, product, has_log=has_log)
    except BaseException:
        network.close()
        raise
    network.close()
    return None


def _api(network: StructureDownloads, connection: RegistryConnection, product: Product) -> Api:
    if connection.api != "auto":
        return connection.api
    if product.has_version_2 or _speaks(_answer(network, FMR_PATHS["v2"].of(SMALL, stubs=True))):
        return "v2"
    return "v1"


def _generic(
    connection: RegistryConnection, budget: RetryBudget | None, transport: httpx.BaseTransport | None
) -> SdmxRegistry:
    network = StructureDownloads(connection, budget, transport)
    try:
        paths, sign_of_life = _found(network, connection)
    except BaseException:
        network.close()
        raise
    return SdmxRegistry(connection, network, paths, sign_of_life)


def _found(network: StructureDownloads, connection: RegistryConnection) -> tuple[StructurePaths, StructureQuery]:
    places = [place for place in _PLACES if _is_possible(place, connection)]
    speaking: list[StructurePaths] = []
    for query in (SMALL, StructureQuery()):
        for place in places:
            attempt = _answer(network, place.of(query, stubs=True))
            if attempt.has_structures:
                return place, query
            if _speaks(attempt):
                speaking.append(place)
    if speaking:
        return speaking[-1], SMALL
    raise ConfigurationError(
        f"what is at {connection.address} answers no structure query",
        next_step="put the part before /structure or /codelist into the connection's host, and set api to v1 or v2 "
        "in its extra",
    )


def _is_possible(place: StructurePaths, connection: RegistryConnection) -> bool:
    named = next((api for api in ("v1", "v2") if connection.base_url.endswith(f"/{api}")), None)
    if named is not None:
        return not place.root and place.api == named
    return connection.api in {"auto", place.api}


def _speaks(attempt: ProbeResult) -> bool:
    return attempt.has_structures or (attempt.status == NOT_FOUND and attempt.is_registrys)


def _answer(network: StructureDownloads, path: str) -> ProbeResult:
    """What comes of a question that may have no answer here."""
    try:
        return network.retrying(lambda: probe_address(network, path))
    except TokenRefusedError:
        raise
    except ConfigurationError:
        return ProbeResult(0)
