"""What can go wrong with a broker, besides the faults of single requests."""

from __future__ import annotations

from collections.abc import Callable

from contexture_sandbox.faults import Faults


class BrokerFaults(Faults):
    """The faults of one broker.

    Attributes:
        database_gone: the broker lives, its database does not: entity and type lists are `200 []`, subscriptions 500,
            a single entity ends the connection, `/version` is well.
        delay_seconds: every response of the NGSI API comes this late.
        after_page: called with the number of pages so far, after the content of an entity list was chosen and before
            it is sent: what it changes in the store happens between two pages.
    """

    def __init__(self) -> None:
        super().__init__(path="/v2/", status=503)
        self.database_gone = False
        self.delay_seconds = 0.0
        self.after_page: Callable[[int], None] | None = None

    def clear(self) -> None:
        """Removes all faults."""
        super().clear()
        self.database_gone = False
        self.delay_seconds = 0.0
        self.after_page = None
