"""What a forked child does with the clients that its parent has: nothing."""

from __future__ import annotations

import gc
import os
from functools import cache


@cache
def leave_clients_to_their_process() -> None:
    """Lets no child of a fork end this process's clients, for the rest of its life.

    The threads of a client are its parent's alone. A child whose garbage collector finds a client that its parent no
    longer uses ends it, and waits for these threads for ever (seen in the children in which Airflow's OpenLineage
    provider tells of a task's end). So the collector of a child leaves alone whatever there was before the fork.
    """
    os.register_at_fork(after_in_child=gc.freeze)
