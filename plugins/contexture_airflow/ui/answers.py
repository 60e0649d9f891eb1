"""Which headers answers carry: nothing is loaded from elsewhere, framed by others, guessed, or kept."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders

from contexture_airflow.ui.mount import Application, Message, Receive, Send

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
"""For pages of ours: what they show comes from anybody, and must never run."""

DOCUMENT_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""For reports and Data Docs: no script at all, and no part in the session of who reads them."""

_ALWAYS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class Guarded:
    """An application whose every answer carries these headers, unless it says otherwise itself."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, guarded)
