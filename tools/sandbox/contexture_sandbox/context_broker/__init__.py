"""A context broker for tests: the observed contract of an NGSIv2 broker, oddities included, and faults on demand.

The names below are loaded when they are first used, so that a command line that only lists its commands stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture_sandbox.context_broker.concurrent_writer import ConcurrentWriter
    from contexture_sandbox.context_broker.entities import BadEntity, bad_entities, changes, seed_entities
    from contexture_sandbox.context_broker.loading import Loaded, SeedEntity
    from contexture_sandbox.context_broker.remote import RemoteBroker
    from contexture_sandbox.context_broker.server import TestBroker

_MODULES = {
    "BadEntity": "entities",
    "ConcurrentWriter": "concurrent_writer",
    "Loaded": "loading",
    "RemoteBroker": "remote",
    "SeedEntity": "loading",
    "TestBroker": "server",
    "bad_entities": "entities",
    "changes": "entities",
    "seed_entities": "entities",
}

__all__ = [
    "BadEntity",
    "ConcurrentWriter",
    "Loaded",
    "RemoteBroker",
    "SeedEntity",
    "TestBroker",
    "bad_entities",
    "changes",
    "seed_entities",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
