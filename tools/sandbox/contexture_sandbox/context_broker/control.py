"""`/sandbox/…`: the test's side of the broker over HTTP, for use from another process. No part of NGSI."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import orjson

from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.concurrent_writer import ConcurrentWriter
from contexture_sandbox.context_broker.loading import load, read_lines
from contexture_sandbox.http_server import Answer, control


def answer(broker: Broker, call: Call) -> Answer:
    """Returns the response to a request below `/sandbox`."""
    return control(_ACTIONS, broker, call)


def _stats(broker: Broker, _: Call) -> object:
    with broker.store.lock:
        entities = {name: len(tenant.entities) for name, tenant in sorted(broker.store.tenants.items())}
    return {
        "entities": entities,
        "requests": dict(broker.counts),
        "pages": broker.pages,
        "notifications": {"sent": broker.notifier.sent, "failed": broker.notifier.failed},
        "database_gone": broker.faults.database_gone,
    }


def _load(broker: Broker, call: Call) -> object:
    return dataclasses.asdict(load(broker.store, read_lines(call.body)))


def _clear(broker: Broker, _: Call) -> object:
    broker.store.clear()
    return {"cleared": True}


def _set_faults(broker: Broker, call: Call) -> object:
    """`{database_gone, delay_seconds, faults: [{kind, nth, times, path, …}], churn: {service, …}}`; replaces all."""
    given: dict[str, Any] = orjson.loads(call.body or b"{}")
    faults = [broker.faults.new(**one) for one in given.pop("faults", [])]
    gone, delay = bool(given.pop("database_gone", False)), float(given.pop("delay_seconds", 0.0))
    churn = ConcurrentWriter(broker.store, **given.pop("churn")) if "churn" in given else None
    if given:
        raise ValueError(f"unknown: {', '.join(given)}; known: database_gone, delay_seconds, faults, churn")
    broker.faults.clear()
    for fault in faults:
        broker.faults.plan(fault)
    broker.faults.database_gone, broker.faults.delay_seconds, broker.faults.after_page = gone, delay, churn
    return {"faults": len(faults), "database_gone": gone, "delay_seconds": delay, "churn": churn is not None}


def _no_faults(broker: Broker, _: Call) -> object:
    broker.faults.clear()
    return {"faults": 0}


_ACTIONS: dict[tuple[str, str], Callable[[Broker, Call], object]] = {
    ("GET", "stats"): _stats,
    ("POST", "load"): _load,
    ("DELETE", "entities"): _clear,
    ("POST", "faults"): _set_faults,
    ("DELETE", "faults"): _no_faults,
}
