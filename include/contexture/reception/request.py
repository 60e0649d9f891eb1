"""What is taken from a request: its body, no larger than allowed, and the headers worth keeping."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from contexture.sources.ngsi.notifications import NotificationError

CORRELATOR = "fiware-correlator"
BODY_SECONDS = 60.0
"""How long a body may take: what has arrived of it stays in memory."""

_KEPT = (
    "content-type",
    "fiware-service",
    "fiware-servicepath",
    CORRELATOR,
    "link",
    "ngsild-tenant",
    "ngsiv2-attrsformat",
)


def kept_headers(request: Request) -> dict[str, str]:
    """The headers that say something about the entities; credentials are not among them.

    Raises:
        NotificationError: one stands twice, and nobody knows which one holds.
    """
    kept: dict[str, str] = {}
    for name in _KEPT:
        values = request.headers.getlist(name)
        if len(values) > 1 and name != "link":
            raise NotificationError(f"the header {name} stands twice", next_step="send it once", status=400)
        if values:
            kept[name] = ", ".join(values)
    return kept


async def read_body(request: Request, maximum_bytes: int, *, seconds: float = BODY_SECONDS) -> bytes:
    """The body; reading stops as soon as it is too large, or takes too long.

    Raises:
        NotificationError: too large, too slow, or compressed.
        starlette.requests.ClientDisconnect: the client went away before its end.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotificationError("the body is compressed", next_step="send it as it is", status=415)
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told[:20]) > maximum_bytes:
        raise _too_large(maximum_bytes)
    try:
        async with asyncio.timeout(seconds):
            return await _pieces(request, maximum_bytes)
    except TimeoutError:
        raise NotificationError(
            f"the body did not arrive within {seconds:.0f} s", next_step="look at the network between", status=408
        ) from None


async def _pieces(request: Request, maximum_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > maximum_bytes:
            raise _too_large(maximum_bytes)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(maximum_bytes: int) -> NotificationError:
    return NotificationError(
        f"the body has more than {maximum_bytes} bytes", next_step="notify fewer entities at once", status=413
    )
