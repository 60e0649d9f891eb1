"""The cache of files that are fetched or made once, shared by processes through locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Returns the folder for things fetched or made once: CONTEXTURE_CACHE, else XDG_CACHE_HOME, else ~/.cache."""
    chosen = os.environ.get("CONTEXTURE_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "contexture"


@contextmanager
def exclusive(name: str) -> Iterator[Path]:
    """Holds the lock `name` of the cache across processes; gives the cache folder. Waits until it is free."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
