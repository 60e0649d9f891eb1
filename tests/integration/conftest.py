"""One Kafka and one Spark session for all integration tests of a process: starting either takes seconds.

Where it can not start, the tests fail rather than being skipped: without a broker nothing shows that records are
published exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builders.whole_runs import Lasting, spark_session
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """A running one-broker Kafka. Tests use topic names of their own; who stops or kills a broker starts its own."""
    with EmbeddedKafka() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session as the stage job starts it. From now on every job of this process gets it, and none stops it."""
    with spark_session(tmp_path_factory.mktemp("spark")) as started, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "start_session", lambda _name: Lasting(started))
        yield started
