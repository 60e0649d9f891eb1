"""The publication that a command names."""

from __future__ import annotations

import os
from pathlib import Path

from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.errors import ConfigurationError
from contexture.publications import Publication, PublicationError, discover


def named_publication(name: str, files: Path | None) -> Publication:
    """The publication of that name, of a file or folder; of CONTEXTURE_PUBLICATIONS when none is given.

    Files of others may be wrong: as in Airflow, they stand in nobody's way.

    Raises:
        ConfigurationError: there is none, or it may be in a file that is no good publication.
    """
    folder = files or Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    loaded = discover(folder)
    known = {each.publication.name: each.publication for each in loaded if each.publication is not None}
    if name in known:
        return known[name]
    problems = [problem for each in loaded if each.error is not None for problem in each.error.problems]
    if problems:
        raise PublicationError(folder, problems)
    raise ConfigurationError(
        f"there is no publication {name!r} in {folder}",
        next_step=f"choose among: {', '.join(sorted(known))}" if known else f"set {FOLDER_VARIABLE}",
    )
