"""Homes as earlier versions of Contexture wrote them (tests/samples/homes)."""

from __future__ import annotations

import shutil
from pathlib import Path

from contexture.outbox.storage import Storage
from contexture.publications import Publication

SAMPLES = Path(__file__).parents[1] / "samples" / "homes"
FORMER = ("first-release", "state-format-2")
VEHICLES = Publication.model_validate(
    {
        "name": "vehicles",
        "schedule": "*/5 * * * *",
        "source": {
            "kind": "ngsi",
            "connection": "context_broker",
            "service": "vehicles",
            "service_path": "/4wheels",
            "types": ["car"],
        },
        "publish": {"shards": 2},
        "quality": {"max_quarantined_share": 1.0},
    }
)
"""The publication that they are of."""


def former_home(name: str, folder: Path) -> Storage:
    """A copy of one of them, in a folder of its own."""
    shutil.copytree(SAMPLES / name, folder / name)
    return Storage(str(folder / name))
