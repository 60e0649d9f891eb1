"""The ASGI application that brokers notify: `POST /contexture/notify/<publication>`.

A 200 says that the notification is kept for good. The other answers say what is wrong as NGSIv2 words errors:

    400  no notification, another service, a path or type outside the selection  401  no valid credentials
    404  no such publication                                                    405  another method than POST
    408  the body takes too long
    413  too large                                                              415  not JSON, not UTF-8, compressed
    503  can't be kept now; `Retry-After` says when to come again, and nothing of it was kept
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from contexture.reception.request import CORRELATOR, kept_headers, read_body
from contexture.reception.target import Target
from contexture.sources.ngsi.notifications import NotificationError, read_notification
from contexture.storage.inbox_writer import InboxUnavailableError

_LARGE_BYTES = 64 << 10
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="contexture", Basic realm="contexture"'}


PREFIX = "/contexture/notify"


def reception(targets: Mapping[str, Target], *, prefix: str = PREFIX) -> Starlette:
    """The application that takes notifications for these publications, by their names.

    Args:
        targets: by name.
        prefix: what stands before the name; nothing where a server of many applications has taken it off.
    """
    return Starlette(routes=[Route(f"{prefix}/{{publication}}", _Notify(targets).answer, methods=["POST"])])


class _Notify:
    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._targets = targets

    async def answer(self, request: Request) -> Response:
        target = self._targets.get(request.path_params["publication"])
        if not self._may_notify(request, target):
            return _told(401, "Unauthorized", "no valid credentials were shown", {**_CHALLENGE, "Connection": "close"})
        if target is None:
            return _told(404, "NotFound", "no publication of this name takes notifications", {"Connection": "close"})
        correlator = request.headers.get(CORRELATOR) or str(uuid.uuid4())
        response = await _taken(request, target, correlator)
        response.headers["Fiware-Correlator"] = correlator
        return response

    def _may_notify(self, request: Request, target: Target | None) -> bool:
        if target is not None:
            return target.access.allows(request)
        # Only who may notify one publication learns that there is no other of a name.
        return any(known.access.allows(request) for known in self._targets.values())


async def _taken(request: Request, target: Target, correlator: str) -> Response:
    try:
        headers = {**kept_headers(request), CORRELATOR: correlator}
        body = await read_body(request, target.maximum_bytes)
        if len(body) > _LARGE_BYTES:
            await asyncio.to_thread(_check, headers, body, target)
        else:
            _check(headers, body, target)
        await asyncio.wrap_future(target.inbox.submit(headers, body))
    except NotificationError as error:
        # What was not read of the body would be taken for the next request.
        return _told(error.status, _NAMES[error.status], str(error), {"Connection": "close"})
    except InboxUnavailableError as error:
        return _told(503, "ServiceUnavailable", str(error), {"Retry-After": str(error.retry_after_seconds)})
    except ClientDisconnect:
        return Response(status_code=400)
    return Response(status_code=200)


def _check(headers: Mapping[str, str], body: bytes, target: Target) -> None:
    # Whoever names no service notifies for the broker's default tenant.
    target.check(read_notification(headers, body, default_service="", maximum_bytes=target.maximum_bytes))


_NAMES = {400: "BadRequest", 408: "RequestTimeout", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType"}


def _told(status: int, name: str, description: str, headers: Mapping[str, str]) -> JSONResponse:
    return JSONResponse({"error": name, "description": description}, status_code=status, headers=dict(headers))
