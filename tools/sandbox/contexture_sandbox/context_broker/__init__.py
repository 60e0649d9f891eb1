"""A context broker for tests: the observed contract of an NGSIv2 broker, oddities included, and faults on demand.

The names below are loaded when they are first used, so that a command line that only lists its commands stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.lazy_names import load_on_request

if TYPE_CHECKING:
    from contexture_sandbox.context_broker.concurrent_writer import ConcurrentWriter as ConcurrentWriter
    from contexture_sandbox.context_broker.entities import BadEntity as BadEntity
    from contexture_sandbox.context_broker.entities import bad_entities as bad_entities
    from contexture_sandbox.context_broker.entities import changes as changes
    from contexture_sandbox.context_broker.entities import seed_entities as seed_entities
    from contexture_sandbox.context_broker.loading import Loaded as Loaded
    from contexture_sandbox.context_broker.loading import SeedEntity as SeedEntity
    from contexture_sandbox.context_broker.remote import RemoteBroker as RemoteBroker
    from contexture_sandbox.context_broker.server import TestBroker as TestBroker

__getattr__ = load_on_request(
    __name__,
    {
        "concurrent_writer": "ConcurrentWriter",
        "entities": "BadEntity bad_entities changes seed_entities",
        "loading": "Loaded SeedEntity",
        "remote": "RemoteBroker",
        "server": "TestBroker",
    },
)
