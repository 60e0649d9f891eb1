"""Which broker answers at an address, told by resources that only one of them has."""

from __future__ import annotations

import httpx
import msgspec

from contexture.errors import ConfigurationError
from contexture.ngsi.answers import TokenRefusedError
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.linked_data.flavour import Flavour
from contexture.ngsi.transport import Patience, Transport

_OWN_RESOURCES: tuple[tuple[str, bytes, Flavour], ...] = (
    ("/version", b'"orionld version"', "orion-ld"),
    ("/version", b'"orion"', "orion"),
    ("/scorpio/v1/info/health", b"", "scorpio"),
    ("/actuator/info", b"stellio", "stellio"),
)


def detect(
    connection: BrokerConnection, *, patience: Patience | None = None, transport: httpx.BaseTransport | None = None
) -> Flavour:
    """The broker at a connection; unknown where a proxy hides the resources that tell.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: it does not take our credentials.
    """
    network = Transport(connection, patience or Patience(), transport)
    try:
        for path, mark, flavour in _OWN_RESOURCES:
            if _says(network, path, mark):
                return flavour
    finally:
        network.close()
    return "unknown"


def _says(network: Transport, path: str, mark: bytes) -> bool:
    try:
        body = network.get(path, {"accept": "application/json"}, {}).body
        msgspec.json.decode(body)
    except TokenRefusedError:
        raise
    except (ConfigurationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return mark in body
