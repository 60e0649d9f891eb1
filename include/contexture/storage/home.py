"""CONTEXTURE_HOME: the files of all publications, and the store of each."""

from __future__ import annotations

import os
from collections.abc import Callable

from contexture.storage.file_tree import HOME_VARIABLE, FileTree
from contexture.storage.publication_store import PublicationStore

DEFAULT_HOME = "var"

ProgressCallback = Callable[[str], None]
"""Receives one sentence about a step, for a person or a log; never data, never a secret."""


def home_uri() -> str:
    """Returns the address of the home: `CONTEXTURE_HOME`, a local path or an object-store URI (default `var/`)."""
    return os.environ.get(HOME_VARIABLE) or DEFAULT_HOME


class Home(FileTree):
    """All that Contexture stores, below one address."""

    def publication(self, name: str) -> PublicationStore:
        """Returns what is stored of one publication; nothing is read or made."""
        return PublicationStore(self, name)
