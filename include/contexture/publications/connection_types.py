"""The types that Airflow connections have, and what each leads to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Target = Literal["kafka", "ngsi", "sdmx", "source"]
"""A Kafka cluster, a context broker, a structure registry, or one of the latter two without saying which."""

_TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "kafka": "kafka",
        "http": "source",
        "https": "source",
        "contexture_kafka": "kafka",
        "contexture_ngsi": "ngsi",
        "contexture_sdmx": "sdmx",
    }
)
TYPES: Final = tuple(_TARGETS)


def leads_to(connection_type: str) -> Target | None:
    """What a connection of that type leads to; None where it is nothing that Contexture uses."""
    # A URI has hyphens where the type has underscores.
    return _TARGETS.get(connection_type.replace("-", "_"))
