"""NGSI-LD: its entities in the model that everything else works on, and the client of its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.ngsi.linked_data.client import LinkedDataBroker

__all__ = ["LinkedDataBroker"]


def __getattr__(name: str) -> object:
    # Loaded on use: whoever only parses entities needs no HTTP client.
    if name != "LinkedDataBroker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from contexture.ngsi.linked_data.client import LinkedDataBroker

    return LinkedDataBroker
