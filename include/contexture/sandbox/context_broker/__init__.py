"""A context broker for tests: the observed contract of an NGSIv2 broker, oddities included, and faults on demand."""

from __future__ import annotations

from contexture.sandbox.context_broker.churn import Churn
from contexture.sandbox.context_broker.faults import Fault, Faults
from contexture.sandbox.context_broker.loading import Loaded, SeedEntity
from contexture.sandbox.context_broker.server import TestBroker

__all__ = ["Churn", "Fault", "Faults", "Loaded", "SeedEntity", "TestBroker"]
