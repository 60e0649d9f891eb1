"""Reading a message from a file or from standard input, and writing the messages it was split into."""

from __future__ import annotations

import re
from pathlib import Path

from contexture.operations.actions.structure_preview import _not_usable
from contexture.sources.sdmx import Artefact

_SAFE = re.compile(r"[^A-Za-z0-9_@$.+-]+")
_LONGEST = 150


class Folder:
    """Where messages of single artefacts are written.

    Raises:
        ConfigurationError: the folder can't be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._given: set[str] = set()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_usable(error) from None

    def write(self, artefact: Artefact) -> str:
        """Writes the artefact's message; gives the name of the file.

        Raises:
            ConfigurationError: it can't be written.
        """
        name = self._name(artefact)
        try:
            (self._path / name).write_bytes(artefact.message())
        except OSError as error:
            raise _not_usable(error) from None
        return name

    def _name(self, artefact: Artefact) -> str:
        parts = (artefact.kind, artefact.agency or "", artefact.id or "", artefact.version)
        # Names come from the message, so nothing of them may lead to another folder or be hidden.
        stem = "-".join(_SAFE.sub("_", part) for part in parts).lstrip(".")[:_LONGEST]
        suffix = ".json" if "json" in artefact.media_type else ".xml"
        name, number = f"{stem}{suffix}", 1
        while name.lower() in self._given:
            number += 1
            name = f"{stem}-{number}{suffix}"
        self._given.add(name.lower())
        return name
