"""An error that is immediate is raised long before brokers are given up, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# Silent brokers are waited for 300 s where nothing else is said.
AT_ONCE_SECONDS = 75


@contextmanager
def at_once() -> Iterator[None]:
    """The block ends within a quarter of the time that brokers are waited for."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < AT_ONCE_SECONDS
