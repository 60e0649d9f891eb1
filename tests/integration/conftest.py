"""One Kafka for all integration tests of a run.

Where it can not start, the tests fail rather than being skipped: without a broker nothing shows that records are
published exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contexture_sandbox.kafka import EmbeddedKafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """A running one-broker Kafka. Tests use topic names of their own; who stops or kills a broker starts its own."""
    with EmbeddedKafka() as cluster:
        yield cluster
