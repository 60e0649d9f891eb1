"""The publications whose files lie where Airflow looks for them."""

from __future__ import annotations

import os
from pathlib import Path

from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.errors import ConfigurationError
from contexture.publications import Publication, discover


def known_publications() -> list[Publication]:
    """Those with a good file; none where there is no folder of publications."""
    try:
        loaded = discover(Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER))
    except ConfigurationError:
        return []
    return [each.publication for each in loaded if each.publication is not None]
