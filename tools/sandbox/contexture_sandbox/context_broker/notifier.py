"""Sending notifications, one after the other, beside the requests that caused them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from queue import Queue
from threading import Thread

import httpx
import orjson

from contexture_sandbox.context_broker.model import StoredAttribute, StoredEntity
from contexture_sandbox.context_broker.subscriptions import Subscription
from contexture_sandbox.context_broker.times import Clock
from contexture_sandbox.context_broker.writes import Change

ALTERATION = "alterationType"
TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Notification:
    """One request to a subscriber."""

    subscription: Subscription
    body: bytes
    headers: dict[str, str]


def notification(subscription: Subscription, tenant: str, change: Change, correlator: str, number: int) -> Notification:
    """Returns the notification that a subscriber gets of a change, with the words of Orion."""
    content = subscription.form.renderer()(_with_alteration(subscription, change))
    simplified = subscription.attrs_format.startswith("simplified")
    wrapped = b'{"subscriptionId":' + orjson.dumps(subscription.id) + b',"data":[' + content + b"]}"
    return Notification(
        subscription,
        content if simplified else wrapped,
        {
            "User-Agent": "orion/4.7.0-next libcurl/7.88.1",
            "Fiware-Service": tenant,
            "Fiware-ServicePath": change.entity.service_path,
            "Accept": "application/json",
            "Content-Type": "application/json; charset=utf-8",
            "Fiware-Correlator": f"{correlator}; cbnotif={number}",
            "Ngsiv2-AttrsFormat": subscription.attrs_format,
            **subscription.own_headers,
        },
    )


def _with_alteration(subscription: Subscription, change: Change) -> StoredEntity:
    attrs = subscription.form.attrs
    if ALTERATION not in attrs:
        return change.entity
    kind = "entityChange" if "entityChange" in change.kinds else next(iter(change.kinds))
    attribute = StoredAttribute("Text", orjson.dumps(kind), (), None, None)
    return replace(change.entity, attributes={**change.entity.attributes, ALTERATION: attribute})


class Notifier:
    """A thread that sends; nothing is sent again when it fails, as Orion does not either."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: Queue[Notification | None] = Queue()
        self._thread: Thread | None = None
        self.sent = 0
        self.failed = 0

    def send(self, notifications: Iterable[Notification]) -> None:
        """Send when there is time."""
        for one in notifications:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="context-broker-notifier", daemon=True)
                self._thread.start()
            self._queue.put(one)

    def settle(self) -> None:
        """Wait until everything that was to be sent has been tried."""
        self._queue.join()

    def stop(self) -> None:
        """End the thread; what waits is still tried."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(TIMEOUT_SECONDS)
            self._thread = None

    def _run(self) -> None:
        with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
            while (one := self._queue.get()) is not None:
                self._deliver(client, one)
                self._queue.task_done()
            self._queue.task_done()

    def _deliver(self, client: httpx.Client, one: Notification) -> None:
        subscription = one.subscription
        subscription.times_sent += 1
        subscription.last_sent_us = self._clock.now()
        try:
            status = client.post(subscription.url, content=one.body, headers=one.headers).status_code
        except (httpx.HTTPError, httpx.InvalidURL):
            self.failed += 1
            subscription.last_failure_us = self._clock.now()
            return
        self.sent += 1
        subscription.last_success_us = self._clock.now()
        subscription.last_success_code = status
