"""The publication that a command names."""

from __future__ import annotations

import os
from pathlib import Path

from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.errors import ConfigurationError
from contexture.publications import Publication, load_publications


def named_publication(name: str, files: Path | None) -> Publication:
    """The publication of that name, of a file or folder; of CONTEXTURE_PUBLICATIONS when none is given.

    Raises:
        ConfigurationError: there is none, or a file is no good publication.
    """
    folder = files or Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    known = {publication.name: publication for publication in load_publications(folder)}
    if name not in known:
        raise ConfigurationError(
            f"there is no publication {name!r} in {folder}",
            next_step=f"choose among: {', '.join(sorted(known))}" if known else f"set {FOLDER_VARIABLE}",
        )
    return known[name]
