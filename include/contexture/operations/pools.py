"""The pools that bound what runs at once.

They must exist before the first run, for a task of a missing pool never starts. `airflow pools set NAME SLOTS
DESCRIPTION` makes one; the sandbox makes all of them at start.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "contexture_source"
SPARK: Final = "contexture_spark"
BROKER: Final = "contexture_broker"

POOLS: Final[dict[str, tuple[int, str]]] = {
    SOURCE: (4, "Reading of sources outside Spark"),
    SPARK: (1, "Parallel Spark submits: each needs a JVM and two cores for about 20 seconds"),
    BROKER: (4, "Parallel senders and ledger readers"),
}
"""Name, slots on a machine with two cores, and description of each pool."""
