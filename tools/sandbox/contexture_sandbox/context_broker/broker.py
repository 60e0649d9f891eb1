"""The broker behind the HTTP application: what it holds, what is wrong with it, and what it was asked."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from contexture_sandbox.context_broker.answers import Refusal
from contexture_sandbox.context_broker.faults import BrokerFaults
from contexture_sandbox.context_broker.notifier import Notifier, notification
from contexture_sandbox.context_broker.scope import Scope, scope_of
from contexture_sandbox.context_broker.store import Store
from contexture_sandbox.context_broker.subscriptions import Subscriptions
from contexture_sandbox.context_broker.writes import Change
from contexture_sandbox.http_server import Answer, HttpCall, ServerState


@dataclass(frozen=True, slots=True)
class Call(HttpCall):
    """One request to the broker, with its correlator."""

    correlator: str = ""

    @property
    def scope(self) -> Scope:
        """Tenant and service paths.

        Raises:
            Refusal: 400, one of them is not acceptable.
        """
        return scope_of(self.headers)


class Broker(ServerState):
    """State of one test broker.

    Attributes:
        store: tenants and their entities, and the clock.
        counts: number of requests by method and resource.
        pages: number of entity lists answered.
        face: another API that is asked before NGSIv2, see `linked_data`; it answers None for what it leaves to NGSIv2.
    """

    faults: BrokerFaults

    def __init__(self) -> None:
        self.store = Store()
        super().__init__(self.store.clock, BrokerFaults())
        self.subscriptions = Subscriptions()
        self.notifier = Notifier(self.store.clock)
        self.counts: Counter[str] = Counter()
        self.pages = 0
        self.face: Callable[[Call], Answer | None] | None = None
        self.started_us = self.store.clock.now()

    def record(self, method: str, path: str, parameters: Mapping[str, str]) -> None:
        """Stores that a request arrived, and counts it."""
        super().record(method, path, parameters)
        self.counts[f"{method} /{'/'.join(path.strip('/').split('/')[: 3 if '/op/' in path else 2])}"] += 1

    def page_answered(self) -> None:
        """Count an entity list and let the test change the store behind it."""
        self.pages += 1
        if self.faults.after_page is not None:
            self.faults.after_page(self.pages)

    def notify(self, call: Call, changes: Iterable[Change]) -> None:
        """Sends notifications of some changes to the subscribers."""
        tenant = call.scope.tenant
        if not self.subscriptions.of(tenant):
            return
        for change in changes:
            concerned = self.subscriptions.concerned(tenant, change)
            self.notifier.send(
                notification(one, tenant, change, call.correlator, number) for number, one in enumerate(concerned, 1)
            )

    def refuse_without_database(self, operation: str) -> None:
        """End every request that needs the database when it is gone.

        Raises:
            Refusal: 500.
        """
        if self.faults.database_gone:
            reason = "No servers yet eligible for rescan. Topology type: Single"
            words = f"Database Error &#40;{operation} - exception: {reason}&#41;"
            raise Refusal(500, "InternalServerError", words)


def correlator_of(headers: Mapping[str, str]) -> str:
    """The request's correlator, or a new one."""
    return headers.get("fiware-correlator") or str(uuid.uuid4())
