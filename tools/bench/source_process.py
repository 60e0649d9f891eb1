"""A source with much in it, in a process of its own as a real one is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

SERVICE = "city"
OF_SERVICE = (5, 6)
"""The share of the test broker's entities that are in the service, but for the recorded vehicles it begins with."""
_RECORDED = 13


def source_broker(entities: int) -> AbstractContextManager[str]:
    """The URL of a test broker whose service `city` has that many entities (a multiple of five) in five paths."""
    part, whole = OF_SERVICE
    return _source("context-broker", "--entities", str(_RECORDED + entities // part * whole))


def source_registry(structures: int) -> AbstractContextManager[str]:
    """The URL of a test registry with the face of an FMR that holds that many structures."""
    return _source("registry", "--structures", str(structures))


@contextmanager
def _source(*arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "contexture_sandbox", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the test {arguments[0]} did not start")
            yield url
        finally:
            process.terminate()
