"""`/sandbox/…`: the test's side of the registry over HTTP, for use from another process. No part of SDMX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from contexture_sandbox.http_server import Answer, control, json_answer
from contexture_sandbox.registry.model import ACTIONS
from contexture_sandbox.registry.refusals import Refusal
from contexture_sandbox.registry.registry import Call, Registry
from contexture_sandbox.registry.submissions import Submission, delete, submit


def answer(registry: Registry, call: Call) -> Answer:
    """Returns the response to a request below `/sandbox`."""
    try:
        return control(_ACTIONS, registry, call)
    except Refusal as refusal:
        return json_answer({"error": "refused", "description": refusal.text}, status=refusal.status)


def _stats(registry: Registry, _: Call) -> object:
    return {
        "face": registry.face,
        "structures": len(registry.store.current()),
        "transactions": len(registry.store.transactions),
        "requests": len(registry.requests),
        "answers": registry.answers,
    }


def _submit(registry: Registry, call: Call) -> object:
    """Any face takes structures here, without credentials: `?action=Merge`, the message as the body."""
    asked = call.parameters.get("action", "Replace")
    action = next((each for each in ACTIONS if each == asked), None)
    if action is None:
        raise ValueError(f"no action {asked[:40]}; known: {', '.join(ACTIONS)}")
    media_type = call.headers.get("content-type", "application/xml")
    submission = Submission((call.body,), action, media_type=media_type)
    return _transaction_body(submit(registry.store, submission, strict=registry.checks_references).id, registry)


def _delete(registry: Registry, call: Call) -> object:
    """`[urn, …]`: deleted as one transaction."""
    urns = orjson.loads(call.body)
    return _transaction_body(delete(registry.store, urns, strict=registry.checks_references).id, registry)


def _transaction_body(number: int, registry: Registry) -> object:
    done = registry.store.transactions[number - 1]
    return {"transaction": done.id, "added": done.added, "modified": done.modified, "deleted": done.deleted}


def _clear(registry: Registry, _: Call) -> object:
    registry.store.clear()
    return {"cleared": True}


def _advance(registry: Registry, call: Call) -> object:
    """`{seconds}`: the clock jumps."""
    registry.store.clock.advance(float(orjson.loads(call.body)["seconds"]))
    return {"now_ms": registry.store.now_ms()}


def _set_faults(registry: Registry, call: Call) -> object:
    """`[{kind, nth, times, path, …}, …]`; replaces all."""
    given: list[dict[str, Any]] = orjson.loads(call.body or b"[]")
    faults = [registry.faults.new(**one) for one in given]
    registry.faults.clear()
    for fault in faults:
        registry.faults.plan(fault)
    return {"faults": len(faults)}


def _no_faults(registry: Registry, _: Call) -> object:
    registry.faults.clear()
    return {"faults": 0}


_ACTIONS: dict[tuple[str, str], Callable[[Registry, Call], object]] = {
    ("GET", "stats"): _stats,
    ("POST", "submit"): _submit,
    ("POST", "delete"): _delete,
    ("POST", "clock"): _advance,
    ("DELETE", "structures"): _clear,
    ("POST", "faults"): _set_faults,
    ("DELETE", "faults"): _no_faults,
}
