"""The broker behind the HTTP application: what it holds, what is wrong with it, and what it was asked."""

from __future__ import annotations

import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from contexture_sandbox.context_broker.answers import Answer, Refusal
from contexture_sandbox.context_broker.faults import Faults
from contexture_sandbox.context_broker.notifier import Notifier, notification
from contexture_sandbox.context_broker.scope import Scope, scope_of
from contexture_sandbox.context_broker.store import Store
from contexture_sandbox.context_broker.subscriptions import Subscriptions
from contexture_sandbox.context_broker.writes import Change

REMEMBERED_REQUESTS = 10_000


class ConnectionDropped(Exception):  # noqa: N818 - an instruction to the server, never seen by a caller
    """The client is to get no answer at all."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, decoded. Header names are lower case."""

    method: str
    segments: tuple[str, ...]
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    correlator: str

    @property
    def scope(self) -> Scope:
        """Tenant and service paths.

        Raises:
            Refusal: 400, one of them is not acceptable.
        """
        return scope_of(self.headers)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """What a client asked, without its headers (they may hold a secret)."""

    method: str
    path: str
    parameters: Mapping[str, str]


class Broker:
    """State of one test broker.

    Attributes:
        store: tenants and their entities, and the clock.
        faults: what is to go wrong.
        requests: the last requests to the NGSI API.
        counts: number of requests by method and resource.
        pages: number of entity lists answered.
        face: another API that is asked before NGSIv2, see `linked_data`; it answers None for what it leaves to NGSIv2.
    """

    def __init__(self) -> None:
        self.store = Store()
        self.faults = Faults()
        self.subscriptions = Subscriptions()
        self.notifier = Notifier(self.store.clock)
        self.requests: deque[RecordedRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        self.counts: Counter[str] = Counter()
        self.pages = 0
        self.face: Callable[[Call], Answer | None] | None = None
        self.started_us = self.store.clock.now()

    def record(self, method: str, path: str, parameters: Mapping[str, str]) -> None:
        """Remember that a request arrived."""
        self.requests.append(RecordedRequest(method, path, dict(parameters)))
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
