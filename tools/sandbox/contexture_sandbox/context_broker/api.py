"""The NGSIv2 API: which function answers which request."""

from __future__ import annotations

from collections.abc import Callable

from contexture_sandbox.context_broker import commands, queries, subscribing
from contexture_sandbox.context_broker.answers import Refusal, bad_request
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.http_server import Answer, json_answer

MAX_BODY_BYTES = 1_048_576
Handler = Callable[[Broker, Call], Answer]
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_ACCEPTED = ("*/*", "application/*", "application/json", "text/plain", "text/*")


def version(broker: Broker, call: Call) -> Answer:
    """`GET /version`: well whatever is wrong."""
    del call
    seconds = (broker.store.clock.now() - broker.started_us) // 1_000_000
    minutes, rest = divmod(seconds, 60)
    return json_answer(
        {
            "orion": {
                "version": "4.7.0-next",
                "uptime": f"0 d, {minutes // 60} h, {minutes % 60} m, {rest} s",
                "git_hash": "none",
                "compile_time": "none",
                "compiled_by": "contexture_sandbox",
                "compiled_in": "none",
                "release_date": "none",
                "machine": "none",
                "doc": "https://fiware-orion.rtfd.io/",
            }
        }
    )


ROUTES: dict[tuple[str, ...], dict[str, Handler]] = {
    ("version",): {"GET": version},
    ("v2", "entities"): {"GET": queries.list_entities, "POST": commands.create_entity},
    ("v2", "entities", "*"): {"GET": queries.get_entity, "DELETE": commands.delete_entity},
    ("v2", "entities", "*", "attrs"): {
        "GET": queries.get_entity,
        "POST": commands.append_attributes,
        "PATCH": commands.update_attributes,
        "PUT": commands.replace_attributes,
    },
    ("v2", "entities", "*", "attrs", "*"): {
        "GET": queries.get_attribute,
        "PUT": commands.update_attribute,
        "DELETE": commands.delete_attribute,
    },
    ("v2", "entities", "*", "attrs", "*", "value"): {
        "GET": queries.get_attribute,
        "PUT": commands.update_attribute,
    },
    ("v2", "types"): {"GET": queries.list_types},
    ("v2", "types", "*"): {"GET": queries.get_type},
    ("v2", "subscriptions"): {"GET": subscribing.list_subscriptions, "POST": subscribing.create_subscription},
    ("v2", "subscriptions", "*"): {
        "GET": subscribing.get_subscription,
        "PATCH": subscribing.update_subscription,
        "DELETE": subscribing.delete_subscription,
    },
    ("v2", "op", "query"): {"POST": queries.query},
    ("v2", "op", "update"): {"POST": commands.update_batch},
}


def answer(broker: Broker, call: Call) -> Answer:
    """The answer to a request; a refusal is an answer too.

    Raises:
        ConnectionDropped: there is to be no answer.
    """
    faced = broker.face(call) if broker.face is not None else None
    if faced is not None:
        return faced
    try:
        _check_media(call)
        return _handler(call)(broker, call)
    except Refusal as refusal:
        return refusal.answer()


def _handler(call: Call) -> Handler:
    handler = _methods(call.segments).get(call.method)
    if handler is None:
        raise Refusal(405, "MethodNotAllowed", "method not allowed")
    return handler


def _methods(segments: tuple[str, ...]) -> dict[str, Handler]:
    for pattern, methods in ROUTES.items():
        if len(pattern) == len(segments) and all(
            known in {"*", given} for known, given in zip(pattern, segments, strict=True)
        ):
            return methods
    raise bad_request("Service not found. Check your URL as probably it is wrong.")


def _check_media(call: Call) -> None:
    if call.method in _WITH_BODY:
        _check_body(call)
    accept = call.headers.get("accept", "*/*")
    if not any(part.split(";")[0].strip() in _ACCEPTED for part in accept.split(",")):
        raise Refusal(406, "NotAcceptable", "no acceptable mime-type in accept header")


def _check_body(call: Call) -> None:
    if "content-length" not in call.headers:
        raise Refusal(411, "ContentLengthRequired", "Zero/No Content-Length in PUT/POST/PATCH request")
    if len(call.body) > MAX_BODY_BYTES:
        words = f"payload size: {len(call.body)}, max size supported: {MAX_BODY_BYTES}"
        raise Refusal(413, "RequestEntityTooLarge", words)
    media = call.headers.get("content-type", "")
    if media.split(";")[0].strip() not in {"application/json", "text/plain" if call.segments[-1] == "value" else ""}:
        raise Refusal(415, "UnsupportedMediaType", f"not supported content type: {media}")
