"""A context broker with many entities, in a process of its own as a real one is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SERVICE = "city"
OF_SERVICE = (5, 6)
"""The share of the test broker's entities that are in the service, but for the recorded vehicles it begins with."""
_RECORDED = 13


@contextmanager
def source_broker(entities: int) -> Iterator[str]:
    """The URL of a test broker whose service `city` has that many entities (a multiple of five) in five paths."""
    part, whole = OF_SERVICE
    loaded = _RECORDED + entities // part * whole
    command = [sys.executable, "-m", "contexture.sandbox", "context-broker", "--entities", str(loaded)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError("the test broker did not start")
            yield url
        finally:
            process.terminate()
