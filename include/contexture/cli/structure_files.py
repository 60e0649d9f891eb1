"""Reading a message from a file or from standard input, and writing the messages it was split into."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from contexture.errors import ConfigurationError
from contexture.sources.sdmx import Artefact

_SAFE = re.compile(r"[^A-Za-z0-9_@$.+-]+")
_LONGEST = 150


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The message as a stream.

    Raises:
        ConfigurationError: there is no such file, or it can't be read.
    """
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise _not_usable(error) from None
    with stream:
        yield stream


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


def _not_usable(error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{error.filename or 'the file'}: {error.strerror}", next_step="check the path and its permissions"
    )
